"""The table of formats that are read: one row for each variant code, and the order in which each source tries
them. Documentation and reports are made from it."""

from collections.abc import Callable
from functools import cache
from typing import Literal

import msgspec

from robustbench_tc import sources

from . import labelled, plain, python_calls, python_lines, react
from .context import Found, ParseContext
from .json_text import json_anywhere

Values = Literal["JSON", "Python", "schema", "text", "own"]


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """One row: how calls are written and what follows from it."""

    code: str
    title: str
    models: str
    marked: bool
    """Counts wherever it stands in the final answer; else only as the reply's act."""
    values: Values
    """How argument values get their types: as JSON or Python literals, by the tool's schema, not at all, or by
    what the format itself says."""
    entities: bool = False
    """XML entities in values are decoded, once."""
    name_alone: bool = False
    """The grammar has calls without arguments: the name of a registered tool is enough."""


_TABLE = (
    Format(
        code="B1",
        title="list of Python calls",
        models="BFCL prompts, Llama 3.2, ToolACE",
        marked=False,
        values="Python",
    ),
    Format(code="B2", title="the same with colons", models="BFCL prompts", marked=False, values="Python"),
    Format(code="B3", title="keyword list", models="BFCL prompts", marked=False, values="Python"),
    Format(
        code="A1",
        title="JSON in call tags",
        models="Hermes, Qwen, ToolRL, Granite, MiniMax-M1",
        marked=True,
        values="JSON",
    ),
    Format(
        code="A2",
        title="name in a tag, object behind",
        models="XML agents",
        marked=True,
        values="JSON",
        name_alone=True,
    ),
    Format(
        code="A3",
        title="object in an attribute",
        models="XML agents",
        marked=True,
        values="JSON",
        entities=True,
    ),
    Format(
        code="A4",
        title="tag naming the tool, JSON inside",
        models="XML agents",
        marked=True,
        values="JSON",
        name_alone=True,
    ),
    Format(
        code="A5",
        title="the same, other attribute",
        models="XML agents",
        marked=True,
        values="JSON",
        name_alone=True,
    ),
    Format(code="A6", title="Python in call tags", models="Nemotron, OLMo-3", marked=True, values="Python"),
    Format(
        code="A7",
        title="JSON or Python behind a special token",
        models="Llama 3.1 and 4, LFM2, Apertus, Cohere, InternLM, Granite, Phi-4",
        marked=True,
        values="own",
    ),
    Format(
        code="X1",
        title="<function=f> with <parameter=k>",
        models="Qwen3-Coder, Seed-OSS",
        marked=True,
        values="schema",
        name_alone=True,
    ),
    Format(
        code="X2",
        title="<invoke name=…> with <parameter name=…>",
        models="Anthropic, MiniMax-M2, DeepSeek V3.2, Step-3, Kimi K3",
        marked=True,
        values="schema",
        entities=True,
        name_alone=True,
    ),
    Format(
        code="X3",
        title="<invoke> with <tool_name>",
        models="Anthropic, older",
        marked=True,
        values="schema",
        entities=True,
        name_alone=True,
    ),
    Format(
        code="X4",
        title="element called as the tool",
        models="Cline",
        marked=True,
        values="schema",
        entities=True,
        name_alone=True,
    ),
    Format(
        code="X5",
        title="arguments as attributes",
        models="XML agents",
        marked=True,
        values="schema",
        entities=True,
        name_alone=True,
    ),
    Format(
        code="X6",
        title="<name> and <arguments>",
        models="XML agents",
        marked=True,
        values="JSON",
        entities=True,
        name_alone=True,
    ),
    Format(
        code="L1", title="<function=f>{…}", models="Llama 3.1, Functionary 3.1", marked=True, values="JSON"
    ),
    Format(
        code="G1",
        title="<arg_key> and <arg_value>",
        models="GLM-4.5 and later, LongCat",
        marked=True,
        values="schema",
        name_alone=True,
    ),
    Format(code="M1", title="[TOOL_CALLS]", models="Mistral v3, v7, v11", marked=True, values="JSON"),
    Format(
        code="D1",
        title="DeepSeek's call tokens",
        models="DeepSeek V3, R1-0528, V3.1",
        marked=True,
        values="JSON",
    ),
    Format(
        code="K1",
        title="functions.f:0 between call tokens",
        models="Kimi K2, Solar",
        marked=True,
        values="JSON",
    ),
    Format(code="H1", title="harmony, to=functions.f", models="gpt-oss", marked=True, values="JSON"),
    Format(
        code="F1", title="recipient and content", models="Functionary 2 and 3", marked=True, values="JSON"
    ),
    Format(code="E1", title="call:f{…}", models="FunctionGemma, Gemma 4", marked=True, values="schema"),
    Format(
        code="Q1",
        title="✿FUNCTION✿ and ✿ARGS✿",
        models="Qwen-Agent",
        marked=True,
        values="JSON",
        name_alone=True,
    ),
    Format(
        code="R1",
        title="Action and Action Input",
        models="ReAct prompts",
        marked=True,
        values="JSON",
        name_alone=True,
    ),
    Format(
        code="R2",
        title="ActionCode and Action Input",
        models="ReAct prompts",
        marked=True,
        values="JSON",
        name_alone=True,
    ),
    Format(
        code="J",
        title="JSON objects",
        models="Llama 3.1, xLAM, Mistral without tokens",
        marked=False,
        values="JSON",
    ),
    Format(code="T1", title="name, colon, object", models="any", marked=False, values="JSON"),
    Format(code="T2", title="labelled lines, object", models="any", marked=False, values="JSON"),
    Format(code="T3", title="query string", models="any", marked=False, values="text"),
    Format(
        code="T4", title="labelled name, key and value lines", models="any", marked=False, values="schema"
    ),
    Format(
        code="P", title="Python call on a line", models="Gemma, Gemini, any", marked=False, values="Python"
    ),
    Format(
        code="N1",
        title="name right before an object",
        models="native formats without their tokens",
        marked=False,
        values="JSON",
    ),
)

