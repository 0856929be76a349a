"""Licence and provenance of a build: what anybody may do with it, and where it comes from."""

import re
from typing import Any

from robustbench_tc.worlds.find import BFCL

from ..checks import verdict
from ..folder import Folder
from ..own_tools import is_own
from ..report import Check, Failure, check

_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_COMMIT = re.compile(r"[0-9a-f]{40}")


def licence_checks(folder: Folder) -> list[Check]:
    """The card names the licence; the build report names every upstream repository, commit and licence."""
    return [
        check(
            "provenance.licence",
            "Without a licence nobody may use the data; the Hub reads it from the card's front matter.",
            1,
            [Failure("README.md", what)] if (what := verdict(_names_its_licence, folder)) else [],
        ),
        check(
            "provenance.sources",
            "Every row can be traced to a pinned upstream commit with a licence, or to this package.",
            1,
            _sources(folder),
        ),
    ]


def _names_its_licence(folder: Folder) -> None:
    assert folder.there.get("README.md") == "file", "there is no card"
    matter = _FRONT_MATTER.match((folder.path / "README.md").read_text("utf-8", "replace"))
    assert matter, "the card has no YAML front matter"
    named = re.search(r"^license:\s*\S", matter.group(1), re.MULTILINE)
    assert named, "the card's front matter names no license"


def _sources(folder: Folder) -> list[Failure]:
    if folder.kind == "training":
        files = folder.report.get("sources") or []
        bare = [Failure(str(f.get("file", "?")), "no sha256") for f in files if not f.get("sha256")]
        return bare or ([] if files else [Failure("build_report.json", "it names no source file")])
    if folder.report.get("profile") == "bundled" or is_own(folder):
        return []
    if folder.kind == "live" and BFCL not in folder.said("worlds"):
        return []  # its worlds are files whose tasks stand in them
    pins: list[dict[str, Any]] = folder.report.get("pins") or []
    if not pins:
        return [Failure("build_report.json", "it names no upstream repository")]
    return [Failure(str(pin.get("source")), what) for pin in pins if (what := verdict(_is_pinned, pin))]


def _is_pinned(pin: dict[str, Any]) -> None:
    assert str(pin.get("repository") or "").strip(), "no repository"
    assert _COMMIT.fullmatch(str(pin.get("commit"))), "no full commit"
    assert str(pin.get("licence") or "").strip(), "no licence"
