"""The closed list: which files a build or a release may hold, each with the checksum that is written down."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from robustbench_tc.audits import audit_files
from robustbench_tc.builders import errata_files
from robustbench_tc.io import manifest, marker
from robustbench_tc.own.book import NAME as BOOK

from ..folder import Folder, empty_folders
from ..report import Check, Failure, check

GENERATIONS = "generations.jsonl"

OF_EVERY_BUILD = ("README.md", "build_report.md")
OF_A_BUILD = (*OF_EVERY_BUILD, GENERATIONS)
"""Files besides Parquet that a build's report names; nobody writes a text for the live dataset."""

AUDIT_REPORT = "audit_report.json"
OF_AN_AUDIT = (AUDIT_REPORT, "audit_report.html")
"""What an audit leaves beside a build, with the folder `audit/`, whose files its report names."""

OF_A_RELEASE = ("LICENSE", "croissant.json")
"""Files that only a release has, besides its manifest; the manifest names them."""

OF_THE_BENCHMARK = "eval.yaml"
"""A further one, which no release of live or training data has."""

_SHARD = re.compile(r"(?P<config>[A-Za-z0-9_]+)/(?:test|train|validation)-\d{5}-of-\d{5}\.parquet")


class Named(NamedTuple):
    """The files that may lie in a folder."""

    checksums: dict[str, set[str]]
    """Path → every sha256 that somebody says it has; none for the reports themselves."""
    wrong: list[Failure]
    """Names that no report may hold."""
    is_release: bool


def named(folder: Folder) -> Named:
    """What the folder's reports name, and may name."""
    checksums: dict[str, set[str]] = {marker.BUILD: set()}
    wrong: list[Failure] = []
    listed = _strings(folder.report.get("files"))
    if listed is None:
        wrong.append(Failure(marker.BUILD, "it names no files: build the folder again"))
    of_a_build = of_kind(folder)
    for path, sha256 in (listed or {}).items():
        if path in of_a_build or path == errata_files.NAME or _SHARD.fullmatch(path):
            checksums.setdefault(path, set()).add(sha256)
        else:
            wrong.append(Failure(path, f"{marker.BUILD} names it, and no build has it"))
    unnamed = [path for path in of_a_build if listed is not None and path not in listed]
    wrong += [Failure(path, f"{marker.BUILD} does not name it, and every build has it") for path in unnamed]
    checksums |= {path: set() for path in OF_AN_AUDIT if path in folder.there}
    if AUDIT_REPORT not in folder.there and audit_files.JUDGMENTS in folder.there:
        checksums[audit_files.JUDGMENTS] = set()
    for path, sha256 in (_strings(load(folder, AUDIT_REPORT).get("files")) or {}).items():
        if path.startswith(audit_files.FOLDER) and not path.casefold().endswith(".parquet"):
            checksums.setdefault(path, set()).add(sha256)
        else:
            wrong.append(Failure(path, f"{AUDIT_REPORT} names it, and it is not of an audit"))
    if manifest.NAME not in folder.there:
        return Named(checksums, wrong, False)
    checksums[manifest.NAME] = set()
    beside = {path: set[str]() for path in manifest.BESIDE if path in folder.there}
    of_a_release = (*OF_A_RELEASE, *[OF_THE_BENCHMARK] * (folder.kind == "benchmark"))
    released = load(folder, manifest.NAME).get("files")
    for path, entry in (released if isinstance(released, dict) else {}).items():
        if path in checksums or path in of_a_release or path in OF_AN_AUDIT:
            checksums.setdefault(path, set()).add(str(entry.get("sha256") if isinstance(entry, dict) else ""))
        else:
            wrong.append(Failure(path, f"{manifest.NAME} names it, and no release has it"))
    for path, said in checksums.items():
        if path not in (released or {}) and path != manifest.NAME:
            wrong.append(Failure(path, f"{manifest.NAME} does not name it"))
            said.add("")
    return Named(checksums | beside, wrong, True)


def of_kind(folder: Folder) -> tuple[str, ...]:
    """The files besides Parquet that a build of this kind has."""
    if folder.kind == "live":
        return OF_EVERY_BUILD
    return (*OF_A_BUILD, BOOK) if folder.is_own else OF_A_BUILD


def files_checks(folder: Folder, known: Named) -> list[Check]:
    """The closed list, and the checksums."""
    there = folder.there
    failures = list(known.wrong)
    for path, kind in there.items():
        if kind == "link":
            failures.append(Failure(path, "it is a link"))
        elif kind == "special":
            failures.append(Failure(path, "it is neither a file nor a folder that can be read"))
        elif kind == "file" and path not in known.checksums:
            failures.append(Failure(path, "no report names it"))
    failures += [Failure(path, "an empty folder") for path in empty_folders(there)]
    failures += [Failure(path, "it is missing") for path in known.checksums if path not in there]
    return [
        check(
            "provenance.closed_list",
            "Every file is one that the reports name: what nobody named, nobody looked at.",
            len(there),
            failures,
        ),
        _checksums(folder, known),
    ]


def _checksums(folder: Folder, known: Named) -> Check:
    failures: list[Failure] = []
    for path, said in known.checksums.items():
        found = folder.sha256(path)
        for wanted in sorted(said - {found}) if found is not None else ():
            what = f"sha256 {found[:12]}… instead of {wanted[:12]}…" if found else "it cannot be read"
            failures.append(Failure(path, what))
    sealed = str(folder.report.get("own_sha256") or "")
    if not sealed or not marker.is_sealed((folder.path / marker.BUILD).read_bytes(), sealed):
        failures.append(Failure(marker.BUILD, "it is not as the builder left it (own_sha256)"))
    return check(
        "provenance.checksums",
        "Every file is the one that was built: its bytes have the checksum that was written down then.",
        len(known.checksums),
        failures,
    )


def _strings(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        return None
    return value


def load(folder: Folder, name: str) -> Mapping[str, Any]:
    """A JSON object of the folder; {} where there is none."""
    try:
        found = msgspec.json.decode(folder.data(name))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
