"""The values that the gate tries and compares by: what a state and a schema give."""

import pytest

from robustbench_tc.audits.live import asked
from robustbench_tc.schema import Json, LiveTool


def test_records_of_other_folders_are_of_the_same_kind() -> None:
    state = {
        "root": {
            "contents": {
                "Documents": {"contents": {"report.txt": {"content": "x"}}},
                "Reports": {"contents": {}},
            }
        },
        "users": {"USR001": {}, "USR002": {}},
    }
    assert set(asked.beside(state, "Documents")) == {"Documents", "Reports", "report.txt"}
    assert set(asked.beside(state, "USR001")) == {"USR001", "USR002"}
    assert asked.beside(state, "nobody") == []


@pytest.mark.parametrize(("longest", "found"), [(200, []), (1_000, ["y" * 300])])
def test_long_texts_are_leaves_only_where_they_are_asked_for(longest: int, found: list[Json]) -> None:
    assert asked.leaves({"text": "y" * 300}, longest) == ["text", *found]


def test_values_that_a_description_quotes_are_tried() -> None:
    parameters = {
        "type": "object",
        "properties": {"option": {"type": "string", "description": 'What to show: ["fuel", "doors"].'}},
        "required": ["option"],
    }
    tool = LiveTool("show", "Shows the state.", parameters, writes=False)
    assert list(asked.arguments(tool, {}, ["other"])) == [
        {"option": "fuel"},
        {"option": "doors"},
        {"option": "other"},
    ]
