"""`rule`: typing errors by rule, for requests that nobody has rewritten; no other texts."""

from collections.abc import Sequence

from robustbench_tc import seeding

from ..perturb.base import NotApplicable, Text, TextRequest
from ..perturb.severity_typos import free_words, mistype
from .base import Counting, Refuse

LABEL = "rule"

KIND = "realistic_typos"
"""The one type that it writes for."""

SLIPS = (2, 3, 4)
"""How many a text has, as many as there is room for."""


class Rule(Counting):
    """Keyboard slips, as of `perturb/severity_typos.py`; a text depends on nothing but the request."""

    def __init__(self) -> None:
        super().__init__(LABEL)

    async def generate(self, requests: Sequence[TextRequest], refuse: Refuse) -> dict[str, Text | str]:
        """A text each, or `too_few_words` where a request has no two words that may be mistyped."""
        answers: dict[str, Text | str] = {}
        for request in requests:
            written = self._written(request)
            reason = "too_few_words" if written is None else refuse(request, written)
            answers[request.key] = Text(written, self.label) if reason is None else reason
        self._statistics.settle(answers)
        return answers

    def _written(self, request: TextRequest) -> str | None:
        rng = seeding.rng(0, self.label, request.key)
        words = free_words(request.input, request.keep, request.keep)
        wanted = rng.choice(SLIPS)
        for slips in range(wanted, SLIPS[0] - 1, -1):
            try:
                return mistype(request.input, words, slips, rng)
            except NotApplicable:
                continue
        return None
