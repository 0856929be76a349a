"""`rbtc build live`: worlds and their tasks in, a release folder of versioned Parquet out.

DIR/tasks/test-00000-of-00001.parquet      the clean rows
DIR/live_<kind>/…                          the same tasks with one fault each, where one fits
DIR/live_<type>/…                          the same tasks with more tools, of the core types that are named
DIR/README.md                              the card with the YAML that `load_dataset` reads
DIR/build_report.json, build_report.md     counts, labels, every skip with its reason, hashes of the worlds

A live build made again from what its report says about itself.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec
import pyarrow as pa

from robustbench_tc import live_types, schema
from robustbench_tc.compute import loop, parallel
from robustbench_tc.compute.parallel import SERIAL, Workers
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.io import folders, marker, parquet
from robustbench_tc.live_types import FAULT_TYPES
from robustbench_tc.schema import BUILT_KINDS, KINDS, TASKS, Kind, LiveRow
from robustbench_tc.seeding import rng
from robustbench_tc.worlds import find
from robustbench_tc.worlds.base import NAME
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from ..build import write_config
from ..rebuild import own_rows, report_in
from ..report import LiveReport, LiveSkip, LiveTally, finished
from ..sources.upstream import LIVE_SOURCE, pins, resolve_root
from . import bfcl
from .placing import Placed, Reason, faulted, placed
from .registry import checked, named_faults, registered
from .trace import clean_rows, with_gold

VERSION = "1.1.0"
"""Of the rows that this code builds: `datasets` caches them under it."""

Profile = Literal["bundled", "lite", "full"]
"""bundled: every kind in the package's own worlds. full: every kind in BFCL's four categories. lite: BFCL's
base tasks, one faulted row each."""

LITE_KINDS: tuple[Kind, ...] = (
    "transient_timeout",
    "timeout_after_effect",
    "silent_no_op",
    "duplicate_effect",
)
"""What profile `lite` draws from: the call fails or seems to succeed, and it happened, or not, or twice."""

PART_ROWS = 10
"""Tasks that one process probes at a time."""

TABLE_ROWS = 200
"""Rows that are made into a table at a time: those of BFCL's long contexts are large."""

Progress = Callable[[str], None]
Placements = dict[str, Placed | Reason]
Prepared = dict[str, dict[str, LiveRow | str]]
"""Type code → clean id → the row, or why the task has none."""


class LiveSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a live build is a function of."""

    profile: Profile = "bundled"
    worlds: tuple[str, ...] = ()
    """Names and files of worlds, in place of the profile's."""
    kinds: tuple[str, ...] = ()
    """Kinds of faults; all that need no name (of `lite` its four) where none is named."""
    types: tuple[str, ...] = ()
    """What is built beside the kinds, by name: core types that put tools into the registry
    (`live_types.registry_types`), kinds of faults that are made by name alone, and cascades."""
    seed: int = 0
    sources: Path | None = None
    """Upstream files, for BFCL's tasks."""
    python: str | None = None
    """The Python that has BFCL's classes."""
    workers: Workers = SERIAL
    """Moves no byte."""

    def checked_kinds(self) -> tuple[str, ...]:
        """The kinds and cascades to build, in the order of every table. Raises UserError for one that does
        not exist."""
        for kind in self.kinds:
            if kind.removeprefix("live_") not in FAULT_TYPES:
                raise unknown("kind of fault", kind, KINDS)
        usual = LITE_KINDS if self.profile == "lite" else BUILT_KINDS
        wanted = {kind.removeprefix("live_") for kind in self.kinds or usual}
        wanted |= named_faults(self.types)
        return tuple(kind for kind in FAULT_TYPES if kind in wanted)

    def world_types(self) -> tuple[WorldType, ...]:
        """The worlds to build from. Raises UserError for an unknown one, and for two of one name."""
        if self.profile not in get_args(Profile):
            raise unknown("profile", self.profile, get_args(Profile))
        names = self.worlds or (find.BUNDLED if self.profile == "bundled" else (find.BFCL,))
        found = tuple(find.find(name, python=self.python) for name in dict.fromkeys(names))
        for name, one in zip(dict.fromkeys(names), found, strict=True):
            if name != one.name and (
                one.name in (*find.BUNDLED, find.BFCL) or not re.fullmatch(NAME, one.name)
            ):
                raise UserError(
                    f"{name}: rows name their world after its file: rename it, to letters, digits, _ and -, "
                    "and not to a bundled world's name"
                )
        twice = [name for name, n in Counter(one.name for one in found).items() if n > 1]
        if twice:
            raise UserError(f"two worlds are called {twice[0]!r}: rename one of the files")
        return found


