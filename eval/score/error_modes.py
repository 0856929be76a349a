"""Why a prediction is wrong, in the words of the paper's appendix L (scoring.md section 7)."""

from collections import Counter

from robustbench_tc import sources
from robustbench_tc.eval.parse import Parsed
from robustbench_tc.schema import ErrorMode, Sample

from . import own
from .ghosts import unregistered
from .result import Score
from .tools import scoring_tools
from .wrong_language import leaves_users_language


def error_mode(parsed: Parsed, score: Score, row: Sample, clean: Sample) -> ErrorMode | None:
    """None when correct. `empty`: nothing was written. `omitted`: text without a call (also where one was
    thought of or quoted only). `name_bias`: in a reward type, a distractor that the perturbation added
    was called. `missing_call`: every name is right, but fewer calls than gold. `wrong_parameters`: the right
    names, other arguments or too often; `wrong_language`: so, and the first value that differs is in the
    user's language instead of the tools'. `ghost`: a tool was called that the registry has not. `other`: no
    call is right, and a listed tool was called, the reply is broken or does not ask where it has to.
    `wrong_name` otherwise."""
    if score.correct:
        return None
    if score.reason in ("unexpected_call", "unparsable", "no_question"):
        if "empty_text" in parsed.flags:
            return "empty"
        return "ghost" if unregistered((call.name for call in parsed.calls), row) else "other"
    if not parsed.calls:
        return "empty" if "empty_text" in parsed.flags else "omitted"
    names = Counter(call.name for call in parsed.calls)
    if row.component == "reward" and not distractors(row, clean).isdisjoint(names):
        return "name_bias"
    wanted = [Counter(call.name for call in golden) for golden in row.golden_answers]
    named = [golden <= names and golden.keys() == names.keys() for golden in wanted]
    if any(named):
        answers = [golden for golden, right in zip(row.golden_answers, named, strict=True) if right]
        if sources.get(row.source).scorer == own.NAME:
            tools = scoring_tools(row, clean)
            answers = [own.in_plain_values(golden, parsed.calls, tools) for golden in answers]
        foreign = any(leaves_users_language(parsed.calls, golden, row) for golden in answers)
        return "wrong_language" if foreign else "wrong_parameters"
    if any(names < golden for golden in wanted):
        return "missing_call"
    return "ghost" if unregistered(names, row) else "wrong_name"


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
