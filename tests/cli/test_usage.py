"""Wrong words on the command line: one line that says what is wrong, where, and what to do; exit code 2."""

from collections.abc import Callable

import pytest

from robustbench_tc import __version__

from ..conftest import Done

WRONG = {
    "build --seed -1": "Invalid value for '--seed': Input should be greater than or equal to 0 (see ",
    "build toolrl-dr --seed x": "Invalid value for '--seed': Input should be a valid integer",
    "eval --limit 0": "Invalid value for '--limit': Input should be greater than or equal to 1",
    "evla": "No such command 'evla'. Did you mean 'eval'? (see rbtc --help)",
    "leaderboard serv": "No such command 'serv'. Did you mean 'serve'? (see rbtc leaderboard --help)",
    "eval --modle x": "No such option: --modle (Possible options: --mode, --model, --samples)",
    "--xyzzy": "No such option: --xyzzy (see rbtc --help)",
    "score": "Missing argument 'RUN'. (see rbtc score --help)",
    "score a b c": "Got unexpected extra argument(s) (b c) (see rbtc score --help)",
    "build --profile": "Option '--profile' requires an argument. (see rbtc build --help)",
}
"""The words, and what typer says of them."""


def test_a_usage_error_is_one_line(rbtc: Callable[..., Done]) -> None:
    for words, line in WRONG.items():
        done = rbtc(*words.split())
        assert done.code == 2 and done.out == ""
        assert done.err.startswith(f"rbtc: {line}") and done.err.count("\n") == 1, done.err


@pytest.mark.parametrize("words", ["", "x --nope", "x --max-drop y"])
def test_a_mistyped_gate_does_not_pass_for_a_verdict(words: str, rbtc: Callable[..., Done]) -> None:
    assert "(see rbtc gate --help)" in rbtc("gate", *words.split()).refusal, "2 is: not shown"


def test_a_group_without_a_command_shows_its_help(rbtc: Callable[..., Done]) -> None:
    for words in ("", "list", "audit", "train", "sources", "leaderboard"):
        done = rbtc(*words.split())
        assert done.code == 2 and "Usage: " in done.out + done.err and "rbtc:" not in done.err


def test_the_version_is_printed(rbtc: Callable[..., Done]) -> None:
    assert rbtc("--version") == Done(0, f"rbtc {__version__}\n", "")
