"""Abstention by words alone: a value that is missing, a question that needs no tool, and the counterparts."""

import json
import random
import re
from collections.abc import Sequence

import msgspec

from robustbench_tc.builders.plain import closing_order
from robustbench_tc.schema import Call, Change, Message, Sample, clean_id_hash
from robustbench_tc.taxonomy import Rows

from .abstention import (
    NO_CALL,
    OPEN,
    Asked,
    NoCall,
    Reworded,
    accepted_names,
    open_words,
    opened,
)
from .abstention_recorded import Edit, Missing, apply_edits, edits_between, recorded, registry_hash
from .base import Context, NotApplicable, lost_values, register
from .query import gold_texts, kept_values, query_span, query_text


def taken_out(sample: Sample) -> tuple[Missing, str]:
    """The value that is taken out of the request, and the request without it.

    Raises NotApplicable: `not_recorded`, or why what was recorded makes no row (`refusal`).
    """
    accepted_names(sample)
    before = query_text(sample)
    for one in recorded().missing.get(clean_id_hash(sample.clean_id), ()):
        if (after := apply_edits(before, one.edits)) is not None:
            break
    else:
        raise NotApplicable("not_recorded")
    if reason := refusal(sample, one, before, after):
        raise NotApplicable(reason)
    return one, after


def requested(sample: Sample, edits: Sequence[Edit]) -> Reworded:
    """The messages with an edited request, in open words."""
    span = query_span(sample)
    messages, asked = opened(sample)
    place = span.message + len(messages) - len(sample.messages)
    old = messages[place]
    after = apply_edits(query_text(sample), edits)
    assert after is not None, "edits are those of the request"
    new = Message(old.role, old.content[: span.start] + after + old.content[span.end :])
    changes = (
        Change(f"/messages/{span.message}/content", was, became, span.start + at) for at, was, became in edits
    )
    return (*messages[:place], new, *messages[place + 1 :]), (*changes, *asked)


def with_value(sample: Sample) -> Reworded:
    """The messages in open words; a request of `missing_value` in its words, with the value beside them.

    So no word tells the rows in which a value is missing from those in which none is.
    """
    said = recorded().said.get(clean_id_hash(sample.clean_id))
    if said is None:
        return opened(sample)
    _, without = taken_out(sample)
    after = without.replace(said.behind, said.behind + said.said, 1)
    return requested(sample, edits_between(query_text(sample), after))


def refusal(sample: Sample, one: Missing, before: str, after: str) -> str:
    """Why a request with a value taken out makes no row, in a word; "" where it does."""
    if not any(one.parameter in call.parameters for call in sample.golden_answers[0]):
        return "not_in_the_first_answer"
    taking = [c for answer in sample.golden_answers for c in answer if one.parameter in c.parameters]
    requiring = {tool.name for tool in sample.tools if one.parameter in tool.required}
    if any(call.name not in requiring for call in taking):
        return "not_required"
    accepted = tuple(Call(call.name, {one.parameter: call.parameters[one.parameter]}) for call in taking)
    texts = gold_texts(msgspec.structs.replace(sample, golden_answers=(accepted,)))
    if not any(one.value in text for text in texts):
        return "not_a_golden_value"
    value = re.compile(rf"(?<!\w){re.escape(one.value)}(?!\w)", re.IGNORECASE)
    if len(value.findall(before)) != 1 or value.search(after):
        return "value_not_taken_out"
    span = query_span(sample)
    others = [m.content for place, m in enumerate(sample.messages) if place != span.message]
    content = sample.messages[span.message].content
    if any(value.search(text) for text in (*others, content[: span.start], content[span.end :])):
        return "value_stands_elsewhere"
    kept = [text for text in kept_values(sample, before) if one.value not in text and text not in one.value]
    return "another_value_lost" if lost_values(after, kept) else ""


class MissingValue(NoCall, frozen=True):
    """NoValue: a required value is not said."""

    def worded(self, sample: Sample) -> Reworded:
        one, _ = taken_out(sample)
        return requested(sample, one.edits)


CARRIED_OUT = """
<tool_call>
{call}
</tool_call>
<obs> success </obs>
<response>That is done.</response>

<user>{question}</user>"""
"""What follows on the request of a transcript: its golden call, made, and the question."""


