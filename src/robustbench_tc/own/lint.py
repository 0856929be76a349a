"""What of a tool registry would break before any model is asked: `rules` and `advice` look, this runs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.worlds.check import check
from robustbench_tc.worlds.handle import load_file

from .advice import RULES
from .cases import OwnTool
from .cases_file import read_cases, tool_files
from .files import read_bytes
from .rules import Level, Provider, tokens
from .tools import Entry, entries


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule found; tools, or groups of them, with the same fault are one finding."""

    level: Level
    """Errors fail a check in CI, warnings do under `--strict`."""
    code: str
    tools: tuple[str, ...]
    """`prefix:name` of each tool it is about; none of a world's and of a whole list's."""
    message: str
    """What was found, of the first of several tools or groups."""
    details: tuple[str, ...] = ()
    """The same of each of several, with the names of its tools."""
    providers: tuple[Provider, ...] = ()
    """Who refuses a request for it."""


def lint(found: Sequence[Entry], wanted: Sequence[Provider] = ()) -> tuple[Finding, ...]:
    """All findings. What `wanted` providers refuse is an error, what others refuse is then left out."""
    refused: dict[tuple[Level, str, tuple[str, ...], str], list[Provider]] = {}
    for rule in RULES:
        if rule.provider is None or not wanted or rule.provider in wanted:
            level: Level = "error" if rule.provider is not None and wanted else rule.level
            for about, said in rule.check(found, rule.limit):
                titles = tuple(f"{one.prefix}:{one.name}".removesuffix(":") for one in about)
                providers = refused.setdefault((level, rule.code, titles, said), [])
                providers += [] if rule.provider is None else [rule.provider]
    kinds: dict[
        tuple[Level, str, tuple[Provider, ...], tuple[str, ...]], list[tuple[tuple[str, ...], str]]
    ] = {}
    for (level, code, titles, said), providers in refused.items():
        who = tuple(sorted(providers))
        message = f"refused by {', '.join(who)}: {said}" if who else said
        together = titles if level == "error" and len(titles) > 1 else ()
        kinds.setdefault((level, code, who, together), []).append((titles, message))
    return tuple(
        Finding(
            level=level,
            code=code,
            tools=tuple(dict.fromkeys(title for titles, _ in each for title in titles)),
            message=each[0][1],
            details=tuple(f"{', '.join(titles)}: {message}" for titles, message in each)
            if len(each) > 1
            else (),
            providers=who,
        )
        for (level, code, who, _), each in kinds.items()
    )


YAML = (".yaml", ".yml")
"""Endings of a cases file."""

SHOWN = 8
"""Tools, and errors of one kind, that are shown."""


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
        """The findings, errors first and tool by tool, and the summary."""
        for one in sorted(self.findings, key=lambda one: one.level):
            head = f"{one.level}: {one.code}"
            if one.level == "error" and one.details:
                yield from (f"{head}: {detail}" for detail in one.details[:SHOWN])
            else:
                yield f"{head}: {', '.join(one.tools[:SHOWN])}{': ' if one.tools else ''}{one.message}"
            if (more := max(len(one.tools), len(one.details)) - SHOWN) > 0:
                yield f"  and {more} more tools (--json shows them)"
        errors = sum(one.level == "error" for one in self.findings)
        tools = f"{self.tools:,} tools, about {self.tokens:,} tokens in every request"
        only_worlds = not self.tools and all(name.endswith(".py") for name in self.files)
        what = f"worlds {len(self.files)}" if only_worlds else tools
        yield f"{what}: errors {errors}, warnings {len(self.findings) - errors}"


def _marked(found: Sequence[Entry], tools: Sequence[OwnTool]) -> list[Entry]:
    """The entries, read-only and idempotent also where a cases file says so of them."""
    said = {(one.prefix, one.name): one for one in tools}
    marked = []
    for one in found:
        if (stated := said.get((one.prefix, one.name))) is not None:
            marks = {"read_only": stated.read_only, "idempotent": stated.idempotent}
            one = msgspec.structs.replace(one, **marks)
        marked.append(one)
    return marked


def lint_files(
    files: Sequence[Path],
    live: Sequence[Entry] = (),
    server: str = "",
    strict: bool = False,
    wanted: Sequence[Provider] = (),
) -> Linted:
    """The findings over all files together, and over the tools of a live server.

    A world's file is loaded: its code runs. Raises UserError for a file that cannot be read, and for none.
    """
    found = list(live)
    read: dict[str, Path | str] = {one.prefix: server for one in live}
    worlds = [file for file in files if file.suffix == ".py"]
    for file in files:
        if file in worlds:
            continue
        for listed in tool_files(file) if file.suffix in YAML else [file]:
            if listed.stem in read:
                raise UserError(f"{file}: {read[listed.stem]} has the stem {listed.stem!r} too; rename one")
            read[listed.stem] = file
            found += entries(read_bytes(listed, "a tools file"), listed.stem, str(listed))
        if file.suffix in YAML and not any(one.problem for one in found):
            found = _marked(found, read_cases(file).tools)
    if not found and not worlds:
        raise UserError("no tools: name a tools file, or an MCP server after --")
    mistakes = [one for file in worlds for one in check(load_file(file))]
    findings = (
        *(Finding(level="error", code="world", tools=(), message=one) for one in mistakes),
        *lint(found, wanted),
    )
    return Linted(
        files=(*map(str, files), *([server] if server else ())),
        tools=sum(not one.is_page for one in found),
        tokens=tokens(found),
        findings=findings,
        exit_code=int(any(strict or one.level == "error" for one in findings)),
    )
