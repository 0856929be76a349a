"""Every format of logs that is read: one conversation, written in each, comes back as the same."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from robustbench_tc import api
from robustbench_tc.own import yaml
from robustbench_tc.own.cases_file import read_cases
from robustbench_tc.own.logs.formats import FORMATS, format_of
from robustbench_tc.own.logs.importing import Imported
from robustbench_tc.own.logs.log_files import Log, read_log

from ..refusals import refuses

SAMPLES = sorted((Path(__file__).parent / "logs").iterdir())
TOOL = {
    "name": "get_order",
    "description": "Reads an order.",
    "parameters": {"type": "object", "properties": {"order_id": {"type": "integer"}, "deep": {}}},
}
OPENAI = [{"type": "function", "function": TOOL}]

Rendered = list[Any]
"""The lines of a log."""
Told = Callable[..., list[Any]]
"""Entries of a format for a part of what happens."""


class Call(NamedTuple):
    id: str
    arguments: dict[str, Any]
    result: str


class Turn(NamedTuple):
    request: str
    batches: list[list[Call]]
    answer: str


class Made(NamedTuple):
    """A conversation as it was."""

    system: str
    turns: list[Turn]

    def steps(self) -> Iterator[tuple[str, Any]]:
        """What happens in it, one after the other."""
        for turn in self.turns:
            yield "user", turn.request
            for batch in turn.batches:
                yield "calls", batch
                yield "results", batch
            yield "assistant", turn.answer

    def plain(self) -> list[Any]:
        """The same as a log is compared by: who said what, which calls, which results."""
        found: list[Any] = [("system", self.system)]
        for kind, what in self.steps():
            if kind == "calls":
                found.append(("calls", [("get_order", call.arguments) for call in what]))
            elif kind == "results":
                found += [("tool", call.result) for call in what]
            else:
                found.append((kind, what))
        return found


def conversation(rng: random.Random) -> Made:
    """One of one to three turns, some without calls, with texts that are hard to keep."""
    words = ("Where is it?", 'He said "no".\n', "Größe 42 – 寿司 🍣", "<b>{x}</b>", "a\\b", "[1]", "42")
    values: tuple[Any, ...] = (7, -1.5, None, True, "x", 'Ünï "q"', [1, [2]], {"a": {"b": []}}, "")
    numbers = iter(range(1, 100))

    def text() -> str:
        return f"{rng.choice(words)} {next(numbers)}"

    def call() -> Call:
        arguments: dict[str, Any] = {"order_id": rng.randrange(10**6)}
        if rng.random() < 0.6:
            arguments["deep"] = rng.choice(values)
        return Call(f"call_{next(numbers)}", arguments, text())

    turns = [
        Turn(text(), [[call() for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(0, 2))], text())
        for _ in range(rng.randint(1, 3))
    ]
    return Made(text(), turns)


# A renderer a format


def told(made: Made, said: Told, called: Told, answered: Told) -> list[Any]:
    """What happens, written as a format has texts, batches of calls, and their results."""
    found: list[Any] = []
    for kind, what in made.steps():
        if kind == "calls":
            found += called(what)
        elif kind == "results":
            found += answered(what)
        else:
            found += said(kind, what)
    return found


def chat(made: Made, *, system: bool = True) -> list[dict[str, Any]]:
    def called(batch: list[Call]) -> list[Any]:
        return [{"role": "assistant", "content": None, "tool_calls": [
            {"id": one.id, "type": "function",
             "function": {"name": "get_order", "arguments": json.dumps(one.arguments)}}
            for one in batch
        ]}]  # fmt: skip

    def answered(batch: list[Call]) -> list[Any]:
        return [{"role": "tool", "tool_call_id": one.id, "content": one.result} for one in batch]

    found: list[dict[str, Any]] = [{"role": "system", "content": made.system}] * system
    return found + told(made, lambda role, text: [{"role": role, "content": text}], called, answered)


def unpacked(message: dict[str, Any], function: str, **more: Any) -> dict[str, Any]:
    """A chat message whose calls have the name and the arguments, as an object, beside their id."""
    calls = [
        {
            "id": call["id"],
            function: "get_order",
            "arguments": json.loads(call["function"]["arguments"]),
            **more,
        }
        for call in message.get("tool_calls", ())
    ]
    return message | ({"tool_calls": calls} if calls else {})


def openai_chat(made: Made) -> Rendered:
    return [{"messages": chat(made), "tools": OPENAI, "score": float("nan")}]


def json_text(made: Made) -> Rendered:
    return [{"messages": json.dumps(chat(made)), "tools": json.dumps(OPENAI)}]


def exchanges(made: Made) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """The requests of an agent that asks after every result, with their replies."""
    messages = chat(made)
    for at, message in enumerate(messages):
        if message["role"] == "assistant":
            yield messages[:at], message


def pairs(made: Made) -> Rendered:
    return [
        {
            "request": {"model": "m", "messages": given, "tools": OPENAI},
            "response": {"id": "r", "choices": [{"index": 0, "message": said}]},
        }
        for given, said in exchanges(made)
    ]


def http(made: Made) -> Rendered:
    return [
        {
            "request": {"method": "POST", "url": "/v1", "body": json.dumps(one["request"])},
            "response": {"status_code": 200, "body": one["response"]},
        }
        for one in pairs(made)
    ]


def batch(made: Made) -> Rendered:
    asked = [
        {"custom_id": f"r-{n}", "method": "POST", "url": "/v1/chat/completions", "body": one["request"]}
        for n, one in enumerate(pairs(made))
    ]
    answered = [
        {
            "id": "b",
            "custom_id": f"r-{n}",
            "response": {"status_code": 200, "body": one["response"]},
            "error": None,
        }
        for n, one in enumerate(pairs(made))
    ]
    return [*reversed(answered), *asked]


def litellm(made: Made) -> Rendered:
    return [
        {
            "id": f"c{n}",
            "trace_id": f"t{n}",
            "call_type": "acompletion",
            "messages": given,
            "response": {"choices": [{"message": said}]},
            "model_parameters": {"tools": OPENAI},
        }
        for n, (given, said) in enumerate(exchanges(made))
    ]


def items(made: Made) -> list[dict[str, Any]]:
    def called(batch: list[Call]) -> list[Any]:
        calls = [
            {"call_id": one.id, "name": "get_order", "arguments": json.dumps(one.arguments)} for one in batch
        ]
        thought = {"type": "reasoning", "id": "rs", "summary": []}
        return [thought, *({"type": "function_call", "id": "fc", **call} for call in calls)]

    def answered(batch: list[Call]) -> list[Any]:
        return [{"type": "function_call_output", "call_id": one.id, "output": one.result} for one in batch]

    def said(role: str, text: str) -> list[Any]:
        if role == "user":
            return [{"role": "user", "content": [{"type": "input_text", "text": text}]}]
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return [{"type": "message", "role": "assistant", "content": content}]

    return told(made, said, called, answered)


def responses(made: Made) -> Rendered:
    flat = [{"type": "function", **TOOL}]
    *given, last = items(made)
    return [{"instructions": made.system, "input": given, "output": [last], "tools": flat}]


def anthropic(made: Made) -> Rendered:
    def called(batch: list[Call]) -> list[Any]:
        uses = [
            {"type": "tool_use", "id": one.id, "name": "get_order", "input": one.arguments} for one in batch
        ]
        return [{"role": "assistant", "content": [{"type": "thinking", "thinking": "…"}, *uses]}]

    def answered(batch: list[Call]) -> list[Any]:
        return [{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": one.id, "content": [{"type": "text", "text": one.result}]}
            for one in batch
        ]}]  # fmt: skip

    def said(role: str, text: str) -> list[Any]:
        return [{"role": role, "content": [{"type": "text", "text": text}]}]

    tools = [{"name": TOOL["name"], "description": "", "input_schema": TOOL["parameters"]}]
    messages = told(made, said, called, answered)
    return [{"model": "m", "max_tokens": 9, "system": made.system, "tools": tools, "messages": messages}]


def langchain(made: Made) -> list[dict[str, Any]]:
    def called(batch: list[Call]) -> list[Any]:
        calls = [
            {"name": "get_order", "args": one.arguments, "id": one.id, "type": "tool_call"} for one in batch
        ]
        return [{"type": "ai", "content": "", "tool_calls": calls, "invalid_tool_calls": []}]

    def answered(batch: list[Call]) -> list[Any]:
        return [{"type": "tool", "content": one.result, "tool_call_id": one.id, "id": None} for one in batch]

    def said(role: str, text: str) -> list[Any]:
        return [{"type": "human" if role == "user" else "ai", "content": text, "id": f"run-{text}"}]

    return [{"type": "system", "content": made.system}, *told(made, said, called, answered)]


def langchain_messages(made: Made) -> Rendered:
    return [{"messages": langchain(made)}]


def langchain_stored(made: Made) -> Rendered:
    return [{"messages": [{"type": one.pop("type"), "data": one} for one in langchain(made)]}]


def serialized(message: dict[str, Any]) -> dict[str, Any]:
    name = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage", "system": "SystemMessage"}
    path = ["langchain", "schema", "messages", name[message["type"]]]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": message}


def langsmith(made: Made) -> Rendered:
    messages = langchain(made)
    root: dict[str, Any] = {
        "id": "t", "trace_id": "t", "run_type": "chain", "start_time": "2026-01-01T00:00:00",
        "inputs": {"messages": messages[1:2]}, "outputs": {"messages": messages[1:]}, "child_runs": [],
    }  # fmt: skip
    for at, message in enumerate(messages):
        if message["type"] == "ai":
            root["child_runs"].append(
                {
                    "id": f"r{at}",
                    "trace_id": "t",
                    "run_type": "llm",
                    "start_time": f"2026-01-01T00:{at:02}:00",
                    "inputs": {"messages": [[serialized(one) for one in messages[:at]]]},
                    "outputs": {"generations": [[{"text": "", "message": serialized(message)}]]},
                    "extra": {"invocation_params": {"tools": OPENAI}},
                }
            )
        if message["type"] == "tool":
            root["child_runs"].append(
                {
                    "id": f"r{at}",
                    "trace_id": "t",
                    "run_type": "tool",
                    "name": "get_order",
                    "inputs": {"input": "{}"},
                    "outputs": {"output": serialized(message)},
                    "start_time": f"2026-01-01T00:{at:02}:00",
                }
            )
    return [root]


def langfuse(made: Made) -> Rendered:
    return [
        {
            "id": f"o{n}", "traceId": "t", "type": "GENERATION", "startTime": f"2026-01-01T00:{n:02}:00.000Z",
            "input": json.dumps({"messages": given, "tools": OPENAI}), "output": json.dumps(said),
        }
        for n, (given, said) in enumerate(exchanges(made))
    ] + [{"id": "s", "traceId": "t", "type": "SPAN", "input": "x", "output": None}]  # fmt: skip


def langfuse_trace(made: Made) -> Rendered:
    return [{"id": "t", "name": "agent", "input": {"a": 1}, "output": None, "observations": langfuse(made)}]


def flat(value: Any, name: str) -> dict[str, Any]:
    """Names with dots and numbers in them, as OpenInference and OpenLLMetry write what they list."""
    if isinstance(value, dict):
        return {key: one for part in value for key, one in flat(value[part], f"{name}.{part}").items()}
    if isinstance(value, list):
        return {key: one for n, part in enumerate(value) for key, one in flat(part, f"{name}.{n}").items()}
    return {} if value is None else {name: value}


def wrapped(message: dict[str, Any]) -> dict[str, Any]:
    calls = [
        {"tool_call": {"id": one["id"], "function": one["function"]}} for one in message.get("tool_calls", ())
    ]
    return {"message": message | {"tool_calls": calls}}


def spans(made: Made, attributes: Callable[[list[Any], dict[str, Any]], dict[str, Any]]) -> Rendered:
    return [
        {
            "name": "chat", "context": {"trace_id": "0xt", "span_id": f"0x{n}"},
            "start_time": f"2026-01-01T00:00:{n:02}.5Z", "attributes": attributes(given, said),
        }
        for n, (given, said) in enumerate(exchanges(made))
    ]  # fmt: skip


def openinference(made: Made) -> Rendered:
    def attributes(given: list[Any], said: dict[str, Any]) -> dict[str, Any]:
        return {
            "openinference.span.kind": "LLM",
            **flat([wrapped(one) for one in given], "llm.input_messages"),
            **flat([wrapped(said)], "llm.output_messages"),
            "llm.tools.0.tool.json_schema": json.dumps(OPENAI[0]),
        }

    return spans(made, attributes)


def phoenix(made: Made) -> Rendered:
    """Rows of Phoenix's table of spans."""

    def rows(messages: list[Any]) -> list[Any]:
        found = []
        for one in messages:
            calls = [
                flat({"id": call["id"], "function": call["function"]}, "tool_call")
                for call in one.get("tool_calls", ())
            ]
            row = {f"message.{key}": value for key, value in one.items() if key != "tool_calls"}
            found.append(row | ({"message.tool_calls": calls} if calls else {}))
        return found

    return [
        {
            "context.trace_id": "t", "name": "chat", "start_time": f"2026-01-01T00:00:{n:02}Z",
            "attributes.openinference.span.kind": "LLM", "attributes.llm.input_messages": rows(given),
            "attributes.llm.output_messages": rows([said]),
            "attributes.llm.tools": [{"tool.json_schema": json.dumps(OPENAI[0])}],
        }
        for n, (given, said) in enumerate(exchanges(made))
    ]  # fmt: skip


