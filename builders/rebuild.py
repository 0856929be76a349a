"""A build made again from what it says about itself: its report and its `generations.jsonl`.

The clean rows of a benchmark come from the sources, or, where nobody has those, from the build's own `clean`
and `known_issues`; whoever asks then has to know by other means that these two are right. Training rows come
from ToolRL's files alone.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.io import marker, parquet
from robustbench_tc.schema import Sample, record

from . import errata_files, generations
from .build import BuildSpec, build
from .report import BuildReport, Report
from .sources import KnownIssue, Pool, Profile, needed_files, problems, rlla
from .sources.upstream import default_root
from .toolrl_dr import build as build_training
from .toolrl_report import TrainingReport
from .toolrl_spec import TrainingSpec
from .toolrl_versions import Checks

R = TypeVar("R", bound=Report)
Row = TypeVar("Row", bound=msgspec.Struct)


def report_in(folder: Path, kind: type[R]) -> R:
    """What the build in `folder` says of itself. Raises UserError."""
    try:
        return msgspec.json.decode((folder / marker.BUILD).read_bytes(), type=kind)
    except OSError as error:
        raise UserError(f"{marker.BUILD}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{marker.BUILD} does not say how the build was made: {error}") from None


def rebuild(
    folder: Path,
    out: Path,
    *,
    sources: Path | None,
    card: Callable[[BuildReport], str],
    beside: Mapping[str, bytes] | None = None,
    seed: int | None = None,
) -> BuildReport:
    """Builds into `out` what `folder` says it is; without `sources` from its own clean rows.

    `seed`: another one than it was built with.
    A build of the bundled samples always has its sources. Raises UserError where the build cannot be made
    again.
    """
    settings = report_in(folder, BuildReport)
    # In the taxonomy's order, each once, whatever order the report has: it is compared afterwards.
    codes = tuple(t.code for t in taxonomy.among(settings.types))
    if unknown := set(settings.types) - set(codes):
        raise UserError(f"{marker.BUILD} names types that this package does not have: {sorted(unknown)}")
    generators = generations.replay(folder / generations.NAME)
    for code in taxonomy.written(codes):
        if code not in generators:
            raise UserError(f"{generations.NAME} says nothing about {code}")
    spec = BuildSpec(
        profile=settings.profile,
        sources=sources,
        codes=codes,
        seed=settings.seed if seed is None else seed,
        errata=errata_files.read_errata(folder / errata_files.NAME),
        allow_missing=True,
    )
    pool = own_pool(folder) if sources is None and settings.profile != "bundled" else None
    return build(
        spec,
        out,
        card=card,
        generators=generators,
        pool=pool,
        beside=beside,
    )


def own_pool(folder: Path) -> Pool:
    """The clean rows and known issues of a build, read from its own Parquet files. Raises UserError."""
    issues: list[KnownIssue] = []
    if (folder / "known_issues").is_dir():
        rows = parquet.read_rows(parquet.shards(folder / "known_issues"))
        issues = [msgspec.convert(row, KnownIssue) for row in rows]
    return Pool(tuple(own_rows(folder / taxonomy.CLEAN, Sample)), tuple(issues))


def own_rows(config: Path, kind: type[Row]) -> list[Row]:
    """The rows of a build's own config. Raises UserError."""
    try:
        return [record(row, kind) for row in parquet.read_rows(parquet.shards(config))]
    except (ValueError, RecursionError) as error:
        raise UserError(f"its own clean rows cannot be read: {error}") from None


def has_rlla(folder: Path, root: Path) -> bool:
    """Whether `root` holds the very ToolRL files that the training build in `folder` was made of."""
    try:
        files = rlla.find_files(root)
        found = tuple(rlla.provenance(path) for path in (files.train, files.validation) if path)
    except (UserError, OSError):
        return False
    return found == report_in(folder, TrainingReport).sources


def rebuild_training(
    folder: Path,
    out: Path,
    *,
    rlla_root: Path,
    checks: Checks,
    leak_note: str,
    card: Callable[[TrainingReport], str],
) -> TrainingReport:
    """Builds into `out` the training data that `folder` says it is. Raises UserError where that cannot be."""
    settings = report_in(folder, TrainingReport)
    names = {*settings.types, *settings.not_generated}
    codes = tuple(t.code for t in taxonomy.among(names))
    if not codes or len(codes) != len(names):
        raise UserError(f"{marker.BUILD} names types that this package does not have")
    try:
        ratio, alpha = Fraction(settings.ratio), Fraction(settings.alpha)
    except (ValueError, ZeroDivisionError):
        raise UserError(f"{marker.BUILD}: ratio and alpha are shares") from None
    spec = TrainingSpec(
        rlla=rlla_root,
        configs=tuple(settings.rows),
        types=codes,
        seed=settings.seed,
        ratio=ratio,
        alpha=alpha,
        copies=settings.copies,
        counterbalance=settings.counterbalance is True,
        retry_probability=settings.retry_probability,
        retry_position=settings.retry_position,
    )
    generators = generations.replay(folder / generations.NAME)
    return build_training(spec, out, checks=checks, card=card, generators=generators, leak_note=leak_note)


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
