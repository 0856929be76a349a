"""How far an episode is: from the row and its replies alone follows what is asked next, and when it ends.

So an episode can be taken up again from its journal, and requests can be compared without a model.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from robustbench_tc.live import MAX_STEPS, Ended, LiveRow, LiveTool, Reply, Step
from robustbench_tc.schema import Call, Json
from robustbench_tc.worlds.claims import asks, claim
from robustbench_tc.worlds.faults import FaultedWorld

from ..read_reply import read
from ..record import Answer, Mode
from ..wire import Ask, WireNames, function
from . import prompts
from .prompts import MAX_CALLS, READ_AS

MAX_TEXT = 200_000
"""Characters of a reply's text that are kept, sent back and read."""

MAX_ARGUMENTS = 100_000
"""Characters of the arguments of a native call, as text; one with more is answered with an error."""

TOO_LONG = f"Error: the arguments have more than {MAX_ARGUMENTS} characters"
TOO_MANY = f"Error: only the first {MAX_CALLS} calls of a reply are carried out; this one had more"
REFUSALS = (TOO_LONG, TOO_MANY)
"""What a call is answered that never reaches the world, nor the fault before it."""


class Wanted(NamedTuple):
    """One call that a reply asks for."""

    name: str
    arguments: Json
    refusal: str | None = None
    """Why it is not carried out at all."""


class Conversation:
    """One episode with an agent, up to now."""

    def __init__(self, row: LiveRow, mode: Mode, model: str = "") -> None:
        self.row = row
        self.mode = mode
        self.replies: list[Reply] = []
        self.turn = 0
        self.asked = False
        """Whether the agent has asked in this turn, and was answered."""
        self.ended: Ended | None = None if row.turns else "done"
        self._model = model
        self._steps = 0
        self._met = False
        self._names = WireNames(tuple(tool.plain for tool in row.tools))
        self._messages = prompts.opening(row.offered(0), row.turns[0], mode) if row.turns else []

    @property
    def tools(self) -> tuple[LiveTool, ...]:
        """What is offered in this turn."""
        return self.row.offered(self.turn)

    @property
    def history(self) -> tuple[tuple[Call, str], ...]:
        """Every call of the episode with its result, as the agent saw them."""
        return tuple(
            (Call(step.name, step.arguments if isinstance(step.arguments, dict) else {}), step.text)
            for reply in self.replies
            for step in reply.steps
        )

    @property
    def just_answered(self) -> bool:
        """Whether PLEASE_DECIDE is the last that was said."""
        return bool(self.replies) and self.replies[-1].answered

    def request(self) -> Ask:
        """The next request."""
        tools = [function(tool.plain, self._names) for tool in self.tools] if self.mode == "fc" else None
        return Ask(list(self._messages), tools)

    def read(self, answer: Answer) -> tuple[Wanted, ...]:
        """The calls that an answer asks for; none of them ends the turn."""
        parsed = read(
            answer.text,
            answer.tool_calls,
            source=READ_AS,
            tools=[tool.plain for tool in self.tools],
            model=self._model,
            mode=self.mode,
            finish_reason=answer.finish_reason,
            reasoning=answer.reasoning,
        )
        if parsed.variant == "fc":
            found = [self._native(entry) for entry in answer.tool_calls]
        else:
            raw = dict(parsed.raw_arguments)
            found = [Wanted(call.name, raw.get(n, call.parameters)) for n, call in enumerate(parsed.calls)]
        if len(found) <= MAX_CALLS:
            return tuple(found)
        return (*found[:MAX_CALLS], found[MAX_CALLS]._replace(refusal=TOO_MANY))

    def _native(self, entry: dict[str, Json]) -> Wanted:
        """One native call: each has to be answered, so one that cannot be read is not left out."""
        name, arguments = str(entry.get("name") or ""), entry.get("arguments")
        if isinstance(arguments, str) and len(arguments) > MAX_ARGUMENTS:
            return Wanted(name, None, TOO_LONG)
        parsed = read(
            None,
            [entry],
            source=READ_AS,
            tools=[tool.plain for tool in self.tools],
            model=self._model,
            mode=self.mode,
        )
        if not parsed.calls:
            return Wanted(name, {})
        return Wanted(parsed.calls[0].name, dict(parsed.raw_arguments).get(0, parsed.calls[0].parameters))

    def add(self, answer: Answer, steps: Sequence[Step]) -> None:
        """Takes an answer and what came of its calls; the turn or the episode may be over with it."""
        tool_calls = answer.tool_calls[: len(steps)] if answer.tool_calls and steps else answer.tool_calls
        reply = Reply(
            turn=self.turn,
            text=answer.text,
            tool_calls=tool_calls,
            steps=tuple(steps),
            answered=not steps and not self.asked and asks(answer.text or ""),
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            latency_s=answer.latency_s,
            finish_reason=answer.finish_reason,
        )
        self.replies.append(reply)
        self._messages += prompts.replied(reply, self._names, self.mode, len(self.replies))
        if steps:
            self._steps += 1
            self._met = self._met or any(step.met for step in steps)
            if self._steps > MAX_STEPS:
                self.ended = "too_many_steps"
        elif reply.answered:
            self.asked = True
        elif self._met and claim(answer.text or "") == "admits":
            self.ended = "honest_failure"
        else:
            self._next_turn()

    def fail(self, status: Literal["request_error", "rejected", "too_long"]) -> None:
        """Ends the episode: no answer was had."""
        self.ended = status

    def _next_turn(self) -> None:
        self.turn, self._steps, self._met, self.asked = self.turn + 1, 0, False, False
        if self.turn == len(self.row.turns):
            self.turn -= 1
            self.ended = "done"
            return
        turn = self.row.turns[self.turn]
        added = [tool for tool in self.row.tools if tool.name in turn.adds]
        self._messages += prompts.said(turn, added, self.mode)


async def answered(world: FaultedWorld, name: str, arguments: Json) -> Step:
    """A call carried out, with texts as they are journaled: half surrogate pairs are replaced."""
    step = await world.call(name, arguments)
    true = None if step.true_text is None else encodable(step.true_text)
    return msgspec.structs.replace(step, text=encodable(step.text), true_text=true)


def encodable(text: str) -> str:
    """The text with half surrogate pairs replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
