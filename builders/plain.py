"""The user's turns in a row's messages, their own words, and the plain columns of a published
row: the user's request, and the first accepted answer, as text to be read.

The columns say again what the JSON columns hold; nothing is scored or prompted by them. A transcript is a
dialogue that a source writes into one message, with the user's turns between tags.
"""

import ast
import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from robustbench_tc.languages import LANGUAGES, letters
from robustbench_tc.schema import ANY, OMIT, GoldenAnswer, Json, Message, PublishedSample, Sample, plain_row

_TURN, _TURN_ENDS = "<user>", "</user>"
_WORD = re.compile(r"[A-Za-z']+")

CLOSING_TURN = re.compile(r"(?i)\b(?:one|a single) tool call\b")
"""Tells the last turn of a processed API-Bank dialogue: boiler-plate that asks for a single call, no request
of the user's. Look for it in the last turn only."""


class Span(NamedTuple):
    """A passage of a message: `messages[message].content[start:end]`."""

    message: int
    start: int
    end: int


def closing_order(text: str) -> tuple[int, int] | None:
    """Where a transcript's last turn orders one call, with the white space before it; None where none
    does."""
    turns = list(_tagged(text))
    if len(turns) > 1 and CLOSING_TURN.search(text[slice(*turns[-1])]):
        opening = text.rindex(_TURN, 0, turns[-1][0])
        return len(text[:opening].rstrip()), text.index(_TURN_ENDS, turns[-1][1]) + len(_TURN_ENDS)
    return None


def user_turns(messages: Sequence[Message], *, closing: bool = False) -> list[Span]:
    """The user's turns in a transcript, boiler-plate and empty ones excepted; else the last user message.

    `closing`: with the boiler-plate that asks for a single call. Empty where the user says nothing.
    """
    index = max((place for place, one in enumerate(messages) if one.role == "user"), default=None)
    if index is None:
        return []
    content = messages[index].content
    turns = list(_tagged(content)) if _TURN in content else []
    if not closing and len(turns) > 1 and CLOSING_TURN.search(content[slice(*turns[-1])]):
        turns.pop()
    spans = [Span(index, start, end) for start, end in turns if start < end]
    if spans:
        return spans
    start, end = _trim(content, 0, len(content))
    return [Span(index, start, end)] if start < end else []


def substantive_turn(messages: Sequence[Message], answers: Sequence[GoldenAnswer]) -> Span | None:
    """The user's last substantive turn; None where the user says nothing.

    In a transcript (API-Bank, rlla) it is the latest turn, the boiler-plate excepted, with at least five
    words that are not words of gold values; if there is none, the longest. Many last turns are bare data.
    Elsewhere it is the last user message.
    """
    turns = user_turns(messages)
    if len(turns) < 2:
        return turns[0] if turns else None
    content = messages[turns[0].message].content
    gold_words = {
        word
        for text in gold_texts(answers)
        for value in _leaves(literal(text))
        for word in _words(str(value))
    }
    for turn in reversed(turns):
        own = (word for word in _words(content[turn.start : turn.end]) if word not in gold_words)
        if len(list(islice(own, 5))) == 5:
            return turn
    return max(turns, key=lambda turn: turn.end - turn.start)


def gold_texts(answers: Sequence[GoldenAnswer]) -> tuple[str, ...]:
    """Every accepted gold value as text, in order, without repeats; numbers in JSON form."""
    seen: dict[str, None] = {}
    for answer in answers:
        for call in answer:
            for accepted in call.parameters.values():
                for leaf in _leaves(accepted):
                    text = leaf if isinstance(leaf, str) else msgspec.json.encode(leaf).decode()
                    if text != OMIT:
                        seen[text] = None
    return tuple(seen)


def published(row: Sample) -> PublishedSample:
    """The row with its plain columns."""
    return PublishedSample(
        **msgspec.structs.asdict(row),
        query=query(row.messages, row.golden_answers),
        gold_call=gold_call(row.golden_answers),
    )


def row_dict(row: Sample) -> dict[str, Any]:
    """A published row as Parquet and `datasets` have it."""
    return plain_row(published(row))


