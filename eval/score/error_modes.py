"""Why a prediction is wrong, in the words of the paper's appendix L (scoring.md section 7)."""

from collections import Counter
from typing import Literal

from robustbench_tc.eval.parse import Parsed
from robustbench_tc.schema import Sample

from .result import Score

ErrorMode = Literal["empty", "omitted", "wrong_name", "wrong_parameters", "name_bias", "other"]


def error_mode(parsed: Parsed, score: Score, row: Sample, clean: Sample) -> ErrorMode | None:
    """None when correct. `empty`: nothing was written. `omitted`: text without a call. `name_bias`: in a
    reward type, a distractor that the perturbation added was called. `wrong_parameters`: the right names,
    other arguments. `wrong_name` otherwise."""
    if score.correct:
        return None
    if not parsed.calls:
        return "empty" if "empty_text" in parsed.flags else "omitted"
    names = Counter(call.name for call in parsed.calls)
    if row.component == "reward" and not distractors(row, clean).isdisjoint(names):
        return "name_bias"
    for golden in row.golden_answers:
        wanted = Counter(call.name for call in golden)
        if wanted <= names and names.keys() == wanted.keys():
            return "wrong_parameters"
    return "wrong_name"


def distractors(row: Sample, clean: Sample) -> set[str]:
    """The names of the tools that a reward perturbation set beside the gold tool.

    They are the row's names that the clean registry lacks; where the gold tool was renamed, its old name is
    the distractor's.
    """
    gold = {call.name for golden in row.golden_answers for call in golden}
    known = {tool.name for tool in clean.tools}
    names = {tool.name for tool in row.tools}
    found = names - known
    if gold - known:
        found |= names & {call.name for call in clean.golden_answers[0]}
    return found - gold
