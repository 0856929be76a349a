"""The findings over some tool files, and what follows from them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.worlds.check import check
from robustbench_tc.worlds.handle import load_file

from .cases import OwnTool
from .lint import Finding, lint, tokens
from .read import read_cases
from .tools import read_tools

YAML = (".yaml", ".yml")
"""Endings of a cases file."""

SHOWN = 50
"""Findings of one code that are shown."""


class Linted(msgspec.Struct, frozen=True, kw_only=True):
    """What `rbtc lint` found."""

    files: tuple[str, ...]
    tools: int
    """But for those of worlds."""
    tokens: int
    """What the registry costs in every request, about."""
    findings: tuple[Finding, ...]
    exit_code: int
    """1 where an error was found, with `strict` where anything was."""

    def shown(self) -> Iterator[str]:
        """The findings, errors first, and the summary."""
        of_code = Counter[str]()
        for one in sorted(self.findings, key=lambda one: one.level):
            of_code[one.code] += 1
            if of_code[one.code] <= SHOWN:
                tools = f"{', '.join(one.tools[:4])}: " if one.tools else ""
                yield f"{one.level}: {one.code}: {tools}{one.message}"
        for code, count in of_code.items():
            if count > SHOWN:
                yield f"{code}: {count - SHOWN} more (--json shows them)"
        errors = sum(one.level == "error" for one in self.findings)
        tools = f"{self.tools:,} tools, about {self.tokens:,} tokens in every request"
        what = tools if self.tools else f"worlds {len(self.files)}"
        yield f"{what}: errors {errors}, warnings {len(self.findings) - errors}"


def lint_files(
    files: Sequence[Path], live: Sequence[OwnTool] = (), server: str = "", strict: bool = False
) -> Linted:
    """The findings over all files together, and over the tools of a live server.

    A world's file is loaded: its code runs. Raises UserError for a file that cannot be read, and for none.
    """
    tools: list[OwnTool] = list(live)
    read: dict[str, Path | str] = {one.prefix: server for one in live}
    worlds = [file for file in files if file.suffix == ".py"]
    for file in files:
        if file in worlds:
            continue
        found: Sequence[OwnTool] = read_cases(file).tools if file.suffix in YAML else read_tools(file)
        for prefix in dict.fromkeys(tool.prefix for tool in found):
            if prefix in read:
                raise UserError(f"{file}: {read[prefix]} has the stem {prefix!r} too; rename one")
            read[prefix] = file
        tools += found
    if not tools and not worlds:
        raise UserError("no tools: name a tools file, or an MCP server behind --")
    mistakes = [one for file in worlds for one in check(load_file(file))]
    findings = (
        *(Finding(level="error", code="world", tools=(), message=one) for one in mistakes),
        *lint(tools),
    )
    return Linted(
        files=(*map(str, files), *([server] if server else ())),
        tools=len(tools),
        tokens=tokens(tools),
        findings=findings,
        exit_code=int(any(strict or one.level == "error" for one in findings)),
    )
