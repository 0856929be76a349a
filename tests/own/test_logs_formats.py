"""Every format of logs that is read: one conversation, written in each, comes back as the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api
from robustbench_tc.own import yaml
from robustbench_tc.own.cases_file import read_cases
from robustbench_tc.own.logs.formats import FORMATS, format_of
from robustbench_tc.own.logs.importing import Imported
from robustbench_tc.own.logs.log_files import Log, read_log

from ..refusals import refuses

OWN = Path(__file__).parent
SAMPLES = sorted((OWN / "logs").iterdir())
SAME = sorted((OWN / "same").iterdir())
"""One conversation, a file for each format that it is logged in."""
SAID = json.loads((OWN / "same.json").read_text())
"""Who says what in it: texts, which calls, which results."""
TOOL = {
    "name": "get_order",
    "description": "Reads an order.",
    "parameters": {"type": "object", "properties": {"order_id": {"type": "integer"}, "deep": {}}},
}
OPENAI = [{"type": "function", "function": TOOL}]

WITHOUT_SYSTEM = ("claude_code",)
WITHOUT_TOOLS = ("langchain_messages", "langchain_stored", "agents_sdk", "claude_code")


def read(tmp_path: Path, lines: list[Any]) -> Log:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_log(path)


def plain(log: Log) -> list[Any]:
    found = list[Any]()
    for message in log.conversations[-1].messages:
        if message.calls:
            assert message.text == ""
            found.append(["calls", [[call.name, call.arguments] for call in message.calls]])
        else:
            found.append([message.role, message.text])
    return found


@pytest.mark.parametrize("path", SAME, ids=lambda path: path.stem)
def test_a_conversation_is_the_same_in_every_format(path: Path) -> None:
    """Of three turns, one without calls, with texts and arguments that are hard to keep."""
    log = read_log(path)
    wanted = SAID[1 if path.stem in WITHOUT_SYSTEM else 0 :]
    if path.stem == "gemini":
        wanted = [
            [kind, json.dumps({"result": what}, ensure_ascii=False) if kind == "tool" else what]
            for kind, what in wanted
        ]
    assert plain(log) == wanted
    assert len(log.conversations) == 1
    assert log.refused == ()
    tools = log.conversations[-1].tools
    assert (tools is None) == (path.stem in WITHOUT_TOOLS)
    assert {(one.name, one.tool.parameters["type"]) for one in tools or ()} <= {("get_order", "object")}
    assert tools is None or len(tools) == 1


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
BOTH = [["user", "Hi"], ["calls", [["get_order", ORDER_1]]]]


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
GIVEN, REPLIED = "llm.input_messages.0.message", "llm.output_messages.0.message"
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
         [["system", "Be brief."], *BOTH]),
        # Gemini's SDK: system and tools in the config, every field that is not set as null
        ([{**GEMINI, "config": {"system_instruction": "Be brief.", "tools": [
            {"function_declarations": [{**TOOL, "parameters": NODES}], "code_execution": None}]},
           "response": {"candidates": [{"content": {"role": "model", "parts": [GEMINI_CALL]}}]}}],
         [["system", "Be brief."], *BOTH]),
        # Anthropic's request and reply in one object
        ([{"messages": ASKED, "role": "assistant", "content": [used(1)], "stop_reason": "tool_use"}], BOTH),
        # Inspect: what a tool said is its error
        ([{"messages": [*ASKED, CALLING, {"role": "tool", "content": "", "tool_call_id": "c1",
                                          "error": {"type": "timeout", "message": "late"}}]}],
         [*BOTH, ["tool", "late"]]),
        # Claude Code: the results of a message's first calls between its calls, and an error that it shows
        ([*CODED, *map(coded, (used(1), resulted(1), used(2), resulted(2))),
          coded({"type": "text", "text": "API Error"}, id="m2") | {"isApiErrorMessage": True}],
         [["user", "Hi"], ["calls", [["get_order", ORDER_1], ["get_order", ORDER_2]]],
          ["tool", "1"], ["tool", "2"]]),
        # ShareGPT: calls beside the text, several results in a turn
        ([{"conversations": [*ASKED, {**CALLING, "content": ""}]}], BOTH),
        ([{"conversations": [*ASKED, {**CALLING, "content": ""}, {"from": "tool", "value":
            "<tool_response>1</tool_response>\n<tool_response>2</tool_response>"}]}],
         [*BOTH, ["tool", "1"], ["tool", "2"]]),
        # Anthropic's spans of OpenInference: a call stands in the content too
        ([{"attributes": {
            "openinference.span.kind": "LLM",
            f"{GIVEN}.role": "user", f"{GIVEN}.content": "Hi",
            f"{REPLIED}.role": "assistant", f"{REPLIED}.contents.0.message_content.type": "tool_use",
            f"{REPLIED}.contents.0.tool_call.id": "c1",
            f"{REPLIED}.contents.0.tool_call.function.name": "get_order",
            f"{REPLIED}.contents.0.tool_call.function.arguments": '{"order_id": 1}'}}],
         BOTH),
        # a custom tool, calls as a JSON text, a spoken answer
        ([{"messages": [*ASKED, {"role": "assistant", "tool_calls": [
            {"id": "c", "type": "custom", "custom": {"name": "get_order", "input": "x"}}]}]}],
         [["user", "Hi"], ["calls", [["get_order", None]]]]),
        ([{"messages": [*ASKED, {**CALLING, "tool_calls": json.dumps([CALLED])}]}], BOTH),
        ([{"messages": [*ASKED, {"role": "assistant", "content": None, "audio": {"transcript": "Hello"}}]}],
         [["user", "Hi"], ["assistant", "Hello"]]),
        # what a provider lists, not runs
        ([{"input": "Hi", "output": [{"type": "mcp_list_tools", "tools": []},
                                     {"type": "function_call", "name": "get_order", "arguments": ORDER_1}]}],
         BOTH),
    ],
)  # fmt: skip
def test_how_frameworks_really_write_it(lines: list[Any], wanted: list[Any], tmp_path: Path) -> None:
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


@pytest.mark.parametrize("path", SAME, ids=lambda path: path.stem)
def test_damaged_lines_are_counted_and_the_others_read(path: Path, tmp_path: Path) -> None:
    lines = path.read_text().splitlines()
    damaged = tmp_path / "log.jsonl"
    damaged.write_text("\n".join([lines[0][: len(lines[0]) // 2], *lines, '{"a": NaN}', '"x"']))
    log = read_log(damaged)
    assert [one.line for one in log.refused] == [1, len(lines) + 2, len(lines) + 3]
    assert [one.why.partition(",")[0] for one in log.refused] == [
        "not JSON", "neither chat messages nor spans", "neither chat messages nor spans",
    ]  # fmt: skip
    assert plain(log) == plain(read_log(path))


def test_the_two_files_of_a_batch_are_one_log(tmp_path: Path) -> None:
    lines = (OWN / "same" / "batch.jsonl").read_text().splitlines(keepends=True)
    replies, requests = tmp_path / "out.jsonl", tmp_path / "in.jsonl"
    replies.write_text("".join(lines[: len(lines) // 2]))
    requests.write_text("".join(lines[len(lines) // 2 :]))
    assert plain(read_log(replies, requests)) == SAID == plain(read_log(requests, replies))


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
