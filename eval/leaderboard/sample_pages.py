"""The pages of single rows: the list with its filters, and one row with what every model answered."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

import robustbench_tc
from robustbench_tc import taxonomy
from robustbench_tc.eval import changed
from robustbench_tc.eval.report.pool import ROW_TEXT, cut
from robustbench_tc.eval.report.samples import gold_said
from robustbench_tc.schema import Message, Sample, Tool, dumps

from . import pages, samples
from .board import Board
from .query import LONGEST
from .row import Row
from .samples import Rows, Tally

LINES = 50
"""Rows of a page of the list."""

MODELS = 20
"""Models of a row's page."""

COMPARED = 6
"""Models that are set beside one another, at most."""

TOOLS = 60
"""Tools of a row that are shown."""

SHARES: dict[str, tuple[str, Callable[[int], tuple[int, int]]]] = {
    "nobody": ("nobody", lambda n: (0, 0)),
    "few": ("up to a quarter", lambda n: (1, n // 4)),
    "some": ("a quarter to three", lambda n: (n // 4 + 1, n - n // 4 - 1)),
    "most": ("three quarters or more", lambda n: (n - n // 4, n - 1)),
    "all": ("everybody", lambda n: (n, n)),
}
"""A filter of the list → its words, and from and to how many of n models are right."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What an address asks for. Defaults are left out of addresses."""

    version: str = ""
    q: str = ""
    source: str = ""
    type: str = ""
    """A type's code, `all` for every row; empty: the clean rows."""
    right: str = ""
    """A key of SHARES."""
    a: str = ""
    """Rows on which this model is right"""
    b: str = ""
    """and this one is not."""
    ids: str = ""
    """Models whose verdicts stand in the list, and to which a row's page keeps; commas between them."""
    differ: str = ""
    """`1`: rows on which these are not all right or all wrong."""
    verdict: str = ""
    """`right` or `wrong`: the models of a row's page."""
    repeat: int = 0
    page: int = 1


def parse(parameters: Mapping[str, str]) -> tuple[Wanted, tuple[str, ...]]:
    """What an address asks for, and the parameters that mean nothing: they are left out and named."""
    allowed: dict[str, Sequence[str] | Mapping[str, Any]] = {
        "right": SHARES,
        "differ": ("1",),
        "verdict": ("right", "wrong"),
    }
    found: dict[str, Any] = {}
    ignored = []
    for name in Wanted.__struct_fields__:
        long = name in ("ids", "version", "a", "b")
        value = parameters.get(name, "").strip()[: 8 * LONGEST if long else LONGEST]
        if not value:
            continue
        if name in ("page", "repeat"):
            least = 1 if name == "page" else 0
            if not (value.isascii() and value.isdecimal() and len(value) < 7 and int(value) >= least):
                ignored.append(f"{name}={value}")
                continue
            found[name] = int(value)
        elif name in allowed and value not in allowed[name]:
            ignored.append(f"{name}={value}")
        else:
            found[name] = value
    return Wanted(**found), tuple(ignored)


def link(path: str, wanted: Wanted, **changes: Any) -> str:
    """The address of a view: what is not a default, in a fixed order."""
    values = msgspec.structs.asdict(msgspec.structs.replace(wanted, **changes))
    defaults = msgspec.structs.asdict(Wanted())
    kept = {name: value for name, value in values.items() if value != defaults[name]}
    return f"{path}?{urlencode(kept)}" if kept else path


def sample_path(clean_id: str) -> str:
    """The path of a sample's page. Ids may hold any character."""
    return f"/sample/{quote(clean_id, safe='')}"


class Part(NamedTuple):
    """A page of a longer list."""

    rows: Sequence[Any]
    total: int
    page: int
    size: int

    @property
    def pages(self) -> int:
        return max(1, -(-self.total // self.size))

    @property
    def first(self) -> int:
        return (self.page - 1) * self.size + 1

    @property
    def last(self) -> int:
        return min(self.page * self.size, self.total)


def part(found: Sequence[Any], page: int, size: int) -> Part:
    """A page of what was found; beyond the last one the last."""
    page = min(page, max(1, -(-len(found) // size)))
    return Part(found[(page - 1) * size : page * size], len(found), page, size)


def several(board: Board, ids: str) -> list[Row]:
    """The board's rows of these ids, each once, at most COMPARED."""
    wanted = dict.fromkeys(one for one in ids.split(",") if one)
    found = [row for one in list(wanted)[: 4 * COMPARED] if (row := board.row(one)) is not None]
    return found[:COMPARED]


class Line(NamedTuple):
    """A row in the list."""

    row: Sample
    right: int | None
    marks: Sequence[bool | None]


def samples_page(
    wanted: Wanted,
    ignored: Sequence[str],
    board: Board,
    boards: Sequence[Board],
    rows: Rows,
    counts: Tally,
    default: str,
) -> str:
    """The list of rows."""
    between = _between(wanted, board)
    models = several(board, wanted.ids) or list(between or ())
    code = wanted.type or ("all" if between or wanted.differ else taxonomy.CLEAN)
    if code not in ("all", *rows.types):
        ignored, code = (*ignored, f"type={code}"), "all"
    found = samples.listed(
        rows,
        counts,
        source=wanted.source,
        type_code="" if code == "all" else code,
        bounds=SHARES[wanted.right][1](counts.models) if wanted.right else None,
        words=wanted.q,
        between=between,
    )
    lines = [
        Line(one.row, one.right, [samples.is_right(model, rows, one.row) for model in models])
        for one in found
    ]
    if wanted.differ and models:
        lines = [one for one in lines if True in one.marks and False in one.marks]
    asked = msgspec.structs.replace(wanted, version=board.version, type=code)
    return pages.render(
        "samples.html.j2",
        title=f"Samples, {pages.label(board)}",
        here="samples",
        asked=asked,
        ignored=ignored,
        found=part(lines, wanted.page, LINES),
        models=models,
        between=between,
        board=board,
        boards=boards,
        counted=counts.models,
        default=default,
        sources=[(one, one) for one in rows.sources],
        kinds=[("all", "All"), *((one, one) for one in rows.types)],
        shares=[(key, words) for key, (words, _) in SHARES.items()],
        label=pages.label,
        link=link,
        beginning=_beginning,
        sample_link=lambda row: link(
            sample_path(row.clean_id),
            Wanted(
                version=board.version,
                type="" if row.type_code == taxonomy.CLEAN else row.type_code,
                ids=",".join(one.id for one in models),
            ),
        ),
    )


def _between(wanted: Wanted, board: Board) -> tuple[Row, Row] | None:
    a, b = board.row(wanted.a), board.row(wanted.b)
    return None if a is None or b is None else (a, b)


def _beginning(row: Sample, length: int = 110) -> str:
    """Where its last request begins."""
    said = next((one.content for one in reversed(row.messages) if one.role == "user"), "")
    text = " ".join(said[: 4 * length].split())
    return text if len(text) <= length else text[: length - 1] + "…"


# --- one row ------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """A type of the sample."""

    code: str
    link: str
    right: int | None


class Said(NamedTuple):
    """A message as it is shown."""

    role: str
    content: str
    total: int


class SaidPair(NamedTuple):
    """A message beside the one that has its place; None: there is none."""

    before: Said | None
    after: Said | None


class ShownTool(NamedTuple):
    """A tool as it is shown, or two of them."""

    kind: str
    name: str
    before: str
    after: str
    total: int
    gold: bool


def sample_page(
    row: Sample,
    wanted: Wanted,
    board: Board,
    rows: Rows,
    counts: Tally,
    folder: Callable[[str], Path],
    default: str,
    verdict: Callable[[Row], bool | None],
) -> str:
    """One row: clean beside perturbed, and the replies. `folder`: of a submission. `verdict`: of a board's
    row on this row."""
    clean = rows.row(row.clean_id, taxonomy.CLEAN)
    perturbed = clean is not None and row.type_code != taxonomy.CLEAN
    beside = clean if clean is not None else row
    models = several(board, wanted.ids) or list(board.rows)
    if wanted.verdict:
        models = [one for one in models if verdict(one) is (wanted.verdict == "right")]
    found = part(models, wanted.page, MODELS)
    tools = list(_tools(beside, row)) if perturbed else [_tool("same", None, one, row) for one in row.tools]
    path = sample_path(row.clean_id)
    asked = msgspec.structs.replace(
        wanted, version=board.version, type="" if row.type_code == taxonomy.CLEAN else row.type_code
    )
    return pages.render(
        "sample.html.j2",
        title=row.clean_id,
        here="samples",
        row=row,
        kind=taxonomy.get(row.type_code) if taxonomy.known(row.type_code) else None,
        perturbed=perturbed,
        kinds=[
            Kind(
                code,
                link(path, asked, type="" if code == taxonomy.CLEAN else code, page=1, repeat=0),
                None if (one := rows.row(row.clean_id, code)) is None else counts.of(rows, one),
            )
            for code in rows.types_of(row.clean_id)
        ],
        messages=[
            SaidPair(_said(pair.before), _said(pair.after)) for pair in changed.conversations(beside, row)
        ],
        tools=tools[:TOOLS],
        tools_left=max(0, len(tools) - TOOLS),
        gold=cut(gold_said(row), ROW_TEXT).text,
        gold_clean=cut(gold_said(beside), ROW_TEXT).text if perturbed else None,
        replies=[samples.reply(one, rows, row, folder(one.id), wanted.repeat) for one in found.rows],
        found=found,
        most_repeats=max((one.figures.repeats for one in found.rows), default=1),
        right=counts.of(rows, row),
        counted=counts.models,
        asked=asked,
        here_path=path,
        link=link,
        label=pages.label,
        pieces=changed.pieces,
        board=board,
        default=default,
        package=robustbench_tc.__version__,
    )


def _said(one: Message | None) -> Said | None:
    return None if one is None else Said(one.role, *cut(one.content, ROW_TEXT))


def _tools(clean: Sample, row: Sample) -> list[ShownTool]:
    """What changed first."""
    found = [_tool(pair.kind, pair.before, pair.after, row) for pair in changed.registries(clean, row)]
    return sorted(found, key=lambda one: one.kind == "same")


def _tool(kind: str, before: Tool | None, after: Tool | None, row: Sample) -> ShownTool:
    shown = after or before
    gold = after is not None and row.gold_tool_index is not None and after is row.tools[row.gold_tool_index]
    old, new = (cut("" if one is None else _written(one), ROW_TEXT) for one in (before, after))
    return ShownTool(kind, shown.name if shown is not None else "", *(old.text, new.text), new.total, gold)


def _written(tool: Tool) -> str:
    """A tool as a person reads it: the description, then the schema of its parameters."""
    named = f"{tool.name}\n{tool.description}\n" if tool.description else f"{tool.name}\n"
    return named + msgspec.json.format(dumps(tool.parameters), indent=2)
