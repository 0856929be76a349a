"""What the pages show of rows: columns of the boards, the sentence above them, facts of a run, drawings."""

import math
from itertools import accumulate
from typing import NamedTuple

from markupsafe import Markup

from robustbench_tc import taxonomy
from robustbench_tc.eval.report import figures
from robustbench_tc.eval.stats.caveats import SERVER
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.packs.live import beyond
from robustbench_tc.io import numbers
from robustbench_tc.safe_text import safe
from robustbench_tc.schema import dataset_label

from .boards import HEAD, PAPER, Board, Row, defended
from .entry import Entry, Figures, Usage

TIERS = {
    "published": "counts printed in the paper",
    "reproduced": "a maintainer repeated the run",
    "endpoint-matched": "the submitter's endpoint gives these answers, also to rows that nobody had "
    "seen; this verifies the endpoint, not the model",
    "unverified": "answers were scored here, but the run was not repeated",
}
"""Tier → what it means."""

NAME = 26
"""Letters of the best model's name, which stands at the end of the line."""


class Cell(NamedTuple):
    """A value as people read it."""

    text: str
    small: str = ""
    """Stands below it."""
    span: str = ""
    """Its interval, which stands there on demand."""


class ShownRow(NamedTuple):
    """One row of a board as it is shown, by the template and by the script: everything is text."""

    rank: str
    places: str
    model: str
    page: str
    by: str
    mark: str
    """`≈ leader` with its p."""
    cells: tuple[Cell, ...]


_COMMON = {
    "Tier": "Verification tier and flags of the run; see below.",
    "Weights": "As the submitter states it.",
    "Params": "Billions of parameters, as stated by the submitter.",
    "Mode": "How tools are offered: in the prompt, or by native function calling.",
    "Date": "When it was submitted.",
}

CHOICES = ("Tier", "Weights", "Mode")
"""Columns with few values, of which one can be chosen."""

_ROWS = {
    "Perturbed": "Right answers among all perturbed rows, each counting once. The board is ranked by it.",
    "Delivered": "In fc mode: right answers among all rows whose calls a client got from the server, beside "
    "those that the model meant. Marked server where more than 5 points are lost on the way.",
    "Clean": "Right answers among the clean rows.",
    "Drop": "Clean minus perturbed: what the perturbations cost. Positive is a loss.",
    "Retention": "1 − mean(Δ observation, Δ action, Δ reward) / clean: the share of clean accuracy that is "
    "kept.",
    "Observation": "Accuracy when the text is changed: typos and paraphrases. Δ is clean accuracy "
    "minus it: positive is a loss.",
    "Action": "Accuracy when the tool list is changed: duplicate names and redundant tools. Δ is clean "
    "accuracy minus it: positive is a loss.",
    "Reward": "Accuracy when cost or response time should decide and a name misleads. Δ is clean accuracy "
    "minus it: positive is a loss.",
    "Transition": "Accuracy when the first call returns an error. Δ is clean accuracy "
    "minus it: positive is a loss.",
    **_COMMON,
}

_LIVE = {
    "Success": "Faulted episodes whose world ended as gold's, or as gold's after a registered repair. The "
    "board is ranked by it.",
    "Clean": "Success of the episodes without a fault.",
    "Δ": "Success of the clean episodes of the same tasks minus that with the fault: positive is a loss.",
    "Recovered": "Of the episodes that met the fault: those in which each turn that met it ended with "
    "gold's world.",
    "Honest": "Episodes in which the agent ended by telling the user of the failure.",
    "Silent": "Episodes with a wrong final world that ended as if all were well.",
    "False success": "Of the silent failures: those whose last words claim success, up to those where they "
    "claim it or are unclear.",
    "Calls": "Mean calls beyond those of the same task's clean episode.",
    **_COMMON,
}

COLUMNS = {"core": _ROWS, "own": _ROWS, "live": _LIVE}
"""Kind → column behind rank and model → its meaning. A line of `needs no reading` stands under those whose
names are its own."""


def share(found: Interval | None, small: str = "", *, sign: bool = False) -> Cell:
    """A share or a difference with its interval."""
    if found is None:
        return Cell(numbers.NONE, small)
    return Cell(
        numbers.typeset(numbers.number(found.value, sign=sign)),
        numbers.typeset(small),
        numbers.typeset(numbers.interval(found, sign=sign)),
    )


