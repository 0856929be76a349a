"""The packs offers and registry in a run: what verdicts, tables and marts tell."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from robustbench_tc import schema, taxonomy
from robustbench_tc.builders.build import BuildSpec, prepare
from robustbench_tc.eval.agents import POLICIES, AgentContext, blind, reply
from robustbench_tc.eval.prompts.calls import render_calls
from robustbench_tc.eval.score import judge
from robustbench_tc.eval.score.tools import in_the_old_type, scoring_tools
from robustbench_tc.eval.stats import intervals, packs, runs, summary
from robustbench_tc.eval.stats.packs.offers import DESIGNS, STATED, UNSTATED, tables
from robustbench_tc.schema import Call, Sample
from robustbench_tc.sql.query import Inputs, query

from .small import prediction, rows_of
from .synthetic_runs import Verdict, clean_ids, pack_input, write_run

CORE = (*STATED, *UNSTATED)
SWAPS = tuple(f"{code}_swap" for code in CORE)
OURS = (*SWAPS, *(code for codes in DESIGNS.values() for code in codes))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sample, ...]:
    return rows_of(tmp_path_factory.mktemp("release"), (*CORE, *OURS))


# --- tables -------------------------------------------------------------------------------------------------


def run_of(folder: Path, verdict: Verdict, samples: int = 20, repeats: int = 1, **record: object) -> Path:
    ids = clean_ids()[:samples]
    asked = [(one, code) for one in ids for code in (taxonomy.CLEAN, *CORE, *OURS)]
    return write_run(folder, verdict, asked, repeats=repeats, record=dict(record) or None)


def table(made: packs.Given, name: str) -> packs.Table:
    (found,) = (one for one in tables(made) if one.name == name)
    return found


def by_first(found: packs.Table) -> dict[str, dict[str, packs.Cell]]:
    return {str(row[0]): dict(zip(found.columns, row, strict=True)) for row in found.rows}


def value(cell: packs.Cell) -> float:
    assert isinstance(cell, intervals.Interval)
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
    assert isinstance(interval, intervals.Interval) and interval.n == 80


def test_a_type_without_its_counterpart_is_no_pair_and_repeats_are_paired_with_themselves(
    tmp_path: Path,
) -> None:
    full = run_of(
        tmp_path / "run",
        lambda one, code: None if code == "TD_swap" and one.endswith("_3") else True,
        repeats=2,
    )
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
    figures = msgspec.to_builtins(blind.counted(rows))
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


# --- The registry pack where it is scored: ghosts have a mode and a table


CODES = tuple(kind.code for kind in taxonomy.types("all") if kind.pack == "registry")
GHOSTS = ("ghost_tool_1", "ghost_tool_2", "ghost_tool_3")
STATIC = tuple(kind.code for kind in taxonomy.types() if kind.static)


@pytest.fixture(scope="module")
def registry_rows() -> list[tuple[Sample, Sample]]:
    """(row, clean row) of the pack and of the core's static types, over the starter samples."""
    codes = (*STATIC, *CODES)
    plan = prepare(BuildSpec(profile="bundled", codes=codes)).plan
    clean, context = {sample.clean_id: sample for sample in plan.samples}, plan.context()
    made = (row for code in (taxonomy.CLEAN, *codes) for row in plan.rows(code, context))
    return [(row, clean[row.clean_id]) for row in made if isinstance(row, Sample)]


def answered(row: Sample, clean: Sample, said: Sequence[Call] | str) -> schema.Verdict:
    text = said if isinstance(said, str) else render_calls(said, row.output_format)
    return judge(prediction(row, raw_output=text, finish_reason="stop"), row, clean)


def of(
    registry_rows: list[tuple[Sample, Sample]], code: str, source: str = "bfcl_v3"
) -> tuple[Sample, Sample]:
    return next((r, c) for r, c in registry_rows if r.type_code == code and r.source == source)


def ghost_of(row: Sample, clean: Sample) -> str:
    said = reply("calls-ghosts", AgentContext(row, clean, False))
    assert isinstance(said, tuple)
    return said[0].name


@pytest.mark.parametrize("code", GHOSTS)
def test_what_a_reply_makes_of_a_ghost(registry_rows: list[tuple[Sample, Sample]], code: str) -> None:
    row, clean = of(registry_rows, code)
    ghost = ghost_of(row, clean)
    called = answered(row, clean, [Call(ghost, {})])
    assert (called.correct, called.error_mode) == (False, "ghost") and "called_ghost" in called.flags
    other = answered(row, clean, [Call("yet_another", {})])
    assert (other.correct, other.error_mode) == (False, "ghost") and "called_ghost" not in other.flags
    asked = answered(row, clean, f"There is no tool {ghost}. Shall I use another one?")
    assert "asked" in asked.flags and "called_ghost" not in asked.flags
    declined = answered(row, clean, f"I have no tool {ghost}, sorry.")
    assert "refused" in declined.flags
    assert asked.correct == declined.correct == (code != "ghost_tool_1")
    assert answered(row, clean, AgentContext(clean, clean, False).gold).correct == (code != "ghost_tool_3")
    for broken in ("", '<tool_call>{"name": "'):
        assert not answered(row, clean, broken).correct


def test_a_name_that_nobody_registered_is_a_ghost_in_the_core_too(
    registry_rows: list[tuple[Sample, Sample]],
) -> None:
    row, clean = of(registry_rows, "same_name_A")
    verdict = answered(row, clean, [Call("nobody_has_this", {})])
    assert (verdict.error_mode, verdict.flags) == ("ghost", ())


