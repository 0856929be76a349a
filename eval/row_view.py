"""A row of a release as a person reads it: the clean row, and what each perturbation changed in it."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from robustbench_tc import sources, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.io.parquet import read_rows, shards
from robustbench_tc.schema import Json, Sample, Tool, dumps, record
from robustbench_tc.shown import Line, Part

MOST = 250_000
"""Words on one side times words on the other that are compared one by one; longer ones differ as a whole."""


class RowView(NamedTuple):
    """The rows of one sample: the clean one first, where the release has it."""

    rows: list[Sample]

    def json(self) -> list[Sample]:
        """The rows."""
        return self.rows

    def shown(self) -> Iterator[Part]:
        """The clean row whole, of the others what differs."""
        for row in self.rows:
            yield from _clean(row) if row.type_code == taxonomy.CLEAN else _changes(row)


def split(wanted: str) -> tuple[str, str]:
    """The clean_id of an id and its type code, "" where it names none."""
    clean_id, separator, code = wanted.rpartition("::")
    return (clean_id, code) if separator else (code, "")


def one_of(wanted: str, ids: Iterable[str], place: object) -> str:
    """The id that is `wanted`, or the only one that begins so. Raises UserError with near misses."""
    known = list(dict.fromkeys(ids))
    found = [one for one in known if one == wanted] or [one for one in known if one.startswith(wanted)]
    if not found:
        near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.3)
        hint = (
            f"did you mean {' or '.join(near)}?" if near else f"try a prefix such as {sources.names()[0]}__"
        )
        raise UserError(f"{place} has no {wanted!r}: {hint}")
    if len(found) > 1:
        raise UserError(
            f"{wanted!r} fits {len(found)} ids of {place}, first {found[0]!r} and {found[1]!r}: say more"
        )
    return found[0]


def find(release: Path, wanted: str) -> RowView:
    """The rows that `wanted` means: an id, a clean_id, or a unique prefix of one, possibly with ::TYPE.

    Raises UserError where nothing or several clean ids fit, and where the release has no such row.
    """
    codes = taxonomy.configs(release)
    if not codes:
        raise UserError(f"{release} holds no release, no run and no live run: build one with rbtc build")
    clean_id, code = split(wanted)
    if code:
        code = taxonomy.find_in({taxonomy.CLEAN, *codes}, code, "type of this release")
        codes = tuple(dict.fromkeys((taxonomy.CLEAN, code)))
    clean = read_rows(shards(release / taxonomy.CLEAN), ["clean_id"])
    clean_id = one_of(clean_id, (row["clean_id"] for row in clean), release)
    rows = [
        record(row, Sample)
        for name in codes
        for row in read_rows(shards(release / name))
        if row["clean_id"] == clean_id
    ]
    if code and code not in {row.type_code for row in rows}:
        raise UserError(f"{clean_id} has no row of type {code}: build_report.json says why it was skipped")
    return RowView(rows)


def _clean(row: Sample) -> Iterator[Part]:
    yield Line(row.clean_id, "bold")
    yield f"{row.source}, category {row.category}, asks for {row.output_format}"
    for message in row.messages:
        yield Line(f"{message.role}: {message.content}")
    for index, tool in enumerate(row.tools):
        mark = "*" if index == row.gold_tool_index else " "
        yield Line(f"{mark} {described(tool)}", "green")
    for answer in row.golden_answers:
        yield Line(f"gold: {'; '.join(f'{call.name} {dumps(call.parameters)}' for call in answer)}")


def _changes(row: Sample) -> Iterator[Part]:
    yield Line(f"\n{taxonomy.named(row.type_code)} ({row.component}, {row.generator})", "bold")
    if row.injected_error:
        yield Line(f"the first call is answered with: {row.injected_error}")
    for change in row.changes:
        where = change.path + (f" at {change.at}" if change.at is not None else "")
        if isinstance(change.before, str) and isinstance(change.after, str):
            found = pieces(change.before, change.after)
            marked = "".join(f"{_MARKS[kind].format(text[:-1])} " for kind, text in found)
            yield Line(f"{where}: {marked}")
            continue
        yield Line(where, "cyan")
        for sign, value, style in (("-", change.before, "red"), ("+", change.after, "green")):
            if value is not None:
                yield Line(f"  {sign} {_readable(value)}", style)
    yield from (Line(f"flag: {flag}", "yellow") for flag in row.flags)


def _readable(value: Json) -> str:
    """A tool as its signature and description, names as a list, anything else as JSON."""
    if isinstance(value, dict) and {"name", "parameters"} <= value.keys():
        return described(msgspec.convert(value, Tool))
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return dumps(value)


def described(tool: Tool) -> str:
    """`name(required, optional?)  what it does`"""
    names = (name + ("" if name in tool.required else "?") for name in tool.properties)
    return f"{tool.name}({', '.join(names)})  {tool.description}"


_MARKS = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
"""How a stretch of text is marked that both texts have, or one of them."""


def pieces(before: str, after: str) -> list[tuple[str, str]]:
    """Both texts in one, word by word, each stretch `same`, `removed` or `added`: without what was added they
    give `before`, without what was removed `after`, but for a space at the end."""
    left, right = before.split(" "), after.split(" ")
    start = _common(left, right)
    end = _common(left[start:][::-1], right[start:][::-1])
    mine, theirs = left[start : len(left) - end], right[start : len(right) - end]
    codes = [("replace", 0, len(mine), 0, len(theirs))]
    if len(mine) * len(theirs) <= MOST:
        codes = [*difflib.SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes()]
    found = [("same", left[:start])]
    for tag, a, b, c, d in codes:
        found += [("same", mine[a:b])] if tag == "equal" else [("removed", mine[a:b]), ("added", theirs[c:d])]
    found.append(("same", left[len(left) - end :]))
    return [(kind, " ".join(words) + " ") for kind, words in found if words]


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = zip(left, right, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))
