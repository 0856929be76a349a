"""One pass over a live build: every row decoded once, held against its clean row, and replayed.

Its texts are held against the rules: what users say, tools, worlds, gold, and what a fault shows.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.io import marker, parquet
from robustbench_tc.live_types import registry_codes
from robustbench_tc.schema import TASKS, LiveRow
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from ..checks import HOLDS, Suite, Verdict, columns, given, verdict, verdicts
from ..folder import Folder
from ..hygiene import lengths, schemas
from ..hygiene.rows import OF_A_ROW
from ..hygiene.texts import CREDENTIAL, RULES, Find, Flagged, Texts, finds_by_rule, flagged, in_short
from . import faults, replay  # noqa: F401 - registers checks
from .entries import Entry, entries
from .rows import flags_are_known, of_a_task

AT_ONCE = 16
"""Rows that are replayed at the same time."""

SUITES: tuple[Suite, ...] = ("live_rows", "live_replay")

LIVE_HYGIENE = {
    **{name: rule.protects for name, rule in RULES.items()},
    "length": OF_A_ROW["length"],
    "tools_are_schemas": OF_A_ROW["tools_are_schemas"],
    "credentials_reviewed": "Credentials, and persons' numbers and addresses, are made-up ones.",
}
given("live_rows", "hygiene", LIVE_HYGIENE)
given(
    "live_rows",
    "rows",
    {
        "decodes": "A row that is not a live row stops the harness, or is dropped without a word.",
        "flags_are_the_worlds": "Reads, writes, idempotence and undo are properties of a world's tool: "
        "faults "
        "are counted by them.",
        "seed_is_the_builds": "Every row has the seed of the build: it is drawn again with it.",
    },
)
given(
    "live_replay",
    "replay",
    {
        "world_is_known": "Every row's world is one that the gate can open, and the very file that the build "
        "was made with."
    },
)


class LiveScan(NamedTuple):
    """What the pass gave."""

    columns: dict[str, list[Any]]
    """`id`, `task` and a column per check."""
    counts: Counter[str]
    """Config → rows."""
    present: dict[str, set[str]]
    """Config → clean ids of its rows."""


async def scan(folder: Folder, types: Mapping[str, WorldType]) -> LiveScan:
    """Reads and replays every row."""
    rows, counts, present = list[dict[str, Any]](), Counter[str](), dict[str, set[str]]()
    flags, look = dict[tuple[str, str], object](), LiveTexts()
    seed, built_with = folder.report.get("seed"), folder.report_field("worlds")
    known = {  # world → what is wrong with its file
        name: HOLDS
        if built_with.get(name) == marker.sha256(world.file)
        else f"{name}: {world.file.name} is not the file that the build was made with"
        for name, world in types.items()
    }
    async with Worlds() as worlds:
        replayed = replay.Replay(worlds, types)

        async def judged(entry: Entry) -> dict[str, Verdict]:
            row = entry.row
            if row is None:
                return {"decodes": entry.problem}
            said = {
                **verdicts("live_rows", row, entry, kind=entry),
                **look.verdicts(row, whole=of_a_task(entry)),
                "decodes": HOLDS,
                "seed_is_the_builds": HOLDS if row.seed == seed else f"seed {row.seed}",
                "world_is_known": known.get(row.world, f"{row.world[:80]}: {replay.NO_WORLD}"),
            }
            if of_a_task(entry):
                said["flags_are_the_worlds"] = verdict(flags_are_known, row, flags)
            if not said["world_is_known"] and not any(map(said.get, _NEEDED)):
                said |= await _tried(replayed, row)
            return said

        for some in parquet.batches(entries(folder), AT_ONCE):
            for entry, said in zip(some, await asyncio.gather(*map(judged, some)), strict=True):
                counts[entry.config] += 1
                rows.append({"id": entry.where, "task": _task(entry), **said})
                if entry.row is not None:
                    present.setdefault(entry.config, set()).add(entry.row.clean_id)
    return LiveScan(columns(rows, ("id", "task"), *SUITES), counts, present)


_NEEDED = ("starts", "gold_is_offered", "turns_ask", "registry_is_sound")
"""What has to hold before a row is replayed: else the replay would say the same once more."""


async def _tried(replayed: replay.Replay, row: LiveRow) -> dict[str, Verdict]:
    """The replay's verdicts; a world that does not start, or breaks, fails the row."""
    try:
        return await replayed.verdicts(row)
    except UserError as error:
        said = str(error)
    except Exception as error:  # a world may be anybody's program
        said = f"{type(error).__name__}: {str(error)[:160]}"
    name = "gold_state" if row.fault is None else "label_holds"
    if row.type_code in registry_codes():
        name = "gold_is_not_taken"
    return {name: f"it cannot be replayed: {said}"}


