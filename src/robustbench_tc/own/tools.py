"""A user's tool files: OpenAI `tools`, MCP `tools/list` replies, Anthropic's shape or a plain list, as one.

Schemas are kept exactly as they are written, key order included.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.schema import Json, Tool

from . import files, schemas
from .cases import OwnTool
from .files import read_bytes

_SCHEMAS = ("parameters", "inputSchema", "input_schema")
_PLAIN_TYPES = (None, "function", "custom")
"""What `type` says of a tool with a schema; other words are a provider's built-in tools."""
_SHAPES = "OpenAI tools, an MCP tools/list reply, Anthropic tools or [{name, description, parameters}]"


def read_tools(path: Path) -> tuple[OwnTool, ...]:
    """The tools of a file, its stem as their prefix."""
    return parse_tools(read_bytes(path, "a tools file"), path.stem, str(path))


def parse_tools(data: bytes, prefix: str, where: str) -> tuple[OwnTool, ...]:
    """The tools of a JSON text. `where` names it in errors."""
    entries = _entries(files.values(data, where), where)
    if not entries:
        raise UserError(f"{where}: lists no tools")
    return tuple(_tool(entry, place, prefix, where) for place, entry in enumerate(entries))


def _entries(values: list[Json], where: str) -> list[Json]:
    """The tools' entries, whatever list or pages they come in."""
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    pages = [isinstance(one, dict) and bool({"tools", "result", "error"} & one.keys()) for one in values]
    if not any(pages):
        return values
    if not all(pages):
        raise UserError(f"{where}: tools and tools/list replies are mixed in one list; keep one kind")
    found: list[Json] = []
    for number, value in enumerate(values, 1):
        page = _page(value, number, where)
        if number == len(values) and page.get("nextCursor"):
            raise UserError(f"{where}: page {number} states a nextCursor: the list goes on; add that page")
        found += page["tools"]
    return found


def _page(value: dict[str, Json], number: int, where: str) -> dict[str, Json]:
    """One `tools/list` result, out of its JSON-RPC envelope."""
    if value.get("error") is not None:
        raise UserError(f"{where}: page {number} is an error of the server, not a list of its tools")
    page = value["result"] if "tools" not in value and "result" in value else value
    if not isinstance(page, dict) or not isinstance(page.get("tools"), list):
        raise UserError(f"{where}: page {number}: 'tools' must be a list")
    return page


def _tool(entry: Json, place: int, prefix: str, where: str) -> OwnTool:
    at = f"{where}: tool {place}"
    if not isinstance(entry, dict):
        raise UserError(f"{at}: must be an object; wanted are {_SHAPES}")
    body = entry
    if "function" in entry:
        body = entry["function"]
        if not isinstance(body, dict):
            raise UserError(f"{at}: 'function' must be an object")
    name = body.get("name")
    if not isinstance(name, str) or not name.strip():
        raise UserError(f"{at}: 'name' must be a text that is not empty; wanted are {_SHAPES}")
    at = f"{at} ({name[:60]!r})"
    given = [key for key in _SCHEMAS if key in body]
    if entry.get("type") not in _PLAIN_TYPES and not given:
        kind = str(entry["type"])[:40]
        raise UserError(f"{at}: type {kind!r} is built into a provider and has no schema; leave it out")
    if len(given) > 1:
        raise UserError(f"{at}: {given[0]!r} and {given[1]!r} both stand there; keep one")
    description = body.get("description")
    if description is not None and not isinstance(description, str):
        raise UserError(f"{at}: 'description' must be a text")
    parameters = body[given[0]] if given else None
    if parameters is None:  # providers take a function without parameters for one with an empty list of them
        parameters = {"type": "object", "properties": {}}
    if not isinstance(parameters, dict):
        raise UserError(f"{at}: {given[0]!r} must be a JSON Schema object")
    if reason := schemas.problem(parameters):
        raise UserError(f"{at}: {given[0]}: {' '.join(reason.split())[:300]}")
    annotations = body.get("annotations")
    hints = annotations if isinstance(annotations, dict) else {}
    return OwnTool(
        tool=Tool(name=name, description=description or "", parameters=parameters),
        prefix=prefix,
        name=name,
        read_only=hints.get("readOnlyHint") is True,
        idempotent=hints.get("idempotentHint") is True,
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
