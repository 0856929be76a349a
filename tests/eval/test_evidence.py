"""Words and sentences are never braver than a run's rows, and whatever is counted, a case is one unit."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from robustbench_tc import taxonomy
from robustbench_tc.eval.leaderboard import boards, pages
from robustbench_tc.eval.score.category import case_of, read_category
from robustbench_tc.eval.stats import compare, evidence, gate, intervals, paired, runs, summary, values
from robustbench_tc.eval.stats.outcomes import Outcomes

from ..conftest import NIGHTLY
from ..refusals import refuses
from .leaderboard import made
from .synthetic_runs import Verdict, clean_ids, coin, pairs, write_run

LOST_AT_LEAST = 6
"""Cases that differ, all to the worse, below which no exact two-sided test rejects at 0.05."""


def number(clean_id: str) -> int:
    return int(clean_id.rpartition("_")[2])


class Kind(NamedTuple):
    """A way to be degenerate."""

    verdict: Verdict
    fields: Mapping[str, Any] = MappingProxyType({})
    components: tuple[str, ...] = taxonomy.COMPONENTS
    promised: int = 1
    """How many times as many rows the record expects."""


def every(n: int, bad: Any, well: Any) -> Callable[[str, str], Any]:
    return lambda clean_id, code: bad if (number(clean_id) + len(code)) % n == 0 else well


KINDS = {
    "nothing right": Kind(lambda c, t: False),
    "all right": Kind(lambda c, t: True),
    "a few right": Kind(lambda c, t: number(c) < 3),
    "all rejected": Kind(lambda c, t: False, {"status": lambda c, t: "rejected"}),
    "half missing": Kind(every(2, None, True)),
    "half never asked": Kind(lambda c, t: True, promised=2),
    "agent errors": Kind(every(3, False, True), {"status": every(3, "agent_error", "ok")}),
    "cut replies": Kind(every(4, False, True), {"finish_reason": every(4, "length", "stop")}),
    "one component only": Kind(lambda c, t: True, components=("action",)),
    "one component lost": Kind(lambda c, t: taxonomy.component_of(t) != "reward"),
    "one type lost": Kind(lambda c, t: t != "same_name_A"),
    "coins": Kind(coin(7)),
}


@pytest.mark.parametrize("samples", [0, 1, 3, 12, 20])
@pytest.mark.parametrize("kind", KINDS)
def test_no_sentence_is_braver_than_the_evidence(kind: str, samples: int, tmp_path: Path) -> None:
    found = KINDS[kind]
    codes = {taxonomy.CLEAN, *(code for name in found.components for code in values.codes_of(name))}
    rows = [one for one in pairs(clean_ids({"bfcl_v3": samples})) if one[1] in codes]
    record = {"expected": found.promised * len(rows)}
    folder = write_run(tmp_path / "run", found.verdict, rows, record=record, **found.fields)
    if not rows:
        refuses("holds no predictions", runs.read_run, folder)
        return
    run = runs.read_run(folder)
    [outcomes] = runs.align([run])
    said = evidence.answer(run, outcomes)
    check_answer(said, run, outcomes)
    check_gate(run, outcomes, said)
    check_compare(
        run, write_run(tmp_path / "oracle", lambda c, t: True, rows, record={"expected": len(rows)})
    )
    check_board(said)


def check_answer(said: evidence.Answer, run: runs.Run, outcomes: Outcomes) -> None:
    """The headline and its words against the rows themselves."""
    assert (
        len(said.sentence) <= evidence.WIDE
        and "nothing" not in said.sentence
        and "not worse" not in said.sentence
    )
    gaps = int(outcomes.missing.sum()) + outcomes.unaccounted
    for name, one in {**said.lines, **said.types}.items():
        matched, sizes = outcomes.matched(values.codes_of(name))
        assert one.drop.value == pytest.approx(matched.sum() / sizes.sum())
        assert one.drop.low <= one.drop.value <= one.drop.high
        assert bool(one.why) == (one.word == "cannot tell")
        if one.word == "holds":
            assert not gaps and one.right >= 10 and one.drop.high <= 0.15 * one.before
        if one.word == "loses":
            assert (matched > 0).sum() >= LOST_AT_LEAST and one.drop.low > 0 and one.p_holm <= 0.05
        assert one.keeps is None or one.keeps <= 1 - one.drop.value / one.before + 1e-9
    heads = [one for name, one in said.lines.items() if name != "perturbed"]
    if kept := re.search(r"Keeps at least (\d+) %", said.sentence):
        held = [one.keeps or 0 for one in heads if one.word == "holds"]
        assert min(held) == int(kept[1]) / 100
        assert all(one.word != "cannot tell" for one in heads)
    if "No loss" in said.sentence:
        assert all(one.drop.low <= 0 <= one.drop.high for one in heads)
    if "Loses" in said.sentence:
        assert any(one.word == "loses" for one in (*heads, *said.types.values()))
    status, cut = run.rows["status"].tolist(), (run.rows["finish_reason"] == "length").mean()
    if "agent_error" in status or "rejected" in status or cut > 0.05:
        assert (
            said.sentence.startswith(("The agent failed", "The server rejected"))
            or "cut off" in said.sentence
        )
    assert not gaps or any("no verdict" in one for one in said.warnings)


def check_gate(run: runs.Run, outcomes: Outcomes, said: evidence.Answer) -> None:
    """The gate's line, by the same drop."""
    found = gate.judge(run)
    line = found.sentence
    assert line.startswith(
        {"pass": "passed: ", "fail": "failed: ", "inconclusive": "inconclusive: "}[found.outcome]
    )
    assert found.exit_code == {"pass": 0, "fail": 1, "inconclusive": 3}[found.outcome]
    left_out = any(note.startswith("left out") for note in found.notes)
    for one in found.lines:
        assert left_out or one.rows == said.lines[one.name].drop.n
        same = said.lines[one.name].drop
        assert left_out or (one.drop.value, one.drop.low, one.drop.high, one.drop.p) == pytest.approx(
            (same.value, same.low, same.high, same.p), abs=1e-12
        )
    if found.outcome == "pass":
        assert not int(outcomes.missing.sum()) + outcomes.unaccounted
        assert all(one.right >= 10 and one.drop.high <= max(0.05, 0.25 * one.before) for one in found.lines)
    if "agent_error" in run.rows["status"].tolist():
        assert found.outcome == "fail" and "the agent failed on" in line