def openllmetry(made: Made) -> Rendered:
    def plain(message: dict[str, Any]) -> dict[str, Any]:
        calls = [{"id": one["id"], **one["function"]} for one in message.get("tool_calls", ())]
        return message | {"tool_calls": calls}

    def attributes(given: list[Any], said: dict[str, Any]) -> dict[str, Any]:
        function = TOOL | {"parameters": json.dumps(TOOL["parameters"])}
        return {
            "llm.request.type": "chat",
            **flat([plain(one) for one in given], "gen_ai.prompt"),
            **flat([plain(said)], "gen_ai.completion"),
            **flat([function], "llm.request.functions"),
        }

    return spans(made, attributes)


def genai(made: Made) -> Rendered:
    def entry(message: dict[str, Any]) -> dict[str, Any]:
        parts: list[Any] = [{"type": "text", "content": message["content"]}] * (
            message["content"] is not None
        )
        for one in message.get("tool_calls", ()):
            arguments = json.loads(one["function"]["arguments"])
            parts.append({"type": "tool_call", "id": one["id"], "name": "get_order", "arguments": arguments})
        if message["role"] == "tool":
            parts = [
                {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
            ]
        return {"role": message["role"], "parts": parts}

    def attributes(given: list[Any], said: dict[str, Any]) -> dict[str, Any]:
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps(list(map(entry, given))),
            "gen_ai.output.messages": json.dumps([entry(said)]),
            "gen_ai.tool.definitions": json.dumps([{"type": "function", **TOOL}]),
        }

    listed = spans(made, attributes)
    for span in listed:
        pairs = span["attributes"].items()
        span["attributes"] = [{"key": key, "value": {"stringValue": value}} for key, value in pairs]
    return [{"resourceSpans": [{"scopeSpans": [{"scope": {}, "spans": listed}]}]}]


