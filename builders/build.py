"""`rbtc build`: sources in, a release folder of versioned Parquet out.

DIR/<config>/test-00000-of-00001.parquet     23 sample configs, 3 tables
DIR/README.md                                the card with the YAML that `load_dataset` reads
DIR/build_report.json, build_report.md       counts, every skip with its reason, generators, pins
"""

import asyncio
import hashlib
import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from robustbench_tc import files, parallel, parquet, schema, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.parallel import ALONE, Workers
from robustbench_tc.schema import Sample

from .benchmark import TABLES, VERSION, features, table_rows
from .generate import Generator, Settings, parse_generators
from .perturb import REGISTRY, Text, refuse_text
from .plan import Plan, Skip, text_requests
from .report import BuildReport, Tally
from .sources import BUNDLED, Accept, KnownIssue, Profile, read
from .sources.fetch import resolve_root
from .sources.pins import pins

PART_SAMPLES = 500
"""Clean samples that one process perturbs at a time."""

Progress = Callable[[str], None]
"""Told what is being worked on, one short line at a time."""


class BuildSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a build is a function of."""

    profile: Profile = "paper"
    sources: Path | None = None
    codes: tuple[str, ...] = taxonomy.codes()
    seed: int = 0
    generators: tuple[str, ...] = ("recorded",)
    """As `parse_generators` takes them."""
    settings: Settings = Settings()
    """How endpoints are asked; moves no byte of a build whose texts are there."""
    allow_missing: bool = False
    workers: Workers = ALONE
    """Moves no byte."""


def select_types(names: Sequence[str]) -> tuple[str, ...]:
    """Type codes from a list of codes and components, in the taxonomy's order; all 22 for an empty list."""
    if not names:
        return taxonomy.codes()
    wanted: set[str] = set()
    for name in names:
        if name in taxonomy.COMPONENTS:
            wanted |= {t.code for t in taxonomy.types() if t.component == name}
        elif name != taxonomy.CLEAN:
            wanted.add(taxonomy.get(name).code)
    return tuple(t.code for t in taxonomy.types("all") if t.code in wanted)


def prepare(
    spec: BuildSpec,
    *,
    accept: Accept | None = None,
    progress: Progress = lambda line: None,
    generators: Mapping[str, Generator] | None = None,
) -> tuple[Plan, tuple[KnownIssue, ...], dict[str, Any]]:
    """The plan of a build: samples read, texts written. Also the known issues and the generators' statistics.

    Raises UserError where sources are missing or broken, and for a text that nobody has written unless
    `spec.allow_missing`.
    """
    root = BUNDLED if spec.profile == "bundled" else resolve_root(spec.sources)
    progress(f"reading sources, profile {spec.profile}")
    pool = read(root, spec.profile, accept)
    if not pool.samples:
        raise UserError(f"{root} holds no sample of profile {spec.profile!r}")
    requests = text_requests(pool.samples, spec.codes)
    texts: dict[str, Text | str] = {}
    statistics: dict[str, Any] = {}
    if requests:
        if generators is None:
            generators = parse_generators(
                spec.generators, bundled=spec.profile == "bundled", settings=spec.settings
            )
        for kind, wanted in requests.items():
            progress(f"{len(wanted)} texts for {kind}")
            generator = generators[kind]
            answers = asyncio.run(generator.generate(wanted, refuse_text))
            missing = [request for request in wanted if answers.get(request.key) == "no_answer"]
            if missing and not spec.allow_missing:
                first = missing[0]
                where = ".".join(part for part in (first.tool, first.parameter) if part)
                raise UserError(
                    f"{kind}: no answer for {len(missing)} of {len(wanted)} texts, first key {first.key}"
                    f"{f' ({where})' if where else ''}: choose another --generator, or --allow-missing"
                )
            texts.update(answers)
            statistics[kind] = generator.statistics()
    return Plan(samples=pool.samples, seed=spec.seed, texts=texts), pool.issues, statistics