def check_compare(run: runs.Run, oracle: Path) -> None:
    """Against a run that is right everywhere, nobody is better without enough cases that differ."""
    base = runs.read_run(oracle)
    found = compare.compare_runs(base, run)
    first, second = runs.align([base, run])
    differ = (first.correct != second.correct)[:, 1:].any(axis=1).sum()
    if "is better than" in found.verdict:
        assert differ >= LOST_AT_LEAST and found.overall["perturbed"].p < 0.05
    else:
        assert found.verdict.startswith("No significant difference")
    assert found.sentences[1] == evidence.answer(run, second).sentence


def check_board(said: evidence.Answer) -> None:
    """A run's page says the headline; its badge is grey and says so where the run cannot tell."""
    entry = made.entry(1)
    assert entry.core is not None
    words = {name: one.word for name, one in said.lines.items()}
    entry = replace(entry, core=replace(entry.core, sentence=said.sentence, words=words))
    row = boards.Row(entry=entry, tier="reproduced")
    unsure = said.lines["perturbed"].word == "cannot tell" if said.lines else False
    assert ("inconclusive" in pages.badge(row)) == (pages.colour(row) == pages.GREY) == unsure
    assert dict(pages.facts(row, 1))["Finding"] == said.sentence


# --- own cases with several turns ---------------------------------------------------------------------


CODES = ("clean", "realistic_typos", "CD", "same_name_D", "transient_timeout")
COMPONENTS = ("observation", "action", "reward", "transition")


def a_run(
    folder: Path,
    verdicts: list[list[bool]],
    turns: int,
    *,
    source: str = "own",
    category: str = "calls+turn",
    repeats: int = 1,
) -> runs.Run:
    """A run of cases, [case][code] right or wrong, each asked in so many turns that all go the same way."""
    ids = {
        f"{source}__{case}" + (f".{turn}" if turns > 1 else ""): case
        for case in range(len(verdicts))
        for turn in range(1, turns + 1)
    }
    write_run(
        folder,
        lambda clean_id, code: verdicts[ids[clean_id]][CODES.index(code)],
        [(clean_id, code) for clean_id in ids for code in CODES],
        source=lambda *_: source,
        category=lambda *_: category if turns > 1 else "calls",
        repeats=repeats,
    )
    return runs.read_run(folder)


def holds(wide: intervals.Interval | None, narrow: intervals.Interval | None) -> None:
    """The first interval is around the same value and no narrower than the second.

    A tenth is left for what an interval supposes where few cases say little (docs/statistics.md); turns that
    counted by themselves would make it narrower by 29 % at least.
    """
    assert (wide is None) == (narrow is None)
    if wide is not None and narrow is not None:
        assert wide.value == pytest.approx(narrow.value, abs=1e-12)
        assert wide.high - wide.low >= 0.9 * (narrow.high - narrow.low)


CASES = st.lists(st.lists(st.booleans(), min_size=len(CODES), max_size=len(CODES)), min_size=3, max_size=14)


