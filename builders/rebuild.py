"""A build made again from what it says about itself: its report and its `generations.jsonl`.

The clean rows come from the sources, or, where nobody has those, from the build's own `clean` and
`known_issues`; whoever asks then has to know by other means that these two are right.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.io import marker, parquet
from robustbench_tc.schema import Sample, record

from . import generations
from .build import BuildSpec, build
from .generate import kinds
from .generators.base import Generator
from .report import BuildReport
from .sources import Accept, KnownIssue, Pool, Profile


class Told(msgspec.Struct, frozen=True):
    """What a rebuild needs of `build_report.json`."""

    profile: Profile
    seed: int
    types: tuple[str, ...]


def told_by(folder: Path) -> Told:
    """What the build in `folder` says that it was made of. Raises UserError."""
    try:
        return msgspec.json.decode((folder / marker.BUILD).read_bytes(), type=Told)
    except OSError as error:
        raise UserError(f"{marker.BUILD}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{marker.BUILD} does not say what the build is made of: {error}") from None


def rebuild(
    folder: Path,
    out: Path,
    *,
    sources: Path | None,
    card: Callable[[BuildReport], str],
    accept: Accept | None = None,
) -> BuildReport:
    """Builds into `out` what `folder` says it is; without `sources` from its own clean rows.

    A build of the bundled samples always has its sources. Without `generations.jsonl` the model-written types
    are left out. Raises UserError where the build cannot be made again.
    """
    told = told_by(folder)
    # In the taxonomy's order, each once, whatever order the report has: it is compared afterwards.
    codes = tuple(t.code for t in taxonomy.types("all") if t.code in told.types)
    if unknown := set(told.types) - set(codes):
        raise UserError(f"{marker.BUILD} names types that this package does not have: {sorted(unknown)}")
    texts = folder / generations.NAME
    generators: dict[str, Generator] = {}
    if texts.is_file():
        generators.update(generations.replay(texts))
        for code in codes:
            if code in kinds() and code not in generators:
                raise UserError(f"{generations.NAME} says nothing about {code}")
    else:
        codes = tuple(code for code in codes if code not in kinds())
    spec = BuildSpec(
        profile=told.profile, sources=sources, codes=codes, seed=told.seed, allow_missing=True
    )
    pool = own_pool(folder) if sources is None and told.profile != "bundled" else None
    return build(spec, out, card=card, accept=accept, generators=generators, pool=pool)


def own_pool(folder: Path) -> Pool:
    """The clean rows and known issues of a build, read from its own Parquet files. Raises UserError."""
    try:
        samples = [record(row, Sample) for row in parquet.read_rows(parquet.shards(folder / taxonomy.CLEAN))]
        issues = []
        if (folder / "known_issues").is_dir():
            rows = parquet.read_rows(parquet.shards(folder / "known_issues"))
            issues = [msgspec.convert(row, KnownIssue) for row in rows]
    except (ValueError, RecursionError) as error:
        raise UserError(f"its own clean rows cannot be read: {error}") from None
    return Pool(tuple(samples), tuple(issues))
