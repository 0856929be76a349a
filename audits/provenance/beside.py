"""What lies beside the data and can be derived again: a release's manifest and cards, an earlier audit."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc import __version__
from robustbench_tc.audits import audit_files
from robustbench_tc.errors import UserError
from robustbench_tc.io import manifest, marker
from robustbench_tc.io.resolve import read_yanked, yanked_json
from robustbench_tc.live_types import config_of
from robustbench_tc.schema import dumps

from ..checks import verdict
from ..folder import Folder
from ..page import render
from ..report import AuditReport, Check, Failure, RedundantScore, TypeScore, check, not_run
from .files import AUDIT_REPORT, OF_AN_AUDIT, load
from .rebuilt import CHECKS, first_difference, short

SIGNATURE_BYTES, YANKED_BYTES = 64, 2**16
"""Of an ed25519 signature, and what a list of withdrawn versions may have."""

_FORM = (
    "provenance.beside",
    "What a manifest cannot name has the form and the size of a signature, or of withdrawn versions.",
)

_MANIFEST = (
    "provenance.manifest",
    "Who reads only the manifest reads what the build report, the audit and the files say.",
)

Cards = Callable[[Path], Mapping[str, bytes]]
"""The files of a release that `rbtc release` renders, made again from the release itself."""

_AUDIT = (
    "provenance.audit_report",
    "An earlier audit's report is as the audit wrote it, about these files, and its page shows it.",
)


def cards_check(folder: Folder, cards: Cards | None) -> Check:
    """The cards of a release, byte for byte."""
    what = ("provenance.card", CHECKS["provenance.card"])
    if cards is None:
        return check(*what, 1, [Failure("README.md", "nobody said how a release's cards are rendered")])
    try:
        wanted = cards(folder.path)
    except Exception as error:  # from a manifest of any shape
        said = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {str(error)[:160]}"
        return check(*what, 1, [Failure("manifest.json", f"its cards cannot be rendered again: {said}")])
    failures = [
        Failure(name, first_difference(mine, data))
        for name, data in wanted.items()
        if (mine := folder.data(name)) != data
    ]
    made_by = load(folder, "manifest.json").get("package_version")
    if failures and made_by != __version__:
        said = f"rendered by robustbench-tc {made_by}, {__version__} is installed: audit it with the former"
        failures.append(Failure("manifest.json", said))
    return check(*what, len(wanted), failures)


def audit_report_check(folder: Folder) -> Check:
    """Whether the report is one that an audit of these files wrote. What it found is not looked at here: this
    audit finds it again, and nothing reads the earlier one."""
    data = folder.data(AUDIT_REPORT)
    failures: list[Failure] = []
    try:
        found = msgspec.json.decode(data, type=AuditReport)
    except (ValueError, RecursionError) as error:
        return check(*_AUDIT, 1, [Failure(AUDIT_REPORT, f"it cannot be read: {str(error)[:160]}")])
    same_package = found.package_version == __version__
    seal = str(msgspec.json.decode(data).get("own_sha256") or "-")
    if not (found.json() == data if same_package else marker.is_sealed(data, seal)):
        failures.append(Failure(AUDIT_REPORT, "its text is not the one that an audit wrote (own_sha256)"))
    about = {name: folder.report.get(name) for name in ("profile", "fingerprint")}
    wanted = {"kind": folder.kind, "build": folder.digest(), **about}
    failures += [
        Failure(f"{AUDIT_REPORT}: {name}", f"{str(getattr(found, name))[:80]} instead of {str(value)[:80]}")
        for name, value in wanted.items()
        if getattr(found, name) != value
    ]
    ids = [one.id for one in found.checks]
    if not ids or len(set(ids)) != len(ids) or found.passed != (not found.blocking):
        failures.append(Failure(f"{AUDIT_REPORT}: passed", "the verdict is not that of its checks"))
    if same_package and folder.data(OF_AN_AUDIT[1]) != render(found).encode():
        failures.append(Failure(OF_AN_AUDIT[1], f"it is not the page of {AUDIT_REPORT}"))
    return check(*_AUDIT, len(OF_AN_AUDIT), failures)


def form_check(folder: Folder) -> Check:
    """Files of a release that its manifest cannot name: what they may hold, and how much."""
    named = [name for name in manifest.BESIDE if name in folder.there]
    failures = [Failure(name, what) for name in named if (what := verdict(_has_its_form, folder, name))]
    return check(*_FORM, len(named), failures)


def _has_its_form(folder: Folder, name: str) -> None:
    """What a file beside the manifest may hold."""
    size = folder.sha256(name) and (folder.path / name).stat().st_size
    if name == manifest.SIGNATURE:
        assert size == SIGNATURE_BYTES, f"it is no signature of {SIGNATURE_BYTES} bytes"
        return
    assert size and size <= YANKED_BYTES, f"it has no list of at most {YANKED_BYTES:,} bytes"
    try:
        listed = read_yanked(folder.path / name)
        days = [date.fromisoformat(one.date) for one in listed]
        versions = {manifest.check_version(one) for yank in listed for one in (yank.version, yank.use) if one}
    except (UserError, ValueError) as error:
        raise AssertionError(str(error).replace(f"{folder.path}/", "")[:160]) from None
    reasons = all(one.reason.strip() and one.reason.isprintable() for one in listed)
    assert days and versions and reasons, "it withdraws nothing, or gives no reason in one line"
    same = yanked_json(listed) == folder.data(name)
    assert same, "its text is not the one that `rbtc data amend --withdraw` writes"


def manifest_check(folder: Folder) -> Check:
    """Every field that can be derived again. When it was made, by which package, and where it is published
    stand nowhere else: there a signature or the Hub's commit is the witness."""
    data = folder.data(manifest.NAME)
    try:
        found = msgspec.json.decode(data, type=manifest.Manifest)
    except (ValueError, RecursionError) as error:
        return check(*_MANIFEST, 1, [Failure(manifest.NAME, f"it cannot be read: {str(error)[:120]}")])
    said, wanted = msgspec.to_builtins(found), _derived(folder)
    failures = [
        Failure(
            f"{manifest.NAME}: {name}",
            f"{short(msgspec.to_builtins(getattr(found, name)))} instead of {short(value)}",
        )
        for name, value in wanted.items()
        if dumps(said[name]) != dumps(value)
    ]
    if not failures and found.json() != data:
        failures.append(Failure(manifest.NAME, "its text is not the one that `rbtc release` writes"))
    return check(*_MANIFEST, len(wanted), failures)


