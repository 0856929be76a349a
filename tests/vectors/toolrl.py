"""ToolRL's vectors: the decoder of `<tool_call>` blocks, and the training reward."""

from robustbench_tc.eval.parse import parse
from robustbench_tc.eval.score import reward, values
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
    if values.json_equal(ours, expected):
        return AGREED
    # Upstream takes the last block only; ours has the blocks in order.
    if text.count("<tool_call>") > 1 and values.json_equal(ours[-len(expected) :], expected):
        return "several_blocks"
    return UNLISTED


def _parameters(found: Json) -> dict[str, Json]:
    """An upstream value as the contract's object: text is decoded once, anything else counts as {}."""
    if isinstance(found, str):
        inner = values.decoded(found)
        return inner if isinstance(inner, dict) else {}
    return found if isinstance(found, dict) else {}


def check_toolrl_reward(row: Row) -> str:
    """Against ToolRL's reward and its parts, to 1e-9: AGREED, `upstream_crash`, or UNLISTED."""
    ours = reward.compute_score(
        "rlla",
        row["solution_str"],
        row["ground_truth"],
        step=row["step"],
        **reward.variant_from_env(row["env"]),
    )
    if row["upstream_exception"] is not None:
        return "upstream_crash"
    return AGREED if all(abs(part - row[name]) <= 1e-9 for name, part in ours.items()) else UNLISTED
