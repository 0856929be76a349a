"""Ghosts: a tool that is not registered is named, in passing, or as the one to use.

The ghost is a recorded sibling of the gold tool (a related tool of another purpose, written for `redundant`),
so its name looks as if it belonged to the registry.
"""

import random
from collections.abc import Mapping
from functools import cache
from typing import ClassVar

import msgspec

from robustbench_tc.memo import remembered
from robustbench_tc.schema import CONTROL_TOOLS, Change, GoldenAnswer, Message, Sample, Tool
from robustbench_tc.taxonomy import Rows

from .abstention_recorded import another_tool_serves
from .base import Case, Context, NotApplicable, Perturbation, register
from .query import called_in_history, replace_span, wish_span
from .registry import plain
from .style import near_duplicates

EXCHANGES = (
    (
        "Hello, is anybody there?",
        "Yes, I am here. I have just worked with {ghost} for somebody else. What can I do for you?",
    ),
    (
        "Hi! Are you ready for another request?",
        "Yes. A moment ago I was busy with {ghost}, and that is done now. Go ahead.",
    ),
    ("Good morning.", "Good morning. I was using {ghost} until now. Tell me what you need."),
)
"""The user's greeting and the assistant's answer that names the ghost in passing."""

WISHES = (
    "Please use {ghost} for this.",
    "Do this with the tool {ghost}, please.",
    "I would like you to call {ghost} for it.",
    "The right tool for this is {ghost}, so use that one.",
)
"""Sentences that ask for the ghost, for the request's own purpose."""


@remembered(8)
def siblings(lent: tuple[Sample, ...]) -> Mapping[str, tuple[Tool, ...]]:
    """The recorded siblings of each sample's gold tool, by clean id."""
    return {sample.clean_id: sample.tools for sample in lent}


def ghosts(sample: Sample, context: Context) -> list[str]:
    """Names of recorded siblings of the gold tool that neither the registry nor the messages have."""
    said = "\n".join(message.content for message in sample.messages)
    return [
        tool.name
        for tool in siblings(context.loan("siblings")).get(sample.clean_id, ())
        if tool.name not in said and not any(near_duplicates(tool, one) for one in sample.tools)
    ]


class Ghost(Perturbation):
    """A sibling of the gold tool that is not registered is named."""

    component = "action"
    level = "reasoning"
    pack = "registry"
    channel = "registry"
    method = "rule"
    ground_truth_changes = True
    train_augmentable = False
    applies_to = "every source"
    borrows = ("siblings",)
    prior_art = "ToolBeHonest and BFCL's irrelevance remove tools; none known that names one that is not there"

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """Draws the ghost, then the words that name it. Raises NotApplicable where no sibling is recorded."""
        if not sample.golden_answers or not all(sample.golden_answers):
            raise NotApplicable("no_gold_call")
        names = ghosts(sample, context)
        if not names:
            raise NotApplicable("no_recorded_sibling")
        return self._row(sample, rng.choice(names), rng)

    def _row(self, sample: Sample, ghost: str, rng: random.Random) -> Sample:
        raise NotImplementedError

    def _told(self, clean: Sample, row: Sample) -> bool:
        """Whether the messages are the clean ones and one of the type's own ways to name a tool that is not
        registered, in words that the clean row has not."""
        raise NotImplementedError

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """A tool is named that is not registered, in the type's words."""
        wrong = self.beyond(clean, row)
        if not self._told(clean, row):
            wrong.append("the messages are not the clean ones with a tool named that is not registered")
        return wrong


class Open(Ghost):
    """The gold tool is there: calling it, asking and declining are right."""

    no_call = "accepted"
    caught_by = "changes_only_what_its_type_may"
    otherwise_caught_by = "gold_is_there"

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """As `Ghost`; the registry stands, and the empty answer is accepted beside the clean gold."""
        wrong = super().check(clean, row)
        if row.tools != clean.tools or row.gold_tool_index != clean.gold_tool_index:
            wrong.append("the registry or the place of the gold tool changed")
        if row.golden_answers != (*clean.golden_answers, ()):
            wrong.append("the accepted answers are not the clean ones and the empty one")
        return wrong

    def spoiled(self, clean: Sample, row: Sample) -> Sample:
        """The ghost is registered."""
        name = next(iter(unregistered(clean, row)))
        ghost = msgspec.structs.replace(clean.tools[clean.gold_tool_index or 0], name=name)
        return msgspec.structs.replace(row, tools=(*row.tools, ghost))

    def spoiled_otherwise(self, clean: Sample, row: Sample) -> Sample:
        """Whoever asks or declines is wrong."""
        return msgspec.structs.replace(row, golden_answers=clean.golden_answers)


def _opened(sample: Sample) -> tuple[tuple[GoldenAnswer, ...], Change]:
    """The accepted answers with the empty one, and their diff entry."""
    golden: tuple[GoldenAnswer, ...] = (*sample.golden_answers, ())
    return golden, Change("/golden_answers", *map(msgspec.to_builtins, (sample.golden_answers, golden)))


def unregistered(clean: Sample, row: Sample) -> list[str]:
    """The ghost's name, as the words that the row has and the clean row has not name it."""
    before = "\n".join(message.content for message in clean.messages)
    listed = {tool.name for tool in row.tools}
    said = (str(change.after) for change in row.changes if change.path.startswith("/messages"))
    words = {word.strip(".,?!'\"}") for text in said for word in text.split()}
    texts = [content for message in row.messages for content in [message.content]]
    found = (
        word for word in words if word and word not in before and any(word in text for text in texts)
    )
    return [word for word in found if word not in listed]
