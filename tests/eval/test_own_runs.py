"""Own cases asked and scored: calls over several replies, what was wanted, and answers nobody reviewed."""

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from robustbench_tc import api
from robustbench_tc.eval import inputs, prompts, scripted, wire
from robustbench_tc.eval.wanted import describe, unmet
from robustbench_tc.schema import Call, Json, Sample, Tool, Verdict

from ..conftest import Done
from ..loopback import LoopbackServer, reply
from ..own import shop
from ..own.shop import ORDERS
from ..own.test_hostile_files import outcome
from ..own.test_logs_import import call, made, said


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
    text = " ".join(str(one["content"]) for one in asked)
    results = [one["content"] for one in body["messages"] if one["role"] == "tool"]
    results += [
        str(one["content"]).removeprefix(prompts.TOOL_RESULT)
        for one in asked
        if prompts.TOOL_RESULT in str(one["content"])
    ]
    results = [one for one in results if "timed out" not in one]
    if "order 8" not in text:
        return "Which one do you mean?"
    call: tuple[str, dict[str, Any]] = ("get_order", {"order_id": 8})
    if results:
        call = ("add_note", {"customer": json.loads(results[-1])["customer"], "note": "done"})
    if "tools" in body:
        return reply("", [(call[0], json.dumps(call[1]))])
    return f"<tool_call>\n{json.dumps(dict(zip(('name', 'parameters'), call, strict=True)))}\n</tool_call>"


@pytest.mark.parametrize("mode", ["fc", "prompt"])
def test_calls_in_order_are_waited_for(bench: Path, tmp_path: Path, mode: str) -> None:
    with LoopbackServer(careful) as server:
        given: dict[str, Any] = {"ids": ("own__chain", "own__vague"), "mode": mode, "out": tmp_path / "run"}
        given |= {"model": "tiny", "base_url": server.url, "probe": False}
        api.evaluate(bench, temperature=0.5, **given)  # equal requests are not shared
        asked = server.count
        api.evaluate(bench, temperature=0.5, **given)
        assert server.count == asked  # every pass is in the journal
    assert verdicts(tmp_path / "run") == {
        "own__vague::clean": (True, None),
        "own__chain::clean": (True, None),
        "own__chain::transient_timeout": (True, None),
    }
    assert asked == 1 + 2 + 3  # the error, then the two calls


def test_who_stops_after_the_first_call_or_makes_another_is_wrong(bench: Path, tmp_path: Path) -> None:
    again = reply("", [("get_order", '{"order_id": 8}')])
    agents: dict[str, Callable[[Any], Any]] = {
        "call_count": lambda body: "Done." if body["messages"][-1]["role"] == "tool" else again,
        "wrong_name": lambda body: again,
    }
    for reason, agent in agents.items():
        asked: dict[str, Any] = {"ids": "own__chain::clean", "out": tmp_path / reason, "probe": False}
        with LoopbackServer(agent) as server:
            api.evaluate(bench, model="tiny", base_url=server.url, **asked)
            assert server.count == 2
        assert verdicts(tmp_path / reason) == {"own__chain::clean": (False, reason)}


def test_own_cases_are_asked_natively_unless_it_is_said_otherwise(bench: Path, tmp_path: Path) -> None:
    with LoopbackServer(lambda body: "Hm?") as server:
        run = tmp_path / "run"
        api.evaluate(bench, ids=("own__several.2",), model="tiny", base_url=server.url, out=run, probe=False)
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
    rows = {row.id: row for row in inputs.load_samples(str(bench)).rows}
    said = prompts.messages(rows["own__several.2::clean"])
    assert [one["role"] for one in said] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert said[3]["content"] == prompts.TOOL_RESULT + '{"state":"shipped"}'


def test_rows_of_the_benchmark_are_asked_as_before() -> None:
    from robustbench_tc.builders.sources import BUNDLED, read_pool

    for row in read_pool(BUNDLED, "bundled").samples:
        assert scripted.in_order(row) == 0 and scripted.most_replies(row) == 1
        assert [one["content"] for one in wire.first(row, "fc").messages] == [
            one.content for one in row.messages
        ]


def test_results_come_in_turn_and_the_last_repeats() -> None:
    results = {"find": ("a", {"b": 1})}
    assert [scripted.result_text(results, "find", n) for n in range(3)] == ["a", '{"b":1}', '{"b":1}']
    assert scripted.result_text(results, "other", 0) == '{"status":"ok"}'


def test_a_book_that_was_edited_is_one_line(bench: Path, tmp_path: Path, rbtc: Any) -> None:
    import shutil

    for text in ("", "[]", '{"version": 2}', '{"results": 7}', "{" * 100_000):
        shutil.copytree(bench, tmp_path / "bench", dirs_exist_ok=True)
        (tmp_path / "bench" / "own.json").write_text(text)
        assert (
            "own.json"
            in rbtc("eval", tmp_path / "bench", "--agent", "oracle", "--out", tmp_path / "run").refusal
        )


