"""The first stage at which a wrong answer fails: decide, format, select, identify, fill, recover.

Scorers say that a reply is wrong and name the first thing they came upon, each in its own order. Here the
reply is set against the gold again, in one order for all sources: was a call due and was one made, could it
be read, are its tools the right ones, then the names of its arguments, then their values. Of several
acceptable answers the one that is followed farthest counts, as in RoTBench. What a source's scorer does not
look at (ToolEyes: arguments; ToolAlpaca: surplus arguments) does not fail here either.

Where an injected error was met, the first reply is judged alone: if it was wrong, that is where the answer
fails; if it was right, the answer fails at `recover`.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from robustbench_tc import sources, taxonomy
from robustbench_tc.eval.parse import Parsed
from robustbench_tc.eval.score.category import read_category
from robustbench_tc.schema import (
    CONTROL_TOOLS,
    OMIT,
    Call,
    ErrorMode,
    GoldenAnswer,
    Json,
    Prediction,
    Sample,
    Stage,
    Tool,
)

from . import own
from .error_modes import distractors
from .result import Score
from .results import answered_with_success
from .stage_values import fill_detail, value_fits
from .toolalpaca import FREE, SURPLUS
from .values import may_be_left_out

Failed = tuple[Stage, str]
"""A stage and what is wrong there: one of `schema.STAGES`."""

_REACHED: tuple[Stage | None, ...] = ("select", "identify", "fill", None)
"""How far a call comes, from not at all to right."""

_BY_REASON: dict[str | None, Failed] = {
    "wrong_name": ("select", "other"),
    "unknown_tool": ("select", "other"),
    "call_count": ("select", "too_many"),
    "missing_parameter": ("identify", "missing"),
    "unexpected_parameter": ("identify", "unexpected"),
    "wrong_type": ("fill", "wrong_type"),
}
"""Where only the scorer found something wrong (calls in another order than gold's): by its reason."""

_NOT_MADE = {"call_in_thought": "only_thought", "quoted_call": "quoted"}
"""Flag of a readable reply without a call → what there was instead."""


def stage_of(
    prediction: Prediction,
    row: Sample,
    clean: Sample,
    tools: Sequence[Tool],
    reply: tuple[Parsed, Score, ErrorMode | None],
    first: tuple[Parsed, Score] | None,
) -> Failed | None:
    """Where a scored prediction fails; None for a right one.

    `tools` are those to judge against, `reply` is the scored reply with its verdict. `first` is the first
    reply where the scored one came after an injected error; None where there was no such pass or it was not
    kept.
    """
    parsed, found, mode = reply
    if found.correct:
        return None
    if found.reason == "no_question":
        return "decide", "no_question"
    if not prediction.injected:
        if not parsed.calls:
            return _without_call(prediction, row, parsed)
        return _of_calls(row, clean, tools, parsed, found, mode)
    if first is not None and first[0].calls and not first[1].correct:
        return _of_calls(row, clean, tools, first[0], first[1], None)
    if answered_with_success(row):  # nothing more is to be called
        return ("decide", "called") if parsed.calls else _without_call(prediction, row, parsed)
    return "recover", "wrong_retry" if parsed.calls else "gave_up"


def _without_call(prediction: Prediction, row: Sample, parsed: Parsed) -> Failed:
    """A reply without a call: broken, or the decision against one."""
    text, flags = prediction.raw_output or "", parsed.flags
    answered = any(one.kind == "final" and text[one.start : one.end].strip() for one in parsed.segments)
    if prediction.finish_reason == "content_filter":
        return "format", "refused"
    if prediction.finish_reason == "length":
        return "format", "cut"
    if "empty_text" in flags or not answered:
        return "format", "empty"
    # Where no call is right and none was made, only a broken reply can be wrong.
    if "unread_shape" in flags or "truncated" in flags or () in row.golden_answers:
        return "format", "unread"
    return "decide", next((word for flag, word in _NOT_MADE.items() if flag in flags), "no_call")


def _of_calls(
    row: Sample,
    clean: Sample,
    tools: Sequence[Tool],
    parsed: Parsed,
    found: Score,
    mode: ErrorMode | None,
) -> Failed:
    wanted = [golden for golden in row.golden_answers if golden]
    comparison = _Comparison(row, clean, tools, mode)
    acting = [call.name for call in parsed.calls if call.name not in CONTROL_TOOLS]
    due = [any(call.name not in CONTROL_TOOLS for call in golden) for golden in wanted]
    # The distractor of a control tool was called in its place: the decision was right, the tool is not.
    instead = bool(wanted) and all(comparison.is_added(name) for name in acting)
    if acting and not any(due) and not instead:
        return "decide", "called"
    if not acting and all(due):
        return "decide", "control_only"
    if "bad_arguments" in parsed.flags and comparison.scorer != "tooleyes":
        return "format", "arguments"
    reached = [comparison.answer(parsed.calls, golden) for golden in wanted]
    farthest = max(reached, key=lambda one: one[0], default=(len(_REACHED) - 1, ""))
    stage = _REACHED[farthest[0]]
    if stage is None:
        return _BY_REASON.get(found.reason, ("fill", "wrong_value"))
    return stage, farthest[1]


class _Comparison:
    """Calls against golden answers, with the allowances of the source's scorer."""

    def __init__(self, row: Sample, clean: Sample, tools: Sequence[Tool], mode: ErrorMode | None) -> None:
        self.row, self.clean, self.tools, self.mode = row, clean, tools, mode
        self.scorer = sources.get(row.source).scorer

    def answer(self, calls: Sequence[Call], golden: GoldenAnswer) -> tuple[int, str]:
        """How far the calls follow one acceptable answer (index in `_REACHED`), and what is wrong next."""
        if self.scorer == "tooleyes":
            calls = [call for call in calls if call.name not in CONTROL_TOOLS]
            golden = tuple(call for call in golden if call.name not in CONTROL_TOOLS)
        names = [self._name(call.name) for call in golden]
        if wrong := self._selection([call.name for call in calls], names):
            return 0, wrong
        if self.scorer == "tooleyes":
            return len(_REACHED) - 1, ""
        left, worst = list(calls), (len(_REACHED) - 1, "")
        for name, expected in zip(names, golden, strict=True):
            fits = [(self._call(call, expected), at) for at, call in enumerate(left) if call.name == name]
            best, at = max(fits, key=lambda one: one[0][0])
            del left[at]
            worst = min(worst, best, key=lambda one: one[0])
        return worst

    def _name(self, golden: str) -> str:
        """The tool that is meant: BFCL's simple rows have one tool, whatever gold calls it."""
        if self.scorer != "bfcl_v3" or not self.tools:
            return golden
        category = self.row.category
        return golden if "multiple" in category or "parallel" in category else self.tools[0].name

    def _selection(self, called: Sequence[str], wanted: Sequence[str]) -> str:
        """What is wrong with the choice of tools; "" where nothing is."""
        there, due = Counter(called), Counter(wanted)
        if there == due:
            return ""
        if due <= there:
            if self.scorer == "toolalpaca" and len(called) <= SURPLUS * len(wanted):
                return ""
            strange = [name for name in called if name not in due]
            return next((word for name in strange if (word := self._stranger(name)) != "other"), "too_many")
        strange = [name for name in called if name not in due]
        if strange:
            return self._stranger(strange[0])
        return "too_many" if there - due else "too_few"

    def _stranger(self, name: str) -> str:
        """What kind of tool was called in place of gold's."""
        if name not in self._names:
            return "ghost"
        if not self.is_added(name):
            return "other"
        kind = taxonomy.get(self.row.type_code) if taxonomy.known(self.row.type_code) else None
        return "sibling" if kind is not None and kind.channel == "siblings" else "distractor"

    def is_added(self, name: str) -> bool:
        """Whether the perturbation added a tool of that name."""
        return name in self._added

    @cached_property
    def _added(self) -> frozenset[str]:
        added = distractors(self.row, self.clean) if self.row.component == "reward" else set[str]()
        if len(self.row.tools) > len(self.clean.tools):
            added |= self._names - {tool.name for tool in self.clean.tools}
        return frozenset(added)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self.row.tools)

    def _call(self, call: Call, golden: Call) -> tuple[int, str]:
        """The same of one call of the right name."""
        if self.scorer == own.NAME:
            return self._own_call(call, golden)
        missing, unexpected = self._parameters(call, golden)
        if missing or unexpected:
            if self._is_namesake(call):
                return 0, "distractor"
            return 1, "missing" if missing else "unexpected"
        tool = next((tool for tool in self.tools if tool.name == call.name), None)
        for key, accepted in golden.parameters.items():
            if key not in call.parameters:
                continue
            value, declared = call.parameters[key], tool.properties.get(key) if tool else None
            if not value_fits(self.scorer, value, accepted, declared, golden):
                return 2, fill_detail(value, accepted, self.row, self.clean, self.mode)
        return len(_REACHED) - 1, ""

    def _own_call(self, call: Call, golden: Call) -> tuple[int, str]:
        """The same where golden values are matchers."""
        found = own.first_wrong(call, golden, self.tools, read_category(self.row.category).extra)
        if found is None:
            return len(_REACHED) - 1, ""
        reason, key = found
        if reason != "wrong_value":
            if self._is_namesake(call):
                return 0, "distractor"
            return 1, "missing" if reason == "missing_parameter" else "unexpected"
        (plain,) = own.in_plain_values((golden,), (), self.tools)
        value = call.parameters[key]
        return 2, fill_detail(value, plain.parameters[key], self.row, self.clean, self.mode)

    def _parameters(self, call: Call, golden: Call) -> tuple[bool, bool]:
        """Whether a parameter is missing, and whether one is there that gold has not."""
        missing = any(
            key not in call.parameters and not self._may_lack(accepted)
            for key, accepted in golden.parameters.items()
        )
        if self.scorer == "toolalpaca":
            return missing, False
        unexpected = call.parameters.keys() - golden.parameters.keys()
        if self.scorer == "bfcl_v3":
            tool = next((tool for tool in self.tools if tool.name == call.name), None)
            if tool is not None:
                missing = missing or any(key not in call.parameters for key in tool.required)
                unexpected |= call.parameters.keys() - tool.properties.keys()
        return missing, bool(unexpected)

    def _may_lack(self, accepted: list[Json]) -> bool:
        if self.scorer == "bfcl_v3":
            return OMIT in accepted
        if self.scorer == "toolalpaca":
            return any(answer in FREE for answer in accepted)
        return may_be_left_out(accepted)

    def _is_namesake(self, call: Call) -> bool:
        """Whether the arguments are those of an added tool of the same name: that one was chosen."""
        same = [at for at, tool in enumerate(self.row.tools) if tool.name == call.name]
        added = [
            self.row.tools[at]
            for at in same
            if at != self.row.gold_tool_index and self.row.tools[at] not in self.clean.tools
        ]
        return len(same) > 1 and any(
            call.parameters.keys() <= tool.properties.keys()
            and all(key in call.parameters for key in tool.required)
            for tool in added
        )
