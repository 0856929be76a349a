"""What the command line says of wrong words, paths and folders: one line that leads on."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from robustbench_tc import __version__
from robustbench_tc.api import evaluate
from robustbench_tc.cli._launch import at_home
from robustbench_tc.errors import UserError

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
        ("audit notes.txt", "notes.txt: name the run's build or release with --dataset"),
        ("audit nowhere --golds 9", "nowhere is no build of the benchmark: name the folder"),
        ("data diff bench runs", "runs holds no <config>/<split>-*.parquet"),
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
    assert (
        "other has no sample of a: name the release"
        in rbtc("report", "a", "--dataset", "other", "--out", "report").refusal
    )
    assert not Path("report").exists()


def test_a_home_that_no_shell_put_in(
    here: Path, rbtc: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No shell replaces the ~ of --out=~/a, and whoever removes a folder called ~ may remove another."""
    monkeypatch.setenv("HOME", str(here / "home"))
    assert rbtc("eval", "bench", "--agent", "oracle", "--out=~/a").code == 0
    assert rbtc("report", "~/a", "--out=~/report").code == 0
    assert Path("home/a/run.json").is_file() and Path("home/report").is_dir() and not Path("~").exists()


def test_a_home_that_python_leaves_is_said_before_anybody_is_asked(here: Path) -> None:
    with pytest.raises(UserError, match="the shell did not expand the ~"):
        evaluate("bench", agent="oracle", out="~/a")
    assert not Path("~").exists()


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("--out=~", "--out=/home/me"),
        ("--out=~/a --fresh", "--out=/home/me/a --fresh"),
        ("--out=~a --model=a=~/b ~/c -o=~/d", "--out=~a --model=a=~/b /home/me/c -o=~/d"),
    ],
)
def test_only_a_value_that_begins_with_the_home(
    words: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert [*map(at_home, words.split())] == meant.split()


def test_half_a_file_of_verdicts_says_how_it_is_made_again(here: Path, rbtc: Callable[..., Done]) -> None:
    assert rbtc("eval", "bench", "--agent", "oracle", "--out", "a").code == 0
    scores = Path("a/scores.parquet")
    scores.write_bytes(scores.read_bytes()[:500])
    assert "; rbtc score a makes it again" in rbtc("gate", "a").err
    assert rbtc("score", "a").code == 0 and rbtc("gate", "a", "--allow-inconclusive").code == 0


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
    assert "a/scores.parquet may not be read: change its rights" in rbtc("gate", "a").refusal
    monkeypatch.undo()
    monkeypatch.chdir(here)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert "a/run.json may not be read: change its rights" in rbtc("score", "a").refusal


# --- What the command line says of paths: a line each, whatever a path is called


ONE = """version: 1
tools: [shop.json]
cases:
- {id: a, request: "What is the status of order 7?", expect: [{call: get, arguments: {order: 7}}]}
- {id: b, request: "Thanks!", expect: no_call}
"""
TOOLS = """[{"name": "get", "description": "The status of an order.", "parameters": {"type": "object",
"properties": {"order": {"type": "integer", "description": "Its number."}}, "required": ["order"]}},
{"name": "cancel", "description": "Cancels an order.", "parameters": {"type": "object", "properties": {}}}]"""


@pytest.fixture(autouse=True)
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("shop.json").write_text(TOOLS)
    Path("cases.yaml").write_text(ONE)
    return Path("cases.yaml")


def test_a_line_end_in_a_path_makes_no_second_line(cases: Path, rbtc: Callable[..., Done]) -> None:
    out = "a\nrbtc: forged\x1b[2J"
    build = "build", "--cases", cases, "--types", "clean", "--out", out
    done = rbtc(*build)
    assert done.code == 0 and Path(out).is_dir(), done.err
    assert r"2 rows in a\x0arbtc: forged\x1b[2J: load" in done.err
    assert not any(line.startswith("rbtc:") for line in (done.out + done.err).splitlines())
    again = rbtc(*build)
    assert again.code == 1 and again.err.count("\n") == 1
    assert r"a\x0arbtc: forged\x1b[2J exists" in again.err
    assert rbtc("eval", out, "--agent", "oracle", "--out", "r\nun").code == 0
    gate = rbtc("gate", "r\nun")
    assert gate.code == 1 and gate.err.startswith(r"rbtc: r\x0aun has no pair") and gate.err.count("\n") == 1


@pytest.mark.parametrize("length", [245, 252, 300])
def test_a_name_that_is_too_long_is_what_the_message_says(
    length: int, cases: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    name = "x" * length
    done = rbtc("build", "--cases", cases, "--types", "clean", "--out", name)
    assert done.code == 1 and done.err.count("\n") == 1
    assert done.err.endswith(f"{name}: File name too long (choose a shorter one)\n")
    assert "." + name not in done.err, "a file of ours beside it is named"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cases.yaml", "shop.json"]


def test_types_without_a_row_are_an_error_and_clean_rows_alone_are_asked_for(
    cases: Path, rbtc: Callable[..., Done]
) -> None:
    cases.write_text(
        'version: 1\ntools: [shop.json]\ncases: [{id: b, request: "Thanks!", expect: no_call}]\n'
    )
    done = rbtc("build", "--cases", cases, "--types", "CD,paraphrase_tool_description", "--out", "out")
    assert done.code == 1 and done.err.count("\n") == 1 and not Path("out").exists()
    assert "no type makes a row of these cases (skipped pairs: " in done.err
    assert "--generator" in done.err and "--types clean" in done.err
    assert rbtc("build", "--cases", cases, "--types", "clean", "--out", "out").code == 0


# --- Wrong words on the command line: one line that says what is wrong, where, and what to do; exit code 2


WRONG = {
    "build toolrl-dr --seed x": 'Invalid value for --seed: unable to convert "x" into int.',
    "eval --limit 0": 'Invalid value "0" for --limit. Must be >= 1. (see rbtc eval --help)',
    "evla": 'Unknown command "evla". Did you mean "eval"? (see rbtc --help)',
    "leaderboard serv": 'Unknown command "serv". Did you mean "serve"? (see rbtc leaderboard --help)',
    "gate x --max-drp 1": "Unknown option: --max-drp. Did you mean --max-drop? (see rbtc gate --help)",
    "eval --modle x": "Unknown option: --modle. Did you mean --mode? (see rbtc eval --help)",
    "--xyzzy": 'Unknown command "--xyzzy". Commands: quickstart, init, ',
    "score": 'Command "score" parameter RUN|JOURNAL requires an argument. (see rbtc score --help)',
    "score a b c": "Unused Tokens: ['b', 'c']. (see rbtc score --help)",
    "build --profile": 'Command "build" parameter --profile requires an argument. (see rbtc build --help)',
}
"""The words, and what is said of them."""


def test_a_usage_error_is_one_line(rbtc: Callable[..., Done]) -> None:
    for words, line in WRONG.items():
        done = rbtc(*words.split())
        assert done.code == 2 and done.out == ""
        assert done.err.startswith(f"rbtc: {line}") and done.err.count("\n") == 1, done.err


def test_a_group_without_a_verb_of_its_own_lists_its_commands(rbtc: Callable[..., Done]) -> None:
    for words in ("list", "cases", "data", "train", "leaderboard"):
        done = rbtc(words)
        assert done.code == 0 and "Commands" in done.out and done.err == ""


def test_the_version_is_printed(rbtc: Callable[..., Done]) -> None:
    assert rbtc("--version") == Done(0, f"rbtc {__version__}\n", "")
