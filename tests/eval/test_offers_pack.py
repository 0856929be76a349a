"""The pack `offers` in a run: agents that fail in one design, tables and a mart that tell them apart."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from pathlib import Path

import msgspec
import pytest

from robustbench_tc import taxonomy
from robustbench_tc.eval import needs_no_reading
from robustbench_tc.eval.agents import POLICIES, is_right
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.packs import Cell, Given, Table
from robustbench_tc.eval.stats.packs.offers import DESIGNS, STATED, UNSTATED, tables
from robustbench_tc.schema import Sample
from robustbench_tc.sql.query import Inputs, query

from .small import rows_of
from .synthetic_runs import Verdict, clean_ids, pack_input, write_run
from .test_agents import MODES, bench_of, verdicts

CORE = (*STATED, *UNSTATED)
SWAPS = tuple(f"{code}_swap" for code in CORE)
OURS = (*SWAPS, *(code for codes in DESIGNS.values() for code in codes))
FAILS = {
    "keeps-to-the-core-offer": SWAPS,
    "ignores-the-wish": DESIGNS["inv"],
    "misconverts-units": DESIGNS["unit"],
    "overlooks-what-is-missing": DESIGNS["moot"],
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sample, ...]:
    return rows_of(tmp_path_factory.mktemp("release"), (*CORE, *OURS))


# --- agents -------------------------------------------------------------------------------------------------


def test_an_agent_fails_in_exactly_its_rows(rows: tuple[Sample, ...], subtests: pytest.Subtests) -> None:
    for mode, name in product(MODES, [*FAILS, "compares-bare-numbers", "oracle", *POLICIES]):
        with subtests.test(mode=mode, name=name):
            found = verdicts(name, rows, mode)
            anchors = bench_of(rows).anchors
            assert [v.correct for v in found] == [is_right(name, row, anchors[row.id]) for row in rows]
            wrong = {row.id for row, verdict in zip(rows, found, strict=True) if not verdict.correct}
            if name in FAILS or name == "oracle":
                assert wrong == {row.id for row in rows if row.type_code in FAILS.get(name, ())}
                assert {v.error_mode for v in found if not v.correct} <= {"name_bias"}
            if name == "compares-bare-numbers":
                units = [row.id for row in rows if row.type_code in DESIGNS["unit"]]
                assert wrong < set(units) and Fraction(len(wrong), len(units)) == Fraction(1, 2)


# --- tables -------------------------------------------------------------------------------------------------


def run_of(folder: Path, verdict: Verdict, samples: int = 20, repeats: int = 1, **record: object) -> Path:
    ids = clean_ids()[:samples]
    asked = [(one, code) for one in ids for code in (taxonomy.CLEAN, *CORE, *OURS)]
    return write_run(folder, verdict, asked, repeats=repeats, record=dict(record) or None)


def table(made: Given, name: str) -> Table:
    (found,) = (one for one in tables(made) if one.name == name)
    return found


def by_first(found: Table) -> dict[str, dict[str, Cell]]:
    return {str(row[0]): dict(zip(found.columns, row, strict=True)) for row in found.rows}


def value(cell: Cell) -> float:
    assert isinstance(cell, Interval)
    assert cell.low <= cell.value <= cell.high
    return cell.value


MODELS: Mapping[str, tuple[Callable[[str, str], bool], tuple[float, float, float, int, int]]] = {
    "reads": (lambda one, code: True, (1.0, 1.0, 1.0, 0, 0)),
    "names": (lambda one, code: not code.endswith("_swap"), (1.0, 0.0, 0.0, 80, 0)),
    "half": (lambda one, code: int(one.rpartition("_")[2]) % 2 == 0, (0.5, 0.5, 0.5, 0, 0)),
    "other": (lambda one, code: code.endswith("_swap"), (0.0, 1.0, 0.0, 0, 80)),
}


@pytest.mark.parametrize("name", MODELS)
def test_who_reads_the_offer_is_right_on_both_rows(tmp_path: Path, name: str) -> None:
    verdict, (core, swapped, reads, core_only, swapped_only) = MODELS[name]
    found = by_first(table(pack_input(run_of(tmp_path / "run", verdict)), "reads_the_offer"))
    assert list(found) == ["CD, TD and NT", *STATED, "AB (no preference stated)", *UNSTATED]
    line = found["CD, TD and NT"]
    assert line["pairs"] == 80 and found["AB (no preference stated)"]["pairs"] == 40
    assert [value(line[c]) for c in ("core row", "swapped row", "both: reads the offer")] == [
        core,
        swapped,
        reads,
    ]
    assert (line["core only"], line["swapped only"]) == (core_only, swapped_only)
    assert line["neither"] == (40 if name == "half" else 0)
    interval = line["both: reads the offer"]
    assert isinstance(interval, Interval) and interval.n == 80


def test_a_type_without_its_counterpart_is_no_pair_and_repeats_are_paired_with_themselves(
    tmp_path: Path,
) -> None:
    def holes(one: str, code: str) -> bool | None:
        return None if code == "TD_swap" and one.endswith("_3") else True

    full = run_of(tmp_path / "run", holes, repeats=2)
    lines = by_first(table(pack_input(full), "reads_the_offer"))
    assert "TD" not in lines and lines["CD, TD and NT"]["pairs"] == 3 * 20 * 2
    lines = by_first(table(pack_input(full, allow_missing=True), "reads_the_offer"))
    assert lines["TD"]["pairs"] == 19 * 2


def test_a_run_without_swapped_rows_has_no_such_table(tmp_path: Path) -> None:
    asked = [(one, code) for one in clean_ids()[:5] for code in (taxonomy.CLEAN, "CD", "CD_inv")]
    made = pack_input(write_run(tmp_path / "run", lambda one, code: True, asked))
    assert [one.name for one in tables(made)] == ["offers_balanced"]


def test_over_both_types_of_a_design_one_quality_is_half(tmp_path: Path) -> None:
    made = pack_input(run_of(tmp_path / "run", lambda one, code: code != "TD_inv"))
    found = by_first(table(made, "offers_balanced"))
    both = found["inv: CD_inv, TD_inv"]
    assert value(both["accuracy"]) == 0.5 and value(both["right on both"]) == 0.0
    assert (both["rows"], both["samples with both"]) == (40, 20)
    assert value(found["CD_inv"]["accuracy"]) == 1.0 and value(found["TD_inv"]["accuracy"]) == 0.0
    assert value(found["unit: CD_unit, TD_unit"]["right on both"]) == 1.0


def test_the_rules_stand_beside_the_run(tmp_path: Path, rows: tuple[Sample, ...]) -> None:
    figures = msgspec.to_builtins(needs_no_reading.counted(rows))
    folder = run_of(tmp_path / "run", lambda one, code: True, needs_no_reading=figures)
    found = by_first(table(pack_input(folder), "offers_rules"))
    assert list(found) == ["model-3b", *POLICIES]
    assert value(found["model-3b"]["core and swapped"]) == 1.0
    best = found["picks-best-offer"]
    assert [best[c] for c in ("core and swapped", "inv", "unit", "moot")] == [1.0, 0.5, 1.0, 0.5]
    for name in POLICIES:
        assert found[name]["inv"] == 0.5, name
    assert "offers_rules" not in {
        one.name for one in tables(pack_input(run_of(tmp_path / "b", lambda one, code: True)))
    }


# --- the mart -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_the_mart_counts_what_the_table_counts(tmp_path: Path, name: str) -> None:
    folder = run_of(tmp_path / "run", MODELS[name][0], repeats=2)
    lines = by_first(table(pack_input(folder), "reads_the_offer"))
    mart = query("reads_the_offer", Inputs(runs=[str(folder)])).to_pylist()
    assert [row["type_code"] for row in mart] == list(CORE)
    for row in mart:
        line = lines[row["type_code"]]
        assert row["pairs"] == line["pairs"] == 40
        assert row["share"] == value(line["both: reads the offer"]) == row["reads_the_offer"] / 40
        assert (row["core_only"], row["swapped_only"], row["neither"]) == (
            line["core only"],
            line["swapped only"],
            line["neither"],
        )
        assert row["preference_stated"] == (row["type_code"] in STATED)
