"""Where in a sample the user's words stand that a perturbation may touch, and which values they must keep."""

import re

import msgspec

from robustbench_tc.builders import plain
from robustbench_tc.builders.plain import Span
from robustbench_tc.schema import Change, Message, Sample

from .base import NotApplicable

_TOOL_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_CALLED_NAME = re.compile(r'"name"\s*:\s*("(?:[^"\\]|\\.)*")')
_EXECUTED = re.compile(r"<(?:tool_call|obs)>")


def query_span(sample: Sample) -> Span:
    """The passage that observation types rewrite: the last substantive user turn (`plain.substantive_turn`).

    Raises NotApplicable("no_user_text").
    """
    span = plain.substantive_turn(sample.messages, sample.golden_answers)
    if span is None:
        raise NotApplicable("no_user_text")
    return span


def wish_span(sample: Sample) -> Span:
    """The passage that gains a wish for the scored call: the last user turn, with no executed call after it.

    That is the last one with words of the user's own, or, where a call was executed since, the boiler-plate
    that asks for the scored call. Raises NotApplicable("no_user_text"), and where a call follows both.
    """
    own = plain.user_turns(sample.messages)
    if not own:
        raise NotApplicable("no_user_text")
    for turn in (own[-1], plain.user_turns(sample.messages, closing=True)[-1]):
        later = sample.messages[turn.message + 1 :]
        rest = [sample.messages[turn.message].content[turn.end :], *(message.content for message in later)]
        if not any(message.role == "tool" for message in later) and not any(map(_EXECUTED.search, rest)):
            return turn
    raise NotApplicable("call_after_last_user_turn")


def query_text(sample: Sample) -> str:
    """The text of `query_span`."""
    message, start, end = query_span(sample)
    return sample.messages[message].content[start:end]


def replace_span(sample: Sample, span: Span, text: str) -> tuple[tuple[Message, ...], Change]:
    """The messages with the passage replaced, and the diff entry of that edit."""
    at, start, end = span
    messages = list(sample.messages)
    content = messages[at].content
    messages[at] = Message(messages[at].role, content[:start] + text + content[end:])
    return tuple(messages), Change(f"/messages/{at}/content", content[start:end], text, start)


def rewritten(clean: Sample, row: Sample) -> tuple[str, list[str]]:
    """What stands in the row in the place of the query, and what is wrong with the messages around it."""
    span = query_span(clean)
    before = clean.messages[span.message].content
    head, tail = before[: span.start], before[span.end :]
    if len(row.messages) != len(clean.messages):
        return "", ["messages were added or removed"]
    after = row.messages[span.message].content
    wrong = []
    if not (after.startswith(head) and after.endswith(tail) and len(after) >= len(head) + len(tail)):
        wrong.append("text outside the query changed")
    others = [m for place, m in enumerate(row.messages) if place != span.message]
    if others != [m for place, m in enumerate(clean.messages) if place != span.message]:
        wrong.append("another message changed")
    return after[span.start : len(after) - len(tail)], wrong


def wished(sample: Sample, sentence: str) -> tuple[tuple[Message, ...], Change]:
    """The messages with the sentence after the words of `wish_span`, and the diff entry of that edit."""
    span = message, start, end = wish_span(sample)
    text = sample.messages[message].content[start:end]
    joint = " " if text[-1] in ".!?" else ". "
    return replace_span(sample, span, text + joint + sentence)


def gold_texts(sample: Sample) -> tuple[str, ...]:
    """Every accepted gold value as text, in order, without repeats; numbers in JSON form."""
    return plain.gold_texts(sample.golden_answers)


def kept_values(sample: Sample, text: str) -> tuple[str, ...]:
    """The gold values that occur in `text` as plain substrings: a rewriting has to keep them."""
    return tuple(value for value in gold_texts(sample) if value in text)


def called_in_history(sample: Sample) -> frozenset[str]:
    """Names of the tools that earlier turns of a transcript already call."""
    return frozenset(
        str(msgspec.json.decode(name.group(1)))
        for message in sample.messages
        for block in _TOOL_CALL.finditer(message.content)
        for name in _CALLED_NAME.finditer(block.group(1))
    )
