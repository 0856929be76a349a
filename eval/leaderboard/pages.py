"""The pages as HTML: jinja with everything escaped, no script, no style but the sheet's."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from robustbench_tc import schema, taxonomy
from robustbench_tc.eval import summary

from . import figures
from .board import FOCUSES, LEVEL, PAPER, Board, Difference, Row
from .query import SIZES, SORTS, STATUSES, Query, View, address
from .records import Claims, Entry, Metric, Step, Submission, Verification
from .refusal import STEPS

FOLDER = files(__package__)

MODES = {"prompt": "prompt", "fc": "function calling", "api": "function calling (API)"}

COLUMNS: dict[str, tuple[str, str]] = {
    "rank": ("#", "Place by accuracy; ties go by the number of right answers, then by name."),
    "model": ("Model", "Name, family and who submitted it. The name opens the model's page."),
    "perturbed": (
        "Perturbed",
        "Right answers among all perturbed rows, each row counting once, with its 95 % interval: "
        "whole samples are resampled.",
    ),
    "clean": ("Clean", "Right answers among the clean rows."),
    "observation": ("Observation", "Accuracy where the text is changed: typing errors and paraphrases."),
    "action": ("Action", "Accuracy where the tool list is changed: duplicate names and redundant tools."),
    "reward": ("Reward", "Accuracy where cost or response time should decide and a name misleads."),
    "transition": ("Transition", "Accuracy where the first call meets an error while the tool runs."),
    "retention": (
        "Retention",
        "1 − mean(Δ observation, Δ action, Δ reward) / clean: the share of clean accuracy that is kept.",
    ),
    "params": ("Params", "Billions of parameters, from the name or as stated by the submitter."),
    "mode": ("Mode", "How tools are offered: in the prompt, or by native function calling."),
    "date": ("Date", "When it was submitted (UTC)."),
    "status": (
        "Status",
        "Unverified: answers scored here, the run itself not repeated. Verified: a maintainer repeated it. "
        "Published: counts printed in the paper.",
    ),
}
"""Column → heading and explanation."""

DELTA = "Δ is clean accuracy minus this accuracy, as in the paper: positive is a loss."


@cache
def environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: FOLDER.joinpath("templates", name).read_text("utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # For the files of a Space, which are no HTML.
    made.filters |= {"python": _as(repr), "json": _as(schema.dumps), "text": _as(str)}
    made.filters |= {"number": number, "signed": signed, "day": day, "size": size, "p": p_value}
    made.globals |= {
        "interval": figures.interval,
        "shares": figures.shares,
        "heat": figures.heat,
        "address": address,
        "focus_name": focus_name,
        "style": sheet_path("board.css"),
        "columns": COLUMNS,
        "components": taxonomy.COMPONENTS,
        "types": {t.code: t for t in taxonomy.types()},
        "error_modes": summary.ERROR_MODES,
        "modes": MODES,
        "statuses": STATUSES,
        "steps": STEPS,
        "paper": PAPER,
        "level": LEVEL,
        "delta_means": DELTA,
    }
    return made


def _as(spell: Callable[[Any], str]) -> Callable[[Any], Markup]:
    return lambda value: Markup(spell(value))


@cache
def static(name: str) -> bytes:
    return FOLDER.joinpath("static", name).read_bytes()


@cache
def sheet(name: str) -> bytes:
    """A style sheet: `board.css` follows the system's theme, `submit.css` the one that gradio chose."""
    light, dark = static("light.css"), static("dark.css")
    themes = {
        "board.css": b":root {\n%b}\n@media (prefers-color-scheme: dark) {\n:root {\n%b}\n}\n",
        "submit.css": b":root {\n%b}\n.dark {\n%b}\n",
    }
    return themes[name] % (light, dark) + static("common.css") + static(name)


def sheet_path(name: str) -> str:
    """Its address, which changes with its content."""
    return f"/static/{name}?v={sha256(sheet(name)).hexdigest()[:12]}"


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


def number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}".replace("-", "−")


def p_value(p: float | None) -> str:
    return "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def day(moment: str | None) -> str:
    return "–" if moment is None else moment[:10]


def size(params_b: float | None) -> str:
    return "–" if params_b is None else f"{params_b:g}B"


def focus_name(focus: str) -> str:
    """`all perturbed rows`, `clean rows`, `the component reward`, `the type CD`."""
    if focus == "perturbed":
        return "all perturbed rows"
    if focus == taxonomy.CLEAN:
        return "clean rows"
    return f"the component {focus}" if focus in taxonomy.COMPONENTS else f"the type {focus}"


def metric_of(entry: Entry, focus: str) -> Metric:
    """Accuracy in a focus."""
    if focus in ("perturbed", taxonomy.CLEAN):
        return entry.metrics[focus]
    if focus in taxonomy.COMPONENTS:
        return entry.metrics[f"accuracy_{focus}"]
    return entry.types[focus].accuracy


