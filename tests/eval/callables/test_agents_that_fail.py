"""What an agent raises, hangs on or gives back in a wrong shape: a failed row with one line."""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.api import Reply, Task, evaluate, score
from robustbench_tc.eval import inputs
from robustbench_tc.eval.callables.invocation import Invocation
from robustbench_tc.eval.callables.task import reply_of
from robustbench_tc.io import parquet
from robustbench_tc.schema import Call, Sample

from ...refusals import refuses
from .. import small

ONE = "apibank__level1_1::clean"


def asked(release: Path, out: Path, **options: Any) -> dict[str, Any]:
    """The scored row of one clean sample, on which an agent fails; the command has ended with its line."""
    line = refuses("; expected: a ", evaluate, release, ids=[ONE], out=out, **options)
    (row,) = parquet.read_rows([score(out).folder.scores_path])
    assert f"the agent failed on its first row, {ONE}: {row['error'].removeprefix('agent: ')}; " in line
    return row


def program(folder: Path, body: str) -> list[str]:
    path = folder / "program.py"
    path.write_text(f"import json, os, subprocess, sys, time\n{body}\n")
    return [sys.executable, str(path)]


def raises(task: Task) -> Any:
    raise KeyError("no\nsuch thing")


def leaves(task: Task) -> Any:
    sys.exit(3)


async def leaves_async(task: Task) -> Any:
    raise SystemExit("bye")


async def raises_async(task: Task) -> Any:
    raise RuntimeError("async")


FAILS: list[tuple[Callable[[Task], Any], str]] = [
    (raises, "agent: it raised KeyError: 'no\\nsuch thing'"),
    (raises_async, "agent: it raised RuntimeError: async"),
    (leaves, "agent: it ended with SystemExit 3"),
    (leaves_async, "agent: it ended with SystemExit bye"),
    (lambda task: 7, "agent: it returned int, which is not a reply"),
    (
        lambda task: {"answer": 1},
        "agent: it returned a dict with 'answer': its keys are text, calls and usage",
    ),
    (lambda task: {"choices": [{"message": "hi"}]}, "agent: it returned a dict with 'choices'"),
    (lambda task: Reply(text=7), "agent: Expected `str`, got `int` - at `$.text`"),  # type: ignore[arg-type]
    (lambda task: Reply(text="x" * 1_000_001), "agent: Expected `str` of length <= 1000000 - at `$.text`"),
    (lambda task: Reply(calls="f(1)"), "agent: Expected `array`, got `str` - at `$.calls`"),
    (lambda task: Reply(calls=[7]), 'agent: a call is int: write {"name": …, "arguments": {…}}'),
    (lambda task: Reply(calls=[{"arguments": {}}]), "agent: a call has no name"),
    (lambda task: Reply(calls=[("f", {"a": object()})]), "agent: a call's arguments are not JSON: "),
    (lambda task: Reply(calls=[("f", float("nan"))]), "agent: a call's arguments are float, not a dict"),
    (lambda task: Reply(calls=[("f", {"a": float("nan")})]), "agent: a call's arguments are not JSON: "),
    (
        lambda task: Reply(calls=[("f", {})] * 1_001),
        "agent: Expected `array` of length <= 1000 - at `$.calls`",
    ),
    (lambda task: task.call("f", 7), "agent: it raised TypeError: a call's arguments are int, not a dict"),
    (lambda task: [task.call("f") for _ in range(1_001)], "agent: it raised RuntimeError: more than 1,000"),
]


@pytest.mark.parametrize(("agent", "line"), FAILS, ids=[line[:50] for _, line in FAILS])
def test_a_failing_agent_has_a_wrong_row_that_says_why(
    release: Path, tmp_path: Path, agent: Callable[[Task], Any], line: str
) -> None:
    row = asked(release, tmp_path / "run", callable=agent)
    assert (row["status"], row["correct"], row["reason"]) == ("agent_error", False, "agent_error")
    assert row["error"].startswith(line), row["error"]
    assert "\n" not in row["error"]


async def sleeps_async(task: Task) -> Any:
    await asyncio.sleep(60)


def sleeps(task: Task) -> Any:
    if task.state.setdefault("slept", False):
        return "awake"
    time.sleep(3)


@pytest.mark.parametrize("agent", [sleeps, sleeps_async])
def test_an_agent_that_hangs_is_given_up(release: Path, tmp_path: Path, agent: Callable[[Task], Any]) -> None:
    row = asked(release, tmp_path / "run", callable=agent, timeout_s=0.2)
    assert (row["status"], row["error"]) == ("agent_error", "agent: no answer within 0.2 s")


