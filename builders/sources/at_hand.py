"""Are the sources there, and whole? Asked before any work: it takes a fraction of a second."""

from pathlib import Path

from robustbench_tc.errors import UserError

from . import Profile, needed_files, problems
from .fetch import default_root

NAMED = 3
"""Files that a message names before it says how many more there are."""


def sources_at_hand(sources: Path | None, profile: Profile) -> tuple[Path | None, str]:
    """The sources folder, if every file that the profile needs is there as pinned; else why not.

    Without `sources`: the default folder. Raises UserError where `sources` are named and not whole.
    """
    root = sources or default_root()
    if not root.is_dir():
        if sources is not None:
            raise UserError(
                f"no sources folder at {root}: run `rbtc sources fetch`, or name another --sources"
            )
        return None, "no sources at hand (run `rbtc sources fetch`, or pass --sources)"
    bad = problems(root, profile)
    if not bad:
        return root, ""
    named = "; ".join(f"{path}: {problem}" for path, problem in bad[:NAMED])
    more = f"; and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
    needed = len(needed_files(profile))
    why = f"{len(bad)} of {needed} source files of profile {profile} are not as pinned ({named}{more})"
    if sources is not None:
        raise UserError(f"{root}: {why}: `rbtc sources fetch --out {root}` completes it")
    return None, why
