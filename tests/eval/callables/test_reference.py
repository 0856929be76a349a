"""A reference agent handed in as a user's own has the verdicts that it has over HTTP, however it answers."""

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.api import Reply, Task, build, evaluate
from robustbench_tc.eval import agents, inputs, wire
from robustbench_tc.eval.prompts.calls import python_calls
from robustbench_tc.io import parquet
from robustbench_tc.schema import Call, Sample
from tests.agent_server import Index

from ...loopback import LoopbackServer, reply
from ...own import shop
from .. import small

TEXTS = {row.injected_error for row in small.rows() if row.injected_error is not None}
"""What calls are answered with that meet an error."""

Answers = Callable[[Task], tuple[tuple[Call, ...] | str, Sample]]


def answers(release: Path, name: str) -> Answers:
    """What the reference agent `name` says to a task, found by its messages and tools."""
    index = Index(inputs.load_samples(str(release)).rows)

    def said(task: Task) -> tuple[tuple[Call, ...] | str, Sample]:
        found = index.find(task.messages, task.tools or None)
        assert found is not None, "the task is not the request that the row makes"
        return agents.reply(name, found[1]), found[1].row

    return said


def verdicts(folder: Path, *columns: str) -> dict[str, tuple[Any, ...]]:
    """By row what the scores say in these columns, whether it is right in front."""
    rows = parquet.read_rows([folder / "scores.parquet"], ["id", "correct", *columns])
    return {row["id"]: (row["correct"], *(row[name] for name in columns)) for row in rows}


def returning(said: Answers) -> Callable[[Task], Any]:
    def answer(task: Task) -> Any:
        found, row = said(task)
        if isinstance(found, str):
            return found
        names = wire.WireNames(row.tools)
        return Reply(calls=[(names.wire(call.name), call.parameters) for call in found])

    return answer


def writing(said: Answers) -> Callable[[Task], str]:
    """Writes its calls into its text."""

    def answer(task: Task) -> str:
        found, _ = said(task)
        return found if isinstance(found, str) else python_calls(found)

    return answer


def calling(said: Answers) -> Callable[[Task], Any]:
    """Makes every call itself, and looks at the task again once the first call was answered."""
    returned = returning(said)

    def answer(task: Task) -> Any:
        for _ in range(4):
            found = returned(task)
            if isinstance(found, str):
                return found
            results = (task.call(*call) for call in found.calls)
            error = next((result for result in results if result in TEXTS), None)
            if error is None:
                return "Done."
            function = {"name": found.calls[0][0], "arguments": "{}"}
            call = {"id": "call_0", "type": "function", "function": function}
            task.messages = [
                *task.messages,
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_0", "content": error},
            ]
        return "Enough."

    return answer


NAMES = ["oracle", "name-biased", "gives-up-on-error", "calls-everything", "rambler"]


@pytest.mark.parametrize(
    ("way", "mode", "name"),
    [
        *((returning, "fc", name) for name in NAMES),
        *((writing, "prompt", name) for name in NAMES),
        *((calling, "fc", name) for name in NAMES[:3]),
    ],
)
def test_an_agent_has_the_verdicts_that_it_has_over_http(
    release: Path, tmp_path: Path, way: Callable[[Answers], Callable[[Task], Any]], mode: str, name: str
) -> None:
    evaluate(release, agent=name, mode=mode, out=tmp_path / "http")
    evaluate(release, callable=way(answers(release, name)), mode=mode, out=tmp_path / "own")
    # Who makes its calls and stops at the first error has made one, where a reply over HTTP holds all.
    stages = () if way is calling else ("stage_detail",)
    assert verdicts(tmp_path / "own", *stages) == verdicts(tmp_path / "http", *stages)


def test_a_text_is_not_read_for_calls_where_calls_are_returned(release: Path, tmp_path: Path) -> None:
    run = evaluate(release, callable=writing(answers(release, "oracle")), out=tmp_path / "own")
    columns = ["correct", "calls", "stage_detail", "raw_output"]
    rows = list(parquet.read_rows([run.folder.scores_path], columns))
    assert all(row["calls"] in (None, "[]") for row in rows)
    written = {(row["correct"], row["stage_detail"]) for row in rows if "(" in row["raw_output"]}
    assert written == {(False, "no_call")}