@settings(max_examples=25 if NIGHTLY else 8)
@given(CASES, st.integers(2, 3), st.integers(1, 2))
def test_turns_that_say_the_same_make_no_interval_narrower_and_no_p_smaller(
    verdicts: list[list[bool]], turns: int, repeats: int
) -> None:
    with TemporaryDirectory() as folder:
        once = a_run(Path(folder, "once"), verdicts, 1, repeats=repeats)
        often = a_run(Path(folder, "often"), verdicts, turns, repeats=repeats)
    one, many = gate.judge(once), gate.judge(often)
    assert [line.name for line in many.lines] == [line.name for line in one.lines] == list(COMPONENTS)
    for before, after in zip(one.lines, many.lines, strict=True):
        assert after.cases == len(verdicts) and after.rows == turns * before.rows
        assert (after.before, after.after, after.outcome) == (before.before, before.after, before.outcome)
        assert after.p == pytest.approx(before.p)
        holds(after.drop, before.drop)
    [first], [second] = runs.align([once]), runs.align([often])
    few, same = summary.summarise(first), summary.summarise(second)
    # Lines of several types: exactly as if the case had been asked so often in one turn.
    counts = ("correct", "n", "pairs", "kept", "lost", "gained")
    summed = summary.summarise(replace(first, **{name: turns * getattr(first, name) for name in counts}))
    assert same.values.keys() == summed.values.keys()
    for name, interval in summed.values.items():
        found = same.values[name]
        assert (found is None) == (interval is None)
        if found is not None and interval is not None and name not in values.RETENTIONS:
            assert (found.low, found.value, found.high) == pytest.approx(
                (interval.low, interval.value, interval.high)
            ) and found.p == interval.p
    for code, row in few.types.items():
        holds(same.types[code].accuracy, row.accuracy)
        holds(same.types[code].delta_matched, row.delta_matched)
        if row.flips is not None:
            repeated_flips = same.types[code].flips
            assert repeated_flips is not None and repeated_flips.p == pytest.approx(row.flips.p)
    passed, passes = summary.repeated(first), summary.repeated(second)
    assert (passed is None) == (passes is None) == (repeats == 1)
    if passed is not None and passes is not None:
        for name, one_of in passed.lines.items():
            found = passes.lines[name].all[2]
            assert found.value == pytest.approx(one_of.all[2].value) and found.n == turns * one_of.all[2].n
    if few.power is not None and same.power is not None:
        assert same.power.samples == few.power.samples == len(verdicts)


@settings(max_examples=15 if NIGHTLY else 6)
@given(CASES, st.randoms(use_true_random=False))
def test_two_runs_are_compared_by_case(verdicts: list[list[bool]], random: "np.random.Generator") -> None:
    others = [[right ^ (random.random() < 0.3) for right in case] for case in verdicts]
    with TemporaryDirectory() as folder:
        pairs = [
            runs.align(
                [a_run(Path(folder, f"{turns}{i}"), one, turns) for i, one in enumerate((verdicts, others))]
            )
            for turns in (1, 2)
        ]
    (a, b), (c, d) = pairs
    once, twice = paired.compare(a, b, CODES[1:]), paired.compare(c, d, CODES[1:])
    assert once is not None and twice is not None
    assert twice.p == pytest.approx(once.p) and twice.n == 2 * once.n
    for code in CODES[1:]:
        once, twice = paired.compare(a, b, [code]), paired.compare(c, d, [code])
        assert once is not None and twice is not None and twice.p == pytest.approx(once.p)
        holds(twice.difference, once.difference)
        deltas, doubled = (
            paired.compare_delta_lines(a, b, {"": [code]}),
            paired.compare_delta_lines(c, d, {"": [code]}),
        )
        holds(doubled[""].difference, deltas[""].difference)


def test_turns_of_one_case_are_one_and_nothing_else_is(tmp_path: Path) -> None:
    verdicts = [[True] * 5, [True, False, True, False, True], [False] * 5]
    [turns] = runs.align([a_run(tmp_path / "turns", verdicts, 2)])
    assert turns.units == ("own__0", "own__0", "own__1", "own__1", "own__2", "own__2")
    # Cases of one turn may be called like that.
    [named] = runs.align([a_run(tmp_path / "named", verdicts, 2, category="calls+ordered")])
    assert named.units == () and named.columns(["clean"])[0].tolist() == [1, 1, 1, 1, 0, 0]
    [other] = runs.align([a_run(tmp_path / "other", verdicts, 2, source="bfcl_v3")])
    assert other.units == ()
    left = turns.without({"own__1.2"})
    assert left.units == ("own__0", "own__0", "own__1", "own__2", "own__2")
    assert left.columns(["clean"])[1].tolist() == [2, 1, 2]


def test_a_category_says_that_the_row_is_a_turn() -> None:
    assert case_of("own__v1.2", "calls") == "own__v1.2"
    assert case_of("own__v1.2.10", "calls|ask+ordered+turn") == "own__v1.2"
    assert read_category("calls+extra+turn") == read_category("calls+turn+extra")
