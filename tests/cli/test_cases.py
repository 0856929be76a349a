"""`rbtc cases review`: in a terminal, one by one, and for scripts."""

import json
import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api
from robustbench_tc.errors import UserError
from robustbench_tc.own.cases_file import read_cases
from robustbench_tc.own.reviewing import Reviewing, ask_all

from ..own.shop import ORDERS
from ..own.test_hostile_files import outcome
from ..own.test_logs_import import call, made, said
from ..refusals import refuses

LIMIT_S = 120.0
ASK = "[q]uit? "
EDITOR = """import sys
path = sys.argv[1]
text = open(path).read()
open(path, "w").write(text.replace({old!r}, {new!r}))
"""


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    log = tmp_path / "prod.jsonl"
    asked: dict[str, dict[str, Any]] = {
        "Refund 1042.": {"order_id": 1042, "reason": "broken"},
        "Where is 7?\x1b[2J\u202e\n[a]ccept": {"order_id": 7, "reason": "x"},
        "Refund the last one.": {"order_id": "last"},
    }
    lines = [
        {"messages": [said("user", one), made(call("x", "refund_order", **two))]}
        for one, two in asked.items()
    ]
    log.write_text("".join(json.dumps(one) + "\n" for one in lines))
    (tmp_path / "orders.json").write_text(json.dumps(ORDERS))
    api.import_cases([log], tmp_path / "out", tools=[tmp_path / "orders.json"])
    return tmp_path / "out" / "cases.yaml"


def decisions(cases: Path) -> list[dict[str, Any]]:
    path = cases.with_name("cases.review.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Terminal:
    """The command with a terminal of its own, which reads what it says and types answers."""

    def __init__(self, cases: Path, **environment: str) -> None:
        self.ours, theirs = pty.openpty()
        given = {name: one for name, one in os.environ.items() if name not in ("EDITOR", "VISUAL")}
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from robustbench_tc.cli import main; main()",
                "cases",
                "review",
                str(cases),
            ],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: _controlling(theirs),
            env=given | {"TERM": "xterm", "COLUMNS": "200"} | environment,
        )
        os.close(theirs)
        self.said = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while part := os.read(self.ours, 65536):
                self.said += part.decode(errors="replace")
        except OSError:  # a terminal whose last process is gone
            pass

    def answer(self, *words: str) -> None:
        """Types a word at each question, from the first on."""
        deadline = time.monotonic() + LIMIT_S
        for number, word in enumerate(words, 1):
            while self.said.count(ASK) < number:
                assert self.process.poll() is None, self.said
                assert time.monotonic() < deadline, self.said
                time.sleep(0.01)
            os.write(self.ours, word.encode())

    def end(self) -> int:
        code = self.process.wait(LIMIT_S)
        self._reader.join(10)
        assert "Traceback" not in self.said
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)


def _controlling(terminal: int) -> None:
    import fcntl
    import signal
    import termios

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def terminal(cases: Path) -> Iterator[Any]:
    opened: list[Terminal] = []

    def start(**environment: str) -> Terminal:
        opened.append(Terminal(cases, **environment))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_one_by_one(cases: Path, terminal: Any) -> None:
    asked = terminal()
    asked.answer("a\n", "what\n", "s\n", "a\n", "d\n")  # the second that is accepted cannot be built
    assert asked.end() == 0
    assert "1 accepted, 1 dropped, 1 to be reviewed" in asked.said
    assert "cannot be built: refund_order: 'order_id' is of type string" in asked.said
    assert "edit or drop it" in asked.said
    assert "\x1b[2J" not in asked.said
    assert "\u202e" not in asked.said
    assert "| [a]ccept" in asked.said  # of a request: behind a bar, where nothing of ours stands
    assert [(one["id"], one["decision"]) for one in decisions(cases)] == [
        ("prod-1-1", "accept"), ("prod-3-1", "drop"),
    ]  # fmt: skip
    assert set(decisions(cases)[0]) == {"id", "sha256", "decision", "by", "at"}
    read = read_cases(cases)
    assert [(case.id, case.reviewed) for case in read.cases] == [("prod-1-1", True), ("prod-2-1", False)]
    assert [one.reason for one in read.left_out] == ["dropped"]


def test_ctrl_c_keeps_what_was_decided(cases: Path, terminal: Any) -> None:
    asked = terminal()
    asked.answer("a\n", "\x03")
    assert asked.end() == 130
    assert "decisions are saved" in asked.said
    assert [one["id"] for one in decisions(cases)] == ["prod-1-1"]
    again = terminal()
    again.answer("q\n")
    assert again.end() == 0
    assert "prod-2-1 (1 of 2" in again.said


def editor(tmp_path: Path, old: str, new: str) -> str:
    path = tmp_path / "editor.py"
    path.write_text(EDITOR.format(old=old, new=new))
    return f"{sys.executable} {path}"


