"""A person plays: what is typed, what is shown, how it ends."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from . import purses

WORLD = str(purses.FILE)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return purses.write(tmp_path / "data", purses.rows())


def typed(monkeypatch: pytest.MonkeyPatch, rbtc: Any, *words: object, lines: list[str]) -> Any:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    return rbtc("show", *words, "--play", "--worlds", WORLD)


def test_a_person_can_be_right(dataset: Path, rbtc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ['add_coins {"amount": 2}', "count_coins", "Done, they are in."]
    done = typed(monkeypatch, rbtc, dataset, "purse_1", lines=lines)
    assert done.code == 0, done.err
    assert '{"coins": 5}' in done.err and "the world is as it should be" in done.out


def test_a_person_sees_what_an_agent_sees(dataset: Path, rbtc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ['add_coins {"amount": 2}', "Done, they are in."]
    done = typed(monkeypatch, rbtc, dataset, "purse_1::live_silent_no_op", lines=lines)
    assert "fault" not in done.err and "silent" not in done.err  # the fault is named at the end only
    assert "fault: silent_no_op" in done.out and "the world is wrong" in done.out


def test_slips_are_explained_and_nothing_is_called(
    dataset: Path, rbtc: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["", "help", "tools", "add_coins 2", "add_coins {oops", 'dance {"a": 1}', "quit"]
    done = typed(monkeypatch, rbtc, dataset, "purse_1", lines=lines)
    assert done.code == 0 and "there is no verdict" in done.out
    assert "write the arguments as a JSON object" in done.err and "nothing was called" in done.err
    assert "there is no tool 'dance'" in done.err


def test_the_end_of_the_input_ends_it(dataset: Path, rbtc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    done = typed(monkeypatch, rbtc, dataset, "purse_1", lines=[])
    assert done.code == 0 and "there is no verdict" in done.out


def test_ctrl_c_ends_it_in_a_line(dataset: Path, rbtc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(io.StringIO):
        def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
            raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdin", Interrupted())
    done = rbtc("show", dataset, "purse_1", "--play", "--worlds", WORLD)
    assert done.code == 130 and "nothing was kept" in done.err and "Traceback" not in done.err


def test_show_and_summary_speak_json(dataset: Path, rbtc: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ("eval", dataset, "--agent", "liar", "--worlds", WORLD, "--out", run)
    assert rbtc(*words, "--no-score").code == 0
    assert "rbtc score" in rbtc("summary", run).err
    assert "2 tasks, 16 episodes, all answered" in rbtc(*words).out  # goes on, and scores
    summary = json.loads(rbtc("summary", run, "--json").out)
    assert summary["summary"]["lines"]["clean"]["n"] == 2 and summary["missing"] == 0
    (every,) = (line for line in summary["faults"] if line["name"] == "all")
    assert every["n"] == 14 and every["success"]["value"] < 1
    found = json.loads(rbtc("show", run, "purse_2::live_transient_timeout", "--worlds", WORLD, "--json").out)
    assert found["fault"]["kind"] == "transient_timeout" and found["turns"]
    text = rbtc("show", run, "purse_2::live_transient_timeout", "--worlds", WORLD).out
    assert "met the fault: not carried out" in text
