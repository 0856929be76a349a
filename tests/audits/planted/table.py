"""The table of planted edits: each as planted and resealed, with sources and without.

python -m tests.audits.planted.table --sources ../shared/sources
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from robustbench_tc import api
from robustbench_tc.audits import provenance
from robustbench_tc.audits.folder import Folder
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.errors import UserError
from robustbench_tc.io import marker

from . import of_files, of_reports, of_rows  # noqa: F401 - importing them registers the edits
from .build import Edit, Forged

PASSED = "passes"


class Verdicts(NamedTuple):
    """What became of an edit."""

    edit: Edit
    caught: tuple[str, ...]
    """The first check that fails, the refusal's message, or `passes`: as planted with sources and without,
    resealed with sources and without."""

    @property
    def line(self) -> str:
        return f"| {self.edit.area} | {self.edit.name.replace('|', '/')} | " + " | ".join(self.caught) + " |"


def verdicts(
    sources: Path, scratch: Path, edits: Sequence[Edit], resealed_only: bool = False
) -> Iterator[Verdicts]:
    """Builds the paper profile, plants each edit in a copy of it, and audits the cases."""
    original = scratch / "robustbench-tc"
    api.build_release(BuildSpec(profile="paper", sources=sources), original)
    auditor = Auditor(sources, scratch / "rebuilds")
    assert auditor.first_failure(original, True) == auditor.first_failure(original, False) == PASSED
    for planted in edits:
        with tempfile.TemporaryDirectory(dir=scratch) as place:
            first = Forged(original, Path(place) / "planted")
            planted.plant(first)
            caught: list[str] = []
            for reseal in (True,) if resealed_only else (False, True):
                forged = Forged(first.path, Path(place) / f"{reseal}" / "robustbench-tc", first.late)
                forged.finish(reseal=reseal)
                caught += [auditor.first_failure(forged.path, with_sources) for with_sources in (True, False)]
            yield Verdicts(planted, tuple(caught))


class Auditor:
    """Audits builds; the same rebuild is made once."""

    def __init__(self, sources: Path, rebuilds: Path) -> None:
        self._sources, self._rebuilds = sources, rebuilds
        rebuilds.mkdir()

    def first_failure(self, build: Path, with_sources: bool) -> str:
        """The first check that fails: of its provenance, else of the whole gate; or why there is no audit."""
        nowhere = {"RBTC_SOURCES": str(self._rebuilds / "no-sources")}
        sources = self._sources if with_sources else None
        with mock.patch.dict(os.environ, nowhere):
            try:
                rebuild = api.rebuild_of(build, sources)
                if rebuild.make is not None:
                    rebuild = rebuild._replace(make=self._cached(rebuild.make, with_sources))
                found = (check for step, _ in provenance.steps(Folder(build), rebuild) for check in step)
                if failing := next((check.id for check in found if check.blocks), None):
                    return failing
                return next((check.id for check in api.audit(build, sources=sources).blocking), PASSED)
            except UserError as error:
                return f"refused: {str(error).replace(str(build), 'BUILD').partition(':')[0]}"

    def _cached(
        self, make: Callable[[Path, Path], object], with_sources: bool
    ) -> Callable[[Path, Path], None]:
        def made_once(build: Path, out: Path) -> None:
            report = json.loads((build / marker.BUILD).read_bytes())
            read = ["generations.jsonl", *([] if with_sources else ["clean", "known_issues"])]
            files = [p for name in read for p in sorted((build / name).rglob("*")) or [build / name]]
            hashes = [marker.sha256(p) if p.is_file() else "" for p in files]
            key = repr((with_sources, [report.get(f) for f in ("profile", "seed", "types")], hashes))
            kept = self._rebuilds / str(abs(hash(key)))
            if not kept.is_dir():
                make(build, kept)
            shutil.copytree(kept, out, copy_function=os.link)

        return made_once


HEAD = (
    "| part | edit | as planted, sources | as planted, none | resealed, sources | resealed, none |\n"
    "|---|---|---|---|---|---|"
)
