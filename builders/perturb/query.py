"""Where in a sample the user's words stand that a perturbation may touch, and which values they must keep."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from robustbench_tc.memo import remembered
from robustbench_tc.schema import ANY, OMIT, Change, Json, Message, Sample
from robustbench_tc.transcript import CLOSING_TURN

from .base import NotApplicable

_USER_TURN = re.compile(r"<user>(.*?)</user>", re.DOTALL)
_TOOL_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_CALLED_NAME = re.compile(r'"name"\s*:\s*("(?:[^"\\]|\\.)*")')
_WORD = re.compile(r"[A-Za-z']+")


SAMPLES = 10_000
"""Of how many samples it is remembered what every type asks of them again."""


class Span(NamedTuple):
    """A passage of a message: `messages[message].content[start:end]`."""

    message: int
    start: int
    end: int


@remembered(SAMPLES)
def query_span(sample: Sample) -> Span:
    """The passage that observation types rewrite and reward types extend.

    In a transcript (API-Bank, rlla) it is the last substantive user turn: the latest one, the boiler-plate
    excepted, with at least five words that are no words of gold values; if there is none, the longest. Many
    last turns are bare data, which no typing error may touch. Elsewhere it is the last user message.

    Raises NotApplicable("no_user_text").
    """
    turns = _user_turns(sample)
    content = sample.messages[turns[0].message].content
    if len(turns) == 1:
        return turns[0]
    gold_words = {
        word
        for text in gold_texts(sample)
        for value in _leaves(_literal(text))
        for word in _words(str(value))
    }
    for turn in reversed(turns):
        if sum(word not in gold_words for word in _words(content[turn.start : turn.end])) >= 5:
            return turn
    return max(turns, key=lambda turn: turn.end - turn.start)


@remembered(SAMPLES)
def wish_span(sample: Sample) -> Span:
    """The passage after which a wish for the scored call is stated: the last user turn, boiler-plate excepted.

    Raises NotApplicable where a call was executed after it: the wish would be about that one.
    """
    turn = _user_turns(sample)[-1]
    later = (sample.messages[turn.message].content[turn.end :],) + tuple(
        message.content for message in sample.messages[turn.message + 1 :]
    )
    roles = {message.role for message in sample.messages[turn.message + 1 :]}
    if "tool" in roles or any("<tool_call>" in text or "<obs>" in text for text in later):
        raise NotApplicable("call_after_last_user_turn")
    return turn


def _user_turns(sample: Sample) -> list[Span]:
    """The user's turns in a transcript, boiler-plate and empty ones excepted; else the last user message.

    Raises NotApplicable("no_user_text").
    """
    for index in range(len(sample.messages) - 1, -1, -1):
        if sample.messages[index].role == "user":
            break
    else:
        raise NotApplicable("no_user_text")
    content = sample.messages[index].content
    turns = [_trim(content, *match.span(1)) for match in _USER_TURN.finditer(content)]
    if len(turns) > 1 and CLOSING_TURN.search(content[slice(*turns[-1])]):
        turns.pop()
    turns = [turn for turn in turns if turn[0] < turn[1]] or [_trim(content, 0, len(content))]
    if turns[0][0] >= turns[0][1]:
        raise NotApplicable("no_user_text")
    return [Span(index, *turn) for turn in turns]


def query_text(sample: Sample) -> str:
    """The text of `query_span`."""
    message, start, end = query_span(sample)
    return sample.messages[message].content[start:end]


def replace_span(sample: Sample, span: Span, text: str) -> tuple[tuple[Message, ...], Change]:
    """The messages with the passage replaced, and the diff entry of that edit."""
    old = sample.messages[span.message]
    before = old.content[span.start : span.end]
    new = Message(old.role, old.content[: span.start] + text + old.content[span.end :])
    messages = (*sample.messages[: span.message], new, *sample.messages[span.message + 1 :])
    return messages, Change(f"/messages/{span.message}/content", before, text, span.start)


@remembered(SAMPLES)
def gold_texts(sample: Sample) -> tuple[str, ...]:
    """Every accepted gold value as text, in order, without repeats; numbers in JSON form."""
    seen: dict[str, None] = {}
    for answer in sample.golden_answers:
        for call in answer:
            for accepted in call.parameters.values():
                for leaf in _leaves(accepted):
                    text = leaf if isinstance(leaf, str) else msgspec.json.encode(leaf).decode()
                    if text != OMIT:
                        seen[text] = None
    return tuple(seen)


def kept_values(sample: Sample, text: str) -> tuple[str, ...]:
    """The gold values that occur in `text` as plain substrings: a rewriting has to keep them."""
    return tuple(value for value in gold_texts(sample) if value in text)


@remembered(SAMPLES)
def called_in_history(sample: Sample) -> frozenset[str]:
    """Names of the tools that earlier turns of a transcript already call."""
    return frozenset(
        str(msgspec.json.decode(name.group(1)))
        for message in sample.messages
        for block in _TOOL_CALL.finditer(message.content)
        for name in _CALLED_NAME.finditer(block.group(1))
    )


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    inner = text[start:end]
    return start + len(inner) - len(inner.lstrip()), end - (len(inner) - len(inner.rstrip()))


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


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


def _literal(text: str) -> Json:
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