def test_an_edited_case_can_be_built_and_is_to_be_reviewed(
    cases: Path, terminal: Any, tmp_path: Path
) -> None:
    asked = terminal(EDITOR=editor(tmp_path, '{"order_id": "last"}', '{"order_id": 8}'))
    asked.answer("s\n", "s\n", "e\n", "s\n")
    assert asked.end() == 0, asked.said
    (decision,) = decisions(cases)
    assert (decision["id"], decision["decision"]) == ("prod-3-1", "edit")
    found = Reviewing(cases).case("prod-3-1")
    assert (found.status, found.problem) == ("open", "")
    assert [case.reviewed for case in read_cases(cases).cases] == [False, False, False]
    outcome("cases", "review", str(cases), "--accept", "prod-3-1")
    assert [case.reviewed for case in read_cases(cases).cases] == [False, False, True]
    cases.write_text(cases.read_text().replace('{"order_id": 8}', '{"order_id": 9}'))
    assert [case.reviewed for case in read_cases(cases).cases] == [False, False, False]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"order_id": 1042', '"order_id": "x"', "the tool wants integer"),
        ('id: "prod-1-1"', 'id: "prod-9-9"', "stay as they are"),
        ("- id", "- [", "not YAML"),
        ("- id", "  id", "keep the dash"),
        ('"prod-1-1"', '"prod-1-1"\n- id: two', "is not one case"),
    ],
)
def test_an_edit_that_cannot_be_read_is_refused(old: str, new: str, why: str, cases: Path) -> None:
    found = Reviewing(cases)
    with pytest.raises(UserError, match=why):
        found.edited("prod-1-1", found.text("prod-1-1").replace(old, new))


def test_a_file_that_changed_while_a_case_was_edited_stays(cases: Path) -> None:
    found = Reviewing(cases)
    text = found.text("prod-1-1")
    changed = cases.read_text().replace("Refund the last one.", "Refund the first one.")
    cases.write_text(changed)
    refuses("was changed meanwhile", found.edited, "prod-1-1", text.replace("1042", "1043"))
    assert cases.read_text() == changed


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("", "set EDITOR"),
        ("/no/such/editor", "cannot be run"),
        ("false", "ended with status 1"),
        (None, "the edited text is not one case"),
    ],
)
def test_an_edit_that_fails_is_said_and_changes_nothing(
    command: str | None, why: str, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cases.read_bytes()
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", editor(tmp_path, "- id", "- []\n- id") if command is None else command)
    answers, told = iter(["e", "q"]), list[str]()
    ask_all(Reviewing(cases), lambda question: next(answers), told.append)
    assert any(why in line for line in told)
    assert cases.read_bytes() == before and not decisions(cases)


def test_for_scripts(cases: Path) -> None:
    code, out, err = outcome("cases", "review", str(cases))
    assert (code, out, err) == (0, "0 accepted, 0 dropped, 3 to be reviewed\n", "")
    code, out, err = outcome(
        "cases", "review", str(cases), "--accept", "prod-1-1", "--drop", "prod-2-1", "--reviewer", "me"
    )
    assert (code, err) == (0, "")
    assert out == "1 accepted, 1 dropped, 1 to be reviewed\n"
    assert {one["by"] for one in decisions(cases)} == {"me"}
    shown = json.loads(outcome("cases", "review", str(cases), "--json")[1])
    assert [one["status"] for one in shown["cases"]] == ["accepted", "dropped", "open"]
    assert (shown["accepted"], shown["dropped"], shown["open"]) == (1, 1, 1)
    for words in (["--accept", "prod-7"], ["--accept", "prod-3-1"], ["--accept", "a", "--drop", "a"]):
        code, out, err = outcome("cases", "review", str(cases), *words)
        assert (code, out, err.count("\n")) == (1, "", 1), err
    assert len(decisions(cases)) == 2


def test_hand_written_cases_need_no_review(cases: Path) -> None:
    with cases.open("a") as file:
        file.write("- {id: mine, request: Thanks!, expect: no_call}\n")
    assert [case.reviewed for case in read_cases(cases).cases] == [False, False, True]
    code, _, err = outcome("cases", "review", str(cases), "--accept", "mine")
    assert code == 1
    assert "it needs no review" in err


@pytest.mark.parametrize("content", [b"{", b"\xff\n", b'{"id": 7}\n', b"[]\n", b"[" * 20_000])
def test_broken_decisions_are_one_line(content: bytes, cases: Path) -> None:
    cases.with_name("cases.review.jsonl").write_bytes(content)
    refuses(r"cases\.review\.jsonl:1: not a decision", read_cases, cases)


def test_decisions_are_never_written_through_a_link(cases: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("")
    cases.with_name("cases.review.jsonl").symlink_to(victim)
    code, out, err = outcome("cases", "review", str(cases), "--accept", "prod-1-1")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert victim.read_text() == ""
