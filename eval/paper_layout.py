"""The data of the paper's public release: a folder with `clean.jsonl` and `<type code>.jsonl`.

A row, a multi-turn one left out and counted:

    {"id": "apibank__level1_900", "benchmark": "apibank", "category": "level1",
     "perturbation": {"type": "CD_NT", "mdp_category": "reward"}, "conversation": […], "tools": […],
     "golden_answers": [{"name": "AddNote", "parameters": {"content": "call Ana"}}],
     "eval_config": {}, "source": {}}

Several fields may be JSON in a string. Golden answers are flattened there (one value for each parameter) and
lifted back to lists of accepted values (scoring.md §3.6).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import msgspec

from robustbench_tc import sources, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval.prompts import json_schema
from robustbench_tc.schema import ANY, CONTROL_TOOLS, OMIT, Call, Json, Message, Sample, Tool, dumps, loads

THINK = "**Think"
"""A step of API-Bank's prompt that the release lists among the tools. It is none (benchmark.md §2)."""

_SYSTEM_HOLDS_TOOLS = ("apibank", "rotbench", "tooleyes")
"""Sources whose upstream system text only repeats the tool list and the output format."""


class _Perturbation(msgspec.Struct):
    type: str = taxonomy.CLEAN
    variant: Json = None


def is_release(path: Path) -> bool:
    """Whether `path` is a folder or a file in the paper's layout."""
    return path.suffix == ".jsonl" if path.is_file() else (path / "clean.jsonl").is_file()


def read_release(path: Path) -> tuple[tuple[Sample, ...], dict[str, int]]:
    """The rows of a folder in the paper's layout, or of one of its files, in taxonomy order; and what was
    left out, by reason. Raises UserError.

    Rows of that release need not have a clean row (50 of its same-name rows have none).
    """
    codes = [taxonomy.CLEAN, *(t.code for t in taxonomy.types("all"))]
    left_out: Counter[str] = Counter()
    files = [path] if path.is_file() else [path / f"{code}.jsonl" for code in codes]
    if path.is_dir():
        for other in sorted(path.glob("*.jsonl")):
            if other not in files:
                left_out[f"row of {other.name}, named after no type"] += sum(1 for _ in lines_of(other))
    rows: dict[str, Sample] = {}
    for file in filter(Path.is_file, files):
        for where, record in lines_of(file):
            if "multi_turn" in str(record.get("category")):
                left_out["multi-turn row"] += 1
            elif (row := _sample(record, file.stem, where, left_out)).id in rows:
                left_out["row id seen before"] += 1
            else:
                rows[row.id] = row
    if not rows:
        raise UserError(f"{path} holds no single-turn row in the layout of the paper's release")
    clean = {row.clean_id: row for row in rows.values() if row.type_code == taxonomy.CLEAN}
    ordered = sorted(rows.values(), key=lambda row: codes.index(row.type_code))
    return tuple(_completed(row, clean.get(row.clean_id)) for row in ordered), dict(left_out)


def lines_of(file: Path, left_out: Counter[str] | None = None) -> Iterator[tuple[str, dict[str, Json]]]:
    """Where each line of a file stands, and its object; a torn last line is counted in `left_out`, if that is
    given. Raises UserError for any other that is none."""
    lines = file.read_bytes().rstrip().split(b"\n")
    for number, line in enumerate(lines, 1):
        where = f"{file}, line {number}"
        if not line.strip():
            continue
        try:
            record = loads(line)
        except (ValueError, RecursionError) as error:
            if left_out is not None and number == len(lines):
                left_out["torn last line"] += 1
                return
            raise UserError(f"{where} is not JSON: {error}") from None
        if not isinstance(record, dict):
            raise UserError(f"{where} is not a JSON object")
        yield where, record


def decoded(value: Json) -> Json:
    """A field that may be JSON in a string, up to twice."""
    for _ in range(2):
        if isinstance(value, str):
            with suppress(ValueError, RecursionError):  # a text that only looks like JSON, or is too deep
                value = loads(value)
    return value