def delta_of(entry: Entry, focus: str) -> float | None:
    """Δ in a focus; None for clean and for all perturbed rows together."""
    if focus in taxonomy.COMPONENTS:
        return entry.metrics[f"delta_{focus}"].value
    return entry.types[focus].delta.value if focus in entry.types else None


def board_page(view: View, board: Board, versions: Sequence[Board], default: str) -> str:
    """A board."""
    families = sorted({row.family for row in board.rows}, key=str.casefold)
    return render(
        "board.html.j2",
        title=f"Board of {label(board)}",
        here="board",
        view=view,
        query=view.query,
        board=board,
        boards=versions,
        default=default,
        families=[(name, name) for name in families],
        sizes=[(key, name) for key, (name, _) in SIZES.items()],
        modes_here=[(mode, name) for mode, name in MODES.items() if any(r.mode == mode for r in board.rows)],
        statuses_here=[
            (one, name) for one, name in STATUSES.items() if any(r.status == one for r in board.rows)
        ],
        focuses=FOCUSES,
        sorts=SORTS,
        label=label,
        axis=figures.axis_of(metric_of(row.entry, view.query.focus) for row in view.rows),
        metric_of=metric_of,
        delta_of=delta_of,
        not_behind=not_behind,
    )


def label(board: Board) -> str:
    """`version 1.0.0 (cc827666)`, or the paper's."""
    if board.version == PAPER:
        return "the paper's 21 models"
    return f"version {board.dataset_version} ({(board.fingerprint or '')[:8]})"


def not_behind(row: Row) -> bool:
    """Not significantly behind the leader, and not the leader."""
    return row.p_leader is not None and row.p_leader >= LEVEL


def types_page(board: Board, versions: Sequence[Board], default: str) -> str:
    """The heat-map of a board: models × types."""
    return render(
        "types.html.j2",
        title=f"Types, {label(board)}",
        here="types",
        board=board,
        boards=versions,
        default=default,
        query=Query(version=board.version),
        label=label,
    )


def model_page(
    row: Row,
    board: Board,
    default: str,
    *,
    history: Sequence[Row],
    verification: Verification | None,
    submission: Submission | None,
    against: Row | None,
    differences: Sequence[Difference],
) -> str:
    """Everything about one submission or one of the paper's models."""
    return render(
        "model.html.j2",
        title=row.model,
        here="board",
        row=row,
        entry=row.entry,
        board=board,
        default=default,
        query=Query(version=board.version),
        history=history,
        verification=verification,
        submission=submission,
        against=against,
        differences=differences,
        hardest=hardest(row.entry),
        label=label,
        not_behind=not_behind,
    )


def hardest(entry: Entry) -> list[tuple[str, Metric, float | None]]:
    """(type, accuracy, Δ) of the types with the largest Δ, at most five; none that costs nothing."""
    lines = [(code, line.accuracy, line.delta.value) for code, line in entry.types.items()]
    costly = [line for line in lines if (line[2] or 0) > 0]
    return sorted(costly, key=lambda line: (-(line[2] or 0), line[0]))[:5]


def progress_page(board: Board, versions: Sequence[Board], default: str) -> str:
    """Every submission of a board over time."""
    dated = [row for row in (*board.rows, *board.past) if row.submitted_at is not None]
    dated.sort(key=lambda row: (row.submitted_at or "", row.id))
    best = -1.0
    lines: list[tuple[Row, float, bool]] = []
    for row in dated:
        correct, n = row.entry.counts["perturbed"]
        leads = correct / n > best
        best = max(best, correct / n)
        lines.append((row, best, leads))
    points = [
        (datetime.fromisoformat(row.submitted_at or ""), row.entry.counts["perturbed"], leads)
        for row, _, leads in lines
    ]
    return render(
        "progress.html.j2",
        title=f"Progress, {label(board)}",
        here="progress",
        board=board,
        boards=versions,
        default=default,
        query=Query(version=board.version),
        lines=lines,
        figure=figures.progress([(when, correct / n, leads) for when, (correct, n), leads in points]),
        label=label,
    )


def error_page(status: int, says: str, default: str) -> str:
    return render(
        "error.html.j2",
        title=f"Error {status}",
        here="",
        status=status,
        says=says,
        query=None,
        default=default,
    )


def report(
    steps: Sequence[Step],
    submission: Submission | None,
    entry: Entry | None,
    claims: Claims | None,
) -> str:
    """The answer to an upload as a piece of HTML for the submit page."""
    return render("report.html.j2", checks=steps, submission=submission, entry=entry, claims=claims)


def listed(submission: Submission) -> str:
    """What the submit page says once a submission is listed."""
    return render("listed.html.j2", submission=submission)


def refused(says: str) -> str:
    """What the submit page says where a submission is not listed."""
    return render("refused.html.j2", says=says)


def header(here: str) -> str:
    """The head of the gradio page, the same as that of the others."""
    return render("header.html.j2", here=here)
