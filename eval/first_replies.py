"""The first replies of a run: whether it makes sense to ask on.

An own agent is tried on one row before the others are asked. A model is stopped after `SILENT` replies
without a call to rows whose gold is a call: the server has no tool parser, or the model calls otherwise.
"""

from collections.abc import Callable, Mapping
from typing import Literal

from robustbench_tc.errors import UserError
from robustbench_tc.llm import Store
from robustbench_tc.llm.store import read_lines
from robustbench_tc.schema import LiveRow, Sample

from .dialogue import Dialogue
from .journal import as_answer
from .record import Answer, Settings
from .scripted import parsed

SILENT = 20
"""So many replies without a call, and none with one, stop a session."""

_WHY_SILENT = {
    "fc": "is a tool parser missing on the server (vLLM: --enable-auto-tool-choice --tool-call-parser …), or "
    "is it a prompt-mode model (--mode prompt)?",
    "prompt": "is the model one that calls natively (--mode fc)?",
}

_EXPECTED = {
    "callable": "a Reply, a text, a list of calls, or a dict with text and calls",
    "command": "a text, or JSON with text and calls, on standard output",
}

Asked = Literal["own agent", "model"]
"""Whose first replies are looked at."""


class FirstReplies:
    """Looks at replies until one shows that the run works. A run whose journal holds such a one goes on."""

    def __init__(
        self, asked: Asked, settings: Settings, journal: Store, rows: Mapping[str, Sample | LiveRow]
    ) -> None:
        """`rows`: of the dataset, by id; the journal may hold answers to them."""
        self._asked = asked
        self._settings = settings
        self._silent = 0
        lines = (line for _, line in read_lines(journal.path) if "status" in line)
        there = (as_answer(journal.path, line) for line in lines)
        self._works = any(
            self._shows(one, lambda one: parsed(row, settings, one).calls)
            for one in there
            if isinstance(row := rows.get(one.id), Sample)
        )

    @property
    def one_alone(self) -> bool:
        """Whether a row is to be tried before the others are asked."""
        return self._asked == "own agent" and not self._works

    def see(self, dialogue: Dialogue, made: Answer) -> None:
        """Looks at the answer to the dialogue's next request.

        Raises UserError where there is no sense in going on.
        """
        row = dialogue.env.row
        self._works = self._works or self._shows(made, dialogue.calls)
        if self._works or not isinstance(row, Sample):
            return
        if made.status == "agent_error":
            said = (made.error or "").removeprefix("agent: ")
            expected = _EXPECTED[self._settings.backend]
            raise UserError(f"the agent failed on its first row, {row.id}: {said}; expected: {expected}")
        if self._asked == "model" and made.status == "ok" and not made.further and all(row.golden_answers):
            self._silent += 1
        if self._silent >= SILENT:
            why = _WHY_SILENT[self._settings.mode]
            raise UserError(f"{SILENT} of {SILENT} replies hold no call: {why} --no-early-stop goes on")

    def _shows(self, made: Answer, calls: Callable[[Answer], object]) -> bool:
        if made.status != "ok" or self._asked == "own agent":
            return made.status == "ok"
        return bool(made.tool_calls) or bool(calls(made))
