"""The gate: one verdict from everything that must hold. No green gate, no release.

A check that did not run fails the gate like a failed one, unless the check itself says where it is written
that it may be left out (`Check.may_be_left_out`). What the gate needs of other rooms is handed in.
"""

import datetime
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from robustbench_tc import __version__, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.files import atomic_file
from robustbench_tc.schema import Message

from . import contamination, evidence, paraphrase, provenance
from .contamination import Index, Query
from .folder import Folder, unreadable
from .invariants.base import REWARD
from .invariants.texts import STATED
from .judge import Judge
from .report import AuditReport, Check, Failure, Identifiability, Overlap, check, not_run
from .rows import SelfCheck, UnitChecks
from .scan import Scan
from .waivers import Waiver, apply, shipped

if TYPE_CHECKING:
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
    judge: Judge,
    second_judge: Judge | None = None,
    benchmark_queries: Conversations | None = None,
    pool_queries: Conversations | None = None,
    earns_maximum: "EarnsMaximum | None" = None,
    training: Path | None = None,
    waivers: Sequence[Waiver] | None = None,
    today: datetime.date | None = None,
    seed: int = 0,
    n: int | None = 50,
    progress: Callable[[str], None] = lambda line: None,
) -> AuditReport:
    """Audits a benchmark or training build (its report says which) and gives the verdict.

    `unit_checks`: what the type's unit finds wrong, given (clean, row). `self_check`: why a row's gold fails
    its scorer. `judge`: of rewritten texts; `n` pairs per type are drawn with `seed`, None for all.
    `training`: a training build to hold against this benchmark. `benchmark_queries` and `earns_maximum` are
    needed for a training build. `waivers` default to the repository's, `today` to the clock's.
    """
    build = Folder(folder)
    today = today or datetime.date.today()
    chosen = shipped() if waivers is None else tuple(waivers)
    if build.kind == "training":
        if earns_maximum is None:
            raise UserError(f"{folder} is a training build: its audit needs the reward")
        return _training(build, earns_maximum, benchmark_queries, chosen, today, seed, progress)
    progress("reading every row")
    scan = Scan(build, self_check=self_check, unit_checks=unit_checks)
    from .expectations import benchmark, configs

    progress("validating")
    checks = [
        *benchmark.columns_suite(build),
        *configs.configs_suite(scan),
        *benchmark.rows_suite(scan),
        *benchmark.texts_suite(scan),
        *configs.tables_suite(build),
    ]
    progress(f"judging pairs ({judge.name})")
    judged = paraphrase.audit(scan.found.pairs, scan.found.new_tools, judge, second_judge, n=n, seed=seed)
    checks += judged.checks
    progress("looking at evidence and overlaps")
    found, supported = evidence.audit(build.rows("evidence"), taxonomy.codes())
    checks += found
    checks += provenance.audit(build)
    queries = [contamination.query(row.id, row.messages) for row in scan.clean_rows()]
    training_check, training_overlaps = _against_training(queries, training)
    pool_check, pool_overlaps = _against_pools(queries, pool_queries)
    near = contamination.near_duplicates(queries)
    checks += [training_check, pool_check, _near_check(queries, near), unreadable(build)]
    checks = apply(checks, chosen, kind="benchmark", profile=_text(build.report.get("profile")), today=today)
    return AuditReport(
        package_version=__version__,
        kind="benchmark",
        name=build.path.name,
        dataset_version=_text(build.report.get("dataset_version")),
        profile=_text(build.report.get("profile")),
        build=build.digest(),
        seed=seed,
        passed=not any(one.blocks for one in checks),
        checks=tuple(checks),
        paraphrase=judged.scores,
        agreement=judged.agreement,
        redundant=judged.redundant,
        evidence=supported,
        identifiability=_identifiability(scan),
        training_overlaps=tuple(training_overlaps[: contamination.LISTED]),
        pool_overlaps=tuple(pool_overlaps[: contamination.LISTED]),
        near_duplicates=tuple(near[: contamination.LISTED]),
    )


def audit_predictions(
    path: Path, dataset: Path, *, waivers: Sequence[Waiver] = (), today: datetime.date | None = None
) -> AuditReport:
    """Audits a predictions or scores file against the dataset that was asked."""
    from .expectations import predictions

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
        dataset_version=_text(build.report.get("dataset_version")),
        profile=_text(build.report.get("profile")),
        build=build.digest(),
        passed=not any(one.blocks for one in checks),
        checks=tuple(checks),
    )