def agents_sdk(made: Made) -> Rendered:
    found: list[Any] = [{"object": "trace", "id": "t", "workflow_name": "Agent workflow"}]
    for n, (given, said) in enumerate(exchanges(made)):
        data = {"type": "generation", "input": given, "output": [said], "model": "m"}
        span = {
            "object": "trace.span",
            "id": f"s{n}",
            "trace_id": "t",
            "started_at": f"2026-01-01T00:00:{n:02}",
        }
        found.append({**span, "span_data": data})
    return found


def claude_code(made: Made) -> Rendered:
    found: list[Any] = [{"type": "summary", "summary": "Orders", "leafUuid": "u"}]
    for n, message in enumerate(anthropic(made)[0]["messages"]):
        several = message["content"] if message["role"] == "assistant" else [None]
        for block in several:
            said = {"id": f"msg_{n}", **message} | ({} if block is None else {"content": [block]})
            found.append(
                {
                    "type": message["role"],
                    "sessionId": "s",
                    "uuid": f"u{len(found)}",
                    "isSidechain": False,
                    "message": said,
                }
            )
    return found


def gemini(made: Made) -> Rendered:
    def called(batch: list[Call]) -> list[Any]:
        parts = [
            {"functionCall": {"id": one.id, "name": "get_order", "args": one.arguments}} for one in batch
        ]
        return [{"role": "model", "parts": [{"thought": True, "text": "…"}, *parts]}]

    def answered(batch: list[Call]) -> list[Any]:
        return [{"role": "user", "parts": [
            {"functionResponse": {"id": one.id, "name": "get_order", "response": {"result": one.result}}}
            for one in batch
        ]}]  # fmt: skip

    def said(role: str, text: str) -> list[Any]:
        return [{"role": "user" if role == "user" else "model", "parts": [{"text": text}]}]

    *given, last = told(made, said, called, answered)
    schema = {"type": "OBJECT", "properties": {"order_id": {"type": "INTEGER"}, "deep": {}}}
    return [
        {
            "contents": given,
            "systemInstruction": {"parts": [{"text": made.system}]},
            "tools": [{"functionDeclarations": [TOOL | {"parameters": schema}]}],
            "candidates": [{"content": last, "finishReason": "STOP"}],
        }
    ]