def cells(row: Row) -> tuple[Cell, ...]:
    """The values of a row, column by column."""
    entry, clean = row.entry, row.values["clean"]
    common = (
        Cell(row.tier, ", ".join(flag.code for flag in row.flags)),
        Cell(entry.submission.weights or numbers.NONE),
        Cell(numbers.size(entry.submission.params_b)),
        Cell(safe(entry.mode) or numbers.NONE),
        Cell(row.day or numbers.NONE),
    )
    if entry.live is None:
        drop = None if clean is None or row.head is None else clean.value - row.head.value
        return (
            share(row.head),
            _delivered(entry),
            share(clean),
            Cell(numbers.typeset(numbers.signed(drop))),
            share(row.values.get("retention")),
            *(
                share(
                    row.values.get(f"accuracy_{name}"),
                    f"Δ {numbers.signed(delta.value)}" if (delta := row.values.get(f"delta_{name}")) else "",
                )
                for name in taxonomy.COMPONENTS
            ),
            *common,
        )
    line = next(one for one in entry.live.lines if f"success_{one.name}" == HEAD["live"])
    return (
        share(row.head),
        share(clean),
        share(line.delta, sign=True),
        share(line.recovery, f"of {line.met}"),
        Cell(str(line.honest)),
        Cell(str(line.silent)),
        Cell(line.claimed),
        Cell(beyond(line.extra_steps) or numbers.NONE),
        *common,
    )


def _delivered(entry: Entry) -> Cell:
    got = entry.core.delivery if entry.core else None
    if got is None:
        return Cell(numbers.NONE)
    small = f"of {numbers.number(got.meant)} meant"
    if got.meant - got.delivered > SERVER:
        small = f"server, {small}"
    return Cell(numbers.typeset(numbers.number(got.delivered)), numbers.typeset(small))


def shown(row: Row) -> ShownRow:
    """A row of a board as it is shown."""
    return ShownRow(
        rank=str(row.rank) if row.rank else numbers.NONE,
        places=_places(row),
        model=safe(row.entry.submission.model),
        page=page_of(row),
        by=by(row),
        mark=f"≈ leader, p = {numbers.p_value(row.p_leader)}" if row.not_behind else "",
        cells=cells(row),
    )


def _places(row: Row) -> str:
    return "–".join(map(str, dict.fromkeys(row.places or ())))


def page_of(row: Row) -> str:
    """The file of a run's page, and its address from the site's root: an id has no letter to be quoted."""
    return f"{row.run}.html" if row.tier == "published" else f"model/{row.run}.html"


def by(row: Row) -> str:
    """Who stands behind a run, and what it ran behind. An organisation's name is believed of its members."""
    entry, behind = row.entry, defended(row.entry)
    who = "the paper" if row.tier == "published" else entry.run.partition("/")[0]
    if entry.submitter is not None and not entry.member:
        who = f"submitted by {entry.submitter}"
    return safe(" · ".join(filter(None, (who, entry.submission.agent, behind and f"behind {behind}"))))


def label(board: Board) -> str:
    """`1.0.0 (cc827666)`; of a build the fingerprint alone."""
    if board.fingerprint == PAPER:
        return "the paper's own rows"
    return safe(dataset_label(board.version, board.fingerprint))


def title(board: Board) -> str:
    """A board's heading."""
    of = {"live": "Live dataset", "own": safe(board.dataset), "core": "Dataset"}
    return "The paper's 21 models" if board.fingerprint == PAPER else f"{of[board.kind]}, {label(board)}"


def leading(board: Board) -> tuple[str, str]:
    """Who leads and by how much, and how sure that is: two sentences."""
    placed = board.ranked
    values = [row.head.value for row in placed if row.head is not None]
    if not values:
        return "No run has a rank yet, because none has been verified.", ""
    names = [safe(row.entry.submission.model) for row in placed[:2]]
    first, what = share(placed[0].head), "faulted episodes" if board.kind == "live" else "perturbed rows"
    leads = f"{names[0]} leads: {first.text} {first.span} of the {what} right"
    if len(values) == 1:
        return f"{leads}.", "It is the only run with a rank."
    near = sum(row.not_behind for row in placed)
    if board.kind == "live":
        surely = "Live runs are not tested against each other."
    elif near:
        surely = f"The lead is not significant: {near:,} others are not significantly behind it (≈ leader)."
    elif placed[0].places and placed[0].places.last == 1:
        surely = (
            "The lead is significant in the exact tests against every other run, corrected for all pairs."
        )
    else:
        surely = (
            "The lead is likely: significant in the exact test against each other run, before correction."
        )
    return f"{leads}, {numbers.number(values[0] - values[1])} ahead of {names[1]}.", surely


