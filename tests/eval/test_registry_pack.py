"""The registry pack where it is scored: every agent's verdict is known, ghosts have a mode and a table."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from robustbench_tc import taxonomy
from robustbench_tc.builders.build import BuildSpec, prepare
from robustbench_tc.eval.agents import AGENTS, REGISTRY, AgentContext, is_right, reply
from robustbench_tc.eval.record import Mode
from robustbench_tc.eval.render import render_calls
from robustbench_tc.eval.score import judge
from robustbench_tc.eval.score.tools import in_the_old_type, scoring_tools
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.packs import Table, tables
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import Call, Sample, Verdict, dumps
from robustbench_tc.sql.query import Inputs, query

from .small import prediction
from .synthetic_runs import pack_input, write_run

CODES = tuple(kind.code for kind in taxonomy.types("all") if kind.pack == "registry")
GHOSTS = ("ghost_tool_1", "ghost_tool_2", "ghost_tool_3")
STATIC = tuple(kind.code for kind in taxonomy.types() if kind.static)


@pytest.fixture(scope="module")
def rows() -> list[tuple[Sample, Sample]]:
    """(row, clean row) of the pack and of the core's static types, over the starter samples."""
    codes = (*STATIC, *CODES)
    plan = prepare(BuildSpec(profile="bundled", codes=codes), accept=self_check).plan
    clean, context = {sample.clean_id: sample for sample in plan.samples}, plan.context()
    made = (row for code in (taxonomy.CLEAN, *codes) for row in plan.rows(code, context))
    return [(row, clean[row.clean_id]) for row in made if isinstance(row, Sample)]


def answered(row: Sample, clean: Sample, said: Sequence[Call] | str, mode: Mode = "prompt") -> Verdict:
    text = said if isinstance(said, str) else render_calls(said, row.output_format)
    native = None
    if mode == "fc" and not isinstance(said, str):
        text, calls = "", enumerate(said)
        native = [{"id": str(n), "name": c.name, "arguments": dumps(c.parameters)} for n, c in calls]
    return judge(
        prediction(row, mode=mode, raw_output=text, tool_calls=native, finish_reason="stop"),
        row,
        clean,
    )


FAILS = {
    "calls-ghosts": set(GHOSTS),
    "declines-ghosts": set[str](),
    "keeps-old-types": {"type_shift"},
    "skips-prerequisites": {"prerequisite"},
    "drowns-in-floods": {"flood_1", "flood_3", "flood_10", "flood_30"},
    "repairs-noisy-names": {"rot_slight", "rot_medium", "rot_heavy", "rot_union"},
}


@pytest.mark.parametrize("mode", ["prompt", "fc"])
@pytest.mark.parametrize("name", [*REGISTRY, "oracle"])
def test_an_agent_fails_on_its_rows_and_on_no_others(
    rows: list[tuple[Sample, Sample]], name: str, mode: Mode
) -> None:
    modes, failed = Counter[str](), Counter[str]()
    for row, clean in rows:
        verdict = answered(row, clean, reply(name, AgentContext(row, clean, False)), mode)
        assert verdict.correct == is_right(name, row, clean), row.id
        if not verdict.correct:
            failed[row.type_code] += 1
            modes[str(verdict.error_mode)] += 1
    there = Counter(row.type_code for row, _ in rows)
    if name == "repairs-noisy-names":  # rows whose first golden answer the noise leaves alone are right
        touched = Counter(
            r.type_code
            for r, c in rows
            if r.type_code in FAILS[name] and r.golden_answers != c.golden_answers
        )
        assert failed == touched == {"rot_slight": 11, "rot_medium": 5, "rot_heavy": 11, "rot_union": 13}
        return
    assert failed == {code: there[code] for code in FAILS.get(name, set()) if there[code]}
    if name == "calls-ghosts":
        assert set(modes) == {"ghost"}
    if name == "keeps-old-types":
        assert set(modes) == {"wrong_parameters"}


def test_every_agent_knows_its_verdict_on_the_packs_rows(rows: list[tuple[Sample, Sample]]) -> None:
    mine = [pair for pair in rows if pair[0].type_code in CODES]
    for name in AGENTS:
        for row, clean in mine:
            verdict = answered(row, clean, reply(name, AgentContext(row, clean, False)))
            assert verdict.correct == is_right(name, row, clean), (name, row.id)


