"""The tables of docs/audits.md: what they say is what happens. All of them by night, some by day."""

import os
import re
from pathlib import Path

from robustbench_tc.api.building import build_release
from robustbench_tc.audits.folder import Folder
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.builders.configs import TABLES, VERSION

from ..conftest import ROOT
from .planted.__main__ import CASES
from .planted.build import EDITS, Forged
from .planted.table import HEAD, PASSED, verdicts
from .planted.variations import VARIATIONS, found

NIGHTLY = os.environ.get("RBTC_NIGHTLY") == "1"

CHEAP = ("as it is", "no sources, the two extension types", "the starter samples")


BY_DAY = [*{edit.area: edit for edit in reversed(EDITS) if edit.base == "build"}.values()]
"""The first edit of each part of a build."""


def table(name: str) -> list[list[str]]:
    """The cells of a table of the page, without its head."""
    text = (ROOT / "docs" / "audits.md").read_text()
    match = re.search(rf"<!-- {name}: [^>]*-->\n(.*?)<!-- end of {name} -->", text, re.DOTALL)
    assert match is not None
    lines = [line for line in match.group(1).splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines[1:]]


def test_the_page_lists_every_edit_and_every_one_is_caught() -> None:
    rows = table("edits")
    assert [row[:2] for row in rows] == [[e.area, e.name.replace("|", "/")] for e in EDITS]
    assert len(EDITS) >= 100 and len({(e.area, e.name) for e in EDITS}) == len(EDITS)
    assert len(CASES) == 4 and HEAD.count("|") == 14
    for edit, row in zip(EDITS, rows, strict=True):
        *others, last = row[2:]
        assert PASSED not in others, edit.name
        assert last != PASSED or not edit.clean, edit.name


def test_the_page_lists_every_variation() -> None:
    rows = table("variations")
    assert [row[0] for row in rows] == [one.name for one in VARIATIONS]
    green = [row for row in rows if row[2] == "green"]
    assert len(green) >= 15
    assert {row[0] for row in rows if row not in green} == {one.name for one in VARIATIONS if one.red}


def test_a_forger_writes_what_the_builder_writes(bundled: Path, tmp_path: Path) -> None:
    """Else its edits would be found by the way they are written."""
    forged = Forged(bundled, tmp_path / "robustbench-tc")
    for config in (*forged.configs(), *TABLES):
        forged.change(config, lambda rows: None)
    forged.finish(reseal=True)
    assert Folder(forged.path).digest() == Folder(bundled).digest()
    assert (forged.path / "build_report.json").read_bytes() == (bundled / "build_report.json").read_bytes()


def test_what_the_page_says_of_the_edits_is_so(shared: Path, tmp_path: Path) -> None:
    chosen = EDITS if NIGHTLY else BY_DAY
    said = {(row[0], row[1]): tuple(row[2:]) for row in table("edits")}
    for one in verdicts(shared / "sources", tmp_path, chosen, resealed_only=not NIGHTLY):
        wanted = said[one.edit.area, one.edit.name.replace("|", "/")]
        assert one.caught == (wanted if NIGHTLY else wanted[2:]), one.edit.name


def test_what_the_page_says_of_the_variations_is_so(shared: Path, tmp_path: Path) -> None:
    chosen = VARIATIONS if NIGHTLY else [one for one in VARIATIONS if one.name in CHEAP]
    said = {row[0]: row for row in table("variations")}
    for one in found(shared / "sources", shared / "recorded", tmp_path, chosen, whole=NIGHTLY):
        assert one.as_it_should, (one.variation.name, one.provenance, one.blocking)
        line = one.line.strip("| ").split(" | ")
        assert line == said[one.variation.name] if NIGHTLY else line[:2] == said[one.variation.name][:2]


def test_a_build_of_another_seed_without_sources_is_the_real_thing(shared: Path, tmp_path: Path) -> None:
    """The digest that ships is of the clean rows, which no seed moves."""
    from robustbench_tc.audits.provenance.shipped import found_digests, pinned

    for seed in (0, 1):
        out = tmp_path / str(seed)
        build_release(BuildSpec(profile="paper", sources=shared / "sources", seed=seed, codes=("CD",)), out)
        wanted = pinned()["benchmark"]
        assert wanted.version == VERSION
        assert found_digests(Folder(out)) == wanted.builds["paper"]
