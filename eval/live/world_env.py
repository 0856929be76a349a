"""A live row as a dialogue has it: from the row, its replies and the results of their calls follows what is
asked next, and when it ends. The world itself is played by a `stage.Stage`, or known from a journal.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from robustbench_tc.eval.score.told import asks
from robustbench_tc.schema import (
    MAX_STEPS,
    Call,
    Ended,
    Episode,
    Json,
    LiveRow,
    LiveTool,
    Reply,
    Step,
    Tool,
    row_hash,
)

from ..defend.again import is_strict, strict
from ..defend.chain import Request, Said, Scene
from ..defend.shield import POLICY_REFUSAL, forbids
from ..read_reply import read_reply
from ..record import Answer, Settings
from ..wire import Ask, WireNames, function
from . import defended, prompts
from .carrying_out import MAX_ARGUMENTS, TOO_LONG, TOO_MANY, CarryingOut, Seen, carried_out, refused

MAX_TEXT = 200_000
"""Characters of a reply's text that are kept, sent back and read."""

MAX_NAME = 256
"""Characters that are kept of the name and the id of a call."""


class World:
    """One episode with an agent, up to now; an `Env`.

    Everything that is sent is as the defences show it; calls, results and `history` are the registry's.
    """

    def __init__(self, row: LiveRow, settings: Settings, max_steps: int = MAX_STEPS) -> None:
        """`max_steps`: replies with calls within a turn; one more ends the episode."""
        self.row, self.mode, self._max_steps = row, settings.mode, max_steps
        self.chain = defended.parse(settings.defend, self.mode)
        self.asks, self.wording = row_hash(row), prompts.version()
        self.registry = defended.Registry(row, self.chain)
        self.replies: list[Reply] = []
        self.turn = 0
        self.noticed: set[str] = set()
        """Codes of the defences that said that something is wrong."""
        self.asked = False
        """Whether the agent has asked in this turn, and was answered."""
        self.ended: Ended | None = None
        self.error: str | None = None
        """Of the request that ended it without an answer."""
        self._model = settings.model
        self._steps = 0
        self.tools = self.registry.at(len(row.turns) - 1).tools
        """The registry as it is shown when every tool is offered."""
        self._names = WireNames(self.tools)
        self._native_tools: dict[int, list[dict[str, Json]]] = {}
        """By turn, as they are sent in fc mode."""
        self._messages = prompts.opening(self.registry.at(0).tools, self.registry.at(0).messages, self.mode)

    @property
    def offered(self) -> tuple[LiveTool, ...]:
        """The registry's tools that are offered in this turn."""
        return self.row.offered(self.turn)

    @property
    def shown_tools(self) -> tuple[Tool, ...]:
        """The same as the agent is shown them."""
        return self.registry.at(self.turn).tools

    @property
    def history(self) -> tuple[tuple[Call, str], ...]:
        """Every call of the episode with its result, as the agent saw them."""
        return tuple(
            (defended.plain_call(step.name, step.arguments), step.shown)
            for reply in self.replies
            for step in reply.own_steps
        )

    def ask(self, request: Request) -> Ask:
        """A request of this moment; its turns are replies that a defence sent back, with why."""
        messages = list(self._messages)
        for turn in request.turns:
            answer, results = turn.said.answer, turn.results or ()
            calls = answer.tool_calls[: len(results)] if answer.tool_calls else None
            reply = Reply(turn=self.turn, text=answer.text, tool_calls=calls)
            names = (one.name for one in self._read(answer, self.shown_tools))
            said = list(zip(names, results, strict=False))
            messages += prompts.replied(reply, said, self._names, self.mode, messages)
        if self.mode != "fc":
            return Ask(messages, None)
        if self.turn not in self._native_tools:
            tools = [function(tool, self._names) for tool in self.shown_tools]
            self._native_tools[self.turn] = strict(tools) if is_strict(self.chain) else tools
        return Ask(messages, self._native_tools[self.turn])

    def scene(self) -> Scene:
        """This moment, for defences: nothing was replied in it yet."""
        sample = self.registry.at(self.turn).sample
        return Scene(
            sample,
            sample,
            (),
            lambda row, answer: tuple(
                defended.plain_call(one.name, one.arguments) for one in self._read(answer, row.tools)
            ),
            self.noticed,
        )

    def read_calls(self, answer: Answer) -> tuple[Step, ...]:
        """The calls that an answer asks for; none of them ends the turn."""
        found = self._read(answer, self.shown_tools)
        targets = [self.registry.at(self.turn).target(one.name) for one in found]
        return tuple(
            self._shielded(replace(one, name=target.name, tool=target.place))
            for one, target in zip(found, targets, strict=True)
        )

    def _shielded(self, step: Step) -> Step:
        """The call, refused where a policy forbids it."""
        call, policy = defended.plain_call(step.name, step.arguments), self.row.turns[0].messages
        if any(one.code == "shield" and forbids(one.way, call, policy) for one in self.chain):
            return refused(step.name, step.arguments, POLICY_REFUSAL)
        return step

    def _read(self, answer: Answer, tools: Sequence[Tool]) -> tuple[Step, ...]:
        """The calls of an answer by the names that it uses."""
        parsed = read_reply(
            answer.text,
            answer.tool_calls,
            source=prompts.READ_AS,
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
            found = [
                Step(name=call.name, arguments=raw.get(n, call.parameters), text="")
                for n, call in enumerate(parsed.calls)
            ]
        too_many = [refused(one.name, one.arguments, TOO_MANY) for one in found[prompts.MAX_CALLS :][:1]]
        return (*found[: prompts.MAX_CALLS], *too_many)

    def _native(self, entry: dict[str, Json], tools: Sequence[Tool]) -> Step:
        """One native call: each has to be answered, so one that cannot be read is not left out."""
        name, arguments = str(entry.get("name") or ""), entry.get("arguments")
        if isinstance(arguments, str) and len(arguments) > MAX_ARGUMENTS:
            return refused(name, None, TOO_LONG)
        parsed = read_reply(
            None,
            [entry],
            source=prompts.READ_AS,
            tools=tools,
            model=self._model,
            mode=self.mode,
        )
        call = next(iter(parsed.calls), Call(name, {}))
        return Step(name=call.name, arguments=dict(parsed.raw_arguments).get(0, call.parameters), text="")

    def noted(self, answer: Answer, request: Request) -> Answer:
        """The answer bounded: what is too long is cut, half surrogate pairs are replaced.

        A cut text says so; one call and one character too many stay, so that the agent is answered why.
        """
        most = {"id": MAX_NAME, "name": MAX_NAME, "arguments": MAX_ARGUMENTS + 1}
        calls = [
            {name: encodable(str(call.get(name) or ""))[:size] for name, size in most.items()}
            for call in (answer.tool_calls or ())[: prompts.MAX_CALLS + 1]
        ]
        return replace(
            answer,
            text=_cut(answer.text),
            reasoning=_cut(answer.reasoning),
            tool_calls=calls or None,
            logprobs=None,  # nothing here is made of them, and they are longer than all the rest
        )

    def take(self, said: Said, asked: Sequence[Answer]) -> CarryingOut | None:
        """The reply counts in the model's own words, with the tokens and the time of all its requests."""
        own = said
        while own.inner is not None:
            own = own.inner
        answer = replace(
            own.answer,
            prompt_tokens=said.answer.prompt_tokens,
            completion_tokens=said.answer.completion_tokens,
            latency_s=said.answer.latency_s,
        )
        if answer.status != "ok":
            self.ended, self.error = answer.status, answer.error
            return None
        self._replied = answer, len(asked)
        """The reply whose calls wait for a world, and the requests that it took."""
        if wanted := self.read_calls(answer):
            retry = any(one.code == "retry" for one in self.chain)
            seen = Seen(self.row.tools, self.offered, self.history) if retry else None
            return carried_out(wanted, seen)
        self.add(())
        return None

    def episode(self, repeat: int) -> Episode:
        """What it came to; where it goes on still, it is cut off here."""
        row = self.row
        return Episode(
            id=row.id,
            clean_id=row.clean_id,
            type_code=row.type_code,
            world=row.world,
            model=self._model,
            mode=self.mode,
            repeat=repeat,
            row_hash=self.asks,
            ended=self.ended or "too_many_steps",
            replies=tuple(self.replies),
            error=self.error,
            noticed=tuple(sorted(self.noticed)),
        )

    def add(self, steps: Sequence[Step]) -> None:
        """What came of the reply's calls; the turn or the episode may be over with it."""
        answer, requests = self._replied
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
        now = self.registry.at(self.turn)
        results = [
            (now.name(defended.Target(step.name, step.tool)), self.registry.result(step.shown, self.noticed))
            for step in own
        ]
        if any(step.defence == "repeat" or step.told is not None for step in steps):
            self.noticed.add("retry")
        if any(step.text == POLICY_REFUSAL for step in own):
            self.noticed.add("shield")
        self._messages += prompts.replied(reply, results, self._names, self.mode, self._messages)
        if steps:
            self._steps += 1
            if self._steps > self._max_steps:
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
        said = self.row.turns[self.turn].messages
        self._messages += prompts.user_messages(said, self.registry.added(self.turn), self.mode)


def _cut(text: str | None) -> str | None:
    if text is not None and len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT]}\n[cut by the harness: {len(text)} characters]"
    return None if text is None else encodable(text)


def encodable(text: str) -> str:
    """The text with half surrogate pairs replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
