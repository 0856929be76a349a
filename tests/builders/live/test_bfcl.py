"""BFCL's multi-turn files as clean rows."""

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.builders.live import bfcl
from robustbench_tc.builders.live.trace import with_gold
from robustbench_tc.schema import Call, LiveRow, dumps
from robustbench_tc.worlds import bfcl_functions, find
from robustbench_tc.worlds.handle import Snapshot, Start
from robustbench_tc.worlds.host import Worlds
from robustbench_tc.worlds.same_state import state_hash

from ...conftest import nightly
from ...refusals import refuses
from ...worlds.bfcl_replays import Answer, Job, bfcl_data, gold, replays


@pytest.fixture(scope="module")
def rows(shared: Path) -> tuple[LiveRow, ...]:
    return bfcl.tasks(shared / "sources")


def test_four_categories_of_200_tasks(rows: tuple[LiveRow, ...]) -> None:
    assert Counter(row.category for row in rows) == dict.fromkeys(bfcl.CATEGORIES, 200)
    calls = Counter[str]()
    for row in rows:
        calls[row.category] += sum(map(len, row.golden_calls))
        assert len(row.golden_calls) == len(row.turns)
        assert all(message.role == "user" for turn in row.turns for message in turn.messages)
        assert all(turn.messages for turn in row.turns)
    assert list(calls.values()) == [1142, 1140, 1140, 1203]
    assert len({row.id for row in rows}) == 800
    assert len({tool.name for row in rows for tool in row.tools}) == 128


def test_every_function_is_in_one_class_and_only_reads_of_its_own_api_come_first(
    shared: Path, rows: tuple[LiveRow, ...]
) -> None:
    docs = shared / "sources" / bfcl.FOLDER / "multi_turn_func_doc"
    api = {
        json.loads(line)["name"]: name
        for name, file in bfcl.DOCS.items()
        for line in (docs / f"{file}.json").read_text("utf-8").splitlines()
    }
    reads = {tool.name for row in rows for tool in row.tools if not tool.writes}
    assert sorted(tool for one in bfcl_functions.CLASSES for tool in one.tools) == sorted(api)
    for name, first in bfcl_functions.LOOKS_FIRST.items():
        assert first and set(first) <= reads and {api[one] for one in first} == {api[name]}, name


def test_held_out_functions_come_back_in_their_turn(rows: tuple[LiveRow, ...]) -> None:
    early = []
    for row in rows:
        added = [(turn, name) for turn, one in enumerate(row.turns) for name in one.adds]
        assert bool(added) == (row.category == "multi_turn_miss_func")
        for turn, name in added:
            assert name in {tool.name for tool in row.offered(turn)}
            assert name not in {tool.name for tool in row.offered(turn - 1)}
            assert row.turns[turn].messages[0].content == bfcl.RELEASED
        for turn, calls in enumerate(row.golden_calls):
            offered = {tool.name for tool in row.offered(turn)}
            early += [(row.clean_id, call.name) for call in calls if call.name not in offered]
    assert early == [(bfcl.HELD_OUT_TASK, "tail")]


def test_schemas_are_json_schema_and_every_gold_fits_them(rows: tuple[LiveRow, ...]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="needs the extra audit (make env)")
    misfits = set()
    for row in rows:
        validators = {
            tool.name: jsonschema.Draft202012Validator({**tool.parameters, "additionalProperties": False})
            for tool in row.tools
        }
        for call in (call for turn in row.golden_calls for call in turn):
            if not validators[call.name].is_valid(call.parameters):
                misfits.add((row.clean_id.rpartition("_")[2], call.name))
    assert misfits == {("173", "close_ticket")}


