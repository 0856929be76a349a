"""Hostile tool files, cases files and logs: one line each, within bounds, and no secret in any output."""

import io
import json
import os
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from robustbench_tc.cli import main
from robustbench_tc.own.cases_file import read_cases

from ..conftest import NIGHTLY
from ..refusals import refuses
from .hostile import CASES, EMAIL, GOOD, SECRET, TOOL, bad_lines, cases_files, odd_lines, tool_files

TOOL_FILES, CASES_FILES, BAD, ODD = tool_files(), cases_files(), bad_lines(), odd_lines()

SECONDS = 10  # of CPU: a busy machine is no defect
MEGABYTES = 1_000

#: `rbtc`, and at its end its seconds of CPU and its peak memory in kB as a line of standard error.
MEASURED = """
import re, sys, time
from robustbench_tc.cli import main
try:
    main()
finally:
    peak = re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]
    print(time.process_time(), peak, file=sys.stderr)
"""


def outcome(*words: str) -> tuple[int, str, str]:
    """Exit code and outputs of a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["rbtc", *words])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


def measured(*words: str, seconds: float) -> str:
    """What a command prints, within bounds of time and memory: in a process of its own, asked for its own
    peak, as getrusage counts what its parent held before exec."""
    child = subprocess.run([sys.executable, "-c", MEASURED, *words], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    used, kilobytes = child.stderr.splitlines()[-1].split()
    assert float(used) < seconds and int(kilobytes) < MEGABYTES * 1024
    return child.stdout


def test_there_are_two_hundred_files_and_eighty_lines() -> None:
    assert len(TOOL_FILES) + len(CASES_FILES) >= 200 and len(BAD) + len(ODD) >= 80


@pytest.mark.parametrize("said", TOOL_FILES)
def test_a_hostile_tool_file_is_one_line(said: str, tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_bytes(TOOL_FILES[said])
    begun = time.process_time()
    code, out, err = outcome("lint", str(path))
    assert time.process_time() - begun < SECONDS
    assert SECRET not in out + err
    if err:
        assert (code, out, err.count("\n")) == (1, "", 1), (out, err)
        assert str(path) in err
    else:
        assert code in (0, 1)
        assert "tools, about" in out.splitlines()[-1]


@pytest.mark.parametrize("said", CASES_FILES)
def test_a_hostile_cases_file_is_one_line_with_its_place(said: str, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([TOOL]))
    path = tmp_path / "cases.yaml"
    path.write_bytes(CASES_FILES[said])
    begun = time.process_time()
    raised = refuses(".", read_cases, path)
    assert time.process_time() - begun < SECONDS
    assert str(path) in raised
    assert SECRET not in raised


def test_the_file_that_they_are_made_of_is_right(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([TOOL]))
    (tmp_path / "cases.yaml").write_text(CASES)
    assert len(read_cases(tmp_path / "cases.yaml").cases) == 1
    assert outcome("lint", str(tmp_path / "cases.yaml"))[0] == 0


def test_five_thousand_tools_are_read_within_bounds(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([TOOL | {"name": f"get_order_{n}"} for n in range(5_000)]))
    measured("lint", str(path), seconds=SECONDS)


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "missing"])
def test_what_is_no_file_is_one_line(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    code, out, err = outcome("lint", str(path))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert ("no such file" in err) == (kind in ("loop", "missing"))
    assert ("no regular file" in err) == (kind == "pipe")


# --- Hostile logs: a line for what is refused, the rest read, and no secret in any output


def everything(folder: Path) -> bytes:
    """Every byte of a folder, names included."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return b"".join(str(path).encode() + path.read_bytes() for path in files)


def imported(folder: Path, data: bytes) -> tuple[int, str, str]:
    """What an import of a log says; no secret stands in it, or in any byte that it writes."""
    (folder / "log.jsonl").write_bytes(data)
    found = outcome("cases", "import", str(folder / "log.jsonl"), "--out", str(folder / "out"))
    for secret in (SECRET, EMAIL):
        assert secret not in found[1] + found[2]
        assert secret.encode() not in everything(folder / "out")
    return found


@pytest.mark.parametrize("said", BAD)
def test_a_bad_line_alone_is_one_line(said: str, tmp_path: Path) -> None:
    begun = time.process_time()
    code, out, err = imported(tmp_path, BAD[said] + b"\n")
    assert time.process_time() - begun < SECONDS
    assert (code, out, err.count("\n")) == (1, "", 1), (out, err)
    assert str(tmp_path / "log.jsonl") in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("said", BAD)
def test_a_bad_line_harms_no_other(said: str, tmp_path: Path) -> None:
    good = json.dumps(GOOD).encode()
    code, out, err = imported(tmp_path, b"\n".join([good, BAD[said], good.replace(b"Where", b"When")]))
    assert code == 0, err
    assert err.splitlines()[0].startswith("log.jsonl:2: refused: ")
    assert err.count("\n") == 1
    assert "2 cases of 2 conversations" in out
    assert len(read_cases(tmp_path / "out" / "cases.yaml").cases) == 2


@pytest.mark.parametrize("said", ODD)
def test_an_odd_line_makes_a_case_that_is_read_or_none(said: str, tmp_path: Path) -> None:
    code, _, err = imported(tmp_path, json.dumps(GOOD).encode() + b"\n" + ODD[said])
    assert (code, err) == (0, ""), err
    found = read_cases(tmp_path / "out" / "cases.yaml")
    assert found.cases
    assert not any(case.reviewed for case in found.cases)
    shown = outcome("cases", "review", str(tmp_path / "out" / "cases.yaml"), "--json")
    assert shown[0] == 0
    assert not any(secret in shown[1] + shown[2] for secret in (SECRET, EMAIL))


def test_a_long_log_is_read_within_bounds(tmp_path: Path) -> None:
    """By night a hundred thousand lines, by day a tenth of them in a sixth of the time."""
    lines, seconds = (100_000, 6 * SECONDS) if NIGHTLY else (10_000, SECONDS)
    log = tmp_path / "log.jsonl"
    text = json.dumps(GOOD)
    with log.open("w") as file:
        for number in range(lines):
            file.write(text.replace("Where", f"{number} where") if number % 20 == 0 else text)
            file.write("\n")
    out = measured("cases", "import", str(log), "--out", str(tmp_path / "out"), seconds=seconds)
    different = lines // 20 + 1
    assert f"{different:,} cases of {lines:,} conversations" in out
    assert f"the same as a case before: {lines - different:,}" in out


@pytest.mark.parametrize("kind", ["folder", "missing", "empty", "blank"])
def test_what_is_no_log_is_one_line(kind: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    if kind == "folder":
        log.mkdir()
    elif kind in ("empty", "blank"):
        log.write_bytes(b"" if kind == "empty" else b" \n\n")
    code, out, err = outcome("cases", "import", str(log), "--out", str(tmp_path / "out"))
    assert (code, out, err.count("\n")) == (1, "", 1)
