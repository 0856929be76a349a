"""ToolRL's vectors: the decoder of `<tool_call>` blocks. (The reward's checker comes from its own room.)"""

from robustbench_tc.eval.parse import parse
from robustbench_tc.eval.score.values import decoded, json_equal
from robustbench_tc.schema import Json

from .rows import AGREED, UNLISTED, Row, as_pairs


def check_toolrl_decoder(row: Row) -> str:
    """Against the calls that ToolRL decodes from a reply: AGREED, a class of CLASSES, or UNLISTED."""
    text = row["raw_output"]
    calls = parse(text, source="apibank").calls
    upstream = row["upstream_decoded"]
    if row["upstream_error"] is not None or not upstream:
        return AGREED if not calls else "tolerant"
    ours = as_pairs(calls)
    expected = [{name: _parameters(found) for name, found in item.items()} for item in upstream]
    if json_equal(ours, expected):
        return AGREED
    # Upstream takes the last block only; ours has the blocks in order.
    if text.count("<tool_call>") > 1 and json_equal(ours[-len(expected) :], expected):
        return "several_blocks"
    return UNLISTED


def _parameters(found: Json) -> dict[str, Json]:
    """An upstream value as the contract's object: text is decoded once, anything else counts as {}."""
    if isinstance(found, str):
        inner = decoded(found)
        return inner if isinstance(inner, dict) else {}
    return found if isinstance(found, dict) else {}
