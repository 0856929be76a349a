"""Builds with a green gate, for the tests of releasing and publishing."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc import freeze, manifest
from robustbench_tc.audits.report import AuditReport, Check
from robustbench_tc.builders.benchmark import TABLES
from robustbench_tc.builders.build import BuildSpec, build
from robustbench_tc.cli.release import render
from robustbench_tc.dataset_cards.render import benchmark_card
from robustbench_tc.manifest import Manifest

CODES = ("realistic_typos", "CD_AB", "transient_timeout")

MOMENT = "2026-11-20T12:00:00Z"


def small_build(folder: Path, *, seed: int = 0, codes: Sequence[str] = CODES, tables: bool = True) -> Path:
    """A build of the bundled samples with few types, with or without its tables, and a green audit."""
    build(BuildSpec(profile="bundled", seed=seed, codes=tuple(codes)), folder, card=benchmark_card)
    if not tables:
        path = folder / freeze.BUILD_REPORT
        report = msgspec.json.decode(path.read_bytes())
        report["configs"] = ["clean", *codes]
        path.write_bytes(msgspec.json.encode(report))
        for name in TABLES:
            shutil.rmtree(folder / name)
    audit(folder)
    return folder


def audit(folder: Path, *checks: Check, **more: Any) -> None:
    """An audit report about the folder's bytes; green unless a check blocks."""
    made = checks or (
        Check(id="rows.anchored", protects="Pairs can be compared.", status="passed", applied=9),
    )
    files = {name: manifest.entry(folder / name) for name in manifest.files_of(folder)}
    report = AuditReport(
        package_version="0",
        kind="benchmark",
        name=folder.name,
        build=manifest.digest(manifest.data_files(files, "robustbench-tc")),
        passed=not any(check.blocks for check in made),
        checks=made,
        **more,
    )
    (folder / freeze.AUDIT).write_bytes(report.json())


def released(build_folder: Path, out: Path, version: str = "1.0.0") -> Manifest:
    return freeze.release(build_folder, out, version=version, created_at=MOMENT, render=render)
