"""The audit as one HTML file that needs no network: no script, no font, no image from elsewhere."""

import re

import markupsafe

from robustbench_tc.io import marker, templates

from .report import AuditReport, Check

GROUPS = {
    "provenance": "Licence and provenance",
    "files": "Files",
    "columns": "Columns",
    "configs": "Configs",
    "rows": "Rows",
    "hygiene": "Hygiene of all texts and tools",
    "texts": "Rewritten texts",
    "replay": "Replayed in the worlds",
    "paraphrase": "Paraphrase audit",
    "secrets": "Secrets in files",
    "shortcuts": "Request-blind baselines",
    "evidence": "Evidence",
    "contamination": "Contamination",
    "gate": "Waivers",
}
"""First part of a check's id → heading, in the order of the page."""


def render(report: AuditReport) -> str:
    """The page. Everything that rows or judges wrote is escaped."""
    environment = templates.environment("robustbench_tc.audits")
    environment.filters["prose"] = _prose
    page = environment.get_template("page.html.j2").render(report=report, groups=grouped(report))
    return marker.sealed_page(page)


def grouped(report: AuditReport) -> dict[str, list[Check]]:
    """Checks under their headings; what blocks comes first in each."""
    found: dict[str, list[Check]] = {}
    for group, heading in GROUPS.items():
        checks = [check for check in report.checks if check.id.partition(".")[0] == group]
        if checks:
            found[heading] = sorted(checks, key=lambda check: not check.blocks)
    return found


def _prose(text: str) -> markupsafe.Markup:
    """Escaped text in which `code` is code."""
    return markupsafe.Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(text))))
