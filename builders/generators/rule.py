"""`rule`: typing errors by rule, for requests that nobody has rewritten; no other texts."""

from robustbench_tc import seeding

from ..perturb.base import NotApplicable, Text, TextRequest
from ..perturb.severity_typos import free_words, mistype
from .base import Answering, Refuse

LABEL = "rule"

KIND = "realistic_typos"
"""The one type that it writes for."""

SLIPS = (2, 3, 4)
"""How many a text has, as many as there is room for."""


class Rule(Answering):
    """Keyboard slips, as of `perturb/severity_typos.py`; a text depends on nothing but the request."""

    def __init__(self) -> None:
        super().__init__(LABEL)

    def answer(self, request: TextRequest, refuse: Refuse) -> Text | str:
        """A text, or `too_few_words` where the request has no two words that may be mistyped."""
        rng = seeding.rng(0, self.label, request.key)
        fixed = request.context.get("protected", ())
        free = free_words(request.input, request.keep, request.keep)
        words = [word for word in free if request.input[word.start : word.end].lower() not in fixed]
        for slips in range(rng.choice(SLIPS), SLIPS[0] - 1, -1):
            try:
                written = mistype(request.input, words, slips, rng)
            except NotApplicable:
                continue
            return refuse(request, written) or Text(written, self.label)
        return "too_few_words"
