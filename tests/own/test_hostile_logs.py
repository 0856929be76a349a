"""Hostile logs: a line for what is refused, the rest read, and no secret in any output."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from robustbench_tc.own.read import read_cases

from .hostile_logs import EMAIL, GOOD, SECRET, bad_lines, odd_lines
from .test_hostile_files import MEASURED, MEGABYTES, SECONDS, outcome

BAD, ODD = dict(bad_lines()), dict(odd_lines())


def test_there_are_enough() -> None:
    assert len(BAD) + len(ODD) >= 80


def everything(folder: Path) -> bytes:
    """Every byte of a folder, names included."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return b"".join(str(path).encode() + path.read_bytes() for path in files)


@pytest.mark.parametrize("said", BAD)
def test_a_bad_line_alone_is_one_line(said: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(BAD[said] + b"\n")
    begun = time.process_time()
    code, out, err = outcome("cases", "import", str(log), "--out", str(tmp_path / "out"))
    assert time.process_time() - begun < SECONDS
    assert (code, out, err.count("\n")) == (1, "", 1), (out, err)
    assert str(log) in err
    assert SECRET not in err
    assert EMAIL not in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("said", BAD)
def test_a_bad_line_harms_no_other(said: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    good = json.dumps(GOOD).encode()
    log.write_bytes(b"\n".join([good, BAD[said], good.replace(b"Where", b"When")]))
    code, out, err = outcome("cases", "import", str(log), "--out", str(tmp_path / "out"))
    assert code == 0, err
    assert err.splitlines()[0].startswith("log.jsonl:2: refused: ")
    assert err.count("\n") == 1
    assert "2 cases of 2 conversations" in out
    assert len(read_cases(tmp_path / "out" / "cases.yaml").cases) == 2
    for secret in (SECRET, EMAIL):
        assert secret not in out + err
        assert secret.encode() not in everything(tmp_path / "out")


@pytest.mark.parametrize("said", ODD)
def test_an_odd_line_makes_a_case_that_is_read_or_none(said: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(json.dumps(GOOD).encode() + b"\n" + ODD[said])
    code, out, err = outcome("cases", "import", str(log), "--out", str(tmp_path / "out"))
    assert (code, err) == (0, ""), err
    found = read_cases(tmp_path / "out" / "cases.yaml")
    assert found.cases
    assert not any(case.reviewed for case in found.cases)
    shown = outcome("cases", "review", str(tmp_path / "out" / "cases.yaml"), "--json")
    assert shown[0] == 0
    for secret in (SECRET, EMAIL):
        assert secret not in out + err + shown[1] + shown[2]
        assert secret.encode() not in everything(tmp_path / "out")


def test_a_hundred_thousand_lines(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    text = json.dumps(GOOD)
    with log.open("w") as file:
        for number in range(100_000):
            file.write(text.replace("Where", f"{number} where") if number % 20 == 0 else text)
            file.write("\n")
    child = subprocess.run(
        [sys.executable, "-c", MEASURED, "cases", "import", str(log), "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr
    assert "5,001 cases of 100,000 conversations" in child.stdout
    assert "the same as a case before: 94,999" in child.stdout
    seconds, kilobytes = child.stderr.splitlines()[-1].split()
    assert float(seconds) < 6 * SECONDS
    assert int(kilobytes) < MEGABYTES * 1024


@pytest.mark.parametrize("kind", ["folder", "missing", "empty", "blank"])
def test_what_is_no_log_is_one_line(kind: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    if kind == "folder":
        log.mkdir()
    elif kind in ("empty", "blank"):
        log.write_bytes(b"" if kind == "empty" else b" \n\n")
    code, out, err = outcome("cases", "import", str(log), "--out", str(tmp_path / "out"))
    assert (code, out, err.count("\n")) == (1, "", 1)
