"""Balanced offers: what stands beside the gold tool, and that nothing else changed."""

import msgspec
import pytest

from robustbench_tc.audits.invariants import INVARIANTS
from robustbench_tc.builders.perturb import REGISTRY, cases
from robustbench_tc.schema import Sample, Tool

UNIT = REGISTRY["CD_inv"]
CLEAN = cases.CLEAN[UNIT.golden[0].clean]
ROW = cases.row_of(UNIT, UNIT.golden[0])
OTHER = next(i for i, t in enumerate(ROW.tools) if i != ROW.gold_tool_index and t not in CLEAN.tools)


def with_other(**changed: object) -> Sample:
    """The row with the tool beside the gold tool changed."""
    tool: Tool = msgspec.structs.replace(ROW.tools[OTHER], **changed)
    return msgspec.structs.replace(ROW, tools=(*ROW.tools[:OTHER], tool, *ROW.tools[OTHER + 1 :]))


def said(check: str, row: Sample) -> str | None:
    return INVARIANTS[check].holds(row, CLEAN)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (with_other(name="another"), "not just the clean name and one numbered name"),
        (with_other(description=f"Better. {ROW.tools[OTHER].description}"), "more than annotated"),
        (
            msgspec.structs.replace(
                ROW,
                tools=tuple(
                    msgspec.structs.replace(tool, description="Else.") if tool in CLEAN.tools else tool
                    for tool in ROW.tools
                ),
            ),
            "another tool changed",
        ),
    ],
)
def test_one_look_alike_beside_the_gold_tool(row: Sample, words: str) -> None:
    assert said("one_look_alike_beside_the_gold_tool", ROW) == ""
    assert words in str(said("one_look_alike_beside_the_gold_tool", row))


def test_both_tools_have_the_clean_parameters() -> None:
    assert said("both_tools_have_the_clean_parameters", ROW) == ""
    row = with_other(parameters={"type": "object", "properties": {}})
    assert said("both_tools_have_the_clean_parameters", row)
