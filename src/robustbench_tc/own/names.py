"""Which tool a cases file means by a name: `find`, `crm:find` where two files have one, `find#2`."""

import re
from collections.abc import Sequence

import msgspec

from robustbench_tc.errors import UserError, unknown

from .cases import OwnTool

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
