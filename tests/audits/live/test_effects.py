"""What an agent could see of a call's effect, in a world where only the call's result leads to it."""

import asyncio
from pathlib import Path

import pytest

from robustbench_tc.audits.live.replay import Replay
from robustbench_tc.schema import At, Call, Fault, Kind, Label, LiveRow, LiveTool, Message, Turn
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

DESK = """
from robustbench_tc.worlds.base import World


class WORLD(World):
    def __init__(self, state, seed):
        self.sent = 0

    def call(self, name, arguments):
        if name == "send":
            self.sent += 1
            return '{"ticket": "T-77"}'
        if self.sent and arguments["ticket"] == "T-77":
            return '"on its way"'
        return '{"error": "no such ticket"}'

    def state(self):
        return {"sent": self.sent}

    def generated(self):
        return []
"""


def tool(name: str, parameter: str, *, writes: bool) -> LiveTool:
    properties = {parameter: {"type": "string"}}
    return LiveTool(name, "", {"type": "object", "properties": properties, "required": [parameter]}, writes)


def row(kind: Kind, label: Label) -> LiveRow:
    return LiveRow(
        id=f"desk_1::live_{kind}",
        clean_id="desk_1",
        type_code=f"live_{kind}",
        world="desk",
        category="desk",
        turns=(Turn((Message("user", "Send it to Mara."),)),),
        tools=(tool("send", "to", writes=True), tool("track", "ticket", writes=False)),
        initial_state={"state": {}, "seed": 0},
        golden_calls=((Call("send", {"to": "Mara"}),),),
        gold_state_sha256="",
        fault=Fault(At(write=1), kind),
        position="first_write",
        label=label,
    )


SHOWN = 'report, and track {"ticket":"T-77"} shows the effect'


@pytest.mark.parametrize(
    ("kind", "label", "said"),
    [
        ("timeout_after_effect", "report", ""),
        ("timeout_after_effect", "repair", ""),
        ("silent_no_op", "report", SHOWN),
        ("silent_no_op", "repair", ""),
    ],
)
def test_a_lost_result_helps_nobody_who_has_to_report_and_is_tried_for_a_repair(
    kind: Kind, label: Label, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "desk.py"
    file.write_text(DESK, "utf-8")
    replay = Replay(Worlds(), {"desk": WorldType("desk", file)})
    assert asyncio.run(replay.verdicts(row(kind, label)))["label_holds"] == said