def build(
    spec: BuildSpec,
    out: Path,
    *,
    card: Callable[[BuildReport], str],
    accept: Accept | None = None,
    check: bool = True,
    force: bool = False,
    progress: Progress = lambda line: None,
    generators: Mapping[str, Generator] | None = None,
) -> BuildReport:
    """Writes the release folder `out` and returns its report. All or nothing: see `files.atomic_dir`.

    `card` renders the README; `accept` is the scorer's self-check of a golden answer. With `check`, every row
    passes its own type's invariants or the build ends.
    """
    with parallel.ready(spec.workers), files.atomic_dir(out, force=force) as folder:
        plan, issues, statistics = prepare(spec, accept=accept, progress=progress, generators=generators)
        tally = Tally()
        checksums: dict[str, str] = {}
        kept = None
        if spec.workers.engine == "ray":
            kept = parallel.kept_beside(out, plan.fingerprint(), spec.codes, check, PART_SAMPLES)
        for code, tables in _configs(plan, spec, check, tally, kept):
            progress(f"writing {code}")
            _write(tables, folder, code, checksums)
        for name in TABLES:
            table = table_rows(name, issues)
            columns = {column: [row[column] for row in table] for column in features(name)}
            _write(iter([parquet.table(columns, features(name))]), folder, name, checksums)
        report = BuildReport(
            dataset_version=VERSION,
            profile=spec.profile,
            seed=spec.seed,
            types=spec.codes,
            configs=tuple(checksums),
            checksums=checksums,
            rows=tally.rows,
            skipped=tuple(tally.skipped),
            flags=tally.flags,
            typing_errors=tally.typing_errors,
            lengths=tally.lengths,
            generators=statistics,
            known_issues=_issue_counts(issues),
            pins=pins().rows() if spec.profile != "bundled" else (),
        )
        (folder / "build_report.json").write_bytes(report.json())
        (folder / "build_report.md").write_text(report.markdown())
        (folder / "README.md").write_text(card(report))
    parallel.forget_kept(out)
    return report


def _configs(
    plan: Plan, spec: BuildSpec, check: bool, tally: Tally, kept: Path | None
) -> Iterator[tuple[str, Iterator[pa.Table]]]:
    """Every sample config with its rows as tables, in order; rows and skips are counted on their way."""
    context = plan.context()
    parts = [
        (code, start)
        for code in (taxonomy.CLEAN, *spec.codes)
        for start in range(0, len(plan.samples), PART_SAMPLES)
    ]

    def work(part: tuple[str, int]) -> pa.Table:
        code, start = part
        samples = slice(start, start + PART_SAMPLES)
        return _part(code, plan.samples[samples], plan.rows(code, context, samples), check)

    def counted(table: pa.Table) -> pa.Table:
        tally.merge(msgspec.json.decode(parquet.note(table), type=Tally))
        return table

    done = zip(parts, parallel.ordered(work, parts, spec.workers, kept), strict=True)
    for code, group in itertools.groupby(done, key=lambda item: item[0][0]):
        yield code, (counted(table) for _, table in group)


def _part(code: str, clean: Sequence[Sample], rows: Iterator[Sample | Skip], check: bool) -> pa.Table:
    """The rows of one type for some samples, with their tally as note; every row passes its type's check."""
    tally = Tally()
    made: list[Sample] = []
    for sample, row in zip(clean, rows, strict=True):
        tally.add(row)
        if isinstance(row, Skip):
            continue
        if check and code != taxonomy.CLEAN and (wrong := REGISTRY[code].check(sample, row)):
            raise UserError(f"{row.id}: {wrong[0]} (a defect of this package: please report it)")
        made.append(row)
    table = parquet.table(schema.columns(made, Sample), schema.sample_features())
    return parquet.noted(table, msgspec.json.encode(tally))


def _write(tables: Iterator[pa.Table], folder: Path, config: str, checksums: dict[str, str]) -> None:
    """Writes a config and notes its checksum; one without a row is left out: it could not be loaded."""
    if parquet.write_shards(tables, folder / config, "test", features(config).arrow_schema):
        digest = hashlib.sha256()
        for shard in parquet.shards(folder / config):
            digest.update(shard.read_bytes())
        checksums[config] = digest.hexdigest()
    else:
        shutil.rmtree(folder / config)


def _issue_counts(issues: Sequence[KnownIssue]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for issue in issues:
        by_reason = counts.setdefault(issue.source, {})
        by_reason[issue.reason] = by_reason.get(issue.reason, 0) + 1
    return counts
