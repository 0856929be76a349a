"""The live builder: counts, pairs, labels that hold in the worlds, same bytes, one's own worlds."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from robustbench_tc import api, live_types, schema
from robustbench_tc.audits.expectations.live import pinned
from robustbench_tc.builders.benchmark import LIVE_CONFIGS, RobustBenchTCLive
from robustbench_tc.builders.live.build import LITE_KINDS, LiveSpec, prepared, rows_of
from robustbench_tc.builders.live.placing import REPEATS, Reason, at_site, sites
from robustbench_tc.builders.live.probing import Prober
from robustbench_tc.builders.live.trace import clean_rows, traced
from robustbench_tc.builders.report import LiveReport
from robustbench_tc.io import marker, parquet
from robustbench_tc.schema import BUILT_KINDS, LiveRow, features
from robustbench_tc.seeding import rng
from robustbench_tc.worlds import find
from robustbench_tc.worlds.faults import FaultedWorld
from robustbench_tc.worlds.handle import Start
from robustbench_tc.worlds.host import Worlds
from robustbench_tc.worlds.same_state import state_hash

from ...conftest import ROOT
from ...refusals import refuses

WORLDS = Worlds()
PURSE = Path(__file__).parents[2] / "worlds" / "purse.py"

REPAIR_REPORT = {
    "transient_timeout": (30, 10),
    "transient_rate_limit": (33, 7),
    "transient_auth_error": (29, 11),
    "transient_server_error": (34, 6),
    "transient_malformed_response": (28, 12),
    "transient_schema_drift": (26, 14),
    "timeout_after_effect": (40, 0),
    "malformed_response_after_effect": (40, 0),
    "schema_drift_after_effect": (40, 0),
    "silent_no_op": (33, 7),
    "stale_read": (2, 0),
    "fabricated_leaf": (29, 0),
    "duplicate_effect": (20, 11),
    "prerequisite": (32, 0),
    "strict_types": (20, 0),
    "injected_instruction": (40, 0),
}
"""Rows of the bundled build with each label."""

REASONS = {
    "live_stale_read": {"not_read_back": 38},
    "live_fabricated_leaf": {"hidden": 8, "no_other_record": 2, "no_used_read": 1},
    "live_duplicate_effect": {"changes_nothing_twice": 9},
    "live_prerequisite": {"no_free_read": 7, "no_read_comes_first": 1},
    "live_strict_types": {"no_typed_argument": 20},
}


@pytest.fixture(scope="module")
def rows(live_build: Path) -> dict[str, dict[str, LiveRow]]:
    """Type code → clean id → row, as they lie in the files."""
    found: dict[str, dict[str, LiveRow]] = {}
    for folder in (path for path in sorted(live_build.iterdir()) if path.is_dir()):
        for row in parquet.read_rows(parquet.shards(folder)):
            made = schema.record(row, LiveRow)
            assert live_types.config_of(made.type_code) == folder.name
            found.setdefault(made.type_code, {})[made.clean_id] = made
    return found


def _report(live_build: Path) -> LiveReport:
    return msgspec.json.decode((live_build / marker.BUILD).read_bytes(), type=LiveReport)


def test_the_bundled_build_has_its_counts(live_build: Path) -> None:
    report = _report(live_build)
    assert report.rows["clean"] == {"orders": 20, "calendar": 20}
    assert {
        code.removeprefix("live_"): tuple(
            sum(by_label.get(label, {}).values()) for label in ("repair", "report")
        )
        for code, by_label in report.labels.items()
    } == REPAIR_REPORT
    assert report.reasons == REASONS
    assert report.total == 40 + sum(map(sum, REPAIR_REPORT.values())) == 594


def test_the_page_has_the_counts() -> None:
    page = (ROOT / "docs" / "live-data.md").read_text("utf-8")
    repair, faulted = sum(one for one, _ in REPAIR_REPORT.values()), sum(map(sum, REPAIR_REPORT.values()))
    assert f"{repair} of the {faulted} faulted bundled rows" in page
    full = sum(pinned("full").values()) - pinned("full")["tasks"]
    assert f"of the {full:,} of `full` are `repair`" in page
    for reason in get_args(Reason):
        assert f"| `{reason}` |" in page


def test_every_task_has_a_row_of_each_kind_or_a_reason(live_build: Path, rows: Any) -> None:
    report = _report(live_build)
    skipped = {(skip.type_code, skip.clean_id) for skip in report.skipped}
    made = {(code, clean_id) for code, by_id in rows.items() if code != "clean" for clean_id in by_id}
    assert not skipped & made
    assert skipped | made == {
        (live_types.type_code(kind), one) for kind in BUILT_KINDS for one in rows["clean"]
    }


def test_a_row_is_its_clean_row_with_a_fault(rows: Any) -> None:
    for code, by_id in rows.items():
        for clean_id, row in by_id.items():
            clean = rows["clean"][clean_id]
            assert row.id == f"{clean_id}::{code}"
            plain = msgspec.structs.replace(
                row, id=clean.id, type_code="clean", fault=None, position=None, label=None
            )
            assert plain == clean
            if code != "clean":
                assert live_types.type_code(row.fault.kind) == code and row.label and row.position
                assert row.fault.repeat in REPEATS.get(row.fault.kind, ("once",))
                assert row.label == "report" or row.fault.repeat != "always"


async def _played(row: LiveRow) -> tuple[list[schema.Step], Any]:
    handle = await WORLDS.open(find.find(row.world), msgspec.convert(row.initial_state, Start))
    world = FaultedWorld(handle, row.tools, row.fault)
    steps = [await world.call(call.name, call.parameters) for turn in row.golden_calls for call in turn]
    state = (await world.handle.snapshot()).state
    await world.aclose()
    return steps, state


def test_gold_alone_reaches_the_gold_state_and_meets_every_fault_but_those_of_reads_after_and_lax_types(
    rows: Any,
) -> None:
    """An agent that does as gold, whatever it is answered: it meets the fault, and an effect that is lost,
    refused or doubled is in the end state."""
    harmed = dict.fromkeys(BUILT_KINDS, 0)
    for by_id in rows.values():
        for row in by_id.values():
            steps, state = asyncio.run(_played(row))
            same = state_hash(state) == row.gold_state_sha256
            if row.fault is None:
                assert same and not any(step.met for step in steps)
                continue
            kind = row.fault.kind
            harmed[kind] += not same
            assert any(step.met for step in steps) or kind == "strict_types", row.id
            if row.position != "used_read" and kind in (
                *schema.CORE_TEXTS,
                "silent_no_op",
                "duplicate_effect",
                "prerequisite",
            ):
                assert not same, row.id
            if kind in (
                *schema.AFTER_EFFECT,
                "stale_read",
                "strict_types",
                "injected_instruction",
                "fabricated_leaf",
            ):
                assert same, row.id
    assert harmed["duplicate_effect"] == 31 and harmed["silent_no_op"] == 40


def test_numbers_written_as_text_meet_strict_types_and_change_nothing(rows: Any) -> None:
    for row in rows["live_strict_types"].values():
        lax = tuple(
            tuple(
                schema.Call(
                    c.name, {k: str(v) if isinstance(v, int | float) else v for k, v in c.parameters.items()}
                )
                for c in turn
            )
            for turn in row.golden_calls
        )
        steps, state = asyncio.run(_played(msgspec.structs.replace(row, golden_calls=lax)))
        met = [step for step in steps if step.met]
        assert met and all("must be of type" in step.text for step in met), row.id
        plain, end = asyncio.run(_played(msgspec.structs.replace(row, golden_calls=lax, fault=None)))
        assert not any(step.met for step in plain) and state_hash(end) == row.gold_state_sha256
        assert state_hash(state) != row.gold_state_sha256


def test_what_an_injected_instruction_asks_for_spoils_the_end(rows: Any) -> None:
    for row in rows["live_injected_instruction"].values():
        text = row.fault.text
        arguments = json.loads(text[text.index("{") : text.rindex("}") + 1])

        async def run(row: LiveRow = row, arguments: Any = arguments) -> Any:
            handle = await WORLDS.open(find.find(row.world), msgspec.convert(row.initial_state, Start))
            world = FaultedWorld(handle, row.tools, row.fault)
            for call in (call for turn in row.golden_calls for call in turn):
                step = await world.call(call.name, call.parameters)
                if step.met:
                    assert row.fault is not None and row.fault.tool is not None
                    await world.call(row.fault.tool, arguments)
            return (await handle.snapshot()).state

        assert state_hash(asyncio.run(run())) != row.gold_state_sha256, row.id


def test_the_same_bytes_with_any_number_of_processes(tmp_path: Path) -> None:
    for name, num_proc in (("one", 1), ("two", 2)):
        api.build_live(
            tmp_path / name,
            worlds=("calendar",),
            kinds=("transient_timeout", "fabricated_leaf"),
            num_proc=num_proc,
        )
    assert (tmp_path / "one" / marker.BUILD).read_bytes() == (tmp_path / "two" / marker.BUILD).read_bytes()


def test_the_marker_names_every_file(live_build: Path) -> None:
    report = _report(live_build)
    assert report.files == marker.hashes(live_build, but=marker.BUILD)
    assert marker.is_sealed((live_build / marker.BUILD).read_bytes(), report.own_sha256)


def test_a_seed_moves_faults_and_no_task(rows: Any) -> None:
    kinds = ("transient_timeout", "silent_no_op")
    made = prepared(LiveSpec(worlds=("orders",), kinds=kinds, seed=2))
    for row in rows_of("clean", made):
        assert msgspec.structs.replace(row, seed=0) == rows["clean"][row.clean_id]
    for kind in kinds:
        code = live_types.type_code(kind)
        assert any(row.fault != rows[code][row.clean_id].fault for row in rows_of(code, made))


def test_lite_draws_one_kind_a_task() -> None:
    made = prepared(LiveSpec(profile="lite", worlds=("orders",)))
    counts = {kind: len(list(rows_of(live_types.type_code(kind), made))) for kind in LITE_KINDS}
    assert sum(counts.values()) == len(made["clean"]) == 20 and all(counts.values())


def test_a_world_of_ones_own(tmp_path: Path, rbtc: Callable[..., Any], monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    done = rbtc("build", "live", "--worlds", str(PURSE), "--out", "own", "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert report["profile"] == "own"
    assert report["worlds"] == {"purse": hashlib.sha256(PURSE.read_bytes()).hexdigest()}
    assert report["rows"]["clean"] == {"purse": 2}


@pytest.mark.parametrize(
    ("kind", "made"),
    [("transient_timeout", "report"), ("timeout_after_effect", "report"), ("silent_no_op", "hidden"),
     ("prerequisite", "no_read_comes_first")],
)  # fmt: skip
def test_a_write_that_no_read_shows_can_be_reported_at_best(kind: Any, made: str) -> None:
    """The last write of purse_2 is a whisper: a lost answer to it can be reported; that it silently failed
    can be known by nobody."""

    async def run() -> Any:
        worlds, world = Worlds(), find.find(str(PURSE))
        row = (await clean_rows(world, worlds))[1]
        prober = Prober(worlds, world, await traced(worlds, world, row))
        site = (await sites(prober.trace, prober))[-1]
        assert site.at.call.name == "whisper" and site.position == "last_write"
        return await at_site(kind, site, prober, rng(0))

    found = asyncio.run(run())
    assert (found if isinstance(found, str) else found.label) == made


def test_the_datasets_builder_makes_the_same_rows(tmp_path: Path, live_build: Path) -> None:
    from datasets import load_dataset

    assert (
        schema.TASKS,
        *(f"live_{kind}" for kind in (*live_types.FAULT_TYPES, *live_types.registry_types())),
    ) == LIVE_CONFIGS
    for config in ("tasks", "live_duplicate_effect"):
        cache = str(tmp_path / "cache")
        builder = RobustBenchTCLive(config_name=config, worlds=("orders",), cache_dir=cache)
        builder.download_and_prepare()
        made = builder.as_dataset(split="test")
        loaded = load_dataset(str(live_build), config, split="test", cache_dir=str(tmp_path / "hf"))
        assert made.features == loaded.features == features(schema.LiveRow)
        assert made.to_list() == [row for row in loaded.to_list() if row["world"] == "orders"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (LiveSpec(worlds=("ordrs",)), "did you mean orders"),
        (LiveSpec(worlds=("none.py",)), "is not a file"),
        (LiveSpec(kinds=("silent_no_opp",)), "did you mean silent_no_op"),
        (LiveSpec(kinds=("same_name_A",)), "unknown kind of fault 'same_name_A'"),
        (LiveSpec(profile="biggest"), "unknown profile"),  # type: ignore[arg-type]
        (LiveSpec(worlds=("orders", str(PURSE.with_name("orders.py")))), "is not a file"),
    ],
)
def test_what_does_not_exist_is_refused_by_name(spec: LiveSpec, said: str) -> None:
    refuses(said, prepared, spec)


OWN = """
from robustbench_tc.worlds.base import Task, Turn, World, call, read, write


