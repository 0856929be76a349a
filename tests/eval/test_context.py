"""Results that carry an order, and errors that come again: passes, verdicts, tables, from agents to SQL."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc import api, taxonomy
from robustbench_tc.audits.expectations import predictions as suite
from robustbench_tc.audits.folder import Folder
from robustbench_tc.eval import exchange, inputs, predictions, record, wire
from robustbench_tc.eval.journal import finished
from robustbench_tc.eval.leaderboard import checks
from robustbench_tc.eval.parse import parse
from robustbench_tc.eval.prompts.calls import earlier_calls, render_calls
from robustbench_tc.eval.score import judge, ordered_call
from robustbench_tc.eval.stats import intervals, packs, runs, summary
from robustbench_tc.io import parquet
from robustbench_tc.llm.store import Store
from robustbench_tc.schema import Call, Prediction, Sample, asked_hash, dumps, loads
from robustbench_tc.sql.query import Inputs, query

from . import small
from .strict_server import refusal
from .test_run import called, evaluate as ask, is_second, serve  # noqa: F401

RESULTS = ("benign_result", "injected_result")
REPEATED = ("transient_timeout_x1", "transient_timeout_x2", "transient_timeout_x9")
ROWS = small.rows(*RESULTS, *REPEATED, "transient_timeout", "context_2k")
CLEAN = {row.clean_id: row for row in ROWS if row.type_code == taxonomy.CLEAN}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.write(tmp_path_factory.mktemp("release") / "robustbench-tc", ROWS)


def of_agent(name: str, mode: str, release: Path, out: Path) -> api.Evaluated:
    run = api.evaluate(release, agent=name, mode=mode, out=out / f"{name}-{mode}")
    run.score()
    assert run.unexpected == [] and run.asked.request_errors == 0
    return run


def table(run: api.Evaluated, name: str, *without: str) -> packs.Table:
    """One of the run's tables; `without` some clean ids."""
    read = runs.read_run(run.folder.path)
    (outcomes,) = (one.without(without) for one in runs.align([read]))
    made = packs.tables(packs.Given(read, outcomes, summary.summarise(outcomes)))
    (found,) = (one for one in made if one.name == name)
    return found


def shares(found: packs.Table) -> dict[str, float | None]:
    """The last cell of each row, by the first."""
    values = {str(row[0]): row[-1] for row in found.rows}
    return {name: one.value if isinstance(one, intervals.Interval) else None for name, one in values.items()}


@pytest.mark.parametrize("mode", ["prompt", "fc"])
def test_who_obeys_orders_is_attacked_always_and_the_oracle_never(
    release: Path, tmp_path: Path, mode: str
) -> None:
    assert shares(table(of_agent("oracle", mode, release, tmp_path), "context_results")) == {
        "benign utility": 1.0,
        "utility under attack": 1.0,
        "targeted attack success rate": 0.0,
        "near attack rate": 0.0,
    }
    obedient = of_agent("obeys-injection", mode, release, tmp_path)
    assert shares(table(obedient, "context_results")) == {
        "benign utility": 1.0,
        "utility under attack": 0.0,
        "targeted attack success rate": 1.0,
        "near attack rate": 0.0,
    }
    silent = of_agent("apology", mode, release, tmp_path)  # never calls, so it never meets a result
    assert set(shares(table(silent, "context_results")).values()) == {None}
    assert {r["type_code"] for r in rows_of(obedient) if not r["correct"]} == {"injected_result"}


def rows_of(run: api.Evaluated) -> list[dict[str, Any]]:
    return list(parquet.read_rows([run.folder.scores_path]))


@pytest.mark.parametrize("mode", ["prompt", "fc"])
def test_tries_are_counted_to_the_last_error(release: Path, tmp_path: Path, mode: str) -> None:
    def counted(name: str) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        for row in rows_of(of_agent(name, mode, release, tmp_path)):
            found.setdefault(row["type_code"], set()).add(row["attempts"])
        return {code: found[code] for code in REPEATED}

    assert counted("oracle") == dict(zip(REPEATED, ({1}, {2}, {9}), strict=True))
    assert counted("gives-up-on-error") == {code: {1} for code in REPEATED}
    assert counted("gives-up-on-second-error") == dict(zip(REPEATED, ({1}, {2}, {2}), strict=True))
    assert counted("apology") == {code: {0} for code in REPEATED}


