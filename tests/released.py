"""Small releases for the tests of what comes after the gate; `test_release_gate.py` runs the real one."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from robustbench_tc.audits import gate
from robustbench_tc.audits.report import AuditReport, Check
from robustbench_tc.builders.build import BuildSpec, build
from robustbench_tc.builders.configs import TABLES
from robustbench_tc.builders.report import BuildReport
from robustbench_tc.dataset_cards.render import benchmark_card
from robustbench_tc.io import manifest, marker
from robustbench_tc.release import freeze

CODES = ("realistic_typos", "CD_AB", "transient_timeout")

MOMENT = "2026-11-20T12:00:00Z"


def small_build(
    folder: Path,
    *,
    seed: int = 0,
    codes: Sequence[str] = CODES,
    tables: bool = True,
    profile: str = "full",
) -> Path:
    """A build of the bundled samples with few types, with or without its tables.

    It says that it is of another profile, because the starter samples are never published.
    """
    build(BuildSpec(profile="bundled", seed=seed, codes=tuple(codes)), folder, card=benchmark_card)
    if not tables:
        for name in TABLES:
            shutil.rmtree(folder / name)
    report_says(folder, profile=profile, **({} if tables else {"configs": ("clean", *codes)}))
    return folder


def to_spoil(release: Path, to: Path) -> Path:
    """A copy of a release in which files can be changed."""
    shutil.copytree(release, to)
    for path in to.rglob("*"):
        path.chmod(0o755)
    return to


def forge(folder: Path) -> None:
    """Another card, and a manifest that states it: whoever changes a file can change the manifest."""
    (folder / "README.md").write_text("another card")
    frozen = manifest.read_manifest(folder)
    files = {**frozen.files, "README.md": manifest.entry(folder / "README.md")}
    (folder / manifest.NAME).write_bytes(msgspec.structs.replace(frozen, files=files).json())


def report_says(folder: Path, **what: Any) -> None:
    """Changes fields of the build report, and names the files that are there."""
    path = folder / marker.BUILD
    report = msgspec.json.decode(path.read_bytes(), type=BuildReport)
    report = msgspec.structs.replace(report, files=marker.hashes(folder, but=marker.BUILD), **what)
    path.write_bytes(report.json())


def verdict(*checks: Check, **more: Any) -> Callable[..., AuditReport]:
    """A gate that says this of whatever it is given; green unless a check blocks."""
    made = checks or (
        Check(id="rows.anchored", protects="Pairs can be compared.", status="passed", applied=9),
    )

    def audit(folder: Path, **options: Any) -> AuditReport:
        files = {name: manifest.entry(folder / name) for name in manifest.files_of(folder)}
        said = {
            "package_version": "0",
            "kind": "benchmark",
            "name": "x",
            "build": manifest.digest(manifest.data_files(files, "robustbench-tc")),
            "passed": not any(check.blocks for check in made),
            "checks": made,
        }
        return AuditReport(**{**said, **more})

    return audit


def released(
    build_folder: Path, out: Path, version: str = "1.0.0", *checks: Check, **more: Any
) -> manifest.Manifest:
    """A release behind `verdict`."""
    with patch.object(gate, "audit", verdict(*checks)):
        return freeze.release(build_folder, out, version=version, created_at=MOMENT, **more)


def release_of(folder: Path, version: str = "1.0.0", *, key: Any = None, **build: Any) -> Path:
    """A release of a small build without tables, of the type CD_AB where nothing else is said."""
    small_build(folder / "build", **{"codes": ("CD_AB",), "tables": False, **build})
    released(folder / "build", folder / "robustbench-tc", version, key=key)
    return folder / "robustbench-tc"