def test_a_tool_cannot_be_called_once_the_agent_was_given_up(release: Path, tmp_path: Path) -> None:
    asked: list[str] = []
    late: list[str] = []

    def agent(task: Task) -> Any:
        asked.append(task.session)
        if len(asked) != 2:
            return "at once"
        time.sleep(0.5)
        with pytest.raises(RuntimeError) as error:
            task.call("f")
        late.append(str(error.value))

    rows = [row.id for row in inputs.load_samples(str(release)).rows if row.type_code == "clean"]
    evaluate(release, callable=agent, ids=rows, out=tmp_path / "run", timeout_s=0.2)
    deadline = time.monotonic() + 10
    while not late and time.monotonic() < deadline:
        time.sleep(0.05)
    assert late == ["this request has been answered: its tools can no longer be called"]
    statuses = [row["status"] for row in parquet.read_rows([tmp_path / "run" / "scores.parquet"])]
    assert statuses == ["ok", "agent_error"] + ["ok"] * (len(rows) - 2)


def test_an_agent_that_fails_everywhere_is_not_asked_to_the_end(release: Path, tmp_path: Path) -> None:
    """One row is tried; once the agent is put right, the same folder takes it."""
    refuses("the agent failed on its first row", evaluate, release, callable=raises, out=tmp_path / "run")
    assert len(list(parquet.read_rows([tmp_path / "run" / "predictions.parquet"]))) == 1
    evaluate(release, callable=lambda task: "", out=tmp_path / "run", types="clean")


def test_an_agent_that_fails_on_a_later_row_is_asked_again(release: Path, tmp_path: Path) -> None:
    """Its rows are wrong and say why; the same command asks them again, and no others."""
    broken, count = True, 0

    async def agent(task: Task) -> Any:
        nonlocal count
        count += 1
        if broken and count % 3 == 0:
            raise ValueError(f"row {count}")
        return [{"name": "no_such_tool", "arguments": {}}]

    def rows() -> list[tuple[str, str, bool]]:
        found = parquet.read_rows([tmp_path / "run" / "scores.parquet"])
        return [(row["id"], row["status"], row["correct"]) for row in found]

    evaluate(release, callable=agent, out=tmp_path / "run", types="clean")
    before, failed = rows(), count // 3
    assert Counter(status for _, status, _ in before) == {"ok": count - failed, "agent_error": failed}
    assert not any(correct for _, status, correct in before if status == "agent_error")
    broken, count = False, 0
    evaluate(release, callable=agent, out=tmp_path / "run", types="clean")
    assert (count, {status for _, status, _ in rows()}) == (failed, {"ok"})


PROGRAMS = [
    ("sys.exit(4)", "agent: it ended with status 4"),
    ("print('oh no', file=sys.stderr); sys.exit(1)", "agent: it ended with status 1: oh no"),
    ("print('x' * 10**7, '\\nlast', file=sys.stderr); sys.exit(1)", "agent: it ended with status 1: last"),
    ("os.kill(os.getpid(), 9)", "agent: it ended with signal 9"),
    ("time.sleep(60)", "agent: no answer within 1.5 s"),
    ("sys.stdout.write('x' * 9_000_000)", "agent: it printed more than 8,000,000 bytes"),
    ("print(json.dumps({'calls': 'none'}))", "agent: Expected `array`, got `str` - at `$.calls`"),
]


@pytest.mark.parametrize(("body", "line"), PROGRAMS, ids=[line for _, line in PROGRAMS])
def test_a_failing_program_has_a_wrong_row_that_says_why(
    release: Path, tmp_path: Path, body: str, line: str
) -> None:
    row = asked(release, tmp_path / "run", command=program(tmp_path, body), timeout_s=1.5, concurrency=1)
    assert (row["status"], row["error"]) == ("agent_error", line)


def test_what_a_program_started_ends_with_it(release: Path, tmp_path: Path) -> None:
    body = (
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid)); print('hello')"
    )
    asked(release, tmp_path / "run", command=program(tmp_path, body), timeout_s=5)
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"callable": "agent"}, "--callable agent: name it as module:function, or file.py:function"),
    ({"callable": "no_such_module:answer"}, "--callable no_such_module:answer: no_such_module cannot be imp"),
    ({"callable": "broken.py:answer"}, "--callable broken.py:answer: broken.py cannot be imported: ZeroDivi"),
    ({"callable": "exits.py:answer"}, "--callable exits.py:answer: exits.py cannot be imported: SystemExit"),
    ({"callable": "gone.py:answer"}, "--callable gone.py:answer: gone.py cannot be imported: FileNotFoundEr"),
    ({"callable": "fine.py:other"}, "--callable fine.py:other: fine.py has no other; name it as module:fun"),
    ({"callable": "fine.py:number"}, "--callable fine.py:number: it is int, not a function"),
    ({"callable": "fine.py:nothing"}, "--callable fine.py:nothing: it must take one task: def answer"),
    ({"callable": raises, "command": "cat"}, "--callable and --command: give one of them"),
    ({"callable": raises, "agent": "oracle"}, "--callable already names what to evaluate: leave --agent out"),
    (
        {"callable": raises, "base_url": "http://localhost:1/v1"},
        "--callable already names what to evaluate: leave --base-url out",
    ),
    ({"callable": raises, "mode": "text"}, "mode 'text': prompt or fc"),
    (
        {"callable": raises, "temperature": 0.5},
        "--callable: the agent itself decides about temperature: leave it out",
    ),
    ({"command": ""}, "--command: it is empty: name a program and its arguments"),
    ({"command": "'open"}, "--command 'open: No closing quotation"),
    (
        {"command": "no-such-program-at-all x"},
        "--command: there is no program 'no-such-program-at-all' here or on PATH",
    ),
]
"""Options, and the line that says what is wrong with them."""


