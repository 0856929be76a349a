"""Overlaps of queries: what counts as the same question, and what is only listed."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from robustbench_tc.audits import contamination, gate
from robustbench_tc.audits.contamination import Index, near_duplicates, overlaps, query
from robustbench_tc.audits.report import AuditReport
from robustbench_tc.schema import Message

from . import builds

LONG = "When is the first high water at Mallow Quay after six in the morning on Sunday"
TRANSCRIPT = (
    "**Dialogue Records History**\n<user> {0} </user>\n<think> The user says: {1} </think>\n"
    "<response> Which day? </response>\n<user> {2} </user>\n"
)


CLOSING = "With all of this in mind, answer with a single tool call."


def user(*texts: str) -> Sequence[Message]:
    return [Message("system", "You are a careful assistant."), *(Message("user", text) for text in texts)]


def closest(benchmark: str, other: str) -> tuple[float, bool]:
    found = Index([query("b", user(benchmark))]).look_up(query("t", user(other)))
    return (0.0, False) if found is None else (found.shared, found.contaminated)


def test_case_punctuation_and_spacing_make_no_other_query() -> None:
    assert closest(LONG, LONG.upper().replace(" ", "  ") + "?!") == (1.0, True)


def test_half_of_the_8_grams_is_the_same_query_and_less_is_listed() -> None:
    words = LONG.split()
    grams = len(words) - 7
    half, less = -(-grams // 2), (grams - 1) // 2
    for number, contaminated in ((half, True), (less, False)):
        shared, same = closest(LONG, " ".join(words[: number + 7]))
        assert shared == pytest.approx(number / grams, abs=1e-4) and same is contaminated


def test_a_short_query_is_the_same_only_if_it_is_equal() -> None:
    assert closest("What day is it today?", "what day is it today") == (1.0, True)
    assert closest("What day is it today?", "what day is it today, please") == (0.0, False)


def test_thoughts_tags_and_the_closing_turn_are_no_questions() -> None:
    asked = query("t", user(TRANSCRIPT.format("Hello there.", LONG, CLOSING)))
    assert asked.turns == (("hello", "there"),)
    assert Index([query("b", user(LONG))]).look_up(asked) is None


def test_a_benchmark_query_inside_a_dialogue_is_found() -> None:
    asked = query("t", user(TRANSCRIPT.format("Hello there.", "", LONG)))
    found = Index([query("b", user(LONG))]).look_up(asked)
    assert found is not None and found.equal and found.contaminated


def test_a_benchmark_dialogue_is_found_by_its_last_long_turn() -> None:
    index = Index([query("b", user(TRANSCRIPT.format("Yes please.", "", LONG)))])
    found = index.look_up(query("t", user(LONG)))
    assert found is not None and found.equal
    assert index.look_up(query("t", user("Yes please."))) is None


@given(st.lists(st.text(st.characters(categories=["L", "N", "P", "Z"]), max_size=80), max_size=12))
def test_every_query_finds_itself(texts: list[str]) -> None:
    queries = [query(str(n), user(text)) for n, text in enumerate(texts)]
    found, looked_at = overlaps(Index(queries), queries)
    assert looked_at == len(texts)
    assert {o.right for o in found if o.equal} == {asked.row for asked in queries if asked.words}


def test_near_duplicates_are_found_once_and_unrelated_queries_are_not() -> None:
    texts = [LONG, LONG + " please", "Book a bulky waste pick-up at Linden Row", LONG]
    found = near_duplicates([query(str(n), user(text)) for n, text in enumerate(texts)])
    assert {(o.left, o.right, o.equal) for o in found} == {
        ("0", "3", True),
        ("0", "1", False),
        ("1", "3", False),
    }


def test_a_training_query_that_is_a_benchmark_query_fails_the_gate(
    toolrl: Path, bundled: Path, training: Path
) -> None:
    clean = builds.rows(bundled, "clean")
    asked = next(r for r in clean if r["source"] == "bfcl_v3")

    def leak(found: list[builds.Row]) -> None:
        found[0]["prompt"][-1]["content"] = f"<user> {asked['messages'][-1]['content'].upper()} </user>"

    builds.edit_training(toolrl, "full", leak)
    report = builds.audit(toolrl, benchmark=bundled)
    check = builds.find(report, "contamination.training")
    assert check.status == "failed" and check.failures[0].where == "full/train[0]"
    assert asked["id"] in check.failures[0].what
    assert report.training_overlaps[0].left == asked["id"]


def test_clean_training_data_pass(bundled: Path, training: Path) -> None:
    queries = [query(r["id"], user(r["messages"][-1]["content"])) for r in builds.rows(bundled, "clean")]
    from robustbench_tc.audits.folder import Folder

    found, looked_at = overlaps(Index(queries), contamination.training_queries(Folder(training)))
    assert looked_at == 5 and not any(o.contaminated for o in found)


def test_pool_rows_that_repeat_a_clean_query_are_listed_and_do_not_block(
    bundled: Path, audited: AuditReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = builds.rows(bundled, "clean")[0]
    text = asked["messages"][-1]["content"]
    pools = [(asked["id"], user(text)), ("pool::clean", user(text)), ("other::clean", user("Nothing alike."))]
    monkeypatch.setattr(contamination, "conversations_of_sources", lambda root, profile: pools)
    monkeypatch.setattr(gate, "sources_at_hand", lambda sources, profile: (bundled, ""))
    report = builds.audit(bundled)
    assert builds.find(audited, "contamination.pools").status == "not_run"
    check = builds.find(report, "contamination.pools")
    assert check.status == "passed" and check.applied == 2
    assert [o.right for o in report.pool_overlaps] == ["pool::clean"]
