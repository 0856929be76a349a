"""A folder of another kind where a run or a build is wanted: the line says what it is not, and leads on."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from robustbench_tc.cli import _with_home

from ..conftest import Done
from ..eval import small

NO_RUN = "is not a run folder: it has no run.json (`rbtc eval` makes one)"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    small.write(tmp_path / "bench", small.rows("CD"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    return tmp_path


@pytest.mark.parametrize("folder", ["bench", "empty"])
@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("summary {}", NO_RUN),
        ("gate {}", NO_RUN),
        ("failures {}", NO_RUN),
        ("compare {} {}", NO_RUN),
        ("report {} --out report", NO_RUN),
        ("sql table2 --run {}", "has no scores.parquet: name the folder of a run"),
    ],
)
def test_what_is_no_run_is_not_sent_to_score(
    command: str, line: str, folder: str, here: Path, rbtc: Callable[..., Done]
) -> None:
    done = rbtc(*command.replace("{}", folder).split())
    assert done.code == 1 and line in done.err and "rbtc score" not in done.err, done.err


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("audit notes.txt", "notes.txt is not a folder: name the one that `rbtc build` wrote"),
        ("audit golds nowhere", "nowhere is no build of the benchmark: name the folder"),
        ("diff bench runs", "runs holds no <config>/<split>-*.parquet"),
        ("leaderboard submit runs/a --to nowhere", "nowhere"),
        ("score runs/a --dataset nowhere", "no dataset at nowhere: give a release folder or a Hub id"),
    ],
)
def test_what_is_no_build(command: str, line: str, here: Path, rbtc: Callable[..., Done]) -> None:
    assert rbtc("eval", "bench", "--agent", "oracle", "--out", "runs/a").code == 0
    done = rbtc(*command.split())
    assert done.code == 1 and line in done.err and "was made of it" not in done.err, done.err


def test_a_release_of_something_else_makes_no_report(here: Path, rbtc: Callable[..., Done]) -> None:
    assert rbtc("eval", "bench", "--agent", "oracle", "--out", "a").code == 0
    renamed = [msgspec.structs.replace(row, clean_id=f"x{row.clean_id}") for row in small.rows("CD")]
    small.write(here / "other", [msgspec.structs.replace(row, id=f"x{row.id}") for row in renamed])
    done = rbtc("report", "a", "--release", "other", "--out", "report")
    assert done.code == 1 and "other has no sample of a: name the release" in done.err
    assert not Path("report").exists()


def test_a_home_that_no_shell_put_in(
    here: Path, rbtc: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No shell replaces the ~ of --out=~/a, and whoever removes a folder called ~ may remove another."""
    monkeypatch.setenv("HOME", str(here / "home"))
    assert rbtc("eval", "bench", "--agent", "oracle", "--out=~/a").code == 0
    assert rbtc("report", "home/a", "--out=~/report").code == 0
    assert Path("home/a/run.json").is_file() and Path("home/report").is_dir() and not Path("~").exists()


def test_a_home_in_quotes_is_said_before_anybody_is_asked(here: Path, rbtc: Callable[..., Done]) -> None:
    done = rbtc("eval", "bench", "--agent", "oracle", "--out", "~/a")
    assert done.code == 1 and "the shell has not replaced the ~" in done.err, done.err
    assert not Path("~").exists()


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("--out=~", "--out=/home/me"),
        ("--out=~/a --fresh", "--out=/home/me/a --fresh"),
        ("--out=~a --model=a=~/b ~/c -o=~/d", "--out=~a --model=a=~/b ~/c -o=~/d"),
        ("--plan=~/p -- python --in=~/b", "--plan=/home/me/p -- python --in=~/b"),
    ],
)
def test_only_a_value_that_begins_with_the_home(
    words: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert _with_home(words.split()) == meant.split()


def test_half_a_file_of_verdicts_says_how_it_is_made_again(here: Path, rbtc: Callable[..., Done]) -> None:
    assert rbtc("eval", "bench", "--agent", "oracle", "--out", "a").code == 0
    scores = Path("a/scores.parquet")
    scores.write_bytes(scores.read_bytes()[:500])
    assert "; rbtc score a makes it again" in rbtc("gate", "a").err
    assert rbtc("score", "a").code == 0 and rbtc("gate", "a").code == 0


def test_a_run_without_verdicts_is_sent_to_score(here: Path, rbtc: Callable[..., Done]) -> None:
    assert rbtc("eval", "bench", "--agent", "oracle", "--out", "a", "--no-score").code == 0
    for command in ("gate a", "failures a", "report a --out report", "sql table2 --run a"):
        assert "rbtc score" in rbtc(*command.split()).err


def test_a_file_without_the_right_to_read_it_is_not_damaged(
    here: Path, rbtc: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rbtc("eval", "bench", "--agent", "oracle", "--out", "a").code == 0

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pq, "ParquetFile", refuse)  # root may read everything
    done = rbtc("gate", "a")
    assert done.code == 1 and "a/scores.parquet may not be read: change its rights" in done.err, done.err
    monkeypatch.undo()
    monkeypatch.chdir(here)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    done = rbtc("score", "a")
    assert done.code == 1 and "a/run.json may not be read: change its rights" in done.err, done.err
