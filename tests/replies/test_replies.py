"""The reader over every style of reply in every setting: few rows here, a whole release by `make replies`."""

from typing import Any

import pytest

from robustbench_tc.eval.parse import Parsed
from robustbench_tc.schema import Call, Message, Sample, Tool

from .bars import check
from .settings import settings
from .styles import STYLES

ROOM = Tool(
    "rooms.book",
    "Books a room.",
    {
        "type": "object",
        "properties": {
            "day": {"type": "string"},
            "seats": {"type": "integer"},
            "catering": {"type": "boolean"},
            "result": {"type": "string"},
        },
    },
)
NOTE = Tool("note", "Keeps a note.", {"type": "object", "properties": {"text": {"type": "string"}}})
GOLDS = {
    "bfcl_v3": (
        Call("rooms.book", {"day": ["monday"], "seats": [4], "catering": [True], "result": ["1-0"]}),
    ),
    "apibank": (Call("note", {"text": ["call Ida, then stop"]}),),
    "toolalpaca": (Call("note", {"text": ["a"]}), Call("rooms.book", {"day": ["2026-11-22"]})),
    "tooleyes": (Call("note", {"text": ["¿por qué?"]}),),
}
ROWS = [
    Sample(
        id=f"{source}__one::clean",
        clean_id=f"{source}__one",
        type_code="clean",
        component=None,
        source=source,
        category="parallel" if len(gold) > 1 else "simple",
        messages=(Message("user", "Please do it."),),
        tools=(ROOM, NOTE),
        golden_answers=(gold,),
        gold_tool_index=0,
        output_format="python_calls",
        injected_error=None,
    )
    for source, gold in GOLDS.items()
]


def test_every_style_is_read_right_in_every_setting() -> None:
    found = {one.name: one for one in check(ROWS, every=4)}
    assert found.keys() == STYLES.keys()
    assert {name: one.examples for name, one in found.items() if not one.passed} == {}
    assert all(one.made and one.thought and one.spoken for one in found.values())


def test_settings_have_names_of_their_own_and_a_place_for_the_call() -> None:
    found = list(settings())
    assert len({one.name for one in found}) == len(found)
    assert all(one.text.count("{call}") == 1 for one in found)


@pytest.mark.parametrize(
    ("read", "missed"),
    [
        (Parsed((), None), {"made_wrong", "thought_unflagged", "spoken_unflagged"}),
        (
            Parsed((Call("note", {"text": "x"}),), "A1"),
            {"made_wrong", "thought_accepted", "spoken_unflagged"},
        ),
    ],
)
def test_a_reader_that_reads_nothing_or_anything_does_not_pass(
    read: Parsed, missed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def blind(*_: Any, **__: Any) -> Parsed:
        return read

    monkeypatch.setattr("tests.replies.bars.parse", blind)
    (found,) = check(ROWS, every=2, styles=["hermes"])
    assert not found.passed
    assert all(getattr(found, name) for name in missed)