def _task(entry: Entry) -> str | None:
    """A hash of what a clean row asks, so that no task stands twice."""
    row = entry.row
    if entry.config != TASKS or row is None:
        return None
    asked = msgspec.json.encode([row.world, row.turns, row.initial_state, row.golden_calls])
    return hashlib.sha256(asked).hexdigest()


# --- texts --------------------------------------------------------------------------------------------

TOOLS = 200
"""Tools of a registry; all eight classes of upstream's have 129."""

DESCRIPTION = 4_000
"""Characters of a tool's description: upstream's say what a call returns, which takes up to 2,477."""

_TEXTS = ("id", "category", "world", "flags", "turns", "tools", "initial_state", "golden_calls")
"""Fields of a row that an agent, or a reader of the row, may read."""

ORDERS = "instructions"
"""The rule that an injected instruction is meant to break."""


class LiveTexts(Texts):
    """Looks at the texts of live rows."""

    def verdicts(self, row: LiveRow, *, whole: bool) -> dict[str, Verdict]:
        """By check. Of a row that repeats its clean row, tools included, only the fault is looked at."""
        found = finds_by_rule(self.to_review(row, whole=whole))
        shown = {name: in_short(found.get(name, ())) for name in RULES}
        of_tools: dict[str, Verdict] = {"length": None, "tools_are_schemas": None}
        if whole:
            of_tools = {
                "length": in_short(_too_long(row)),
                "tools_are_schemas": in_short(
                    f"{tool.name[:80]}: {wrong}"
                    for tool in row.tools
                    if (wrong := schemas.invalid(tool.parameters))
                ),
            }
        return {**shown, **of_tools, "credentials_reviewed": in_short(found.get(CREDENTIAL, ()))}

    def to_review(self, row: LiveRow, *, whole: bool = True) -> Iterator[tuple[Flagged, Find]]:
        """What nobody looked at yet."""
        if whole:
            for name in _TEXTS:
                yield from self.unreviewed(_column(name, msgspec.json.encode(getattr(row, name))))
        for one, find in self.unreviewed(flagged("fault", msgspec.to_builtins(row.fault))):
            if not (find.rule == ORDERS and row.fault is not None and one.text == row.fault.text):
                yield one, find


@lru_cache(maxsize=4_096)
def _column(name: str, text: bytes) -> list[Flagged]:
    return flagged(name, msgspec.json.decode(text))


def _too_long(row: LiveRow) -> Iterator[str]:
    for number, turn in enumerate(row.turns):
        for message in turn.messages:
            if len(message.content) > lengths.MESSAGE:
                yield f"turn {number} has {len(message.content)} characters"
    if len(row.tools) > TOOLS:
        yield f"{len(row.tools)} tools"
    for tool in row.tools:
        if len(tool.description) > DESCRIPTION:
            yield f"{tool.name[:80]}: a description of {len(tool.description)} characters"
        plain = msgspec.structs.replace(tool.plain, description=tool.description[: lengths.IN_A_TOOL])
        yield from (f"{tool.name[:80]}: {what}" for what in lengths.tool_too_long(plain))
