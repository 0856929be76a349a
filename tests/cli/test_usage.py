"""Wrong words on the command line: one line that says what is wrong, where, and what to do; exit code 2."""

from collections.abc import Callable

import pytest

from robustbench_tc import __version__

from ..conftest import Done

WRONG = [
    ("build --seed -1", "--seed -1: it has to be greater than or equal to 0 (see rbtc build --help)"),
    ("build --seed one", "--seed one: it has to be a valid integer (see rbtc build --help)"),
    (
        "build --max-cost nan",
        "--max-cost nan: it has to be greater than or equal to 0 (see rbtc build --help)",
    ),
    ("build --price 1", "option '--price' requires 2 arguments (see rbtc build --help)"),
    ("build --price a b", "--price a: it has to be a valid number (see rbtc build --help)"),
    ("build toolrl-dr --seed x", "--seed x: it has to be a valid integer (see rbtc build toolrl-dr --help)"),
    ("eval --limit 0", "--limit 0: it has to be greater than or equal to 1 (see rbtc eval --help)"),
    ("leaderboard serve --port 99999", "--port 99999: it has to be less than or equal to 65535 "),
    ("evla", "no such command 'evla': did you mean 'eval'? (see rbtc --help)"),
    ("xyzzy", "no such command 'xyzzy' (see rbtc --help)"),
    ("list typs", "no such command 'typs': did you mean 'types'? (see rbtc list --help)"),
    ("leaderboard serv", "no such command 'serv': did you mean 'serve'? (see rbtc leaderboard --help)"),
    (
        "eval --modle x",
        "no such option: --modle: did you mean --mode or --model or --samples? (see rbtc eval --help)",
    ),
    ("eval --xyzzy", "no such option: --xyzzy (see rbtc eval --help)"),
    ("--xyzzy", "no such option: --xyzzy (see rbtc --help)"),
    ("-x", "no such option: -x (see rbtc --help)"),
    ("score", "missing argument 'RUN' (see rbtc score --help)"),
    ("audit build", "missing argument 'BUILD' (see rbtc audit build --help)"),
    ("release x", "missing option '--version' (see rbtc release --help)"),
    ("score a b c", "got unexpected extra argument(s) (b c) (see rbtc score --help)"),
    ("build --profile", "option '--profile' requires an argument (see rbtc build --help)"),
    ("eval --logprobs=3", "option '--logprobs' does not take a value (see rbtc eval --help)"),
]


@pytest.mark.parametrize(("words", "line"), WRONG, ids=[words for words, _ in WRONG])
def test_a_usage_error_is_one_line(words: str, line: str, rbtc: Callable[..., Done]) -> None:
    done = rbtc(*words.split())
    assert done.code == 2 and done.out == ""
    assert done.err.startswith(f"rbtc: {line}") and done.err.count("\n") == 1, done.err


@pytest.mark.parametrize("words", ["", "x --nope", "x --max-drop y"])
def test_a_mistyped_gate_does_not_pass_for_a_verdict(words: str, rbtc: Callable[..., Done]) -> None:
    done = rbtc("gate", *words.split())
    assert done.code == 1 and "(see rbtc gate --help)" in done.err, "2 is: not shown"


def test_a_group_without_a_command_shows_its_help(rbtc: Callable[..., Done]) -> None:
    for words in ("", "list", "audit", "train", "sources", "leaderboard"):
        done = rbtc(*words.split())
        assert done.code == 2 and "Usage: " in done.out + done.err and "rbtc:" not in done.err


def test_the_version_is_printed(rbtc: Callable[..., Done]) -> None:
    assert rbtc("--version") == Done(0, f"rbtc {__version__}\n", "")
