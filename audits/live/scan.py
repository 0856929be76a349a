"""One pass over a live build: every row decoded once, held against its clean row, and replayed."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.io import marker, parquet
from robustbench_tc.live_types import registry_codes
from robustbench_tc.schema import TASKS, LiveRow
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from ..checks import HOLDS, Suite, Verdict, given, rules, verdict
from ..folder import Folder
from . import faults, registry, replay, rows, texts  # noqa: F401 - all register checks
from .entries import Entry, entries

AT_ONCE = 16
"""Rows that are replayed at the same time."""

SUITES: tuple[Suite, ...] = ("live_rows", "live_replay")

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


class LiveScan:
    """What the pass gave: a column per check, and counts."""

    def __init__(self) -> None:
        names = (rule.name for one in SUITES for rule in rules(one) if not rule.is_native)
        self.columns: dict[str, list[Any]] = {name: [] for name in ("id", "task", *names)}
        self.counts: Counter[str] = Counter()
        """Config → rows."""
        self.present: dict[str, set[str]] = {}
        """Config → clean ids of its rows."""

    def add(self, entry: Entry, verdicts: Mapping[str, Verdict]) -> None:
        """Takes a row's verdicts in."""
        self.counts[entry.config] += 1
        self.columns["id"].append(entry.where)
        self.columns["task"].append(_task(entry))
        for name, column in self.columns.items():
            if name not in ("id", "task"):
                column.append(verdicts.get(name))
        if entry.row is not None:
            self.present.setdefault(entry.config, set()).add(entry.row.clean_id)


async def scan(folder: Folder, types: Mapping[str, WorldType]) -> LiveScan:
    """Reads and replays every row."""
    found = LiveScan()
    flags, look = rows.Flags(), texts.LiveTexts()
    functions = [rule for rule in rules("live_rows") if rule.holds]
    seed = folder.report.get("seed")
    built_with = folder.report_field("worlds")
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
            mine = [rule for rule in functions if rule.for_(entry)]
            verdicts = {rule.name: rule.verdict(row, entry) for rule in mine} | look.verdicts(entry)
            verdicts["decodes"] = HOLDS
            if rows.of_a_task(entry):
                verdicts["flags_are_the_worlds"] = verdict(flags.hold, row)
            verdicts["seed_is_the_builds"] = HOLDS if row.seed == seed else f"seed {row.seed}"
            verdicts["world_is_known"] = known.get(row.world, f"{row.world[:80]}: {replay.NO_WORLD}")
            if not verdicts["world_is_known"] and not any(map(verdicts.get, _NEEDED)):
                verdicts |= await _tried(replayed, row)
            return verdicts

        for some in parquet.batches(entries(folder), AT_ONCE):
            for entry, verdicts in zip(some, await asyncio.gather(*map(judged, some)), strict=True):
                found.add(entry, verdicts)
    return found


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
