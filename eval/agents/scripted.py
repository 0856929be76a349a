"""Scripted agents that see the gold, and null models, which never read the request, or never act.

Each scripted agent fails in one known way, so they say nothing about how hard the benchmark is, but a
benchmark that mixes them up is broken. What null models score is what a table is worth: a reply that lists
the registry, quotes the gold or thinks of it without calling anything is worth nothing; calling everything,
or the first tool there is, is worth what the registry gives away. Their figures stand under every table and
are pinned by a test (docs/calls.md).
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping

from robustbench_tc.eval.score.category import read_category
from robustbench_tc.schema import CONTROL_TOOLS, Call, GoldenAnswer, Json, Sample, Tool, dumps

from ..prompts.calls import python_calls, render_calls
from .base import JUNK, REFUSAL, Agent, AgentContext, is_free, report, scorer, takes_junk, weak

RAMBLE = (
    "There are several ways to look at this. Each of the tools has its merits, and which of them is the best "
    "one depends on what matters most. I would want to weigh that with care before I commit to any of them. "
) * 4


def _with_one_changed(scene: AgentContext, change: Callable[[Json], Json | None]) -> tuple[Call, ...] | None:
    """Gold with the first compared argument that `change` has another value for; None where it has none."""
    for index, call in enumerate(scene.gold):
        for name, value in call.parameters.items():
            new = None if _free_in_some_answer(scene.row, call.name, name) else change(value)
            if new is not None:
                changed = Call(call.name, {**call.parameters, name: new})
                return (*scene.gold[:index], changed, *scene.gold[index + 1 :])
    return None


def _spoilt(scene: AgentContext) -> tuple[tuple[Call, ...], bool]:
    """Gold with one argument changed, and whether that goes unnoticed.

    The first argument that is compared is changed; a call without one gets a parameter it did not need.
    """
    row = scene.row
    if (calls := _with_one_changed(scene, lambda value: JUNK)) is not None:
        return calls, scorer(row) == "tooleyes"
    first = scene.gold[0]
    name = next(iter(first.parameters), "unasked")
    # Of a parameter that gold has not.
    tolerated = scorer(row) in ("toolalpaca", "tooleyes") or (
        scorer(row) == "own" and read_category(row.category).extra
    )
    changed = Call(first.name, {**first.parameters, name: JUNK})
    return (changed, *scene.gold[1:]), bool(first.parameters) or tolerated


def _free_in_some_answer(row: Sample, tool: str, parameter: str) -> bool:
    calls = [call for answer in row.golden_answers for call in answer if call.name == tool]
    unnamed = any(parameter not in call.parameters for call in calls)
    if unnamed and scorer(row) == "own" and read_category(row.category).extra:
        return True
    return any(
        is_free(scorer(row), tool, call.parameters[parameter])
        for call in calls
        if parameter in call.parameters
    )


def _lure(scene: AgentContext, gold: Call) -> str | None:
    """A tool with gold's parameters whose name promises more: cheap, fast, or spelt out in full."""
    meant = next((tool for tool in scene.row.tools if tool.name == gold.name), None)
    alike = (
        tool.name
        for tool in scene.row.tools
        if meant is not None and tool.name != gold.name and set(tool.properties) == set(meant.properties)
    )
    promise = re.compile(re.escape(gold.name) + r"_(?:Budget|Fast)")
    return next((name for name in alike if promise.match(name) or _reads_fuller(name, gold.name)), None)


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


def _taken_first(scene: AgentContext, call: Call) -> Tool | None:
    """The distractor, if it is listed before the gold tool of that name; None when gold's comes first."""
    same = [tool for tool in scene.row.tools if tool.name == call.name]
    if len(same) < 2 or same[0] in scene.clean.tools:
        return None
    return same[0]


def _first_listed(scene: AgentContext) -> tuple[Call, ...]:
    taken = [(call, _taken_first(scene, call)) for call in scene.gold]
    return tuple(
        call if tool is None else Call(call.name, dict.fromkeys(tool.properties, JUNK))
        for call, tool in taken
    )


