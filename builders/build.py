"""`rbtc build`: sources in, a release folder of versioned Parquet out.

DIR/<config>/test-00000-of-00001.parquet     23 sample configs, 3 tables
DIR/README.md                                the card with the YAML that `load_dataset` reads
DIR/build_report.json, build_report.md       counts, every skip with its reason, generators, pins
DIR/own.json                                 of one's own cases: what rows have no column for
DIR/errata.jsonl                             golden answers that this build corrects, where it does
DIR/generations.jsonl                        every answer of a generator: enough to build it again

Samples whose golden answer nobody could know: they leave the profile `full`, elsewhere their rows say so.

The 199 are the paper's and the bundled ones are shown as they are, so their rows stay and carry the flag
`gold_not_stated`; without them the rows are the subset `verified`. `known_issues` names each, with what is
missing.
"""

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa

from robustbench_tc import schema, taxonomy
from robustbench_tc.compute import loop, parallel
from robustbench_tc.compute.parallel import SERIAL, Workers
from robustbench_tc.errors import UserError
from robustbench_tc.io import folders, parquet
from robustbench_tc.schema import GOLD_NOT_STATED, PublishedSample, Sample, arrow_schema

from . import answerable, generations
from .configs import TABLES, row_type, table_rows
from .errata_files import NAME as ERRATA, Erratum, amended, write as write_errata
from .generate import Generator, Settings, parse_generators
from .generations import Recording
from .generators.base import Silent
from .perturb import REGISTRY, Text, mixed, refuse_answer
from .plain import published
from .plan import Plan, Skip, borrowed, text_requests
from .report import BuildReport, Tally, add, finished
from .sources import BUNDLED, OWN_CASES, BuildProfile, KnownIssue, Pool, Profile, read_pool
from .sources.upstream import LIVE_SOURCE, pins, resolve_root

PART_SAMPLES = 500
"""Clean samples that one process perturbs at a time."""

Progress = Callable[[str], None]
"""Called with what is being worked on, one short line at a time."""


class BuildSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a build is a function of."""

    profile: BuildProfile = "paper"
    sources: Path | None = None
    codes: tuple[str, ...] = taxonomy.codes()
    seed: int = 0
    generators: tuple[str, ...] = ("recorded",)
    """As `parse_generators` takes them."""
    settings: Settings = Settings()
    """How endpoints are asked; moves no byte of a build whose texts are there."""
    allow_missing: bool = False
    errata: tuple[Erratum, ...] = ()
    """Golden answers that are corrected before any row is made."""
    workers: Workers = SERIAL
    """Moves no byte."""


def select_types(names: Sequence[str]) -> tuple[str, ...]:
    """Type codes from a list of codes, components (of the core), packs, levels and mixtures (`mix:A+B`), in
    the taxonomy's order; all 22 for an empty list."""
    if not names:
        return taxonomy.codes()
    wanted: set[str] = set()
    for name in names:
        if name.startswith("mix:"):
            wanted.add(mixed.code_of(name.removeprefix("mix:").split("+")))
        elif taxonomy.parts(name):
            wanted.add(taxonomy.MIX + "__".join(mixed.checked(name)))
        else:
            wanted.update(taxonomy.codes_of(name))
    return tuple(t.code for t in taxonomy.among(wanted))


def factorial() -> tuple[str, ...]:
    """The cells of the factorial design beside `clean`: its types alone, and every mixture of them."""
    return (*mixed.DESIGN, *(code for code in REGISTRY if set(taxonomy.parts(code)) & set(mixed.DESIGN)))


class Prepared(NamedTuple):
    """What a build is made of, once its samples are read and its texts written."""

    plan: Plan
    issues: tuple[KnownIssue, ...]
    recordings: tuple[Recording, ...]
    """Of the generators that were asked, in the types' order."""


