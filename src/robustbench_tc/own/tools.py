"""A user's tool files: OpenAI `tools`, MCP `tools/list` replies, Anthropic's shape or a plain list, as one.

Schemas are kept exactly as they are written, key order included.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.schema import Json, Tool

from . import files, openapi, schemas
from .cases import OwnTool
from .files import read_bytes
from .logs.chat import each

_SCHEMAS = ("parameters", "inputSchema", "input_schema")
_PLAIN_TYPES = (None, "function", "custom")
"""What `type` says of a tool with a schema; other words are a provider's built-in tools."""
_SHAPES = "OpenAI tools, an MCP tools/list reply, Anthropic tools or [{name, description, parameters}]"


def read_tools(path: Path) -> tuple[OwnTool, ...]:
    """The tools of a file, its stem as their prefix."""
    return parse_tools(read_bytes(path, "a tools file"), path.stem, str(path))


def parse_tools(data: bytes, prefix: str, where: str) -> tuple[OwnTool, ...]:
    """The tools of a JSON text. `where` names it in errors: the first tool that cannot be used is one."""
    found = entries(data, prefix, where)
    for one in found:
        if one.problem:
            raise UserError(f"{where}: {one.problem}")
    return tuple(
        OwnTool(
            tool=one.tool, prefix=prefix, name=one.name, read_only=one.read_only, idempotent=one.idempotent
        )
        for one in found
        if not one.is_page
    )


class Entry(OwnTool, frozen=True, kw_only=True):
    """What a list says of one tool, or a page of a list of itself.

    Its name is "" where none can be read, and it has no parameters where its schema is broken.
    """

    raw: dict[str, Json]
    """As it was written."""
    is_mcp: bool = False
    """Whether it is of a `tools/list` reply, whose form MCP's schema tells."""
    is_page: bool = False
    problem: str = ""
    """Why it cannot be used."""


def entries(data: bytes, prefix: str, where: str) -> list[Entry]:
    """The entries of a JSON text, unusable ones included; each page of an MCP list before its own.

    Raises UserError for what is no JSON or no list, and for a list of nothing.
    """
    openapi.refuse_yaml(data, where)
    values = files.values(data, where)
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    elif len(values) == 1 and openapi.is_openapi(values[0]):
        values = openapi.tools_of(values[0], where)
    pages = [isinstance(one, dict) and bool({"tools", "result", "error"} & one.keys()) for one in values]
    if any(pages) and not all(pages):
        raise UserError(f"{where}: tools and tools/list replies are mixed in one list; keep one kind")
    found: list[Entry] = []
    for number, value in enumerate(values, 1) if any(pages) else ():
        page = value["result"] if "tools" not in value and "result" in value else value
        listed = page.get("tools") if isinstance(page, dict) else None
        problem = ""
        if value.get("error") is not None:
            problem = f"page {number} is an error of the server, not a list of its tools"
        elif not isinstance(listed, list):
            problem = f"page {number}: 'tools' must be a list"
        elif number == len(values) and page.get("nextCursor"):
            problem = f"page {number} states a nextCursor: the list goes on; add that page"
        before = sum(not one.is_page for one in found)
        found.append(
            _made(
                {},
                prefix,
                raw=page if isinstance(page, dict) else None,
                is_page=True,
                is_mcp=True,
                problem=problem,
            )
        )
        found += [_entry(one, place, prefix, True) for place, one in enumerate(each(listed), before)]
    if not any(pages):
        found = [_entry(one, place, prefix, False) for place, one in enumerate(values)]
    if all(one.is_page and not one.problem for one in found):
        raise UserError(f"{where}: lists no tools")
    return found