def test_doubtful_golds_are_flagged(rows: tuple[LiveRow, ...]) -> None:
    flagged = {row.clean_id: row.flags for row in rows if row.flags}
    assert flagged["multi_turn_long_context_153"] == ("gold_ignores_refusal",)
    assert flagged[bfcl.HELD_OUT_TASK] == (bfcl.HELD_OUT,)
    assert len(flagged) == 4 * 9 + 1


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("f(1, b='x')", Call("f", {"a": 1, "b": "x"})),
        (" f(b=[-1, {'k': None}], a=True)", Call("f", {"b": [-1, {"k": None}], "a": True})),
        ("f()", Call("f", {})),
    ],
)
def test_gold_is_read_as_literals(text: str, call: Call) -> None:
    assert bfcl.golden_call(text, {"f": ("a", "b")}) == call


def test_a_file_that_is_not_as_pinned_is_named(shared: Path, tmp_path: Path) -> None:
    refuses(r"missing source file .*BFCL_v4_multi_turn_base\.json", bfcl.tasks, tmp_path)
    shutil.copytree(shared / "sources" / bfcl.FOLDER, tmp_path / bfcl.FOLDER)
    doc = tmp_path / bfcl.FOLDER / "multi_turn_func_doc" / "math_api.json"
    doc.chmod(0o644)
    doc.write_text(doc.read_text() + "\n")
    refuses(r"math_api\.json: wrong checksum", bfcl.tasks, tmp_path)
    refuses("did you mean multi_turn_base", bfcl.tasks, shared / "sources", ["multi_turn_bas"])


def test_the_wheels_files_are_the_sources(bfcl_python: str, rows: tuple[LiveRow, ...]) -> None:
    assert bfcl.tasks_in(bfcl_data(bfcl_python)) == rows


def test_what_the_world_hosts_agrees_with_a_plain_replay(bfcl_python: str, rows: tuple[LiveRow, ...]) -> None:
    world = find.find(find.BFCL, python=bfcl_python)
    some = rows[7::160]

    async def hosted() -> list[tuple[LiveRow, Snapshot, list[str]]]:
        found = []
        async with Worlds() as worlds:
            for row in some:
                handle = await worlds.open(world, Start(**row.initial_state))
                texts = [
                    (await handle.call(c.name, c.parameters)).text for turn in row.golden_calls for c in turn
                ]
                copied = await handle.copy()
                assert await copied.snapshot() == await handle.snapshot()
                found.append((await with_gold(worlds, world, row), await copied.snapshot(), texts))
        return found

    plain = replays(bfcl_python, map(gold, some))
    for (row, snapshot, texts), one in zip(asyncio.run(hosted()), plain, strict=True):
        assert snapshot.state == {"classes": one.states[-1], "cwd": one.cwd}
        assert list(snapshot.generated) == one.generated
        assert texts == [text for turn in one.results for text in turn]
        assert row.gold_state_sha256 == state_hash(snapshot.state)


@nightly  # thousands of worlds
def test_what_writes_and_what_can_be_repeated_is_what_gold_shows(
    bfcl_python: str, rows: tuple[LiveRow, ...]
) -> None:
    """One replay a task with a turn for every call, and every call twice in a row."""
    jobs = []
    for row in rows:
        calls = [call for turn in row.golden_calls for call in turn]
        jobs.append(Job(row.initial_state["state"], [[], *([call] for call in calls)]))
        jobs += [
            Job(row.initial_state["state"], [calls[: k + 1], [call]])
            for k, call in enumerate(calls)
            if call.name in bfcl.WRITES
        ]
    answers = iter(replays(bfcl_python, jobs))
    changed, again = set(), set()
    for row in rows:
        calls = [call for turn in row.golden_calls for call in turn]
        once = next(answers).states
        changed |= {call.name for call, a, b in zip(calls, once, once[1:], strict=False) if a != b}
        for call in calls:
            if call.name in bfcl.WRITES:
                first, second = next(answers).states
                again |= {call.name} if first != second else set()
    assert changed == bfcl.WRITES - bfcl.NEVER_IN_GOLD
    assert changed - again == bfcl.IDEMPOTENT


