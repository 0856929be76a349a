"""Whether the plain columns of a row say what its JSON columns say: the call is read as Python is."""

import ast
import re
from functools import lru_cache
from typing import Any

import msgspec

from robustbench_tc.builders.plain import CLOSING_TURN
from robustbench_tc.schema import ANY, Call, Json, Sample, dumps

_MARK = re.compile(r"""'(?:[^'\\]|\\.)*+(?:'|\\?\Z)|"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[()\[\]{}]""", re.DOTALL)
"""A string as Python writes it, whole or up to the end of the text, or a bracket outside of strings."""


def plain_columns(raw: dict[str, Any], row: Sample) -> None:
    """`query` and `gold_call` of the row as it lies in the file: a user turn of the last user message, whole
    (the last one where the user speaks once), and the first golden answer."""
    query, text = raw.get("query"), raw.get("gold_call")
    assert isinstance(query, str), "there is no query"
    said = next((m.content for m in reversed(row.messages) if m.role == "user"), "")
    turns = [turn.strip() for turn in re.findall(r"(?s)<user>(.*?)</user>", said)]
    if len(turns) > 1 and CLOSING_TURN.search(turns[-1]):
        turns.pop()
    turns = [turn for turn in turns if turn] or [said.strip()]
    assert query in turns, "the query is not one of the user's turns"
    if not row.golden_answers:
        assert text == "", "there is no gold call"
        return
    assert isinstance(text, str), "there is no gold call"
    wrong = _other_calls(text, dumps(row.golden_answers[0]))
    assert not wrong, wrong


@lru_cache(maxsize=4_096)
def _other_calls(text: str, golden: str) -> str:
    """What is wrong with the text beside the golden calls, as JSON: asked once for all rows of a sample."""
    rest = text
    for place, call in enumerate(msgspec.json.decode(golden, type=tuple[Call, ...])):
        start = ("; " if place else "") + call.name + "("
        if not rest.startswith(start):
            return "the gold call does not name the golden tools in order"
        end = _end(rest, len(start))
        if end is None or not _says(rest[len(start) : end], call):
            return "the gold call does not have the golden arguments"
        rest = rest[end + 1 :]
    return "the gold call goes on after its last call" if rest else ""


def _end(text: str, start: int) -> int | None:
    """Where the bracket closes that opened before `start`; None where it stays open. Linear in the text."""
    depth = 1
    for found in _MARK.finditer(text, start):
        mark = found.group()
        depth += (mark in "([{") - (mark in ")]}")
        if depth == 0:
            return found.start()
    return None


def _says(arguments: str, call: Call) -> bool:
    """Whether the arguments are the call's: the first accepted value of each, none that is left out first."""
    said: dict[str, Any] = {}
    try:
        tree = ast.parse(f"f({arguments})", mode="eval").body
        if not isinstance(tree, ast.Call) or tree.args:
            return False
        for one in tree.keywords:
            value = ast.literal_eval(one.value)
            new = value if one.arg is None else {one.arg: value}
            if said.keys() & new:
                return False
            said |= new
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):  # no arguments that we write
        return False
    first = {n: v[0] if isinstance(v, list) and v else "" for n, v in call.parameters.items()}
    wanted = {name: value for name, value in first.items() if value != ""}
    return said.keys() == wanted.keys() and all(_same(said[name], wanted[name]) for name in said)


def _same(said: Any, wanted: Json) -> bool:
    if wanted == ANY:
        return said is ...
    if isinstance(wanted, dict):
        firsts = {k: v[0] if isinstance(v, list) and v else v for k, v in wanted.items()}
        firsts = {key: value for key, value in firsts.items() if value != ""}
        return (
            isinstance(said, dict)
            and list(said) == list(firsts)
            and all(_same(said[key], firsts[key]) for key in firsts)
        )
    if isinstance(wanted, list):
        return isinstance(said, list) and len(said) == len(wanted) and all(map(_same, said, wanted))
    return type(said) is type(wanted) and bool(said == wanted)
