"""The pages as HTML: jinja with everything escaped, no script, no style but the sheet's."""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from robustbench_tc import schema, taxonomy
from robustbench_tc.eval import figures
from robustbench_tc.eval.figures import Axis, Dot
from robustbench_tc.eval.stats import packs
from robustbench_tc.eval.stats.blind import BlindLine
from robustbench_tc.io import numbers, templates
from robustbench_tc.io.numbers import NONE
from robustbench_tc.safe_text import safe

from .board import LEVEL, PAPER, Board, Difference
from .query import SIZES, SORTS, TIERS, Query, View, address
from .records import Claims, Entry, Gain, Metric, Step, Submission, Verification
from .refusal import STEPS
from .row import FOCUSES, LEVELS, Row
from .tabs import TABS

MODES = {"prompt": "prompt", "fc": "function calling", "api": "function calling (API)"}

COLUMNS: dict[str, tuple[str, str]] = {
    "rank": ("#", "Place by accuracy; ties go by the number of right answers, then by name."),
    "model": ("Model", "Name, family and who submitted it. The name opens the model's page."),
    "perturbed": (
        "Perturbed",
        "Right answers among all perturbed rows, each row counting once, with its 95 % interval: "
        "whole samples are its units.",
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
    "tier": (
        "Tier",
        "Published: counts printed in the paper. Reproduced: a maintainer repeated the run. "
        "Endpoint-matched: an endpoint that the submitter offered gives the same answers. "
        "Unverified: answers scored here, the run itself not repeated.",
    ),
}
"""Column → heading and explanation."""

DELTA = "Δ is clean accuracy minus this accuracy, as in the paper: positive is a loss."


@cache
def environment() -> jinja2.Environment:
    """The template environment with every filter and constant that the pages use; HTML is escaped."""
    made = templates.environment(__package__, "templates")
    made.filters |= {"python": repr, "day": day, "inert": safe}
    made.globals |= {
        "strip": strip,
        "shares": figures.shares,
        "heat": heat,
        "address": address,
        "focus_name": focus_name,
        "style": sheet_path("board.css"),
        "columns": COLUMNS,
        "components": taxonomy.COMPONENTS,
        "types": {t.code: t for t in taxonomy.types()},
        "error_modes": schema.ERROR_MODES,
        "modes": MODES,
        "tiers": TIERS,
        "steps": STEPS,
        "tabs": TABS,
        "paper": PAPER,
        "level": LEVEL,
        "delta_means": DELTA,
    }
    return made


@cache
def static(name: str) -> bytes:
    """The bytes of a file of `static/`."""
    return files(__package__).joinpath("static", name).read_bytes()


@cache
def sheet(name: str) -> bytes:
    """A style sheet: `board.css` follows the system's theme, `submit.css` the one that gradio chose."""
    light, dark = static("light.css"), static("dark.css")
    themes = {
        "board.css": b":root {\n%b}\n@media (prefers-color-scheme: dark) {\n:root {\n%b}\n}\n",
        "submit.css": b":root {\n%b}\n.dark {\n%b}\n",
    }
    own = static(name) + (static("single.css") if name == "board.css" else b"")
    return themes[name] % (light, dark) + static("common.css") + figures.style().encode() + own


def sheet_path(name: str) -> str:
    """Its address, which changes with its content."""
    return f"/static/{name}?v={sha256(sheet(name)).hexdigest()[:12]}"


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


def day(moment: str | None) -> str:
    """The date of an ISO 8601 moment."""
    return NONE if moment is None else moment[:10]


def strip(found: Metric, axis: tuple[float, float] = (0.0, 1.0), mark: float | None = None) -> Markup:
    """A value with its interval; the tick is the model's clean accuracy."""
    return figures.strip(found.value, found.low, found.high, axis, mark)


def axis_of(metrics: Iterable[Metric]) -> tuple[float, float]:
    """Tenths around every interval, so that differences can be seen."""
    known = [(one.value, one.low, one.high) for one in metrics if one.value is not None]
    ends = [end for value, low, high in known for end in (value, low, high) if end is not None] or [0.0, 1.0]
    tenths = math.floor(10 * min(ends)) / 10, math.ceil(10 * max(ends)) / 10
    return tenths if tenths[0] < tenths[1] else (0.0, 1.0)


def heat(value: float | None) -> str:
    """The class of a heat-map cell: ten steps from 0 to 1."""
    return "none" if value is None else f"h{min(9, int(value * 10))}"


def focus_name(focus: str) -> str:
    """`all perturbed rows`, `clean rows`, `the component reward`, `the type CD`."""
    if focus == "perturbed":
        return "all perturbed rows"
    if focus == taxonomy.CLEAN:
        return "clean rows"
    if focus in LEVELS:
        return f"the level {focus}"
    return f"the component {focus}" if focus in taxonomy.COMPONENTS else f"the type {focus}"


def blind_of(line: BlindLine, focus: str) -> float | None:
    """A reference line's accuracy in a focus."""
    return line.heads[focus] if focus in line.heads else line.types.get(focus)


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
        tiers_here=[(one, name) for one, name in TIERS.items() if any(r.tier == one for r in board.rows)],
        focuses=FOCUSES,
        levels=LEVELS,
        sorts=SORTS,
        label=label,
        axis=axis_of(row.figures.accuracy(view.query.focus) for row in view.rows),
        blind_of=blind_of,
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
    entry: Entry,
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
        entry=entry,
        board=board,
        default=default,
        query=Query(version=board.version),
        history=history,
        verification=verification,
        submission=submission,
        against=against,
        differences=differences,
        hardest=hardest(entry),
        label=label,
        not_behind=not_behind,
        sure_gains=sure_gains,
        spelled=packs.typeset,
    )


