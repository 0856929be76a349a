"""How a build is made again, which the gate compares it with."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError
from .at_hand import NO_LEAK_CHECK, dataset_folder, leaks_of, sources_at_hand
from .live import rebuild_live_of
from .own import rebuild_own
from .rendering import render

if TYPE_CHECKING:
    from ..audits.provenance import Rebuild


def rebuild_of(folder: Path, sources: Path | None = None, rlla: Path | None = None) -> "Rebuild":
    """How the build in `folder` is made again: from the sources where they are whole, else from itself.

    `rlla`: where ToolRL's files lie, for training data; default: in the sources. Raises UserError where
    `sources` are named and not whole.
    """
    from ..audits.folder import Folder
    from ..audits.provenance import Rebuild
    from ..builders.rebuild import rebuild
    from ..builders.sources import OWN_CASES
    from ..dataset_cards.render import benchmark_card
    from ..eval.validate import self_check, taken

    build = Folder(folder)
    if build.kind == "live":
        return rebuild_live_of(folder, sources)
    if build.kind == "training":
        return _training_rebuild_of(folder, sources, rlla)._replace(cards=_cards_of_training)
    profile = str(build.report.get("profile"))
    if profile in ("bundled", OWN_CASES):
        root, origin, why_not = None, "the starter samples of the package", ""
    else:
        root, why_not = sources_at_hand(sources, "full" if profile == "full" else "paper")
        origin = "" if root is None else "the pinned sources"

    if profile == OWN_CASES:
        return Rebuild(rebuild_own, "the build's own clean rows", "", _rendered_again)

    def make(build: Path, out: Path) -> None:
        rebuild(build, out, sources=root, card=benchmark_card, accept=self_check, taken=taken)

    return Rebuild(make, origin, why_not, _rendered_again)


def fresh_rows(dataset: str, seed: int, out: Path) -> None:
    """Builds a benchmark (a folder, or `org/name@revision`) again from its own clean rows with another seed.

    Raises UserError where that cannot be.
    """
    from ..builders.rebuild import rebuild
    from ..dataset_cards.render import benchmark_card
    from ..eval.validate import self_check, taken

    folder = dataset_folder(dataset)
    rebuild(folder, out, sources=None, card=benchmark_card, accept=self_check, taken=taken, seed=seed)


def _rendered_again(folder: Path) -> Mapping[str, bytes]:
    """The cards of a release, from its own manifest and reports. Raises UserError."""
    from ..io import manifest
    from ..release.freeze import facts_of

    return render(folder, facts_of(folder, manifest.read(folder)))


def _cards_of_training(folder: Path) -> Mapping[str, bytes]:
    """The cards of training data, of a release or of a build, from its own reports. Raises UserError."""
    import msgspec

    from ..builders.toolrl_report import TrainingReport
    from ..dataset_cards.training import training_card
    from ..io import manifest, marker

    if (folder / manifest.NAME).exists():
        return _rendered_again(folder)
    report = msgspec.json.decode((folder / marker.BUILD).read_bytes(), type=TrainingReport)
    return {"README.md": training_card(report).encode(), "build_report.md": report.markdown().encode()}


def _training_rebuild_of(folder: Path, sources: Path | None, rlla: Path | None) -> "Rebuild":
    from ..audits.provenance import Rebuild
    from ..builders.rebuild import TrainingSettings, has_rlla, rebuild_training, settings_of
    from ..builders.sources.fetch import default_root
    from ..builders.toolrl_versions import Checks
    from ..dataset_cards.training import training_card
    from ..train_recipes.toolrl_dr.reward import earns_maximum

    try:
        settings = settings_of(folder, TrainingSettings)
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
        return Rebuild(
            None, why_not="the ToolRL files that it was made of are not at hand: name their --rlla"
        )
    rlla_root = at_hand

    def make(build: Path, out: Path) -> None:
        leaks, note = leaks_of(whole)
        rebuild_training(
            build,
            out,
            rlla_root=rlla_root,
            checks=Checks(earns_maximum=earns_maximum, leaks=leaks),
            leak_note=note,
            card=training_card,
        )

    return Rebuild(make, "ToolRL's files")