# --- What an own case wanted of an argument stands in the failures, in one row and on the page


TOOLS = (Tool("refund", "Refunds.", {"type": "object", "properties": {"amount": {"type": "number"}}}),)


def row(*answers: tuple[Call, ...], category: str = "calls", source: str = "own") -> Sample:
    return Sample(
        id="own__a::clean",
        clean_id="own__a",
        type_code="clean",
        source=source,
        category=category,
        messages=(),
        tools=TOOLS,
        golden_answers=answers,
        output_format="tool_call_tags",
    )


def wrong(*calls: Call) -> Verdict:
    return Verdict(
        calls=calls,
        variant=None,
        score=0.0,
        correct=False,
        reason="wrong_value",
        error_mode="wrong_parameters",
    )


def refund(**arguments: Json) -> Call:
    return Call("refund", arguments)


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"number": 19.9, "tolerance": 0.01}, "19.9 ± 0.01"),
        ({"number": 20}, "20"),
        ({"date": "2026-11-24"}, "the day 2026-11-24"),
        ({"regex": "^a"}, "a text with /^a/"),
        ({"set": ["a", {"any": True}]}, '["a", anything] in any order'),
        ({"one_of": ["mail", {"regex": "phone"}]}, '"mail" or a text with /phone/'),
        ({"exact": {"regex": "a"}}, '{"regex":"a"}'),
        ({"value": {"number": 1, "tolerance": 2}, "unit": ["x"]}, '{"value": 1 ± 2, "unit": ["x"]}'),
        (None, "null"),
    ],
)
def test_every_matcher_has_words(expected: Json, said: str) -> None:
    assert describe(expected) == said


def test_the_first_argument_that_is_wrong_is_named() -> None:
    amount = {"amount": [{"number": 19.9, "tolerance": 0.01}]}
    golden = (refund(**amount),)
    assert unmet(wrong(refund(amount=25)), row(golden)) == "amount: 19.9 ± 0.01 wanted, 25 given"
    assert unmet(wrong(refund()), row(golden)) == "amount: 19.9 ± 0.01 wanted, nothing given"
    assert unmet(wrong(refund(amount=19.9, fast=True)), row(golden)) == "fast: not wanted, true given"
    long = unmet(wrong(refund(amount="x" * 10_000)), row(golden))
    assert long is not None and len(long) < 200
    two = (refund(**amount), refund(amount=[7]))
    assert unmet(wrong(refund(amount=7), refund(amount=8)), row(two)) == "amount: 19.9 ± 0.01 wanted, 8 given"
    ordered = unmet(wrong(refund(amount=7), refund(amount=19.9)), row(two, category="calls+ordered"))
    assert ordered == "amount: 19.9 ± 0.01 wanted, 7 given"


def test_nothing_is_said_where_no_argument_is_what_is_wrong() -> None:
    golden = (refund(amount=[1]),)
    assert unmet(wrong(), row(golden)) is None
    assert unmet(wrong(Call("other", {})), row(golden)) is None
    assert unmet(wrong(refund(amount=1), refund(amount=1)), row(golden)) is None
    assert unmet(wrong(refund(amount=2)), row(golden, source="bfcl_v3")) is None