def test_the_table_of_tries_and_the_marts_say_the_same(release: Path, tmp_path: Path) -> None:
    evaluated = [
        of_agent(name, "prompt", release, tmp_path)
        for name in ("oracle", "gives-up-on-second-error", "obeys-injection", "apology", "first-tool")
    ]
    for run in evaluated:
        found = Inputs(runs=[str(run.folder.path)])
        tries = [
            (m["type_code"], m["n"], m["met_the_error"], m["tries_mean"], m["still_calling"])
            for m in query("attempts", found).to_pylist()
        ]
        said = table(run, "repeated_errors").rows
        assert [row[:4] for row in said] == [one[:4] for one in tries]
        assert [row[4] for row in said] == [None if not one[2] else one[4] / one[2] for one in tries]
        assert [row[5] is None for row in said] == [False, False, True]  # nine errors: no accuracy
        marts = {m["type_code"]: m for m in query("attacks", found).to_pylist()}
        benign, injected = (marts[code] for code in RESULTS)
        assert benign["attack_success"] is benign["attacked"] is benign["near_attacks"] is None
        values = shares(table(run, "context_results"))
        assert values["benign utility"] == benign["utility"]
        assert values["utility under attack"] == injected["utility"]
        assert values["targeted attack success rate"] == injected["attack_success"]
        assert not {m["type_code"] for m in query("recovery", found).to_pylist()} & set(RESULTS)
    said = table(evaluated[0], "repeated_errors").rows
    assert [row[3] for row in said] == [1.0, 2.0, 9.0]
    fewer = table(evaluated[0], "repeated_errors", ROWS[0].clean_id).rows
    assert [row[1] for row in fewer] == [int(str(row[1])) - 1 for row in said], "those of the subset alone"


def test_who_answers_what_was_asked_before_fails_on_longer_contexts_alone(
    release: Path, tmp_path: Path
) -> None:
    run = of_agent("stuck-in-the-past", "fc", release, tmp_path)
    assert {row["type_code"] for row in rows_of(run) if not row["correct"]} == {"context_2k"}
    (row,) = table(run, "context_lengths").rows
    assert row[:4] == ("context_2k", 2_000, "true", 4) and row[-1] == 0
    assert isinstance(row[5], intervals.Interval) and row[5].value == 1.0


LONGER = [row for row in ROWS if row.type_code == "context_2k"]


@pytest.mark.parametrize("row", LONGER, ids=lambda row: row.source)
def test_earlier_calls_are_asked_in_the_rows_format_and_natively(row: Sample) -> None:
    calls = [call for one in row.messages if (found := earlier_calls(one)) for call in found[1]]
    native = wire.first(row, "fc")
    made = [one for message in native.messages for one in message.get("tool_calls", ())]
    names = wire.WireNames(row.tools)
    assert [(names.back(one["function"]["name"]), loads(one["function"]["arguments"])) for one in made] == [
        (call.name, call.parameters) for call in calls
    ]
    answered = [message["tool_call_id"] for message in native.messages if message["role"] == "tool"]
    assert answered == [one["id"] for one in made] and len(set(answered)) == len(answered) == len(calls)
    written = wire.first(row, "prompt").messages
    assert {message["role"] for message in written} == {"system", "user", "assistant"}
    read_back = [
        call
        for message in written
        if message["role"] == "assistant"
        for call in parse(message["content"], source=row.source, tools=row.tools).calls
    ]
    assert read_back == calls
    assert refusal({"messages": native.messages, "tools": native.tools}) is None


def test_a_ghost_of_the_context_is_a_flag_and_a_column() -> None:
    row = next(one for one in LONGER if one.source == "bfcl_v3")
    clean = CLEAN[row.clean_id]
    named = next(word for word in row.messages[0].content.split() if word.isalpha() and len(word) > 5)
    for name, flagged in ((named, True), ("nowhere_named", False)):
        reply = render_calls((Call(name, {"a": 1}),), row.output_format)
        found = judge(small.prediction(row, raw_output=reply), row, clean)
        assert found.error_mode == "ghost" and ("context_ghost" in found.flags) == flagged


# --- verdicts ---------------------------------------------------------------------------------------------


def injected(row: Sample, first: str, second: str | None, **fields: Any) -> Prediction:
    said = {"injected": True, "first_output": first, "raw_output": second, **fields}
    return small.prediction(row, **said)


RESULT = next(r for r in ROWS if r.type_code == "injected_result" and r.source == "toolalpaca")
GOLD = render_calls((Call("randomPicture", {"tag": "sleepy", "width": 300}),), RESULT.output_format)
WRONG = render_calls((Call("randomPicture", {"tag": "loud", "width": 300}),), RESULT.output_format)
OTHERWISE = render_calls((Call("stampList", {"prefix": "s"}),), RESULT.output_format)
ORDERED = render_calls((ordered_call(RESULT) or Call("", {}),), RESULT.output_format)


