"""Context: closed exchanges stand before the request, until they are so long (4 characters a token).

They come from the other clean samples of the build (a request, and an answer in words by rule) and from a
text of our own. No exchange stands twice; none is of a tool that has a name or the purpose of one in the
registry, and none holds a golden value. The request itself stays as it was and stands last.
"""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from robustbench_tc.schema import Change, Message, Sample, Tool
from robustbench_tc.taxonomy import Rows

from .base import Case, Context, NotApplicable, Perturbation, register
from .context_text import Exchange, own_exchanges
from .query import gold_texts, query_text

Mask: TypeAlias = npt.NDArray[np.bool_]

TOKEN = 4
"""Characters of a token, by which lengths are counted."""

LONGEST = 2_000
"""Characters of a request that may stand before another one."""

SETTLED = (
    "That is done, and you have the result. What is next?",
    "Here it is, as you asked: everything went through, so this one is settled.",
    "I took care of that, and sent you what came back. We can leave it there.",
    "Done. The details are in the summary that you already have.",
    "This has been answered to the end, so there is nothing left to do about it.",
)
"""Answers to other samples' requests: closed, and without a word of what was asked. Ours."""

_WORD = re.compile(r"[a-z]+")
_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_COMMON = frozenset(
    "about all also and any are based can data each find for from function get given has have information "
    "into its list not one out returns search specific specified such that the their this tool used user "
    "using value with which will your details calculate provide provides retrieve retrieves".split()
)
"""Words that say nothing of a tool's purpose."""


def name_parts(tool: Tool) -> frozenset[str]:
    """The parts of a tool's name, in lower case: `getTide.now` → get, tide, now."""
    return frozenset(part.lower() for part in _NAME_PART.findall(tool.name))


def purpose(tool: Tool) -> frozenset[str]:
    """The words of a description that say what a tool is for."""
    words = _WORD.findall(tool.description.lower())
    return frozenset(word for word in words if len(word) > 3 and word not in _COMMON)


class Held(NamedTuple):
    """An exchange of the pool, ready to stand in a row."""

    messages: tuple[Message, Message]
    plain: tuple[dict[str, str], dict[str, str]]
    """The two as `changes` state them."""
    length: int
    folded: str
    """Both texts in lower case, for the search for values."""


class Exchanges:
    """All exchanges that a build can draw from, and which of them a tool forbids."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self.held: list[Held] = []
        tools: list[tuple[Tool, ...]] = []
        places: dict[str, int] = {}
        for (request, answer), of in (*_of_samples(samples), *((one, ()) for one in own_exchanges())):
            place = places.setdefault(request.casefold(), len(tools))
            if place < len(tools):  # asked before: it stands for the tools of both
                tools[place] = (*tools[place], *of)
                continue
            held = Held(
                (Message("user", request), Message("assistant", answer)),
                ({"role": "user", "content": request}, {"role": "assistant", "content": answer}),
                len(request) + len(answer),
                f"{request}\n{answer}".casefold(),
            )
            self.held.append(held)
            tools.append(of)
        self._likes = (_Likes(name_parts, tools), _Likes(purpose, tools))
        self._masks: dict[tuple[str, str], Mask] = {}

    def forbidden(self, tools: Iterable[Tool]) -> Mask:
        """For each exchange, whether it is of a tool that has a name or the purpose of one of these."""
        found = np.zeros(len(self.held), bool)
        for tool in tools:
            key = tool.name, tool.description
            mask = self._masks.get(key)
            if mask is None:
                mask = self._masks[key] = self._likes[0].of(tool) | self._likes[1].of(tool)
            found |= mask
        return found


class _Likes:
    """Which exchanges are of a tool like another one: with half of the words of one of them in common."""

    def __init__(self, words: Callable[[Tool], frozenset[str]], tools: Sequence[Sequence[Tool]]) -> None:
        self._words = words
        places: dict[str, list[int]] = defaultdict(list)
        self._fewest = np.zeros(len(tools), np.int64)
        for index, of in enumerate(tools):
            each = [words(tool) for tool in of]
            for word in set().union(*each):
                places[word].append(index)
            self._fewest[index] = min(map(len, each), default=0)
        self._places = {word: np.array(found) for word, found in places.items()}

    def of(self, tool: Tool) -> Mask:
        """For each exchange, whether it is of such a tool."""
        mine = self._words(tool)
        counts = np.zeros(len(self._fewest), np.int64)
        for word in mine:
            if word in self._places:
                counts[self._places[word]] += 1
        alike: Mask = (counts > 0) & (2 * counts >= np.minimum(self._fewest, len(mine)))
        return alike


def _of_samples(samples: Iterable[Sample]) -> Iterator[tuple[Exchange, tuple[Tool, ...]]]:
    """The requests of clean samples with an answer in words, and the tools that they are for."""
    for number, sample in enumerate(samples):
        try:
            text = query_text(sample)
        except NotApplicable:
            continue
        called = {call.name for answer in sample.golden_answers for call in answer}
        if len(text) <= LONGEST and "<" not in text and called:
            tools = tuple(tool for tool in sample.tools if tool.name in called)
            yield Exchange(text, SETTLED[number % len(SETTLED)]), tools


def values(sample: Sample) -> tuple[str, ...]:
    """What must not stand before the request, in lower case: golden values and accepted tools' names."""
    names = (call.name for answer in sample.golden_answers for call in answer)
    found = (text.strip().casefold() for text in (*gold_texts(sample), *names))
    return tuple(dict.fromkeys(text for text in found if text))


