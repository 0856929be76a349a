"""Clean rows as a tools file and a cases file: what a user would write to ask the same.

Each list of accepted values becomes a matcher, with what the source's scorer allows beyond it where a case
can say that. What a case cannot say (texts without case and punctuation, more calls than gold has) is left.
"""

import ast
import json
import re
from collections.abc import Sequence
from pathlib import Path

from robustbench_tc import sources
from robustbench_tc.builders.perturb.registry import plain
from robustbench_tc.eval.score import matchers
from robustbench_tc.eval.score.matchers import subschemas
from robustbench_tc.schema import ANY, CONTROL_TOOLS, OMIT, Call, GoldenAnswer, Json, Sample, Tool

SURPLUS = frozenset({"toolalpaca", "tooleyes"})
"""Scorers that do not look at arguments which gold has not."""

FREE: dict[str, bool] = {"any": True, "optional": True}

_WRITTEN_OUT = re.compile("[^\t -~\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""Characters that YAML does not take as they are, or reads as an end of line."""

_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?")


def write(rows: Sequence[Sample], folder: Path) -> Path:
    """The files for clean rows of one registry; case `c3` is the fourth row. The path of the cases file."""
    (folder / "tools.json").write_text(json.dumps({"tools": [plain(tool) for tool in rows[0].tools]}))
    cases = [_case(row, f"c{number}") for number, row in enumerate(rows)]
    path = folder / "cases.yaml"
    text = json.dumps({"version": 1, "tools": ["tools.json"], "cases": cases}, ensure_ascii=False)
    path.write_text(_WRITTEN_OUT.sub(lambda found: f"\\u{ord(found[0]):04x}", text))  # JSON is YAML
    return path


def _tool(call: Call, row: Sample) -> Tool:
    return next(tool for tool in row.tools if tool.name == call.name)


def _case(row: Sample, id: str) -> dict[str, Json]:
    scorer = sources.get(row.source).scorer
    messages = [{"role": message.role, "content": message.content} for message in row.messages]
    case: dict[str, Json] = {"id": id}
    case |= {"request": messages[0]["content"]} if len(messages) == 1 else {"messages": messages}
    answers = [_answer(golden, row, scorer) for golden in row.golden_answers]
    case |= {"expect": answers[0]} if len(answers) == 1 else {"any_of": answers}
    if scorer == "apibank" and any(len(golden) > 1 for golden in row.golden_answers):
        case["ordered"] = True
    calls = [call for golden in row.golden_answers for call in _named(golden, row)]
    if scorer in SURPLUS or any(call.parameters.keys() - _tool(call, row).properties for call in calls):
        case["extra"] = "allow"
    return case


# --- golden answers -----------------------------------------------------------------------------------


def _named(golden: GoldenAnswer, row: Sample) -> list[Call]:
    """The calls that are judged, by the names of the tools that are meant."""
    scorer = sources.get(row.source).scorer
    if scorer == "tooleyes":
        return [call for call in golden if call.name not in CONTROL_TOOLS]
    one_tool = scorer == "bfcl_v3" and not re.search("multiple|parallel", row.category)
    return [Call(row.tools[0].name, call.parameters) for call in golden] if one_tool else [*golden]


def _answer(golden: GoldenAnswer, row: Sample, scorer: str) -> Json:
    calls = []
    for call in _named(golden, row):
        tool = _tool(call, row)
        arguments: dict[str, Json] = {
            key: _expected(accepted, key, tool, scorer) for key, accepted in call.parameters.items()
        }
        if scorer == "rotbench" and call.name in CONTROL_TOOLS:
            arguments = dict.fromkeys(call.parameters, ANY)
        if scorer == "tooleyes":
            arguments = dict.fromkeys(call.parameters, FREE)
        if scorer in SURPLUS:
            arguments |= dict.fromkeys((name for name in tool.required if name not in call.parameters), FREE)
        calls.append({"call": call.name, "arguments": arguments})
    return calls or "no_call"


def _expected(accepted: list[Json], key: str, tool: Tool, scorer: str) -> Json:
    """One parameter's accepted values as what a case writes."""
    if scorer == "toolalpaca" and any(value is None or value in ("", "None") for value in accepted):
        return FREE
    optional = OMIT in accepted and (len(accepted) > 1 or scorer == "bfcl_v3")
    values = [value for value in accepted if value != OMIT] if optional and len(accepted) > 1 else accepted
    schema = subschemas.property_of(tool.parameters, key, tool.parameters)
    choices = [one for value in values for one in _choices(value, schema, tool.parameters, scorer)]
    return _one_of(choices, optional)


def _one_of(choices: list[Json], optional: bool) -> Json:
    kept = [one for at, one in enumerate(choices) if one not in choices[:at]]
    if len(kept) == 1 and matchers.kind(kept[0]) is None and kept[0] is not None:
        return {"exact": kept[0], "optional": True} if optional else kept[0]
    found = kept[0] if len(kept) == 1 and kept[0] is not None else {"one_of": kept}
    return {**found, "optional": True} if optional else found


def _choices(value: Json, schema: Json, root: Json, scorer: str) -> list[Json]:
    """What a case writes for one accepted value; two things where a number may be written as text."""
    if value == ANY:
        return [ANY]
    words = subschemas.types(schema, root)
    if isinstance(value, str) and "string" not in words:
        declared = _as_declared(value, words)
        if scorer == "apibank" and isinstance(declared, list | bool):  # its scorer takes the text as well
            return [declared, {"regex": rf"(?i)^\s*{re.escape(value.strip())}\s*$"}]
        value = declared
    if isinstance(value, int | float) and not isinstance(value, bool) and words == {"string"}:
        return [{"number": value}, str(value)]
    if scorer == "bfcl_v3":
        return [_with_options(value)]
    return [{"exact": value} if matchers.kind(value) is not None else value]


def _as_declared(text: str, words: frozenset[str]) -> Json:
    """What a golden text spells where the tool wants no text: some write numbers and lists so."""
    said = text.strip()
    if words & {"integer", "number"} and _DECIMAL.fullmatch(said):
        return float(said) if "." in said else int(said)
    if "boolean" in words and said.lower() in ("true", "false"):
        return said.lower() == "true"
    return ast.literal_eval(said) if "array" in words and said.startswith("[") else text


def _with_options(value: Json) -> Json:
    """BFCL: in an object, and in a list of objects, each key has accepted values of its own."""
    if isinstance(value, list):
        return [_with_options(item) if isinstance(item, dict) else item for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _one_of([one for one in options if one != OMIT], OMIT in options)
        if isinstance(options, list) and any(one != OMIT for one in options)
        else options
        for key, options in value.items()
    }
