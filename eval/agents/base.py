"""What a scripted agent is: a pure function of the row it is asked about, whose every verdict is known."""

from collections.abc import Callable
from typing import NamedTuple

from robustbench_tc import sources
from robustbench_tc.eval.score import matchers
from robustbench_tc.eval.score.category import read_category
from robustbench_tc.schema import ANY, CONTROL_TOOLS, OMIT, Call, Json, Sample

from ..score import answered_with_success, scoring_tools
from ..score.golden import concrete
from ..score.own import is_default

JUNK = "something else"
"""A value that no gold accepts, unless it accepts any."""

QUESTION = "Which one do you mean?"
"""What it says where it has to ask."""

REFUSAL = "The tool could not be reached, so I am afraid I have no answer for you."
REPORT = "It is done."


class AgentContext(NamedTuple):
    """What an agent is asked about."""

    row: Sample
    clean: Sample
    after_error: bool
    """The request ends with an injected error, or with the result of a call."""
    errors: int = 0
    """How many calls were answered so before it."""

    @property
    def gold(self) -> tuple[Call, ...]:
        """The first golden answer with one accepted value for each parameter."""
        tools = scoring_tools(self.row, self.clean)
        return concrete(self.row.golden_answers[0], tools, source=self.row.source)

    @property
    def after_result(self) -> bool:
        """The request ends with the success of a call: nothing is left to do."""
        return self.after_error and answered_with_success(self.row)


Reply = Callable[[AgentContext], tuple[Call, ...] | str]


class Agent(NamedTuple):
    """A reference agent: replies by a rule, so that its verdicts are known without asking a model."""

    about: str
    reply: Reply
    right: Callable[[AgentContext], bool]
    """Whether the reply scores: known by construction."""


def report(scene: AgentContext) -> tuple[Call, ...] | str:
    """Gold; after the success of a call, that it is done."""
    return REPORT if scene.after_result else scene.gold


def weak(
    about: str,
    fails: Callable[[AgentContext], bool],
    instead: Reply,
    otherwise: Reply = lambda scene: scene.gold,
) -> Agent:
    """An agent that is right but where it `fails`: there it answers with `instead`."""
    return Agent(about, lambda s: (instead if fails(s) else otherwise)(s), lambda s: not fails(s))


def scorer(row: Sample) -> str:
    """The name of the scorer that judges the row: what it forgives is known here."""
    return sources.get(row.source).scorer


def is_free(scorer: str, name: str, accepted: Json) -> bool:
    """Whether a gold parameter takes any value (ToolAlpaca's blank ones may even be absent)."""
    if scorer == "own":
        return any(matchers.matches(JUNK, one, None) for one in accepted)
    if name in CONTROL_TOOLS or ANY in accepted:
        return True
    return scorer == "toolalpaca" and any(v in (None, OMIT, "None") for v in accepted)


def takes_junk(row: Sample, gold: Call, names: set[str]) -> bool:
    """Whether a call of the right tool with `names` as its parameters, JUNK in each, is right by luck."""
    judged_by = scorer(row)
    if judged_by == "own":
        return _own_takes_junk(row, gold, names)
    compared = [p for p, v in gold.parameters.items() if not is_free(judged_by, gold.name, v)]
    if judged_by in ("tooleyes", "toolalpaca"):  # names decide; more than gold asks for is tolerated
        return judged_by == "tooleyes" or not compared
    if judged_by == "bfcl_v3":
        return not names and all(OMIT in v for v in gold.parameters.values())
    return names == set(gold.parameters) and not compared


def _own_takes_junk(row: Sample, gold: Call, names: set[str]) -> bool:
    schema = next((tool.parameters for tool in row.tools if tool.name == gold.name), {})
    for name, accepted in gold.parameters.items():
        if name in names:
            if not is_free("own", gold.name, accepted):
                return False
        elif not any(map(matchers.may_be_absent, accepted)) and not is_default(name, accepted, schema):
            return False
    return names <= gold.parameters.keys() or read_category(row.category).extra
