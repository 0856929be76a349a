"""Transition: the tool fails at run time. The row is the clean row; the harness injects the text (§6)."""

import random

from robustbench_tc.schema import Sample
from robustbench_tc.taxonomy import INJECTED_ERRORS

from .base import Context, Perturbation, register


class Transition(Perturbation):
    """The first call is answered with the type's fixed error text; the reply after it is what is scored."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        return self.row(sample, (), injected_error=INJECTED_ERRORS[self.code])

    def check(self, clean: Sample, row: Sample) -> list[str]:
        wrong = []
        if row.injected_error != INJECTED_ERRORS[self.code]:
            wrong.append("the injected text is not the protocol's")
        if (row.messages, row.tools, row.golden_answers) != (
            clean.messages,
            clean.tools,
            clean.golden_answers,
        ):
            wrong.append("a transition row differs from its clean row")
        return wrong


for _code in INJECTED_ERRORS:
    register(_code)(Transition)
