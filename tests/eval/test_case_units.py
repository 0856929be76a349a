"""Own cases with several turns: whatever is counted, the case is one unit of every interval and test."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from robustbench_tc.eval.score.category import case_of, read_category
from robustbench_tc.eval.stats.gate import judge
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.paired import compare, compare_delta_lines
from robustbench_tc.eval.stats.repeats import repeated
from robustbench_tc.eval.stats.runs import Run, align, read
from robustbench_tc.eval.stats.summary import summarise
from robustbench_tc.eval.stats.values import RETENTIONS

from .synthetic_runs import write_run

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
) -> Run:
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
    return read(folder)


def holds(wide: Interval | None, narrow: Interval | None) -> None:
    """The first interval is around the same value and no narrower than the second.

    A tenth is left for what an interval supposes where few cases say little (docs/statistics.md); turns that
    counted by themselves would make it narrower by 29 % at least.
    """
    assert (wide is None) == (narrow is None)
    if wide is not None and narrow is not None:
        assert wide.value == pytest.approx(narrow.value, abs=1e-12)
        assert wide.high - wide.low >= 0.9 * (narrow.high - narrow.low)


CASES = st.lists(st.lists(st.booleans(), min_size=len(CODES), max_size=len(CODES)), min_size=3, max_size=14)


@settings(max_examples=25)
@given(CASES, st.integers(2, 3), st.integers(1, 2))
def test_turns_that_say_the_same_make_no_interval_narrower_and_no_p_smaller(
    verdicts: list[list[bool]], turns: int, repeats: int
) -> None:
    with TemporaryDirectory() as folder:
        once = a_run(Path(folder, "once"), verdicts, 1, repeats=repeats)
        often = a_run(Path(folder, "often"), verdicts, turns, repeats=repeats)
    one, many = judge(once), judge(often)
    assert [line.name for line in many.lines] == [line.name for line in one.lines] == list(COMPONENTS)
    for before, after in zip(one.lines, many.lines, strict=True):
        assert after.cases == len(verdicts) and after.rows == turns * before.rows
        assert (after.before, after.after, after.outcome) == (before.before, before.after, before.outcome)
        assert after.p == pytest.approx(before.p)
        holds(after.drop, before.drop)
    [first], [second] = align([once]), align([often])
    few, same = summarise(first), summarise(second)
    # Lines of several types: exactly as if the case had been asked so often in one turn.
    counts = ("correct", "n", "pairs", "kept", "lost", "gained")
    summed = summarise(replace(first, **{name: turns * getattr(first, name) for name in counts}))
    assert same.values.keys() == summed.values.keys()
    for name, interval in summed.values.items():
        found = same.values[name]
        assert (found is None) == (interval is None)
        if found is not None and interval is not None and name not in RETENTIONS:
            assert (found.low, found.value, found.high) == pytest.approx(
                (interval.low, interval.value, interval.high)
            ) and found.p == interval.p
    for code, row in few.types.items():
        holds(same.types[code].accuracy, row.accuracy)
        holds(same.types[code].delta_matched, row.delta_matched)
        if row.flips is not None:
            repeated_flips = same.types[code].flips
            assert repeated_flips is not None and repeated_flips.p == pytest.approx(row.flips.p)
    passed, passes = repeated(first), repeated(second)
    assert (passed is None) == (passes is None) == (repeats == 1)
    if passed is not None and passes is not None:
        for name, one_of in passed.lines.items():
            found = passes.lines[name].all[2]
            assert found.value == pytest.approx(one_of.all[2].value) and found.n == turns * one_of.all[2].n
    if few.power is not None and same.power is not None:
        assert same.power.samples == few.power.samples == len(verdicts)


@settings(max_examples=15)
@given(CASES, st.randoms(use_true_random=False))
def test_two_runs_are_compared_by_case(verdicts: list[list[bool]], random: "np.random.Generator") -> None:
    others = [[right ^ (random.random() < 0.3) for right in case] for case in verdicts]
    with TemporaryDirectory() as folder:
        pairs = [
            align(
                [a_run(Path(folder, f"{turns}{i}"), one, turns) for i, one in enumerate((verdicts, others))]
            )
            for turns in (1, 2)
        ]
    (a, b), (c, d) = pairs
    once, twice = compare(a, b, CODES[1:]), compare(c, d, CODES[1:])
    assert once is not None and twice is not None
    assert twice.p == pytest.approx(once.p) and twice.n == 2 * once.n
    for code in CODES[1:]:
        once, twice = compare(a, b, [code]), compare(c, d, [code])
        assert once is not None and twice is not None and twice.p == pytest.approx(once.p)
        holds(twice.difference, once.difference)
        deltas, doubled = compare_delta_lines(a, b, {"": [code]}), compare_delta_lines(c, d, {"": [code]})
        holds(doubled[""].difference, deltas[""].difference)


def test_turns_of_one_case_are_one_and_nothing_else_is(tmp_path: Path) -> None:
    verdicts = [[True] * 5, [True, False, True, False, True], [False] * 5]
    [turns] = align([a_run(tmp_path / "turns", verdicts, 2)])
    assert turns.units == ("own__0", "own__0", "own__1", "own__1", "own__2", "own__2")
    # Cases of one turn may be called like that.
    [named] = align([a_run(tmp_path / "named", verdicts, 2, category="calls+ordered")])
    assert named.units == () and named.columns(["clean"])[0].tolist() == [1, 1, 1, 1, 0, 0]
    [other] = align([a_run(tmp_path / "other", verdicts, 2, source="bfcl_v3")])
    assert other.units == ()
    left = turns.without({"own__1.2"})
    assert left.units == ("own__0", "own__0", "own__1", "own__2", "own__2")
    assert left.columns(["clean"])[1].tolist() == [2, 1, 2]


def test_a_category_says_that_the_row_is_a_turn() -> None:
    assert case_of("own__v1.2", "calls") == "own__v1.2"
    assert case_of("own__v1.2.10", "calls|ask+ordered+turn") == "own__v1.2"
    assert read_category("calls+extra+turn") == read_category("calls+turn+extra")