def build(
    spec: LiveSpec,
    out: Path,
    *,
    card: Callable[[LiveReport], str],
    clean: Sequence[LiveRow] | None = None,
    force: bool = False,
    discard_changes: bool = False,
    progress: Progress = lambda line: None,
) -> LiveReport:
    """Writes the folder `out`, all or nothing, and returns its report. `card` renders the README; `clean` are
    tasks that are read already.

    Raises UserError for unknown worlds and kinds, and for tasks whose gold cannot be carried out.
    """
    kinds, types, worlds = spec.checked_kinds(), checked(spec.types), spec.world_types()
    with folders.atomic_dir(out, kind=schema.DATASET, force=force, discard_changes=discard_changes) as folder:
        made = prepared(spec, clean=clean, progress=progress)
        tally, checksums = LiveTally(), dict[str, str]()
        for code in made:
            progress(f"writing {live_types.config_of(code)}")
            tables = map(_table, parquet.batches(tally.counted(rows_of(code, made)), TABLE_ROWS))
            write_config(tables, folder, live_types.config_of(code), LiveRow, checksums)
        world_of = {row.clean_id: row.world for row in rows_of("clean", made)}
        of_bfcl = any(world.name == find.BFCL and world.python is not None for world in worlds)
        report = LiveReport(
            profile="own" if spec.worlds else spec.profile,
            seed=spec.seed,
            worlds={world.name: marker.sha256(world.file) for world in worlds},
            kinds=kinds,
            types=types or msgspec.UNSET,
            configs=tuple(checksums),
            checksums=checksums,
            rows=tally.rows,
            labels=tally.labels,
            positions=tally.positions,
            skipped=tuple(
                LiveSkip(clean_id, code, world_of[clean_id], why)
                for code, of_type in made.items()
                for clean_id, why in of_type.items()
                if isinstance(why, str)
            ),
            pins=tuple(row for row in pins().rows() if row["source"] == LIVE_SOURCE) if of_bfcl else (),
        )
        return finished(folder, report, card)


def prepared(
    spec: LiveSpec,
    *,
    clean: Sequence[LiveRow] | None = None,
    probe: bool = True,
    progress: Progress = lambda line: None,
) -> Prepared:
    """The tasks of all worlds, with `probe` what is made of them of each kind of fault, and of each registry
    type. Raises UserError."""
    kinds, types, worlds = spec.checked_kinds(), checked(spec.types), spec.world_types()
    if clean is None:
        clean = _unique(row for world in worlds for row in read_clean_rows(world, spec, progress))
    made: Prepared = {"clean": {row.clean_id: row for row in clean}}
    if probe:
        made |= {live_types.type_code(kind): {} for kind in kinds}
        for row, found in zip(clean, _probed(clean, worlds, kinds, spec, progress), strict=True):
            if spec.profile == "lite":
                found = _one_drawn(found, spec.seed, row.clean_id)
            for kind, one in found.items():
                code = live_types.type_code(kind)
                made[code][row.clean_id] = faulted(row, code, one) if isinstance(one, Placed) else one
    return made | {live_types.type_code(name): registered(clean, name, spec.seed) for name in types}


def rows_of(code: str, made: Prepared) -> Iterator[LiveRow]:
    """The rows of a type, in the tasks' order."""
    return (one for one in made.get(code, {}).values() if isinstance(one, LiveRow))


def read_clean_rows(
    world: WorldType, spec: LiveSpec, progress: Progress = lambda line: None
) -> list[LiveRow]:
    """The clean rows of a world."""
    progress(f"reading the tasks of {world.name}")

    async def run() -> list[LiveRow]:
        async with Worlds() as worlds:
            if world.name == find.BFCL and world.python is not None:
                categories = bfcl.CATEGORIES[:1] if spec.profile == "lite" else bfcl.CATEGORIES
                tasks = bfcl.tasks(resolve_root(spec.sources), categories)
                return [await with_gold(worlds, world, row) for row in tasks]
            return await clean_rows(world, worlds)

    rows = loop.run(run())
    return [msgspec.structs.replace(row, seed=spec.seed) for row in rows]


def _probed(
    clean: Sequence[LiveRow],
    worlds: Sequence[WorldType],
    kinds: tuple[str, ...],
    spec: LiveSpec,
    progress: Progress,
) -> list[Placements]:
    """For each task and kind the fault that it gets, or why it gets none."""
    by_name = {world.name: world for world in worlds}

    async def probed(part: list[LiveRow]) -> list[Placements]:
        async with Worlds() as opened:
            return [await placed(opened, by_name[row.world], row, kinds, spec.seed) for row in part]

    found: list[Placements] = []
    parts = parquet.batches(clean, PART_ROWS)
    for part in parallel.map_ordered(lambda part: loop.run(probed(part)), list(parts), spec.workers):
        found += part
        progress(f"probing: {len(found)} of {len(clean)} tasks")
    return found


def _one_drawn(found: Placements, seed: int, clean_id: str) -> Placements:
    """One kind of those that a task has a row of, and those that were named; the others are not drawn."""
    having = [kind for kind, one in found.items() if isinstance(one, Placed) and kind in BUILT_KINDS]
    left_out = set(having)
    if having:
        left_out.remove(rng(seed, "lite", clean_id).choice(having))
    return {kind: "not_drawn" if kind in left_out else one for kind, one in found.items()}


def _unique(rows: Iterable[LiveRow]) -> list[LiveRow]:
    """The rows. Raises UserError where two worlds have a task of one id, or where there is none."""
    found: dict[str, LiveRow] = {}
    for row in rows:
        if row.clean_id in found:
            raise UserError(
                f"worlds {found[row.clean_id].world!r} and {row.world!r} both have a task {row.clean_id!r}: "
                "rename one of them"
            )
        found[row.clean_id] = row
    return list(found.values())


def _table(rows: Sequence[LiveRow]) -> pa.Table:
    try:
        return schema.arrow_table(rows, LiveRow)
    except ValueError as error:
        raise UserError(f"tasks {rows[0].clean_id} to {rows[-1].clean_id}: {error}") from None


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
    if unknown := sorted(set(settings.kinds) - set(FAULT_TYPES)):
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
