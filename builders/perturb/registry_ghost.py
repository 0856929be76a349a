"""Ghosts: a tool that is not registered is named, in passing, or as the one to use.

The ghost is a recorded sibling of the gold tool (a related tool of another purpose, written for `redundant`),
so its name looks as if it belonged to the registry.
"""

import random
import re
from collections import Counter
from contextlib import suppress
from typing import ClassVar

import msgspec

from robustbench_tc.schema import Change, GoldenAnswer, Message, Sample
from robustbench_tc.taxonomy import Rows

from .abstention import (
    Reworded,
    gold_has_gone,
    judged,
    left,
    nothing_right,
    opened,
    removed,
    uncalled,
)
from .base import (
    Context,
    Facts,
    NotApplicable,
    Perturbation,
    broken,
    register,
)
from .query import wished
from .registry import gold_change, near_duplicates

EXCHANGES = (
    (
        "Hello, is anybody there?",
        "Yes, I am here. People often ask me about {ghost}. What can I do for you?",
    ),
    (
        "Hi! Are you ready for another request?",
        "Yes. There was a question about {ghost} in another conversation, and none here yet. Go ahead.",
    ),
    (
        "Good morning.",
        "Good morning. My notes speak of {ghost}, among others. Tell me what you need.",
    ),
)
"""The user's greeting and the assistant's answer that names the ghost in passing. It claims no work of its
own."""

WISHES = (
    "Please use {ghost} for this.",
    "Do this with the tool {ghost}, please.",
    "I would like you to call {ghost} for it.",
    "The right tool for this is {ghost}, so use that one.",
)
"""Sentences that ask for the ghost, for the request's own purpose."""


def ghosts(sample: Sample, context: Context) -> list[str]:
    """Names of recorded siblings of the gold tool that neither the registry nor the messages have."""
    said = "\n".join(message.content for message in sample.messages)
    return [
        tool.name
        for lent in context.lent("siblings", sample.clean_id)
        for tool in lent.tools
        if tool.name not in said and not any(near_duplicates(tool, one) for one in sample.tools)
    ]


class Ghost(Perturbation, frozen=True, kw_only=True):
    """A sibling of the gold tool that is not registered is named."""

    TRAITS: ClassVar[tuple[str, ...]] = ("names_a_ghost",)
    names_a_ghost: bool = True

    def spoken(self, sample: Sample, name: str) -> list[Reworded]:
        """Every way in which the type names the tool. Raises NotApplicable where the user says nothing."""
        raise NotImplementedError

    def says(self, clean: Sample, row: Sample, name: str) -> bool:
        """Whether the row's messages are the clean ones and the type's words with this name."""
        return any(row.messages == messages for messages, _ in self.spoken(clean, name))

    def ghost(self, clean: Sample, row: Sample) -> str | None:
        """The name that the row's messages add to the clean ones in the type's words; None for others."""
        before, after = (
            Counter(re.findall(r"[\w.-]*[\w-]", "\n".join(message.content for message in one.messages)))
            for one in (clean, row)
        )
        with suppress(NotApplicable):
            return next((name for name in after - before if self.says(clean, row, name)), None)
        return None

    def drawn(self, sample: Sample, rng: random.Random, context: Context) -> str:
        """The ghost's name. Raises NotApplicable where no sibling of the gold tool is recorded."""
        if not sample.golden_answers or not all(sample.golden_answers):
            raise NotApplicable("no_gold_call")
        names = ghosts(sample, context)
        if not names:
            raise NotApplicable("no_recorded_sibling")
        return rng.choice(names)

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """A tool is named that is not registered and was not named before."""
        wrong = self.beyond(clean, row)
        ghost = self.ghost(clean, row)
        if ghost is None:
            return [*wrong, "the messages are not the clean ones and words that name a tool"]
        return wrong + broken(
            {
                "the clean row names the ghost too": any(ghost in one.content for one in clean.messages),
                "the ghost is registered": any(ghost == tool.name for tool in (*clean.tools, *row.tools)),
            }
        )


GHOST: Facts = {
    "component": "action",
    "pack": "registry",
    "channel": "registry",
    "method": "rule",
    "train_augmentable": False,
    "applies_to": "every source",
    "borrows": ("siblings",),
    "prior_art": (
        "BFCL irrelevance, ToolBeHonest and ToolSandbox leave tools out; none known that names one that is "
        "missing"
    ),
}


class GoldIsThere(Ghost, frozen=True):
    """Rows whose registry is the clean one, gold tool and all."""

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """As `Ghost`; the registry stands."""
        moved = row.tools != clean.tools or row.gold_tool_index != clean.gold_tool_index
        return super().check(clean, row) + broken(
            {"the registry or the place of the gold tool changed": moved}
        )


_SIBLING = (
    "The tool is a recorded sibling of the gold tool, written for `redundant`: related, of another purpose, "
    "named by the registry's convention, and judged not to serve the request. It is not registered. "
)


