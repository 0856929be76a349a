"""A report as one HTML page without a script or an outside request, and as Markdown, CSV and JSON."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.significance import log_linear
from robustbench_tc.files import atomic_file
from robustbench_tc.schema import SOURCES

from . import figures
from .content import TABLE2, Model, Report, Rows

CONVENTIONS = {
    "cluster": "95 % percentile bootstrap over whole samples (clean_ids), clean and perturbed together.",
    "paper": "the paper's: 95 % percentile bootstrap, rows independent, clean and perturbed apart.",
}

SECTIONS = (
    ("table2", "Table 2", None),
    ("heatmap", "Per type", None),
    ("components", "Components", None),
    ("size", "Size", None),
    ("types", "Type by type", None),
    ("gain", "What would I gain", "what_to_gain"),
    ("flips", "Flips", "flip_matrix"),
    ("errors", "Errors", "error_modes"),
    ("recovery", "Recovery", "recovery"),
    ("sources", "Sources", "by_source"),
    ("costs", "Costs", "costs"),
    ("hardest", "Hardest rows", "hardest"),
    ("runs", "Runs", None),
)
"""Anchor, name, and the mart without which there is no such section."""


def write(report: Report, folder: Path) -> list[Path]:
    """`report.html`, `.md`, `.csv` and `.json` in `folder`, each whole or not at all."""
    made = []
    for ending, text in (
        ("html", html(report)),
        ("md", markdown(report)),
        ("csv", as_csv(report)),
        ("json", as_json(report)),
    ):
        path = folder / f"report.{ending}"
        with atomic_file(path) as beside:
            beside.write_text(text, encoding="utf-8")
        made.append(path)
    return made


# --- HTML ---------------------------------------------------------------------------------------------


def html(report: Report) -> str:
    """The page. Names, replies and paths are escaped: they come from models and users."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    here = Path(__file__)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=False, keep_trailing_newline=True
    )
    environment.filters |= {"number": number, "p_value": p_value, "signed": lambda value: f"{value:+.1f}"}
    template = environment.from_string(here.with_name("page.html.jinja").read_text(encoding="utf-8"))
    models, papers = report.models, report.paper
    simulated = [found for model in models for found in _intervals(model) if found[2].method == "simulated"]
    sizes = figures.size_panels(models, papers)
    return template.render(
        report=report,
        css=Markup(here.with_name("page.css").read_text(encoding="utf-8")),
        convention=CONVENTIONS[report.convention],
        components=taxonomy.COMPONENTS,
        metrics=TABLE2,
        codes=[t.code for t in taxonomy.types("all")],
        names={t.code: t.display_name for t in taxonomy.types("all")},
        sections=[(anchor, name) for anchor, name, mart in SECTIONS if not mart or report.marts.get(mart)],
        simulated=", ".join(dict.fromkeys(_readable(metric) for metric, _, _ in simulated)),
        error=max((found.error for _, _, found in simulated), default=0.0),
        figures={
            "heatmap": Markup(figures.heatmap(models)),
            "paper_heatmap": Markup(figures.heatmap(papers)),
            "components": [(name, Markup(svg)) for name, svg in figures.component_bars(models)],
            "sizes": [(name, Markup(svg)) for name, svg in sizes],
        },
        trends=[("your runs", _slopes(models)), ("the paper's models", _slopes(papers))],
        error_modes=figures.ERROR_MODES,
        by_run=lambda mart: list(_by_run(report, mart)),
        flip_bars=lambda rows: Markup(figures.flip_bars(rows)),
        error_bars=lambda rows, label: Markup(figures.error_bars(rows, _of(report, "by_source", label))),
        share_bar=lambda share, largest: Markup(figures.share_bar(share, largest)),
        mode_table=_mode_table,
        source_table=_source_table,
    )


def number(value: float | None, sign: bool = False, digits: int = 3) -> str:
    """A number with a real minus; a dash for none."""
    if value is None:
        return "–"
    text = f"{value:{'+' if sign else ''}.{digits}f}"
    if not text.strip("+-0."):  # no "-0.000"
        text = text.lstrip("+-")
    return text.replace("-", "−")


def p_value(p: float) -> str:
    """Three decimals, or an order of magnitude."""
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"


def _readable(metric: str) -> str:
    if metric.startswith("type:"):
        return "Δ of single types"
    return metric.replace("delta_matched_", "Δ matched ").replace("delta_", "Δ ").replace("accuracy_", "")


def _intervals(model: Model) -> Iterator[tuple[str, str, Interval]]:
    """(metric, type code or "", interval) of every value of a model."""
    for metric, found in model.summary.values.items():
        if found is not None:
            yield metric, "", found
    for code, row in model.summary.types.items():
        for name, found in (
            ("accuracy", row.accuracy),
            ("delta", row.delta),
            ("delta_matched", row.delta_matched),
        ):
            if found is not None:
                yield f"type:{name}", code, found


