"""The pages as HTML: jinja with everything escaped, no script, no style but the sheet's."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import jinja2
from markupsafe import Markup, escape

from robustbench_tc import schema, taxonomy
from robustbench_tc.eval import figures
from robustbench_tc.eval.live import report as live_report
from robustbench_tc.eval.stats import packs
from robustbench_tc.io import templates
from robustbench_tc.io.numbers import NONE
from robustbench_tc.safe_text import safe

from . import flags, live_flags, tiers
from .badge import board_address
from .board import LEVEL, PAPER, Board, Difference
from .live_records import LiveEntry
from .moderation import Decision
from .query import SORT_NAMES, TIERS, Query, address
from .records import Claims, Entry, Gain, Metric, Step, Submission, Verification
from .refusal import STEPS
from .row import LEVELS, Row
from .tabs import TABS

SPELLED = {
    "spelled": live_report.spelled,
    "right_of": live_report.right_of,
    "false_success": live_report.false_success,
    "mean": live_report.mean,
}
"""Figures of live runs, as `rbtc live report` prints them."""

MODES = {"prompt": "prompt", "fc": "function calling", "api": "function calling (API)"}

COLUMNS: dict[str, tuple[str, str]] = {
    "rank": (
        "#",
        "Place by accuracy among runs that are vouched for (see Tier) and carry no flag; ties go by the "
        "number of right answers, then by name. Below it the ranks that the data allow: every two models "
        "tested against each other, Holm's correction over all pairs.",
    ),
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
    "tokens": ("Tokens", "Mean tokens of an answered row, prompt and completion, as the run says."),
    "latency": ("Latency", "Median seconds of an answered row, as the run says."),
    "price": (
        "Price",
        "US dollars for 1,000 rows: the tokens at the prices that the submitter stated.",
    ),
    "mode": ("Mode", "How tools are offered: in the prompt, or by native function calling."),
    "date": ("Date", "When it was submitted (UTC)."),
    "tier": ("Tier", " ".join(f"{name.capitalize()}: {tiers.MEANING[name]}." for name in tiers.TIERS)),
}
"""Column → heading and explanation."""

DELTA = "Δ is clean accuracy minus this accuracy, as in the paper: positive is a loss."


@cache
def environment() -> jinja2.Environment:
    """The template environment with every filter and constant that the pages use; HTML is escaped."""
    made = templates.environment(__package__, "templates")
    made.filters |= {"python": repr, "day": day, "whole": whole, "seconds": seconds, "dollars": dollars}
    made.filters["breakable"] = breakable
    made.filters["inert"] = safe
    made.globals |= {
        "board_address": board_address,
        "strip": strip,
        "shares": figures.shares,
        "heat": heat,
        "address": address,
        "focus_name": focus_name,
        "style": sheet_path("board.css"),
        "columns": COLUMNS,
        "sorts": SORT_NAMES,
        "components": taxonomy.COMPONENTS,
        "types": {t.code: t for t in taxonomy.types()},
        "error_modes": schema.ERROR_MODES,
        "modes": MODES,
        "tiers": TIERS,
        "enough": tiers.ENOUGH,
        "flag_means": flags.MEANING,
        "flag_says": flags.says,
        "steps": STEPS,
        "tabs": TABS,
        "paper": PAPER,
        "level": LEVEL,
        "delta_means": DELTA,
    }
    return made


def compile_templates() -> None:
    """Does for every template what its first page would wait for."""
    for one in files(__package__).joinpath("templates").iterdir():
        if one.name.endswith(".j2"):
            environment().get_template(one.name)


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
    more = ("single.css", "live.css") if name == "board.css" else ()
    own = b"".join(static(one) for one in (name, *more))
    return themes[name] % (light, dark) + static("common.css") + figures.style().encode() + own


def sheet_path(name: str) -> str:
    """Its address, which changes with its content."""
    return f"/static/{name}?v={sha256(sheet(name)).hexdigest()[:12]}"


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


def day(moment: str | None) -> str:
    """The date of an ISO 8601 moment."""
    return NONE if moment is None else moment[:10]


def whole(value: float | None) -> str:
    """`1,234`"""
    return NONE if value is None else f"{value:,.0f}"


def seconds(value: float | None) -> str:
    """`0.42 s`, `12 s`"""
    return NONE if value is None else f"{value:.{0 if value >= 10 else 2}f} s"


def dollars(value: float | None) -> str:
    """`$0.012`, `$3.40`, `$25`"""
    if value is None:
        return NONE
    return f"${value:.0f}" if value >= 10 else f"${value:.2f}" if value >= 1 or not value else f"${value:.2g}"


def breakable(name: str) -> Markup:
    """A name or an id that may be broken after `/` and `_`; what turns the direction of text is shown as its
    code."""
    text = str(escape(safe(name)))  # of a Markup, `replace` would escape the tags as well
    return Markup(text.replace("/", "/<wbr>").replace("_", "_<wbr>"))


def strip(
    found: Metric,
    axis: tuple[float, float] = (0.0, 1.0),
    mark: float | None = None,
    grid: Iterable[float] = (),
) -> Markup:
    """A value with its interval; the tick is the model's clean accuracy."""
    return figures.strip(found.value, found.low, found.high, axis, mark, grid)


