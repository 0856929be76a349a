"""A whole drill, what it needs permission for, and its result: a table, SARIF, a badge, a plan."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from robustbench_tc.compute import loop
from robustbench_tc.credentials import KEY_LIKE, of_process
from robustbench_tc.errors import UserError
from robustbench_tc.io import templates
from robustbench_tc.option import Tell
from robustbench_tc.own.mcp_tools import Listed, Server
from robustbench_tc.own.tools import entries
from robustbench_tc.shown import Part, Table

from .inputs import Inputs, NoAnswer, read_inputs
from .trials import Drill
from .verdicts import Judged, judge

MARK = "rbtc drill"
"""Stands at the beginning of every file that a drill writes."""

RULES = {
    "doubles": "A repeated write takes effect twice, and the server does not say so.",
    "hint": "A tool that claims to be read-only changes something.",
    "error-after-effect": "A write answers with an error after it was carried out.",
    "stale-read": "A read that was called before a write still shows the old state afterwards.",
}
"""What a finding is, by its code."""

RATE = 0.1
"""Share of calls whose answer the plan loses."""

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"]+", re.IGNORECASE)
_THIS_MACHINE = re.compile(r"(?:[\w.-]+\.)?localhost|127(?:\.\d+){3}|::1", re.ASCII)


def risk(server: Server) -> str | None:
    """Why a drill needs permission: credentials that the server is given, or an address that is not this
    machine's. None where neither is seen; a file in the home directory is not."""
    given = {name: os.environ.get(name, "") for name in server.env}
    for address in _ADDRESS.findall("\n".join((server.url, *server.command, *given.values()))):
        parts = urlsplit(address)
        if "@" in parts.netloc or not _THIS_MACHINE.fullmatch(parts.hostname or "localhost"):
            return f"it is given the address of another machine, or credentials in it ({parts.hostname})"
    if of_process(server.command, given).keys:
        return f"it is given credentials ({', '.join(filter(KEY_LIKE.search, given)) or 'in its command'})"
    return None


class Drilled(msgspec.Struct, frozen=True, kw_only=True):
    """What a drill found of a server."""

    server: str
    source: str
    """The file that SARIF shows the findings at."""
    fresh: str
    """What makes a server fresh for each trial."""
    is_touched: bool
    """Whether a trial saw what an earlier one had written."""
    trials: int
    reads: list[str]
    """Called before and after each trial."""
    stale: list[str]
    writes: list[Judged]
    not_tried: dict[str, str]
    """Tools that were not called, or gave no answer, and why."""

    @property
    def findings(self) -> list[dict[str, str]]:
        """What has to be put right, the worst first: `code`, `tool`, `message`."""
        lies = [one for one in self.writes if one.server == "lie" and one.verdict != "doubles"]
        found = [
            *(("doubles", one.tool, _where(one)) for one in self.writes if one.is_unannounced),
            *(("hint", one.tool, f"it changes something: {', '.join(one.claims)}") for one in lies),
            *(
                ("error-after-effect", one.tool, one.notes[0])
                for one in self.writes
                if one.is_error_after_effect
            ),
            *(("stale-read", tool, RULES["stale-read"]) for tool in self.stale),
        ]
        return [dict(zip(("code", "tool", "message"), one, strict=True)) for one in found]

    @property
    def exit_code(self) -> int:
        """1 where something doubles unannounced, 3 where no write could be judged."""
        if any(one.is_unannounced for one in self.writes):
            return 1
        return 0 if any(one.verdict != "cannot be seen" for one in self.writes) else 3

    @property
    def sentence(self) -> str:
        """The result in a line."""
        seen = [one for one in self.writes if one.verdict != "cannot be seen"]
        return (
            f"{sum(one.verdict == 'doubles' for one in seen)} of {len(seen)} writes double, "
            f"{sum(one.is_unannounced for one in seen)} of them unannounced; "
            f"{len(self.writes) - len(seen)} cannot be seen, {len(self.not_tried)} tools not tried"
        )

    def json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            **msgspec.structs.asdict(self),
            "exit_code": self.exit_code,
            "sentence": self.sentence,
            "findings": self.findings,
        }

    def shown(self) -> Iterator[Part]:
        """The sentence, a line for each write, and what was not tried."""
        yield self.sentence
        rows = [
            (
                one.tool,
                one.verdict,
                one.server,
                "; ".join((*filter(None, [_where(one)]), *one.notes, *one.claims)),
            )
            for one in self.writes
        ]
        if rows:
            yield Table(("write", "verdict", "server", "what was seen"), rows, folded=("what was seen",))
        yield f"reads, before and after each trial: {', '.join(self.reads) or 'none'}"
        yield from (f"stale: {one}: {RULES['stale-read']}" for one in self.stale)
        yield from (f"not tried: {tool}: {reason}" for tool, reason in self.not_tried.items())
        touched = "; trials saw what earlier ones had written" * self.is_touched
        yield f"{self.trials} trials of {self.server}, each with {self.fresh}{touched}"


