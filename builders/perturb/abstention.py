"""Abstention: rows in which calling nothing is right, and their clean counterparts, in which a call is due.

Every row of the pack is asked in the same open words: API-Bank's closing order is cut out, prompts leave out
"exactly one call" (`may_decline`), and a system message says that declining and asking are open
(`transcript.MAY_DECLINE`). What was judged and written for single samples is in `abstention_recorded`.

Abstention as BFCL itself asks it: its records in which no listed function serves the request.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from robustbench_tc.builders.plain import closing_order
from robustbench_tc.eval.prompts import MAY_DECLINE
from robustbench_tc.schema import (
    CONTROL_TOOLS,
    Change,
    GoldenAnswer,
    Message,
    Sample,
    Tool,
    clean_id_hash,
    dumps,
)
from robustbench_tc.taxonomy import Rows

from .abstention_recorded import Judged, names_hash, recorded
from .base import (
    Context,
    Facts,
    NotApplicable,
    Perturbation,
    broken,
    register,
)
from .query import called_in_history
from .registry import in_form_of, index_of, insert, near_duplicates, plain

NOTHING: tuple[GoldenAnswer, ...] = ((),)
"""The one accepted answer of a row in which no call is right."""


def accepted_names(sample: Sample) -> frozenset[str]:
    """The tools that some accepted answer calls. Raises NotApplicable where one is a control tool, or none
    is."""
    names = frozenset(call.name for answer in sample.golden_answers for call in answer)
    if not names:
        raise NotApplicable("no_gold_call")
    if names & CONTROL_TOOLS:
        raise NotApplicable("gold_is_control_tool")
    return names


Reworded: TypeAlias = tuple[tuple[Message, ...], tuple[Change, ...]]
"""The messages of a row, and the diff entries that lead from the clean row's to them."""


def opened(sample: Sample) -> Reworded:
    """The messages in open words, and their diff: without a closing order, with the sentence
    `MAY_DECLINE`."""
    messages = list(sample.messages)
    changes: list[Change] = []
    for index, message in enumerate(messages):
        if message.role == "user" and (span := closing_order(message.content)):
            start, end = span
            text = message.content
            messages[index] = Message("user", text[:start] + text[end:])
            changes.append(Change(f"/messages/{index}/content", text[start:end], "", start))
    said, change = open_words(messages)
    return said, (*changes, change)


def open_words(messages: Sequence[Message]) -> tuple[tuple[Message, ...], Change]:
    """The messages with the sentence, at the end of their own system message, else in one before them; and
    the diff entry of it."""
    first, *rest = messages
    if first.role == "system":
        text = f"\n\n{MAY_DECLINE}"
        change = Change("/messages/0/content", "", text, len(first.content))
        return (Message("system", first.content + text), *rest), change
    said = Message("system", MAY_DECLINE)
    return (said, *messages), Change("/messages/0", None, msgspec.to_builtins(said))


def no_answer(sample: Sample) -> Change:
    """The diff entry of the golden answers that have gone."""
    return Change("/golden_answers", msgspec.to_builtins(sample.golden_answers), [[]])


class Asked(Perturbation, frozen=True):
    """What all types of the pack share: the open words."""

    def worded(self, sample: Sample) -> Reworded:
        """The messages of the sample's row. Raises NotApplicable where there are none."""
        return opened(sample)

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """The messages are those of the type."""
        right = row.messages == self.worded(clean)[0]
        return self.beyond(clean, row) + broken({"the messages are not those of its type": not right})


OPEN: Facts = {
    "pack": "abstention",
    "level": "internalization",
    "method": "rule",
    "may_decline": True,
    "train_augmentable": False,
}


def nothing_right(row: Sample) -> list[str]:
    """What is wrong with a row in which no call is right: an answer that calls something."""
    right = row.golden_answers == NOTHING and row.gold_tool_index is None
    return broken({"an answer is accepted that calls something": not right})


def uncalled(unit: Perturbation, sample: Sample, changes: Iterable[Change], **fields: Any) -> Sample:
    """The row of the type with these fields, in which no call is right."""
    gone = [*changes, no_answer(sample)]
    return unit.row(sample, gone, golden_answers=NOTHING, gold_tool_index=None, **fields)


