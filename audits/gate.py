"""The gate: one verdict from everything that must hold. No green gate, no release.

A check that did not run fails the gate like a failed one, unless the check itself says where it is written
that it may be left out (`Check.may_be_left_out`).
"""

import datetime
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from robustbench_tc import __version__, taxonomy
from robustbench_tc.audits import audit_files
from robustbench_tc.builders.rebuild import sources_at_hand
from robustbench_tc.compute import loop
from robustbench_tc.errors import UserError
from robustbench_tc.eval.inputs import is_dataset
from robustbench_tc.eval.record import refuse_live
from robustbench_tc.io import marker, numbers
from robustbench_tc.option import Tell, silent

from . import contamination, declining, evidence, judgments, paraphrase, provenance, shortcuts
from .again import rebuild_of, world_types
from .contamination import Conversations, Index, Query
from .folder import Folder, unreadable
from .hygiene import files as other_files
from .invariants.base import OFFERS, codes_of, states_preference
from .judge import Judge
from .judgments import make_judges, second_opinion
from .provenance.beside import earlier_check, was_audited
from .report import (
    NOTHING_THERE,
    AuditReport,
    Check,
    Failure,
    Identifiability,
    Overlap,
    check,
    not_run,
)
from .scan import Scan
from .waivers import apply, shipped

if TYPE_CHECKING:
    from .expectations.gx import Validated

JUDGMENTS_STORE = Path(".rbtc/judgments.jsonl")

_TRAINING = (
    "contamination.training",
    "A model that trained on a benchmark query is not measured by it.",
)
_POOLS = (
    "contamination.pools",
    "Queries that the rest of the pools asks too are known: whoever trains on the pools leaves them out.",
)


NAMED_ELSEWHERE = (
    "own tools and cases: a type's module says what needs no reading in the benchmark's samples; the report "
    "lists what needs none here"
)


class _Found(NamedTuple):
    """What is found of a build of one kind."""

    checks: list[Check]
    validated: "list[Validated]"
    """The suites of Great Expectations that were run."""
    figures: Mapping[str, Any] = MappingProxyType({})
    """Fields of the report."""
    files: Mapping[str, bytes] = MappingProxyType({})
    """What goes under `audit/` beside the suites."""


def audit(
    folder: Path,
    *,
    judge: str | Sequence[Judge] = "recorded",
    second_judge: str | None = None,
    n: int | None = 50,
    benchmark: Path | None = None,
    sources: Path | None = None,
    rlla: Path | None = None,
    worlds: Sequence[str] = (),
    world_python: str | None = None,
    seed: int = 0,
    store: Path = JUDGMENTS_STORE,
    max_requests: int | None = None,
    progress: Tell = silent,
    files: dict[str, bytes] | None = None,
    green_only: bool = False,
) -> AuditReport:
    """Audits a build (its report says of which kind) and gives the verdict; nothing is written.

    `judge`: of rewritten texts, as `judges.make_judges` reads it. `second_judge`: of `n` pairs a type, drawn
    with `seed` (None: all). `benchmark`: for a training build, the benchmark that it must not hold.
    `sources`: the upstream files; by default RBTC_SOURCES or the fetched ones, and without any the checks
    that need them say so. `rlla`, `worlds`, `world_python`: as for `again.rebuild_of`.
    `files` is filled with what goes under `audit/` beside the report: name → bytes; with `green_only` not
    where the gate is red.

    Raises UserError for a folder that is not a build, and for a judge or sources that cannot be used.
    """
    build = Folder(folder)
    pools = build.kind == "benchmark"
    whole, why_not = (
        (None, "") if build.kind == "live" else sources_at_hand(sources, "full" if pools else "paper")
    )
    judges: Sequence[Judge] = ()
    if pools:
        judges = make_judges(judge, store, max_requests, folder) if isinstance(judge, str) else judge
    second = second_opinion(second_judge, store, max_requests) if pools and second_judge else None
    rebuild = rebuild_of(folder, sources, rlla, worlds, world_python)
    progress("comparing with the sources")
    origin = provenance.audit(build, rebuild)
    if build.kind == "live":
        found = _live(build, worlds, world_python, progress)
    elif build.kind == "training":
        found = _training(build, benchmark, whole, why_not, progress)
    else:
        found = _benchmark(build, judges, second, n, seed, whole, why_not, progress)
    checks = [*origin.checks, *found.checks, *other_files.audit(build), unreadable(build)]
    if pools and build.is_own:
        checks = [_allowed(one) for one in checks]
    profile = _text(build.report.get("profile")) if build.kind != "training" else None
    checks = apply(
        checks,
        shipped(),
        kind=build.kind,
        profile=profile if pools else None,
        today=datetime.date.today(),
    )
    passed = not any(one.blocks for one in checks)
    if files is None and was_audited(build):
        files = {}  # an earlier audit's are held to them
    if files is not None and (passed or not green_only or was_audited(build)):
        progress("writing data docs")
        from .expectations import project

        what = "training data" if build.kind == "training" else f"profile {build.report.get('profile')}"
        title = f"Audit of {what}, fingerprint {build.report.get('fingerprint')}"
        files |= {**project.files(found.validated, title), **found.files}
    report = AuditReport(
        package_version=__version__,
        expectations_version=version("great_expectations"),
        kind=build.kind,
        name=build.path.name,
        fingerprint=_text(build.report.get("fingerprint")),
        profile=profile,
        build=build.digest(),
        seed=0 if build.kind == "live" else seed,
        provenance=origin.said,
        passed=passed,
        checks=tuple(checks),
        files={
            audit_files.FOLDER + name: marker.sha256_of(data) for name, data in sorted((files or {}).items())
        },
        **found.figures,
    )
    if files is None or not was_audited(build):
        return report
    last = earlier_check(build, report, files)
    return msgspec.structs.replace(report, checks=(*report.checks, last), passed=passed and not last.blocks)


