"""Reference agents: scripted models whose verdict on every row is known before anything is scored.

An agent is a pure function of the row it is asked about. Beside what it answers stands what that is worth
(`right`), worked out from the gold alone and not by the scorers: a benchmark that tells the agents apart
agrees with it on every single row. The agents see the gold, so they say nothing about how hard the benchmark
is. `agent_server.serving` puts one behind an OpenAI-compatible address.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from robustbench_tc.errors import unknown
from robustbench_tc.schema import ANY, CONTROL_TOOLS, OMIT, Call, Json, Sample, Tool

from .render import concrete
from .score import scoring_tools

JUNK = "something else"
"""A value that no gold accepts, unless it accepts any."""

REFUSAL = "The tool could not be reached, so I am afraid I have no answer for you."
RAMBLE = (
    "There are several ways to look at this. Each of the tools has its merits, and which of them is the best "
    "one depends on what matters most. I would want to weigh that with care before I commit to any of them. "
) * 4


class Scene(NamedTuple):
    """What an agent is asked about."""

    row: Sample
    clean: Sample
    after_error: bool
    """The request ends with an injected error."""

    @property
    def gold(self) -> tuple[Call, ...]:
        """The first golden answer with one accepted value for each parameter."""
        tools = scoring_tools(self.row, self.clean)
        return concrete(self.row.golden_answers[0], tools, source=self.row.source)


class Agent(NamedTuple):
    about: str
    reply: Callable[[Scene], tuple[Call, ...] | str]
    right: Callable[[Scene], bool]
    """Whether the reply scores: known by construction."""


# --- what gold accepts, in as far as the agents need it -------------------------------------------------


def _free(source: str, name: str, accepted: Json) -> bool:
    """Whether a gold parameter takes any value (ToolAlpaca's blank ones may even be absent)."""
    if name in CONTROL_TOOLS or ANY in accepted:
        return True
    return source == "toolalpaca" and any(v in (None, OMIT, "None") for v in accepted)


def _takes_junk(row: Sample, gold: Call, names: set[str]) -> bool:
    """Whether a call of the right tool with `names` as its parameters, JUNK in each, is right by luck."""
    compared = [p for p, v in gold.parameters.items() if not _free(row.source, gold.name, v)]
    if row.source == "tooleyes":  # names decide
        return True
    if row.source == "toolalpaca":  # more than gold asks for is tolerated
        return not compared
    if row.source == "bfcl_v3":
        return not names and all(OMIT in v for v in gold.parameters.values())
    return names == set(gold.parameters) and not compared


# --- the agents -----------------------------------------------------------------------------------------


def _spoilt(scene: Scene) -> tuple[tuple[Call, ...], bool]:
    """Gold with one argument changed, and whether that goes unnoticed.

    The first argument that is compared is changed; a call without one gets a parameter it did not need.
    """
    row = scene.row
    for index, (gold, call) in enumerate(zip(row.golden_answers[0], scene.gold, strict=True)):
        for name in call.parameters:
            if not _free_in_some_answer(row, gold.name, name):
                changed = Call(call.name, {**call.parameters, name: JUNK})
                calls = (*scene.gold[:index], changed, *scene.gold[index + 1 :])
                return calls, row.source == "tooleyes"
    first = scene.gold[0]
    if first.parameters:
        name = next(iter(first.parameters))
        return (Call(first.name, {**first.parameters, name: JUNK}), *scene.gold[1:]), True
    added = Call(first.name, {"unasked": JUNK})
    return (added, *scene.gold[1:]), row.source in ("toolalpaca", "tooleyes")


def _free_in_some_answer(row: Sample, tool: str, parameter: str) -> bool:
    return any(
        _free(row.source, tool, call.parameters[parameter])
        for answer in row.golden_answers
        for call in answer
        if call.name == tool and parameter in call.parameters
    )


def _lure(scene: Scene, gold: Call) -> str | None:
    """A tool with gold's parameters whose name promises more: cheap, fast, or spelt out in full."""
    listed = [t for t in scene.row.tools if t.name == gold.name]
    for tool in scene.row.tools:
        if tool.name == gold.name or not listed or set(tool.properties) != set(listed[0].properties):
            continue
        promises = re.match(re.escape(gold.name) + r"_(?:Budget|Fast)", tool.name)
        if promises or _reads_fuller(tool.name, gold.name):
            return tool.name
    return None


def _reads_fuller(name: str, short: str) -> bool:
    """Whether `short` is `name` with parts of more than four letters cut to three."""
    parts = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^A-Za-z0-9]")
    long_parts, short_parts = parts.findall(name), parts.findall(short)
    return (
        len(name) > len(short)
        and len(long_parts) == len(short_parts)
        and all(
            full == cut or (len(cut) == 3 and len(full) > 4 and full.startswith(cut))
            for full, cut in zip(long_parts, short_parts, strict=True)
        )
    )