def prepare(
    spec: BuildSpec,
    *,
    progress: Progress = lambda line: None,
    generators: Mapping[str, Generator] | None = None,
    pool: Pool | None = None,
) -> Prepared:
    """Reads the samples (unless a `pool` of them is given) and has the texts written.

    Raises UserError where sources are missing or broken, and for a text that nobody has written unless
    `spec.allow_missing`.
    """
    root = BUNDLED if spec.profile == "bundled" else spec.sources
    if pool is None:
        assert spec.profile != OWN_CASES, "cases of one's own have been read: pass their pool"
        root = resolve_root(root)
        progress(f"reading sources, profile {spec.profile}")
        pool = read_pool(root, spec.profile, checked=True)
        if not pool.samples:
            raise UserError(f"{root} holds no sample of profile {spec.profile!r}")
        pool = judged(pool, spec.profile)
        pool = msgspec.structs.replace(pool, samples=amended(pool.samples, spec.errata))
    texts: dict[str, Text | str] = {}
    recordings: list[Recording] = []
    silent: frozenset[str] = frozenset()
    written = taxonomy.written(spec.codes)
    if written:
        if generators is None:
            generators = parse_generators(
                spec.generators, bundled=spec.profile == "bundled", settings=spec.settings, also=written
            )
        silent = frozenset(code for code in written if isinstance(generators[code], Silent))
        requests = text_requests(pool.samples, [code for code in written if code not in silent])
        for kind in written:
            wanted, generator = requests.get(kind, []), generators[kind]
            progress(f"{len(wanted)} texts for {kind}")
            recordings.append(Recording(kind, generator))
            answers = loop.run(recordings[-1].generate(wanted, refuse_answer))
            missing = [request for request in wanted if answers.get(request.key) == "no_answer"]
            if missing and not spec.allow_missing:
                first = missing[0]
                where = ".".join(part for part in (first.tool, first.parameter) if part)
                raise UserError(
                    f"{kind}: no answer for {len(missing)} of {len(wanted)} texts, first key {first.key}"
                    f"{f' ({where})' if where else ''}: choose another --generator, or --allow-missing"
                )
            texts.update(answers)
    loans = borrowed(spec.codes, root, spec.profile, pool)
    plan = Plan(samples=pool.samples, seed=spec.seed, texts=texts, silent=silent, loans=loans)
    return Prepared(plan, pool.issues, tuple(recordings))


def build(
    spec: BuildSpec,
    out: Path,
    *,
    card: Callable[[BuildReport], str],
    force: bool = False,
    discard_changes: bool = False,
    progress: Progress = lambda line: None,
    generators: Mapping[str, Generator] | None = None,
    pool: Pool | None = None,
    beside: Mapping[str, bytes] | None = None,
) -> BuildReport:
    """Writes the release folder `out` and returns its report. All or nothing: see `folders.atomic_dir`.

    `card` renders the README. Every row passes its own type's
    invariants or the build ends. `pool`: samples that are read, and amended, already.
    `beside`: files of the build's own that lie beside its configs, by name.
    """
    with (
        parallel.on_ray(spec.workers),
        folders.atomic_dir(
            out, kind="robustbench-tc", force=force, discard_changes=discard_changes
        ) as folder,
    ):
        plan, issues, recordings = prepare(spec, progress=progress, generators=generators, pool=pool)
        tally = Tally()
        checksums: dict[str, str] = {}
        for code, tables in _configs(plan, spec, tally):
            progress(f"writing {code}")
            write_config(tables, folder, code, row_type(code), checksums)
        if spec.profile == OWN_CASES:
            _refuse_clean_only(spec, tally)
        for name in TABLES:
            table = schema.arrow_table(table_rows(name, issues, spec.codes), row_type(name))
            write_config(iter([table]), folder, name, row_type(name), checksums)
        report = BuildReport(
            fingerprint=schema.fingerprint(sorted(tally.hashes.items())),
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
            generators={recording.kind: recording.statistics() for recording in recordings},
            known_issues=_issue_counts(issues),
            pins=() if spec.profile in ("bundled", OWN_CASES) else pins().rows(but=LIVE_SOURCE),
        )
        for name, content in (beside or {}).items():
            (folder / name).write_bytes(content)
        generations.write(folder / generations.NAME, recordings)
        if spec.errata:
            write_errata(folder / ERRATA, spec.errata)
        return finished(folder, report, card)


