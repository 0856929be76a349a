"""Prerequisite: the call that fetched a token has not been made yet, so it is the call that is due."""

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from robustbench_tc.builders.plain import Span
from robustbench_tc.schema import Call, Change, Json, Message, Sample
from robustbench_tc.taxonomy import Rows

from .base import (
    Context,
    NotApplicable,
    Perturbation,
    broken,
    register,
)
from .query import replace_span
from .registry import gold_change

_EXECUTED = re.compile(r"<tool_call>(.*?)</tool_call>\s*<obs>(.*?)</obs>\n?", re.DOTALL)
_USER = re.compile(r"<user>(.*?)</user>", re.DOTALL)
_RESPONSE = re.compile(r"\s*<response>(.*?)</response>\n?", re.DOTALL)
_CLAIM = re.compile(
    r"(?i)\b(?:your|the) (?:user )?token\b|\bauthenticated\b|\bverified\b|\blogged (?:you )?in\b"
)
"""What the assistant says once it has the token."""
_TOKEN = "token"


class Executed(NamedTuple):
    """A call of a transcript and its result."""

    message: int
    start: int
    end: int
    """Where both stand in the message's content."""
    name: str
    parameters: dict[str, Json]
    result: str


def executed(sample: Sample) -> tuple[Executed, ...]:
    """The single calls that a transcript shows together with their results, in order."""
    found = []
    for place, message in enumerate(sample.messages):
        for block in _EXECUTED.finditer(message.content):
            try:
                call = msgspec.json.decode(block.group(1), type=Call)
            except ValueError:  # several calls in one block, or none
                continue
            found.append(
                Executed(place, block.start(), block.end(), call.name, call.parameters, block.group(2))
            )
    return tuple(found)


def due(sample: Sample) -> Executed:
    """The call of the sample's transcript whose result the golden call cannot do without.

    Raises NotApplicable where there is none, or where something else in the transcript shows its result.
    """
    calls = [one for one in executed(sample) if _TOKEN in one.name.lower()]
    if not calls:
        raise NotApplicable("no_token_call")
    wanted = {
        value
        for answer in sample.golden_answers
        for call in answer
        for name, accepted in call.parameters.items()
        if name.lower() == _TOKEN
        for value in accepted
        if isinstance(value, str) and value
    }
    fetched = [(one, value) for one in calls for value in sorted(wanted) if value in one.result]
    if not fetched:
        raise NotApplicable("gold_needs_no_token")
    found, token = fetched[0]
    if found.name not in {tool.name for tool in sample.tools}:
        raise NotApplicable("token_tool_not_listed")
    rest, _ = _without(sample, found)
    if any(token in message.content for message in rest):
        raise NotApplicable("token_still_shown")
    said = " ".join(turn for message in rest for turn in _USER.findall(message.content))
    if not all(str(value) in said for value in found.parameters.values()):
        raise NotApplicable("credentials_not_stated")
    if _claims(rest, found):
        raise NotApplicable("token_claimed_later")
    return found


def _without(sample: Sample, gone: Executed) -> tuple[tuple[Message, ...], Change]:
    """The messages without the call, its result and what claims to have it; and the diff entry."""
    before, after = _edit(sample, gone)
    return replace_span(sample, Span(gone.message, gone.start, gone.start + len(before)), after)


def _edit(sample: Sample, gone: Executed) -> tuple[str, str]:
    """The passage that the call, its result and a claim behind them stand in, and what stays of it."""
    content = sample.messages[gone.message].content
    said = _RESPONSE.match(content, gone.end)
    if said is None or not _CLAIM.search(said[1]):
        return content[gone.start : gone.end], ""
    sentences = re.split(r"(?<=[.!?])\s+", said[1].strip())
    kept = " ".join(sentence for sentence in sentences if not _CLAIM.search(sentence))
    stays = f"<response>{kept}</response>\n" if kept else ""
    return content[gone.start : said.end()], stays


def _claims(messages: Sequence[Message], gone: Executed) -> bool:
    """Whether the assistant says, where the call stood or later, that it has what the call fetches."""
    rest = messages[gone.message].content[gone.start :]
    later = (message.content for message in messages[gone.message + 1 :])
    return any(_CLAIM.search(said[1]) for text in (rest, *later) for said in _RESPONSE.finditer(text))


def _golden(gone: Executed) -> tuple[tuple[Call, ...], ...]:
    return ((Call(gone.name, {name: [value] for name, value in gone.parameters.items()}),),)


class Prerequisite(Perturbation, frozen=True):
    """Prereq: the earlier token call and its result leave the transcript; that call is the right answer."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """Raises NotApplicable where no token call can be taken out, see `due`."""
        gone = due(sample)
        golden = _golden(gone)
        messages, change = _without(sample, gone)
        return self.row(
            sample,
            [change, *gold_change(sample, golden)],
            messages=messages,
            golden_answers=golden,
            gold_tool_index=[tool.name for tool in sample.tools].index(gone.name),
        )

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """The transcript without the token call and its result, that call the gold, its token nowhere."""
        gone, index = due(clean), row.gold_tool_index
        indexed = index is not None and 0 <= index < len(row.tools) and row.tools[index].name == gone.name
        return self.beyond(clean, row) + broken(
            {
                "the transcript is not the clean one without the token call and its result": row.messages
                != _without(clean, gone)[0],
                "the assistant claims to have the token": _claims(row.messages, gone),
                "the gold is not the token call that was taken out": row.golden_answers != _golden(gone),
                "gold_tool_index does not point at the tool of the token call": not indexed,
            }
        )


register(
    Prerequisite(
        code="prerequisite",
        order=405,
        display_name="Prereq",
        label="prerequisite call missing",
        component="action",
        level="reasoning",
        pack="registry",
        channel="registry",
        what_is_modified=(
            "A transcript's earlier token call and its result are taken out; the right answer is that call."
        ),
        how_made=(
            "The call that fetched the user's token, and its result, leave the transcript. The golden call "
            "needs that token, so the right answer is the token call with the user name and the password "
            "that the user has said. A sentence behind it in which the assistant claims to have the token "
            "leaves too. No row where another executed call still shows the token."
        ),
        method="rule",
        may_change=("messages", "golden answers"),
        ground_truth_changes=True,
        train_augmentable=False,
        applies_to=("apibank",),
        rows=Rows(paper=9, bundled=0, full=68),
        solved_without_reading=(
            "The right call is always the one that fetches the token, so whoever always calls that tool is "
            "right. The type asks whether a model does so when another call is ordered."
        ),
        prior_art=(
            "API-Bank asks for token calls in order; NESTFUL and ToolSandbox test implicit dependencies"
        ),
    ),
)