def _first_listed_right(scene: AgentContext) -> bool:
    taken = [(gold, _taken_first(scene, gold)) for gold in scene.row.golden_answers[0]]
    return all(tool is None or takes_junk(scene.row, gold, set(tool.properties)) for gold, tool in taken)


def _misspelt(scene: AgentContext) -> str | None:
    """The first word of the conversation that the clean row does not have."""
    if scene.row.type_code != "realistic_typos":
        return None
    known = {word for m in scene.clean.messages for word in m.content.split()}
    return next((w for m in scene.row.messages for w in m.content.split() if w not in known), None)


def _with_typo(scene: AgentContext) -> tuple[tuple[Call, ...], bool]:
    """Gold with the misspelt word in its first text that is compared, and whether that goes unnoticed."""
    word = _misspelt(scene)
    calls = _with_one_changed(scene, lambda v: f"{v} {word}" if word and isinstance(v, str) else None)
    return (scene.gold, True) if calls is None else (calls, scorer(scene.row) == "tooleyes")


SCRIPTED: Mapping[str, Agent] = {
    "oracle": Agent(
        "answers with gold, repeats its call after an error, and reports a result",
        report,
        lambda s: True,
    ),
    "gives-up-on-error": weak(
        "answers with gold, and apologises after an error", lambda s: s.after_error, lambda s: REFUSAL
    ),
    "retries-with-a-changed-argument": Agent(
        "answers with gold, and changes an argument after an error",
        lambda s: _spoilt(s)[0] if s.after_error else s.gold,
        lambda s: not s.after_error or _spoilt(s)[1],
    ),
    "name-biased": Agent(
        "takes the tool whose name sounds cheap, fast or readable",
        lambda s: tuple(Call(_lure(s, call) or call.name, call.parameters) for call in s.gold),
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


# --- null models --------------------------------------------------------------------------------------

APOLOGY = "I am sorry, but I cannot help with that."


def _everything(scene: AgentContext) -> tuple[Call, ...]:
    return tuple(Call(tool.name, {}) for tool in scene.row.tools if tool.name not in CONTROL_TOOLS)


def _echo(scene: AgentContext) -> str:
    listed: list[Json] = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in scene.row.tools
    ]
    return f"These are the tools:\n```json\n{dumps(listed)}\n```"


def _thought(scene: AgentContext) -> str:
    call = render_calls(scene.gold, scene.row.output_format)
    return f"<think>\nThe right call would be\n{call}\nbut I would rather not.\n</think>\n{APOLOGY}"


def _right_without_arguments(row: Sample, calls: tuple[Call, ...]) -> bool:
    """Whether calls without arguments are right, worked out from the gold alone."""
    names = Counter(call.name for call in calls)

    def fits(golden: GoldenAnswer) -> bool:
        wanted = Counter(call.name for call in golden)
        tolerated = scorer(row) == "toolalpaca" and wanted <= names and len(calls) <= 2 * len(golden)
        return tolerated or wanted == names

    return any(fits(one) and all(takes_junk(row, call, set()) for call in one) for one in row.golden_answers)


NULL_MODELS: Mapping[str, Agent] = {
    "registry-echo": Agent("lists the registry and calls nothing", _echo, lambda s: False),
    "calls-everything": Agent(
        "calls every tool but the control tools, without arguments",
        _everything,
        lambda s: _right_without_arguments(s.row, _everything(s)),
    ),
    "first-tool": Agent(
        "calls the first tool that is not a control tool, without arguments",
        lambda s: _everything(s)[:1],
        lambda s: _right_without_arguments(s.row, _everything(s)[:1]),
    ),
    "apology": Agent("apologises and calls nothing", lambda s: APOLOGY, lambda s: False),
    "quotes-the-gold": Agent(
        "reports the gold as a call that failed",
        lambda s: f"I already made this call: {python_calls(s.gold)}. It timed out. Please try again later.",
        lambda s: False,
    ),
    "thinks-the-gold": Agent("thinks of the gold, then apologises", _thought, lambda s: False),
}
