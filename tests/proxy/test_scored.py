"""`rbtc score JOURNAL`: a door's journal becomes a run folder like any other."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.api import build, evaluate, init, proxied
from robustbench_tc.eval import inputs, record, wire
from robustbench_tc.io import parquet
from robustbench_tc.proxy.scored import score
from robustbench_tc.schema import Sample
from tests.agent_server import serving as model

from ..conftest import Done
from ..eval import small
from .agents import Client, work
from .scripted import Script, chat_reply
from .test_door import TOOLS
from .wire import Answer, Seen, serving as server_of

Json = Any
NO_ROW = {"session without its row: no_such_row": 1}
"""`same_name_A` does not apply to one of the cases."""
TYPES = ("clean", "same_name_A", "transient_timeout")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Sequence[Sample]]:
    folder = tmp_path_factory.mktemp("bench") / "release"
    rows = small.rows()
    small.write(folder, rows)
    return folder, rows


def plan_of(folder: Path, bench: Path | None, types: Sequence[str] = TYPES) -> Path:
    plan = folder / "plan.yaml"
    named = f"bench: {bench}\n" if bench else ""
    plan.write_text(f"version: 1\n{named}types: [{', '.join(types)}]\nallow_writes: true\n")
    return plan


def played(
    plan: Path,
    path: Path,
    rows: Sequence[Sample],
    agent: str = "gives-up-on-error",
    repeats: int = len(TYPES),
    rounds: int = 2,
) -> None:
    """Every clean case of `rows` in so many repeats, before the model that is this reference agent."""
    clean = [row for row in rows if row.type_code == "clean"]
    with (
        model(agent, rows) as upstream,
        proxied(plan, upstream=upstream, journal=path) as url,
        Client(url) as client,
    ):
        for row in clean:
            asked = wire.first(row, "fc")
            for repeat in range(repeats):
                session = f"{row.clean_id}.{repeat}"
                work(client, session, asked.messages, asked.tools or [], rounds=rounds, gives_up=True)


def verdicts(run: Path) -> dict[tuple[str, int], Json]:
    columns = ["id", "repeat", "status", "correct", "error_mode", "score", "attempts", "injected"]
    return {
        (one["id"], one["repeat"]): {name: one[name] for name in columns[2:]}
        for one in parquet.read_rows([run / "scores.parquet"], columns)
    }


@pytest.fixture(scope="module")
def sessions(
    tmp_path_factory: pytest.TempPathFactory, bench: tuple[Path, Sequence[Sample]]
) -> tuple[Path, Path]:
    """A folder with a journal of every case under every type, and the run of the harness over the same."""
    folder = tmp_path_factory.mktemp("played")
    played(plan_of(folder, bench[0]), folder / "journal.jsonl", bench[1])
    run = folder / "eval"
    evaluate(bench[0], agent="gives-up-on-error", mode="fc", types=TYPES, out=run)
    return folder, run


def test_a_journal_becomes_a_run_with_the_harness_verdicts(
    rbtc: Callable[..., Done], sessions: tuple[Path, Path], tmp_path: Path
) -> None:
    folder, run = sessions
    out = tmp_path / "door"
    done = rbtc("score", folder / "journal.jsonl", "--out", out)
    assert done.code == 0, done.err
    wanted = verdicts(run)
    assert verdicts(out) == wanted and {one["correct"] for one in wanted.values()} == {True, False}
    assert f"{len(wanted)} predictions in {out}" in done.err
    made, harness = (record.open_run(one).record for one in (out, run))
    assert made.expected == harness.expected and made.left_out == NO_ROW
    assert made.settings.selection == harness.settings.selection
    for words in (
        ("summary", out),
        ("report", out, "--out", tmp_path / "report"),
        ("compare", out, run),
        ("failures", out),
        ("sql", "table2", "--run", out),
        ("export", out, "--out", tmp_path / "lines.jsonl"),
        ("score", out),
    ):
        done = rbtc(*words)
        assert done.code == 0, (words, done.err)
    for done in (rbtc("gate", out), rbtc("gate", out, "--against", run)):
        assert "of 5 cases were right before, 10 are needed" in done.out


def test_sessions_that_are_added_are_in_the_next_scoring(
    bench: tuple[Path, Sequence[Sample]], tmp_path: Path
) -> None:
    folder, rows = bench
    plan, path, out = plan_of(tmp_path, folder), tmp_path / "j.jsonl", tmp_path / "run"
    first = [row for row in rows if row.clean_id == rows[0].clean_id]
    played(plan, path, [*first, *rows], repeats=1)
    made = score(path, out=out)
    every = sum(row.type_code == "clean" for row in rows)
    asked_of = sum(row.type_code in TYPES for row in rows)
    assert made.predictions == every
    assert made.folder.record.left_out == {"row that no session asked": asked_of - every}
    played(plan, path, rows, repeats=2 * len(TYPES))
    made = score(path, out=out)
    assert made.folder.record.settings.repeat == 2
    assert made.predictions == made.folder.record.expected == 2 * asked_of
    keys = verdicts(out).keys()
    assert {number for _, number in keys} == {0, 1} and len(keys) == 2 * asked_of
    # Attempts beyond what every row has are counted, unless they are asked for.
    played(plan, path, first, repeats=2 * len(TYPES) + 1)
    made = score(path, out=out)
    assert made.folder.record.left_out == {
        "attempt beyond the 2 of each row": 1,
        "session without its row: no_such_row": 2,
    }
    made = score(path, out=out, repeat=3)
    assert made.failures == {"fewer than 3 attempts": 3 * asked_of - made.predictions}
    assert made.predictions == 2 * asked_of + 1


def test_rows_without_an_answer_are_counted_with_the_reason(
    rbtc: Callable[..., Done], bench: tuple[Path, Sequence[Sample]], tmp_path: Path
) -> None:
    folder, rows = bench
    clean = [row for row in rows if row.type_code == "clean"]
    plan = plan_of(tmp_path, folder, ["transient_timeout", "clean"])
    refusals = {
        0: Answer([b'{"error": {"message": "Rate limit reached"}}'], 429),
        1: Answer([b'{"error": {"message": "maximum context length is 10 tokens"}}'], 400),
    }
    seen: list[Seen] = []

    def says(one: Seen) -> Answer:
        seen.append(one)
        if (place := len(seen) - 1) in refusals:
            return refusals[place]
        tools = json.loads(one.body)["tools"]
        return Answer([json.dumps(chat_reply([(tools[0]["function"]["name"], "{}")])).encode()])

    path = tmp_path / "j.jsonl"
    with (
        server_of(says) as server,
        proxied(plan, upstream=server.url, journal=path) as url,
        Client(url) as client,
    ):
        for number, row in enumerate(clean[:3]):
            asked = wire.first(row, "fc")
            body = {"model": "m-1", "messages": asked.messages, "tools": asked.tools}
            # The third gets the fault's type, and its agent does not ask a second time.
            client.post(f"{row.clean_id}.{int(number < 2)}", body)
        client.post("nobody.0", {"messages": asked.messages, "tools": asked.tools})
    done = rbtc("score", path, "--out", tmp_path / "run")
    assert done.code == 0
    lines = done.err.splitlines()
    assert lines[-1].startswith("scored by reader")
    missing = sum(row.type_code in ("clean", "transient_timeout") for row in rows) - 3
    assert sorted(lines[:-1]) == [
        f"3 predictions in {tmp_path / 'run'}",
        "left out: 1 × session without its row: unknown_case",
        f"left out: {missing} × row that no session asked",
        "without an answer: 1 × incomplete: the agent did not ask on after its call was answered",
        "without an answer: 1 × refused upstream: HTTP 429: Rate limit reached",
    ]
    found = {key[0]: one["status"] for key, one in verdicts(tmp_path / "run").items()}
    assert list(found.values()).count("request_error") == 2
    assert found[clean[1].id] == "too_long"
    assert record.open_run(tmp_path / "run").record.settings.model == "m-1"
    assert rbtc("summary", tmp_path / "run").code == 1
    done = rbtc("failures", tmp_path / "run")
    assert "refused upstream" in done.out + done.err


def test_a_conversation_that_is_begun_again(bench: tuple[Path, Sequence[Sample]], tmp_path: Path) -> None:
    """The first that was played to its end counts: calls of one are never put behind those of another."""
    folder, rows = bench
    row = next(one for one in rows if one.type_code == "transient_timeout")
    clean = next(one for one in rows if one.id == f"{row.clean_id}::clean")
    asked = wire.first(clean, "fc")
    names = [tool["function"]["name"] for tool in asked.tools or []]
    path, plan = tmp_path / "j", plan_of(tmp_path, folder, ["transient_timeout"])
    script = Script(
        chat_reply([(names[0], '{"try": 1}')]),
        chat_reply([(names[0], '{"try": 2}')]),
        chat_reply([(names[1], '{"try": 3}')]),
        chat_reply([], "Later"),
    )
    with (
        server_of(script) as server,
        proxied(plan, upstream=server.url, journal=path) as url,
        Client(url) as client,
    ):
        work(client, f"{row.clean_id}.0", asked.messages, asked.tools or [], rounds=1)
        for _ in range(2):
            work(client, f"{row.clean_id}.0", asked.messages, asked.tools or [], rounds=2)
    score(path, out=tmp_path / "run")
    [one] = parquet.read_rows([tmp_path / "run" / "predictions.parquet"])
    assert '"try": 2' in json.loads(one["first_tool_calls"])[0]["arguments"]
    assert '"try": 3' in json.loads(one["tool_calls"])[0]["arguments"]


def test_a_journal_without_cases_names_what_can_be_read(rbtc: Callable[..., Done], tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    script = Script(chat_reply([("get_order", '{"id": "7"}')]), chat_reply([], "Done."))
    plan = plan_of(tmp_path, None, ["transient_timeout"])
    with (
        server_of(script) as server,
        proxied(plan, upstream=server.url, journal=path) as url,
        Client(url) as client,
    ):
        work(client, "refund.0", [{"role": "user", "content": "Order 7?"}], TOOLS)
    done = rbtc("score", path)
    assert done.code == 1 and done.err == (
        f"rbtc: {path} cannot be scored: its plan names no dataset (`bench:`), so nothing says which "
        f"calls are right; `rbtc summary {path}` shows its calls, errors and recoveries\n"
    )
    done = rbtc("summary", path)
    assert done.code == 0 and "1 sessions, 2 exchanges, 1 calls" in done.out
    figures = json.loads(rbtc("summary", path, "--json").out)
    did = {"met": 1, "spared": 0, "called_again": 0, "called_others": 0, "answered": 1, "stopped": 0}
    assert figures["faults"] == {"transient_timeout": did}


def test_a_damaged_journal_is_one_line(
    rbtc: Callable[..., Done], sessions: tuple[Path, Path], tmp_path: Path
) -> None:
    folder, run = sessions
    whole = (folder / "journal.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    path, out = tmp_path / "j.jsonl", tmp_path / "run"

    def refused(data: bytes) -> str:
        path.write_bytes(data)
        done = rbtc("score", path, "--out", out)
        assert done.code == 1 and done.err.count("\n") == 1 and not out.exists(), done.err
        return str(done.err)

    assert "j.jsonl:2: not a line of a door's journal" in refused(lines[0] + b"{}\n" + lines[1])
    assert "j.jsonl:3: not a line" in refused(b"".join(lines[:2]) + lines[2][:40] + b"\n" + lines[3])
    assert "a door's journal: Invalid enum value 9" in refused(b'{"v":9,' + whole[1:])
    assert "holds no exchange" in refused(b"")
    wrong: list[Json] = [
        {"replies": 3}, {"replies": [3]}, {"replies": [{"text": 3}]}, {"replies": [{"tool_calls": [{}]}]},
        {"turn": -1}, {"turn": 1e40}, {"repeat": "a"}, {"held": 7}, {"row": []}, {"opened": 3},
        {"session": None}, {"status": "ok"}, {"replaced": [{}]},
    ]  # fmt: skip
    for one in wrong:
        said = refused(lines[0] + json.dumps(json.loads(lines[1]) | one).encode() + b"\n")
        assert "j.jsonl:2: not a line of a door's journal: " in said
    assert "j.jsonl:2: not a line" in refused(lines[0] + b"[" * 100_000 + b"\n")
    assert "does not name its dataset: give it with --dataset" in refused(b"".join(lines[1:]))
    first = json.loads(lines[0])
    first["opened"]["bench"] = "gone"
    assert "gone" in (said := refused(json.dumps(first).encode())) and "--dataset" in said
    first["opened"] |= {"bench": str(record.open_run(run).record.dataset), "fingerprint": "0" * 32}
    assert "is another dataset than" in refused(json.dumps(first).encode())
    assert "1: not a line of a door's journal" in rbtc("score", run / "journal.jsonl").refusal
    assert rbtc("score", tmp_path / "nowhere").err.count("\n") == 1
    assert "are for the journal of a door" in rbtc("score", run, "--out", out).err
    # A last line that is cut is left out, and that is said.
    path.write_bytes(whole[:-20])
    done = rbtc("score", path, "--out", out)
    assert done.code == 0 and "its last line is cut off, because the door was killed" in done.err


def test_another_journal_does_not_take_a_runs_place(
    rbtc: Callable[..., Done], sessions: tuple[Path, Path], tmp_path: Path
) -> None:
    folder, run = sessions
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    dataset = record.open_run(run).record.dataset
    path, out = tmp_path / "j.jsonl", tmp_path / "run"
    path.write_bytes(b"".join(lines))
    assert rbtc("score", path, "--out", out).code == 0
    before = verdicts(out)
    path.write_bytes(b"".join(lines[1:]))
    assert (
        "Take another --out" in rbtc("score", path, "--out", out, "--dataset", dataset).refusal
        and verdicts(out) == before
    )
    assert (
        "holds a run with other settings" in rbtc("score", path, "--out", run, "--dataset", dataset).refusal
    )
    assert rbtc("score", path, "--out", tmp_path / "b", "--dataset", dataset, "--model", "mine").code == 0
    assert record.open_run(tmp_path / "b").record.settings.model == "mine"


def test_own_cases_with_turns_and_calls_in_order(tmp_path: Path) -> None:
    """A turn that is asked for by its name, with gold's history, has the harness's verdict as well."""
    init(tmp_path / "desk")
    bench = tmp_path / "bench"
    build(bench, cases=tmp_path / "desk" / "cases.yaml", types=TYPES)
    rows = inputs.load_samples(str(bench)).rows
    assert {"calls+ordered", "no_call", "ask"} <= {row.category for row in rows}
    plan, path = plan_of(tmp_path, bench), tmp_path / "j.jsonl"
    played(plan, path, rows, "oracle", rounds=6)
    made = score(path, out=tmp_path / "door")
    evaluate(bench, agent="oracle", mode="fc", types=TYPES, out=tmp_path / "eval")
    assert made.failures == {} and verdicts(tmp_path / "door") == verdicts(tmp_path / "eval")