def _sample(record: dict[str, Json], stem: str, where: str, left_out: Counter[str]) -> Sample:
    source, clean_id, code = identity(record, stem, where)
    try:
        messages = msgspec.convert(decoded(record.get("conversation")), list[dict[str, Json]])
        tools = [decoded(tool) for tool in decoded(record.get("tools")) or []]
        golds = [decoded(gold) for gold in decoded(record.get("golden_answers")) or []]
        listed = tuple(_tool(tool) for tool in tools if tool.get("name") != THINK)
        left_out["pseudo-tool **Think"] += len(tools) - len(listed)
        left_out += Counter()  # drops zeros
        row = Sample(
            id=f"{clean_id}::{code}",
            clean_id=clean_id,
            type_code=code,
            component=taxonomy.component_of(code),
            source=source,
            category=str(record.get("category") or ""),
            messages=tuple(_messages(messages, source)),
            tools=listed,
            golden_answers=_lifted(golds, source, listed),
            output_format=sources.get(source).output_format,
            generator="paper release",
            injected_error=taxonomy.injected_error(code),
        )
    except (msgspec.ValidationError, AttributeError, TypeError, KeyError) as error:
        raise UserError(f"{where}: not a row of the paper's layout ({error})") from None
    if not any(row.golden_answers):
        raise UserError(f"{where}: no golden answer")
    return row


def identity(record: dict[str, Json], stem: str, where: str) -> tuple[str, str, str]:
    """Source, clean id and type code of a row of data or predictions."""
    clean_id = record.get("id")
    if not isinstance(clean_id, str) or not clean_id:
        raise UserError(f"{where}: no id, so not a row of the paper's layout")
    source = str(record.get("benchmark") or clean_id.partition("__")[0])
    source = {"bfcl": "bfcl_v3"}.get(source, source)
    if source not in sources.names():
        raise UserError(f"{where}: unknown benchmark {source!r}")
    try:
        kind = msgspec.convert(decoded(record.get("perturbation")) or {}, _Perturbation)
    except msgspec.ValidationError as error:
        raise UserError(f"{where}: perturbation: {error}") from None
    known = {taxonomy.CLEAN, *(t.code for t in taxonomy.types("all"))}
    for code in (kind.type, f"{kind.type}_{kind.variant}", stem):
        if code in known:
            return source, clean_id, code
    raise UserError(f"{where}: unknown perturbation type {kind.type!r}")


def _messages(found: Iterable[dict[str, Json]], source: str) -> Iterator[Message]:
    for message in found:
        role, content = message["role"], message.get("content")
        if role == "system" and source in _SYSTEM_HOLDS_TOOLS:
            continue
        text = content if isinstance(content, str) else "" if content is None else dumps(content)
        yield msgspec.convert({"role": role, "content": text.removesuffix("\nBegin!\n")}, Message)


def _tool(tool: dict[str, Json]) -> Tool:
    """A tool whose parameters are a whole schema, or a bare map of parameter to its own schema."""
    found = decoded(tool.get("parameters")) or {}
    if not isinstance(found, dict):
        raise TypeError("parameters that are not an object")
    if isinstance(found.get("properties"), dict) or found.get("type") in ("dict", "object"):
        parameters = json_schema.normalise(found)
    else:
        declared = {name: _property(decoded(inner)) for name, inner in found.items()}
        parameters = {"type": "object", "properties": declared}
    return Tool(str(tool["name"]), str(tool.get("description") or ""), parameters)


def _property(inner: Json) -> Json:
    return json_schema.normalise(inner) if isinstance(inner, dict) else {"description": str(inner or "")}


def _lifted(
    golds: Sequence[dict[str, Json]], source: str, tools: Sequence[Tool]
) -> tuple[tuple[Call, ...], ...]:
    """Flattened golden calls with lists of accepted values.

    RoTBench's are alternatives, the other sources' one answer of several calls.
    """
    calls = [
        _lifted_call(gold["name"], decoded(gold.get("parameters")) or {}, source, tools) for gold in golds
    ]
    if source == "rotbench":
        return tuple((call,) for call in calls)
    return (tuple(calls),) if calls else ()


def _lifted_call(name: str, parameters: dict[str, Json], source: str, tools: Sequence[Tool]) -> Call:
    accepted: dict[str, list[Json]] = {}
    named = (tool for tool in tools if tool.name == name)
    tool = next((tool for tool in named if set(parameters) <= set(tool.properties)), None)
    for key, value in parameters.items():
        if source == "rotbench" and (name in CONTROL_TOOLS or value == "None"):
            accepted[key] = [ANY]
        elif source == "bfcl_v3" and tool is not None and key not in tool.required:
            accepted[key] = [value, OMIT]
        else:
            accepted[key] = [value]
    return Call(name, cast(dict[str, Json], accepted))


def _completed(row: Sample, clean: Sample | None) -> Sample:
    """With `gold_tool_index`: of several tools of that name the one that clean has, else one that fits."""
    call = row.golden_answers[0][0]
    named = [i for i, tool in enumerate(row.tools) if tool.name == call.name]
    if not named:
        return row
    same = [i for i in named if clean is not None and row.tools[i] in clean.tools]
    fits = [i for i in named if set(call.parameters) <= set(row.tools[i].properties)]
    return msgspec.structs.replace(row, gold_tool_index=(same or fits or named)[0])
