"""The page of up to six models beside one another."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from robustbench_tc import taxonomy

from . import board_page, pages
from .board import TESTED, Board
from .compare import pairs, splits
from .query import LONGEST, Query
from .row import CONDITIONS, Row
from .sample_pages import COMPARED, Wanted, link, several
from .samples import Rows

CANDIDATES = 20
"""Models that the search shows."""


def chosen(parameters: Sequence[tuple[str, str]]) -> str:
    """The ids of an address, commas between them: those of `ids`, then every `id` (the board's boxes)."""
    listed = [one for name, value in parameters if name == "ids" for one in value.split(",")]
    listed += [value for name, value in parameters if name == "id"]
    return ",".join(
        dict.fromkeys(one.strip()[: 2 * LONGEST] for one in listed[: 8 * COMPARED] if one.strip())
    )


def compare_page(
    ids: str,
    parameters: Mapping[str, str],
    board: Board,
    rows: Rows | None,
    default: str,
    notes: Sequence[str],
) -> str:
    """`rows`: of the board's dataset, where it is at hand: only then samples can be opened."""
    models = several(board, ids)
    focus = parameters.get("focus", "")
    if focus and focus not in TESTED:
        notes = (*notes, f"Not understood and left out of the address: focus={focus[:LONGEST]}")
    focus = focus if focus in TESTED else TESTED[0]
    words = parameters.get("q", "").strip()[:LONGEST]
    fitting = _fitting(board, models, words) if words or not models else []
    here = ",".join(one.id for one in models)
    found = splits(models, rows) if rows is not None else []
    axis = board_page.axis_of(
        one.figures.accuracy(name)
        for one in models
        for name in ("perturbed", taxonomy.CLEAN, *taxonomy.COMPONENTS)
    )
    return pages.render(
        "compare.html.j2",
        title="Compare",
        here="board",
        board=board,
        default=default,
        query=Query(version=board.version),
        models=models,
        ids=here,
        most=COMPARED,
        notes=notes,
        asked=words,
        candidates=fitting[:CANDIDATES],
        left=max(0, len(fitting) - CANDIDATES),
        with_one=lambda one: _address([*models, one]),
        without=lambda one: _address([other for other in models if other.id != one.id], board.version),
        axis=(axis.low, axis.high),
        focus=focus,
        focuses=TESTED,
        pairs=pairs(models, focus) if len(models) > 1 else [],
        conditions=CONDITIONS,
        splits={one.type_code: one for one in found},
        rows_here=rows is not None,
        rows_between=lambda a, b: link(
            "/samples",
            Wanted(version=board.version, type=focus if focus in CONDITIONS else "all", a=a.id, b=b.id),
        ),
        rows_differ=lambda code: link(
            "/samples", Wanted(version=board.version, type=code, ids=here, differ="1")
        ),
        label=pages.label,
    )


def _fitting(board: Board, models: Sequence[Row], words: str) -> list[Row]:
    there = {one.id for one in models}
    wanted = words.casefold().split()
    return [
        row
        for row in board.rows
        if row.id not in there
        and all(word in f"{row.model} {row.family} {row.user or ''}".casefold() for word in wanted)
    ]


def _address(models: Sequence[Row], version: str = "") -> str:
    if not models:
        return f"/compare?{urlencode({'version': version})}"
    return f"/compare?{urlencode({'ids': ','.join(one.id for one in models)})}"
