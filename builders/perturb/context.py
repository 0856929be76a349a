"""Context: closed exchanges stand before the request, until they are so long (4 characters a token).

`context_*` is what a long session of an agent leaves behind: requests, calls of the row's own tools, their
results and answers. `context_text_*` is text alone, so that length and demonstration can be told apart. No
golden value stands there, and the request itself stays as it was and stands last.
"""

import random
from collections.abc import Iterator, Sequence
from typing import ClassVar

import msgspec

from robustbench_tc.schema import Change, Message, Sample
from robustbench_tc.taxonomy import Rows

from .base import (
    Context,
    Facts,
    NotApplicable,
    Perturbation,
    broken,
    register,
)
from .context_session import GRAMMAR, Session, callable_tools, carried
from .context_text import Writer, holds
from .query import gold_texts

TOKEN = 4
"""Characters of a token, by which lengths are counted."""

_TRIES = 200
"""Drawn so often, an exchange without a golden value is not there."""


def values(sample: Sample) -> tuple[str, ...]:
    """The golden values, in lower case: none stands before the request."""
    found = (text.strip().casefold() for text in gold_texts(sample))
    return tuple(dict.fromkeys(text for text in found if text))


def leading(messages: Sequence[Message]) -> int:
    """How many messages of the system stand first."""
    return next((n for n, message in enumerate(messages) if message.role != "system"), len(messages))


class Before(Perturbation, frozen=True, kw_only=True):
    """So many tokens of closed exchanges stand before the request."""

    TRAITS: ClassVar[tuple[str, ...]] = ("tokens", "calls")
    tokens: int
    calls: bool
    """Whether the exchanges hold calls and their results."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """The exchanges before the request. Raises NotApplicable with a reason."""
        head = leading(sample.messages)
        added: list[Message] = []
        for exchange in self.exchanges(sample, rng, context):
            added += exchange
            if sum(len(message.content) for message in added) >= self.tokens * TOKEN:
                break
        messages = (*sample.messages[:head], *added, *sample.messages[head:])
        changes = [
            Change(f"/messages/{number}", None, msgspec.to_builtins(one))
            for number, one in enumerate(added, head)
        ]
        return self.row(sample, changes, messages=messages)

    def exchanges(self, sample: Sample, rng: random.Random, context: Context) -> Iterator[Sequence[Message]]:
        """Exchanges without end. Raises NotApplicable with a reason."""
        raise NotImplementedError

    def left_out(self, sample: Sample) -> tuple[str, ...]:
        """What may not stand before the request, in lower case."""
        return values(sample)

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """The sample's own messages stand last, before them closed exchanges of the right length."""
        wrong = self.beyond(clean, row)
        head = leading(clean.messages)
        own = clean.messages[head:]
        end = len(row.messages) - len(own)
        added = row.messages[head:end]
        if row.messages[:head] != clean.messages[:head] or row.messages[end:] != own:
            return [*wrong, "the sample's own messages are not the first or the last"]
        requests = [one.content for one in added if one.role == "user"]
        last = max((place for place, one in enumerate(added) if one.role == "user"), default=0)
        length, before = (sum(len(one.content) for one in part) for part in (added, added[:last]))
        said = "\n".join(one.content for one in added).casefold()
        return wrong + broken(
            {
                "an exchange stands twice": len(set(requests)) < len(requests),
                f"{length} characters stand before the request": not before < self.tokens * TOKEN <= length,
                "a golden value stands before the request": any(
                    holds(said, value) for value in self.left_out(clean)
                ),
            }
        )


CONTEXT: Facts = {
    "component": "observation",
    "level": "perception",
    "pack": "context",
    "channel": "context",
    "method": "rule",
    "may_change": ("the number or roles of messages",),
    "ground_truth_changes": False,
    "train_augmentable": False,
    "applies_to": "every source",
    "prior_art": (
        "Lost in the Middle (Liu et al., 2024); the long contexts of BFCL v3's multi-turn categories"
    ),
}


