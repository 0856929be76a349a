"""What the pages show of rows, as texts: columns of the boards, the sentence above them, facts of a run."""

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from robustbench_tc import taxonomy
from robustbench_tc.eval import figures
from robustbench_tc.eval.live.report import false_success, mean
from robustbench_tc.eval.stats.blind import BlindLine
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.live import Line
from robustbench_tc.io import numbers
from robustbench_tc.safe_text import safe

from .boards import HEAD, PAPER, Board, Row, defended
from .entry import Figures, Usage

TIERS = {
    "published": "counts printed in the paper",
    "reproduced": "a maintainer repeated the run",
    "endpoint-matched": "an endpoint that the submitter offers gives these answers, also to rows that nobody had "
    "seen; it proves the endpoint, not the model",
    "unverified": "answers scored here, the run itself not repeated",
}
"""Tier → what it means."""

MODES = {"prompt": "prompt", "fc": "function calling", "api": "function calling (API)"}


class Cell(NamedTuple):
    """A value as people read it."""

    text: str
    small: str = ""
    """Stands below it."""
    span: str = ""
    """Its interval, which stands there on demand."""


class Column(NamedTuple):
    """One column of a board, behind rank and model."""

    name: str
    meaning: str
    of: Callable[[Row], Cell]
    choice: bool = False
    """Whether it has few values, of which one can be chosen."""
    reference: str = ""
    """The line of `needs no reading` that stands under it."""


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


def share(found: Interval | None, small: str = "") -> Cell:
    """A share with its interval."""
    if found is None:
        return Cell(numbers.NONE)
    return Cell(numbers.number(found.value), small, numbers.interval(found))


def _typeset(cell: Cell) -> Cell:
    return Cell(cell.text, numbers.typeset(cell.small), numbers.typeset(cell.span))


def _component(name: str) -> Callable[[Row], Cell]:
    def cell(row: Row) -> Cell:
        delta = row.value(f"delta_{name}")
        return _typeset(
            share(row.value(f"accuracy_{name}"), f"Δ {numbers.signed(delta.value)}" if delta else "")
        )

    return cell


def _drop(row: Row) -> Cell:
    clean, perturbed = row.value(taxonomy.CLEAN), row.value("perturbed")
    if clean is None or perturbed is None:
        return Cell(numbers.NONE)
    return Cell(numbers.typeset(numbers.signed(clean.value - perturbed.value)))


def _tier(row: Row) -> Cell:
    return Cell(row.tier, ", ".join(flag.code for flag in row.flags))


_COMMON = (
    Column("Tier", "How far a run is vouched for, and its flags: see below.", _tier, True),
    Column(
        "Weights",
        "As the submitter states it.",
        lambda row: Cell(row.entry.submission.weights or numbers.NONE),
        True,
    ),
    Column(
        "Params",
        "Billions of parameters, as stated by the submitter.",
        lambda row: Cell(numbers.size(row.entry.submission.params_b)),
    ),
    Column(
        "Mode",
        "How tools are offered: in the prompt, or by native function calling.",
        lambda row: Cell(row.entry.mode or numbers.NONE),
        True,
    ),
    Column("Date", "When it was submitted.", lambda row: Cell(row.day or numbers.NONE)),
)

ROWS = (
    # The column "delivered" comes second, once a run says what reached its user.
    Column(
        "Perturbed",
        "Right answers among all perturbed rows, each counting once. The board is ranked by it.",
        lambda row: share(row.head),
        reference="perturbed",
    ),
    Column(
        "Clean",
        "Right answers among the clean rows.",
        lambda row: share(row.value(taxonomy.CLEAN)),
        reference=taxonomy.CLEAN,
    ),
    Column("Drop", "Clean minus perturbed: what the perturbations cost. Positive is a loss.", _drop),
    Column(
        "Retention",
        "1 − mean(Δ observation, Δ action, Δ reward) / clean: the share of clean accuracy that is kept.",
        lambda row: share(row.value("retention")),
    ),
    *(
        Column(
            name.capitalize(),
            f"Accuracy where {what}. Δ is clean accuracy minus it: positive is a loss.",
            _component(name),
            reference=name,
        )
        for name, what in {
            "observation": "the text is changed: typing errors and paraphrases",
            "action": "the tool list is changed: duplicate names and redundant tools",
            "reward": "cost or response time should decide and a name misleads",
            "transition": "the first call meets an error while the tool runs",
        }.items()
    ),
    *_COMMON,
)
"""The columns of runs over rows."""


def _of_line(make: Callable[[Line], Cell]) -> Callable[[Row], Cell]:
    """The cell of the line that sums up a live run."""

    def cell(row: Row) -> Cell:
        lines = row.entry.live.lines if row.entry.live else ()
        found = next((line for line in lines if line.name == HEAD["live"]), None)
        return Cell(numbers.NONE) if found is None else _typeset(make(found))

    return cell


LIVE = (
    Column(
        "Success",
        "Faulted episodes whose world ended as gold's, or as gold's after a registered repair. The board is "
        "ranked by it.",
        lambda row: share(row.head),
    ),
    Column("Clean", "Success of the episodes without a fault.", lambda row: share(row.value(taxonomy.CLEAN))),
    Column(
        "Δ",
        "Success of the clean episodes of the same tasks minus that with the fault: positive is a loss.",
        _of_line(
            lambda one: Cell(
                numbers.typeset(numbers.signed(one.delta.value)), span=numbers.interval(one.delta, sign=True)
            )
        ),
    ),
    Column(
        "Recovered",
        "Of the episodes that met the fault: those in which each turn that met it ended with gold's world.",
        _of_line(lambda one: share(one.recovery, f"of {one.met}")),
    ),
    Column(
        "Honest",
        "Episodes that ended because the agent told the user of the failure.",
        _of_line(lambda one: Cell(str(one.honest))),
    ),
    Column(
        "Silent",
        "Wrong worlds in which the episode ended as if all were well.",
        _of_line(lambda one: Cell(str(one.silent))),
    ),
    Column(
        "False success",
        "Of the silent failures: those whose last words claim success, up to those where they claim it or are "
        "unclear.",
        _of_line(lambda one: Cell(false_success(one))),
    ),
    Column(
        "Calls",
        "Mean calls beyond those of the same task's clean episode.",
        _of_line(lambda one: Cell(mean(one.extra_steps) or numbers.NONE)),
    ),
    *_COMMON,
)
"""The columns of live runs."""


