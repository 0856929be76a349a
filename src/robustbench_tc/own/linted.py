"""The findings over some tool files, and what follows from them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

from .cases import OwnTool
from .lint import Finding, lint, tokens
from .read import read_cases
from .tools import read_tools

YAML = (".yaml", ".yml")
"""Endings of a cases file."""


class Linted(msgspec.Struct, frozen=True, kw_only=True):
    """What `rbtc lint` found."""

    files: tuple[str, ...]
    tools: int
    tokens: int
    """What the registry costs in every request, about."""
    findings: tuple[Finding, ...]

    def exit_code(self, strict: bool = False) -> int:
        """1 where an error was found, with `strict` where anything was."""
        return int(any(strict or one.level == "error" for one in self.findings))

    def by_code(self) -> dict[str, list[Finding]]:
        """Errors first."""
        found: dict[str, list[Finding]] = {}
        for one in sorted(self.findings, key=lambda one: one.level):
            found.setdefault(one.code, []).append(one)
        return found

    def sentence(self) -> str:
        """The summary in a line."""
        errors = sum(one.level == "error" for one in self.findings)
        return (
            f"{self.tools:,} tools, about {self.tokens:,} tokens in every request: "
            f"errors {errors}, warnings {len(self.findings) - errors}"
        )

    def plain(self) -> dict[str, Json]:
        """As JSON values."""
        found: dict[str, Json] = msgspec.to_builtins(self)
        return found


def lint_files(files: Iterable[Path], live: Sequence[OwnTool] = (), server: str = "") -> Linted:
    """The findings over all files together, and over the tools of a live server.

    Raises UserError for a file that cannot be read, and for none.
    """
    tools: list[OwnTool] = list(live)
    read: dict[str, Path | str] = {one.prefix: server for one in live}
    for file in (paths := list(files)):
        found: Sequence[OwnTool] = read_cases(file).tools if file.suffix in YAML else read_tools(file)
        for prefix in dict.fromkeys(tool.prefix for tool in found):
            if prefix in read:
                raise UserError(f"{file}: {read[prefix]} has the stem {prefix!r} too; rename one")
            read[prefix] = file
        tools += found
    if not tools:
        raise UserError("no tools: name a tools file")
    names = (*map(str, paths), *([server] if server else ()))
    return Linted(files=names, tools=len(tools), tokens=tokens(tools), findings=lint(tools))
