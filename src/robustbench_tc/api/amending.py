"""`amend`: a release built again with one sample's golden answers corrected."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import UserError, unknown
from ..schema import dumps
from .progress import Progress

if TYPE_CHECKING:
    from ..builders.report import BuildReport
    from ..io.errata import Answers, Erratum
    from ..release.diff import Diff


class Amended(NamedTuple):
    """What `amend` made."""

    report: "BuildReport"
    erratum: "Erratum"
    diff: "Diff"
    """Of the release against the new build."""
    next_version: str
    """The lowest version that the new build may be released under."""


def amend(
    folder: Path,
    out: Path,
    *,
    clean_id: str,
    answers: "Answers",
    reason: str,
    date: str,
    sources: Path | None = None,
    progress: Progress = lambda line: None,
) -> Amended:
    """`rbtc amend`: builds a release again with the golden answers of one sample corrected.

    The correction becomes a line of the new build's `errata.jsonl`, after those that the release has already.
    Sources are read where they are at hand, else the release's own clean rows; texts are those of the
    release, but for what no longer keeps a value of the new answer. Raises UserError.
    """
    from ..builders import generations, rebuild
    from ..builders.build import BuildSpec, build
    from ..builders.errata import amended
    from ..builders.sources import Pool
    from ..builders.sources.fetch import resolve_root
    from ..dataset_cards.render import benchmark_card
    from ..eval.validate import self_check, taken
    from ..io import errata, manifest
    from ..release.diff import diff
    from ..release.versions import next_version

    before = manifest.read(folder)
    if before.kind != "robustbench-tc":
        raise UserError(f"{folder} is a release of {before.kind}: only the benchmark has errata of its own")
    if found := manifest.problems(folder):
        raise UserError(f"{folder} is not as it was released: {found[0]}; `rbtc verify {folder}` lists all")
    own = rebuild.own_pool(folder)
    samples = {sample.clean_id: sample for sample in own.samples}
    if clean_id not in samples:
        raise unknown("clean id", clean_id, samples)
    now = samples[clean_id]
    if dumps(now.golden_answers) == dumps(answers):
        raise UserError(f"{clean_id}: these are its golden answers already")
    erratum = errata.Erratum(
        clean_id=clean_id,
        before=now.golden_answers,
        before_tool_index=now.gold_tool_index,
        after=answers,
        reason=reason,
        date=date,
    )
    settings = rebuild.settings_of(folder, rebuild.BuildSettings)
    try:
        root = None if settings.profile == "bundled" else resolve_root(sources)
        pool = None
    except UserError:
        if sources is not None:
            raise
        root, pool = None, Pool(amended(own.samples, [erratum], self_check), own.issues)
    spec = BuildSpec(
        profile=settings.profile,
        sources=root,
        codes=settings.types,
        seed=settings.seed,
        errata=(*errata.read(folder / errata.NAME), erratum),
        allow_missing=True,
    )
    report = build(
        spec,
        out,
        card=benchmark_card,
        accept=self_check,
        taken=taken,
        generators=generations.replay(folder / generations.NAME, strict=False),
        pool=pool,
        progress=progress,
    )
    changed = diff(folder, out)
    return Amended(report, erratum, changed, next_version(before.version, changed.step))
