"""Live rows whose registry has more tools: what comes in, what it does, and which tasks have no row."""

import asyncio
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from robustbench_tc import api, live_types
from robustbench_tc.builders.benchmark import RobustBenchTCLive
from robustbench_tc.builders.live.build import LITE_KINDS, LiveSpec, Prepared, prepared, rows_of
from robustbench_tc.builders.live.registry import TAKES_GOLD, registered
from robustbench_tc.eval.inputs import load_live
from robustbench_tc.eval.live.inputs import mistake
from robustbench_tc.live_types import registry_types, type_code
from robustbench_tc.schema import Call, LiveRow, LiveTool, Turn
from robustbench_tc.schema.running import RESULT_FAULTS, UNMADE, RunningKind
from robustbench_tc.worlds import find
from robustbench_tc.worlds.faults import FaultedWorld, meant
from robustbench_tc.worlds.handle import Start
from robustbench_tc.worlds.host import Worlds
from robustbench_tc.worlds.same_state import state_hash

from ...conftest import ROOT
from ...eval.live import purses
from ...refusals import refuses

PURSE = ROOT / "tests" / "worlds" / "purse.py"
RUNNING = get_args(RunningKind)
FLOODS = {"flood_1": 1, "flood_3": 3, "flood_10": 10}

SOME = 7
"""Every so many rows are carried out: each type's, and each task's, are among them."""


@pytest.fixture(scope="module")
def made() -> Prepared:
    """Every registry type in the two bundled worlds."""
    return prepared(LiveSpec(types=registry_types()), probe=False)


@pytest.fixture(scope="module")
def rows(made: Prepared) -> list[LiveRow]:
    return [row for name in registry_types() for row in rows_of(type_code(name), made)]


def _new(row: LiveRow) -> list[LiveTool]:
    return [tool for tool in row.tools if tool.distractor]


def _gold(row: LiveRow) -> list[Call]:
    return [call for calls in row.golden_calls for call in calls]


async def _world(row: LiveRow) -> FaultedWorld:
    handle = await Worlds().open(find.find(row.world), msgspec.convert(row.initial_state, Start))
    return FaultedWorld(handle, row.tools, row.fault)


def test_the_types_are_those_that_put_tools_in_and_need_no_texts() -> None:
    assert registry_types() == (*(f"same_name_{one}" for one in "ABCDE"), *FLOODS, "flood_30")
    assert live_types.type_codes()[:1] == ("live_transient_timeout",)
    assert live_types.type_codes()[-1] == "live_flood_30"


def test_every_bundled_task_has_a_row_of_each_type_but_the_flood_that_has_too_few_donors(
    made: Prepared,
) -> None:
    for name in registry_types():
        found = list(made[type_code(name)].values())
        if name == "flood_30":
            assert found == ["too_few_donors"] * 40
        else:
            assert sum(isinstance(one, LiveRow) for one in found) == 40


def test_a_row_is_its_clean_row_with_more_tools(made: Prepared, rows: list[LiveRow]) -> None:
    clean = {row.clean_id: row for row in rows_of("clean", made)}
    for row in rows:
        plain = clean[row.clean_id]
        own = tuple(tool for tool in row.tools if not tool.distractor)
        assert (
            msgspec.structs.replace(row, id=plain.id, type_code="clean", tools=own) == plain and not row.clean
        )
        assert row.id == f"{row.clean_id}::{row.type_code}"
        names = [tool.name for tool in _new(row)]
        flood = FLOODS.get(row.type_code.removeprefix("live_"))
        if flood is None:
            assert names == [_gold(row)[0].name]
        else:
            assert len(set(names)) == flood and not {tool.name for tool in own} & set(names)


def test_gold_ends_as_in_the_clean_row(rows: list[LiveRow]) -> None:
    async def end(row: LiveRow) -> str:
        world = await _world(row)
        for call in _gold(row):
            step = await world.call(call.name, call.parameters)
            assert step.executed == 1
        found = state_hash((await world.handle.snapshot()).state)
        await world.aclose()
        return found

    for row in rows[::SOME]:
        assert asyncio.run(end(row)) == row.gold_state_sha256


FITTING = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
"""An argument of each type but text."""


def test_what_came_in_answers_with_an_error_and_changes_nothing(rows: list[LiveRow]) -> None:
    async def one(row: LiveRow) -> int:
        world, reached = await _world(row), 0
        before = await world.handle.snapshot()
        for tool in _new(row):
            types = {name: tool.plain.properties[name].get("type") for name in tool.plain.required}
            arguments = {name: FITTING.get(kind, "x") for name, kind in types.items()}
            if meant(row.tools, tool.name, arguments) == tool:
                step = await world.call(tool.name, arguments)
                assert (step.text, step.executed) == ('{"error": "this tool is not available"}', 0)
                reached += 1
        assert await world.handle.snapshot() == before
        await world.aclose()
        return reached

    reached = [asyncio.run(one(row)) for row in rows[::SOME]]
    # Of some namesakes every call fits the world's tool too.
    assert sum(map(bool, reached)) > 0.9 * len(reached)


LOOSE = '''
from robustbench_tc.worlds.base import Task, Turn, World, call, write


class Loose(World):
    """Notes."""

    name = "loose"

    @write()
    def note(self, text: str = "nothing") -> str:
        """Keeps a note."""
        self.data["notes"].append(text)
        return "kept"

    @write()
    def clear(self, sure: bool) -> str:
        """Throws the notes away."""
        self.data["notes"] = []
        return "cleared"


WORLD = Loose
TASKS = [
    Task("loose_1", {"notes": []},
         [Turn("Note 'tea'.", [call("note", text="tea")]), Turn("Again, without a text.", [call("note")])]),
]
'''


