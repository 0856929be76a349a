"""A release's manifest says what its build report, its audit and its files say."""

from typing import Any

import msgspec

from robustbench_tc.io import manifest
from robustbench_tc.live_types import config_of
from robustbench_tc.schema import dumps

from ..folder import Folder
from ..report import Check, Failure, check
from .files import AUDIT_REPORT, load

_WHAT = (
    "provenance.manifest",
    "Who reads only the manifest reads what the build report, the audit and the files say.",
)


def manifest_check(folder: Folder) -> Check:
    """Every field that can be derived again. When it was made, by which package, and where it is published
    stand nowhere else: there a signature or the Hub's commit is the witness."""
    data = (folder.path / manifest.NAME).read_bytes() if folder.there[manifest.NAME] == "file" else b""
    try:
        found = msgspec.json.decode(data, type=manifest.Manifest)
    except (ValueError, RecursionError) as error:
        return check(*_WHAT, 1, [Failure(manifest.NAME, f"it cannot be read: {str(error)[:120]}")])
    wanted = _derived(folder)
    failures = [
        Failure(f"{manifest.NAME}: {name}", f"{_short(getattr(found, name))} instead of {_short(value)}")
        for name, value in wanted.items()
        if dumps(msgspec.to_builtins(getattr(found, name))) != dumps(value)
    ]
    if not failures and found.json() != data:
        failures.append(Failure(manifest.NAME, "its text is not the one that `rbtc release` writes"))
    return check(*_WHAT, len(wanted), failures)


def _derived(folder: Folder) -> dict[str, Any]:
    report, audit = folder.report, load(folder, AUDIT_REPORT)
    checks = [one for one in audit.get("checks") or () if isinstance(one, dict)]
    listed = load(folder, manifest.NAME).get("files")
    named = config_of if folder.kind == "live" else str
    entries = {
        name: sha256 and {"bytes": (folder.path / name).stat().st_size, "sha256": sha256}
        for name in (listed if isinstance(listed, dict) else ())
        for sha256 in [folder.sha256(name)]
    }
    return {
        "kind": report.get("kind"),
        "licence": "apache-2.0",
        "data_sha256": folder.digest(),
        "seed": report.get("seed"),
        "profile": report.get("profile"),
        "rows": {named(code): _total(counts) for code, counts in _dict(report.get("rows")).items()},
        "sources": report.get("pins") or report.get("sources") or [],
        "generators": report.get("generators") or {},
        "gate": {
            "passed": True,
            "report": AUDIT_REPORT,
            "checks": len(checks),
            "waived": [str(one.get("id")) for one in checks if one.get("status") == "waived"],
        },
        "files": entries,
    }


def _total(counts: Any) -> int:
    """Rows of a config: by source in the benchmark's report, by split in that of the training data."""
    plain = _dict(counts)
    chosen = [plain.get("train"), plain.get("validation")] if "train" in plain else list(plain.values())
    return sum(number for number in chosen if isinstance(number, int))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _short(value: Any) -> str:
    text = dumps(msgspec.to_builtins(value))
    return text if len(text) <= 80 else text[:80] + "…"