FORMATS: dict[str, Format] = {row.code: row for row in _TABLE}
"""Every format by its code."""

MARKED = "A"
"""The step of an order that looks for every format between tags, behind tokens or in XML, in one pass."""

LABELLED = react.CODES
"""ReAct's formats, each a step of its own."""

BARE: dict[str, tuple[str, Callable[[str, ParseContext], list[Found]]]] = {
    "B1": ("(", python_calls.bracketed),
    "B2": ("(", python_calls.colon_separated),
    "B3": ("=", python_calls.keyword_list),
    "J": ("{", json_anywhere),
    "T1": ("{", plain.name_colon_object),
    "T2": ("\n", labelled.labelled),
    "T3": ("?", plain.query_string),
    "P": ("(", python_lines.own_lines),
    "N1": ("{", plain.name_before_object),
}
"""Code of the format → what a text must hold for it to find anything, reader. T4 is found in the step of T2."""

ORDERS: dict[str, tuple[str, ...]] = {
    "bfcl_v3": tuple("B1 B2 B3 A J R1 R2 T2 T1 N1 T3 P".split()),
    "apibank": tuple("A J B1 B2 B3 R1 R2 T2 T1 N1 T3 P".split()),
    "rotbench": tuple("R1 R2 J A B1 B2 B3 P T2 T1 N1 T3".split()),
    "toolalpaca": tuple("R1 R2 T2 A J T1 N1 T3 B1 B2 B3 P".split()),
    "tooleyes": tuple("R1 R2 J A B1 B2 B3 T2 T1 N1 T3 P".split()),
}
"""The steps of each source in order; `A` stands for the marked formats, in order of appearance."""

_LIKE = {"python_calls": "bfcl_v3", "tool_call_tags": "apibank", "react": "rotbench"}
"""A source without an order of its own takes that of the first source with its output format."""


@cache
def order_of(source: str) -> tuple[str, ...]:
    """The steps of a source. Raises UserError for an unknown one."""
    return ORDERS.get(source) or ORDERS[_LIKE[sources.get(source).output_format]]