def _where(one: Judged) -> str:
    return f"{', '.join(one.trials)}: {'; '.join(one.difference[:2])}" if one.trials else ""


def drilled(server: Server, listed: Listed, file: Path | None, progress: Tell) -> Drilled:
    """Carries a drill out. Raises UserError for inputs that are none and a server that cannot be started."""
    found = [tool for tool in entries(listed.json(), listed.prefix, server.title) if not tool.is_page]
    tools = [tool for tool in found if not tool.problem]
    inputs = Inputs() if file is None else read_inputs(file, tools)
    drill = Drill(server, tools, inputs, progress)
    drill.untried |= {tool.name or "(nameless)": tool.problem for tool in found if tool.problem}
    try:
        writes = loop.run(_judged(drill))
    except (NoAnswer, RecursionError) as error:  # a result may be nested without end
        raise UserError(f"{server.title}: {error}") from None
    fresh = "a process of its own" if server.command else "no reset, so that they may touch"
    scripts = [word for word in server.command if Path(word).is_file() and not Path(word).is_absolute()]
    return Drilled(
        server=server.title,
        source=scripts[0] if scripts else "mcp-server",
        fresh="the reset command before it" if inputs.reset else fresh,
        is_touched=drill.is_touched,
        trials=drill.trials,
        reads=[tool.name for tool in drill.reads],
        stale=drill.stale,
        writes=writes,
        not_tried=drill.untried,
    )


async def _judged(drill: Drill) -> list[Judged]:
    await drill.survey()
    found = []
    for tool in drill.tools:
        if tool not in drill.reads and tool.name not in drill.untried:
            try:
                found.append(judge(tool, await drill.write(tool), drill))
            except (NoAnswer, RecursionError) as error:
                drill.untried[tool.name] = str(error)
    return found


def sarif(result: Drilled) -> bytes:
    """SARIF 2.1.0."""
    place = {"artifactLocation": {"uri": result.source}, "region": {"startLine": 1}}
    results = [
        {
            "ruleId": one["code"],
            "level": "error" if one["code"] == "doubles" else "warning",
            "message": {"text": f"{one['tool']}: {one['message']}"},
            "locations": [
                {
                    "physicalLocation": place,
                    "logicalLocations": [{"fullyQualifiedName": one["tool"], "kind": "function"}],
                }
            ],
        }
        for one in result.findings
    ]
    rules = [{"id": code, "shortDescription": {"text": text}} for code, text in RULES.items()]
    log = {
        "version": "2.1.0",
        "runs": [{"tool": {"driver": {"name": MARK, "rules": rules}}, "results": results}],
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
    }
    return json.dumps(log, indent=1).encode()


def badge(result: Drilled) -> bytes:
    """An SVG image."""
    text = "nothing could be seen" if result.exit_code == 3 else result.sentence.partition(" of them")[0]
    return templates.badge(
        MARK, text, {0: "#0b7a3b", 1: "#b3261e", 3: "#5c6670"}[result.exit_code], text
    ).encode()


def plan(result: Drilled) -> bytes:
    """A plan that loses answers where a retry is safe. `allow_writes` where that is so of every write."""
    safe = [one.tool for one in result.writes if one.is_safe]
    unsafe = {one.tool: str(one.verdict) for one in result.writes if not one.is_safe}
    unsafe |= dict.fromkeys(result.not_tried, "not tried")
    lines = [f"# {MARK}: {json.dumps(result.server)}: {result.sentence}"]
    lines += [f"# not known to be safe to retry: {json.dumps(tool)}, {why}" for tool, why in unsafe.items()]
    top = {
        "version": 1,
        "allow_writes": bool(safe) and not unsafe,
        "read_only": result.reads,
        "idempotent": safe,
    }
    if tools := [*result.reads, *safe]:
        top["faults"] = [{"kind": "timeout_after_effect", "rate": RATE, "tools": tools}]
    lines += [f"{name}: {json.dumps(value)}" for name, value in top.items() if value != []]
    return "\n".join((*lines, "")).encode()
