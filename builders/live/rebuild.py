"""A live build made again from what its report says about itself."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.io import marker
from robustbench_tc.schema import KINDS, TASKS, LiveRow
from robustbench_tc.worlds import find
from robustbench_tc.worlds.handle import WorldType

from ..rebuild import own_rows, report_in
from .build import LiveSpec, Profile, build
from .report import LiveReport


def rebuild_live(
    folder: Path,
    out: Path,
    *,
    worlds: Sequence[WorldType] = (),
    sources: Path | None = None,
    python: str | None = None,
    own_tasks: bool = False,
    card: Callable[[LiveReport], str],
) -> LiveReport:
    """Builds into `out` what `folder` says it is; `worlds` are the files that one's own build was made of.

    With `own_tasks` its clean rows are taken as they are, for who has no sources; who asks has to know by
    other means that they are right. Raises UserError where that cannot be.
    """
    settings = report_in(folder, LiveReport)
    if unknown := sorted(set(settings.kinds) - set(KINDS)):
        raise UserError(f"{marker.BUILD} names a kind of fault that this package does not have: {unknown[0]}")
    ours = (*find.BUNDLED, find.BFCL)  # by name, as they were named then
    files = {world.name: str(world.file) for world in worlds if world.name not in ours}
    own = settings.profile == "own"
    profile: Profile = "bundled"
    if not own:
        profile = msgspec.convert(settings.profile, Profile)
    spec = LiveSpec(
        profile=profile,
        worlds=tuple(files.get(name, name) for name in settings.worlds) if own else (),
        kinds=settings.kinds,
        types=settings.types or (),
        seed=settings.seed,
        sources=sources,
        python=python,
    )
    return build(spec, out, card=card, clean=own_rows(folder / TASKS, LiveRow) if own_tasks else None)