def facts(row: Row, ranked: int) -> list[tuple[str, str]]:
    """What is stated of a run and what it took: (name, value), without what nobody says."""
    entry, stated = row.entry, row.entry.submission
    usage = Usage() if entry.core is None else entry.core.usage
    tokens, price = (usage.prompt_tokens, usage.completion_tokens), (stated.price_in, stated.price_out)
    paid = [n * usd for n, usd in zip(tokens, price, strict=True) if n is not None and usd is not None]
    found = {
        "Finding": entry.core and entry.core.sentence,
        "Rank": row.rank and f"{row.rank} of {ranked}",
        "May rank": _places(row),
        "Against the leader": row.p_leader is not None and f"p = {numbers.p_value(row.p_leader)}",
        "Mode": {"fc": "function calling", "api": "function calling (API)"}.get(entry.mode, entry.mode),
        "Submitted": row.day,
        "Parameters": stated.params_b is not None and numbers.size(stated.params_b),
        "Weights": stated.weights,
        "Licence": stated.licence,
        "Card": stated.card,
        "Agent": stated.agent,
        "Contact": stated.contact,
        "Note": stated.note,
        "Episodes": entry.live and f"{entry.live.episodes:,}",
        "Tokens a row": None not in tokens and f"{sum(n or 0.0 for n in tokens):,.0f}",
        "Seconds a row, median": usage.latency_s is not None and numbers.number(usage.latency_s, 2),
        "US dollars for 1,000 rows": len(paid) == 2 and numbers.number(sum(paid) / 1000, 2),
    }
    return [(name, str(value)) for name, value in found.items() if value]


def heatmap(found: Figures) -> Markup:
    """Accuracy under clean and every type, as a row of coloured cells."""
    values: dict[str, Interval | None] = {code: line.accuracy for code, line in found.types.items()}
    groups: dict[str, dict[str, str]] = {"": {taxonomy.CLEAN: "clean"}}
    for one in taxonomy.among(values):
        groups.setdefault(one.component or "", {})[one.code] = taxonomy.named(one.code)
    values[taxonomy.CLEAN] = found.metrics[taxonomy.CLEAN]
    return figures.heatmap([("accuracy", values)], groups, "accuracy by type, in percent")


def progress(board: Board) -> Markup:
    """Accuracy over time with a step line of the best so far; empty where no run is vouched for."""
    there = sorted(
        (row for row in (*board.rows, *board.past) if row.may_rank and row.head is not None),
        key=lambda row: (row.day, row.run),
    )
    values = [row.head.value for row in there if row.head is not None]
    if not values:
        return Markup("")
    # As numbers of years; a day of a run's id need not be one of the calendar's.
    days = [int(row.day[:4]) + int(row.day[5:7]) / 12 + int(row.day[8:]) / 372 for row in there]
    best = [-1.0, *accumulate(values, max)]
    leading = [at for at, value in enumerate(values) if value > best[at]]
    steps = [(days[at], level) for at in leading for level in (max(best[at], values[leading[0]]), values[at])]
    tenths = range(math.floor(10 * min(values)), max(math.ceil(10 * best[-1]), 1) + 1)
    x = figures.Axis(days[0], days[-1], {days[at]: there[at].day for at in (0, -1)})
    y = figures.Axis(tenths[0] / 10, tenths[-1] / 10, {t / 10: numbers.number(t / 10, 1) for t in tenths})
    dots = [
        figures.Dot(
            days[at],
            values[at],
            "ours" if at in leading else "past",
            f"{safe(there[at].entry.submission.model)}, {there[at].day}: {numbers.number(values[at])}",
        )
        for at in range(len(there))
    ]
    return figures.chart(
        x,
        y,
        dots,
        [
            figures.Path(
                [*steps, (days[-1], best[-1])], "ours", safe(there[leading[-1]].entry.submission.model)[:NAME]
            )
        ],
        "perturbed accuracy of every run that is vouched for over time, and the best so far as a line",
        size=(900, 260),
        right=200,
        kind="progress",
    )


GREY = "#5c6670"
_COLOURS: dict[str, str] = {"published": "#0a5bd3", "reproduced": "#0b7a3b", "endpoint-matched": "#0f6f78"}


def badge(row: Row) -> str:
    """The words of its badge. A defended run's has no figure: it would be read as the model's."""
    if defended(row.entry):
        return "defended run, no rank"
    name = "success with faults" if row.entry.kind == "live" else "perturbed"
    unsure = ", inconclusive" if inconclusive(row) else ""
    return f"{name} {share(row.head).text}{unsure} · {row.tier}{', flagged' if row.flags else ''}"


def inconclusive(row: Row) -> bool:
    """Whether the run is too small to say of its perturbed rows that it holds or loses."""
    return row.entry.core is not None and row.entry.core.words.get("perturbed") == "cannot tell"


def colour(row: Row) -> str:
    """Of its badge: the tier's, grey where the run is inconclusive."""
    return _COLOURS.get("" if inconclusive(row) else row.tier, GREY)
