"""A report as one HTML page that needs no outside request, and as Markdown, CSV and JSON."""

import base64
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from robustbench_tc import sources, taxonomy
from robustbench_tc.eval.stats import blind, levels, packs, stages
from robustbench_tc.eval.stats.breakdown import READ_WITH_CARE
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.significance import LEVEL
from robustbench_tc.eval.stats.values import HEADS
from robustbench_tc.io import numbers, templates
from robustbench_tc.io.folders import atomic_dir
from robustbench_tc.safe_text import safe, safe_json
from robustbench_tc.schema import ERROR_MODES, EXPLICIT, STAGES

from . import drawings, figures, samples as embedded
from .content import CONVENTIONS, SCATTERED, TABLE2, Model, Report
from .drawings import GROUPS, readable
from .samples import Embedded, packed

SECTIONS = {
    "answer": "Answer",
    "domains": "By domain",
    "losses": "Drops by type",
    "types": "Type by type",
    "cases": "Cases",
    "browser": "Rows and replies",
    "episodes": "Episodes, step by step",
    "table2": "Table 2",
    "paper": "The paper's 21 models",
    "verified": "Verified rows",
    "heatmap": "Accuracy per type",
    "blind": "Request-blind baselines",
    "components": "Components",
    "size": "Model size",
    "levels": "Levels",
    "packs": "Beyond the core",
    "reliability": "Reliability",
    "gain": "Potential gains",
    "flips": "Flips",
    "errors": "Error modes",
    "stages": "Stages",
    "replies": "Reading of replies",
    "recovery": "Recovery",
    "sources": "Sources",
    "costs": "Costs",
    "hardest": "Hardest rows",
    "runs": "Runs",
}
"""Anchor → name."""

LIVE_SECTIONS = ("answer", "domains", "episodes", "packs", "reliability", "runs")
"""Those of live runs: the others are made of components, sources and replies to rows."""

NO_ROWS = Embedded(notes=("The rows and replies were left out of this page (--no-browser).",))


def write(
    report: Report, folder: Path, samples: Embedded = NO_ROWS, *, discard_changes: bool = False
) -> None:
    """The folder with `report.html`, `.md`, `.csv` and `.json`, all or nothing. `samples`: rows to browse.

    An earlier report is replaced; UserError for a folder that holds anything else (`io.folders`).
    """
    saved = downloads(report)
    texts = {"report.html": html(report, samples, saved)} | saved
    del texts["report.tex"]  # the page alone has it
    with atomic_dir(folder, kind="report", force=True, discard_changes=discard_changes) as made:
        for name, text in texts.items():
            (made / name).write_text(text, encoding="utf-8")


# --- HTML ---------------------------------------------------------------------------------------------


@cache
def _environment() -> jinja2.Environment:
    return templates.environment("robustbench_tc.eval.report").overlay(finalize=_seen)


def _seen(value: Any) -> Any:
    """A value of the template as it is put in: what would steer a terminal or turn a line is spelled out."""
    return safe(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def downloads(report: Report) -> dict[str, str]:
    """What the page's menu saves, by name."""
    return {
        "report.csv": as_csv(report),
        "report.tex": latex_tables(report),
        "report.md": markdown(report),
        "report.json": as_json(report),
    }


def html(report: Report, samples: Embedded = NO_ROWS, saved: Mapping[str, str] | None = None) -> str:
    """The page. Names and paths are escaped and rows compressed: they come from models and users. Its policy
    lets run and style what this package wrote, by hash, and nothing be loaded."""
    models = report.models
    simulated = [found for model in models for found in _intervals(model) if found[2].method == "simulated"]
    kinds = taxonomy.known_with(code for m in report.models for code in m.summary.types)
    names = {t.code: taxonomy.named(t.code) for t in kinds}
    styles = [str(figures.style()), _own("page.css"), *([_own("episodes.css")] if samples.episodes else [])]
    scripts = [_own("page.js"), *([_own("browser.js")] if samples.text else [])]
    script, style = (
        " ".join(f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts)
        for texts in (scripts, styles)
    )
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            policy=f"default-src 'none'; script-src {script}; style-src {style}; img-src data:; "
            "base-uri 'none'; form-action 'none'",
            styles=[Markup(text) for text in styles],
            scripts=[Markup(text) for text in scripts],
            samples=samples,
            files=packed(saved or downloads(report)),
            level=LEVEL,
            convention=CONVENTIONS[report.convention],
            groups=GROUPS,
            components=taxonomy.COMPONENTS,
            component_of=taxonomy.component_of,
            metrics=TABLE2,
            codes=list(names),
            names=names,
            labels={t.code: t.label for t in kinds},
            modified={t.code: t.what_is_modified for t in kinds},
            sections={anchor: name for anchor, name in SECTIONS.items() if _there(report, samples, anchor)},
            simulated=", ".join(dict.fromkeys(readable(metric) for metric, _, _ in simulated)),
            error=max((found.error for _, _, found in simulated), default=0.0),
            sources=sources.in_tables(),
            error_modes=ERROR_MODES,
            reply_flags=READ_WITH_CARE,
            draw=drawings,
            levels_of=_levels,
            episode=embedded,
            explicit=EXPLICIT,
            drops=drawings.axis_of(drawings.answered(models)),
            effects=drawings.axis_of(drawings.of_types(models)),
            heads=HEADS,
            solved=blind.solved(report.needs_no_reading),
            scatters={
                readable(metric): drawings.scatter(models, report.paper, metric)
                for metric in _scattered(report)
            },
            scattered=_scattered(report),
            matched=[f"delta_matched_{name}" for name in taxonomy.COMPONENTS],
            breakable=breakable,
            spelled=packs.typeset,
            levels_table=levels.table,
            stages_table=stages.table,
            stages=STAGES,
            of_run=lambda mart, model: [
                row for row in report.marts.get(mart, []) if row["run"] == model.run.rstrip("/")
            ],
        )
    )