# --- One agent, reached in three ways, has the same verdicts on own cases, ordered and multi-turn -----


AGENT = r'''
"""Reads the request with patterns. It takes the first tool that fits by name, and gives up at an error."""

import json
import re
import sys


def answer(messages, tools):
    """Calls as (name, arguments), or a text."""
    request = [one["content"] for one in messages if one["role"] == "user"][-1].lower()
    since = [one for one in messages[max(i for i, one in enumerate(messages) if one["role"] == "user"):]]
    results = [one["content"] for one in since if one["role"] == "tool"]
    if results and not results[-1].startswith("{"):
        return "I could not reach the shop." if "timed" in results[-1] else "Done."
    number = re.search(r"order (\d+)", request)
    names = [one["function"]["name"] for one in tools]

    def first(*words):
        return next((name for name in names if all(word in name for word in words)), "none")

    if "note" in request and results:
        customer = json.loads(results[-1]).get("customer", "?")
        return [(first("add_note"), {"customer": customer, "note": "done"})]
    if results:
        return "Done."
    if "refund" in request and number:
        return [(first("refund"), {"order_id": int(number[1]), "reason": "it arrived broken"})]
    if number:
        return [(first("get_order"), {"order_id": int(number[1])})]
    if "oslo" in request:
        return [(first("find"), {"text": "Oslo"})]
    if "miller" in request:
        return [(first("find"), {"text": "Miller"})]
    return "You are welcome." if "thanks" in request else "Which one do you mean?"


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    said = answer(asked["messages"], asked["tools"])
    if isinstance(said, str):
        print(json.dumps({"text": said}))
    else:
        print(json.dumps({"calls": [{"name": name, "arguments": given} for name, given in said]}))
'''


def making_calls(answer: Callable[..., Any]) -> Callable[[Task], Any]:
    """The same agent, which makes its calls itself and looks at what they were answered."""

    def made(task: Task) -> Any:
        messages = list(task.messages)
        for _ in range(4):
            said = answer(messages, task.tools)
            if isinstance(said, str):
                return said
            for name, arguments in said:
                function = {"name": name, "arguments": json.dumps(arguments)}
                call = {"id": f"call_{len(messages)}", "type": "function", "function": function}
                messages += [
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": call["id"], "content": task.call(name, arguments)},
                ]
        return "Enough."

    return made


def test_an_agent_has_the_same_verdicts_however_it_is_reached(tmp_path: Path) -> None:
    bench = tmp_path / "bench"
    types = ("transient_timeout", "transient_rate_limit", "CD", "same_name_D", "realistic_typos")
    build(bench, cases=shop.write(tmp_path), types=types)
    program = tmp_path / "three_ways.py"
    program.write_text(AGENT)
    answer = runpy.run_path(str(program))["answer"]

    def served(body: dict[str, Any]) -> Any:
        said = answer(body["messages"], body.get("tools", ()))
        if isinstance(said, str):
            return reply(said)
        return reply("", [(name, json.dumps(arguments)) for name, arguments in said])

    with LoopbackServer(served) as server:
        evaluate(bench, model="tiny", base_url=server.url, out=tmp_path / "http")
    over_http = verdicts(tmp_path / "http", "reason", "stage_detail")
    ways: dict[str, dict[str, Any]] = {
        "made": {"callable": making_calls(answer)},
        "callable": {"callable": lambda task: answer(task.messages, task.tools)},
        "command": {"command": f"{sys.executable} {program}"},
    }
    for name, way in ways.items():
        evaluate(bench, out=tmp_path / name, **way)
        assert verdicts(tmp_path / name, "reason", "stage_detail") == over_http, name
    assert {right for right, *_ in over_http.values()} == {True, False}, "the agent is no test of anything"
    for row in ("own__chain::clean", "own__several.1::clean", "own__several.2::clean"):
        assert over_http[row][0], row
    assert not over_http["own__chain::transient_timeout"][0]
