"""How far an episode is: from the row and its replies alone follows what is asked next, and when it ends.

So an episode can be taken up again from its journal, and requests can be compared without a model.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from robustbench_tc import schema
from robustbench_tc.schema import MAX_STEPS, Call, Ended, Json, LiveRow, LiveTool, Reply, Step
from robustbench_tc.worlds.faults import FaultedWorld
from robustbench_tc.worlds.told import asks

from ..defend import base
from ..defend.again import is_strict, strict
from ..read_reply import read
from ..record import Answer, Mode
from ..wire import Ask, WireNames, function
from . import defended, prompts
from .defended import plain_call
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
    """Of the registry, whatever the agent was shown."""
    arguments: Json
    refusal: str | None = None
    """Why it is not carried out at all."""
    tool: int | None = None
    """As `Step.tool`."""


class Conversation:
    """One episode with an agent, up to now. `defend`: the defences before the agent, as `Settings.defend`.

    Everything that is sent is as the defences show it; calls, results and `history` are the registry's.
    """

    def __init__(self, row: LiveRow, mode: Mode, model: str = "", defend: tuple[str, ...] = ()) -> None:
        self.row = row
        self.mode = mode
        self.chain = defended.parse(defend, mode)
        self.registry = defended.Registry(row, self.chain)
        self.replies: list[Reply] = []
        self.turn = 0
        self.asked = False
        """Whether the agent has asked in this turn, and was answered."""
        self.ended: Ended | None = None if row.turns else "done"
        self._model = model
        self._steps = 0
        self.every_tool = self.registry.tools(len(row.turns) - 1) if row.turns else ()
        """The registry as it is shown when every tool is offered."""
        self._names = WireNames(self.every_tool)
        self._messages = (
            prompts.opening(self.registry.tools(0), self.registry.opening, mode) if row.turns else []
        )

    @property
    def tools(self) -> tuple[LiveTool, ...]:
        """The registry's tools that are offered in this turn."""
        return self.row.offered(self.turn)

    @property
    def shown_tools(self) -> tuple[schema.Tool, ...]:
        """The same as the agent is shown them."""
        return self.registry.tools(self.turn)

    @property
    def history(self) -> tuple[tuple[Call, str], ...]:
        """Every call of the episode with its result, as the agent saw them."""
        return tuple(
            (plain_call(step.name, step.arguments), step.shown)
            for reply in self.replies
            for step in reply.own_steps
        )

    def request(self, further: Sequence[base.Turn] = ()) -> Ask:
        """The next request. `further`: replies of this very moment that a defence sent back, with why."""
        messages = list(self._messages)
        for turn in further:
            answer, results = turn.said.answer, turn.results or ()
            calls = answer.tool_calls[: len(results)] if answer.tool_calls else None
            reply = Reply(turn=self.turn, text=answer.text, tool_calls=calls)
            named = zip(self._read(answer, self.shown_tools), results, strict=False)
            said = [prompts.Result(one.name, text) for one, text in named]
            messages += prompts.replied(reply, said, self._names, self.mode, messages)
        if self.mode != "fc":
            return Ask(messages, None)
        tools = [function(tool, self._names) for tool in self.shown_tools]
        return Ask(messages, strict(tools) if is_strict(self.chain) else tools)

    def scene(self) -> base.Scene:
        """This moment, for defences."""
        sample = self.registry.sample(self.turn)
        return base.Scene(
            sample,
            sample,
            (),
            lambda row, answer: tuple(
                plain_call(one.name, one.arguments) for one in self._read(answer, row.tools)
            ),
        )

    def read(self, answer: Answer) -> tuple[Wanted, ...]:
        """The calls that an answer asks for; none of them ends the turn."""
        found = self._read(answer, self.shown_tools)
        if not self.chain:
            return found
        targets = [self.registry.target(self.turn, one.name) for one in found]
        return tuple(
            one._replace(name=target.name, tool=target.place)
            for one, target in zip(found, targets, strict=True)
        )

    def _read(self, answer: Answer, tools: Sequence[schema.Tool]) -> tuple[Wanted, ...]:
        """The calls of an answer by the names that it uses."""
        parsed = read(
            answer.text,
            answer.tool_calls,
            source=READ_AS,
            tools=tools,
            model=self._model,
            mode=self.mode,
            finish_reason=answer.finish_reason,
            reasoning=answer.reasoning,
        )
        if parsed.variant == "fc":
            found = [self._native(entry, tools) for entry in answer.tool_calls]
        else:
            raw = dict(parsed.raw_arguments)
            found = [Wanted(call.name, raw.get(n, call.parameters)) for n, call in enumerate(parsed.calls)]
        if len(found) <= MAX_CALLS:
            return tuple(found)
        return (*found[:MAX_CALLS], found[MAX_CALLS]._replace(refusal=TOO_MANY))

    def _native(self, entry: dict[str, Json], tools: Sequence[schema.Tool]) -> Wanted:
        """One native call: each has to be answered, so one that cannot be read is not left out."""
        name, arguments = str(entry.get("name") or ""), entry.get("arguments")
        if isinstance(arguments, str) and len(arguments) > MAX_ARGUMENTS:
            return Wanted(name, None, TOO_LONG)
        parsed = read(
            None,
            [entry],
            source=READ_AS,
            tools=tools,
            model=self._model,
            mode=self.mode,
        )
        if not parsed.calls:
            return Wanted(name, {})
        return Wanted(parsed.calls[0].name, dict(parsed.raw_arguments).get(0, parsed.calls[0].parameters))

    def add(self, answer: Answer, steps: Sequence[Step], requests: int = 1) -> None:
        """Takes an answer and what came of its calls; the turn or the episode may be over with it."""
        own = [step for step in steps if step.defence is None]
        tool_calls = answer.tool_calls[: len(own)] if answer.tool_calls and own else answer.tool_calls
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
            requests=requests,
        )
        self.replies.append(reply)
        results = [
            prompts.Result(
                self.registry.name(self.turn, defended.Target(step.name, step.tool)),
                self.registry.result(step.shown),
            )
            for step in own
        ]
        self._messages += prompts.replied(reply, results, self._names, self.mode, self._messages)
        if steps:
            self._steps += 1
            if self._steps > MAX_STEPS:
                self.ended = "too_many_steps"
        elif reply.answered:
            self.asked = True
        else:
            self._next_turn()

    def _next_turn(self) -> None:
        self.turn, self._steps, self.asked = self.turn + 1, 0, False
        if self.turn == len(self.row.turns):
            self.turn -= 1
            self.ended = "done"
            return
        turn = self.row.turns[self.turn]
        self._messages += prompts.said(turn, self.registry.added(self.turn), self.mode)


async def answered(world: FaultedWorld, step: Step) -> Step:
    """The call of a step carried out, with texts as they are journaled: half surrogate pairs are replaced.

    What the harness itself answered never reaches the world. Raises UserError for a tool that has no such
    place in the registry.
    """
    if step.text in REFUSALS and not step.executed and not step.met:
        return step
    look = step.defence == "look"
    made = await world.call(step.name, step.arguments, place=step.tool, aside=look)
    true = None if made.true_text is None else encodable(made.true_text)
    return msgspec.structs.replace(
        made,
        text=encodable(made.text),
        true_text=true,
        tool=step.tool,
        defence=step.defence,
        told=step.told,
    )


def encodable(text: str) -> str:
    """The text with half surrogate pairs replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