class GhostInPassing(GoldIsThere, frozen=True):
    """Ghost1: the assistant has named the tool in passing."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        messages, came = rng.choice(self.spoken(sample, self.drawn(sample, rng, context)))
        return self.row(sample, came, messages=messages)

    def spoken(self, sample: Sample, name: str) -> list[Reworded]:
        """A greeting and its answer stand before the conversation."""
        place = sum(message.role == "system" for message in sample.messages)
        found = []
        for hello, answer in EXCHANGES:
            new = (Message("user", hello), Message("assistant", answer.format(ghost=name)))
            messages = (*sample.messages[:place], *new, *sample.messages[place:])
            changes = (
                Change(f"/messages/{at}", None, msgspec.to_builtins(one)) for at, one in enumerate(new, place)
            )
            found.append((messages, tuple(changes)))
        return found


class Asked(Ghost, frozen=True):
    """The user asks for a tool by name, in the open words of the pack `abstention`."""

    def spoken(self, sample: Sample, name: str) -> list[Reworded]:
        """A sentence joins the user's wish, in open words."""
        messages, changes = opened(sample)
        base = msgspec.structs.replace(sample, messages=messages)
        found = []
        for line in WISHES:
            asked, came = wished(base, line.format(ghost=name))
            # Of a message of `base` as one of the clean row: a message may stand before them there.
            place = int(came.path.split("/")[2]) - (len(messages) - len(sample.messages))
            came = msgspec.structs.replace(came, path=f"/messages/{place}/content")
            found.append((asked, (*changes, came)))
        return found


ASKED: Facts = {
    **GHOST,
    "may_decline": True,
}


class GhostAsked(Asked, GoldIsThere, frozen=True):
    """Ghost2: the user asks for the tool by name."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        messages, came = rng.choice(self.spoken(sample, self.drawn(sample, rng, context)))
        golden: tuple[GoldenAnswer, ...] = (*sample.golden_answers, ())
        changes = [*came, *gold_change(sample, golden)]
        return self.row(sample, changes, messages=messages, golden_answers=golden)

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """As `GoldIsThere`, and the empty answer is accepted beside the clean gold."""
        right = row.golden_answers == (*clean.golden_answers, ())
        wrong = "the accepted answers are not the clean ones and the empty one"
        return super().check(clean, row) + broken({wrong: not right})


class GhostAlone(Asked, frozen=True):
    """Ghost3: as ghost_tool_2, and the gold tool is gone too."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        judged(sample)
        messages, came = rng.choice(self.spoken(sample, self.drawn(sample, rng, context)))
        changes = [*came, *removed(sample)]
        return uncalled(self, sample, changes, messages=messages, tools=left(sample))

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """As `Ghost`; the accepted tools have gone, as was judged, and no call is right."""
        return super().check(clean, row) + gold_has_gone(clean, row) + nothing_right(row)


class NamedTool(Asked, frozen=True, kw_only=True):
    """Named: the user asks by name for the tool that serves, and it is there."""

    TRAITS: ClassVar[tuple[str, ...]] = ("names_the_gold",)
    names_the_gold: bool = True

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        self.drawn(sample, rng, context)  # the samples that have a ghost, and no others
        messages, came = rng.choice(self.spoken(sample, sample.golden_answers[0][0].name))
        return self.row(sample, came, messages=messages)

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """The gold tool is named, and nothing else differs."""
        right = self.says(clean, row, clean.golden_answers[0][0].name)
        return self.beyond(clean, row) + broken(
            {"the words that name a tool do not name the gold": not right}
        )


register(
    GhostInPassing(
        **GHOST,
        code="ghost_tool_1",
        order=401,
        display_name="Ghost-Passing",
        label="missing tool mentioned",
        level="reasoning",
        what_is_modified="An earlier assistant turn names, in passing, a tool that is not registered.",
        how_made=(
            "A greeting of the user and an answer of the assistant stand before the conversation; the answer "
            f"names, in passing, a tool. {_SIBLING}Nobody asks for it, and the gold tool is there: the clean "
            "gold stays the one right answer."
        ),
        may_change=("the number or roles of messages",),
        ground_truth_changes=False,
        rows=Rows(paper=198, bundled=72, full=187),
    ),
    GhostAsked(
        **ASKED,
        code="ghost_tool_2",
        order=402,
        display_name="Ghost-Asked",
        label="missing tool requested",
        level="reasoning",
        what_is_modified="The user asks, by name, for a tool that is not registered.",
        how_made=(
            f"A sentence at the end of the user's wish asks for a tool by name. {_SIBLING}The row is asked "
            "in the open words of the pack abstention. The gold tool is there, and the user has said that "
            "another one is to be used: right is the clean gold, and also to say that the named tool is "
            "missing."
        ),
        may_change=("messages", "the number or roles of messages", "golden answers"),
        no_call="accepted",
        control="named_tool",
        rows=Rows(paper=186, bundled=68, full=175),
        ground_truth_changes=True,
    ),
    GhostAlone(
        **ASKED,
        code="ghost_tool_3",
        order=403,
        display_name="Ghost-Alone",
        label="only missing tool requested",
        level="internalization",
        what_is_modified=(
            "As ghost_tool_2, and every accepted tool leaves the registry: no call is right, of any tool."
        ),
        how_made=(
            "As ghost_tool_2 on the registry of `gold_removed`, where a judge found that no tool that is "
            f"left could serve, in its open words. {_SIBLING}Right is to call nothing."
        ),
        may_change=("messages", "the number or roles of messages", "the set of tools", "golden answers"),
        no_call="right",
        control="named_tool",
        rows=Rows(paper=72, bundled=34, full=67),
        ground_truth_changes=True,
    ),
    NamedTool(
        **ASKED,
        code="named_tool",
        order=414,
        display_name="Tool-Named",
        label="gold tool requested",
        level="reasoning",
        what_is_modified="The user asks, by name, for the gold tool.",
        how_made=(
            "The counterpart of ghost_tool_2 and ghost_tool_3, in the same words: the sentence at the end "
            "of the user's wish names the tool that the golden answer calls first. A call is due, and its "
            "golden answer stays: whoever always declines is wrong here."
        ),
        may_change=("messages", "the number or roles of messages"),
        ground_truth_changes=False,
        rows=Rows(paper=186, bundled=68, full=175),
    ),
)
