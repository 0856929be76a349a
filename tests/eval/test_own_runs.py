"""Own cases asked: earlier calls natively, calls in order over several replies, results of the cases' own."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from robustbench_tc import api
from robustbench_tc.eval import inputs, passes, wire
from robustbench_tc.eval.prompts import TOOL_RESULT, messages

from ..loopback import LoopbackServer, reply
from ..own import shop


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    api.build(folder / "bench", cases=shop.write(folder), types=("transient_timeout",))
    return folder / "bench"


def verdicts(run: Path) -> dict[str, tuple[bool, Any]]:
    rows = pq.read_table(run / "scores.parquet").to_pylist()
    return {row["id"]: (row["correct"], row["reason"]) for row in rows}


def careful(body: dict[str, Any]) -> Any:
    """One call at a time, the second with what the first was answered."""
    asked = [one for one in body["messages"] if one["role"] == "user"]
    natively = "tools" in body
    text = " ".join(str(one["content"]) for one in asked)
    results = [one["content"] for one in body["messages"] if one["role"] == "tool"]
    results += [
        str(one["content"]).removeprefix(TOOL_RESULT) for one in asked if TOOL_RESULT in str(one["content"])
    ]
    results = [one for one in results if "timed out" not in one]
    if "order 8" not in text:
        return "Which one do you mean?"
    arguments: dict[str, Any]
    if not results:
        name, arguments = "get_order", {"order_id": 8}
    else:
        name, arguments = "add_note", {"customer": json.loads(results[-1])["customer"], "note": "done"}
    if natively:
        return reply("", [(name, json.dumps(arguments))])
    return f"<tool_call>\n{json.dumps({'name': name, 'parameters': arguments})}\n</tool_call>"


@pytest.mark.parametrize("mode", ["fc", "prompt"])
def test_calls_in_order_are_waited_for(bench: Path, tmp_path: Path, mode: str) -> None:
    with LoopbackServer(careful) as server:
        given: dict[str, Any] = {"model": "tiny", "base_url": server.url, "out": tmp_path / "run"}
        api.evaluate(bench, ids=("own__chain", "own__vague"), mode=mode, **given)
        asked = server.count
        api.evaluate(bench, ids=("own__chain", "own__vague"), mode=mode, **given)
        assert server.count == asked  # every pass is in the journal
    assert verdicts(tmp_path / "run") == {
        "own__vague::clean": (True, None),
        "own__chain::clean": (True, None),
        "own__chain::transient_timeout": (True, None),
    }
    assert asked == 1 + 2 + 3  # the error, then the two calls


def test_who_stops_after_the_first_call_or_makes_another_is_wrong(bench: Path, tmp_path: Path) -> None:
    def stops(body: dict[str, Any]) -> Any:
        made = [one for one in body["messages"] if one["role"] == "tool"]
        return "Done." if made else reply("", [("get_order", '{"order_id": 8}')])

    def repeats(body: dict[str, Any]) -> Any:
        return reply("", [("get_order", '{"order_id": 8}')])

    for agent, reason in ((stops, "call_count"), (repeats, "wrong_name")):
        with LoopbackServer(agent) as server:
            run = tmp_path / reason
            api.evaluate(bench, ids=("own__chain::clean",), model="tiny", base_url=server.url, out=run)
            assert server.count == 2
        assert verdicts(run) == {"own__chain::clean": (False, reason)}


def test_own_cases_are_asked_natively_unless_it_is_said_otherwise(bench: Path, tmp_path: Path) -> None:
    with LoopbackServer(lambda body: "Hm?") as server:
        run = tmp_path / "run"
        api.evaluate(bench, ids=("own__several.2",), model="tiny", base_url=server.url, out=run)
        body = server.bodies[0]
    assert [tool["function"]["name"] for tool in body["tools"]] == [
        "get_order",
        "refund_order",
        "orders_find",
        "crm_find",
        "add_note",
    ]
    _, call, result, done, last = body["messages"]
    assert call["tool_calls"][0]["function"] == {"name": "get_order", "arguments": '{"order_id":31}'}
    assert result == {
        "role": "tool",
        "tool_call_id": call["tool_calls"][0]["id"],
        "content": '{"state":"shipped"}',
    }
    assert (done["content"], last["content"]) == ("Done.", "Now find all orders from Oslo.")


def test_in_prompt_mode_results_are_turns_of_the_user(bench: Path) -> None:
    rows = {row.id: row for row in inputs.load(str(bench)).rows}
    said = messages(rows["own__several.2::clean"])
    assert [one["role"] for one in said] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert said[3]["content"] == TOOL_RESULT + '{"state":"shipped"}'


def test_rows_of_the_benchmark_are_asked_as_before() -> None:
    from robustbench_tc.builders.sources import BUNDLED, read

    for row in read(BUNDLED, "bundled").samples:
        assert passes.in_order(row) == 0 and passes.most(row) == 1
        assert [one["content"] for one in wire.first(row, "fc").messages] == [
            one.content for one in row.messages
        ]


def test_results_come_in_turn_and_the_last_repeats() -> None:
    results = {"find": ("a", {"b": 1})}
    assert [passes.result_text(results, "find", n) for n in range(3)] == ["a", '{"b":1}', '{"b":1}']
    assert passes.result_text(results, "other", 0) == '{"status":"ok"}'


def test_a_book_that_was_edited_is_one_line(bench: Path, tmp_path: Path, rbtc: Any) -> None:
    import shutil

    for text in ("", "[]", '{"version": 2}', '{"results": 7}', "{" * 100_000):
        shutil.copytree(bench, tmp_path / "bench", dirs_exist_ok=True)
        (tmp_path / "bench" / "own.json").write_text(text)
        assert (
            "own.json"
            in rbtc("eval", tmp_path / "bench", "--agent", "oracle", "--out", tmp_path / "run").refusal
        )
