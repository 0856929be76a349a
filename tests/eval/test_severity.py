"""Doses and interactions of runs whose answers are known, and the agents of the interactions."""

import math
import re
from collections.abc import Iterable
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

from robustbench_tc import api, schema, taxonomy
from robustbench_tc.eval.agents import is_right
from robustbench_tc.eval.agents.astray import TOGETHER, sample_class
from robustbench_tc.eval.report import page
from robustbench_tc.eval.stats import intervals, runs
from robustbench_tc.eval.stats.packs import mixed, severity
from robustbench_tc.io import numbers

from .synthetic_runs import Verdict, clean_ids, write_run
from .test_agents import judged

TYPOS = ("typos_1", "typos_2", "typos_3")
IDS = clean_ids()[:60]


def found(folder: Path, verdict: Verdict, lacking: int = 0, repeats: int = 1) -> severity.Series:
    """The series of a run over 60 samples, of which the first `lacking` have no row of the strongest dose."""
    rows = [(one, code) for one in IDS for code in ("clean", *TYPOS)]
    rows = [one for one in rows if one[1] != "typos_3" or one[0] not in IDS[:lacking]]
    (outcomes,) = runs.align([runs.read_run(write_run(folder / "run", verdict, rows, repeats=repeats))])
    (one,) = severity.series(outcomes, outcomes.usable())
    return one


def test_the_series_are_those_that_types_state() -> None:
    stated = {
        kind.code: (kind.series, kind.dose) for kind in taxonomy.types("all") if kind.pack == "severity"
    }
    doses = {
        "typos_1": ("typos", 1), "typos_2": ("typos", 3), "typos_3": ("typos", 8),
        "factor_1_5": ("factor", 1.5), "factor_5": ("factor", 5), "factor_100": ("factor", 100),
        "abbreviated_5": ("abbreviated", 5), "abbreviated_3": ("abbreviated", 3),
        "abbreviated_1": ("abbreviated", 1),
    }  # fmt: skip
    assert {code: stated[code] for code in doses} == doses
    for kind in taxonomy.types():
        assert (kind.series, kind.dose) == ("", None)


def test_a_model_that_fails_from_a_dose_on_has_a_slope_that_is_known(tmp_path: Path) -> None:
    one = found(tmp_path, lambda clean_id, code: code in ("clean", "typos_1"))
    assert [dose.accuracy.value for dose in one.doses] == [1.0, 0.0, 0.0]
    assert [dose.dose for dose in one.doses] == [1.0, 3.0, 8.0]
    assert one.n == 60 and one.clean is not None and one.clean.value == 1.0
    assert one.slope is not None and one.slope.value == pytest.approx(-0.5)
    assert one.slope.p == pytest.approx(2 * 0.5**60)
    # of 1, 0, 0 in any order the sum of weights is -2, 0 or 2, each as likely: all 60 at one end
    assert one.trend_p == pytest.approx(2 * (1 / 3) ** 60)


def test_only_samples_with_every_dose_are_compared(tmp_path: Path) -> None:
    one = found(tmp_path, lambda clean_id, code: code != "typos_3" or clean_id in IDS[:30], lacking=20)
    assert one.n == 40
    assert [dose.accuracy.n for dose in one.doses] == [60, 60, 40]
    assert [common.value for common in [dose.common for dose in one.doses] if common] == [1.0, 1.0, 0.25]
    assert one.slope is not None and one.slope.value == pytest.approx(-0.375)


def test_without_any_effect_nothing_is_found(tmp_path: Path) -> None:
    one = found(tmp_path, lambda clean_id, code: clean_id in IDS[::2], repeats=2)
    assert one.slope is not None and one.slope.value == 0.0 and one.slope.p == 1.0 and one.trend_p == 1.0
    assert one.slope.low < 0 < one.slope.high


@pytest.mark.parametrize("seed", range(6))
def test_pages_p_is_that_of_every_order_of_every_sample(seed: int) -> None:
    k, rows = (3, 4) if seed % 2 else (4, 2)
    right = np.random.default_rng(seed).integers(0, 3, size=(rows, k))
    ranks = [
        [2 * sum(a > b for b in line) + sum(a == b for b in line) + 1 for a in line]
        for line in right.tolist()
    ]
    rising = severity.weights(k).tolist()
    observed = abs(sum(w * r for line in ranks for w, r in zip(rising, line, strict=True)))
    orders = [
        [sum(w * r for w, r in zip(rising, o, strict=True)) for o in permutations(line)] for line in ranks
    ]
    reached = sum(abs(sum(one)) >= observed for one in product(*orders))
    assert severity.page_p(right) == pytest.approx(reached / math.factorial(k) ** rows)


