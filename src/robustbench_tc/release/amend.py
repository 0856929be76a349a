"""`rbtc data amend`: a release built again with one sample's golden answers corrected."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..builders import errata_files, generations, rebuild
from ..builders.build import BuildSpec, build
from ..builders.errata_files import Answers, Erratum, amended
from ..builders.report import BuildReport
from ..builders.sources import Pool
from ..builders.sources.upstream import resolve_root
from ..dataset_cards.render import benchmark_card
from ..errors import UserError, unknown
from ..io import manifest
from ..option import Tell, silent
from ..schema import dumps
from ..shown import Part
from .diff import Diff, diff
from .versions import next_version


class Amended(NamedTuple):
    """A release that was built again."""

    release: Path
    out: Path
    erratum: Erratum
    diff: Diff
    """Of the release against the new build."""
    next_version: str
    """The lowest version that the new build may be released under."""

    @property
    def other_rows(self) -> list[str]:
        """Rows of other samples whose scores the correction can move."""
        return sorted(
            {
                change.id
                for config in self.diff.configs
                for change in config.changed
                if change.moves_scores and not change.id.startswith(f"{self.erratum.clean_id}::")
            }
        )

    def json(self) -> dict[str, Any]:
        """Everything, row by row."""
        return {
            "erratum": msgspec.to_builtins(self.erratum),
            "next_version": self.next_version,
            "other_rows": self.other_rows,
            "diff": self.diff.plain(),
        }

    def shown(self) -> Iterator[Part]:
        """The difference, and what to do next."""
        yield from self.diff.shown()
        if others := self.other_rows:
            yield f"{len(others)} rows of other samples differ too, the first {others[0]}"
        yield f"{self.diff.step} step: release it as {self.next_version} or more"
        yield f"next: rbtc audit {self.out}"
        yield (
            f"then: rbtc release {self.out} --version {self.next_version} --previous {self.release} --out …"
        )


def amend(
    folder: Path,
    out: Path,
    *,
    clean_id: str,
    answers: Path | Answers,
    reason: str,
    date: str,
    sources: Path | None = None,
    progress: Tell = silent,
) -> Amended:
    """Builds a release again with the golden answers (or the JSON file of them) of one sample corrected.

    The correction becomes a line of the new build's `errata.jsonl`, after those that the release has already.
    Sources are read where they are at hand, else the release's own clean rows; texts are those of the
    release, but for what no longer keeps a value of the new answer. Raises UserError.
    """
    if isinstance(answers, Path):
        answers = errata_files.read_answers(answers)
    before = manifest.read_manifest(folder)
    if before.kind != "robustbench-tc":
        raise UserError(f"{folder} is a release of {before.kind}: only the benchmark has its own errata")
    if found := manifest.problems(folder):
        raise UserError(f"{folder} is not as it was released: {found[0]}; `rbtc verify {folder}` lists all")
    own = rebuild.own_pool(folder)
    samples = {sample.clean_id: sample for sample in own.samples}
    if clean_id not in samples:
        raise unknown("clean id", clean_id, samples)
    now = samples[clean_id]
    if dumps(now.golden_answers) == dumps(answers):
        raise UserError(f"{clean_id}: it already has these golden answers")
    erratum = Erratum(
        clean_id=clean_id,
        before=now.golden_answers,
        before_tool_index=now.gold_tool_index,
        after=answers,
        reason=reason,
        date=date,
    )
    settings = rebuild.report_in(folder, BuildReport)
    root, pool = None, None
    try:
        if settings.profile != "bundled":
            root = resolve_root(sources)
    except UserError:
        if sources is not None:
            raise
        pool = Pool(amended(own.samples, [erratum]), own.issues)
    spec = BuildSpec(
        profile=settings.profile,
        sources=root,
        codes=settings.types,
        seed=settings.seed,
        errata=(*errata_files.read_errata(folder / errata_files.NAME), erratum),
        allow_missing=True,
    )
    build(
        spec,
        out,
        card=benchmark_card,
        generators=generations.replay(folder / generations.NAME, strict=False),
        pool=pool,
        progress=progress,
    )
    changed = diff(folder, out)
    return Amended(folder, out, erratum, changed, next_version(before.version, changed.step))