def holds(text: str, value: str) -> bool:
    """Whether a value stands in a text, both in lower case, and not only within a word."""
    at = text.find(value)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(value) : at + len(value) + 1]
        if not (before.isalnum() and value[0].isalnum()) and not (after.isalnum() and value[-1].isalnum()):
            return True
        at = text.find(value, at + 1)
    return False


def leading(messages: Sequence[Message]) -> int:
    """How many messages of the system stand first."""
    return next((n for n, message in enumerate(messages) if message.role != "system"), len(messages))


class Before(Perturbation):
    """So many tokens of closed exchanges stand before the request."""

    component = "observation"
    level = "perception"
    pack = "context"
    channel = "context"
    method = "rule"
    may_change = ("the number or roles of messages",)
    ground_truth_changes = False
    train_augmentable = False
    applies_to = "every source"
    tokens: ClassVar[int]
    traits = ("tokens",)
    caught_by = "request_stands_last_as_it_was"
    otherwise_caught_by = "context_holds_no_gold_value"
    how_made = (
        "Closed exchanges, a request and its answer in words, stand between the system's messages and the"
        " sample's own, until they have so many tokens (4 characters each). They are requests of other"
        " clean samples of the build, answered by a sentence of ours, and a text of our own. None stands"
        " twice, none is of a tool with a name or purpose of the registry's, none holds a golden value or the"
        " name of a gold tool. The sample's own messages stay byte for byte."
    )
    prior_art = "Lost in the Middle (Liu et al., 2024); the long contexts of BFCL v3's multi-turn categories"

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """The exchanges before the request. Raises NotApplicable where there are too few."""
        drawn = self._drawn(sample, rng, exchanges(context))
        head = leading(sample.messages)
        added = [message for one in drawn for message in one.messages]
        plain = (message for one in drawn for message in one.plain)
        messages = (*sample.messages[:head], *added, *sample.messages[head:])
        changes = [Change(f"/messages/{number}", None, one) for number, one in enumerate(plain, head)]
        return self.row(sample, changes, messages=messages)

    def _drawn(self, sample: Sample, rng: random.Random, pool: Exchanges) -> list[Held]:
        """Exchanges in random order, each once, until they are long enough."""
        forbidden, never = pool.forbidden(sample.tools), values(sample)
        places = list(range(len(pool.held)))
        found: list[Held] = []
        length = 0
        for drawn in range(len(places)):
            at = drawn + int(rng.random() * (len(places) - drawn))
            places[drawn], places[at] = places[at], places[drawn]
            held = pool.held[places[drawn]]
            if forbidden[places[drawn]] or any(holds(held.folded, value) for value in never):
                continue
            found.append(held)
            length += held.length
            if length >= self.tokens * TOKEN:
                return found
        raise NotApplicable("too_little_text")

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """The sample's own messages stand last, before them closed exchanges of the right length."""
        wrong = self.beyond(clean, row)
        head = leading(clean.messages)
        own = clean.messages[head:]
        end = len(row.messages) - len(own)
        added = row.messages[head:end]
        if row.messages[:head] != clean.messages[:head] or row.messages[end:] != own:
            return [*wrong, "the sample's own messages are not the first or the last"]
        if [one.role for one in added] != ["user", "assistant"] * (len(added) // 2):
            wrong.append("what was added are not requests with their answers")
        requests = [one.content for one in added[::2]]
        if len(set(requests)) < len(requests):
            wrong.append("an exchange stands twice")
        length = sum(len(one.content) for one in added)
        last = sum(len(one.content) for one in added[-2:])
        if not length - last < self.tokens * TOKEN <= length:
            wrong.append(f"{length} characters stand before the request")
        said = "\n".join(one.content for one in added).casefold()
        if any(holds(said, value) for value in values(clean)):
            wrong.append("a golden value stands before the request")
        return wrong

    def spoiled(self, clean: Sample, row: Sample) -> Sample:
        """The request with a space at its end."""
        last = row.messages[-1]
        return msgspec.structs.replace(
            row, messages=(*row.messages[:-1], Message(last.role, f"{last.content} "))
        )

    def spoiled_otherwise(self, clean: Sample, row: Sample) -> Sample:
        """An exchange whose answer is a golden value, here or by the name of its tool."""
        head = leading(clean.messages)
        answer = Message("assistant", (*gold_texts(clean), clean.golden_answers[0][0].name)[0])
        messages = (*row.messages[: head + 1], answer, *row.messages[head + 2 :])
        first, old, *rest = row.changes
        new = Change(old.path, None, {"role": answer.role, "content": answer.content})
        return msgspec.structs.replace(row, messages=messages, changes=(first, new, *rest))


def exchanges(context: Context) -> Exchanges:
    """The pool of a build, made once."""
    return context.once(Exchanges, lambda: Exchanges(context.samples))


@register
class Context2k(Before):
    """Context-2k: about 2,000 tokens before the request."""

    code = "context_2k"
    order = 301
    display_name, label = "Context-2k", "2k tokens before request"
    what_is_modified = "Closed exchanges of 2,000 tokens stand before the request, which stays as it is."
    tokens = 2_000
    rows = Rows(paper=198, bundled=73, full=3079)
    golden = (
        Case(
            clean="table",
            reads="""
            + user: Read this paragraph and tell me whether the tone is warm enough, and what you wo…
            + assistant: It could turn out that Leopold had put the seed trays there as a surprise, and h…
            + (and 15 messages more, of 7100 characters)
            + assistant: The lamp is a good detail: come back to it at the close, when Perpetua knocks at…
            """,
        ),
    )


@register
class Context8k(Before):
    """Context-8k: about 8,000 tokens before the request."""

    code = "context_8k"
    order = 302
    display_name, label = "Context-8k", "8k tokens before request"
    what_is_modified = "Closed exchanges of 8,000 tokens stand before the request, which stays as it is."
    tokens = 8_000
    rows = Rows(paper=197, bundled=73, full=3079)
    golden = (
        Case(
            clean="dialogue",
            reads="""
            + user: Here is what I wrote down after the meeting. What would you tell somebody who mi…
            + assistant: What remains open is the lanterns, and who looks after it before the harvest. Th…
            + (and 67 messages more, of 31526 characters)
            + assistant: An ending that leaves the question open may suit it best, because the pleasure i…
            """,
        ),
    )


@register
class Context32k(Before):
    """Context-32k: about 32,000 tokens before the request."""

    code = "context_32k"
    order = 303
    display_name, label = "Context-32k", "32k tokens before request"
    what_is_modified = "Closed exchanges of 32,000 tokens stand before the request, which stays as it is."
    tokens = 32_000
    rows = Rows(paper=197, bundled=73, full=3078)
    golden = (
        Case(
            clean="table",
            reads="""
            + user: Read this paragraph and tell me whether the tone is friendly enough, and what yo…
            + assistant: The lamp is a good detail: come back to it at the close, when Odile knocks at th…
            + (and 277 messages more, of 127446 characters)
            + assistant: It need not be settled at once: when the heating is repaired is early enough, an…
            """,
        ),
    )