NEVER_IN_GOLD: dict[str, tuple[list[Call], Call]] = {
    "adjustClimateControl": ([], Call("adjustClimateControl", {"temperature": 31.5, "fanSpeed": 12})),
    "follow_user": ([], Call("follow_user", {"username_to_follow": "somebody_new"})),
    "unfollow_user": (
        [Call("follow_user", {"username_to_follow": "somebody_new"})],
        Call("unfollow_user", {"username_to_unfollow": "somebody_new"}),
    ),
    "releaseBrakePedal": ([Call("pressBrakePedal", {"pedalPosition": 1.0})], Call("releaseBrakePedal", {})),
    "logout": ([Call("ticket_login", {"username": "a", "password": "b"})], Call("logout", {})),
    "trading_login": (
        [Call("trading_logout", {})],
        Call("trading_login", {"username": "a", "password": "b"}),
    ),
}
"""Function → calls before it, and a call of it that changes the world."""


@nightly  # thousands of worlds
def test_functions_that_no_gold_calls_write_and_change_nothing_more_when_repeated(
    bfcl_python: str, rows: tuple[LiveRow, ...]
) -> None:
    assert set(NEVER_IN_GOLD) == bfcl.NEVER_IN_GOLD
    jobs = []
    for name, (before, call) in NEVER_IN_GOLD.items():
        twitter = '"TwitterAPI":{"username"' if name.endswith("follow_user") else ""
        row = next(
            row
            for row in rows
            if any(tool.name == name for tool in row.tools)
            and (
                not twitter or '"authenticated":true' in dumps(row.initial_state).partition(twitter)[2][:120]
            )
        )
        jobs.append(Job(row.initial_state["state"], [before, [call], [call]]))
    for name, answer in zip(NEVER_IN_GOLD, replays(bfcl_python, jobs), strict=True):
        start, once, twice = answer.states
        assert start != once, name
        assert once == twice, name


UNDOING: dict[str, Callable[[Call, dict[str, Any]], dict[str, Any]]] = {
    "book_flight": lambda call, result: {
        "access_token": call.parameters["access_token"],
        "booking_id": result["booking_id"],
    },
    "add_to_watchlist": lambda call, _: {"symbol": call.parameters["stock"]},
    "mkdir": lambda call, _: call.parameters,
    "touch": lambda call, _: call.parameters,
    "cp": lambda call, _: {"file_name": call.parameters["destination"]},
}
"""How the arguments of an undo follow from the call and its result."""


def test_an_undo_leaves_the_public_state_as_it_was(bfcl_python: str, rows: tuple[LiveRow, ...]) -> None:
    assert UNDOING.keys() == bfcl.UNDO.keys()
    jobs: list[Job] = []
    found: list[tuple[LiveRow, list[Call], Call]] = []
    for row in rows[:200]:
        calls = [call for turn in row.golden_calls for call in turn]
        found += [(row, calls[:k], call) for k, call in enumerate(calls) if call.name in bfcl.UNDO]
    jobs = [Job(row.initial_state["state"], [before, [call]]) for row, before, call in found]
    first: list[Answer] = replays(bfcl_python, jobs)
    jobs, names = [], []
    for (row, before, call), one in zip(found, first, strict=True):
        text = one.results[1][0]
        result = json.loads(text) if text.startswith("{") else {}
        if one.states[0] == one.states[1] or (call.name == "cp" and "/" in str(result.get("result"))):
            continue  # nothing was changed, or the copy lies in another directory
        undo = Call(bfcl.UNDO[call.name], UNDOING[call.name](call, result))
        jobs.append(Job(row.initial_state["state"], [before, [call], [undo]]))
        names.append(call.name)
    undone = set()
    for name, one in zip(names, replays(bfcl_python, jobs), strict=True):
        if '"error"' not in one.results[2][0]:  # who is not logged in can add to the watch list, not remove
            assert one.states[2] == one.states[0], name
            undone.add(name)
    assert undone == bfcl.UNDO.keys()