def test_one_dose_alone_is_not_a_series(tmp_path: Path) -> None:
    rows = [(one, code) for one in IDS for code in ("clean", "typos_1")]
    (outcomes,) = runs.align([runs.read_run(write_run(tmp_path / "run", lambda one, code: True, rows))])
    assert severity.series(outcomes, outcomes.usable()) == ()


def test_doses_and_trends_are_in_the_report(tmp_path: Path) -> None:
    rows = [(one, code) for one in IDS for code in ("clean", *TYPOS)]
    verdict = lambda one, code: code == "clean" or IDS.index(one) % 4 >= TYPOS.index(code) + 1  # noqa: E731
    report = api.report([str(write_run(tmp_path / "run", verdict, rows))])
    doses, trends = report.models[0].packs[:2]
    assert (doses.name, trends.name) == ("severity_doses", "severity_trends")
    assert [row[2] for row in doses.rows] == list(TYPOS)
    assert [row[4].value for row in doses.rows if isinstance(row[4], intervals.Interval)] == [0.75, 0.5, 0.25]
    slope = trends.rows[0][3]
    assert isinstance(slope, intervals.Interval) and slope.value == pytest.approx(-0.25)
    # rows of 0, 0, 0 and of 1, 1, 1 have no trend; each of the 15 with 1, 0, 0 and with 1, 1, 0 is at its end
    assert trends.rows[0][1:3] == (3, 60) and trends.rows[0][5] == numbers.p_value(2 * (1 / 3) ** 30)
    shown = page.html(report)
    assert 'aria-label="accuracy by dose of typos"' in shown
    assert re.search(r"model-3b[^<]*, 8: 0\.250 \[0\.\d+, 0\.\d+\], 60 samples", shown)
    assert "Accuracy by dose" in shown and "severity_trends" in page.as_json(report)


def test_doses_without_a_common_sample_have_no_slope_and_no_trend(tmp_path: Path) -> None:
    rows = [(one, "clean") for one in IDS] + [(one, TYPOS[at % 2]) for at, one in enumerate(IDS)]
    report = api.report([str(write_run(tmp_path / "run", lambda one, code: True, rows))])
    doses, trends = report.models[0].packs[:2]
    assert trends.rows == (("typos", 2, 0, None, None, None),)
    assert [row[5:] for row in doses.rows] == [(0, None, None)] * 2


# --- Interactions of runs whose answers are known, and the agents that have them


DESIGN = ("realistic_typos", "same_name_D", "CD", "transient_rate_limit")
MIXED = tuple(kind.code for kind in taxonomy.types("all") if kind.pack == "mixed")
PAIR = "mix__realistic_typos__CD"
MIXED_IDS = clean_ids()[:48]


def rows(codes: Iterable[str] = (*DESIGN, *MIXED)) -> list[tuple[str, str]]:
    return [(one, code) for one in MIXED_IDS for code in ("clean", *codes)]


def interactions_of(
    folder: Path, verdict: Verdict, asked: list[tuple[str, str]], repeats: int = 1
) -> dict[str, mixed.Interaction]:
    (outcomes,) = runs.align([runs.read_run(write_run(folder / "run", verdict, asked, repeats=repeats))])
    return {one.code: one for one in mixed.interactions(outcomes, outcomes.usable())}


def weak(clean_id: str, code: str, together: bool) -> bool:
    """Right, unless one of the parts loses the sample, or two of them together do."""
    parts = taxonomy.parts(code) or (code,)
    place = MIXED_IDS.index(clean_id) % 6
    lost = any(DESIGN.index(part) == place for part in parts if part in DESIGN)
    return not (lost or (together and len(parts) > 1 and place == 4))