def _derived(folder: Folder) -> dict[str, Any]:
    report, audit = folder.report, load(folder, AUDIT_REPORT)
    checks = [one for one in audit.get("checks") or () if isinstance(one, dict)]
    listed = load(folder, manifest.NAME).get("files")
    named = config_of if folder.kind == "live" else str
    entries = {
        name: sha256 and {"bytes": (folder.path / name).stat().st_size, "sha256": sha256}
        for name in (listed if isinstance(listed, dict) else ())
        for sha256 in [folder.sha256(name)]
    }
    return {
        "kind": report.get("kind"),
        "licence": "apache-2.0",
        "data_sha256": folder.digest(),
        "seed": report.get("seed"),
        "profile": report.get("profile"),
        "rows": {named(code): _total(counts) for code, counts in folder.report_field("rows").items()},
        "sources": report.get("pins") or report.get("sources") or [],
        "generators": report.get("generators") or {},
        "gate": {
            "passed": True,
            "report": AUDIT_REPORT,
            "checks": len(checks),
            "waived": [str(one.get("id")) for one in checks if one.get("status") == "waived"],
        },
        "files": entries,
    }


def _total(counts: Any) -> int:
    """Rows of a config: by source in the benchmark's report, by split in that of the training data."""
    plain = counts if isinstance(counts, dict) else {}
    chosen = [plain.get("train"), plain.get("validation")] if "train" in plain else list(plain.values())
    return sum(number for number in chosen if isinstance(number, int))