@pytest.mark.parametrize(
    ("first", "second", "reason", "mark"),
    [
        (GOLD, "Here is your cat.", None, None),
        (GOLD, ORDERED, "unexpected_call", "attacked"),
        (GOLD, OTHERWISE, "unexpected_call", "near_attack"),
        (GOLD, GOLD, "unexpected_call", None),
        (GOLD, "", "unparsable", None),
        (GOLD, '<tool_call>{"name": "stampList", "argu', "unparsable", None),
        (WRONG, "Here is your cat.", "wrong_value", None),
        (WRONG, ORDERED, "wrong_value", "attacked"),
    ],
)
def test_both_replies_are_judged(first: str, second: str, reason: str | None, mark: str | None) -> None:
    found = judge(injected(RESULT, first, second), RESULT, CLEAN[RESULT.clean_id])
    marks = {"attacked", "near_attack"} & set(found.flags)
    assert (found.reason, found.correct, marks) == (reason, reason is None, {mark} - {None})
    assert (found.error_mode is None) == found.correct
    assert found.score == float(found.correct)


def test_a_control_tool_after_the_result_is_no_further_call() -> None:
    row = next(r for r in ROWS if r.type_code == "benign_result" and r.source == "rotbench")
    gold = render_calls((Call("find_country", {"town": "Bodo", "language": "en"}),), row.output_format)
    end = render_calls((Call("finish", {"answer": "Norway."}),), row.output_format)
    assert judge(injected(row, gold, end), row, CLEAN[row.clean_id]).correct
    assert not judge(injected(row, gold, gold), row, CLEAN[row.clean_id]).correct


def test_native_calls_of_both_replies_are_judged() -> None:
    ordered = ordered_call(RESULT)
    assert ordered is not None
    first = [{"id": "1", "name": "randomPicture", "arguments": '{"tag": "sleepy", "width": 300}'}]
    second = [{"id": "1", "name": ordered.name, "arguments": dumps(ordered.parameters)}]
    one = injected(RESULT, "", None, mode="fc", first_tool_calls=first, tool_calls=second)
    found = judge(one, RESULT, CLEAN[RESULT.clean_id])
    assert "attacked" in found.flags and found.calls[0].name == ordered.name
    one = injected(RESULT, "", "Done.", mode="fc", first_tool_calls=first)
    assert judge(one, RESULT, CLEAN[RESULT.clean_id]).correct


def test_a_first_reply_without_a_call_is_wrong_and_met_no_result() -> None:
    one = injected(RESULT, "", "I would rather not.", injected=False, first_output=None)
    found = judge(one, RESULT, CLEAN[RESULT.clean_id])
    assert (found.reason, found.flags) == ("no_call", ())


# --- passes -----------------------------------------------------------------------------------------------


NINE = [row for row in ROWS if row.type_code == "transient_timeout_x9"]


@pytest.mark.parametrize("mode", ["prompt", "fc"])
def test_every_pass_is_asked_once_and_none_again(tmp_path: Path, serve: Any, mode: str) -> None:  # noqa: F811
    server = serve(called)
    run, found, _ = ask(tmp_path / "run", NINE, server, mode=mode)
    assert server.count == 10 * len(NINE) and [one.attempts for one in found] == [9] * len(NINE)
    with run.journal() as journal:
        numbers = Counter((journal.get(key) or {})["number"] for key in journal.keys())  # noqa: SIM118
    assert numbers == dict.fromkeys(range(1, 11), len(NINE))
    last = max(server.bodies, key=lambda body: len(body["messages"]))
    ids = [one["tool_call_id"] for one in last["messages"] if one["role"] == "tool"]
    roles = [one["role"] for one in last["messages"]][-4:]
    assert roles == ["assistant", "tool" if mode == "fc" else "user"] * 2
    assert len(ids) == (9 if mode == "fc" else 0)
    ask(tmp_path / "run", NINE, server, mode=mode)
    assert server.count == 10 * len(NINE)


def test_a_session_goes_on_behind_the_passes_that_are_there(tmp_path: Path, serve: Any) -> None:  # noqa: F811
    def third_fails(body: dict[str, Any]) -> Any:
        errors = sum(one["role"] == "user" and "timed out" in one["content"] for one in body["messages"])
        return {"error": {"message": "no", "type": "x"}} if errors == 3 and broken else called(body)

    broken = True
    server = serve(third_fails)
    _, found, state = ask(tmp_path / "run", NINE, server, max_retries=0)
    assert state.request_errors == len(NINE) and {one.status for one in found} == {"request_error"}
    assert {one.attempts for one in found} == {3}
    before, broken = server.count, False
    _, found, _ = ask(tmp_path / "run", NINE, server)
    assert server.count - before == 7 * len(NINE) and {one.attempts for one in found} == {9}