def query(messages: Sequence[Message], answers: Sequence[GoldenAnswer]) -> str:
    """The column `query`: the text of `substantive_turn`; "" where there is none."""
    span = substantive_turn(messages, answers)
    return "" if span is None else messages[span.message].content[span.start : span.end]


def gold_call(answers: Sequence[GoldenAnswer]) -> str:
    """The column `gold_call`: the calls of the first accepted answer, as in Python, `; ` between them.

    Each parameter has its first accepted value: `f(a='x', b=2)`. One that is left out first is not there, one
    whose value is free is `...`, and names that are not Python words stand in `**{'a b': 1}` at the end.
    """
    first = answers[0] if answers else ()
    return "; ".join([f"{call.name}({_arguments(call.parameters)})" for call in first])


def _arguments(parameters: dict[str, Json]) -> str:
    plain, odd = [], []
    for name, accepted in parameters.items():
        values = accepted if isinstance(accepted, list | tuple) else [accepted]
        if not values or _left_out(values[0]):
            continue
        if name.isidentifier() and not keyword.iskeyword(name):
            plain.append(f"{name}={_value(values[0])}")
        else:
            odd.append(f"{name!r}: {_value(values[0])}")
    return ", ".join(plain + (["**{" + ", ".join(odd) + "}"] if odd else []))


def _value(value: Json) -> str:
    """A value as Python writes it. Keys of an object may have accepted values of their own (BFCL)."""
    if value == ANY:
        return "..."
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        firsts = {k: v[0] if isinstance(v, list | tuple) and v else v for k, v in value.items()}
        inner = (f"{key!r}: {_value(first)}" for key, first in firsts.items() if not _left_out(first))
        return f"{{{', '.join(inner)}}}"
    return repr(value)


def _left_out(value: Json) -> bool:
    return isinstance(value, str) and value == OMIT


def _tagged(text: str) -> Iterator[tuple[int, int]]:
    """Where each turn between tags begins and ends, trimmed."""
    start, end = text.find(_TURN), 0
    while start >= 0 and (end := text.find(_TURN_ENDS, start)) >= 0:
        yield _trim(text, start + len(_TURN), end)
        start = text.find(_TURN, end)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    left = text[start:end].lstrip()
    return end - len(left), end - len(left) + len(left.rstrip())


def _words(text: str) -> Iterator[str]:
    return (match[0].lower() for match in _WORD.finditer(text))


def _leaves(value: Json) -> Iterator[str | int | float]:
    """Scalars of a nested value; booleans, nulls and the any-value marker carry no text of their own."""
    if isinstance(value, bool) or value is None or value == ANY:
        return
    if isinstance(value, dict):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


def literal(text: str) -> Json:
    """A text that stands for a list or object, decoded once (JSON, else a Python literal); else the text."""
    if text[:1] not in "[{" or len(text) > 10_000:
        return text
    try:
        return msgspec.json.decode(text)
    except ValueError:  # a Python literal, perhaps
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


_QUOTED = re.compile(r"""(?<!\w)(['"`])[^'"`]{1,300}\1(?!\w)""")
_COPIED = re.compile(r"[A-Z0-9@/_=]|[a-z]\.[a-z]")


def own_words(text: str, values: Iterable[str] = ()) -> str:
    """What of a text its writer says in their own words: without the `values` and what is quoted, and without
    names, numbers, addresses and identifiers in Latin letters, which are copied whatever the language."""
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, " ")
    text = _QUOTED.sub(" ", text)
    return re.sub(r"[\x21-\x7e]+", lambda found: " " if _COPIED.search(found[0]) else found[0], text)


def other_script(code: str, text: str, values: Iterable[str] = ()) -> str | None:
    """Why a text is not written in the language's script, or None.

    At least half of the letters of its own words are; in a language of Latin letters nothing is asked.
    """
    script = LANGUAGES[code].script
    if script is None:
        return None
    own = [char for char in own_words(text, values) if char.isalpha()]
    if not own or 2 * sum(letters(script).match(char) is not None for char in own) < len(own):
        return f"fewer than half of its letters are {script}"
    return None