def heat(value: float | None) -> str:
    """The class of a heat-map cell: ten steps from 0 to 1."""
    return "none" if value is None else f"h{min(9, max(0, int(value * 10)))}"


def focus_name(focus: str) -> str:
    """`all perturbed rows`, `clean rows`, `the component reward`, `the type CD`."""
    if focus == "perturbed":
        return "all perturbed rows"
    if focus == taxonomy.CLEAN:
        return "clean rows"
    if focus in LEVELS:
        return f"the level {focus}"
    return f"the component {focus}" if focus in taxonomy.COMPONENTS else f"the type {focus}"


def label(board: Board) -> str:
    """`version 1.0.0 (cc827666)`, or the paper's."""
    if board.version == PAPER:
        return "the paper's 21 models"
    return f"version {board.dataset_version} ({(board.fingerprint or '')[:8]})"


def not_behind(row: Row) -> bool:
    """Not significantly behind the leader, and not the leader."""
    return row.p_leader is not None and row.p_leader >= LEVEL


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
    elsewhere: Sequence[tuple[Board, Row]] = (),
    samples: bool = False,
    cleared: Mapping[str, Decision] = MappingProxyType({}),
) -> str:
    """Everything about one submission or one of the paper's models. `cleared`: flags that count no more."""
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
        elsewhere=elsewhere,
        samples=samples,
        verification=verification,
        flags=[*entry.flags, *(board.copies[one] for one in (row.id,) if one in board.copies)],
        cleared=cleared,
        submission=submission,
        against=against,
        differences=differences,
        others=_others(row, board, against),
        hardest=hardest(entry),
        label=label,
        not_behind=not_behind,
        sure_gains=sure_gains,
        spelled=packs.typeset,
    )


OTHERS = 100
"""Models that a model's page offers to stand beside it: the first ones of its board."""


def _others(row: Row, board: Board, against: Row | None) -> list[Row]:
    found = [one for one in board.rows[: OTHERS + 1] if one.id != row.id][:OTHERS]
    return found if against is None or against in found else [*found, against]


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
    live: LiveEntry | None = None,
) -> str:
    """The answer to an upload as a piece of HTML for the submit page."""
    return render(
        "report.html.j2",
        checks=steps,
        submission=submission,
        entry=entry,
        claims=claims,
        live=live,
        live_says=live_flags.says,
        **SPELLED,
    )


def listed(submission: Submission) -> str:
    """What the submit page says once a submission is listed."""
    return render("listed.html.j2", submission=submission)


def refused(says: str) -> str:
    """What the submit page says where a submission is not listed."""
    return render("refused.html.j2", says=says)


def header(here: str) -> str:
    """The head of the gradio page, the same as that of the others."""
    return render("header.html.j2", here=here)
