"""`rbtc init`, and bar 1: from it to a red gate in a minute."""

from collections.abc import Callable
from pathlib import Path

import pytest

from robustbench_tc.own.desk import desk

from ..conftest import Done

Rbtc = Callable[..., Done]


def test_it_writes_the_desk_and_says_what_comes_next(
    rbtc: Rbtc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = rbtc("init", "my agent")
    assert (done.code, done.err) == (0, "")
    found = {
        path.relative_to("my agent").as_posix(): path.read_bytes()
        for path in Path("my agent").rglob("*")
        if path.is_file()
    }
    assert found == desk()
    lines = [line.strip() for line in done.out.splitlines()]
    assert lines[1:3] == ["next:", "cd 'my agent'"]
    readme = found["README.md"].decode()
    for line in lines[3:]:
        assert line in readme, "the README of the example goes on in another way"
    monkeypatch.chdir("my agent")
    refused = rbtc("init", ".")
    assert refused.code == 1 and refused.err == f"rbtc: {tmp_path / 'my agent'} is not empty: name a new " + (
        "folder, or an empty one\n"
    )


@pytest.mark.parametrize("place", ["file/demo", "/proc/demo"])
def test_a_place_that_cannot_be_written_is_one_line(rbtc: Rbtc, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("mine")
    done = rbtc("init", tmp_path / place)
    assert done.code == 1 and done.out == ""
    assert done.err.startswith("rbtc: ") and done.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