class NoCall(Asked, frozen=True):
    """Rows in which calling nothing is right."""

    def beyond(self, clean: Sample, row: Sample) -> list[str]:
        """As the base, and the answer is to call nothing."""
        return super().beyond(clean, row) + nothing_right(row)

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        messages, changes = self.worded(sample)
        return uncalled(self, sample, changes, messages=messages)


NO_CALL: Facts = {
    **OPEN,
    "no_call": "right",
    "control": "call_due",
    "ground_truth_changes": True,
}


def judged(sample: Sample) -> Judged:
    """The judgment on the registry without its accepted tools. Raises NotApplicable where there is none."""
    names = accepted_names(sample)
    if all(tool.name in names or tool.name in CONTROL_TOOLS for tool in sample.tools):
        raise NotApplicable("no_other_tool")
    gone = names_hash(names & {tool.name for tool in sample.tools})
    found = recorded().judged.get((clean_id_hash(sample.clean_id), gone))
    if found is None:
        raise NotApplicable("not_judged")
    if found.another_serves:
        raise NotApplicable("another_tool_serves")
    if names & called_in_history(sample):
        raise NotApplicable("history_calls_removed")
    return found


def left(sample: Sample) -> tuple[Tool, ...]:
    """The registry without the tools that bear an accepted name."""
    names = accepted_names(sample)
    return tuple(tool for tool in sample.tools if tool.name not in names)


def gold_has_gone(clean: Sample, row: Sample) -> list[str]:
    """What is wrong with a registry without the accepted tools, of which a judge said that none serves."""
    judged(clean)
    right = row.tools == left(clean)
    return broken({"the registry is not the clean one without the accepted tools": not right})


def removed(sample: Sample) -> list[Change]:
    """The diff entries of the tools that have gone, at their places in the clean registry."""
    names = accepted_names(sample)
    return [
        Change(f"/tools/{place}", plain(tool), None)
        for place, tool in enumerate(sample.tools)
        if tool.name in names
    ]


class GoldRemoved(NoCall, frozen=True):
    """GoldGone: the tools that could serve are not there."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        judged(sample)
        messages, asked = opened(sample)
        changes = [*asked, *removed(sample)]
        return uncalled(self, sample, changes, messages=messages, tools=left(sample))

    def check(self, clean: Sample, row: Sample) -> list[str]:
        return super().check(clean, row) + gold_has_gone(clean, row)


class NearMiss(NoCall, frozen=True):
    """NearMiss: the tools that could serve have gone, and one that looks like them has come."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        judged(sample)
        new = rng.choice(_siblings(sample))
        tools = insert(left(sample), [new], rng)
        place = index_of(tools, new)
        messages, asked = opened(sample)
        changes = [*asked, *removed(sample), Change(f"/tools/{place}", None, plain(new))]
        return uncalled(self, sample, changes, messages=messages, tools=tools)

    def check(self, clean: Sample, row: Sample) -> list[str]:
        judged(clean)
        if wrong := super().check(clean, row):
            return wrong
        extra = list(row.tools)
        for tool in left(clean):
            if tool not in extra:
                return [f"{tool.name} has gone, and no answer accepts it"]
            extra.remove(tool)
        known = len(extra) == 1 and extra[0] in _siblings(clean)
        return [] if known else ["the new tool is not one that was judged not to serve"]


def _siblings(sample: Sample) -> list[Tool]:
    """The tools that may enter, in the form of the registry. Raises NotApplicable(`no_sibling`)."""
    ours = [tool for tool in sample.tools if tool.name not in CONTROL_TOOLS]
    beside = {tool.name: tool for tool in reversed(ours)}
    found = [
        formed
        for one in recorded().siblings.get(clean_id_hash(sample.clean_id), ())
        if one.gold in beside
        and not any(near_duplicates(one.tool, tool) for tool in sample.tools)
        and (formed := in_form_of(ours, one.tool, beside[one.gold])) is not None
    ]
    if not found:
        raise NotApplicable("no_sibling")
    return found


