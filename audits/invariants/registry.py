"""Action: which tools were added, and of what kind."""

import re

from robustbench_tc import taxonomy
from robustbench_tc.schema import CONTROL_TOOLS, OMIT, Call, Sample, Tool

from .allowed import added_tools
from .base import HOLDS, Verdict, accepted_names, every, first_answer_names, invariant, of, of_series

PER_TOOL = 2
"""New tools for each tool of the clean row, at most (`redundant`)."""


@invariant(every)
def tools_are_tools(row: Sample, clean: Sample) -> Verdict:
    """Every entry of a registry has a name and an object of parameters, and none is a parsing accident."""
    if not row.tools:
        return "the registry is empty"
    for index, tool in enumerate(row.tools):
        if not tool.name.strip() or tool.name != tool.name.strip() or "\n" in tool.name:
            return f"/tools/{index} has no proper name"
        if tool.name.startswith("*"):
            return f"/tools/{index} is a prompt's step, not a tool"
        properties = tool.parameters.get("properties", {})
        if not isinstance(properties, dict) or tool.parameters.get("type", "object") != "object":
            return f"/tools/{index} has no object of parameters"
        if not set(tool.required) <= set(properties):
            return f"/tools/{index} requires a parameter that it does not declare"
    return HOLDS


@invariant(of("namesake"))
def one_distractor_per_gold_tool(row: Sample, clean: Sample) -> Verdict:
    """Exactly one namesake per gold tool: fewer is not a perturbation, more is another one."""
    extra = added_tools(row, clean)
    if extra is None:
        return "the clean tools do not stand in it"
    wanted = sorted(first_answer_names(clean))
    return (
        HOLDS
        if sorted(t.name for t in extra) == wanted
        else f"{len(extra)} new tools for {len(wanted)} gold tools"
    )


@invariant(of("namesake"))
def distractor_is_of_its_kind(row: Sample, clean: Sample) -> Verdict:
    """Same-name types differ in the distractor's description and parameters alone: those must be right."""
    extra = added_tools(row, clean)
    traits = taxonomy.get(row.type_code).traits
    described, wrong_parameters = str(traits["description"]), bool(traits["wrong_parameters"])
    gold = {tool.name: tool for tool in reversed(clean.tools)}
    if clean.gold_tool_index is not None and 0 <= clean.gold_tool_index < len(clean.tools):
        meant = clean.tools[clean.gold_tool_index]
        gold[meant.name] = meant
    for new in extra or []:
        old = gold.get(new.name)
        if old is None:
            return "a new tool has no namesake"
        if problem := _kind(new, old, described) or _parameters(new, old, wrong_parameters):
            return problem
    return HOLDS if extra else "there is no distractor"


def _kind(new: Tool, gold: Tool, described: str) -> str:
    if described == "none" and new.description:
        return "the distractor has a description"
    if described == "gold" and (new.description != gold.description or not new.description.strip()):
        return "the distractor's description is not the gold tool's"
    if described == "donor" and (not new.description.strip() or new.description == gold.description):
        return "the distractor's description is not another tool's"
    return HOLDS


def _parameters(new: Tool, gold: Tool, wrong: bool) -> str:
    if not wrong:
        return "the distractor has parameters" if new.properties else HOLDS
    if not new.properties or set(new.properties) == set(gold.properties):
        return "the distractor's parameters are not wrong"
    return HOLDS


@invariant(of("namesake"))
def distractor_refuses_the_gold_call(row: Sample, clean: Sample) -> Verdict:
    """A golden call that also fits the distractor leaves nothing to choose: no form of one may fit it."""
    extra = added_tools(row, clean) or []
    for new in extra:
        for answer in clean.golden_answers:
            for call in answer:
                if call.name == new.name and not _misfits(call, new):
                    return "a golden call fits the distractor"
    return HOLDS if extra else "there is no distractor"


def _misfits(call: Call, tool: Tool) -> list[str]:
    """Parameters for which the call cannot be meant for the tool: undeclared ones, and missing ones."""
    optional = [
        name
        for name, values in call.parameters.items()
        if isinstance(values, list | tuple) and OMIT in values
    ]
    undeclared = [n for n in call.parameters if n not in tool.properties and n not in optional]
    return undeclared + [n for n in tool.required if n not in call.parameters]


