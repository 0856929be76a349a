"""What defences do to scripted agents in live episodes: the live table of docs/defences.md.

    python scripts/defence_table.py robustbench-tc-live

In this process, without a server; only bundled worlds are played.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from robustbench_tc.live_types import type_code
from robustbench_tc.schema import KINDS

from .. import defend
from ..inputs import Selection
from ..record import Settings
from . import defended, prompts, record, run
from .inputs import LiveData, world_types
from .score import score_run
from .speakers import ScriptedSpeaker

PAIRS: Mapping[str, Sequence[str]] = {
    "oracle": ("hint", "retry"),
    "gives-up": ("hint", "retry"),
    "blind-retrier": ("hint", "retry"),
}
"""Agent → what is put between it and the world, beside nothing."""

_REFUSED = "transient_auth_error"
_LOST = "timeout_after_effect"
_PASSING = tuple(kind for kind in KINDS if kind.startswith("transient_") and kind != _REFUSED)
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "clean": ("clean",),
    "errors that may pass": tuple(map(type_code, _PASSING)),
    "refused": (type_code(_REFUSED),),
    "lost answer": (type_code(_LOST),),
    "other": tuple(type_code(kind) for kind in KINDS if kind not in (*_PASSING, _REFUSED, _LOST)),
}
"""Column → types."""


class Line(NamedTuple):
    """An agent behind some defences."""

    agent: str
    defences: str
    cells: Mapping[str, tuple[int, int]]
    """By column: successes, and episodes."""
    repeated: int
    """Effects too often after a lost answer."""
    requests: float
    """An episode."""

    @property
    def markdown(self) -> str:
        """One line of the table."""
        cells = " | ".join(f"{right} of {n}" for right, n in self.cells.values())
        return f"| {self.agent} | {self.defences or '–'} | {cells} | {self.repeated} | {self.requests:.2f} |"


def line(data: LiveData, agent: str, words: str) -> Line:
    """One agent behind one chain, over the rows of a live dataset that stand in a column."""
    codes = {code for column in COLUMNS.values() for code in column}
    rows = tuple(row for row in data.rows if row.type_code in codes)
    chain = defended.parse([word for word in words.split(",") if word], "fc")
    settings = Settings(
        fingerprint=data.fingerprint(), model=f"agent-{agent}", mode="fc", backend="agent", decoding={},
        prompt_version=prompts.version(), selection=Selection(), repeat=1, defend=defend.names(chain),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        folder = record.start(Path(place) / "run", data, settings, len(rows))
        cast = run.scripted(ScriptedSpeaker(agent, data.clean()))
        run.run(folder, rows, cast, world_types(rows), concurrency=1)
        scores = score_run(folder.path, {row.id: row for row in rows})
        totals = folder.record.totals
    cells = {}
    for name, column in COLUMNS.items():
        own = [one for one in scores if one.type_code in column]
        cells[name] = (sum(bool(one.success) for one in own), len(own))
    repeated = sum(one.repeated or 0 for one in scores if one.type_code == type_code(_LOST))
    return Line(agent, words, cells, repeated, totals["requests"] / max(1, totals["episodes"]))


def table(data: LiveData, pairs: Mapping[str, Sequence[str]] = PAIRS) -> str:
    """Every agent without and behind its defences, as Markdown."""
    heads = ("agent", "defences", *COLUMNS, "effects repeated", "requests")
    lines = [f"| {' | '.join(heads)} |", "|---|---|" + "---:|" * (len(heads) - 2)]
    for agent, chains in pairs.items():
        lines += [line(data, agent, words).markdown for words in ("", *chains)]
    return "\n".join(lines)