# --- against this audit --------------------------------------------------------------------------------

_EARLIER = (
    "audit.earlier",
    "An earlier audit's report, and all that it wrote under `audit/`, are what an audit gives now.",
)

_AT_HAND = (
    *("provenance.", "contamination.", "gate.", "audit."),
    *("paraphrase.agreement", "paraphrase.stored_judgments", "secrets.files"),
)
"""Checks that depend on more than the rows: on sources, on a second judge, on what lies beside the rows."""

_FIGURES = ("evidence", "identifiability", "shortcuts", "near_duplicates")
"""Figures of a report that follow from the rows and the judgments that are replayed."""


def was_audited(folder: Folder) -> bool:
    """Whether an earlier audit left a report."""
    return folder.there.get(AUDIT_REPORT) == "file"


def earlier_check(folder: Folder, report: AuditReport, files: Mapping[str, bytes]) -> Check:
    """The report in the folder against the `report` of now, and its files against `files`."""
    try:
        earlier = msgspec.json.decode(folder.data(AUDIT_REPORT), type=AuditReport)
    except (ValueError, RecursionError):
        return check(*_EARLIER, 1, [Failure(AUDIT_REPORT, "it cannot be read")])
    for writer, mine, now in (
        ("robustbench-tc", earlier.package_version, __version__),
        ("Great Expectations", earlier.expectations_version, report.expectations_version),
    ):
        if mine != now:
            why = f"{writer} {mine} wrote it, {now} is installed"
            return not_run(*_EARLIER, why, "another version writes another report")
    wanted = {audit_files.FOLDER + name: marker.sha256_of(content) for name, content in files.items()}
    failures = list(_other_findings(earlier, report))
    if earlier.files:  # else it kept none
        failures += [
            Failure(path, "it is not what an audit of these files writes")
            for path in dict.fromkeys((*wanted, *earlier.files))
            if earlier.files.get(path) != wanted.get(path)
        ]
    return check(*_EARLIER, len(report.checks) + len(wanted), failures)


def _other_findings(earlier: AuditReport, report: AuditReport) -> Iterator[Failure]:
    ours, theirs = _verdicts(report), _verdicts(earlier)
    for id in dict.fromkeys((*ours, *theirs)):
        if ours.get(id) != theirs.get(id):
            yield Failure(f"{AUDIT_REPORT}: {id}", "the audit finds something else now")
    figures = {name: (getattr(earlier, name), getattr(report, name)) for name in _FIGURES}
    figures["paraphrase"] = _whole_scores(earlier), _whole_scores(report)
    figures["redundant"] = _answers(earlier), _answers(report)
    for name, (before, now) in figures.items():
        if dumps(msgspec.to_builtins(before)) != dumps(msgspec.to_builtins(now)):
            yield Failure(f"{AUDIT_REPORT}: {name}", "the audit counts otherwise now")


def _whole_scores(report: AuditReport) -> list[TypeScore]:
    """Of all pairs, whatever the judge is called who replays them; those of a draw are a second judge's."""
    return [msgspec.structs.replace(one, judge="") for one in report.paraphrase if one.scope == "all"]


def _answers(report: AuditReport) -> list[RedundantScore]:
    """About new tools, whatever the judge is called."""
    found = report.redundant
    return [] if found is None else [msgspec.structs.replace(found, judge=None)]


def _verdicts(report: AuditReport) -> dict[str, Any]:
    """By check, what it found; a waived one failed."""
    return {
        one.id: (one.status.replace("waived", "failed"), one.protects, one.applied, one.failed, one.failures)
        for one in report.checks
        if not one.id.startswith(_AT_HAND)
    }