def _levels(model: Model) -> list[tuple[str, int, int]]:
    """Clean, and all perturbed rows: name, right, n. Episodes that never met their fault are in neither."""
    lines = model.summary.lines
    found = [(name, lines[name].correct, lines[name].n) for name in HEADS[:2]]
    if model.live and model.answer and model.answer.lines:
        name, one = next(iter(model.answer.lines.items()))
        found[1] = name, round(one.after * one.drop.n), one.drop.n
    return found


def breakable(name: str) -> Markup:
    """A name that may go on in the next line after its separators, and nowhere else."""
    return Markup("<wbr>").join(re.split(r"(?<=[_:/-])(?=[^_:/-])", safe(name)))


def _own(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _there(report: Report, samples: Embedded, anchor: str) -> bool:
    """Whether there is something to show in a section that may be empty."""
    if report.live and anchor not in LIVE_SECTIONS:
        return False
    if anchor in ("recovery", "costs", "hardest"):
        return bool(report.marts.get(anchor))
    held = {
        "losses": (row.delta_matched for model in report.models for row in model.summary.types.values()),
        "domains": (report.domain_tables,),
        "reliability": (model.reliability for model in report.models),
        "cases": samples.cases,
        "episodes": samples.episodes,
        "paper": report.paper,
        "verified": report.paper,
        "gain": (model.gains for model in report.models),
        "blind": (report.needs_no_reading,),
        "packs": (model.packs for model in report.models),
        "levels": (model.levels for model in report.models),
        "stages": (model.stages for model in report.models),
        "flips": (drawings.flips(model) for model in report.models),
        "errors": (model.error_modes for model in report.models),
        "replies": (model.flags for model in report.models),
        "size": _scattered(report),
    }
    return anchor not in held or any(held[anchor])


def _scattered(report: Report) -> list[str]:
    """The values that some model of known size has; the paper's models have all of them."""
    every = (*report.models, *report.paper)
    return [metric for metric in SCATTERED if drawings.sized(every, metric)]


def _intervals(model: Model) -> Iterator[tuple[str, str, Interval]]:
    """(metric, type code or "", interval) of every value of a model."""
    for metric, found in model.summary.values.items():
        if found is not None:
            yield metric, "", found
    for code, row in model.summary.types.items():
        for name in ("accuracy", "delta", "delta_matched"):
            if (found := getattr(row, name)) is not None:
                yield f"type:{name}", code, found


# --- Markdown, CSV, JSON ------------------------------------------------------------------------------


def markdown(report: Report) -> str:
    """Table 2, the types and the gaps, for a README or a pull request."""
    kinds = taxonomy.among(code for model in report.models for code in model.summary.types)
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
            readable=readable,
            spelled=packs.typeset,
            levels_table=levels.table,
            stages_table=stages.table,
            stages=STAGES,
            codes=[kind.code for kind in kinds],
            named=taxonomy.named,
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
    return safe_json(msgspec.json.format(msgspec.json.encode(report), indent=1).decode()) + "\n"


_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
}


def latex_text(text: str) -> str:
    """Text that LaTeX sets as it stands: names come from models and users."""
    return "".join(_SIGNS.get(sign, sign) for sign in text if sign.isprintable())


def latex_tables(report: Report) -> str:
    """Two tables with their captions."""
    deltas = [rf"$\Delta$ {name}" for name in taxonomy.COMPONENTS]
    types = taxonomy.among(code for m in report.models for code in m.summary.types)
    version = latex_text(report.dataset_version)
    dataset = "Own tools" if report.own_tools else f"RobustBench-TC, dataset version {version}"
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            *(
                f"% not reviewed: {latex_text(m.label)}: {m.unreviewed.line}"
                for m in report.models
                if m.unreviewed
            ),
            *_latex_table(
                ["Model", "Clean", "Perturbed", *deltas, "Retention"],
                [
                    [latex_text(m.label), *(_latex_cell(m.summary.values[name]) for name in TABLE2)]
                    for m in report.models
                ],
                f"{dataset}. Accuracy on clean and perturbed rows, $\\Delta$ per component and retention, "
                "with 95\\,\\% intervals.",
            ),
            "",
            *_latex_table(
                ["Type", *(latex_text(m.label) for m in report.models)],
                [
                    [latex_text(taxonomy.named(t.code)), *(_latex_loss(m, t.code) for m in report.models)]
                    for t in types
                ],
                f"{dataset}. $\\Delta$ matched per type: clean minus perturbed accuracy on the same samples. "
                f"Bold: exact paired test below {LEVEL:g} after Holm's correction over the types of a model.",
            ),
            "",
        ]
    )


def _latex_table(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> list[str]:
    return [
        r"\begin{table}",
        rf"\caption{{{caption}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
        r"\toprule",
        " & ".join(heads) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def _latex_cell(found: Interval | None, *, sign: bool = False) -> str:
    if found is None:
        return "--"
    ends = f"{numbers.number(found.low, sign=sign)}, {numbers.number(found.high, sign=sign)}"
    return f"${numbers.number(found.value, sign=sign)}$ {{\\scriptsize $[{ends}]$}}"


def _latex_loss(model: Model, code: str) -> str:
    row = model.summary.types.get(code)
    if row is None or row.delta_matched is None:
        return "--"
    text = _latex_cell(row.delta_matched, sign=True)
    return rf"\textbf{{{text}}}" if row.flips and row.flips.significant else text