def _slopes(models: tuple[Model, ...]) -> list[float | None]:
    slopes: list[float | None] = []
    for metric in (*(f"delta_{name}" for name in taxonomy.COMPONENTS), "retention"):
        points = [
            (m.params_b, found.value) for m in models if m.params_b and (found := m.summary.values[metric])
        ]
        trend = log_linear([size for size, _ in points], [value for _, value in points])
        slopes.append(trend[1] if trend else None)
    return slopes


def _by_run(report: Report, mart: str) -> Iterator[tuple[str, Rows]]:
    for model in report.models:
        if rows := _of(report, mart, model.label):
            yield model.label, rows


def _of(report: Report, mart: str, label: str) -> Rows:
    run = next(model.run for model in report.models if model.label == label)
    return [row for row in report.marts.get(mart, []) if row["run"] == run.rstrip("/")]


def _mode_table(rows: Rows) -> list[tuple[str, list[int]]]:
    return [
        (
            name,
            [
                sum(r["n"] for r in rows if (r["component"] or "clean") == name and r["error_mode"] == mode)
                for mode in figures.ERROR_MODES
            ],
        )
        for name in ("clean", *taxonomy.COMPONENTS)
    ]


def _source_table(rows: Rows) -> list[tuple[str, list[dict[str, Any] | None]]]:
    cells = {(row["source"], row["component"]): row for row in rows}
    return [
        (source, [cells.get((source, name)) for name in ("clean", *taxonomy.COMPONENTS)])
        for source in SOURCES
        if any(row["source"] == source for row in rows)
    ]


# --- Markdown, CSV, JSON ------------------------------------------------------------------------------


def markdown(report: Report) -> str:
    """Table 2, the types and the gaps, for a README or a pull request."""
    lines = [
        "# RobustBench-TC report",
        "",
        f"Dataset version {report.dataset_version}, rows: {report.subset}. {CONVENTIONS[report.convention]}",
        "",
        *(f"- Gap: {_plain(line)}" for line in report.gaps),
        *([""] if report.gaps else []),
        *_markdown_table2(report.models, report.baseline),
        "",
    ]
    if report.baseline:
        lines += [
            f"Stars mark a paired difference to {_plain(report.baseline)}: "
            "one below p = 0.05, two below 0.01, three below 0.001.",
            "",
        ]
    lines += ["## Accuracy per type", ""]
    names = [_plain(model.label) for model in report.models]
    lines += ["| type | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for kind in taxonomy.types("all"):
        found = [model.summary.types.get(kind.code) for model in report.models]
        if any(found):
            cells = ["gap" if row is None else _span(row.accuracy) for row in found]
            lines.append(f"| {kind.code} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "## The paper's 21 models, for orientation",
        "",
        "Another version of the dataset: not ranked with the runs above, not paired and not marked.",
        "",
        *_markdown_table2(report.paper, None),
        "",
    ]
    return "\n".join(lines)


def _markdown_table2(models: tuple[Model, ...], baseline: str | None) -> list[str]:
    head = ["model", "clean", "perturbed", *(f"Δ {name}" for name in taxonomy.COMPONENTS), "retention", "n"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for model in models:
        cells = [_plain(model.label) + (" (baseline)" if baseline == model.label else "")]
        for metric in TABLE2:
            found, mark = model.summary.values[metric], model.marks.get(metric)
            stars = "\\*" * mark.stars if mark else ""
            cells.append("gap" if found is None else _span(found) + stars)
        counted = [model.summary.values[metric] for metric in ("clean", "perturbed")]
        cells.append(" + ".join("gap" if found is None else str(found.n) for found in counted))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _span(found: Interval) -> str:
    return f"{number(found.value)} [{number(found.low)}, {number(found.high)}]"


def _plain(text: str) -> str:
    """Text that cannot break a table or start markup."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#" else " " if c in "\r\n" else c for c in text)


CSV_COLUMNS = (
    "dataset_version run model mode metric type_code value low high n method error p p_baseline".split()
)


def as_csv(report: Report) -> str:
    """Every value of every model, the paper's too, one per line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for version, models in ((report.dataset_version, report.models), ("paper", report.paper)):
        for model in models:
            for metric, code, found in _intervals(model):
                name = metric.removeprefix("type:")
                marks = model.type_marks.get(code) if code else model.marks.get(name)
                against = marks.p if marks and (not code or name == "accuracy") else None
                writer.writerow(
                    [version, model.run, model.model, model.mode, name, code, found.value, found.low,
                     found.high, found.n, found.method, found.error, found.p, against]
                )  # fmt: skip
    return text.getvalue()


def as_json(report: Report) -> str:
    """The whole report."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1).decode() + "\n"