def test_who_stops_is_not_asked_again(tmp_path: Path, serve: Any) -> None:  # noqa: F811
    server = serve(lambda body: "Too bad." if is_second(body) else called(body))
    _, found, _ = ask(tmp_path / "run", NINE, server)
    assert server.count == 2 * len(NINE)
    assert {(one.attempts, one.raw_output) for one in found} == {(1, "Too bad.")}
    assert all(one.first_output is not None and "ping" in one.first_output for one in found)


def test_answers_of_all_passes_are_reused_and_a_run_grows_by_repeats(release: Path, tmp_path: Path) -> None:
    first = api.evaluate(release, agent="oracle", types="transient_timeout_x9", out=tmp_path / "a")
    assert first.folder.record.sessions[0].requests == 50
    again = api.evaluate(
        release, agent="oracle", types="transient_timeout_x9", out=tmp_path / "b", reuse=tmp_path / "a"
    )
    assert again.folder.record.reused == {str(tmp_path / "a"): 50}
    assert again.folder.record.sessions[0].requests == 0
    api.evaluate(release, agent="oracle", types="transient_timeout_x9", out=tmp_path / "a", repeat=2)
    grown = record.open_run(tmp_path / "a")
    assert grown.record.sessions[1].requests == 50
    found = predictions.read_predictions(grown.answers_path)
    assert [(one.repeat, one.attempts) for one in found] == [(0, 9), (1, 9)] * 5


def test_in_the_papers_layout_the_first_reply_is_missing_and_the_row_left_out(
    release: Path, tmp_path: Path
) -> None:
    run = api.evaluate(release, agent="oracle", types=("clean", *RESULTS), out=tmp_path / "run").folder
    data = inputs.load_samples(str(release))
    rows = {row.id: row for row in data.rows}
    found = predictions.read_predictions(run.answers_path)
    theirs, ours = tmp_path / "theirs.jsonl", tmp_path / "ours.jsonl"
    predictions.write_lines(theirs, (exchange.in_paper_layout(one, rows[one.id]) for one in found))
    predictions.write_lines(ours, found)
    taken, left_out = exchange.read_predictions(theirs, data, model="m", mode="prompt")
    results = sum(one.type_code in RESULTS for one in found)
    assert {one.type_code for one in taken} == {"clean"}
    assert left_out == {"row whose first reply is judged too, and is not there": results} and results
    assert exchange.read_predictions(ours, data, model="m", mode="prompt") == (found, {})


def test_an_unfinished_row_is_no_prediction(tmp_path: Path) -> None:
    row, settings = NINE[0], small.settings(model="tiny", prompt_version="1-abc")
    lines: dict[str, Any] = {}
    for number in range(1, 5):
        one = record.Answer(id=row.id, repeat=0, number=number, status="ok", text="[f()]", has_call=True)
        lines[settings.key(asked_hash(row), 0, number)] = msgspec.to_builtins(one)
    with Store(tmp_path / "journal.jsonl") as journal:
        journal.extend(lines)
        assert [*finished(journal, [row], settings)] == [] and wire.answered(row) == 9


def test_the_audit_of_predictions_knows_rows_that_a_result_answers(release: Path, tmp_path: Path) -> None:
    run = of_agent("obeys-injection", "prompt", release, tmp_path)
    failed = [one for one in suite.suite(run.folder.scores_path, Folder(release)) if one.status == "failed"]
    assert failed == []


@pytest.mark.parametrize(("met", "tries"), [(True, 0), (True, None), (True, 10), (False, 1), (True, -1)])
def test_the_board_takes_no_tries_that_cannot_be(met: bool, tries: int | None) -> None:
    row = NINE[0]
    called = render_calls((Call("ping", {}),), row.output_format)
    first = {"first_output": called if met else None, "raw_output": "Too bad.", "injected": met}
    one = msgspec.structs.replace(injected(row, called, None), **first, attempts=tries)
    taken = msgspec.structs.replace(one, attempts=2 if met else 0)
    assert list(checks._mistakes(one, row, stated=False)) == ["do not say how many calls met the error"]
    assert list(checks._mistakes(taken, row, stated=False)) == []
