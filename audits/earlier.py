"""An earlier audit is held against this one: the same files give the same report, page and `audit/`.

What depends on what is at hand (sources, another judge, training data, waivers of the day) is left out; the
page is the report's (`provenance.audit_report`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from robustbench_tc import __version__
from robustbench_tc.audits import audit_files
from robustbench_tc.io import marker
from robustbench_tc.schema import dumps

from .folder import Folder
from .provenance.files import AUDIT_REPORT
from .report import AuditReport, Check, Failure, RedundantScore, TypeScore, check, not_run

_WHAT = (
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


def is_there(folder: Folder) -> bool:
    """Whether an earlier audit left a report."""
    return folder.there.get(AUDIT_REPORT) == "file"


def earlier_check(folder: Folder, report: AuditReport, files: Mapping[str, bytes]) -> Check:
    """The report in the folder against the `report` of now, and its files against `files`."""
    try:
        earlier = msgspec.json.decode(folder.data(AUDIT_REPORT), type=AuditReport)
    except (ValueError, RecursionError):
        return check(*_WHAT, 1, [Failure(AUDIT_REPORT, "it cannot be read")])
    for writer, mine, now in (
        ("robustbench-tc", earlier.package_version, __version__),
        ("Great Expectations", earlier.expectations_version, report.expectations_version),
    ):
        if mine != now:
            why = f"{writer} {mine} wrote it, {now} is installed"
            return not_run(*_WHAT, why, "another version writes another report")
    wanted = {audit_files.FOLDER + name: marker.sha256_of(content) for name, content in files.items()}
    failures = list(_other_findings(earlier, report))
    if earlier.files:  # else it kept none
        failures += [
            Failure(path, "it is not what an audit of these files writes")
            for path in dict.fromkeys((*wanted, *earlier.files))
            if earlier.files.get(path) != wanted.get(path)
        ]
    return check(*_WHAT, len(report.checks) + len(wanted), failures)


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
