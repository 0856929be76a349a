"""The audit as one HTML file that needs no network: no script, no font, no image from elsewhere."""

import re
from importlib.resources import files

import jinja2
import markupsafe

from .report import AuditReport, Check

GROUPS = {
    "files": "Files",
    "columns": "Columns",
    "configs": "Configs",
    "rows": "Rows",
    "texts": "Rewritten texts",
    "tables": "Tables",
    "paraphrase": "Paraphrase audit",
    "evidence": "Evidence",
    "provenance": "Licence and provenance",
    "contamination": "Contamination",
    "gate": "Waivers",
}
"""First part of a check's id → heading, in the order of the page."""


def render(report: AuditReport) -> str:
    """The page. Everything that rows or judges wrote is escaped."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": _number, "prose": _prose}
    template = files("robustbench_tc.audits").joinpath("page.html.j2").read_text("utf-8")
    return environment.from_string(template).render(report=report, groups=grouped(report))


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


def _number(value: float | None, digits: int = 2) -> str:
    return "n/a" if value is None else f"{value:.{digits}f}"