def of(rows: list[tuple[Sample, Sample]], code: str, source: str = "bfcl_v3") -> tuple[Sample, Sample]:
    return next((r, c) for r, c in rows if r.type_code == code and r.source == source)


def ghost_of(row: Sample, clean: Sample) -> str:
    said = reply("calls-ghosts", AgentContext(row, clean, False))
    assert isinstance(said, tuple)
    return said[0].name


@pytest.mark.parametrize("code", GHOSTS)
def test_what_a_reply_makes_of_a_ghost(rows: list[tuple[Sample, Sample]], code: str) -> None:
    row, clean = of(rows, code)
    ghost = ghost_of(row, clean)
    called = answered(row, clean, [Call(ghost, {})])
    assert (called.correct, called.error_mode) == (False, "ghost") and "called_ghost" in called.flags
    other = answered(row, clean, [Call("yet_another", {})])
    assert (other.correct, other.error_mode) == (False, "ghost") and "called_ghost" not in other.flags
    asked = answered(row, clean, f"There is no tool {ghost}. Shall I use another one?")
    assert asked.correct and "asked" in asked.flags and "called_ghost" not in asked.flags
    assert answered(row, clean, f"I have no tool {ghost}, sorry.").correct
    gold = answered(row, clean, AgentContext(clean, clean, False).gold)
    assert gold.correct == (code != "ghost_tool_3")
    for broken in ("", '<tool_call>{"name": "'):
        assert not answered(row, clean, broken).correct


def test_a_name_that_nobody_registered_is_a_ghost_in_the_core_too(rows: list[tuple[Sample, Sample]]) -> None:
    row, clean = of(rows, "same_name_A")
    verdict = answered(row, clean, [Call("nobody_has_this", {})])
    assert (verdict.error_mode, verdict.flags) == ("ghost", ())


@pytest.mark.parametrize("source", ["bfcl_v3", "apibank", "toolalpaca"])
def test_the_old_type_is_wrong_whatever_the_scorer_forgives(
    rows: list[tuple[Sample, Sample]], source: str
) -> None:
    row, clean = of(rows, "type_shift", source)
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
        return MADE[code][place] not in ("called_ghost,called", "")
    return place >= {"flood_1": 1, "flood_3": 4, "flood_10": 10}.get(code, 0)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    floods = [(one, code) for code in ("flood_1", "flood_3") for one in CLEAN_IDS]
    floods += [(one, "flood_10") for one in CLEAN_IDS[:16]]
    kinds = [(one, code) for code in (taxonomy.CLEAN, *MADE) for one in CLEAN_IDS]

    def flags(clean_id: str, code: str) -> list[str]:
        found = MADE[code][int(clean_id.rpartition("_")[2])] if code in MADE else ""
        return [flag for flag in found.split(",") if flag]

    return write_run(tmp_path / "run", right, [*kinds, *floods], flags=flags)


def found(folder: Path) -> dict[str, Table]:
    return {table.name: table for table in tables(pack_input(folder))}


def test_the_tables_of_the_pack(run: Path) -> None:
    made = found(run)
    assert list(made) == ["registry_accuracy", "registry_floods", "registry_ghosts"]
    by_type = {row[0]: row for row in made["registry_accuracy"].rows}
    accuracy = by_type["flood_3"][3]
    assert isinstance(accuracy, Interval) and (by_type["flood_3"][2], accuracy.value) == (20, 0.8)
    ghosts = {row[0]: row[1:] for row in made["registry_ghosts"].rows}
    shares = {
        code: [cell.value for cell in cells[1:] if isinstance(cell, Interval)]
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
    rows = found(run)["registry_floods"].rows
    assert [(row[0], row[1], row[2]) for row in rows] == [
        (taxonomy.CLEAN, 0, 16),
        ("flood_1", 1, 16),
        ("flood_3", 3, 16),
        ("flood_10", 10, 16),
    ]
    values = [cell.value for row in rows for cell in row if isinstance(cell, Interval)]
    assert values == pytest.approx([1, 15 / 16, 12 / 16, 6 / 16])


def test_the_mart_has_the_tables_counts(run: Path) -> None:
    mart = query("ghosts", Inputs(runs=[str(run)])).to_pylist()
    counts = ("n", "gold", "asks", "declines", "ghost", "something_else")
    assert {row["type_code"]: [row[name] for name in counts] for row in mart} == {
        "ghost_tool_1": [20, 6, 3, 2, 8, 1],
        "ghost_tool_3": [20, 0, 5, 10, 5, 0],
    }