@pytest.mark.parametrize(("options", "line"), REFUSED, ids=[line for _, line in REFUSED])
def test_wrong_options_are_refused_in_one_line(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(2)\n")
    (tmp_path / "fine.py").write_text("number = 7\ndef nothing(): ...\n")
    assert refuses(".", evaluate, release, out=tmp_path / "run", **options).startswith(line)
    assert not (tmp_path / "run").exists()


# --- What an agent gets, what its calls are answered with, and which of them are scored


def row(golds: int = 1, error: str | None = None, code: str = "clean") -> Sample:
    calls = tuple(Call(f"tool_{i}", {}) for i in range(golds))
    return msgspec.structs.replace(
        small.clean_rows()[0], type_code=code, golden_answers=(calls,), injected_error=error
    )


def made(invocation: Invocation, given: object = None) -> list[list[str]]:
    """The names called in each pass."""
    found = invocation.completions(reply_of(given), 0.0)
    return [[call["name"] for call in one.tool_calls or []] for one in found]


FAULTY = row(error="timed out", code="transient_timeout")
OK = '{"status":"ok"}'
PASSES: dict[str, tuple[Sample, str, object, list[list[str]]]] = {
    "what is called after the gold is full does not count": (row(golds=2), "abc", None, [["a", "b"]]),
    "a returned text is the only pass": (row(), "", "I would rather not.", [[]]),
    "returned calls are the only pass": (row(), "", {"calls": [("a", {}), ("b", {})]}, [["a", "b"]]),
    "an error ends the batch, what follows is the retry": (FAULTY, "aa", "Done.", [["a"], ["a"]]),
    "who gives up has a second reply without calls": (FAULTY, "a", "It does not work.", [["a"], []]),
    "a retry may be returned": (FAULTY, "a", Reply(calls=[("b", {})]), [["a"], ["b"]]),
}
"""A row, the tools that are called one after the other, what is returned, and the names in each pass."""


@pytest.mark.parametrize("case", PASSES)
def test_which_calls_are_which_reply(case: str) -> None:
    asked, called, returned, passes = PASSES[case]
    invocation = Invocation(asked, 1, {})
    answers = [invocation.call(name, {"number": at}) for at, name in enumerate(called)]
    errors = [asked.injected_error] if asked.injected_error else []
    assert answers == [*errors, *[OK] * len(called)][: len(called)]
    assert made(invocation, returned) == passes


def test_calls_awaited_together_are_one_batch() -> None:
    invocation = Invocation(row(golds=1), 1, {})

    async def run() -> None:
        await asyncio.gather(*(invocation.acall(name, {}) for name in ("a", "b")))
        await invocation.acall("c", {})

    asyncio.run(run())
    assert made(invocation) == [["a", "b"]]


def test_tools_answer_what_is_stated_in_turn_and_the_last_repeats() -> None:
    invocation = Invocation(row(golds=9), 1, {"a": ["one", {"two": 2}], "b": []})
    assert [invocation.call("a", {}) for _ in range(3)] == ["one", '{"two":2}', '{"two":2}']
    assert invocation.call("b", {}) == '{"status":"ok"}'


def test_a_task_says_nothing_of_what_is_perturbed(release: Path, tmp_path: Path) -> None:
    rows = [one for one in inputs.load_samples(str(release)).rows if one.source == "apibank"]
    seen: list[dict[str, Any]] = []

    def agent(task: Task) -> str:
        seen.append({name: value for name, value in vars(task).items() if name not in ("call", "acall")})
        return ""

    evaluate(release, callable=agent, ids=[rows[0].clean_id], out=tmp_path / "run")
    assert len(seen) == len(rows)
    for task in seen:
        assert set(task) == {"session", "turn", "messages", "tools", "seed", "state"}
        rest = json.dumps([task["session"], task["turn"], task["seed"], task["state"]])
        assert not any(one.type_code in rest for one in rows)
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
    words: dict[str, Any] = {"callable": f"{agent}:answer", "ids": [ONE], "out": tmp_path / "run"}
    agent.write_text("def answer(task):\n    return 'one'\n")
    evaluate(release, **words)
    agent.write_text("def answer(task):\n    return 'two'\n")
    refuses("code", evaluate, release, **words)
    evaluate(release, **words, fresh=True)
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
    ({"text": "c", "usage": {"prompt_tokens": True}}, ("c", [])),  # no count
]


@pytest.mark.parametrize(("given", "expected"), REPLIES)
def test_replies_are_taken_in_the_forms_that_frameworks_have(given: object, expected: Any) -> None:
    (found,) = Invocation(row(), 1, {}).completions(reply_of(given), 0.0)
    assert (found.text, [(c["name"], c["arguments"]) for c in found.tool_calls or []]) == expected
    assert found.prompt_tokens is None or found.prompt_tokens == 3