def test_failures_show_and_the_report_say_it(
    tmp_path: Path, rbtc: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop.json").write_text(
        '[{"name": "refund", "description": "Refunds.", "parameters": {"type": "object", "properties":'
        ' {"amount": {"type": "number"}}, "required": ["amount"]}}]'
    )
    Path("cases.yaml").write_text(
        "version: 1\ntools: [shop.json]\ncases:\n- {id: a, request: Refund 19.90 please., expect:"
        " [{call: refund, arguments: {amount: {number: 19.9, tolerance: 0.01}}}]}\n"
    )
    Path("helper_of_wanted.py").write_text(
        "from robustbench_tc.api import Reply\n"
        "def answer(task):\n"
        "    return Reply(calls=[{'name': 'refund', 'arguments': {'amount': 25}}])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert rbtc("build", "--cases", "cases.yaml", "--types", "clean", "--out", "bench").code == 0
    done = rbtc("eval", "bench", "--callable", "helper_of_wanted:answer", "--out", "run")
    assert done.code == 0, done.err
    said = "amount: 19.9 ± 0.01 wanted, 25 given"
    assert said in rbtc("failures", "run").out
    assert said in rbtc("show", "run", "own__a::clean").out
    assert rbtc("report", "run", "--out", "report").code == 0
    assert said in json.dumps(embedded(Path("report/report.html")), ensure_ascii=False)


def embedded(page: Path) -> Any:
    text = page.read_text("utf-8").partition('id="rows"')[2].partition(">")[2].partition("<")[0]
    return json.loads(zlib.decompress(base64.b64decode(text), -15))


# --- Golden answers of logs that nobody reviewed: every table says how many, with and without them


REQUESTS = [
    "Please refund order 1042, it arrived broken.",
    "Where is order 7 at the moment?",
    "Look up 9 for me.",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("unreviewed")
    (root / "orders.json").write_text(json.dumps(ORDERS))
    calls: list[dict[str, Any]] = [
        call("x", "refund_order", order_id=1042),
        call("x", "get_order", order_id=7),
        call("x", "get_order", order_id=9),
    ]
    lines = [{"messages": [said("user", one), made(two)]} for one, two in zip(REQUESTS, calls, strict=True)]
    (root / "prod.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    api.import_cases([root / "prod.jsonl"], root / "out", tools=[root / "orders.json"])
    cases = root / "out" / "cases.yaml"
    with cases.open("a") as file:
        file.write("- {id: mine, request: Thanks a lot for everything!, expect: no_call}\n")
    assert outcome("cases", "review", str(cases), "--accept", "prod-1-1", "--drop", "prod-3-1")[0] == 0
    types = ("--types", "same_name_A,same_name_B")
    assert outcome("build", "--cases", str(cases), *types, "--out", str(root / "bench"))[0] == 0
    for agent in ("oracle", "name-biased"):
        done = outcome("eval", str(root / "bench"), "--agent", agent, "--out", str(root / agent))
        assert done[0] == 0, done
        (root / f"{agent}.txt").write_text(done[1])
    return root


LINE = (
    "1 of 3 golden answers was proposed and never reviewed: "
    "clean 100.0 % with them, 100.0 % without; perturbed "
)


def test_the_book_names_the_open_ones_alone(folder: Path) -> None:
    assert json.loads((folder / "bench" / "own.json").read_text())["unreviewed"] == ["own__prod-2-1"]
    report = json.loads((folder / "bench" / "build_report.json").read_text())
    assert report["known_issues"] == {"own": {"dropped": 1}}
    for agent in ("oracle", "name-biased"):
        assert json.loads((folder / agent / "run.json").read_text())["unreviewed"] == ["own__prod-2-1"]


def test_eval_and_summary_say_it(folder: Path) -> None:
    assert f"warn   {LINE[:70]}" in (folder / "oracle.txt").read_text()
    shown = json.loads(outcome("summary", str(folder / "oracle"), "--json")[1])
    assert shown["unreviewed"]["answers"] == 1
    assert shown["unreviewed"]["lines"]["clean"] == {"over_all": 1.0, "without": 1.0}


def test_the_accuracy_without_them_is_that_of_the_other_rows(folder: Path) -> None:
    from robustbench_tc.eval.stats.caveats import unreviewed
    from robustbench_tc.eval.stats.runs import align, read_run

    run = read_run(folder / "name-biased")
    [outcomes] = align([run])
    found = unreviewed(run, outcomes)
    assert found is not None
    right = [
        (bool(one), clean_id == "own__prod-2-1")
        for one, clean_id, code in zip(
            run.rows["correct"], run.rows["clean_id"], run.rows["type_code"], strict=True
        )
        if code != "clean"
    ]
    kept = [one for one, is_open in right if not is_open]
    assert found.lines["perturbed"].over_all == sum(one for one, _ in right) / len(right)
    assert found.lines["perturbed"].without == sum(kept) / len(kept)


def test_gate_compare_and_report_say_it(folder: Path) -> None:
    files = ("--markdown", str(folder / "gate.md"), "--junit", str(folder / "gate.xml"))
    shown = outcome("gate", str(folder / "oracle"), *files)[1]
    assert LINE in shown
    assert "never reviewed" in (folder / "gate.md").read_text()
    assert "never reviewed" in (folder / "gate.xml").read_text()
    shown = outcome("compare", str(folder / "oracle"), str(folder / "name-biased"))[1]
    assert shown.count("not reviewed: ") == 2
    words = ("report", str(folder / "oracle"), str(folder / "name-biased"), "--out", str(folder / "report"))
    assert outcome(*words)[0] == 0
    for name in ("report.html", "report.md"):
        assert (folder / "report" / name).read_text().count("never reviewed") >= 2, name


def test_after_the_review_nothing_is_said_and_no_answer_is_asked_again(folder: Path) -> None:
    cases = folder / "out" / "cases.yaml"
    assert outcome("cases", "review", str(cases), "--accept", "prod-2-1")[0] == 0
    types = ("--types", "same_name_A,same_name_B")
    assert outcome("build", "--cases", str(cases), *types, "--out", str(folder / "again"))[0] == 0
    code, _, err = outcome("score", str(folder / "oracle"), "--dataset", str(folder / "again"))
    assert code == 0, err
    assert "never reviewed" not in outcome("summary", str(folder / "oracle"))[1]
    assert "unreviewed" not in json.loads((folder / "oracle" / "run.json").read_text())
