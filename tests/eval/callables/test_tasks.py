"""What an agent gets, what its calls are answered with, and which of them are scored."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.api import Reply, Task, evaluate
from robustbench_tc.eval import inputs
from robustbench_tc.eval.callables.invocation import Invocation
from robustbench_tc.eval.callables.task import reply_of
from robustbench_tc.io import parquet
from robustbench_tc.schema import Call, Sample

from ...refusals import refuses
from .. import small


def row(golds: int = 1, error: str | None = None, code: str = "clean") -> Sample:
    calls = tuple(Call(f"tool_{i}", {}) for i in range(golds))
    return msgspec.structs.replace(
        small.clean_rows()[0], type_code=code, golden_answers=(calls,), injected_error=error
    )


def made(invocation: Invocation, given: object = None) -> list[list[str]]:
    """The names called in each pass."""
    found = invocation.completions(reply_of(given), 0.0)
    return [[call["name"] for call in one.tool_calls or []] for one in found]


def test_what_is_called_after_the_gold_is_full_does_not_count() -> None:
    invocation = Invocation(row(golds=2), 1, {})
    for name in ("a", "b", "c"):
        assert invocation.call(name, {}) == '{"status":"ok"}'
    assert made(invocation) == [["a", "b"]]


def test_calls_awaited_together_are_one_batch() -> None:
    invocation = Invocation(row(golds=1), 1, {})

    async def run() -> None:
        await asyncio.gather(*(invocation.acall(name, {}) for name in ("a", "b")))
        await invocation.acall("c", {})

    asyncio.run(run())
    assert made(invocation) == [["a", "b"]]


def test_a_returned_reply_without_calls_is_the_only_pass() -> None:
    assert made(Invocation(row(), 1, {}), "I would rather not.") == [[]]
    assert made(Invocation(row(), 1, {}), {"calls": [("a", {}), ("b", {})]}) == [["a", "b"]]


def test_an_error_ends_the_batch_and_what_follows_is_the_retry() -> None:
    invocation = Invocation(row(error="timed out", code="transient_timeout"), 1, {})
    assert invocation.call("a", {}) == "timed out"
    assert invocation.call("a", {"again": True}) == '{"status":"ok"}'
    assert made(invocation, "Done.") == [["a"], ["a"]]


def test_who_gives_up_after_an_error_has_a_second_reply_without_calls() -> None:
    invocation = Invocation(row(error="timed out", code="transient_timeout"), 1, {})
    invocation.call("a", {})
    assert made(invocation, "It does not work.") == [["a"], []]


def test_a_retry_may_be_returned() -> None:
    invocation = Invocation(row(error="timed out", code="transient_timeout"), 1, {})
    invocation.call("a", {})
    assert made(invocation, Reply(calls=[("b", {})])) == [["a"], ["b"]]


def test_tools_answer_what_is_stated_in_turn_and_the_last_repeats() -> None:
    invocation = Invocation(row(golds=9), 1, {"a": ["one", {"two": 2}], "b": []})
    assert [invocation.call("a", {}) for _ in range(3)] == ["one", '{"two":2}', '{"two":2}']
    assert invocation.call("b", {}) == '{"status":"ok"}'


def test_a_task_says_nothing_of_what_is_perturbed(release: Path, tmp_path: Path) -> None:
    rows = [one for one in inputs.load(str(release)).rows if one.source == "apibank"]
    seen: list[dict[str, Any]] = []

    def agent(task: Task) -> str:
        seen.append({name: value for name, value in vars(task).items() if not name.startswith("_")})
        return ""

    evaluate(release, callable=agent, ids=[rows[0].clean_id], out=tmp_path / "run")
    assert len(seen) == len(rows)
    codes = {one.type_code for one in rows}
    for task in seen:
        assert set(task) == {"session", "turn", "messages", "tools", "seed", "state"}
        rest = json.dumps([task["session"], task["turn"], task["seed"], task["state"]])
        assert not any(code in rest for code in codes)
    assert len({task["seed"] for task in seen}) == 1, "a perturbed request has its clean one's seed"
    assert len({task["session"] for task in seen}) == len(seen)


def test_the_agents_own_state_lasts_while_the_request_does(release: Path, tmp_path: Path) -> None:
    seen: dict[str, list[int]] = {}

    def agent(task: Task) -> Any:
        task.state["asked"] = task.state.get("asked", 0) + 1
        seen.setdefault(task.session, []).append(task.state["asked"])
        return {"calls": [(task.tools[0]["function"]["name"], {})]}

    evaluate(release, callable=agent, types=["clean", "transient_timeout"], out=tmp_path / "run")
    assert sorted(map(tuple, seen.values())) == sorted([(1,)] * 5 + [(1, 2)] * 5)


def test_an_async_agent_is_asked_several_at_once(release: Path, tmp_path: Path) -> None:
    now = most = 0

    async def agent(task: Task) -> str:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return ""

    evaluate(release, callable=agent, concurrency=3, out=tmp_path / "run")
    assert most == 3


def test_a_program_reads_the_request_and_prints_the_reply(release: Path, tmp_path: Path) -> None:
    path = tmp_path / "agent.py"
    path.write_text(
        "import json, sys\n"
        "task = json.load(sys.stdin)\n"
        "assert sorted(task) == ['messages', 'seed', 'session', 'tools', 'turn'], task\n"
        "name = task['tools'][0]['function']['name']\n"
        "print(json.dumps({'calls': [{'name': name, 'arguments': {'a': len(task['messages'])}}]}))\n"
    )
    evaluate(release, command=[sys.executable, str(path)], sources=["apibank"], out=tmp_path / "run")
    rows = list(parquet.read_rows([tmp_path / "run" / "scores.parquet"]))
    assert {row["status"] for row in rows} == {"ok"}
    retried = [row for row in rows if row["injected"]]
    assert retried and all(row["first_tool_calls"] for row in retried)
    assert json.loads(retried[0]["tool_calls"])[0]["arguments"] == '{"a":3}'


def test_changed_code_is_another_agent(release: Path, tmp_path: Path) -> None:
    agent = tmp_path / "changing.py"
    agent.write_text("def answer(task):\n    return 'one'\n")
    spec = f"{agent}:answer"
    evaluate(release, callable=spec, ids=["apibank__level1_1::clean"], out=tmp_path / "run")
    agent.write_text("def answer(task):\n    return 'two'\n")
    refuses("code", evaluate, release, callable=spec, out=tmp_path / "run")
    evaluate(release, callable=spec, out=tmp_path / "run", fresh=True, ids=["apibank__level1_1::clean"])
    (only,) = parquet.read_rows([tmp_path / "run" / "scores.parquet"])
    assert only["raw_output"] == "two"


REPLIES: list[tuple[object, tuple[str, list[tuple[str, str]]]]] = [
    (None, ("", [])),
    ("text", ("text", [])),
    ({"text": "t", "calls": [{"name": "f", "arguments": {"a": 1}}]}, ("t", [("f", '{"a":1}')])),
    ({"role": "assistant", "content": None, "tool_calls": []}, ("", [])),
    (
        {"content": "c", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"a": 1}'}}]},
        ("c", [("f", '{"a": 1}')]),
    ),
    ({"choices": [{"message": {"content": "c"}}], "usage": {"prompt_tokens": 3}}, ("c", [])),
]


@pytest.mark.parametrize(("given", "expected"), REPLIES)
def test_replies_are_taken_in_the_forms_that_frameworks_have(given: object, expected: Any) -> None:
    invocation = Invocation(row(), 1, {})
    (found,) = invocation.completions(reply_of(given), 0.0)
    assert (found.text, [(c["name"], c["arguments"]) for c in found.tool_calls or []]) == expected
