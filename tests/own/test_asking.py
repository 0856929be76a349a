"""Cases are decided by the words that are offered, whole or by their letter, and by no others."""

import tempfile
from pathlib import Path

from hypothesis import example, given, settings, strategies as st

from robustbench_tc.own.reviewing import Reviewing, ask_all

CASES = """version: 1
tools: [tools.json]
cases:
- {id: one, request: Ping it., expect: [{call: ping}], proposed_by: me}
"""
DECIDING = {"a": "accepted", "accept": "accepted", "d": "dropped", "drop": "dropped"}
LEAVING = ("s", "skip", "q", "quit")


@given(typed=st.one_of(st.text(max_size=8), st.sampled_from([*DECIDING, *LEAVING]).map(str.upper)))
@example(typed="")
@example(typed="add")
@example(typed="do not")
@settings(max_examples=150, deadline=None)
def test_no_other_word_decides(typed: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.yaml"
        path.write_text(CASES)
        path.with_name("tools.json").write_text('[{"name": "ping", "description": "Pings."}]')
        found, words = Reviewing(path, by="me"), iter([typed, None])
        ask_all(found, lambda question: next(words), lambda line: None)
        left = next(words, "asked twice")
        (case,) = found.cases
    word = typed.lower()
    assert case.status == DECIDING.get(word, "open")
    assert (left is None) == (word in DECIDING or word in LEAVING), "else it is asked again, until the end"
