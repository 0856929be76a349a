"""The gate: one verdict from everything that must hold. No green gate, no release.

A check that did not run fails the gate like a failed one, unless the check itself says where it is written
that it may be left out (`Check.may_be_left_out`). What the gate needs of other rooms is handed in.
"""

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from robustbench_tc import __version__, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.io import audit_files, marker, not_live, numbers
from robustbench_tc.schema import Message

from . import contamination, declining, earlier, evidence, judgments, paraphrase, provenance, shortcuts
from .contamination import Index, Query
from .folder import Folder, unreadable
from .hygiene import files as other_files
from .invariants.base import OFFERS, codes_of, states_preference
from .judge import Judge
from .own_tools import allowed, is_own
from .provenance import Rebuild
from .report import AuditReport, Check, Failure, Identifiability, Overlap, check, not_run
from .rows import Golds, SelfCheck, UnitChecks
from .scan import Scan
from .shortcuts import TryBlind
from .waivers import Waiver, apply, shipped

if TYPE_CHECKING:
    from robustbench_tc.worlds.handle import WorldType

    from .expectations.gx import Validated
    from .expectations.training import EarnsMaximum

Conversations = Callable[[], Iterable[tuple[str, Sequence[Message]]]]
"""Rows as (id, messages): the benchmark's for a training build, the whole pools' for a benchmark build."""

_TRAINING = (
    "contamination.training",
    "A model that trained on a benchmark query is not measured by it.",
)
_POOLS = (
    "contamination.pools",
    "Queries that the rest of the pools asks too are known: whoever trains on the pools leaves them out.",
)


def audit(
    folder: Path,
    *,
    unit_checks: UnitChecks,
    self_check: SelfCheck,
    golds: Golds,
    judge: Judge,
    try_blind: TryBlind | None = None,
    rebuild: Rebuild | None = None,
    second_judge: Judge | None = None,
    benchmark_queries: Conversations | None = None,
    pool_queries: Conversations | None = None,
    without_sources: str = "no sources at hand",
    earns_maximum: "EarnsMaximum | None" = None,
    training: Path | None = None,
    waivers: Sequence[Waiver] | None = None,
    today: datetime.date | None = None,
    seed: int = 0,
    n: int | None = 50,
    progress: Callable[[str], None] = lambda line: None,
    files: dict[str, bytes] | None = None,
    green_only: bool = False,
) -> AuditReport:
    """Audits a benchmark or training build (its report says which) and gives the verdict.

    `unit_checks`: what the type's unit finds wrong, given (clean, row). `self_check`: why a row's gold fails
    its scorer. `golds`: from where a clean row's golden values could be taken. `try_blind`: the blind
    policies. `rebuild`: how the build is made again. Without these two the gate is red. `judge`: of
    rewritten texts; `n` pairs per type are drawn with `seed`, None for all.
    `without_sources` says why queries that only the sources have are not handed in.
    `training`: a training build to hold against this benchmark. `benchmark_queries` and `earns_maximum` are
    needed for a training build. `waivers` default to the repository's, `today` to the clock's. `files` is
    filled with what goes under `audit/` beside the report: name → bytes; with `green_only` not where the
    gate is red.
    """
    build = Folder(folder)
    waive = partial(_waive, build, shipped() if waivers is None else waivers, today or datetime.date.today())
    if build.kind == "training":
        if earns_maximum is None:
            raise UserError(f"{folder} is a training build: its audit needs the reward")
        asked = benchmark_queries, without_sources
        return _training(build, rebuild, earns_maximum, *asked, waive, seed, progress, files, green_only)
    progress("comparing with the sources")
    origin = provenance.audit(build, rebuild)
    progress("reading every row")
    scan = Scan(build, self_check=self_check, unit_checks=unit_checks, golds=golds)
    progress("validating")
    suites, validated = _validated(build, scan)
    progress(f"judging pairs ({judge.name})")
    judged = paraphrase.audit(scan.found.pairs, scan.found.new_tools, judge, second_judge, n=n, seed=seed)
    progress("choosing without reading")
    blind = shortcuts.audit(build, try_blind)
    progress("looking at evidence and overlaps")
    found, supported = evidence.audit(build.rows("evidence"), taxonomy.codes())
    seen = _overlaps(scan, training, pool_queries, without_sources)
    checks = [*origin.checks, *suites, *judged.checks, *blind.checks, *declining.audit(build), *found]
    checks += [*other_files.audit(build), *seen.checks]
    checks.append(unreadable(build))
    checks = waive(allowed(checks) if is_own(build) else checks)
    files = _files(build, files, checks, green_only)
    if files is not None:
        progress("writing data docs")
        files |= _project(validated, build) | {judgments.NAME: judgments.encode(judged.judgments)}
    report = AuditReport(
        kind="benchmark",
        profile=_text(build.report.get("profile")),
        **_facts(build, origin, checks, files),
        seed=seed,
        passed=not any(one.blocks for one in checks),
        paraphrase=judged.scores,
        agreement=judged.agreement,
        redundant=judged.redundant,
        evidence=supported,
        identifiability=_identifiability(scan),
        shortcuts=blind.shortcuts,
        training_overlaps=tuple(seen.training[: contamination.LISTED]),
        pool_overlaps=tuple(seen.pools[: contamination.LISTED]),
        near_duplicates=tuple(seen.near[: contamination.LISTED]),
    )
    return _beside_earlier(build, report, files)


