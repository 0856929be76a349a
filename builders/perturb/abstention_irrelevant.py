"""Abstention as BFCL itself asks it: its records in which no listed function serves the request."""

import random
from collections.abc import Iterator

import msgspec

from robustbench_tc.eval.prompts import MAY_DECLINE
from robustbench_tc.schema import Change, Message, Sample, Tool, dumps
from robustbench_tc.taxonomy import Rows

from .abstention import NOTHING, NoCall, no_answer, opened
from .base import Case, Context, NotApplicable, register, states
from .registry import plain


def swapped(clean: Sample, messages: tuple[Message, ...], tools: tuple[Tool, ...]) -> Iterator[Change]:
    """The diff entries: every message and tool of the clean row leaves, the others come."""
    for place, message in enumerate(clean.messages):
        yield Change(f"/messages/{place}", msgspec.to_builtins(message), None)
    for place, message in enumerate(messages):
        yield Change(f"/messages/{place}", None, msgspec.to_builtins(message))
    for place, tool in enumerate(clean.tools):
        yield Change(f"/tools/{place}", plain(tool), None)
    for place, tool in enumerate(tools):
        yield Change(f"/tools/{place}", None, plain(tool))


@register
@states(
    code="irrelevant",
    order=206,
    display_name="Irrelevant",
    label="only irrelevant tools",
    component="action",
    channel="registry",
    applies_to=("bfcl_v3",),
    what_is_modified=(
        "Request and registry are those of a record in which upstream says that no call is right."
    ),
    how_made=(
        "BFCL's own pools `irrelevance` and `live_irrelevance`, profile full only. Each record is put to a "
        "clean sample of BFCL of the same half (written by experts, or live), whose id it bears. Nothing "
        "else of that sample is in the row, so the two are no pair: its accuracy says something, its "
        "difference to clean rows does not. That no call is right is upstream's word."
    ),
    may_change=("messages", "the number or roles of messages", "the set of tools", "golden answers"),
    rows=Rows(paper=0, bundled=8, full=1108),
    borrows=("irrelevant",),
    prior_art="BFCL irrelevance and live_irrelevance, whose records they are",
    otherwise_caught_by="gold_is_there",
    golden=(
        Case(
            clean="table",
            reads="""
            - user: Book 2 seats at Luna tonight.
            - tool: find_menu(dish: What to look for) Shows a menu.
            - gold tool: reserve(place: Where, seats: How many) Books a table.
            - gold: reserve {"place":["Luna"],"seats":[2]}
            + system: If no listed tool fits or a value is missing, say so or ask.
            + user: How long may a kite be flown at Brunt Ness?
            + tool: mow_lawn(garden: Which one) Mows a lawn.
            + gold: no call
            """,
        ),
    ),
)
class Irrelevant(NoCall):
    """Irrelevant: a record of BFCL's own pools in which no listed function serves the request."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        if sample.source not in self.applies_to:
            raise NotApplicable("other_source")
        lent = context.lent("irrelevant", sample.clean_id)
        if not lent:
            raise NotApplicable("no_record_for_it")
        (record,) = lent
        messages, _ = opened(record)
        return self.row(
            sample,
            [*swapped(sample, messages, record.tools), no_answer(sample)],
            messages=messages,
            tools=record.tools,
            golden_answers=NOTHING,
            gold_tool_index=None,
        )

    def check(self, clean: Sample, row: Sample) -> list[str]:
        wrong = self.beyond(clean, row)
        if not row.tools:
            wrong.append("it lists no tool")
        if row.tools == clean.tools and row.messages == opened(clean)[0]:
            wrong.append("it is the clean row, whose request a tool serves")
        said = (*swapped(clean, row.messages, row.tools), no_answer(clean))
        if dumps(row.changes) != dumps(said):  # read from a file, they hold lists for tuples
            wrong.append("the diff does not swap the whole row")
        return wrong + ([] if said_once(row) else ["it is not asked in open words"])

    def spoiled(self, clean: Sample, row: Sample) -> Sample:
        """The clean request and its tools, of which one serves it."""
        messages = opened(clean)[0]
        changes = (*swapped(clean, messages, clean.tools), no_answer(clean))
        return msgspec.structs.replace(row, messages=messages, tools=clean.tools, changes=changes)


def said_once(row: Sample) -> bool:
    """Whether the sentence that leaves it open to decline stands once, at the end of a system message."""
    first = row.messages[0]
    there = sum(MAY_DECLINE in message.content for message in row.messages)
    return there == 1 and first.role == "system" and first.content.endswith(MAY_DECLINE)
