"""Worlds: schemas from signatures, arguments checked, failures without effect, ids, copies."""

import asyncio
import json
import pickle
from pathlib import Path

import msgspec
import pytest

from robustbench_tc.live import At, Fault, LiveTool
from robustbench_tc.worlds.handle import LocalHandle, Start, load_file

from ..refusals import refuses
from .purse import TASKS, Purse

FILE = Path(__file__).with_name("purse.py")


def test_a_registry_is_made_from_signatures_and_docstrings() -> None:
    tools = [LiveTool(**tool) for tool in Purse.tools()]
    assert [tool.name for tool in tools] == [
        "count_coins",
        "list_receipts",
        "add_coins",
        "take_coins",
        "whisper",
    ]
    assert tools[2].parameters == {
        "type": "object",
        "properties": {"amount": {"type": "integer", "description": "How many coins to put in."}},
        "required": ["amount"],
    }
    assert [(tool.writes, tool.idempotent, tool.undo) for tool in tools[1:4]] == [
        (False, True, None),
        (True, False, "take_coins"),
        (True, False, "add_coins"),
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("add_coins", {"amount": "2"}, "parameter 'amount' must be of type integer"),
        ("add_coins", {"amount": True}, "parameter 'amount' must be of type integer"),
        ("add_coins", {}, "missing parameter 'amount'"),
        ("add_coins", {"amount": 1, "self": 2}, "unknown parameter 'self'"),
        ("add_coins", {"amount": 0}, "amount must be at least 1"),
        ("__init__", {"state": {}}, "there is no tool '__init__'"),
        ("new_id", {"prefix": "x"}, "there is no tool 'new_id'"),
    ],
)
def test_a_call_that_fails_says_why_and_changes_nothing(
    name: str, arguments: dict[str, object], said: str
) -> None:
    world = Purse(TASKS[0].state)
    assert json.loads(world.call(name, arguments)) == {"error": said}
    assert world.state() == TASKS[0].state and world.generated() == []


def test_a_copy_has_met_the_same_calls_and_is_another_world() -> None:
    async def run() -> None:
        handle = LocalHandle(load_file(FILE), Start(TASKS[0].state))
        await handle.call("add_coins", {"amount": 2})
        other = await handle.copy()
        assert await other.snapshot() == await handle.snapshot()
        await other.call("take_coins", {"amount": 1})
        assert (await handle.snapshot()).state["coins"] == 5

    asyncio.run(run())


def test_a_file_without_a_world_is_refused_by_name(tmp_path: Path) -> None:
    for text in ("x = 1\n", "WORLD = dict\n", "WORLD = {}\n"):
        (tmp_path / "empty.py").write_text(text)
        refuses("has no WORLD that is a class and inherits from World", load_file, tmp_path / "empty.py")


def test_a_fault_is_placed_by_exactly_one_count() -> None:
    assert Fault(At(write=1), "silent_no_op").repeat == "once"
    for wrong in ({}, {"call": 1, "tool": "add_*"}, {"read": 0}):
        with pytest.raises(ValueError):
            At(**wrong)


def test_equal_faults_have_equal_bytes_wherever_they_come_from() -> None:
    fault = Fault(At(tool="add_*"), "silent_no_op")
    for other in (
        pickle.loads(pickle.dumps(fault)),
        msgspec.json.decode(b'{"at":{"tool":"add_*"},"kind":"silent_no_op","repeat":"once"}', type=Fault),
        msgspec.structs.replace(fault, repeat="".join(("on", "ce"))),
    ):
        assert msgspec.json.encode(other) == msgspec.json.encode(fault)
