"""One agent, reached in three ways, has the same verdicts on own cases, ordered and multi-turn."""

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from robustbench_tc.api import Reply, Task, build, evaluate
from robustbench_tc.io import parquet

from ...loopback import LoopbackServer, reply
from ...own import shop

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

Verdicts = dict[str, tuple[bool, str | None, str | None]]


def verdicts(folder: Path) -> Verdicts:
    rows = parquet.read_rows([folder / "scores.parquet"], ["id", "correct", "reason", "stage_detail"])
    return {row["id"]: (row["correct"], row["reason"], row["stage_detail"]) for row in rows}


def as_reply(said: Any) -> Reply:
    return Reply(text=said) if isinstance(said, str) else Reply(calls=said)


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
    over_http = verdicts(tmp_path / "http")
    ways: dict[str, dict[str, Any]] = {
        "made": {"callable": making_calls(answer)},
        "callable": {"callable": lambda task: as_reply(answer(task.messages, task.tools))},
        "command": {"command": f"{sys.executable} {program}"},
    }
    for name, way in ways.items():
        evaluate(bench, out=tmp_path / name, **way)
        assert verdicts(tmp_path / name) == over_http, name
    found = {correct for correct, *_ in over_http.values()}
    assert found == {True, False}, "the agent is no test of anything"
    for row in ("own__chain::clean", "own__several.1::clean", "own__several.2::clean"):
        assert over_http[row][0], row
    assert not over_http["own__chain::transient_timeout"][0]