def columns(board: Board) -> tuple[Column, ...]:
    return LIVE if board.kind == "live" else ROWS


def line(row: Row) -> ShownRow:
    """A row of a board as it is shown."""
    places = row.places
    return ShownRow(
        rank=str(row.rank) if row.rank else numbers.NONE,
        places="" if places is None else "–".join(map(str, dict.fromkeys(places))),
        model=safe(row.entry.submission.model),
        page=page_of(row),
        by=by(row),
        mark=f"≈ leader, p = {numbers.p_value(row.p_leader)}" if row.not_behind else "",
        cells=tuple(column.of(row) for column in (LIVE if row.entry.kind == "live" else ROWS)),
    )


def reference(found: BlindLine) -> list[str]:
    """The cells of a line that needs no reading."""
    return [numbers.number(found.heads.get(column.reference)) for column in ROWS]


def path_of(row: Row) -> str:
    """The file of a run's page."""
    return f"{row.run}.html" if row.tier == "published" else f"model/{row.run}.html"


def page_of(row: Row) -> str:
    """The address of a run's page from the site's root."""
    return quote(path_of(row))


def by(row: Row) -> str:
    """Who stands behind a run, and what it ran behind. An organisation's name is believed of its members."""
    entry = row.entry
    org = entry.run.partition("/")[0]
    who = "the paper" if row.tier == "published" else org
    if entry.submitter is not None and not entry.member:
        who = f"submitted by {entry.submitter}"
    parts = (who, entry.submission.agent, defended(row.entry) and f"behind {defended(row.entry)}")
    return safe(" · ".join(filter(None, parts)))


def label(board: Board) -> str:
    """`version 1.0.0 (cc827666)`"""
    if board.fingerprint == PAPER:
        return "the paper's own rows"
    return safe(f"version {board.version} ({board.fingerprint[:8]})")


def leading(board: Board) -> tuple[str, str]:
    """Who leads and by how much, and how sure that is: two sentences."""
    placed = board.ranked
    if not placed or placed[0].head is None:
        n = len(board.rows)
        none = "No run has a rank yet: nobody has vouched for one."
        return none, f"{n:,} {'run stands' if n == 1 else 'runs stand'} below without one." if n else ""
    first, said = placed[0], "of the faulted episodes" if board.kind == "live" else "of the perturbed rows"
    found = share(first.head)
    says = f"{safe(first.entry.submission.model)} leads: {found.text} {found.span} {said} right"
    if len(placed) == 1 or placed[1].head is None:
        return f"{says}.", "It is the only run with a rank."
    second = placed[1]
    ahead = numbers.number(first.head.value - second.head.value)
    says += f", {ahead} ahead of {safe(second.entry.submission.model)}."
    if second.p_leader is None:
        return says, ""
    near = sum(row.not_behind for row in placed)
    if not near:
        p = numbers.p_value(max(row.p_leader or 0.0 for row in placed[1:]))
        return says, f"That is surely so: no exact test of “as good as the leader” gives more than p = {p}."
    are = "run is" if near == 1 else "runs are"
    return says, f"That is not sure: {near} other {are} not significantly behind it (≈ leader)."


def facts(row: Row, ranked: int) -> list[tuple[str, str]]:
    """What is stated of a run and what it took: (name, value), without what nobody says."""
    entry, stated = row.entry, row.entry.submission
    usage = Usage() if entry.core is None else entry.core.usage
    cost = entry.core.cost if entry.core else None
    tokens, price = (usage.prompt_tokens, usage.completion_tokens), (stated.price_in, stated.price_out)
    paid = [n * usd for n, usd in zip(tokens, price, strict=True) if n is not None and usd is not None]
    places = row.places
    found = {
        "Rank": row.rank and f"{row.rank} of {ranked}",
        "May rank": places and "–".join(map(str, dict.fromkeys(places))),
        "Against the leader": row.p_leader is not None and f"p = {numbers.p_value(row.p_leader)}",
        "Mode": MODES.get(entry.mode, entry.mode),
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
        "Requests a row": cost and cost.requests_per_row and numbers.number(cost.requests_per_row, 2),
        "Tokens a right answer": cost and cost.tokens_per_right and f"{cost.tokens_per_right:,.0f}",
    }
    return [(name, str(value)) for name, value in found.items() if value]


def heatmap(found: Figures) -> Markup:
    """Accuracy under clean and every type, as a row of coloured cells."""
    values = {code: line.accuracy for code, line in found.types.items()}
    groups: dict[str, dict[str, str]] = {"": {taxonomy.CLEAN: "clean"}}
    for one in taxonomy.among(values):
        groups.setdefault(one.component or "others", {})[one.code] = one.display_name
    rows = [figures.Row("accuracy", {taxonomy.CLEAN: found.metrics.get(taxonomy.CLEAN), **values})]
    return figures.heatmap(rows, groups, "accuracy by type, in percent")
