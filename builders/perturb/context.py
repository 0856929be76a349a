"""Context: closed exchanges stand before the request, until they are so long (4 characters a token).

`context_*` is what a long session of an agent leaves behind: requests, calls of the row's own tools, their
results and answers. `context_text_*` is text alone, so that length and demonstration can be told apart. No
golden value stands there, and the request itself stays as it was and stands last.
"""

import random
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from robustbench_tc.eval.prompts.history import as_text
from robustbench_tc.schema import Call, Change, Message, Sample
from robustbench_tc.taxonomy import Rows

from .base import Case, Context, NotApplicable, Perturbation, broken, states, variant
from .context_session import GRAMMAR, Carried, Session, callable_tools
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


@states(
    component="observation",
    level="perception",
    pack="context",
    channel="context",
    method="rule",
    may_change=("the number or roles of messages",),
    ground_truth_changes=False,
    train_augmentable=False,
    applies_to="every source",
    traits=("tokens", "calls"),
    caught_by="request_stands_last_as_it_was",
    prior_art="Lost in the Middle (Liu et al., 2024); the long contexts of BFCL v3's multi-turn categories",
)
class Before(Perturbation):
    """So many tokens of closed exchanges stand before the request."""

    tokens: ClassVar[int]
    calls: ClassVar[bool]
    """Whether the exchanges hold calls and their results."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """The exchanges before the request. Raises NotApplicable with a reason."""
        head = leading(sample.messages)
        added = self._exchanges(sample, rng, context)
        messages = (*sample.messages[:head], *added, *sample.messages[head:])
        changes = [
            Change(f"/messages/{number}", None, msgspec.to_builtins(one))
            for number, one in enumerate(added, head)
        ]
        return self.row(sample, changes, messages=messages)

    def _exchanges(self, sample: Sample, rng: random.Random, context: Context) -> list[Message]:
        """Exchanges until they are long enough."""
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

    def spoiled(self, clean: Sample, row: Sample) -> Sample:
        """The request with a space at its end."""
        last = row.messages[-1]
        return msgspec.structs.replace(
            row, messages=(*row.messages[:-1], Message(last.role, f"{last.content} "))
        )


def _with(row: Sample, place: int, message: Message) -> Sample:
    """The row with another added message in that place, in the messages and in the diff alike."""
    messages = (*row.messages[:place], message, *row.messages[place + 1 :])
    path = f"/messages/{place}"
    changes = tuple(
        Change(path, None, msgspec.to_builtins(message)) if change.path == path else change
        for change in row.changes
    )
    return msgspec.structs.replace(row, messages=messages, changes=changes)


class Text(Before):
    """Exchanges in words."""

    rows = Rows(paper=199, bundled=73, full=3078)
    calls = False
    otherwise_caught_by = "context_holds_no_gold_value"
    how_made = (
        "Closed exchanges, a request and its answer in words, stand between the system's messages and the"
        " sample's own, until they have so many tokens (4 characters each). They are drawn from a grammar of"
        " our own about letters, notes and everyday things. No sentence form stands more than five times in a"
        " row, and none holds a golden value or the name of a gold tool. The sample's own messages stay byte"
        " for byte."
    )

    def left_out(self, sample: Sample) -> tuple[str, ...]:
        """Golden values, and the names of accepted tools."""
        names = (call.name.casefold() for answer in sample.golden_answers for call in answer)
        return (*values(sample), *dict.fromkeys(names))

    def _exchanges(self, sample: Sample, rng: random.Random, context: Context) -> list[Message]:
        writer = Writer(rng, self.left_out(sample))
        found: list[Message] = []
        length = 0
        while length < self.tokens * TOKEN:
            request = f"{writer.prose('report', rng.randint(2, 6))} {writer.sentence('ask')}"
            answer = writer.prose("counsel", rng.randint(2, 5))
            found += [Message("user", request), Message("assistant", answer)]
            length += len(request) + len(answer)
        return found

    def spoiled_otherwise(self, clean: Sample, row: Sample) -> Sample:
        """An exchange whose answer is a golden value, here or by the name of its tool."""
        answer = (*gold_texts(clean), clean.golden_answers[0][0].name)[0]
        return _with(row, leading(clean.messages) + 1, Message("assistant", answer))


class Calls(Before):
    """Exchanges with calls and their results."""

    rows = Rows(paper=188, bundled=71, full=3009)
    calls = True
    otherwise_caught_by = "earlier_calls_are_the_rows_own"
    how_made = (
        "What a long session leaves behind stands between the system's messages and the sample's own, until"
        " it has so many tokens (4 characters each): requests, calls of the row's own tools with made-up"
        " values, results (JSON, tables and logs of generated values and of values from other samples'"
        " golds), answers, and exchanges of text alone. A prompt writes the calls as the row's format wants"
        " them, in fc mode they are native ones. No sentence form stands more than five times in a row, and"
        " nothing holds a golden value; a gold tool is called only where its arguments are judged. The"
        " sample's own messages stay byte for byte."
    )

    def _exchanges(self, sample: Sample, rng: random.Random, context: Context) -> list[Message]:
        tools = callable_tools(sample)
        if not tools:
            raise NotApplicable("no_tool_to_call")
        writer = Writer(rng, self.left_out(sample), GRAMMAR)
        carried = context.once(Carried, lambda: Carried(context.samples))
        session = Session(writer, tools, carried.pairs)
        found: list[Message] = []
        length = 0
        while length < self.tokens * TOKEN:
            tried = (session.exchange() for _ in range(_TRIES))
            said = next((one for one in tried if one is not None), None)
            if said is None:
                raise NotApplicable("too_little_text")
            found += said
            length += sum(len(message.content) for message in said)
        return found

    def spoiled_otherwise(self, clean: Sample, row: Sample) -> Sample:
        """A call of a tool that the row does not offer."""
        place = leading(clean.messages) + 1
        return _with(row, place, Message("assistant", as_text([Call("no_such_tool", {})])))


variant(
    Calls,
    """Context-2k: about 2,000 tokens before the request.""",
    code="context_2k",
    order=301,
    display_name="Context-2k",
    label="2k tokens before request",
    what_is_modified="An agent's session of 2,000 tokens stands before the request, which stays as it is.",
    tokens=2_000,
    golden=(
        Case(
            clean="table",
            reads="""
            + user: Can reserve tell us more at the next meeting, with place "Tollhouse Lane" and se…
            + assistant: Then I will try reserve once.…
            + (and 23 messages more, of 7519 characters)
            + assistant: So I am told, KK72590 is the one for the pear trees, so there is no need to repl…
            """,
        ),
    ),
)


variant(
    Calls,
    """Context-8k: about 8,000 tokens before the request.""",
    code="context_8k",
    order=302,
    display_name="Context-8k",
    label="8k tokens before request",
    what_is_modified="An agent's session of 8,000 tokens stands before the request, which stays as it is.",
    tokens=8_000,
    golden=(
        Case(
            clean="dialogue",
            reads="""
            + user: For the pear trees I need list berths with harbour "tollhouse inventory 753". Th…
            + assistant: List berths is next: I am going to work with it with these values.…
            + (and 89 messages more, of 32508 characters)
            + assistant: List berths gave quite a few items; DD82144 stands at the top, which looks plaus…
            """,
        ),
    ),
)


variant(
    Calls,
    """Context-32k: about 32,000 tokens before the request.""",
    code="context_32k",
    order=303,
    display_name="Context-32k",
    label="32k tokens before request",
    what_is_modified="An agent's session of 32,000 tokens stands before the request, which stays as it is.",
    tokens=32_000,
    golden=(
        Case(
            clean="table",
            reads="""
            + user: Could you go through find menu for the carpenter, with dish "tollhouse inventory…
            + assistant: First I will use find menu once the frost is over.…
            + (and 353 messages more, of 128757 characters)
            + assistant: RR83300 is what the carpenter will ask about, so there is no need to label the l…
            """,
        ),
    ),
)


variant(
    Text,
    """Text-2k: about 2,000 tokens of text before the request.""",
    code="context_text_2k",
    order=306,
    display_name="Text-2k",
    label="2k tokens of text",
    what_is_modified="Text exchanges of 2,000 tokens stand before the request, which stays as it is.",
    tokens=2_000,
    golden=(
        Case(
            clean="table",
            reads="""
            + user: The new tenant thinks that the lost umbrella belongs near the old mill, although…
            + assistant: What matters to the ferryman is the collection of maps, because nobody could agr…
            + (and 19 messages more, of 7744 characters)
            + assistant: For once, it costs nothing to store the garden fence the day after the storm. Th…
            """,
        ),
    ),
)


variant(
    Text,
    """Text-8k: about 8,000 tokens of text before the request.""",
    code="context_text_8k",
    order=307,
    display_name="Text-8k",
    label="8k tokens of text",
    what_is_modified="Text exchanges of 8,000 tokens stand before the request, which stays as it is.",
    tokens=8_000,
    golden=(
        Case(
            clean="dialogue",
            reads="""
            + user: What Casimir said in front of the glasshouse was frank, since it looked gentle e…
            + assistant: Better share the letter to the council than cover up the boiler, since there was…
            + (and 73 messages more, of 31211 characters)
            + assistant: Nobody will mind if you show round the ladder, provided that the baker hears of …
            """,
        ),
    ),
)


variant(
    Text,
    """Text-32k: about 32,000 tokens of text before the request.""",
    code="context_text_32k",
    order=308,
    display_name="Text-32k",
    label="32k tokens of text",
    what_is_modified="Text exchanges of 32,000 tokens stand before the request, which stays as it is.",
    tokens=32_000,
    golden=(
        Case(
            clean="table",
            reads="""
            + user: A cousin of Cedric's made a drawing of the wooden benches and then asked about t…
            + assistant: The patient way is to move the garden fence first and to mend the kitchen roof w…
            + (and 291 messages more, of 127015 characters)
            + assistant: Start behind the boathouse: give away the recipe for plum cake, then see whether…
            """,
        ),
    ),
)