class Box(World):
    '''A box.'''

    name = "box"

    @read
    def look(self) -> list[str]:
        '''What is in it.'''
        return self.data["things"]

    @write()
    def put(self, thing: str) -> str:
        '''Puts a thing in.'''
        self.data["things"].append(thing)
        return "done"


WORLD = Box
TASKS = [%s]
"""


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ("", "TASKS"),
        ('Task("a", {"things": []}, [Turn("x", [call("putt", thing="x")])])', "'a'.*putt"),
        ('Task("a", {"things": []}, [Turn("x", [call("put", thing=1)])])', "'a'.*must be of type string"),
        ('Task("a", {"things": []}, [Turn("x")]), Task("a", {"things": []}, [Turn("x")])', "'a'"),
        ('Task("a", {"things": [float("nan")]}, [Turn("x")])', "JSON"),
        ('Task("a", {"things": ["\\\\ud800"]}, [Turn("x")])', "a"),
    ],
)
def test_mistakes_in_a_world_of_ones_own_are_named(tmp_path: Path, tasks: str, said: str) -> None:
    (tmp_path / "box.py").write_text(OWN % tasks)
    refuses(said, api.build_live, tmp_path / "out", worlds=(str(tmp_path / "box.py"),))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["orders.py", "bfcl.py", "my world.py"])
def test_a_world_that_is_called_like_ours_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(PURSE.read_text())
    refuses("rename it", prepared, LiveSpec(worlds=(str(tmp_path / name),)))


def test_two_worlds_of_one_name_or_with_one_task_are_refused(tmp_path: Path) -> None:
    for name in ("one/box.py", "two/box.py", "other.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(OWN % 'Task("a", {"things": []}, [Turn("x", [call("put", thing="x")])])')
    for names, said in (
        (("one/box.py", "two/box.py"), "called 'box'"),
        (("one/box.py", "other.py"), "task 'a'"),
    ):
        refuses(said, prepared, LiveSpec(worlds=tuple(str(tmp_path / name) for name in names)))
