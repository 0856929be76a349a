"""Whether upstream's files lie here, whole and as they are pinned."""

from pathlib import Path

from robustbench_tc.errors import UserError

from .sources import Profile, needed_files, problems
from .sources.fetch import default_root

FILES_NAMED = 3
"""Source files that a message names before it says how many more there are."""

NONE = "no sources at hand (run `rbtc data fetch`, or pass --sources)"


def sources_at_hand(sources: Path | None, profile: Profile) -> tuple[Path | None, str]:
    """The sources folder, if every file that the profile needs is there as pinned; else why not.

    Every needed file is looked at before any work, which takes a second. Raises UserError where `sources` are
    named and not whole.
    """
    root = sources or default_root()
    if not root.is_dir():
        if sources is not None:
            raise UserError(f"no sources folder at {root}: run `rbtc data fetch`, or name another --sources")
        return None, NONE
    bad = problems(root, profile)
    if not bad:
        return root, ""
    named = "; ".join(f"{path}: {problem}" for path, problem in bad[:FILES_NAMED])
    more = f"; and {len(bad) - FILES_NAMED} more" if len(bad) > FILES_NAMED else ""
    needed = len(needed_files(profile))
    why = f"{len(bad)} of {needed} source files of profile {profile} are not as pinned ({named}{more})"
    if sources is not None:
        raise UserError(f"{root}: {why}: `rbtc data fetch --sources {root}` completes it")
    return None, why