def sharegpt(made: Made) -> Rendered:
    def called(batch: list[Call]) -> list[Any]:
        calls = [{"name": "get_order", "arguments": one.arguments} for one in batch]
        return [{"from": "function_call", "value": json.dumps(calls if len(calls) > 1 else calls[0])}]

    def answered(batch: list[Call]) -> list[Any]:
        return [{"from": "observation", "value": one.result} for one in batch]

    def said(role: str, text: str) -> list[Any]:
        return [{"from": "human" if role == "user" else "gpt", "value": text}]

    turns = told(made, said, called, answered)
    return [{"conversations": turns, "system": made.system, "tools": json.dumps([TOOL])}]


def hermes(made: Made) -> Rendered:
    found: list[Any] = [{"from": "system", "value": made.system}]
    for turn in sharegpt(made)[0]["conversations"]:
        if turn["from"] == "function_call":
            calls = json.loads(turn["value"])
            listed = calls if isinstance(calls, list) else [calls]
            turn = {
                "from": "gpt",
                "value": "\n".join(f"<tool_call>\n{json.dumps(one)}\n</tool_call>" for one in listed),
            }
        elif turn["from"] == "observation":
            turn = {"from": "tool", "value": f"<tool_response>\n{turn['value']}\n</tool_response>"}
        found.append(turn)
    return [{"conversations": found, "tools": [TOOL]}]