def swapped(clean: Sample, messages: tuple[Message, ...], tools: tuple[Tool, ...]) -> Iterator[Change]:
    """The diff entries: every message and tool of the clean row leaves, the others come."""
    for part, gone, came in (("messages", clean.messages, messages), ("tools", clean.tools, tools)):
        for place, one in enumerate(gone):
            yield Change(f"/{part}/{place}", msgspec.to_builtins(one), None)
        for place, one in enumerate(came):
            yield Change(f"/{part}/{place}", None, msgspec.to_builtins(one))


class Irrelevant(NoCall, frozen=True):
    """Irrelevant: a record of BFCL's own pools in which no listed function serves the request."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        if sample.source not in self.applies_to:
            raise NotApplicable("other_source")
        lent = context.lent("irrelevant", sample.clean_id)
        if not lent:
            raise NotApplicable("no_record_for_it")
        (record,) = lent
        messages, _ = opened(record)
        changes = swapped(sample, messages, record.tools)
        return uncalled(self, sample, changes, messages=messages, tools=record.tools)

    def check(self, clean: Sample, row: Sample) -> list[str]:
        swap = (*swapped(clean, row.messages, row.tools), no_answer(clean))
        first, said = row.messages[0], [MAY_DECLINE in message.content for message in row.messages]
        return self.beyond(clean, row) + broken(
            {
                "it lists no tool": not row.tools,
                "it is the clean row, whose request a tool serves": row.tools == clean.tools
                and row.messages == opened(clean)[0],
                # read from a file, they hold lists for tuples
                "the diff does not swap the whole row": dumps(row.changes) != dumps(swap),
                "it is not asked in open words": said.count(True) != 1
                or first.role != "system"
                or not first.content.endswith(MAY_DECLINE),
            }
        )


register(
    GoldRemoved(
        **NO_CALL,
        code="gold_removed",
        order=201,
        display_name="GoldGone",
        label="gold tool removed",
        component="action",
        channel="registry",
        applies_to="every source",
        what_is_modified="Every accepted tool leaves the registry; the others cannot serve the request.",
        how_made=(
            "All tools that an accepted answer calls leave the registry, under every definition of their "
            "names. A judge saw each registry that is left; where another tool could still serve, in doubt "
            "too, there is no row, nor where the transcript calls a tool that would leave."
        ),
        may_change=("messages", "the number or roles of messages", "the set of tools", "golden answers"),
        rows=Rows(paper=78, bundled=36, full=73),
        prior_art="BFCL irrelevance detection, When2Call, ToolSandbox (insufficient information)",
    ),
    NearMiss(
        **NO_CALL,
        code="near_miss",
        order=202,
        display_name="NearMiss",
        label="lookalike replaces gold tool",
        component="action",
        channel="registry",
        applies_to="every source",
        what_is_modified="As gold_removed, and a tool that looks like the gold and does another job enters.",
        how_made=(
            "As gold_removed; one of the new tools that were written to stand beside the gold tool (as for "
            "`redundant`) enters at a seeded place, in the form of the registry (its keys, type words and "
            "share of required parameters). A judge found that calling it could not serve the request."
        ),
        may_change=("messages", "the number or roles of messages", "the set of tools", "golden answers"),
        rows=Rows(paper=76, bundled=36, full=71),
        prior_art="none known with a judged sibling; When2Call and BFCL irrelevance without one",
    ),
    Irrelevant(
        **NO_CALL,
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
            "BFCL's own pools `irrelevance` and `live_irrelevance`, profile full only. Each record is put "
            "to a clean sample of BFCL of the same half (written by experts, or live), whose id it bears. "
            "Nothing else of that sample is in the row, so the two are no pair: its accuracy says "
            "something, its difference to clean rows does not. That no call is right is upstream's word."
        ),
        may_change=("messages", "the number or roles of messages", "the set of tools", "golden answers"),
        rows=Rows(paper=0, bundled=8, full=1108),
        borrows=("irrelevant",),
        prior_art="BFCL irrelevance and live_irrelevance, whose records they are",
    ),
)
