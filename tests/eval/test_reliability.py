"""The families of arXiv 2602.16666: values by hand, what their formulas have to give, what is not kept."""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from robustbench_tc import shown, taxonomy
from robustbench_tc.eval.record import open_run
from robustbench_tc.eval.report import content, page
from robustbench_tc.eval.stats import reliability, runs
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.packs import Cell, Table
from robustbench_tc.eval.stats.screen import screen
from robustbench_tc.eval.stats.summary import repeated

from .live.test_live_stats import live, score
from .synthetic_runs import clean_ids, coin, counted, pairs, write_run


def told(run: runs.Run, **options: bool) -> tuple[Table, dict[str, Cell]]:
    """The table of a run, and its values by metric."""
    outcomes = counted(run)
    made = reliability.table(
        run, outcomes, repeated(outcomes), allow_missing=options.get("allow_missing", False)
    )
    return made, {str(symbol): value for _, symbol, value, *_ in made.rows}


def repeats(folder: Path, right: Callable[[int, int], bool], rows: int, times: int) -> runs.Run:
    """A run of clean rows that were each asked several times: `right` of the row and the repeat."""
    asked = [(f"rotbench__{row:03}", taxonomy.CLEAN) for row in range(rows)]
    answers = (right(row, repeat) for row in range(rows) for repeat in range(times))
    return runs.read_run(write_run(folder, lambda c, t: next(answers), asked, repeats=times))


def of(found: Cell) -> Interval:
    """A value that has to be there."""
    assert isinstance(found, Interval) and 0 <= found.low <= found.value <= found.high <= 1, found
    return found


@pytest.mark.parametrize("times", [2, 3, 4])
def test_outcome_consistency_is_1_for_who_repeats_itself_and_that_of_a_coin_for_a_coin(
    tmp_path: Path, times: int
) -> None:
    same = told(repeats(tmp_path / "same", lambda row, repeat: row % 4 > 0, 8, times))[1]
    assert of(same["C_out"]).value == 1 and of(same["pass^k"]).value == 0.75
    # every way in which a fair coin can fall, once: what it has in expectation
    coins = repeats(tmp_path / "coin", lambda row, repeat: bool(row >> repeat & 1), 2**times, times)
    found = told(coins)[1]
    assert of(found["C_out"]).value == pytest.approx(1 / times) and of(found["C_out"]).n == 2**times
    assert of(found["pass^k"]).value == pytest.approx(1 / 2**times)
    half = told(repeats(tmp_path / "half", lambda row, repeat: repeat < times / 2, 6, times))[1]
    assert of(half["C_out"]).value == pytest.approx(0 if times % 2 == 0 else 1 / 9)
    generator = np.random.default_rng(times)
    drawn = repeats(tmp_path / "drawn", lambda row, repeat: bool(generator.random() < row / 20), 20, times)
    line = repeated(counted(drawn))
    assert line is not None
    clean = line.lines["clean"]
    assert clean.outcome_consistency.value == pytest.approx(1 - 4 * (times - 1) / times * clean.within)
    assert of(told(drawn)[1]["C_out"]) == clean.outcome_consistency


def test_ratios_are_of_the_same_samples_and_at_most_1(tmp_path: Path) -> None:
    """Four samples, three right when clean; of six errors each the first two samples get half right."""

    def verdict(clean_id: str, code: str) -> bool:
        sample, place = int(clean_id[-1]), list(taxonomy.codes()).index(code) if code != "clean" else 0
        kind = taxonomy.get(code).channel if code != "clean" else code
        right = {"clean": sample < 3, "tool_result": sample < 2 and place % 2 == 0, "query": True}
        return right.get(str(kind), sample == 0)

    rows = pairs(clean_ids({"rotbench": 4}))
    found = told(runs.read_run(write_run(tmp_path / "run", verdict, rows)))[1]
    assert of(found["R_fault"]).value == pytest.approx(2 * 3 / (3 * 6)) and of(found["R_fault"]).n == 24
    assert of(found["R_env"]).value == pytest.approx(1 / 3) and of(found["R_env"]).n == 8
    assert (of(found["R_prompt"]).value, of(found["R_prompt"]).high) == (1, 1)  # 4 right of 3 clean ones
    never = told(runs.read_run(write_run(tmp_path / "never", lambda c, t: t != "clean", rows)))[1]
    assert {never[name] for name in reliability.CHANGED} == {None}
    for seed in range(6):
        right = coin(seed, 0.3 + seed / 10, 0.7 + seed / 10)
        made = told(runs.read_run(write_run(tmp_path / str(seed), right, pairs(clean_ids()))))[1]
        for symbol, channel in reliability.CHANGED.items():
            codes = [kind.code for kind in taxonomy.types() if kind.channel == channel]
            after = sum(right(one, code) is True for one in clean_ids() for code in codes)
            before = sum(right(one, "clean") is True for one in clean_ids() for _ in codes)
            assert of(made[symbol]).value == pytest.approx(min(1, after / before)), (seed, symbol)


