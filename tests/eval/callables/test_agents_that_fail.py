"""What an agent raises, hangs on or gives back in a wrong shape: a failed row with one line."""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.api import Reply, Task, UserError, evaluate
from robustbench_tc.eval import inputs
from robustbench_tc.io import parquet

from ...refusals import refuses

ONE = "apibank__level1_1::clean"


def asked(release: Path, out: Path, agent: Callable[[Task], Any], **options: Any) -> dict[str, Any]:
    """The scored row of one clean sample."""
    evaluate(release, callable=agent, ids=[ONE], out=out, **options)
    (row,) = parquet.read_rows([out / "scores.parquet"])
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
    (lambda task: 7, "agent: it returned int: return a Reply, a text or a dict"),
    (
        lambda task: {"answer": 1},
        "agent: it returned a dict with 'answer': its keys are text, calls and usage",
    ),
    (lambda task: Reply(text=7), "agent: its text is int, not a text"),  # type: ignore[arg-type]
    (lambda task: Reply(text="x" * 1_000_001), "agent: its text has 1,000,001 characters; at most 1,000,000"),
    (lambda task: Reply(calls="f(1)"), "agent: its calls are str, not a list"),
    (lambda task: Reply(calls=[7]), 'agent: a call is int: write {"name": …, "arguments": {…}}'),
    (lambda task: Reply(calls=[{"arguments": {}}]), "agent: a call has no name"),
    (lambda task: Reply(calls=[("f", {"a": object()})]), "agent: a call's arguments are not JSON: "),
    (lambda task: Reply(calls=[("f", float("nan"))]), "agent: a call's arguments are float, not a dict"),
    (lambda task: Reply(calls=[("f", {"a": float("nan")})]), "agent: a call's arguments are not JSON: "),
    (lambda task: Reply(calls=[("f", {})] * 1_001), "agent: it makes 1,001 calls at once; at most 1,000"),
    (lambda task: task.call("f", 7), "agent: it raised TypeError: a call's arguments are int, not a dict"),
    (lambda task: [task.call("f") for _ in range(1_001)], "agent: it raised RuntimeError: more than 1,000"),
]


@pytest.mark.parametrize(("agent", "line"), FAILS, ids=[line[:50] for _, line in FAILS])
def test_a_failing_agent_has_a_wrong_row_that_says_why(
    release: Path, tmp_path: Path, agent: Callable[[Task], Any], line: str
) -> None:
    row = asked(release, tmp_path / "run", agent)
    assert (row["status"], row["correct"], row["reason"]) == ("rejected", False, "rejected")
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
    row = asked(release, tmp_path / "run", agent, timeout_s=0.2)
    assert (row["status"], row["error"]) == ("rejected", "agent: no answer within 0.2 s")


def test_a_tool_cannot_be_called_once_the_agent_was_given_up(release: Path, tmp_path: Path) -> None:
    late: list[str] = []

    def agent(task: Task) -> Any:
        if late:
            return "at once"
        late.append("")
        time.sleep(0.5)
        try:
            task.call("f")
        except RuntimeError as error:
            late.append(str(error))

    rows = [row.id for row in inputs.load(str(release)).rows if row.type_code == "clean"]
    evaluate(release, callable=agent, ids=rows, out=tmp_path / "run", timeout_s=0.2)
    deadline = time.monotonic() + 10
    while len(late) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert late[1] == "this request has been answered: its tools can no longer be called"
    found = list(parquet.read_rows([tmp_path / "run" / "scores.parquet"]))
    assert [row["status"] for row in found] == ["rejected"] + ["ok"] * (len(rows) - 1)


def test_an_agent_that_fails_everywhere_is_not_asked_to_the_end(release: Path, tmp_path: Path) -> None:
    refuses("the agent has failed on every row", evaluate, release, callable=raises, out=tmp_path / "run")


PROGRAMS = [
    ("sys.exit(4)", "agent: it ended with status 4"),
    ("print('oh no', file=sys.stderr); sys.exit(1)", "agent: it ended with status 1: oh no"),
    ("os.kill(os.getpid(), 9)", "agent: it ended with signal 9"),
    ("time.sleep(60)", "agent: no answer within 1.5 s"),
    ("sys.stdout.write('x' * 9_000_000)", "agent: it printed more than 8,000,000 bytes"),
    ("print(json.dumps({'calls': 'none'}))", "agent: its calls are str, not a list"),
]


@pytest.mark.parametrize(("body", "line"), PROGRAMS, ids=[line for _, line in PROGRAMS])
def test_a_failing_program_has_a_wrong_row_that_says_why(
    release: Path, tmp_path: Path, body: str, line: str
) -> None:
    evaluate(
        release,
        command=program(tmp_path, body),
        ids=[ONE],
        out=tmp_path / "run",
        timeout_s=1.5,
        concurrency=1,
    )
    (row,) = parquet.read_rows([tmp_path / "run" / "scores.parquet"])
    assert (row["status"], row["error"]) == ("rejected", line)


def test_what_a_program_started_ends_with_it(release: Path, tmp_path: Path) -> None:
    body = (
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid)); print('hello')"
    )
    evaluate(release, command=program(tmp_path, body), ids=[ONE], out=tmp_path / "run", timeout_s=5)
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


SPECS = [
    ("agent", "--callable agent: name it as module:function, or file.py:function"),
    ("no_such_module:answer", "--callable no_such_module:answer: no_such_module cannot be imported: Modu"),
    ("broken.py:answer", "--callable broken.py:answer: broken.py cannot be imported: ZeroDivisionError: div"),
    ("exits.py:answer", "--callable exits.py:answer: exits.py cannot be imported: SystemExit: 2"),
    ("gone.py:answer", "--callable gone.py:answer: gone.py cannot be imported: FileNotFoundError: there is "),
    ("fine.py:other", "--callable fine.py:other: fine.py has no other; name it as module:function"),
    ("fine.py:number", "--callable fine.py:number: it is int, not a function"),
    ("fine.py:nothing", "--callable fine.py:nothing: it is called with one task: def answer(task): …"),
]


@pytest.mark.parametrize(("spec", "line"), SPECS)
def test_a_wrong_callable_is_refused_in_one_line(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(2)\n")
    (tmp_path / "fine.py").write_text("number = 7\ndef nothing(): ...\n")
    with pytest.raises(UserError) as stopped:
        evaluate(release, callable=spec, out=tmp_path / "run")
    assert str(stopped.value).startswith(line)
    assert "\n" not in str(stopped.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"command": "cat"}, "--callable and --command: give one of them"),
        ({"agent": "oracle"}, "--callable is who is asked: leave --agent out"),
        ({"base_url": "http://localhost:1/v1"}, "--callable is who is asked: leave --base-url out"),
        ({"mode": "prompt"}, "--callable is who is asked: leave --mode out"),
        ({"temperature": 0.5}, "--callable: the agent itself decides about temperature: leave it out"),
    ],
)
def test_options_that_say_nothing_to_an_agent_are_refused(
    release: Path, tmp_path: Path, options: dict[str, Any], line: str
) -> None:
    refuses(line, evaluate, release, callable=lambda task: "", out=tmp_path / "run", **options)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("", "--command: it is empty: name a program and its arguments"),
        ("'open", "--command 'open: No closing quotation"),
        (
            "no-such-program-at-all x",
            "--command: there is no program 'no-such-program-at-all' here or on PATH",
        ),
    ],
)
def test_a_wrong_command_is_refused_in_one_line(
    release: Path, tmp_path: Path, command: str, line: str
) -> None:
    refuses(line, evaluate, release, command=command, out=tmp_path / "run")