def test_a_tool_that_would_take_a_gold_call_of_a_later_turn_makes_no_row(tmp_path: Path) -> None:
    """`note()` fits a namesake without parameters: where that stands first there is no row."""
    (tmp_path / "loose.py").write_text(LOOSE)
    clean = [*rows_of("clean", prepared(LiveSpec(worlds=(str(tmp_path / "loose.py"),)), probe=False))]
    found = [registered(clean, "same_name_A", seed) for seed in range(12)]
    firsts = [one["loose_1"] for one in found]
    kept = [one for one in firsts if isinstance(one, LiveRow)]
    assert len(kept) < 12 and {one for one in firsts if isinstance(one, str)} == {TAKES_GOLD}
    assert kept and all(not row.tools[0].distractor for row in kept)


def test_a_namesake_of_a_tool_that_comes_later_comes_with_it(made: Prepared) -> None:
    clean = next(row for row in rows_of("clean", made) if len(row.turns) > 1)
    late = _gold(clean)[0].name
    turns = (clean.turns[0], Turn(clean.turns[1].messages, (late,)), *clean.turns[2:])
    golden = ((), (*clean.golden_calls[0], *clean.golden_calls[1]), *clean.golden_calls[2:])
    row = registered([msgspec.structs.replace(clean, turns=turns, golden_calls=golden)], "same_name_C", 0)[
        clean.clean_id
    ]
    assert isinstance(row, LiveRow)
    assert [sum(tool.name == late for tool in row.offered(turn)) for turn in (0, 1)] == [0, 2]
    request = purses.opening(row, "fc")
    assert late not in [one["function"]["name"] for one in request.tools or ()]


def test_every_fault_of_a_running_system_has_its_text_or_its_function() -> None:
    assert {*RUNNING} == {*UNMADE, *RESULT_FAULTS} and len(RUNNING) == len(UNMADE) + len(RESULT_FAULTS)


def test_both_of_one_name_stand_in_a_request(rows: list[LiveRow]) -> None:
    row = next(row for row in rows if row.type_code == "live_same_name_D")
    name = _new(row)[0].name
    tools = [one["function"]["name"] for one in purses.opening(row, "fc").tools or ()]
    assert tools.count(name) == 2
    system = purses.opening(row, "prompt").messages[0]["content"]
    assert system.count(f'{{"name":"{name}"') == 2


def test_the_page_has_the_types_and_the_reason() -> None:
    page = (ROOT / "docs" / "live-data.md").read_text("utf-8")
    assert f"| `{TAKES_GOLD}` |" in page
    between = page.split("## Registry types")[1].split("\n## ")[0]
    assert [name for name in registry_types() if f"`{name}`" not in between] == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gold_removed", "does more than"),
        ("CD", "does more than"),
        ("redundant", "needs written texts"),
        ("silent_no_op", "--kinds"),
        ("latency", "is a fault of doors"),
        ("flod_1", "does not exist"),
    ],
)
def test_a_type_that_cannot_be_used_is_refused_with_the_list(name: str, why: str) -> None:
    refuses(rf"{why}.*same_name_A, .*flood_30", prepared, LiveSpec(types=("flood_1", name)))


def test_faults_of_running_systems_are_built_by_name() -> None:
    spec = LiveSpec(worlds=(str(PURSE),), kinds=("silent_no_op",))
    plain = prepared(spec)
    named = prepared(msgspec.structs.replace(spec, types=("live_outage", *RUNNING[1:])))
    clean = {row.clean_id: row for row in rows_of("clean", plain)}
    assert [*rows_of("live_silent_no_op", named)] == [*rows_of("live_silent_no_op", plain)]
    for kind in RUNNING:
        rows = [*rows_of(type_code(kind), named)]
        assert rows and all(mistake(row, clean[row.clean_id]) is None for row in rows)
        if kind in RESULT_FAULTS:
            assert {row.position for row in rows} == {"used_read"}
        assert kind != "dropped_tool" or {row.label for row in rows} == {"report"}
    assert not {*map(type_code, RUNNING)} & {type_code(kind) for kind in LiveSpec().checked_kinds()}
    assert not set(RUNNING) & set(live_types.FAMILIES["all"])
    lite = LiveSpec(profile="lite", types=("outage",)).checked_kinds()
    assert lite == (*LITE_KINDS, "outage")


def test_a_build_loads_as_it_was_made(tmp_path: Path, made: Prepared) -> None:
    out = tmp_path / "robustbench-tc-live"
    report = api.build_live(out, kinds=("silent_no_op",), types=("live_flood_3", "same_name_A", "flood_30"))
    assert report.types == ("same_name_A", "flood_3", "flood_30")
    assert report.configs == ("tasks", "live_silent_no_op", "live_same_name_A", "live_flood_3")
    assert report.reasons == {"live_flood_30": {"too_few_donors": 40}}
    data = load_live(str(out))
    for code in ("live_same_name_A", "live_flood_3"):
        found = {row.clean_id: row for row in data.rows if row.type_code == code}
        assert found == made[code]
    builder = RobustBenchTCLive(config_name="live_flood_3", cache_dir=str(tmp_path / "cache"))
    builder.download_and_prepare()
    assert [row["id"] for row in builder.as_dataset(split="test")] == [
        row.id for row in data.rows if row.type_code == "live_flood_3"
    ]
    card = (out / "README.md").read_text()
    assert (
        "| live_same_name_A | orders | 20 | | |" in card and "| live_flood_30 | too_few_donors | 40 |" in card
    )