def audit_live(
    folder: Path,
    *,
    rebuild: Rebuild | None,
    types: "Mapping[str, WorldType]",
    waivers: Sequence[Waiver] | None = None,
    today: datetime.date | None = None,
    progress: Callable[[str], None] = lambda line: None,
    files: dict[str, bytes] | None = None,
    green_only: bool = False,
) -> AuditReport:
    """Audits a live build and gives the verdict. `types` are the worlds that may be opened, where gold and
    labels are replayed; `files`, `green_only`, `waivers` and `today` are as for `audit`.
    """
    from .live import gate as live

    build = Folder(folder)
    if build.kind != "live":
        raise UserError(f"{folder} is no live build: `rbtc audit` finds out what it is")
    made, validated, origin, _ = live.checks(build, rebuild=rebuild, types=types, progress=progress)
    checks = _waive(build, shipped() if waivers is None else waivers, today or datetime.date.today(), made)
    files = _files(build, files, checks, green_only)
    if files is not None:
        progress("writing data docs")
        files |= _project(validated, build)
    report = AuditReport(
        kind="live",
        profile=_text(build.report.get("profile")),
        **_facts(build, origin, checks, files),
        passed=not any(one.blocks for one in checks),
    )
    return _beside_earlier(build, report, files)


def _validated(build: Folder, scan: Scan) -> "tuple[list[Check], list[Validated]]":
    """The suites of Great Expectations: their checks, and what was run."""
    from .expectations import benchmark, configs, gx

    with gx.collected() as validated:
        checks = [
            *benchmark.columns_suite(build),
            *configs.configs_suite(scan),
            *benchmark.rows_suite(scan),
            *benchmark.texts_suite(scan),
            *configs.tables_suite(build),
        ]
    return checks, validated


def _waive(
    build: Folder, waivers: Sequence[Waiver], today: datetime.date, checks: list[Check]
) -> list[Check]:
    profile = _text(build.report.get("profile")) if build.kind == "benchmark" else None
    return apply(checks, tuple(waivers), kind=build.kind, profile=profile, today=today)


class _Overlaps(NamedTuple):
    """Queries that are asked elsewhere too, or twice."""

    checks: list[Check]
    training: list[Overlap]
    pools: list[Overlap]
    near: list[Overlap]


