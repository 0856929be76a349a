"""A generator for tests: it answers at once, and each answer passes the check that a model's would."""

from collections.abc import Callable
from typing import Any

from robustbench_tc.builders.generators.base import Answering, Refuse, check
from robustbench_tc.builders.perturb import Text, TextRequest


def by_rule(request: TextRequest) -> Any:
    """Another text; for `redundant` a tool beside the one of the request."""
    if request.kind != "redundant":
        return f"Put otherwise: {request.input}"
    name = f"{request.tool}_archive".replace(" ", "_").replace(":", "_")
    schema = {"type": "object", "properties": {"n": {"type": "integer", "description": "A number."}}}
    return [{"name": name, "description": "Looks only into the archive.", "parameters": schema}]


class Writer(Answering):
    """Counts what it was asked."""

    def __init__(self, write: Callable[[TextRequest], Any] = by_rule) -> None:
        super().__init__("writer@v1")
        self._write, self.asked = write, 0

    def answer(self, request: TextRequest, refuse: Refuse) -> Text | str:
        """As `Answering.answer`."""
        self.asked += 1
        written = self._write(request)
        return check(request, written, refuse) or Text(written, self.label)