def asking(sample: Sample) -> Reworded:
    """The question of the sample in place of its conversation; in a transcript, after its request was carried
    out. Raises NotApplicable."""
    question = recorded().questions.get(registry_hash(sample.clean_id, (t.name for t in sample.tools)))
    if question is None:
        raise NotApplicable("no_question_for_it")
    last = max((i for i, m in enumerate(sample.messages) if m.role == "user"), default=None)
    if last is None:
        raise NotApplicable("no_user_text")
    kept: list[Message] = []
    changes: list[Change] = []
    for place, message in enumerate(sample.messages):
        if place == last and (span := closing_order(message.content)):
            start, end = span
            text, call = message.content, sample.golden_answers[0][0]
            made = {"name": call.name, "parameters": {k: v[0] for k, v in call.parameters.items()}}
            new = CARRIED_OUT.format(call=json.dumps(made), question=question)
            kept.append(Message("user", text[:start] + new + text[end:]))
            changes.append(Change(f"/messages/{place}/content", text[start:end], new, start))
        elif place == last:
            kept.append(Message("user", question))
            changes.append(Change(f"/messages/{place}/content", message.content, question))
        elif message.role == "system":
            kept.append(message)
        else:
            changes.append(Change(f"/messages/{place}", msgspec.to_builtins(message), None))
    messages, said = open_words(kept)
    return messages, (*changes, said)


class AnswerDirectly(NoCall, frozen=True):
    """NoNeed: a question that no tool is needed for."""

    def worded(self, sample: Sample) -> Reworded:
        return asking(sample)


class CallDue(Asked, frozen=True):
    """CallDue: the clean row in open words, in which a call is still right."""

    def worded(self, sample: Sample) -> Reworded:
        accepted_names(sample)
        return with_value(sample)

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        messages, changes = self.worded(sample)
        return self.row(sample, changes, messages=messages)


register(
    MissingValue(
        **NO_CALL,
        code="missing_value",
        order=203,
        display_name="NoValue",
        label="required value missing",
        component="observation",
        channel="context",
        what_is_modified="One value that the gold tool requires is taken out of the request.",
        how_made=(
            "The one place in the request where a required value of the golden call stands was rewritten "
            "without it; nothing else in the row holds the value, and every other golden value stays. "
            "Whether a reply asks for the value is reported beside the accuracy."
        ),
        applies_to=("bfcl_v3", "rotbench", "toolalpaca"),
        may_change=("messages", "the number or roles of messages", "golden answers"),
        rows=Rows(paper=45, bundled=15, full=45),
        prior_art="When2Call (request for information), BFCL live missing parameters, ToolSandbox",
    ),
    AnswerDirectly(
        **NO_CALL,
        code="answer_directly",
        order=204,
        display_name="NoNeed",
        label="no tool needed",
        component="observation",
        channel="context",
        applies_to="every source",
        what_is_modified=(
            "A question of general knowledge stands in place of the request, in words of the registry."
        ),
        how_made=(
            "90 questions of general knowledge, written for this type, 60 for the paper's samples and 30 "
            "for the starter samples. Each speaks of the things that the tools of its registry are about, "
            "and none of these tools is needed to answer it. It stands in place of the conversation; in a "
            "transcript it follows after the golden call was made."
        ),
        may_change=("messages", "the number or roles of messages", "golden answers"),
        rows=Rows(paper=60, bundled=30, full=60),
        prior_art="When2Call (direct answer), MetaTool (tool usage awareness)",
    ),
    CallDue(
        **OPEN,
        code="call_due",
        order=205,
        display_name="CallDue",
        label="call due, declining allowed",
        component="observation",
        channel="context",
        applies_to="every source",
        what_is_modified=(
            "Nothing but the words: the row says that declining and asking are open, as the whole pack does."
        ),
        how_made=(
            "The clean row, asked as the other types of the pack are: with the system message that leaves "
            "it open to decline or ask, and without an order to make one call. Its golden answer stays: "
            "whoever always declines is wrong here. A request from which `missing_value` takes a value is "
            "asked in the words of that type, with the value beside them. Rows whose gold is a control tool "
            "(to ask, to finish) have none: there no call is due."
        ),
        may_change=("messages", "the number or roles of messages"),
        ground_truth_changes=False,
        rows=Rows(paper=198, bundled=72, full=3071),
        prior_art="BFCL live relevance; balanced accuracy of call decisions as in When2Call",
    ),
)