def _overlaps(
    scan: Scan, training: Path | None, pool_queries: Conversations | None, without_sources: str
) -> _Overlaps:
    queries = [contamination.query(row.id, row.messages) for row in scan.clean_rows()]
    of_training, trained = _against_training(queries, training)
    of_pools, pooled = _against_pools(queries, pool_queries, without_sources)
    near = contamination.near_duplicates(queries)
    equal = sum(pair.equal for pair in near)
    of_near = check(
        "contamination.near_duplicates",
        "Clean rows that ask nearly the same are known: they are fewer independent samples than they seem.",
        len(queries),
        [],
        reason=f"{equal} pairs with equal queries, {len(near) - equal} nearly equal ones are listed",
    )
    return _Overlaps([of_training, of_pools, of_near], trained, pooled, near)


def audit_predictions(
    path: Path, dataset: Path, *, waivers: Sequence[Waiver] = (), today: datetime.date | None = None
) -> AuditReport:
    """Audits a predictions or scores file against the dataset that was asked."""
    from .expectations import predictions

    not_live.refuse_run(path)
    not_live.refuse_dataset(dataset)
    build = Folder(dataset)
    checks = apply(
        predictions.suite(path, build),
        waivers,
        kind="predictions",
        profile=None,
        today=today or datetime.date.today(),
    )
    return AuditReport(
        package_version=__version__,
        kind="predictions",
        name=path.name,
        fingerprint=_text(build.report.get("fingerprint")),
        profile=_text(build.report.get("profile")),
        build=build.digest(),
        passed=not any(one.blocks for one in checks),
        checks=tuple(checks),
    )


def write(
    report: AuditReport, folder: Path, files: Mapping[str, bytes] = MappingProxyType({})
) -> tuple[Path, Path]:
    """Writes `audit_report.json` and `audit_report.html` into `folder`, `files` under its `audit/`.

    Files of an earlier audit that this one has not are removed, if they still are what that audit wrote.
    Returns the paths of both reports.
    """
    from .page import render

    under_audit = {audit_files.FOLDER + name: data for name, data in files.items()}
    return audit_files.replace(folder, report.json(), render(report).encode(), under_audit)


def _facts(
    build: Folder, origin: provenance.Provenance, checks: Sequence[Check], files: Mapping[str, bytes] | None
) -> dict[str, Any]:
    """The fields of a report that say what was audited, by whom, and what was found."""
    return {
        "package_version": __version__,
        "expectations_version": version("great_expectations"),
        "name": build.path.name,
        "fingerprint": _text(build.report.get("fingerprint")),
        "build": build.digest(),
        "provenance": origin.said,
        "checks": tuple(checks),
        "files": {
            audit_files.FOLDER + name: marker.sha256_of(data) for name, data in sorted((files or {}).items())
        },
    }


def _files(
    build: Folder, files: dict[str, bytes] | None, checks: Sequence[Check], green_only: bool
) -> dict[str, bytes] | None:
    """Where the files under `audit/` go, to which an earlier audit's are held; None: nobody wants them."""
    if earlier.is_there(build):
        return {} if files is None else files
    return None if green_only and any(one.blocks for one in checks) else files


def _beside_earlier(build: Folder, report: AuditReport, files: Mapping[str, bytes] | None) -> AuditReport:
    """The report, with what came of an earlier audit's if there is one."""
    if files is None or not earlier.is_there(build):
        return report
    found = earlier.earlier_check(build, report, files)
    checks, passed = (*report.checks, found), report.passed and not found.blocks
    return msgspec.structs.replace(report, checks=checks, passed=passed)


def _project(validated: "Sequence[Validated]", build: Folder) -> dict[str, bytes]:
    """The suites as a Great Expectations project with its data docs."""
    from .expectations import project

    profile, fingerprint = build.report.get("profile"), build.report.get("fingerprint")
    what = "training data" if build.kind == "training" else f"profile {profile}"
    return project.files(validated, f"Audit of {what}, fingerprint {fingerprint}")


