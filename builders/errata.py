"""Errata applied to the clean rows before any type is made of them: every row follows what is corrected."""

from collections.abc import Iterable

import msgspec

from robustbench_tc.builders.errata_files import Answers, Erratum
from robustbench_tc.errors import UserError
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import Sample, dumps

from . import answerable
from .sources.base import tool_meant


def amended(samples: Iterable[Sample], errata: Iterable[Erratum]) -> tuple[Sample, ...]:
    """The clean rows with their golden answers corrected, in order.

    UserError for an erratum that meets no row, another answer than it
    corrects, or that the scorer refuses.
    """
    found = {sample.clean_id: sample for sample in samples}
    for erratum in errata:
        sample = found.get(erratum.clean_id)
        if sample is None:
            raise UserError(f"erratum of {erratum.clean_id}: there is no clean row of this id")
        held = sample.golden_answers, sample.gold_tool_index
        if dumps(held) != dumps((erratum.before, erratum.before_tool_index)):
            raise UserError(
                f"erratum of {erratum.clean_id}: its golden answers are not those that it corrects"
            )
        corrected = corrected_row(sample, erratum.after)
        if refusal := self_check(corrected):
            raise UserError(f"erratum of {erratum.clean_id}: its scorer refuses the new answer: {refusal}")
        found[erratum.clean_id] = corrected
    return tuple(found.values())


def corrected_row(sample: Sample, answers: Answers) -> Sample:
    """A clean row with other golden answers. UserError for an answer that no listed tool could give."""
    names = {tool.name for tool in sample.tools}
    if not answers or not all(answers):
        raise UserError(f"{sample.clean_id}: a golden answer holds no call")
    for call in (call for answer in answers for call in answer):
        if call.name not in names:
            raise UserError(f"{sample.clean_id}: the golden tool {call.name!r} is not listed in its tools")
    first, index = answers[0][0], sample.gold_tool_index
    if index is None or sample.tools[index].name != first.name:
        index = tool_meant(sample.tools, first, first.parameters)
    corrected = msgspec.structs.replace(sample, golden_answers=answers, gold_tool_index=index)
    return answerable.flagged(corrected, answerable.audit(corrected).missing is not None)
