"""Action: which tools were added, and of what kind."""

import re

from robustbench_tc import taxonomy
from robustbench_tc.schema import CONTROL_TOOLS, OMIT, Call, Sample, Tool

from ..checks import check
from .allowed import added_tools
from .base import first_answer_names, of_channels

PER_TOOL = 2
"""New tools for each tool of the clean row, at most (`redundant`)."""


@check("benchmark_rows")
def tools_are_tools(row: Sample, clean: Sample) -> None:
    """Every entry of a registry has a name and an object of parameters, and none is a parsing accident."""
    assert row.tools, "the registry is empty"
    for index, tool in enumerate(row.tools):
        assert tool.name.strip() and tool.name == tool.name.strip() and "\n" not in tool.name, (
            f"/tools/{index} has no proper name"
        )
        assert not tool.name.startswith("*"), f"/tools/{index} is a prompt's step, not a tool"
        properties = tool.parameters.get("properties", {})
        assert isinstance(properties, dict) and tool.parameters.get("type", "object") == "object", (
            f"/tools/{index} has no object of parameters"
        )
        assert set(tool.required) <= set(properties), (
            f"/tools/{index} requires a parameter that it does not declare"
        )


@check("benchmark_rows", for_=of_channels("namesake"))
def one_distractor_per_gold_tool(row: Sample, clean: Sample) -> None:
    """Exactly one namesake per gold tool: fewer is not a perturbation, more is another one."""
    extra = added_tools(row, clean)
    assert extra is not None, "the clean tools do not stand in it"
    wanted = sorted(first_answer_names(clean))
    assert sorted(t.name for t in extra) == wanted, f"{len(extra)} new tools for {len(wanted)} gold tools"


@check("benchmark_rows", for_=of_channels("namesake"))
def distractor_is_of_its_kind(row: Sample, clean: Sample) -> None:
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
        assert old is not None, "a new tool has no namesake"
        _described(new, old, described)
        if wrong_parameters:
            wrong = new.properties and set(new.properties) != set(old.properties)
            assert wrong, "the distractor's parameters are not wrong"
        else:
            assert not new.properties, "the distractor has parameters"
    assert extra, "there is no distractor"


def _described(new: Tool, gold: Tool, described: str) -> None:
    if described == "none":
        assert not new.description, "the distractor has a description"
    if described == "gold":
        same = new.description == gold.description and new.description.strip()
        assert same, "the distractor's description is not the gold tool's"
    if described == "donor":
        other = new.description.strip() and new.description != gold.description
        assert other, "the distractor's description is not another tool's"


@check("benchmark_rows", for_=of_channels("namesake"))
def distractor_refuses_the_gold_call(row: Sample, clean: Sample) -> None:
    """A golden call that also fits the distractor leaves nothing to choose: no form of one may fit it."""
    extra = added_tools(row, clean) or []
    for new in extra:
        for answer in clean.golden_answers:
            for call in answer:
                assert call.name != new.name or _misfits(call, new), "a golden call fits the distractor"
    assert extra, "there is no distractor"


def _misfits(call: Call, tool: Tool) -> list[str]:
    """Parameters for which the call cannot be meant for the tool: undeclared ones, and missing ones."""
    optional = [
        name
        for name, values in call.parameters.items()
        if isinstance(values, list | tuple) and OMIT in values
    ]
    undeclared = [n for n in call.parameters if n not in tool.properties and n not in optional]
    return undeclared + [n for n in tool.required if n not in call.parameters]


@check("benchmark_rows", for_=of_channels("siblings"))
def redundant_tools_are_new(row: Sample, clean: Sample) -> None:
    """Redundant tools surround the gold tool and never stand in for it: new names, at most two per tool."""
    extra = added_tools(row, clean)
    assert extra, "there is no new tool"
    names = [tool.name for tool in extra]
    assert len(set(names)) >= len(names) and not (set(names) & {tool.name for tool in clean.tools}), (
        "a new tool's name is taken"
    )
    assert len(extra) <= PER_TOOL * sum(tool.name not in CONTROL_TOOLS for tool in clean.tools), (
        "there are more than two new tools per tool"
    )
    assert not any(not tool.description.strip() for tool in extra), "a new tool has no description"


@check("benchmark_rows", for_=of_channels("siblings"))
def redundant_tools_have_their_registrys_style(row: Sample, clean: Sample) -> None:
    """A key or a type that a registry's own tools never have gives its new tools away without any reading."""
    ours = [tool for tool in clean.tools if tool.name not in CONTROL_TOOLS]
    marks = set[str]().union(*map(_marks, ours)) | _ANYWHERE
    for new in added_tools(row, clean) or []:
        foreign = sorted(_marks(new) - marks)
        assert not foreign, f"a new tool has {foreign[0]}, which no tool of its registry has"
        assert any(list(new.parameters) == list(tool.parameters) for tool in ours), (
            "a new tool's schema has other keys than those of its registry"
        )


_ANYWHERE = frozenset(("the key 'type'", "the key 'description'", "the type 'string'"))
"""What a new tool may have in every registry: a type, words, and texts where there is no better word."""


def _marks(tool: Tool) -> set[str]:
    """The keys and types of a tool's parameters."""
    found = set[str]()
    for inner in tool.properties.values():
        if isinstance(inner, dict):
            found |= {f"the key {key!r}" for key in inner} | {f"the type {inner.get('type')!r}"}
    return found


@check("benchmark_rows", for_=of_channels("siblings"))
def redundant_tools_differ(row: Sample, clean: Sample) -> None:
    """A new tool that says what another says adds nothing: names and descriptions all differ."""
    extra = added_tools(row, clean) or []
    ours = {id(tool) for tool in extra}
    for new in extra:
        for tool in row.tools:
            assert tool is new or (id(tool) in ours and tool.name >= new.name) or not _alike(new, tool), (
                "a new tool is all but the same as another"
            )


def _alike(one: Tool, other: Tool) -> bool:
    """Names that differ in case, separators and plurals only, or descriptions of the same words."""
    names = [re.sub(r"[^a-z0-9]", "", tool.name.lower()).removesuffix("s") for tool in (one, other)]
    words = [set(re.findall(r"\w+", tool.description.lower())) for tool in (one, other)]
    return names[0] == names[1] or (words[0] == words[1] and bool(words[0]))