@pytest.mark.parametrize("repeats", [1, 2])
def test_losses_that_add_up_do_not_interact(tmp_path: Path, repeats: int) -> None:
    made = interactions_of(tmp_path, lambda one, code: weak(one, code, False), rows(), repeats)
    assert set(made) == set(MIXED)
    for code, one in made.items():
        assert one.interaction.value == 0.0 and one.interaction.p == 1.0
        assert one.n == 48 and one.clean == 1.0
        assert one.loss == pytest.approx(sum(one.losses)) and one.losses == (8 / 48,) * len(one.parts)
        assert (one.p_holm is None) == (len(taxonomy.parts(code)) > 2)


def test_what_is_lost_only_together_is_the_interaction(tmp_path: Path) -> None:
    made = interactions_of(tmp_path, lambda one, code: weak(one, code, True), rows())
    for one in made.values():
        assert one.interaction.value == 8 / 48 and one.interaction.p == pytest.approx(2 * 0.5**8)
        assert one.interaction.low > 0
    pairs = [one for one in made.values() if len(one.parts) == 2]
    assert len(pairs) == 6 and all(one.p_holm == pytest.approx(6 * 2 * 0.5**8) for one in pairs)


def test_only_samples_with_all_four_rows_count(tmp_path: Path) -> None:
    asked = [one for one in rows() if not (one[1] == "CD" and MIXED_IDS.index(one[0]) < 12)]
    made = interactions_of(tmp_path, lambda one, code: weak(one, code, True), asked)
    assert made[PAIR].n == 36 and made[PAIR].interaction.value == 6 / 36
    assert made["mix__realistic_typos__same_name_D"].n == 48
    without = [one for one in rows() if one[1] != "CD"]
    assert PAIR not in interactions_of(tmp_path / "other", lambda one, code: True, without)


def test_a_mixture_that_costs_less_than_its_parts_has_a_negative_interaction(tmp_path: Path) -> None:
    made = interactions_of(
        tmp_path, lambda one, code: code == "clean" or MIXED_IDS.index(one) % 2 == 0, rows()
    )
    assert made[PAIR].interaction.value == -0.5 and made[PAIR].loss == 0.5


def test_interactions_and_cells_are_in_the_report(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", lambda one, code: weak(one, code, True), rows())
    report = api.report([str(run)])
    tables = {table.name: table for table in report.models[0].packs}
    shown = tables["mixed_interactions"]
    assert shown.rows[0][0] == "realistic_typos + same_name_D"
    value = shown.rows[0][6]
    assert isinstance(value, intervals.Interval) and value.value == 8 / 48
    cells = tables["mixed_cells"]
    assert len(cells.rows) == 16 and [row[1] for row in cells.rows] == [48] * 16
    assert "Interactions of perturbations" in page.html(report)
    few = write_run(tmp_path / "few", lambda one, code: True, rows((*DESIGN, *MIXED[:6], MIXED[-1])))
    names = [table.name for table in api.report([str(few)]).models[0].packs]
    assert names == ["mixed_interactions"], "a design that is not whole has no table of cells"


@pytest.fixture(scope="module")
def factorial(tmp_path_factory: pytest.TempPathFactory) -> list[schema.Sample]:
    """The factorial design over the starter samples."""
    from robustbench_tc.eval.inputs import load_samples as load

    folder = tmp_path_factory.mktemp("factorial") / "robustbench-tc"
    api.build(folder, profile="bundled", design="factorial")
    return list(load(str(folder)).rows)


@pytest.mark.parametrize(
    ("name", "together"), [("additive-weakness", False), ("super-additive-weakness", True)]
)
def test_the_agents_interactions_are_what_they_are_made_to_be(
    factorial: list[schema.Sample], tmp_path: Path, name: str, together: bool
) -> None:
    clean = {row.clean_id: row for row in factorial if row.type_code == "clean"}
    right = {(row.clean_id, row.type_code): is_right(name, row, clean[row.clean_id]) for row in factorial}
    said = judged(name, factorial, "prompt", lambda row: True)
    assert [one.correct for _, one in said] == list(right.values()), "scorers see what the agent does"
    made = interactions_of(tmp_path, lambda one, code: right[one, code], list(right))
    assert set(made) == set(MIXED)
    for code, one in made.items():
        whole = [c for c in clean if all((c, part) in right for part in (*taxonomy.parts(code), code))]
        both = sum(sample_class(c) == TOGETHER for c in whole) if together else 0
        assert one.n == len(whole) and one.interaction.value == both / len(whole)