class Text(Before, frozen=True):
    """Exchanges in words."""

    def left_out(self, sample: Sample) -> tuple[str, ...]:
        """Golden values, and the names of accepted tools."""
        names = (call.name.casefold() for answer in sample.golden_answers for call in answer)
        return (*values(sample), *dict.fromkeys(names))

    def exchanges(self, sample: Sample, rng: random.Random, context: Context) -> Iterator[Sequence[Message]]:
        """A request and its answer."""
        writer = Writer(rng, self.left_out(sample))
        while True:
            request = f"{writer.prose('report', rng.randint(2, 6))} {writer.sentence('ask')}"
            answer = writer.prose("counsel", rng.randint(2, 5))
            yield Message("user", request), Message("assistant", answer)


TEXT: Facts = {
    **CONTEXT,
    "rows": Rows(paper=199, bundled=73, full=3078),
    "calls": False,
    "how_made": (
        "Closed exchanges, a request and its answer in words, stand between the system's messages and the"
        " sample's own, until they have so many tokens (4 characters each). They are drawn from a grammar of"
        " our own about letters, notes and everyday things. No sentence form stands more than five times in a"
        " row, and none holds a golden value or the name of a gold tool. The sample's own messages stay byte"
        " for byte."
    ),
}


class Calls(Before, frozen=True):
    """Exchanges with calls and their results."""

    def exchanges(self, sample: Sample, rng: random.Random, context: Context) -> Iterator[Sequence[Message]]:
        """A request, calls with their results, and an answer."""
        tools = callable_tools(sample)
        if not tools:
            raise NotApplicable("no_tool_to_call")
        writer = Writer(rng, self.left_out(sample), GRAMMAR)
        session = Session(writer, tools, carried(context))
        while True:
            tried = (session.exchange() for _ in range(_TRIES))
            said = next((one for one in tried if one is not None), None)
            if said is None:
                raise NotApplicable("too_little_text")
            yield said


CALLS: Facts = {
    **CONTEXT,
    "rows": Rows(paper=188, bundled=71, full=3009),
    "calls": True,
    "how_made": (
        "What a long session leaves behind stands between the system's messages and the sample's own, until"
        " it has so many tokens (4 characters each): requests, calls of the row's own tools with made-up"
        " values, results (JSON, tables and logs of generated values and of values from other samples'"
        " golds), answers, and exchanges of text alone. A prompt writes the calls as the row's format wants"
        " them, in fc mode they are native ones. No sentence form stands more than five times in a row, and"
        " nothing holds a golden value; a gold tool is called only where its arguments are judged. The"
        " sample's own messages stay byte for byte."
    ),
}


register(
    Calls(
        **CALLS,
        code="context_2k",
        order=301,
        display_name="Context-2k",
        label="2k tokens before request",
        what_is_modified=(
            "An agent's session of 2,000 tokens stands before the request, which stays as it is."
        ),
        tokens=2_000,
    ),
    Calls(
        **CALLS,
        code="context_8k",
        order=302,
        display_name="Context-8k",
        label="8k tokens before request",
        what_is_modified=(
            "An agent's session of 8,000 tokens stands before the request, which stays as it is."
        ),
        tokens=8_000,
    ),
    Calls(
        **CALLS,
        code="context_32k",
        order=303,
        display_name="Context-32k",
        label="32k tokens before request",
        what_is_modified=(
            "An agent's session of 32,000 tokens stands before the request, which stays as it is."
        ),
        tokens=32_000,
    ),
    Text(
        **TEXT,
        code="context_text_2k",
        order=306,
        display_name="Text-2k",
        label="2k tokens of text",
        what_is_modified="Text exchanges of 2,000 tokens stand before the request, which stays as it is.",
        tokens=2_000,
    ),
    Text(
        **TEXT,
        code="context_text_8k",
        order=307,
        display_name="Text-8k",
        label="8k tokens of text",
        what_is_modified="Text exchanges of 8,000 tokens stand before the request, which stays as it is.",
        tokens=8_000,
    ),
    Text(
        **TEXT,
        code="context_text_32k",
        order=308,
        display_name="Text-32k",
        label="32k tokens of text",
        what_is_modified="Text exchanges of 32,000 tokens stand before the request, which stays as it is.",
        tokens=32_000,
    ),
)
