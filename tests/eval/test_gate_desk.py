"""Planted agents on the desk of `rbtc init`: what `rbtc gate` exits with, and the words that it says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

AGENTS = """
import itertools, threading
from agent import answer as good

numbers, known, lock = itertools.count(1), set(), threading.Lock()


def raises(task):
    if next(numbers) % 3 == 0:
        raise KeyError("city of row")
    return good(task)


def never_calls(task):
    return "I would rather not."


def three_right(task):
    request = str(task.messages[-1])
    with lock:
        if len(known) < 3:
            known.add(request)
    return good(task) if request in known else ""
"""

EXPECTED = {
    "--agent oracle": (0, "passed: at least "),
    "--agent name-biased": (1, "failed: reward: lost "),
    "--callable planted:raises": (1, "raised KeyError: 'city of row'"),
    "--callable planted:never_calls": (3, "inconclusive: "),
    "--callable planted:three_right --samples 20": (3, "cases were right before, 10 are needed"),
}


@pytest.mark.usefixtures("new_folder")
def test_planted_agents_pass_fail_and_are_inconclusive(
    rbtc: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rbtc("init", "desk").code == 0
    monkeypatch.chdir("desk")
    assert rbtc("build", "--cases", "cases.yaml", "--out", "bench").code == 0
    Path("planted.py").write_text(AGENTS)
    for at, (words, (code, said)) in enumerate(EXPECTED.items()):
        assert rbtc("eval", "bench", *words.split(), "--out", f"run{at}").code == 0
        done = rbtc("gate", f"run{at}")
        assert done.code == code and said in done.out, (words, done.out)
