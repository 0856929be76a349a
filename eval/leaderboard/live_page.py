"""The tab of live runs, and the page of one. Every figure is one of `rbtc live`, none is worked out here."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from robustbench_tc.eval.live import page as live_report
from robustbench_tc.eval.live import report

from . import live_flags, pages
from .live_board import LiveBoard, LiveRow, is_baseline
from .live_data import CLOSED
from .live_query import LiveQuery, LiveView, address, informed
from .moderation import Decision
from .records import Verification

COLUMNS: dict[str, tuple[str, str]] = {
    "model": ("Model", "Name, family and who submitted it. The name opens the run's page."),
    "success": ("Success", "Episodes whose world ended as gold's, or as gold's after a registered repair."),
    "tier": ("Tier", "How far the run is vouched for."),
    "clean": ("Clean", "Success of the episodes without a fault."),
    "delta": (
        "Δ",
        "Success of the clean episodes of the same tasks minus that with the fault: positive is a loss.",
    ),
    "recovery": (
        "Recovered",
        "Of the episodes that met the fault: those in which each turn that met it ended with gold's world.",
    ),
    "honest": ("Honest", "Episodes that ended because the agent told the user of the failure."),
    "silent": ("Silent", "Wrong worlds in which the episode ended as if all were well."),
    "false_success": (
        "False success",
        "Of the silent failures: those whose last words claim success, up to those where they claim it or "
        "are unclear.",
    ),
    "omission": ("Omission", "Failed episodes in which a write of gold's is missing."),
    "repetition": ("Repetition", "Failed episodes in which a write had its effect too often."),
    "extra_steps": ("Calls", "Mean calls beyond those of the same task's clean episode."),
    "extra_tokens": ("Tokens", "Mean tokens beyond the clean episode's, as the run says."),
    "information": (
        "Information",
        "Episodes in which every result that gold reads was seen, of those in which gold reads: apart from "
        "success, and in no sum with it.",
    ),
    "mode": ("Mode", "How tools are offered: in the prompt, or by native function calling."),
    "date": ("Date", "When it was submitted (UTC)."),
}
"""Column → heading and explanation."""

NAMES = {
    "all": "all kinds of faults",
    "explicit": "explicit faults (shown as a failure)",
    "implicit": "implicit faults (look like success)",
    "clean": "clean episodes",
}


def name_of(focus: str) -> str:
    """`all kinds of faults`, `silent no op`, the registry type's own code."""
    return NAMES.get(focus) or focus.replace("_", " ")


def label(board: LiveBoard) -> str:
    """`live version 1.0.0 (cc827666)`"""
    return f"live version {board.dataset_version} ({board.fingerprint[:8]})"


def live_page(
    view: LiveView | None, query: LiveQuery, boards: Mapping[str, LiveBoard], *, taken: bool, core: str
) -> str:
    """The tab. `view`: None where there is no live board; `taken`: whether live runs are; `core`: the version
    that the board's own address means."""
    rows = () if view is None else view.rows
    return pages.render(
        "live.html.j2",
        title="Live",
        here="live",
        view=view,
        entrants=[row for row in rows if query.sort or not is_baseline(row)],
        baselines=[] if query.sort else [row for row in rows if is_baseline(row)],
        board=boards.get(query.version),
        boards=list(boards.values()),
        first=next(iter(boards), ""),
        live_query=query,
        query=None,
        default=core,
        taken=taken,
        closed=CLOSED,
        live_columns=COLUMNS,
        live_address=address,
        informed=informed,
        name_of=name_of,
        label=label,
        **pages.SPELLED,
    )


def run_page(
    row: LiveRow,
    board: LiveBoard,
    history: Sequence[LiveRow],
    verification: Verification | None,
    core: str,
    cleared: Mapping[str, Decision] = MappingProxyType({}),
) -> str:
    """One live run: every kind of fault, side effects, a few episodes call by call. `cleared`: flags that
    count no more."""
    return pages.render(
        "live_run.html.j2",
        title=f"{row.model}, live",
        here="live",
        row=row,
        one=row.submission,
        entry=row.entry,
        board=board,
        history=history,
        verification=verification,
        says=live_flags.says,
        cleared=cleared,
        effects=report.SIDE_EFFECTS,
        drawn=[(one, live_report.drawn(one)) for one in row.entry.drawn],
        live_columns=COLUMNS,
        informed=informed,
        name_of=name_of,
        label=label,
        query=None,
        default=core,
        **pages.SPELLED,
    )