@invariant(of("siblings"))
def redundant_tools_are_new(row: Sample, clean: Sample) -> Verdict:
    """Redundant tools surround the gold tool and never stand in for it: new names, at most two per tool."""
    extra = added_tools(row, clean)
    if not extra:
        return "there is no new tool"
    names = [tool.name for tool in extra]
    if len(set(names)) < len(names) or set(names) & {tool.name for tool in clean.tools}:
        return "a new tool's name is taken"
    if len(extra) > PER_TOOL * sum(tool.name not in CONTROL_TOOLS for tool in clean.tools):
        return "there are more than two new tools per tool"
    if any(not tool.description.strip() for tool in extra):
        return "a new tool has no description"
    return HOLDS


@invariant(of("siblings"))
def redundant_tools_have_their_registrys_style(row: Sample, clean: Sample) -> Verdict:
    """A key or a type that a registry's own tools never have gives its new tools away without any reading."""
    ours = [tool for tool in clean.tools if tool.name not in CONTROL_TOOLS]
    marks = set[str]().union(*map(_marks, ours)) | _ANYWHERE
    for new in added_tools(row, clean) or []:
        if foreign := sorted(_marks(new) - marks):
            return f"a new tool has {foreign[0]}, which no tool of its registry has"
        if not any(list(new.parameters) == list(tool.parameters) for tool in ours):
            return "a new tool's schema has other keys than those of its registry"
    return HOLDS


_ANYWHERE = frozenset(("the key 'type'", "the key 'description'", "the type 'string'"))
"""What a new tool may have in every registry: a type, words, and texts where there is no better word."""


def _marks(tool: Tool) -> set[str]:
    """The keys and types of a tool's parameters."""
    found = set[str]()
    for inner in tool.properties.values():
        if isinstance(inner, dict):
            found |= {f"the key {key!r}" for key in inner} | {f"the type {inner.get('type')!r}"}
    return found


@invariant(of("siblings"))
def redundant_tools_differ(row: Sample, clean: Sample) -> Verdict:
    """A new tool that says what another says adds nothing: names and descriptions all differ."""
    extra = added_tools(row, clean) or []
    ours = {id(tool) for tool in extra}
    for new in extra:
        for tool in row.tools:
            if tool is not new and (id(tool) not in ours or tool.name < new.name) and _alike(new, tool):
                return "a new tool is all but the same as another"
    return HOLDS


def _alike(one: Tool, other: Tool) -> bool:
    """Names that differ in case, separators and plurals only, or descriptions of the same words."""
    names = [re.sub(r"[^a-z0-9]", "", tool.name.lower()).removesuffix("s") for tool in (one, other)]
    words = [set(re.findall(r"\w+", tool.description.lower())) for tool in (one, other)]
    return names[0] == names[1] or (words[0] == words[1] and bool(words[0]))


@invariant(of_series("flood"))
def no_new_tool_is_described_as_a_gold_one(row: Sample, clean: Sample) -> Verdict:
    """A tool that would serve as well makes a second answer right: none that came in has more than half of
    its words in common with an accepted tool's description."""
    gold = [_described(tool) for tool in clean.tools if tool.name in accepted_names(clean)]
    known = {tool.name for tool in clean.tools}
    for tool in row.tools:
        words = _described(tool)
        for other in gold:
            shared = words & other
            if tool.name not in known and len(shared) > 2 and 2 * len(shared) > max(len(words), len(other)):
                return f"{tool.name} is described as an accepted tool is: {', '.join(sorted(shared)[:5])}"
    return HOLDS


_OF_ANY_TOOL = frozenset(
    "thi that with from given search searche return find user data based like retrieve specific about".split()
)


def _described(tool: Tool) -> set[str]:
    words = re.findall(r"[a-z]{4,}", f"{tool.name} {tool.description}".lower())
    return {word.removesuffix("s") for word in words} - _OF_ANY_TOOL
