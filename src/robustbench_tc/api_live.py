"""The live verbs of `api`, which takes them from here: what the command line does, as functions."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .compute.parallel import SERIAL, Workers
from .errors import UserError

if TYPE_CHECKING:
    from .builders.live.build import Profile
    from .builders.live.report import LiveReport


def build_live(
    out: str | Path,
    *,
    profile: "Profile" = "bundled",
    worlds: tuple[str, ...] = (),
    kinds: tuple[str, ...] = (),
    seed: int = 0,
    sources: Path | None = None,
    python: str | None = None,
    workers: Workers = SERIAL,
    force: bool = False,
    discard_changes: bool = False,
    progress: Callable[[str], None] = lambda line: None,
) -> "LiveReport":
    """`rbtc build live`: writes the live dataset into the new folder `out`, all or nothing.

    `worlds`: names and files, in place of the profile's. `kinds`: of faults, by default all. `sources` and
    `python` are for BFCL's tasks: upstream's files, and the Python that has its classes. `workers` moves no
    byte; worlds are probed by processes of this machine only.

    Raises UserError for an unknown name, a world's file that is none, a task whose gold fails, and a folder
    that is there already (`force` replaces one of ours).

    >>> build_live("robustbench-tc-live").total  # doctest: +SKIP
    """
    from .builders.live.build import LiveSpec, build
    from .dataset_cards.live import live_card

    out = Path(out)
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: name a folder with --out")
    spec = LiveSpec(
        profile=profile,
        worlds=worlds,
        kinds=kinds,
        seed=seed,
        sources=sources,
        python=python,
        workers=workers,
    )
    return build(spec, out, card=live_card, force=force, discard_changes=discard_changes, progress=progress)
