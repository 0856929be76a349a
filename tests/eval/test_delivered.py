"""One perfect model behind servers that fail: what was meant stays, what was delivered does not."""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from robustbench_tc import api
from robustbench_tc.eval import delivered, inputs, parse, predictions, record, score
from robustbench_tc.eval.stats import evidence, gate, runs
from robustbench_tc.schema import Call, Prediction, Verdict
from tests import agent_server

from ..conftest import Rbtc
from ..loopback import Fault, LoopbackServer, error_body
from . import small

Message = dict[str, Any]
Damage = Callable[[Message], str | None]
"""Changes a reply's message where it stands; may give another finish reason."""


def changed(what: str, change: Callable[[str], Any]) -> Damage:
    """Every native call with another name or other arguments."""

    def damage(message: Message) -> None:
        for call in message.get("tool_calls") or ():
            call["function"][what] = change(call["function"][what])

    return damage


def in_text(message: Message) -> None:
    calls = message.pop("tool_calls", None) or ()
    texts = [
        json.dumps({"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])})
        for call in calls
    ]
    if texts:
        message["content"] = "\n".join(f"<tool_call>\n{text}\n</tool_call>" for text in texts)


def without_id(message: Message) -> None:
    for call in message.get("tool_calls") or ():
        call["id"] = ""


def legacy(message: Message) -> None:
    calls = message.get("tool_calls") or ()
    if len(calls) == 1:
        message["function_call"] = message.pop("tool_calls")[0]["function"]


def in_reasoning(message: Message) -> None:
    in_text(message)
    message["reasoning_content"], message["content"] = message["content"], ""


def cut(message: Message) -> str | None:
    changed("arguments", lambda text: text[: len(text) * 2 // 3])(message)
    return "length"


def intact(message: Message) -> None:
    """What OpenAI returns: null content beside native calls."""
    if message.get("tool_calls"):
        message["content"] = None


RECOVERABLE: dict[str, tuple[Damage, str]] = {
    "call in content": (in_text, "in_text"),
    "double encoding": (changed("arguments", json.dumps), "double_encoded"),
    "arguments as an object": (changed("arguments", json.loads), "arguments_not_text"),
    "leaked tokens": (changed("name", lambda name: f"{name}<|channel|>commentary"), "leaked_tokens"),
    "mangled name": (changed("name", lambda name: f"functions.{name}"), "markup_in_name"),
    "bad id": (without_id, "bad_id"),
    "one object in an array": (changed("arguments", lambda text: f"[{text}]"), "not_an_object"),
    "trailing comma": (changed("arguments", lambda text: f"{text[:-1]},}}"), "no_json"),
    "the API before tools": (legacy, "legacy_function_call"),
}
LOSSY: dict[str, tuple[Damage, str]] = {
    "empty arguments": (changed("arguments", lambda text: ""), "empty_arguments"),
    "cut reply": (cut, "cut"),
    "call in the reasoning": (in_reasoning, "in_reasoning"),
    "merged calls": (changed("arguments", lambda text: 2 * text), "merged_calls"),
    "positional array": (
        changed("arguments", lambda text: json.dumps([*json.loads(text).values()])),
        "not_an_object",
    ),
}


FEW = ("clean", "CD", "same_name_A", "transient_timeout")
"""A server does the same to the replies to rows of any type."""
FIVE = (*FEW, "realistic_typos")
"""A type of each component."""


def judged(dataset: Path, out: Path, damage: Damage, **options: Any) -> list[tuple[Prediction, Verdict]]:
    """Every row with its verdict, of the oracle behind a server that damages its replies."""
    found = inputs.load_samples(str(dataset))
    index = agent_server.Index(found.rows)

    def answer(body: dict[str, Any]) -> Any:
        place = index.find(body["messages"], body.get("tools"))
        if place is None:
            return Fault(400, error_body("no row asks this"))
        said = copy.deepcopy(agent_server.reply("oracle", place, "tiny"))
        choice = said["choices"][0]
        choice["finish_reason"] = damage(choice["message"]) or choice["finish_reason"]
        return said

    with LoopbackServer(answer) as server:
        api.evaluate(str(dataset), model="tiny", base_url=server.url, out=out, early_stop=False, **options)
    rows = predictions.read_predictions(record.open_run(out).answers_path)
    anchors = found.anchors()
    verdicts = [score.judge(one, found.by_id[one.id], anchors[one.id]) for one in rows]
    return [(row, verdict) for row, verdict in zip(rows, verdicts, strict=True) if verdict is not None]


def accuracy(rows: list[tuple[Prediction, Verdict]], what: str) -> float:
    return sum(bool(getattr(verdict, what)) for _, verdict in rows) / len(rows)


@pytest.fixture(scope="module")
def perfect(release: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Prediction, Verdict]]:
    return judged(release, tmp_path_factory.mktemp("runs") / "perfect", intact, types=FEW)


def test_a_perfect_server_delivers_what_is_meant(perfect: list[tuple[Prediction, Verdict]]) -> None:
    assert all(verdict.delivered is verdict.correct for _, verdict in perfect)
    assert {row.undelivered for row, _ in perfect} == {None} and accuracy(perfect, "correct") == 1


@pytest.mark.parametrize("fault", RECOVERABLE)
def test_a_fault_that_hides_nothing_costs_the_model_nothing(
    release: Path, tmp_path: Path, perfect: list[tuple[Prediction, Verdict]], fault: str
) -> None:
    damage, reason = RECOVERABLE[fault]
    rows = judged(release, tmp_path / "run", damage, types=FEW)
    assert [verdict.correct for _, verdict in rows] == [verdict.correct for _, verdict in perfect]
    called = [(row, verdict) for row, verdict in rows if verdict.calls]
    assert {row.undelivered for row, _ in called} - {None} == {reason}
    whole = [verdict for _, verdict in called if verdict.delivered]
    assert all(len(verdict.calls) > 1 for verdict in whole) and (not whole or damage is legacy)


@pytest.mark.parametrize("fault", LOSSY)
def test_a_fault_that_loses_calls_is_named(release: Path, tmp_path: Path, fault: str) -> None:
    damage, reason = LOSSY[fault]
    rows = judged(release, tmp_path / "run", damage, types=FEW)
    assert accuracy(rows, "correct") < 0.5 and reason in {row.undelivered for row, _ in rows}
    assert all(verdict.correct or not verdict.delivered for _, verdict in rows)


@given(
    calls=st.lists(
        st.fixed_dictionaries(
            {
                "name": st.sampled_from([tool.name for tool in small.rows("CD")[0].tools] + ["x", ""]),
                "arguments": st.one_of(st.text(max_size=20), st.sampled_from(['{"a": 1}', "{}", "[1]"])),
            },
            optional={"fault": st.sampled_from(["bad_id", "arguments_not_text"])},
        ),
        max_size=3,
    ),
)
def test_a_reason_is_one_of_the_table_and_never_raises(calls: Any) -> None:
    tools = small.rows("CD")[0].tools
    for meant in ((), (Call(tools[0].name, {"a": 1}),)):
        assert delivered.undelivered(calls, parse.Parsed(meant, None), tools) in (None, *delivered.MEANING)


def test_what_looks_like_a_token_in_a_value_is_the_users() -> None:
    tool = small.rows("CD")[0].tools[0]
    native = [{"id": "a", "name": tool.name, "arguments": '{"a": "<|end|>"}'}]
    got = parse.Parsed((Call(tool.name, {"a": "<|end|>"}),), None)
    assert delivered.undelivered(native, got, (tool,)) is None
    leaked = [{**native[0], "arguments": '{"a": 1}<|end|>'}]
    meant = parse.Parsed((Call(tool.name, {"a": 1}),), None)
    assert delivered.undelivered(leaked, meant, (tool,)) == "leaked_tokens"
    assert delivered.undelivered(leaked, parse.Parsed((), None), ()) == "unknown_name"


@pytest.fixture(scope="module")
def servers(bundled: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Runs of one perfect model behind a good server, and behind one without a tool parser."""
    folder = tmp_path_factory.mktemp("servers")
    judged(bundled, folder / "good", intact, samples=20, types=FIVE)
    judged(bundled, folder / "bad", in_text, samples=20, types=FIVE)
    return folder / "good", folder / "bad"


def test_a_comparison_says_what_the_server_loses(servers: tuple[Path, Path]) -> None:
    said = api.compare(*servers).servers
    assert said[0].endswith("server delivered 100.0 of 100.0 meant")
    assert re.search(r"The server of .*bad.* loses \d+\.\d points \(.*\), p = ", said[2])
    assert api.compare(servers[0], servers[0]).servers[2].startswith("No significant difference")


def test_the_gate_fails_a_server_that_delivers_nothing(
    servers: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = servers
    for found in (api.gate(bad), api.gate(bad, good)):
        assert found.exit_code == 1 and any("were not delivered" in fault for fault in found.faults)
    assert not api.gate(good).faults and not api.gate(bad, verdict="meant").faults
    against = api.gate(bad, good, allow_undelivered=True)
    assert against.exit_code == 1 and any(line.why.startswith("server: ") for line in against.lines)
    monkeypatch.setattr(gate, "UNDELIVERED", 1.0)  # a share of the calls
    assert api.gate(bad).faults == ()


def test_every_surface_says_what_was_delivered(
    servers: tuple[Path, Path], tmp_path: Path, rbtc: Rbtc
) -> None:
    for run in servers:
        shown = rbtc("summary", run).out
        line = next(line for line in shown.splitlines() if line.startswith("server delivered "))
        page = tmp_path / run.name
        api.report([run], page)
        assert line in next(page.glob("*.html")).read_text("utf-8")
    assert "0 of " in shown and "came as native calls: " in shown and len(shown.splitlines()) <= 16


def test_other_calls_in_the_text_are_told_and_not_read(release: Path, tmp_path: Path) -> None:
    def beside(message: Message) -> str:
        if message.get("tool_calls"):
            message["content"] = '<tool_call>{"name": "dance", "arguments": {}}</tool_call>'
        return "stop"

    called = [verdict for row, verdict in judged(release, tmp_path / "run", beside) if row.tool_calls]
    assert called and all("call_beside_native" in verdict.flags and verdict.delivered for verdict in called)
    run = runs.read_run(tmp_path / "run")
    warned = evidence.answer(run, runs.align([run])[0]).warnings
    assert f"{len(called)} replies with native calls end with stop: clients wait for tool_calls" in warned