def _training(
    build: Folder,
    rebuild: Rebuild | None,
    earns_maximum: "EarnsMaximum",
    benchmark_queries: Conversations | None,
    without_sources: str,
    waive: Callable[[list[Check]], list[Check]],
    seed: int,
    progress: Callable[[str], None],
    files: dict[str, bytes] | None,
    green_only: bool,
) -> AuditReport:
    from .expectations import gx, training

    progress("comparing with the sources")
    origin = provenance.audit(build, rebuild)
    progress("reading and validating every row")
    with gx.collected() as validated:
        checks = [*origin.checks, *training.suite(build, earns_maximum)]
    checks += other_files.audit(build)
    found: list[Overlap] = []
    if benchmark_queries is None:
        why = f"no benchmark at hand: name one with --benchmark or --sources ({without_sources})"
        checks.append(not_run(*_TRAINING, why))
    else:
        progress("looking for benchmark queries")
        index = Index(contamination.query(row, messages) for row, messages in benchmark_queries())
        found, looked_at = contamination.overlaps(index, contamination.training_queries(build))
        checks.append(_overlap_check(_TRAINING, found, looked_at if index.size else 0))
    checks.append(unreadable(build))
    checks = waive(checks)
    files = _files(build, files, checks, green_only)
    if files is not None:
        progress("writing data docs")
        files |= _project(validated, build)
    report = AuditReport(
        kind="training",
        **_facts(build, origin, checks, files),
        seed=seed,
        passed=not any(one.blocks for one in checks),
        training_overlaps=tuple(found[: contamination.LISTED]),
    )
    return _beside_earlier(build, report, files)


def _against_training(queries: Sequence[Query], training: Path | None) -> tuple[Check, list[Overlap]]:
    if training is None:
        return not_run(
            *_TRAINING,
            "no training build was named with --training",
            may_be_left_out="training data come later; their own gate checks it",
        ), []
    found, looked_at = contamination.overlaps(
        Index(queries), contamination.training_queries(Folder(training))
    )
    return _overlap_check(_TRAINING, found, looked_at), found


def _overlap_check(what: tuple[str, str], found: Sequence[Overlap], looked_at: int) -> Check:
    bad = [
        Failure(o.right, f"{'equals' if o.equal else f'shares {numbers.percent(o.shared, 0)} with'} {o.left}")
        for o in found
        if o.contaminated
    ]
    return check(*what, looked_at, bad, reason=f"{len(found) - len(bad)} more share less" if found else "")


def _against_pools(
    queries: Sequence[Query], pools: Conversations | None, why_not: str
) -> tuple[Check, list[Overlap]]:
    if pools is None:
        return not_run(
            *_POOLS,
            why_not,
            may_be_left_out="overlaps with the pools are listed only",
        ), []
    mine = {asked.row for asked in queries}
    others = (contamination.query(row, messages) for row, messages in pools() if row not in mine)
    found, looked_at = contamination.overlaps(Index(queries), others)
    contaminated = sum(overlap.contaminated for overlap in found)
    said = (
        f"{contaminated} of {looked_at} pool rows ask what a clean row asks, "
        f"{len(found) - contaminated} share less"
    )
    return check(*_POOLS, looked_at, [], reason=said), found


def _identifiability(scan: Scan) -> tuple[Identifiability, ...]:
    """Per reward type, the rows whose gold tool is the one best offer, and whether the query asks for it."""
    rows: dict[str, list[int]] = {code: [0, 0, 0] for code in codes_of(OFFERS)}
    stated_in = set(codes_of(states_preference))
    columns = (
        scan.found.rows["config"],
        scan.found.rows["gold_is_the_unique_best"],
        scan.found.rows["preference_as_its_type_says"],
    )
    for config, unique, preference in zip(*columns, strict=True):
        if config in rows:
            rows[config][0] += 1
            rows[config][1] += unique == ""
            rows[config][2] += preference == "" and config in stated_in
    note = "no preference is stated: the annotations alone decide"
    return tuple(
        Identifiability(
            type_code=code,
            rows=number,
            unique_best=unique,
            preference_stated=stated,
            note="" if code in stated_in else note,
        )
        for code, (number, unique, stated) in rows.items()
        if number
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