@pytest.mark.parametrize("source", ["bfcl_v3", "apibank", "toolalpaca"])
def test_the_old_type_is_wrong_whatever_the_scorer_forgives(
    registry_rows: list[tuple[Sample, Sample]], source: str
) -> None:
    row, clean = of(registry_rows, "type_shift", source)
    scene = AgentContext(row, clean, False)
    kept = reply("keeps-old-types", scene)
    assert isinstance(kept, tuple)
    verdict = answered(row, clean, kept)
    assert (verdict.correct, verdict.reason) in ((False, "wrong_type"), (False, "wrong_value"))
    assert scoring_tools(row, clean) == row.tools
    assert in_the_old_type(kept, row, clean) and not in_the_old_type(scene.gold, row, clean)
    assert not in_the_old_type(kept, clean, clean)
    assert not in_the_old_type(kept, msgspec.structs.replace(row, tools=row.tools[:-1]), clean)


# --- tables -----------------------------------------------------------------------------------------------

CLEAN_IDS = [f"bfcl_v3__{n}" for n in range(20)]
MADE = {
    "ghost_tool_1": ["called_ghost,called"] * 8
    + ["called"] * 6
    + ["asked"] * 3
    + ["refused", "answered"]
    + [""],
    "ghost_tool_3": ["called_ghost,called"] * 5 + ["asked"] * 5 + ["refused"] * 10,
}


def right(clean_id: str, code: str) -> bool:
    place = int(clean_id.rpartition("_")[2])
    if code in MADE:
        return MADE[code][place] == "called" or (
            code != "ghost_tool_1" and MADE[code][place] not in ("called_ghost,called", "")
        )
    return place >= {"flood_1": 1, "flood_3": 4, "flood_10": 10}.get(code, 0)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    floods = [(one, code) for code in ("flood_1", "flood_3") for one in CLEAN_IDS]
    floods += [(one, "flood_10") for one in CLEAN_IDS[:16]]
    kinds = [(one, code) for code in (taxonomy.CLEAN, "named_tool", *MADE) for one in CLEAN_IDS]

    def flags(clean_id: str, code: str) -> list[str]:
        found = MADE[code][int(clean_id.rpartition("_")[2])] if code in MADE else ""
        return [flag for flag in found.split(",") if flag]

    return write_run(tmp_path / "run", right, [*kinds, *floods], flags=flags)


def found(folder: Path) -> dict[str, packs.Table]:
    return {table.name: table for table in packs.tables(pack_input(folder))}


def test_the_tables_of_the_pack(run: Path) -> None:
    made = found(run)
    assert list(made) == ["registry_accuracy", "registry_floods", "registry_ghosts", "registry_balanced"]
    [both] = made["registry_balanced"].rows
    assert both[:3] == ("ghost_tool_3", "named_tool", "20*") and both[4:] == (0.75, 1.0, 1.0)
    assert isinstance(both[3], intervals.Interval) and both[3].value == 0.875
    by_type = {row[0]: row for row in made["registry_accuracy"].rows}
    accuracy = by_type["flood_3"][3]
    assert isinstance(accuracy, intervals.Interval) and (by_type["flood_3"][2], accuracy.value) == (20, 0.8)
    ghosts = {row[0]: row[1:] for row in made["registry_ghosts"].rows}
    shares = {
        code: [cell.value for cell in cells[1:] if isinstance(cell, intervals.Interval)]
        for code, cells in ghosts.items()
    }
    assert shares == {
        "ghost_tool_1": pytest.approx([0.3, 0.15, 0.1, 0.4, 0.05]),
        "ghost_tool_3": pytest.approx([0, 0.25, 0.5, 0.25, 0]),
    }
    assert [cells[0] for cells in ghosts.values()] == [20, 20]
    for table in made.values():
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_floods_are_compared_over_the_samples_that_have_every_dose(run: Path) -> None:
    registry_rows = found(run)["registry_floods"].rows
    assert [(row[0], row[1], row[2]) for row in registry_rows] == [
        (taxonomy.CLEAN, 0, 16),
        ("flood_1", 1, 16),
        ("flood_3", 3, 16),
        ("flood_10", 10, 16),
    ]
    values = [cell.value for row in registry_rows for cell in row if isinstance(cell, intervals.Interval)]
    assert values == pytest.approx([1, 15 / 16, 12 / 16, 6 / 16])


def test_the_mart_has_the_tables_counts(run: Path) -> None:
    mart = query("ghosts", Inputs(runs=[str(run)])).to_pylist()
    counts = ("n", "gold", "asks", "declines", "ghost", "something_else")
    assert {row["type_code"]: [row[name] for name in counts] for row in mart} == {
        "ghost_tool_1": [20, 6, 3, 2, 8, 1],
        "ghost_tool_3": [20, 0, 5, 10, 5, 0],
    }


@pytest.mark.parametrize("asked", [20, 12, 0])
def test_a_row_without_its_control_says_nothing(tmp_path: Path, asked: int) -> None:
    """Always declining is one half of what has a control; without one it has no value, and a line says so."""
    kinds = [(one, code) for code in (taxonomy.CLEAN, "gold_removed") for one in CLEAN_IDS]
    kinds += [(one, "call_due") for one in CLEAN_IDS[:asked]]
    folder = write_run(tmp_path / "run", lambda clean_id, code: code == "gold_removed", kinds)
    [outcomes] = runs.align([runs.read_run(folder)])
    made = summary.summarise(outcomes, allow_missing=True)
    line = outcomes.counts()["gold_removed"]
    assert (line.correct, line.n, line.n + line.missing) == (asked, 2 * asked, 40)
    if asked:
        assert made.types["gold_removed"].accuracy.value == 0.5
    else:
        assert "gold_removed" not in made.types
        assert "gold_removed: no value, as its control call_due was not asked" in made.gaps
