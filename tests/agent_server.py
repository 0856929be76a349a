"""A reference agent behind an OpenAI-compatible address on loopback, in prompt and fc mode.

    with serving("oracle", rows) as base_url: …

The server knows the rows and finds the one that a request asks about by the content of its messages and
tools, never by a side channel in the prompt.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from robustbench_tc import schema
from robustbench_tc.eval import agents, inputs, prompts, wire
from robustbench_tc.eval.defend.again import INVALID
from robustbench_tc.eval.prompts.calls import render_calls

from . import loopback
from .loopback import Fault, LoopbackServer, error_body


class Index:
    """Finds the row that a request asks about, by the request's messages and tools."""

    def __init__(self, rows: Sequence[schema.Sample], words: prompts.Prompts = prompts.OURS) -> None:
        self._anchors = inputs.Dataset(name="", rows=tuple(rows)).anchors()
        self._rows: dict[tuple[str, bytes], schema.Sample] = {}
        self._answered: dict[tuple[str, bytes, str], schema.Sample] = {}
        """Rows by their first request and the text that answers its call."""
        errors = {row.injected_error for row in rows if row.injected_error is not None}
        self._texts = {("tool", text): text for text in errors}
        self._texts |= {("user", words.result(text)): text for text in errors}
        """What answers a call, by role and content of its message."""
        for row in rows:
            for mode in ("prompt", "fc"):
                ask = wire.first(row, mode, words)
                address = _address(ask.messages, ask.tools)
                # Clean and transition rows ask in the same words; their gold is the same too.
                self._rows.setdefault((mode, address), row)
                if row.injected_error is not None:
                    self._answered.setdefault((mode, address, row.injected_error), row)

    def find(
        self, messages: list[dict[str, schema.Json]], tools: schema.Json
    ) -> tuple[str, agents.AgentContext] | None:
        """The mode and the scene of a request, or None for one that no row sends."""
        mode = "prompt" if tools is None else "fc"
        answered = 0
        while True:
            address = _address(messages, tools)
            row = self._rows.get((mode, address)) if not answered else None
            if row is not None:
                return mode, agents.AgentContext(row, self._anchors[row.id], False)
            last = str(messages[-1].get("content")) if messages else ""
            text = self._answer_at_end(messages)
            # An agent learns nothing from a validator: what it was asked before is asked again.
            if text is None and INVALID not in last:
                return None
            turns = len(messages) - 1
            while turns > 0 and messages[turns]["role"] != "assistant":
                turns -= 1
            messages = messages[: max(turns, 0)]
            if text is None:
                continue
            answered += 1
            row = self._answered.get((mode, _address(messages, tools), text))
            if row is not None:
                return mode, agents.AgentContext(row, self._anchors[row.id], True, answered)

    def _answer_at_end(self, messages: list[dict[str, schema.Json]]) -> str | None:
        """The text that answers a call at the end of the request."""
        last = messages[-1] if messages else {}
        return self._texts.get((str(last.get("role")), str(last.get("content"))))


def _address(messages: schema.Json, tools: schema.Json) -> bytes:
    canonical = schema.dumps(schema.loads(schema.dumps((messages, tools))))
    return hashlib.sha256(canonical.encode()).digest()


def reply(
    name: str, found: tuple[str, agents.AgentContext], model: str, words: prompts.Prompts = prompts.OURS
) -> dict[str, schema.Json]:
    """The agent's answer as a chat-completions reply."""
    mode, scene = found
    said = agents.reply(name, scene)
    text, calls = (said, ()) if isinstance(said, str) else (None, said)
    if text is None and mode == "prompt":
        text, calls = render_calls(calls, words.output_format(scene.row)), ()
    names = wire.WireNames(scene.row.tools)
    native = [(names.wire(call.name), schema.dumps(call.parameters)) for call in calls]
    return loopback.reply(text, native, model=model, usage=(0, len((text or "").split())))


@contextmanager
def serving(name: str, rows: Sequence[schema.Sample], words: prompts.Prompts = prompts.OURS) -> Iterator[str]:
    """Serves the agent on a free loopback port while the block runs; yields the base URL."""
    agents.agent(name)
    index = Index(rows, words)

    def answer(body: schema.Json) -> schema.Json:
        found = index.find(body["messages"], body.get("tools"))
        if found is None:
            return Fault(400, error_body("the agents know only requests about their own rows"))
        return reply(name, found, body["model"], words)

    with LoopbackServer(answer) as server:
        yield server.url
