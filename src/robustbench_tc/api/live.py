"""The live verbs of `api`, which takes them from here: what the command line does, as functions."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .release_files import files_around, report_of, stated

if TYPE_CHECKING:
    from ..audits.folder import Folder
    from ..audits.provenance import Rebuild
    from ..audits.report import AuditReport
    from ..eval.stats.live_defences import LiveDefenceTable
    from ..release.freeze import Facts
    from ..worlds.handle import WorldType


def live_defences(base: str | Path, runs: Sequence[str | Path]) -> "LiveDefenceTable":
    """`rbtc defences BASE RUN…` of live runs: what defended ones recover of each kind of fault, at what harm.

    Raises UserError for a run that is not scored, has no defences (or `base`: has some), or is of another
    dataset, model or mode.
    """
    from ..eval.live.after import played_run
    from ..eval.stats.live_defences import table

    return table(played_run(base), [played_run(run) for run in runs])


# --- the gate and releases ----------------------------------------------------------------------------


def audit_live(
    folder: Path,
    *,
    worlds: Sequence[str] = (),
    world_python: str | None = None,
    sources: Path | None = None,
    progress: Callable[[str], None] = lambda line: None,
    files: dict[str, bytes] | None = None,
    green_only: bool = False,
) -> "AuditReport":
    """`rbtc audit` of a live build: the gate's verdict; nothing is written.

    `worlds`: files of the worlds of one's own that it was built from; what a row calls its world opens
    nothing else. `world_python` has BFCL's classes, `sources` are upstream's files. `files` and `green_only`
    as for `audit`. Raises UserError.
    """
    from ..audits import gate
    from ..audits.folder import Folder

    types = _world_types(Folder(folder), worlds, world_python)
    return gate.audit_live(
        folder,
        rebuild=rebuild_live_of(folder, sources, worlds, world_python),
        types=types,
        progress=progress,
        files=files,
        green_only=green_only,
    )


def rebuild_live_of(
    folder: Path, sources: Path | None = None, worlds: Sequence[str] = (), world_python: str | None = None
) -> "Rebuild":
    """How the live build in `folder` is made again: from its worlds' files and, for BFCL, the sources."""
    from ..audits.folder import Folder
    from ..audits.provenance import Rebuild
    from ..builders.live.rebuild import rebuild_live
    from ..builders.sources.fetch import default_root
    from ..dataset_cards.live import live_card
    from ..worlds.find import BFCL

    build = Folder(folder)
    types = _world_types(build, worlds, world_python)
    named = _worlds_of(build)
    if missing := [name for name in named if name not in types]:
        why_not = f"nobody named the file of its world {missing[0][:80]} (--world FILE.py)"
        return Rebuild(None, why_not=why_not)
    root = sources or default_root()
    own_tasks = BFCL in named and not (root / "bfcl").is_dir()

    def make(build: Path, out: Path) -> None:
        own = [types[name] for name in named]
        given = {"worlds": own, "sources": root, "python": world_python, "own_tasks": own_tasks}
        rebuild_live(build, out, **given, card=live_card)  # type: ignore[arg-type]

    why_not = "no sources at hand (run `rbtc data fetch`, or pass --sources)"
    origin = "the pinned sources" if BFCL in named else "its worlds' tasks"
    return Rebuild(make, "" if own_tasks else origin, why_not, _rendered_again, " and the seed")


def _rendered_again(folder: Path) -> Mapping[str, bytes]:
    """The cards of a release, from its own manifest and reports. Raises UserError."""
    from ..io import manifest
    from ..release.freeze import facts_of

    return render_live(folder, facts_of(folder, manifest.read(folder)))


def _worlds_of(build: "Folder") -> list[str]:
    """The names of a build's worlds, as its report has them."""
    named = build.report.get("worlds")
    return list(named) if isinstance(named, dict) else []


def _world_types(build: "Folder", worlds: Sequence[str], python: str | None) -> "dict[str, WorldType]":
    """The worlds that may be opened for a build: those of the package, and the files that were named."""
    from ..worlds.find import BFCL, BUNDLED, find

    own = [find(name, python=python) for name in worlds]
    ours = [find(name, python=python) for name in _worlds_of(build) if name in (*BUNDLED, BFCL)]
    return {world.name: world for world in (*ours, *own)}


def render_live(folder: Path, facts: "Facts") -> Mapping[str, bytes]:
    """The files of a live release that hold its version: card and reports, croissant.json, the licence."""
    from ..builders.live.report import LiveReport
    from ..dataset_cards import responsible_ai
    from ..dataset_cards.live import examples_of, live_card
    from ..release.freeze import licence_text

    report = report_of(facts, LiveReport)
    release = stated(folder, facts, "RobustBench-TC live", {str(row.get("source")) for row in report.pins})
    return files_around(
        folder,
        facts,
        report,
        release,
        card=live_card(report, release, examples_of(folder, report.configs)),
        description="Tool calling in worlds that calls change, under faults",
        keywords=("tool calling", "agents", "robustness"),
        responsible_ai=responsible_ai.live(sum(report.rows.get("clean", {}).values()), list(report.worlds)),
        licence=licence_text(),
    )
