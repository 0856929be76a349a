"""`rbtc live check` on files that hang, end their process, print or take all memory: one line each."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from robustbench_tc.errors import UserError
from robustbench_tc.worlds.check_apart import check_apart

from ..conftest import Done
from .test_check import LAMP

BODY = '        if self.data["broken"]:'


def lamp(folder: Path, line: str) -> Path:
    """The lamp's file with a line in front of what its `switch` does."""
    file = folder / "lamp.py"
    file.write_text(LAMP.replace(BODY, f"        {line}\n{BODY}"))
    return file


def found(file: Path, seconds: float = 20) -> list[str]:
    return [one.removeprefix(f"{file}: ") for one in asyncio.run(check_apart(file, seconds=seconds))]


CALL = "task 'lamp_1': turn 1, call 2 (switch)"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("while True: pass", f"{CALL}: takes more than 1 s: nothing after it was tried"),
        ("import os; os._exit(0)", f"{CALL}: ends its process: nothing after it was tried"),
        ("'x' * 10**10", f"{CALL} fails: MemoryError"),
        ("open('made', 'w')", f"{CALL} fails: PermissionError"),
        ("import os; os.fork()", f"{CALL} fails: PermissionError"),
        ("import socket; socket.socket()", f"{CALL} fails: PermissionError"),
        ("return float('nan')", f"{CALL} fails: ValueError"),
        ("return {1, 2}", f"{CALL} fails: TypeError"),
        ("return object()", f"{CALL} fails: TypeError"),
        ("raise KeyboardInterrupt", f"{CALL}: ends its process"),
        ("raise SystemExit", f"{CALL} fails: SystemExit"),
        ("self.data['x'] = float('inf')", f"{CALL} fails: ValueError"),
    ],
)
def test_what_a_tool_does_to_its_process_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    begun = time.monotonic()
    (only,) = found(lamp(tmp_path, line), seconds=1 if "while" in line else 20)
    assert only.startswith(said) and "\n" not in only and len(only) < 1_000, only
    assert time.monotonic() - begun < 60  # the loop would run for ever
    assert [path.name for path in tmp_path.iterdir()] == ["lamp.py"]


def test_mistakes_are_those_of_check(tmp_path: Path) -> None:
    assert found(lamp(tmp_path, "pass")) == []
    file = tmp_path / "lamp.py"
    file.write_text(LAMP.replace('        """Shows the lamp."""\n', "").replace('"lamp"', '"a lamp"'))
    first, second = found(file)
    assert first.startswith("Lamp needs a name") and second.startswith("tool 'look': it has no docstring")


def test_a_class_that_cannot_be_looked_at_is_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "odd.py"
    file.write_text(
        "from robustbench_tc.worlds.base import World\n"
        "class Meta(type):\n"
        "    def __dir__(cls):\n"
        "        raise ValueError('first\\nsecond')\n"
        "class WORLD(World, metaclass=Meta):\n"
        "    name = 'odd'\n"
    )
    assert found(file) == ["ValueError: first second"]


@pytest.mark.parametrize("line", ["import os; os._exit(0)", "raise SystemExit('bye')", "import nowhere"])
def test_a_file_that_cannot_be_imported_is_one_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "gone.py"
    file.write_text(line + "\n")
    with pytest.raises(UserError, match=r"gone\.py\) does not start in this Python: ") as raised:
        found(file)
    assert "\n" not in str(raised.value)


def test_nothing_that_a_file_prints_reaches_the_terminal(tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    loud = "import os, sys; print('LOUD'); sys.__stdout__.write('LOUD'); os.write(2, b'LOUD')"
    file = lamp(tmp_path, "print('LOUD')")
    file.write_text(f"{loud}\n{file.read_text()}")
    done = rbtc("live", "check", file)
    assert done.code == 0 and done.out.replace("\n", "").endswith("no mistake was found"), done
    assert "LOUD" not in done.out + done.err
    done = rbtc("live", "check", tmp_path / "none.py")
    assert done.code == 1 and done.err.count("\n") == 1, done.err
