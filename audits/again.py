"""How a build of each kind is made again, which the gate compares it with."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.builders.live.build import rebuild_live
from robustbench_tc.builders.rebuild import (
    NONE,
    has_rlla,
    rebuild,
    rebuild_training,
    report_in,
    sources_at_hand,
)
from robustbench_tc.builders.sources import OWN_CASES
from robustbench_tc.builders.sources.upstream import default_root
from robustbench_tc.builders.toolrl_report import TrainingReport
from robustbench_tc.builders.toolrl_versions import Checks
from robustbench_tc.dataset_cards.live import live_card
from robustbench_tc.dataset_cards.released import rendered_again
from robustbench_tc.dataset_cards.render import benchmark_card, book_of, own_card
from robustbench_tc.dataset_cards.training import training_card
from robustbench_tc.errors import UserError
from robustbench_tc.io import manifest, marker
from robustbench_tc.io.resolve import dataset_folder
from robustbench_tc.own.book import NAME as BOOK
from robustbench_tc.worlds.find import BFCL, BUNDLED, find
from robustbench_tc.worlds.handle import WorldType

from .contamination import NO_LEAK_CHECK, leaks_of
from .folder import Folder
from .provenance import Rebuild


def rebuild_of(
    folder: Path,
    sources: Path | None = None,
    rlla: Path | None = None,
    worlds: Sequence[str] = (),
    world_python: str | None = None,
) -> Rebuild:
    """How the build in `folder` is made again: from the sources where they are whole, else from itself.

    `rlla`: where ToolRL's files lie, for training data; default: in the sources. `worlds`, `world_python`: as
    for `world_types`. Raises UserError where `sources` are named and not whole.
    """
    build = Folder(folder)
    if build.kind == "live":
        return _of_live(build, sources, world_python, world_types(build, worlds, world_python))
    if build.kind == "training":
        return _of_training(folder, sources, rlla)._replace(cards=_training_cards)
    profile = str(build.report.get("profile"))
    if profile == OWN_CASES:
        return Rebuild(_make_own, "the build's own clean rows", "", rendered_again)
    root, origin, why_not = None, "the starter samples of the package", ""
    if profile != "bundled":
        root, why_not = sources_at_hand(sources, "full" if profile == "full" else "paper")
        origin = "" if root is None else "the pinned sources"

    def make(build: Path, out: Path) -> None:
        rebuild(build, out, sources=root, card=benchmark_card)

    return Rebuild(make, origin, why_not, rendered_again)


def _make_own(build: Path, out: Path) -> None:
    """From the build's own clean rows and its book."""
    book = book_of(build)
    card, beside = partial(own_card, book=book), {BOOK: book.json()}
    rebuild(build, out, sources=None, card=card, beside=beside)


def _training_cards(folder: Path) -> Mapping[str, bytes]:
    """The cards of training data, of a release or of a build, from its own reports. Raises UserError."""
    if (folder / manifest.NAME).exists():
        return rendered_again(folder)
    report = msgspec.json.decode((folder / marker.BUILD).read_bytes(), type=TrainingReport)
    return {"README.md": training_card(report).encode(), "build_report.md": report.markdown().encode()}


def _of_training(folder: Path, sources: Path | None, rlla: Path | None) -> Rebuild:
    try:
        settings = report_in(folder, TrainingReport)
    except UserError as error:
        return Rebuild(None, why_not=str(error))
    leak_checked = not settings.leak_check.startswith(NO_LEAK_CHECK)
    whole, why_not = sources_at_hand(sources, "full") if leak_checked else (None, "")
    if settings.with_tokenizer:
        return Rebuild(None, why_not="prompts were measured with a tokenizer, which no build holds")
    if leak_checked and whole is None:
        return Rebuild(None, why_not=f"its leak check needs the benchmark's sources: {why_not}")
    roots = (rlla, whole or sources or default_root())
    at_hand = next((root for root in roots if root is not None and has_rlla(folder, root)), None)
    if at_hand is None:
        why_not = "the ToolRL files that it was made of are not at hand: name their --rlla"
        return Rebuild(None, why_not=why_not)

    def make(build: Path, out: Path) -> None:
        leaks, note = leaks_of(whole)
        rebuild_training(
            build,
            out,
            rlla_root=at_hand,
            checks=Checks(leaks=leaks),
            leak_note=note,
            card=training_card,
        )

    return Rebuild(make, "ToolRL's files")


# --- live -----------------------------------------------------------------------------------------------


def world_types(build: Folder, worlds: Sequence[str], python: str | None) -> dict[str, WorldType]:
    """The worlds that may be opened for a live build: those of the package, and the files that were named.

    What a row calls its world opens nothing else. `python` has BFCL's classes.
    """
    ours = [name for name in build.report_field("worlds") if name in (*BUNDLED, BFCL)]
    return {world.name: world for world in (find(name, python=python) for name in (*ours, *worlds))}


def _of_live(
    build: Folder, sources: Path | None, python: str | None, types: Mapping[str, WorldType]
) -> Rebuild:
    """From the files of its worlds and, for BFCL, the sources."""
    named = list(build.report_field("worlds"))
    if missing := [name for name in named if name not in types]:
        return Rebuild(
            None, why_not=f"nobody named the file of its world {missing[0][:80]} (--worlds FILE.py)"
        )
    root = sources or default_root()
    own_tasks = BFCL in named and not (root / "bfcl").is_dir()
    given: dict[str, Any] = {"sources": root, "python": python, "own_tasks": own_tasks}
    make: Callable[[Path, Path], object] = partial(
        rebuild_live, worlds=[types[name] for name in named], card=live_card, **given
    )
    origin = "the pinned sources" if BFCL in named else "its worlds' tasks"
    return Rebuild(make, "" if own_tasks else origin, NONE, rendered_again, " and the seed")


def fresh_rows(dataset: str, seed: int, out: Path) -> None:
    """Builds a benchmark (a folder, or `org/name@revision`) again from its own clean rows with another seed.

    Raises UserError where that cannot be.
    """
    rebuild(dataset_folder(dataset), out, sources=None, card=benchmark_card, seed=seed)
