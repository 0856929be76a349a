"""The harness: two passes, failures kept apart from answers, and nothing asked twice."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import llm, schema
from robustbench_tc.eval import inputs, predictions, prompts, record, request_settings, session, who
from robustbench_tc.eval.data import Selection
from robustbench_tc.eval.run import Progress

from ..loopback import (
    BAD_TOOL_NAME,
    EMPTY_CHOICES,
    HTML,
    SERVER_ERROR,
    TOO_LONG,
    Fault,
    LoopbackServer,
    error_body,
    rate_limit,
    reply,
)
from ..refusals import refuses
from . import small
from .strict_server import strict

Body = dict[str, Any]
Handler = Callable[[Body], Any]
DECODING = {"temperature": 0.5, "max_tokens": 64}


def settings(dataset: inputs.Dataset, **changes: Any) -> record.Settings:
    plain = {"fingerprint": dataset.fingerprint(), "model": "tiny", "decoding": DECODING}
    return small.settings(**(plain | {"prompt_version": prompts.prompt_version()} | changes))


def evaluate(
    folder: Path, rows: list[schema.Sample], server: LoopbackServer, *, max_retries: int = 1, **changes: Any
) -> tuple[record.RunFolder, list[schema.Prediction], Progress]:
    """One session over the rows; the predictions as they lie on disk."""
    dataset = inputs.Dataset(name="made", rows=tuple(rows))
    made = settings(dataset, **changes)
    run = record.start(folder, dataset, made, len(rows) * made.repeat)
    # Nothing here hangs: a busy machine must not look like a dead server.
    effort = who.Effort(concurrency=8, timeout_s=60.0, max_retries=max_retries)
    asked = request_settings.RequestSettings(decoding=made.decoding)
    opened = who.endpoint([llm.Endpoint("tiny", server.url)], asked, effort, backoff_s=0.01)
    state = session.run(run, dataset, opened)
    return run, predictions.read_predictions(run.answers_path), state


def called(body: Body) -> Body:
    """A model that always makes one call."""
    if body.get("tools"):
        return reply("", [(body["tools"][0]["function"]["name"], '{"a": 1}')])
    return reply('<tool_call>{"name": "ping", "parameters": {}}</tool_call>')


def is_second(body: Body) -> bool:
    last = body["messages"][-1]
    return bool(last["role"] == "tool" or last["content"].startswith(prompts.TOOL_RESULT))


@pytest.fixture
def serve() -> Iterator[Callable[[Handler], LoopbackServer]]:
    running: list[LoopbackServer] = []

    def start(handler: Handler) -> LoopbackServer:
        running.append(LoopbackServer(handler).__enter__())
        return running[-1]

    yield start
    for server in running:
        server.__exit__()


ALL = small.rows()
TRANSITION = [row for row in ALL if row.injected_error is not None]
STATIC = [row for row in ALL if row.injected_error is None]


@pytest.mark.parametrize("mode", ["prompt", "fc"])
def test_one_prediction_for_each_row_and_a_second_pass_for_each_call(
    tmp_path: Path, serve: Any, mode: str
) -> None:
    server = serve(called)
    run, found, state = evaluate(tmp_path / "run", ALL, server, mode=mode)
    assert [p.id for p in found] == [row.id for row in ALL]
    assert (state.done, state.request_errors) == (len(ALL), 0)
    assert server.count == len(ALL) + len(TRANSITION)
    assert {p.status for p in found} == {"ok"}
    for one in found:
        assert one.injected is (True if one.component == "transition" else None)
        assert (one.first_output is not None) == (one.component == "transition")
    assert run.record.totals["predictions"] == len(ALL)
    assert run.record.totals["injected"] == len(TRANSITION)
    assert run.record.totals["prompt_tokens"] == 10 * server.count
    assert run.record.served_models == ["tiny"]
    assert run.record.sessions[0].requests == server.count
    assert sum(is_second(body) for body in server.bodies) == len(TRANSITION)


def test_native_calls_come_back_under_the_registrys_names(tmp_path: Path, serve: Any) -> None:
    rows = [row for row in STATIC if row.source == "bfcl_v3"]
    _, found, _ = evaluate(tmp_path / "run", rows, serve(called), mode="fc")
    for row, one in zip(rows, found, strict=True):
        assert one.tool_calls == [{"id": "call_0", "name": row.tools[0].name, "arguments": '{"a": 1}'}]


def test_nothing_is_injected_where_nothing_was_called(tmp_path: Path, serve: Any) -> None:
    server = serve(lambda body: "I would rather not.")
    _, found, _ = evaluate(tmp_path / "run", TRANSITION, server)
    assert server.count == len(TRANSITION)
    assert {(p.injected, p.raw_output, p.first_output) for p in found} == {
        (False, "I would rather not.", None)
    }


def test_the_second_reply_is_the_scored_one(tmp_path: Path, serve: Any) -> None:
    _, found, _ = evaluate(
        tmp_path / "run", TRANSITION, serve(lambda b: "Too bad." if is_second(b) else called(b))
    )
    assert {p.raw_output for p in found} == {"Too bad."}
    assert all(p.first_output is not None and "ping" in p.first_output for p in found)


def test_a_failed_second_request_keeps_the_first_and_is_asked_again_alone(tmp_path: Path, serve: Any) -> None:
    broken = True

    def handler(body: Body) -> Any:
        return SERVER_ERROR if broken and is_second(body) else called(body)

    server = serve(handler)
    run, found, state = evaluate(tmp_path / "run", TRANSITION[:6], server, max_retries=0)
    assert state.request_errors == 6
    for one in found:  # the first reply is kept apart and never stands in for the second
        assert (one.status, one.raw_output, one.injected) == ("request_error", None, True)
        assert one.first_output is not None
    broken = False
    before = server.count
    _, found, state = evaluate(tmp_path / "run", TRANSITION[:6], server)
    assert (server.count - before, state.request_errors) == (6, 0)
    assert all(is_second(body) for body in server.bodies[before:])
    assert {p.status for p in found} == {"ok"}
    assert len(run.path.joinpath("journal.jsonl").read_bytes().splitlines()) == 18


@pytest.mark.parametrize(
    "fault",
    [rate_limit("0"), SERVER_ERROR, HTML, EMPTY_CHOICES, Fault(200, {"error": "busy"}), Fault(drop=True)],
    ids=["429", "500", "html", "empty", "error-in-200", "drop"],
)
def test_a_passing_failure_is_retried_and_a_lasting_one_is_no_answer(
    tmp_path: Path, serve: Any, fault: Fault
) -> None:
    sick = {STATIC[0].messages[0].content}
    once: set[str] = set()

    def handler(body: Body) -> Any:
        said = body["messages"][-1]["content"]
        if said in sick or said not in once:
            once.add(said)
            return fault
        return called(body)

    rows = [STATIC[0], *STATIC[1:5]]
    _, found, state = evaluate(tmp_path / "run", rows, serve(handler), max_retries=2)
    assert state.request_errors == 1
    assert [(p.status, p.raw_output is None) for p in found] == [("request_error", True)] + [
        ("ok", False)
    ] * 4
    assert [p.retries for p in found[1:]] == [1] * 4
    assert found[0].error


def test_refusals_have_codes_of_their_own(tmp_path: Path, serve: Any) -> None:
    """The registry, the length, and a refusal in unknown words of a registry with duplicate names."""
    duplicates = next(row for row in STATIC if row.type_code == "same_name_C")

    def handler(body: Body) -> Any:
        names = [tool["function"]["name"] for tool in body["tools"]]
        if len(set(names)) < len(names):
            return Fault(400, error_body("Invalid request."))
        if "find_country" in names:
            return TOO_LONG
        if "randomPicture" in names:
            return BAD_TOOL_NAME
        if "weather_now" in names:
            return Fault(400, error_body("Invalid request."))
        return called(body)

    server = serve(handler)
    rows = [*small.clean_rows(), duplicates]
    _, found, _ = evaluate(tmp_path / "run", rows, server, mode="fc")
    assert {p.source if p.type_code == "clean" else "duplicates": p.status for p in found} == {
        "bfcl_v3": "ok",
        "apibank": "ok",
        "rotbench": "too_long",
        "toolalpaca": "rejected",
        "tooleyes": "request_error",
        "duplicates": "rejected",
    }
    before = server.count
    evaluate(tmp_path / "run", rows, server, mode="fc")
    assert server.count == before + 1  # a refusal is an outcome; only the failure is asked again


def test_a_reply_cut_at_the_limit_is_an_answer(tmp_path: Path, serve: Any) -> None:
    server = serve(lambda body: reply("[ping(", finish_reason="length"))
    run, found, _ = evaluate(tmp_path / "run", STATIC[:4], server)
    assert {(p.status, p.finish_reason) for p in found} == {("ok", "length")}
    assert run.record.totals["finish_reason"] == {"length": 4}


def test_a_line_that_is_no_answer_is_said(tmp_path: Path, serve: Any) -> None:
    """Such as one with a status of a later version."""
    server = serve(called)
    run, *_ = evaluate(tmp_path / "run", ALL, server)
    data = run.journal_path.read_bytes()
    run.journal_path.write_bytes(data.replace(b'"status":"ok"', b'"status":"of later"', 1))
    refuses(
        r"journal.jsonl holds other records than answers \(.*of later",
        evaluate,
        tmp_path / "run",
        ALL,
        server,
    )
    assert run.journal_path.stat().st_size > len(data)


def test_repeats_are_asked_apart_with_their_own_seeds(tmp_path: Path, serve: Any) -> None:
    server = serve(called)
    _, found, _ = evaluate(tmp_path / "run", STATIC[:3], server, repeat=3, decoding=DECODING | {"seed": 7})
    assert [(p.id, p.repeat) for p in found] == [(row.id, n) for row in STATIC[:3] for n in range(3)]
    assert sorted(body["seed"] for body in server.bodies) == [7, 7, 7, 8, 8, 8, 9, 9, 9]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"decoding": DECODING | {"temperature": 0.7}}, "temperature: 0.5 there, 0.7 here"),
        (
            {"decoding": DECODING | {"temperature": 0.7, "seed": 6}, "repeat": 2},
            r"temperature: 0\.5 there, 0\.7 here; seed: not set there, 6 here\. Take",
        ),
        ({"decoding": DECODING | {"seed": 1}}, "seed: not set there, 1 here"),
        ({"model": "small"}, 'model: "tiny" there, "small" here'),
        ({"mode": "fc"}, 'mode: "prompt" there, "fc" here'),
        ({"prompt_version": "0"}, "prompt_version: "),
        ({"fingerprint": "0"}, "dataset: "),
    ],
)
def test_a_folder_of_other_settings_is_refused_with_the_difference(
    tmp_path: Path, changes: Any, said: str
) -> None:
    dataset = inputs.Dataset(name="made", rows=tuple(STATIC))
    run = record.start(tmp_path / "run", dataset, settings(dataset), 5)
    run.journal_path.write_text('{"key":"a","status":"ok"}\n')
    refuses(
        "other settings: " + said, record.start, tmp_path / "run", dataset, settings(dataset, **changes), 5
    )


def test_a_run_without_an_answer_may_begin_again_under_other_settings(tmp_path: Path) -> None:
    dataset = inputs.Dataset(name="made", rows=tuple(STATIC))
    run = record.start(tmp_path / "run", dataset, settings(dataset, model="tyni"), 5)
    run.journal_path.write_text('{"key":"a","status":"request_error"}\n{"key":"b","status":"agent_error"}\n')
    record.start(tmp_path / "run", dataset, settings(dataset, selection=Selection(types=("clean",))), 5)
    there = record.open_run(tmp_path / "run").record.settings
    assert (there.model, there.selection) == ("tiny", Selection(types=("clean",)))


def test_keys_differ_with_everything_that_an_answer_depends_on() -> None:
    dataset = inputs.Dataset(name="made", rows=tuple(STATIC))
    base = settings(dataset)
    keys = {
        base.key("a", 0, 1),
        base.key("b", 0, 1),
        base.key("a", 1, 1),
        base.key("a", 0, 2),
        settings(dataset, model="x").key("a", 0, 1),
        settings(dataset, mode="fc").key("a", 0, 1),
        settings(dataset, decoding={}).key("a", 0, 1),
        settings(dataset, prompt_version="x").key("a", 0, 1),
        settings(dataset, system="s").key("a", 0, 1),
        settings(dataset, headers=("x",)).key("a", 0, 1),
        settings(dataset, system="s", headers=("x",)).key("a", 0, 1),
    }
    assert len(keys) == 11
    nested = ({"x": {"a": 1, "b": 2}}, {"x": {"b": 2, "a": 1}})
    assert len({settings(dataset, decoding=one).key("a", 0, 1) for one in nested}) == 1


def test_an_endpoint_that_takes_no_tools_is_found_out(tmp_path: Path, serve: Any) -> None:
    server = serve(lambda body: BAD_TOOL_NAME)
    refuses(r"refuses every registry .* --mode prompt", evaluate, tmp_path / "run", ALL, server, mode="fc")
    assert server.count < len(ALL)


@pytest.mark.parametrize("arguments", ['{"order_id": 10', "", '"{\\"order_id\\": 1042}"', "[1042]"])
def test_a_row_whose_first_arguments_are_broken_is_finished(
    tmp_path: Path, serve: Callable[[Handler], LoopbackServer], arguments: str
) -> None:
    def answer(body: Body) -> Body:
        said = '{"a": 1}' if is_second(body) else arguments
        return reply("", [(body["tools"][0]["function"]["name"], said)])

    _, found, _ = evaluate(tmp_path / "run", TRANSITION, serve(strict(answer)), mode="fc")
    assert [(one.status, one.injected) for one in found] == [("ok", True)] * len(TRANSITION)