def test_what_was_not_asked_or_lacks_a_verdict_has_no_value(tmp_path: Path) -> None:
    hole = "rotbench__level1_1", "transient_timeout"
    rows = [pair for pair in pairs(clean_ids({"rotbench": 3})) if pair[1] != "query_paraphrase"]
    run = runs.read_run(write_run(tmp_path / "run", lambda c, t: None if (c, t) == hole else True, rows))
    found = told(run)[1]
    assert found["R_fault"] is None and of(found["R_env"]).value == of(found["R_prompt"]).value == 1
    assert of(told(run, allow_missing=True)[1]["R_fault"]).n == 3 * 6 - 1
    assert found["C_out"] is found["pass^k"] is found["S_comp"] is None
    typos = [pair for pair in rows if pair[1] in ("clean", "realistic_typos")]
    only = told(runs.read_run(write_run(tmp_path / "typos", lambda c, t: True, typos)))[1]
    assert (only["R_fault"], only["R_env"], of(only["R_prompt"]).n) == (None, None, 3)


def test_live_episodes_have_faults_and_constraints(tmp_path: Path) -> None:
    harm = [{"repeated": int(task < 2), "followed": int(task in (1, 2)), "steps": 3} for task in range(10)]
    scores = [
        *(score(task, steps=1, repeated=0, followed=0) for task in range(10)),
        *(score(task, "live_transient_timeout", right=task > 3, met=1, **harm[task]) for task in range(10)),
        *(score(task, "live_transient_rate_limit", right=False, met=0, **harm[9]) for task in range(10)),
        *(score(task, "live_silent_no_op", right=None, met=1) for task in range(10)),
    ]
    made, found = told(runs.read_run(live(tmp_path / "run", scores)))
    assert of(found["R_fault"]).value == pytest.approx(0.6) and of(found["R_fault"]).n == 10  # who met one
    assert of(found["S_comp"]).value == pytest.approx(27 / 30) and of(found["S_comp"]).n == 30
    assert found["R_env"] is found["R_prompt"] is None and found["S_harm"] == "not kept"
    assert "effects too often or instructions followed" in str(made.rows[-2][4])


def test_every_number_has_its_definition_and_its_source_on_every_surface(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", coin(1), pairs(clean_ids({"rotbench": 3})), repeats=2)
    made = told(runs.read_run(run))[0]
    assert len(made.rows) == len({symbol for _, symbol, *_ in made.rows}) == len(reliability.METRICS)
    families = [family for family, _ in itertools.groupby(made.rows, lambda row: row[0])]
    assert families == ["consistency", "robustness", "predictability", "safety"]
    for _, symbol, value, n, definition, source in made.rows:
        assert definition and source in ("2602.16666", "2406.12045"), symbol
        assert n == (value.n if isinstance(value, Interval) else ""), symbol
        assert value is None or isinstance(value, Interval) or value in ("not kept", "not measured"), symbol
    report = content.build([runs.read_run(run)])
    assert report.models[0].reliability == made
    full = shown.plain(screen(open_run(run), full=True).shown())
    for text in (page.markdown(report).replace("\\", ""), full):
        assert "Reliability" in text and "mean over clean rows of (2p − 1)²" in text and "not kept" in text
    assert "Reliability" not in shown.plain(screen(open_run(run)).shown())
