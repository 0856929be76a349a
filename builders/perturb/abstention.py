"""Abstention: rows in which calling nothing is right, and their clean counterparts, in which a call is due.

Every row of the pack is asked in the same open words: API-Bank's closing order is cut out, prompts leave out
"exactly one call" (`may_decline`), and a system message says that declining and asking are open
(`transcript.MAY_DECLINE`). What was judged and written for single samples is in `abstention_recorded`.
"""

import random
from collections.abc import Sequence

import msgspec

from robustbench_tc.builders.plain import closing_order
from robustbench_tc.eval.prompts import MAY_DECLINE
from robustbench_tc.schema import CONTROL_TOOLS, Change, GoldenAnswer, Message, Sample, Tool, clean_id_hash
from robustbench_tc.taxonomy import Rows

from .abstention_recorded import Judged, names_hash, recorded
from .base import Case, Context, NotApplicable, Perturbation, register, states
from .query import called_in_history
from .registry import insert, plain
from .style import in_form_of, near_duplicates

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


def opened(sample: Sample) -> tuple[tuple[Message, ...], tuple[Change, ...]]:
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
    return said(messages), (*changes, how_said(sample))


def said(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with the sentence: at the end of their own system message, else in one before them."""
    first, *rest = messages
    if first.role == "system":
        return (Message("system", f"{first.content}\n\n{MAY_DECLINE}"), *rest)
    return (Message("system", MAY_DECLINE), *messages)


def how_said(sample: Sample) -> Change:
    """The diff entry of `said`."""
    first = sample.messages[0]
    if first.role == "system":
        return Change("/messages/0/content", "", f"\n\n{MAY_DECLINE}", len(first.content))
    return Change("/messages/0", None, {"role": "system", "content": MAY_DECLINE})


def no_answer(sample: Sample) -> Change:
    """The diff entry of the golden answers that have gone."""
    return Change("/golden_answers", msgspec.to_builtins(sample.golden_answers), [[]])


class Asked(Perturbation):
    """What all types of the pack share: the open words."""

    pack = "abstention"
    level = "internalization"
    method = "rule"
    may_decline = True
    train_augmentable = False

    def _check_words(self, clean: Sample, row: Sample) -> list[str]:
        return (
            [] if row.messages == opened(clean)[0] else ["the messages are not the clean ones in open words"]
        )


class NoCall(Asked):
    """Rows in which calling nothing is right."""

    no_call = "right"
    control = "call_due"
    ground_truth_changes = True
    caught_by = "unit_finds_nothing"
    otherwise_caught_by = "gold_is_there"

    def beyond(self, clean: Sample, row: Sample) -> list[str]:
        """As the base, and the answer is to call nothing."""
        right = row.golden_answers == NOTHING and row.gold_tool_index is None
        return super().beyond(clean, row) + ([] if right else ["an answer is accepted that calls something"])

    def spoiled_otherwise(self, clean: Sample, row: Sample) -> Sample:
        """The clean gold still accepted."""
        return msgspec.structs.replace(row, golden_answers=clean.golden_answers)


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


def removed(sample: Sample) -> list[Change]:
    """The diff entries of the tools that have gone, at their places in the clean registry."""
    names = accepted_names(sample)
    return [
        Change(f"/tools/{place}", plain(tool), None)
        for place, tool in enumerate(sample.tools)
        if tool.name in names
    ]


@register
@states(
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
        "names. A "
        "judge saw each registry that is left; where another tool could still serve, in doubt too, there is "
        "no row, nor where the transcript calls a tool that would leave."
    ),
    may_change=("messages", "the number or roles of messages", "the set of tools", "golden answers"),
    rows=Rows(paper=78, bundled=36, full=73),
    prior_art="BFCL irrelevance detection, When2Call, ToolSandbox (insufficient information)",
    golden=(
        Case(
            clean="table",
            reads="""
            + system: If no listed tool fits or a value is missing, say so or ask.
            - gold tool: reserve(place: Where, seats: How many) Books a table.
            - gold: reserve {"place":["Luna"],"seats":[2]}
            + gold: no call
            """,
        ),
    ),
)
class GoldRemoved(NoCall):
    """GoldGone: the tools that could serve are not there."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        judged(sample)
        messages, asked = opened(sample)
        return self.row(
            sample,
            [*asked, *removed(sample), no_answer(sample)],
            messages=messages,
            tools=left(sample),
            golden_answers=NOTHING,
            gold_tool_index=None,
        )

    def check(self, clean: Sample, row: Sample) -> list[str]:
        judged(clean)
        wrong = self.beyond(clean, row) + self._check_words(clean, row)
        return wrong + (
            [] if row.tools == left(clean) else ["the registry is not the clean one without gold"]
        )

    def spoiled(self, clean: Sample, row: Sample) -> Sample:
        """The gold tool stays."""
        kept = tuple(one for one in row.changes if not one.path.startswith("/tools"))
        return msgspec.structs.replace(row, tools=clean.tools, changes=kept)


@register
@states(
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
        "`redundant`) enters at a seeded place, in the form of the registry (its keys, type words and share "
        "of required parameters). A judge found that calling it could not serve the request."
    ),
    may_change=("messages", "the number or roles of messages", "the set of tools", "golden answers"),
    rows=Rows(paper=76, bundled=36, full=71),
    prior_art="none known with a judged sibling; When2Call and BFCL irrelevance without one",
    golden=(
        Case(
            clean="table",
            reads="""
            + system: If no listed tool fits or a value is missing, say so or ask.
            + tool: cancel_table(place: Where) Cancels a booked table.
            - gold tool: reserve(place: Where, seats: How many) Books a table.
            - gold: reserve {"place":["Luna"],"seats":[2]}
            + gold: no call
            """,
        ),
    ),
)
class NearMiss(NoCall):
    """NearMiss: the tools that could serve have gone, and one that looks like them has come."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        judged(sample)
        new = rng.choice(_siblings(sample))
        tools = insert(left(sample), [new], rng)
        place = next(index for index, tool in enumerate(tools) if tool is new)
        messages, asked = opened(sample)
        return self.row(
            sample,
            [*asked, *removed(sample), Change(f"/tools/{place}", None, plain(new)), no_answer(sample)],
            messages=messages,
            tools=tools,
            golden_answers=NOTHING,
            gold_tool_index=None,
        )

    def check(self, clean: Sample, row: Sample) -> list[str]:
        judged(clean)
        wrong = self.beyond(clean, row) + self._check_words(clean, row)
        if wrong:
            return wrong
        extra = list(row.tools)
        for tool in left(clean):
            if tool not in extra:
                return [f"{tool.name} has gone, and no answer accepts it"]
            extra.remove(tool)
        known = len(extra) == 1 and extra[0] in _siblings(clean)
        return [] if known else ["the new tool is not one that was judged not to serve"]

    def spoiled(self, clean: Sample, row: Sample) -> Sample:
        """The gold tool enters under another name."""
        gold = clean.tools[clean.gold_tool_index or 0]
        copy = msgspec.structs.replace(gold, name=f"{gold.name}_2")
        kept = [one for one in row.changes if not (one.path.startswith("/tools") and one.before is None)]
        place = len(row.tools) - 1
        tools = (*left(clean), copy)
        return msgspec.structs.replace(
            row, tools=tools, changes=(*kept, Change(f"/tools/{place}", None, plain(copy)))
        )


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