def _refuse_clean_only(spec: BuildSpec, tally: Tally) -> None:
    """UserError where types were wanted and none made a row: such a dataset shows nothing of robustness."""
    if not spec.codes or any(tally.rows.get(code) for code in spec.codes):
        return
    reasons = Counter(skip.reason for skip in tally.skipped)
    said = ", ".join(f"{reason} {n}" for reason, n in reasons.most_common())
    remedies = {
        "not_generated": "name a --generator",
        "no_gold_call": "add cases whose answer is a call",
    }
    hints = [remedy for reason, remedy in remedies.items() if reason in reasons]
    raise UserError(
        f"no type makes a row of these cases (skipped pairs: {said}): "
        f"{', '.join([*hints, 'choose other --types'])}, or build the clean rows alone with --types clean"
    )


def _configs(plan: Plan, spec: BuildSpec, tally: Tally) -> Iterator[tuple[str, Iterator[pa.Table]]]:
    """Every sample config with its rows as tables, in order; rows and skips are counted on their way."""
    context = plan.context()
    parts = [
        (code, start)
        for code in (taxonomy.CLEAN, *spec.codes)
        for start in range(0, len(plan.samples), PART_SAMPLES)
    ]

    def work(part: tuple[str, int]) -> tuple[pa.Table, Tally]:
        code, start = part
        samples = slice(start, start + PART_SAMPLES)
        return _part(code, plan.samples[samples], plan.rows(code, context, samples))

    def counted(table: pa.Table, more: Tally) -> pa.Table:
        tally.merge(more)
        return table

    made = zip(parts, parallel.map_ordered(work, parts, spec.workers), strict=True)
    for code, group in itertools.groupby(made, key=lambda item: item[0][0]):
        yield code, (counted(*done) for _, done in group)


def _part(code: str, clean: Sequence[Sample], rows: Iterator[Sample | Skip]) -> tuple[pa.Table, Tally]:
    """The rows of one type for some samples, and their tally; every row passes its type's check."""
    tally = Tally()
    made: list[Sample] = []
    for sample, row in zip(clean, rows, strict=True):
        tally.add(row)
        if isinstance(row, Skip):
            continue
        if code != taxonomy.CLEAN and (wrong := REGISTRY[code].problems(sample, row)):
            raise UserError(f"{row.id}: {wrong[0]} (a defect of this package: please report it)")
        made.append(row)
    return schema.arrow_table(map(published, made), PublishedSample), tally


def write_config(
    tables: Iterator[pa.Table],
    folder: Path,
    config: str,
    kind: type[msgspec.Struct],
    checksums: dict[str, str],
) -> None:
    """Writes a config and notes its checksum; one without a row is left out: it could not be loaded."""
    if parquet.write_shards(tables, folder / config, "test", arrow_schema(kind)):
        digest = hashlib.sha256()
        for shard in parquet.shards(folder / config):
            digest.update(shard.read_bytes())
        checksums[config] = digest.hexdigest()
    else:
        (empty,) = parquet.shards(folder / config)
        empty.unlink()
        (folder / config).rmdir()


def _issue_counts(issues: Sequence[KnownIssue]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for issue in issues:
        if issue.status == "left_out":  # of the others the rows are there, with flags that are counted
            add(counts.setdefault(issue.source, {}), issue.reason)
    return counts


def judged(pool: Pool, profile: Profile) -> Pool:
    """The pool with flags, or (`full`) without the samples that would carry one; an issue for each."""
    samples: list[Sample] = []
    issues = list(pool.issues)
    for sample in pool.samples:
        missing = answerable.audit(sample).missing
        if missing is None or profile != "full":
            samples.append(answerable.flagged(sample, missing is not None))
        if missing is not None:
            file, record = pool.places[sample.clean_id]
            issues.append(
                KnownIssue(
                    source=sample.source,
                    file=file,
                    record=record,
                    clean_id=sample.clean_id,
                    reason=GOLD_NOT_STATED,
                    detail=missing,
                    status="left_out" if profile == "full" else "flagged",
                )
            )
    return Pool(tuple(samples), tuple(issues), pool.places)