def sure_gains(entry: Entry) -> list[Gain]:
    """Types that lose more samples than they gain, beyond chance (Holm over the types); most first."""
    p_values = {code: line.p_holm for code, line in entry.types.items()}
    return [
        one
        for one in entry.gains
        if one.gain > 0 and (p := p_values.get(one.type_code)) is not None and p < LEVEL
    ]


def hardest(entry: Entry) -> list[tuple[str, Metric, float | None]]:
    """(type, accuracy, Δ) of the types with the largest Δ, at most five; none that costs nothing."""
    lines = [(code, line.accuracy, line.delta.value) for code, line in entry.types.items()]
    costly = [line for line in lines if (line[2] or 0) > 0]
    return sorted(costly, key=lambda line: (-(line[2] or 0), line[0]))[:5]


def progress_page(board: Board, versions: Sequence[Board], default: str) -> str:
    """Every submission of a board over time."""
    dated = [row for row in (*board.rows, *board.past) if row.submitted_at is not None]
    dated.sort(key=lambda row: (row.submitted_at or "", row.id))
    lines: list[tuple[Row, float, bool]] = []
    best = -1.0
    for row in dated:
        value = row.figures.metric("perturbed").value or 0.0
        lines.append((row, max(best, value), value > best))
        best = max(best, value)
    return render(
        "progress.html.j2",
        title=f"Progress, {label(board)}",
        here="progress",
        board=board,
        boards=versions,
        default=default,
        query=Query(version=board.version),
        lines=lines,
        figure=_course(lines) if lines else "",
        label=label,
    )


def _course(lines: Sequence[tuple[Row, float, bool]]) -> Markup:
    """Perturbed accuracy over time, with a step line of the best so far."""
    when = [datetime.fromisoformat(row.submitted_at or "").timestamp() for row, _, _ in lines]
    values = [row.figures.metric("perturbed").value or 0.0 for row, _, _ in lines]
    tenths = range(math.floor(10 * min(values)), max(math.ceil(10 * max(values)), 1) + 1)
    ends = dict.fromkeys((when[0], when[-1]))
    steps = [(when[0], lines[0][1])]
    for moment, (_, best, _) in zip(when, lines, strict=True):
        steps += [(moment, steps[-1][1]), (moment, best)]
    return figures.chart(
        Axis(when[0], when[-1], {end: f"{datetime.fromtimestamp(end, UTC):%Y-%m-%d}" for end in ends}),
        Axis(tenths[0] / 10, tenths[-1] / 10, {t / 10: numbers.number(t / 10, 1) for t in tenths}),
        [
            Dot(moment, value, "ours" if leads else "past", f"{row.model}: {numbers.number(value)}")
            for moment, value, (row, _, leads) in zip(when, values, lines, strict=True)
        ],
        [figures.Path(steps, "ours")],
        "Perturbed accuracy of every submission over time, with the best so far; the table has the figures",
        size=(760, 300),
        right=44,
        kind="progress",
    )


def error_page(status: int, says: str, default: str) -> str:
    """The page of an HTTP error; `default` is the version that its link to the board names."""
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
