"""A report as one HTML page without a script or an outside request, and as Markdown, CSV and JSON."""

import csv
import io
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import jinja2
import msgspec
from markupsafe import Markup

from robustbench_tc import taxonomy
from robustbench_tc.eval import figures
from robustbench_tc.eval.figures import Axis, Dot, Row, Stack
from robustbench_tc.eval.stats import blind
from robustbench_tc.eval.stats.breakdown import READ_WITH_CARE
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.significance import Trend, log_linear
from robustbench_tc.eval.stats.values import HEADS, Line
from robustbench_tc.io import marker, numbers, templates
from robustbench_tc.io.files import atomic_dir, claim
from robustbench_tc.schema import ERROR_MODES, SOURCES

from .content import CONVENTIONS, SCATTERED, TABLE2, Model, Report

GROUPS = (taxonomy.CLEAN, *taxonomy.COMPONENTS)

SECTIONS = {
    "table2": "Table 2",
    "heatmap": "Per type",
    "blind": "What needs no reading",
    "components": "Components",
    "size": "Size",
    "types": "Type by type",
    "gain": "What would I gain",
    "flips": "Flips",
    "errors": "Errors",
    "replies": "Replies",
    "recovery": "Recovery",
    "sources": "Sources",
    "costs": "Costs",
    "hardest": "Hardest rows",
    "runs": "Runs",
}
"""Anchor → name."""

SIZES = (0.5, 1, 2, 4, 8, 16, 32, 70, 140, 400, 700)
"""Billions of parameters that a scale names."""


def write(report: Report, folder: Path, *, discard_changes: bool = False) -> list[Path]:
    """The folder with `report.html`, `.md`, `.csv` and `.json`, all or nothing.

    An earlier report is replaced; UserError for a folder that holds anything else (`io.folders.check`).
    """
    texts = {
        "report.html": html(report),
        "report.md": markdown(report),
        "report.csv": as_csv(report),
        "report.json": as_json(report),
    }
    with atomic_dir(folder, kind="report", force=True, discard_changes=discard_changes) as made:
        claim(made, *texts, marker.OWN)
        for name, text in texts.items():
            (made / name).write_text(text, encoding="utf-8")
        marker.describe(made, "report")
    return [folder / name for name in texts]


# --- HTML ---------------------------------------------------------------------------------------------


@cache
def _environment() -> jinja2.Environment:
    return templates.environment("robustbench_tc.eval.report")


def html(report: Report) -> str:
    """The page. Names, replies and paths are escaped: they come from models and users."""
    models, papers = report.models, report.paper
    simulated = [found for model in models for found in _intervals(model) if found[2].method == "simulated"]
    names = {t.code: t.display_name for t in taxonomy.types("all")}
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            css=figures.style() + Markup(Path(__file__).with_name("page.css").read_text(encoding="utf-8")),
            convention=CONVENTIONS[report.convention],
            groups=GROUPS,
            components=taxonomy.COMPONENTS,
            component_of=taxonomy.component_of,
            metrics=TABLE2,
            codes=list(names),
            names=names,
            sections={anchor: name for anchor, name in SECTIONS.items() if _there(report, anchor)},
            simulated=", ".join(dict.fromkeys(_readable(metric) for metric, _, _ in simulated)),
            error=max((found.error for _, _, found in simulated), default=0.0),
            sources=SOURCES,
            error_modes=ERROR_MODES,
            reply_flags=READ_WITH_CARE,
            heatmap=_heatmap,
            heads=HEADS,
            solved=blind.solved(report.needs_no_reading),
            bars=_bars,
            scatters={_readable(metric): _scatter(models, papers, metric) for metric in SCATTERED},
            trends={"your runs": _slopes(models), "the paper's models": _slopes(papers)},
            flips=_flips,
            flip_bars=lambda model: figures.stacks(
                [_flip_stack(names[code], line) for code, line in _flips(model).items()],
                "flips between clean and perturbed",
            ),
            error_bars=_error_bars,
            share=lambda part, whole: figures.shares({"bar": part, "rest": whole - part}, 80, 10),
            of_run=lambda mart, model: [
                row for row in report.marts.get(mart, []) if row["run"] == model.run.rstrip("/")
            ],
        )
    )


def _there(report: Report, anchor: str) -> bool:
    """Whether there is something to show in a section that may be empty."""
    if anchor in ("recovery", "costs", "hardest"):
        return bool(report.marts.get(anchor))
    held = {
        "gain": (model.gains for model in report.models),
        "blind": (report.needs_no_reading,),
        "flips": (_flips(model) for model in report.models),
        "errors": (model.error_modes for model in report.models),
        "replies": (model.flags for model in report.models),
    }
    return anchor not in held or any(held[anchor])


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