def inspect(made: Made) -> Rendered:
    sample = {
        "id": 1,
        "epoch": 1,
        "input": "x",
        "messages": [{**unpacked(one, "function"), "content": one["content"] or ""} for one in chat(made)],
        "scores": {"a": float("nan")},
        "events": [{"event": "sample_init"}, {"event": "model", "tools": [TOOL]}],
    }
    return [{"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [sample]}]


def tau2(made: Made) -> Rendered:
    messages = [unpacked(one, "name", requestor="assistant") for one in chat(made, system=False)]
    messages = [
        one | {"id": one.pop("tool_call_id"), "requestor": "assistant"} if one["role"] == "tool" else one
        for one in messages
    ]
    own = {"id": "u1", "name": "look_at_phone", "arguments": {}, "requestor": "user"}
    messages[1:1] = [
        {"role": "user", "content": None, "tool_calls": [own]},
        {"id": "u1", "role": "tool", "content": "No signal", "requestor": "user"},
    ]
    tools = {"get_order": {"name": "get_order", "doc": "Reads an order.", "params": TOOL["parameters"]}}
    world = {"domain_name": "shop", "policy": made.system, "tool_defs": tools}
    return [
        {"info": {"environment_info": world}, "tasks": [], "simulations": [{"id": "s", "messages": messages}]}
    ]


def door(made: Made) -> Rendered:
    found: list[Any] = []
    before = 0
    for given, said in exchanges(made):
        calls = [{"id": one["id"], **one["function"]} for one in said.get("tool_calls", ())]
        new = [one for one in given[before:] if found == [] or one["role"] != "assistant"]
        heard = {"messages": new, "after": before} | ({} if before else {"tools": OPENAI})
        reply = {"text": said["content"], "tool_calls": calls or None, "finish_reason": "stop"}
        found.append({"v": 2, "by": "b", "session": "a.1", "repeat": 1, "asked": heard, "replies": [reply]})
        before = len(given)
    found.insert(1, {"v": 2, "door": "mcp", "by": "c", "session": "a.1", "repeat": 1, "number": 1})
    return found


RENDERERS: tuple[Callable[[Made], Rendered], ...] = (
    openai_chat, json_text, pairs, http, batch, litellm, responses, anthropic, langchain_messages,
    langchain_stored, langsmith, langfuse, langfuse_trace, openinference, phoenix, openllmetry, genai,
    agents_sdk, claude_code, gemini, sharegpt, hermes, inspect, tau2, door,
)  # fmt: skip
WITHOUT_SYSTEM = (claude_code,)
WITHOUT_TOOLS = (langchain_messages, langchain_stored, agents_sdk, claude_code)


def read(tmp_path: Path, lines: Rendered) -> Log:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_log(path)


def plain(log: Log, at: int = -1) -> list[Any]:
    found = list[Any]()
    for message in log.conversations[at].messages:
        if message.calls:
            assert message.text == ""
            found.append(("calls", [(call.name, call.arguments) for call in message.calls]))
        else:
            found.append((message.role, message.text))
    return found


@pytest.mark.parametrize("render", RENDERERS, ids=lambda one: one.__name__)
def test_a_conversation_is_the_same_in_every_format(
    render: Callable[[Made], Rendered], tmp_path: Path
) -> None:
    for seed in range(8):
        made = conversation(random.Random(f"formats {seed}"))
        log = read(tmp_path, render(made))
        wanted = made.plain()[1 if render in WITHOUT_SYSTEM else 0 :]
        if render is gemini:
            wanted = [
                (kind, json.dumps({"result": what}, ensure_ascii=False) if kind == "tool" else what)
                for kind, what in wanted
            ]
        assert plain(log) == wanted, seed
        assert len(log.conversations) == 1
        assert log.refused == ()
        tools = log.conversations[-1].tools
        assert (tools is None) == (render in WITHOUT_TOOLS)
        if tools is not None:
            assert [(one.name, one.tool.parameters["type"]) for one in tools] == [("get_order", "object")]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_a_sample_of_each_format_becomes_cases_with_the_right_call(sample: Path, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(OPENAI))
    made = api.import_cases([sample], tmp_path / "out", tools=[tmp_path / "tools.json"])
    data = yaml.load((tmp_path / "out" / "cases.yaml").read_bytes(), "cases.yaml").data()
    calling = [case for case in data["cases"] if case["expect"] != "no_call"]
    assert [case["expect"] for case in calling] == [[{"call": "get_order", "arguments": {"order_id": 1042}}]]
    request = calling[0].get("request") or calling[0]["messages"][-1]["content"]
    assert request == "What is the status of order 1042?"
    assert isinstance(made, Imported) and made.problems == 0 and made.refused == ()
    assert calling[0]["results"]["get_order"][0] in ("open", {"result": "open"})


def test_every_format_has_a_sample() -> None:
    lines = (
        line
        for path in SAMPLES
        for line in (path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()])
    )
    found = {known.name for line in lines if (known := format_of(json.loads(line))) is not None}
    assert found == {one.name for one in FORMATS}


ASKED = [{"role": "user", "content": "Hi"}]
SYSTEM = {"role": "system", "content": "Be brief."}
ORDER_1, ORDER_2 = ({"order_id": number} for number in (1, 2))
CALLED = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": 1}'}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALLED]}
BOTH = [("user", "Hi"), ("calls", [("get_order", ORDER_1)])]


def coded(block: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A line of a Claude Code session: one block of a message."""
    role = "user" if block["type"] == "tool_result" else "assistant"
    message = {"id": "m1", "role": role, "content": [block]} | more
    if role == "user":
        del message["id"]
    return {"sessionId": "s", "type": role, "message": message}


def used(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"c{number}", "name": "get_order", "input": {"order_id": number}}


def resulted(number: int) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"c{number}", "content": str(number)}


CODED = [{"sessionId": "s", "type": "user", "message": ASKED[0]}]
NODES = {"type": "OBJECT", "properties": {"order_id": {"type": "INTEGER", "anyOf": None}}, "anyOf": None}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "Hi", "thought": None}]}]}
GEMINI_CALL = {"function_call": {"name": "get_order", "args": ORDER_1, "id": None}, "text": None}


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        # Langfuse's callback of LangChain: tools among the messages
        ([{"traceId": "t", "type": "GENERATION", "output": CALLING,
           "input": [*ASKED, {"role": "tool", "content": OPENAI[0]}]}], BOTH),
        # an agent of LangChain, whose answer is the conversation with what stood before the request
        ([{"run_type": "chain", "inputs": {"input": "Hi"},
           "outputs": {"messages": [SYSTEM, *ASKED, CALLING]}}],
         [("system", "Be brief."), *BOTH]),
        # Gemini's SDK: system and tools in the config, every field that is not set as null
        ([{**GEMINI, "config": {"system_instruction": "Be brief.", "tools": [
            {"function_declarations": [{**TOOL, "parameters": NODES}], "code_execution": None}]},
           "response": {"candidates": [{"content": {"role": "model", "parts": [GEMINI_CALL]}}]}}],
         [("system", "Be brief."), *BOTH]),
        # Anthropic's request and reply in one object
        ([{"messages": ASKED, "role": "assistant", "content": [used(1)], "stop_reason": "tool_use"}], BOTH),
        # Inspect: what a tool said is its error
        ([{"messages": [*ASKED, CALLING, {"role": "tool", "content": "", "tool_call_id": "c1",
                                          "error": {"type": "timeout", "message": "late"}}]}],
         [*BOTH, ("tool", "late")]),
        # Claude Code: the results of a message's first calls between its calls, and an error that it shows
        ([*CODED, *map(coded, (used(1), resulted(1), used(2), resulted(2))),
          coded({"type": "text", "text": "API Error"}, id="m2") | {"isApiErrorMessage": True}],
         [("user", "Hi"), ("calls", [("get_order", ORDER_1), ("get_order", ORDER_2)]),
          ("tool", "1"), ("tool", "2")]),
        # ShareGPT: calls beside the text, several results in a turn
        ([{"conversations": [*ASKED, {**CALLING, "content": ""}]}], BOTH),
        ([{"conversations": [*ASKED, {**CALLING, "content": ""}, {"from": "tool", "value":
            "<tool_response>1</tool_response>\n<tool_response>2</tool_response>"}]}],
         [*BOTH, ("tool", "1"), ("tool", "2")]),
        # Anthropic's spans of OpenInference: a call stands in the content too
        ([{"attributes": {"openinference.span.kind": "LLM"} | flat(
            [{"message": ASKED[0]}], "llm.input_messages") | flat(
            [{"message": {"role": "assistant", "contents": [
                {"message_content": {"type": "tool_use"}, "tool_call": CALLED}]}}], "llm.output_messages")}],
         BOTH),
        # a custom tool, calls as a JSON text, a spoken answer
        ([{"messages": [*ASKED, {"role": "assistant", "tool_calls": [
            {"id": "c", "type": "custom", "custom": {"name": "get_order", "input": "x"}}]}]}],
         [("user", "Hi"), ("calls", [("get_order", None)])]),
        ([{"messages": [*ASKED, {**CALLING, "tool_calls": json.dumps([CALLED])}]}], BOTH),
        ([{"messages": [*ASKED, {"role": "assistant", "content": None, "audio": {"transcript": "Hello"}}]}],
         [("user", "Hi"), ("assistant", "Hello")]),
        # what a provider lists, not runs
        ([{"input": "Hi", "output": [{"type": "mcp_list_tools", "tools": []},
                                     {"type": "function_call", "name": "get_order", "arguments": ORDER_1}]}],
         BOTH),
    ],
)  # fmt: skip
def test_how_frameworks_really_write_it(lines: Rendered, wanted: list[Any], tmp_path: Path) -> None:
    log = read(tmp_path, lines)
    assert (len(log.conversations), log.refused, plain(log)) == (1, (), wanted)
    assert (log.conversations[0].tools is None) == ('"parameters"' not in json.dumps(lines))


@pytest.mark.parametrize(
    "said",
    [
        [
            {"type": "server_tool_use", "name": "web_search"},
            {"type": "web_search_tool_result", "content": []},
        ],
        [{"type": "web_search_call", "status": "completed"}],
        [{"executable_code": {"code": "1"}}],
        [{"type": "mcp_call", "name": "x", "output": "1"}],
    ],
)
def test_runs_of_a_providers_own_tools_are_counted_and_make_no_case(said: list[Any], tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    kept = {"messages": [*ASKED, CALLING], "tools": OPENAI}
    log.write_text(
        json.dumps({"messages": [*ASKED, {"role": "assistant", "content": said}]}) + "\n" + json.dumps(kept)
    )
    made = api.import_cases([log], tmp_path / "out")
    assert isinstance(made, Imported) and made.cases == 1
    assert made.left_out == {"holds images, sounds, files or runs of a provider's own tools": 1}


SECRET = "sk-live-4f9a0c7e2b8d61"


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (
            {"choices": [{"message": {"role": "assistant", "content": SECRET}}]},
            "chat messages: 'messages' is not",
        ),
        ({"output": [{"type": "message"}]}, "Responses: 'messages' is not a list"),
        (
            {"candidates": [{"content": {"parts": [{"text": SECRET}]}}]},
            "Gemini contents: 'messages' is not a list",
        ),
        ({"contents": [{"role": SECRET}]}, "Gemini contents: message 1: 'role' is not one of"),
        ({"custom_id": SECRET, "body": {}}, "requests of a batch: 'messages' is not a list"),
        ({"custom_id": "a", "response": None, "error": {"message": SECRET}}, "replies of a batch: no reply"),
        (
            {"custom_id": "a", "response": {"body": {"choices": [{"message": ASKED[0]}]}}},
            "import the file of the requests too",
        ),
        ({"conversations": [{"from": SECRET, "value": "x"}]}, "ShareGPT: message 1: 'role' is not one of"),
        ({"conversations": SECRET}, "ShareGPT: 'messages' is not a list"),
        ({"samples": None, "eval": {}}, "an Inspect log: nothing is in it"),
        ({"simulations": [{"messages": SECRET}]}, "tau2 trajectories: 'messages' is not a list"),
        (
            {"run_type": "llm", "inputs": {"prompts": [SECRET]}, "outputs": {}},
            "LangSmith runs: 'messages' is not",
        ),
        (
            {"run_type": "prompt", "inputs": {"a": SECRET}},
            "LangSmith runs: records in which no message was recorded",
        ),
        (
            {"traceId": "t", "type": "GENERATION", "input": {"a": SECRET}},
            "Langfuse traces: 'messages' is not a list",
        ),
        (
            {"span_data": {"type": "response", "response_id": SECRET}},
            "Agents SDK: records in which no message",
        ),
        (
            {"sessionId": "s", "type": "user", "message": {"role": SECRET}},
            "a Claude Code session: message 1: 'role'",
        ),
        ({"call_type": "completion", "messages": 7}, "LiteLLM's log: 'messages' is not a list"),
        ({"request": SECRET, "response": {"a": 1}}, "no request, or no answer"),
        (
            {"request": SECRET, "response": f"data: {SECRET}"},
            "a request and its response: the reply is a stream",
        ),
        ({"request": {"a": SECRET}, "response": {}}, "a request and its response: 'messages' is not a list"),
        (
            {"v": 2, "session": SECRET, "repeat": 1},
            "a door's journal: records in which no message was recorded",
        ),
        (
            {"attributes": {"llm.input_messages": SECRET, "openinference.span.kind": "LLM"}},
            "a span: llm.input_messages or",
        ),
        (
            {"messages": [*ASKED, {"type": "ai", "content": "", "tool_calls": [{"args": {}}]}]},
            "message 2: a call has no name",
        ),
        (
            {"messages": ASKED, "system": [{"type": SECRET}]},
            "Anthropic messages: message 1: a part of 'content' is",
        ),
        ({"prompt": SECRET, "completion": "x"}, "neither chat messages nor spans"),
    ],
)
def test_a_refusal_names_the_format_and_what_is_missing(record: Any, why: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(record) + "\n")
    (tmp_path / "tools.json").write_text(json.dumps(OPENAI))
    said = refuses(why, api.import_cases, [path], tmp_path / "out", tools=[tmp_path / "tools.json"])
    assert SECRET not in said and "\n" not in said


@pytest.mark.parametrize("render", RENDERERS, ids=lambda one: one.__name__)
def test_damaged_lines_are_counted_and_the_others_read(
    render: Callable[[Made], Rendered], tmp_path: Path
) -> None:
    made = conversation(random.Random("damaged"))
    lines = [json.dumps(line) for line in render(made)]
    whole = plain(read(tmp_path, render(made)))
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join([lines[0][: len(lines[0]) // 2], *lines, '{"a": NaN}', '"x"']))
    log = read_log(path)
    assert [one.line for one in log.refused] == [1, len(lines) + 2, len(lines) + 3]
    assert [one.why.partition(",")[0] for one in log.refused] == [
        "not JSON", "neither chat messages nor spans", "neither chat messages nor spans",
    ]  # fmt: skip
    assert plain(log) == whole


def test_the_two_files_of_a_batch_are_one_log(tmp_path: Path) -> None:
    made = conversation(random.Random("batch"))
    lines = [json.dumps(line) + "\n" for line in batch(made)]
    replies, requests = tmp_path / "out.jsonl", tmp_path / "in.jsonl"
    replies.write_text("".join(lines[: len(lines) // 2]))
    requests.write_text("".join(lines[len(lines) // 2 :]))
    assert plain(read_log(replies, requests)) == made.plain() == plain(read_log(requests, replies))


VALUES: tuple[Any, ...] = (7, [], {}, [[]], [7], "x")
HOSTILE = {
    "runs inside of runs": '{"run_type": "chain", "child_runs": [' * 90 + "]}" * 90,
    "names of many dots": json.dumps({"attributes": {"llm.input_messages" + ".0" * 100_000: "x"}}),
    "a number of many digits": json.dumps(
        {"attributes": {f"llm.input_messages.{'9' * 5000}.message.role": "user"}}
    ),
    "a name that is a value and a path": json.dumps(
        {"attributes": {"llm.input_messages": 1, "llm.input_messages.0": 2}}
    ),
    "messages in messages": '{"messages": ' * 90 + "[]" + "}" * 90,
    "replies in replies": '{"request": "x", "response": ' + '{"output": ' * 90 + "[]" + "}" * 91,
    "lists of lists": '{"messages": ' + "[" * 90 + "]" * 90 + "}",
    "text in text": json.dumps({"messages": json.dumps("[" * 300 + "]" * 300)}),
    "spans in spans": '{"resourceSpans": [' * 90 + "]}" * 90,
    "a schema of many levels": json.dumps(
        {"messages": ASKED, "tools": [{"name": "a", "parameters": {"type": "OBJECT"}}]}
    ),
    "one of each key": json.dumps(
        dict.fromkeys(" ".join(mark for one in FORMATS for mark in one.marks).split(), 7)
    ),
    **{
        f"{one.name} of {value!r}": json.dumps(dict.fromkeys(one.marks[0].split(), value))
        for one in FORMATS
        for value in VALUES
    },
}


@pytest.mark.parametrize("said", HOSTILE)
def test_hostile_records_harm_no_other(said: str, tmp_path: Path) -> None:
    good = json.dumps({"messages": [*ASKED, {"role": "assistant", "content": "Hello."}]})
    path = tmp_path / "log.jsonl"
    path.write_text(f"{good}\n{HOSTILE[said]}\n{good}\n")
    log = read_log(path)
    assert [one.line for one in log.conversations if one.messages[-1].text == "Hello."] == [1, 3]
    assert [one.line for one in log.conversations if one.line == 2] or log.refused or log.left


@pytest.mark.parametrize("name", ["anthropic", "langchain_messages", "request_response", "openai_batch_in"])
def test_the_inputs_become_cases_with_their_right_calls(name: str, inputs: Path, tmp_path: Path) -> None:
    tools = [inputs / "tools.json"]
    api.import_cases([inputs / f"log_{name}.jsonl"], tmp_path / "out", tools=tools)
    (case,) = read_cases(tmp_path / "out" / "cases.yaml").cases
    assert [(one.name, one.parameters) for one in case.turns[0].answers[0].calls] == [
        ("get_order", {"order_id": 1042})
    ]