def _entry(raw: Json, place: int, prefix: str, in_page: bool) -> Entry:
    """An entry of a list, and the first reason why it cannot be used."""
    at = f"tool {place}"
    if not isinstance(raw, dict):
        return _made({}, prefix, problem=f"{at}: must be an object; wanted are {_SHAPES}")
    body = raw.get("function", raw)
    if not isinstance(body, dict):
        return _made({}, prefix, problem=f"{at}: 'function' must be an object")
    given = [key for key in _SCHEMAS if key in body]
    name, parameters = body.get("name"), body[given[0]] if given else None
    problem = ""
    if not isinstance(name, str) or not name.strip():
        problem = f"'name' must be a text that is not empty; wanted are {_SHAPES}"
    elif raw.get("type") not in _PLAIN_TYPES and not given:
        kind = str(raw["type"])[:40]
        problem = f"type {kind!r} is built into a provider and has no schema; leave it out"
    elif len(given) > 1:
        problem = f"{given[0]!r} and {given[1]!r} both stand there; keep one"
    elif not isinstance(body.get("description"), str | None):
        problem = "'description' must be a text"
    elif not isinstance(parameters, dict | None):
        problem = f"{given[0]!r} must be a JSON Schema object"
    elif parameters is not None and (reason := schemas.problem(parameters)):
        problem = f"{given[0]}: {' '.join(reason.split())[:300]}"
    if isinstance(name, str) and name.strip():
        at = f"{at} ({name[:60]!r})"
    return _made(
        {**body, "parameters": None if problem else parameters},
        prefix,
        raw=body,
        is_mcp=given == ["inputSchema"] or (in_page and not given and body is raw),
        problem=problem and f"{at}: {problem}",
    )


def _made(body: dict[str, Json], prefix: str, raw: dict[str, Json] | None = None, **more: Any) -> Entry:
    """An entry of what can be read of it."""
    name, description = (
        one if isinstance(one := body.get(key), str) else "" for key in ("name", "description")
    )
    parameters = body.get("parameters")
    if parameters is None:  # providers take a function without parameters for one with an empty list of them
        parameters = {"type": "object", "properties": {}}
    annotations = body.get("annotations")
    hints = annotations if isinstance(annotations, dict) else {}
    return Entry(
        tool=Tool(name=name, description=description, parameters=parameters),
        prefix=prefix,
        name=name,
        read_only=hints.get("readOnlyHint") is True,
        idempotent=hints.get("idempotentHint") is True,
        raw=raw or {},
        **more,
    )


_NUMBERED = re.compile(r"(?P<name>.+)#(?P<number>[1-9][0-9]{0,4})", re.DOTALL)


class Names:
    """The tools of all files, and what their names mean."""

    def __init__(self, tools: Sequence[OwnTool]) -> None:
        self._files: dict[str, dict[str, list[int]]] = {}
        """By name: by prefix the indices of its tools."""
        for index, tool in enumerate(tools):
            self._files.setdefault(tool.name, {}).setdefault(tool.prefix, []).append(index)
        self._prefixes = sorted({tool.prefix for tool in tools}, key=len, reverse=True)
        self.tools = tuple(
            tool
            if len(self._files[tool.name]) == 1
            else msgspec.structs.replace(
                tool, tool=msgspec.structs.replace(tool.tool, name=f"{tool.prefix}:{tool.name}")
            )
            for tool in tools
        )
        taken: dict[str, OwnTool] = {}
        for tool in self.tools:
            first = taken.setdefault(tool.tool.name, tool)
            if (first.prefix, first.name) != (tool.prefix, tool.name):
                raise UserError(f"two tools would be listed as {tool.tool.name[:80]!r}; rename one file")

    def shared(self) -> list[str]:
        """The names that several files bring."""
        return [name for name, files in self._files.items() if len(files) > 1]

    def index(self, text: str) -> int:
        """The tool that a name means; a `UserError` without a place where it means none or several."""
        for prefix in self._prefixes:
            if text.startswith(prefix + ":"):
                found = self._find(text[len(prefix) + 1 :], prefix)
                if found is not None:
                    return found
        found = self._find(text, None)
        if found is None:
            raise unknown("tool", text[:80], {tool.tool.name for tool in self.tools})
        return found

    def _find(self, name: str, prefix: str | None) -> int | None:
        number = 1
        if name not in self._files and (match := _NUMBERED.fullmatch(name)):
            name, number = match["name"], int(match["number"])
        files = self._files.get(name, {})
        if prefix is None and len(files) > 1:
            ways = " or ".join(f"{one}:{name}"[:80] for one in files)
            raise UserError(f"{name[:80]!r} is a tool of {len(files)} files; write {ways}")
        places = files.get(prefix, []) if prefix is not None else next(iter(files.values()), [])
        return places[number - 1] if number <= len(places) else None