def _heatmap(models: tuple[Model, ...]) -> Markup:
    """Accuracy of models under clean and every type, grouped by component."""
    types = [t for t in taxonomy.types() if any(t.code in m.summary.types for m in models)]
    groups = {"": {taxonomy.CLEAN: "clean"}}
    for component in taxonomy.COMPONENTS:
        if names := {t.code: t.display_name for t in types if t.component == component}:
            groups[component] = names
    rows = []
    for model in models:
        found: dict[str, Interval | None] = {taxonomy.CLEAN: model.summary.values["clean"]}
        rows.append(Row(model.label, found | {code: r.accuracy for code, r in model.summary.types.items()}))
    return figures.heatmap(rows, groups, "accuracy per model and type, in percent")


def _bars(models: tuple[Model, ...], name: str) -> Markup:
    metric = name if name == taxonomy.CLEAN else f"accuracy_{name}"
    return figures.bars([(m.label, m.summary.values[metric]) for m in models], f"accuracy, {name}")


def _points(models: tuple[Model, ...], metric: str) -> list[tuple[str, float, float]]:
    """(label, billions of parameters, value) of the models whose size is known."""
    found = [(m.label, m.params_b, m.summary.values[metric]) for m in models]
    return [(label, size, value.value) for label, size, value in found if size and value is not None]


def _slopes(models: tuple[Model, ...]) -> list[float | None]:
    trends = [_trend(_points(models, metric)) for metric in SCATTERED]
    return [None if trend is None else trend[1] for trend in trends]


def _trend(points: list[tuple[str, float, float]]) -> Trend | None:
    return log_linear([size for _, size, _ in points], [value for _, _, value in points])


def _scatter(models: tuple[Model, ...], papers: tuple[Model, ...], metric: str) -> Markup:
    """A value against model size, ours filled, the paper's hollow, each with its trend."""
    sets = {"paper": _points(papers, metric), "ours": _points(models, metric)}
    sizes = [size for points in sets.values() for _, size, _ in points]
    values = [value for points in sets.values() for _, _, value in points]
    margin = 0.08 * (max(values) - min(values)) + 0.01
    low, high = min(values) - margin, max(values) + margin
    x = Axis(min(sizes) / 1.2, max(sizes) * 1.2, {}, log=True)
    x = x._replace(ticks={size: numbers.size(size) for size in SIZES if x.low <= size <= x.high})
    dots, paths = [], []
    for kind, points in sets.items():
        note = " (paper's rows)" if kind == "paper" else ""
        dots += [
            Dot(size, value, kind, f"{name}, {numbers.size(size)}: {numbers.number(value)}{note}")
            for name, size, value in points
        ]
        if trend := _trend(points):
            ends = (pick(size for _, size, _ in points) for pick in (min, max))
            paths.append(figures.Path([(e, trend[0] + trend[1] * math.log10(e)) for e in ends], kind))
    return figures.chart(
        x, Axis(low, high, figures.ticks(low, high)), dots, paths,
        f"{_readable(metric)} against model size", size=(306, 212),
    )  # fmt: skip


def _flips(model: Model) -> dict[str, Line]:
    """The types whose pairs are all there."""
    return {code: model.summary.lines[code] for code, row in model.summary.types.items() if row.flips}


def _flip_stack(name: str, line: Line) -> Stack:
    parts = {
        "both_right": line.kept,
        "gained": line.gained,
        "lost": line.lost,
        "both_wrong": line.pairs - line.kept - line.gained - line.lost,
    }
    return Stack(name, parts, line.pairs, f"−{line.lost} +{line.gained}")


def _error_bars(model: Model) -> Markup:
    """Wrong answers by mode: a bar per component, its length the share of wrong answers."""
    rows = []
    for name in GROUPS:
        found, n = model.error_modes.get(name, {}), model.summary.lines[name].n
        rows.append(Stack(name, found, n, f"{sum(found.values())} of {n}" if n else ""))
    return figures.stacks(rows, "wrong answers by error mode")


# --- Markdown, CSV, JSON ------------------------------------------------------------------------------


def markdown(report: Report) -> str:
    """Table 2, the types and the gaps, for a README or a pull request."""
    codes = [t.code for t in taxonomy.types("all")]
    return (
        _environment()
        .get_template("report.md.j2")
        .render(
            report=report,
            convention=CONVENTIONS[report.convention],
            components=taxonomy.COMPONENTS,
            metrics=TABLE2,
            reply_flags=READ_WITH_CARE,
            heads=HEADS,
            solved=blind.solved(report.needs_no_reading),
            matched=[f"delta_matched_{name}" for name in taxonomy.COMPONENTS],
            scattered=SCATTERED,
            readable=_readable,
            codes=[code for code in codes if any(code in model.summary.types for model in report.models)],
        )
    )


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