def _lured(scene: Scene) -> tuple[Call, ...]:
    return tuple(Call(_lure(scene, call) or call.name, call.parameters) for call in scene.gold)


def _taken_first(scene: Scene, call: Call) -> Tool | None:
    """The distractor, if it is listed before the gold tool of that name; None when gold's comes first."""
    same = [tool for tool in scene.row.tools if tool.name == call.name]
    if len(same) < 2 or same[0] in scene.clean.tools:
        return None
    return same[0]


def _first_listed(scene: Scene) -> tuple[Call, ...]:
    calls = []
    for call in scene.gold:
        tool = _taken_first(scene, call)
        calls.append(call if tool is None else Call(call.name, dict.fromkeys(tool.properties, JUNK)))
    return tuple(calls)


def _first_listed_right(scene: Scene) -> bool:
    golds = scene.row.golden_answers[0]
    pairs = [(gold, _taken_first(scene, gold)) for gold in golds]
    return all(tool is None or _takes_junk(scene.row, gold, set(tool.properties)) for gold, tool in pairs)


def _misspelt(scene: Scene) -> str | None:
    """The first word of the conversation that the clean row does not have."""
    if scene.row.type_code != "realistic_typos":
        return None
    known = {word for m in scene.clean.messages for word in m.content.split()}
    return next((w for m in scene.row.messages for w in m.content.split() if w not in known), None)


def _with_typo(scene: Scene) -> tuple[tuple[Call, ...], bool]:
    """Gold with the misspelt word in its first text that is compared, and whether that goes unnoticed."""
    word, calls = _misspelt(scene), scene.gold
    for index, call in enumerate(calls):
        for name, value in call.parameters.items():
            if word and isinstance(value, str) and not _free_in_some_answer(scene.row, call.name, name):
                changed = Call(call.name, {**call.parameters, name: f"{value} {word}"})
                return (*calls[:index], changed, *calls[index + 1 :]), scene.row.source == "tooleyes"
    return calls, True


AGENTS: Mapping[str, Agent] = {
    "oracle": Agent(
        "answers with gold, and repeats its call after an error",
        lambda s: s.gold,
        lambda s: True,
    ),
    "gives-up-on-error": Agent(
        "answers with gold, and apologises after an error",
        lambda s: REFUSAL if s.after_error else s.gold,
        lambda s: not s.after_error,
    ),
    "retries-with-a-changed-argument": Agent(
        "answers with gold, and changes an argument after an error",
        lambda s: _spoilt(s)[0] if s.after_error else s.gold,
        lambda s: not s.after_error or _spoilt(s)[1],
    ),
    "name-biased": Agent(
        "takes the tool whose name sounds cheap, fast or readable",
        _lured,
        lambda s: not any(_lure(s, call) for call in s.gold),
    ),
    "first-of-duplicates": Agent(
        "takes the first tool of the right name, and fills in that one's parameters",
        _first_listed,
        _first_listed_right,
    ),
    "typo-copier": Agent(
        "lets the first misspelt word of the query slip into its first text argument",
        lambda s: _with_typo(s)[0],
        lambda s: _with_typo(s)[1],
    ),
    "silent": Agent("says nothing", lambda s: "", lambda s: False),
    "rambler": Agent("talks and calls nothing", lambda s: RAMBLE, lambda s: False),
}


def agent(name: str) -> Agent:
    """The agent of that name. Raises UserError with near misses."""
    if name not in AGENTS:
        raise unknown("agent", name, AGENTS)
    return AGENTS[name]


def is_right(name: str, row: Sample, clean: Sample) -> bool:
    """Whether the agent's scored answer to the row is right, known before anything is scored."""
    found = agent(name)
    silent = isinstance(found.reply(Scene(row, clean, False)), str)
    return found.right(Scene(row, clean, row.injected_error is not None and not silent))