def write(report: AuditReport, folder: Path) -> tuple[Path, Path]:
    """Writes `audit_report.json` and `audit_report.html` into `folder`; returns both paths."""
    from .page import render

    paths = folder / "audit_report.json", folder / "audit_report.html"
    for path, data in zip(paths, (report.json(), render(report).encode()), strict=True):
        with atomic_file(path) as beside:
            beside.write_bytes(data)
    return paths


def _training(
    build: Folder,
    earns_maximum: "EarnsMaximum",
    benchmark_queries: Conversations | None,
    waivers: Sequence[Waiver],
    today: datetime.date,
    seed: int,
    progress: Callable[[str], None],
) -> AuditReport:
    from .expectations import training

    progress("reading and validating every row")
    checks = training.suite(build, earns_maximum)
    checks += provenance.audit(build)
    found: list[Overlap] = []
    if benchmark_queries is None:
        checks.append(not_run(*_TRAINING, "no benchmark at hand: name one with --benchmark or --sources"))
    else:
        progress("looking for benchmark queries")
        index = Index(contamination.query(row, messages) for row, messages in benchmark_queries())
        found, looked_at = contamination.overlaps(index, contamination.training_queries(build))
        checks.append(_overlap_check(_TRAINING, found, looked_at if index.size else 0))
    checks.append(unreadable(build))
    checks = apply(checks, waivers, kind="training", profile=None, today=today)
    return AuditReport(
        package_version=__version__,
        kind="training",
        name=build.path.name,
        dataset_version=_text(build.report.get("dataset_version")),
        build=build.digest(),
        seed=seed,
        passed=not any(one.blocks for one in checks),
        checks=tuple(checks),
        training_overlaps=tuple(found[: contamination.LISTED]),
    )


def _against_training(queries: Sequence[Query], training: Path | None) -> tuple[Check, list[Overlap]]:
    if training is None:
        return not_run(
            *_TRAINING,
            "no training build was named with --training",
            may_be_left_out="issue 4, facts: training data come later; their own gate checks it",
        ), []
    found, looked_at = contamination.overlaps(
        Index(queries), contamination.training_queries(Folder(training))
    )
    return _overlap_check(_TRAINING, found, looked_at), found


def _overlap_check(what: tuple[str, str], found: Sequence[Overlap], looked_at: int) -> Check:
    bad = [
        Failure(o.right, f"{'equals' if o.equal else f'shares {o.shared:.0%} with'} {o.left}")
        for o in found
        if o.contaminated
    ]
    return check(*what, looked_at, bad, reason=f"{len(found) - len(bad)} more share less" if found else "")


def _against_pools(queries: Sequence[Query], pools: Conversations | None) -> tuple[Check, list[Overlap]]:
    if pools is None:
        return not_run(
            *_POOLS,
            "no sources at hand",
            may_be_left_out="issue 4, scope 3: overlaps with the pools are listed only",
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


def _near_check(queries: Sequence[Query], near: Sequence[Overlap]) -> Check:
    equal = sum(pair.equal for pair in near)
    return check(
        "contamination.near_duplicates",
        "Clean rows that ask nearly the same are known: they are fewer independent samples than they seem.",
        len(queries),
        [],
        reason=f"{equal} pairs with equal queries, {len(near) - equal} nearly equal ones are listed",
    )


def _identifiability(scan: Scan) -> tuple[Identifiability, ...]:
    """Per reward type, the rows whose gold tool is the one best offer, and whether the query asks for it."""
    rows: dict[str, list[int]] = {code: [0, 0, 0] for code in REWARD}
    columns = (
        scan.found.rows["config"],
        scan.found.rows["gold_is_the_unique_best"],
        scan.found.rows["preference_as_its_type_says"],
    )
    for config, unique, preference in zip(*columns, strict=True):
        if config in rows:
            rows[config][0] += 1
            rows[config][1] += unique == ""
            rows[config][2] += preference == "" and config in STATED
    note = "no preference is stated: the annotations alone decide"
    return tuple(
        Identifiability(
            type_code=code,
            rows=number,
            unique_best=unique,
            preference_stated=stated,
            note="" if code in STATED else note,
        )
        for code, (number, unique, stated) in rows.items()
        if number
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