def _benchmark(
    build: Folder,
    judges: Sequence[Judge],
    second: Judge | None,
    n: int | None,
    seed: int,
    whole: Path | None,
    why_not: str,
    progress: Tell,
) -> _Found:
    """Rows, texts, judgments, blind baselines, evidence, overlaps. `whole`: the sources, or `why_not`."""
    from .expectations import benchmark, gx

    progress("reading every row")
    scan = Scan(build)
    progress("validating")
    with gx.collected() as validated:
        suites = [
            *benchmark.columns_suite(build),
            *benchmark.configs_suite(scan),
            *benchmark.rows_suite(scan),
            *benchmark.texts_suite(scan),
        ]
    progress(f"judging pairs ({paraphrase.named(judges)})")
    judged = paraphrase.audit(scan.found.pairs, scan.found.new_tools, *judges, second=second, n=n, seed=seed)
    progress("choosing without reading")
    blind, named = shortcuts.audit(build)
    progress("looking at evidence and overlaps")
    found, supported = evidence.audit(build.rows("evidence"), taxonomy.codes())
    queries = [contamination.query(row.id, row.messages) for row in scan.clean_rows()]
    of_pools, pooled = _against_pools(queries, whole, why_not)
    near = contamination.near_duplicates(queries)
    checks = [*suites, *judged.checks, named, *declining.audit(build), *found]
    figures = {
        "paraphrase": judged.scores,
        "agreement": judged.agreement,
        "redundant": judged.redundant,
        "evidence": supported,
        "identifiability": _identifiability(scan),
        "shortcuts": blind,
        "pool_overlaps": tuple(pooled[: contamination.LISTED]),
        "near_duplicates": tuple(near[: contamination.LISTED]),
    }
    files = {judgments.NAME: judgments.encode(judged.judgments)}
    return _Found([*checks, of_pools], validated, figures, files)


def _training(
    build: Folder, benchmark: Path | None, whole: Path | None, why_not: str, progress: Tell
) -> _Found:
    """Rows, and whether they ask what the benchmark asks: the folder, else the 199 of the sources."""
    from .expectations import gx, training

    progress("reading and validating every row")
    with gx.collected() as validated:
        checks = training.suite(build)
    asked: Conversations | None = None
    if benchmark is not None:
        asked = contamination.conversations(benchmark)
    elif whole is not None:
        asked = contamination.conversations_of_sources(whole.resolve(), "paper")
    if asked is None:
        why = f"no benchmark at hand: name one with --benchmark or --sources ({why_not})"
        return _Found([*checks, not_run(*_TRAINING, why)], validated)
    progress("looking for benchmark queries")
    index = Index(contamination.query(row, messages) for row, messages in asked)
    found, looked_at = contamination.overlaps(index, contamination.training_queries(build))
    bad = [
        Failure(o.right, f"{'equals' if o.equal else f'shares {numbers.percent(o.shared, 0)} with'} {o.left}")
        for o in found
        if o.contaminated
    ]
    others = f"{len(found) - len(bad)} more share less" if found else ""
    checks.append(check(*_TRAINING, looked_at if index.size else 0, bad, reason=others))
    return _Found(checks, validated, {"training_overlaps": tuple(found[: contamination.LISTED])})


def _live(build: Folder, worlds: Sequence[str], world_python: str | None, progress: Tell) -> _Found:
    """Rows by themselves, in pairs, and gold and labels replayed in their worlds."""
    from .expectations import gx, live
    from .live.scan import scan

    progress("reading every row and replaying gold")
    found = loop.run(scan(build, world_types(build, worlds, world_python)))
    progress("validating")
    with gx.collected() as validated:
        checks = live.suites(build, found)
    return _Found(checks, validated)


def audit_predictions(path: Path, dataset: Path) -> AuditReport:
    """Audits a predictions or scores file against the dataset that was asked."""
    from .expectations import predictions

    refuse_live(path)
    if is_dataset(dataset):
        raise UserError(f"{dataset} is a live dataset: {path} holds no predictions of its rows")
    build = Folder(dataset)
    checks = predictions.suite(path, build)
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


def _against_pools(queries: Sequence[Query], whole: Path | None, why_not: str) -> tuple[Check, list[Overlap]]:
    if whole is None:
        return not_run(*_POOLS, why_not, may_be_left_out="overlaps with the pools are listed only"), []
    mine = {asked.row for asked in queries}
    pools = contamination.conversations_of_sources(whole.resolve(), "full")
    others = (contamination.query(row, messages) for row, messages in pools if row not in mine)
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


def _allowed(one: Check) -> Check:
    """A check of a build of own tools, which may be left out where it found nothing to look at.

    A rebuild that failed is no such thing. Keys and passwords are looked for as everywhere; addresses and
    telephone numbers in requests are the maker's business.
    """
    if one.id == "shortcuts.named":
        return msgspec.structs.replace(
            one, status="not_run", failed=0, failures=(), may_be_left_out=NAMED_ELSEWHERE
        )
    if one.status == "not_run" and one.may_be_left_out is None and not one.id.startswith("provenance."):
        return msgspec.structs.replace(one, may_be_left_out=NOTHING_THERE)
    return one


def _text(value: object) -> str | None:
    return None if value is None else str(value)
