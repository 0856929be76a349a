"""A release's manifest says what its build report, its audit and its files say."""

from typing import Any

import msgspec

from robustbench_tc.io import manifest
from robustbench_tc.live_types import config_of
from robustbench_tc.schema import dumps

from ..folder import Folder
from ..report import Check, Failure, check
from .files import AUDIT_REPORT, load
from .rebuilt import short

_WHAT = (
    "provenance.manifest",
    "Who reads only the manifest reads what the build report, the audit and the files say.",
)


def manifest_check(folder: Folder) -> Check:
    """Every field that can be derived again. When it was made, by which package, and where it is published
    stand nowhere else: there a signature or the Hub's commit is the witness."""
    data = folder.data(manifest.NAME)
    try:
        found = msgspec.json.decode(data, type=manifest.Manifest)
    except (ValueError, RecursionError) as error:
        return check(*_WHAT, 1, [Failure(manifest.NAME, f"it cannot be read: {str(error)[:120]}")])
    said, wanted = msgspec.to_builtins(found), _derived(folder)
    failures = [
        Failure(
            f"{manifest.NAME}: {name}",
            f"{short(msgspec.to_builtins(getattr(found, name)))} instead of {short(value)}",
        )
        for name, value in wanted.items()
        if dumps(said[name]) != dumps(value)
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
        "rows": {named(code): _total(counts) for code, counts in folder.report_field("rows").items()},
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
    plain = counts if isinstance(counts, dict) else {}
    chosen = [plain.get("train"), plain.get("validation")] if "train" in plain else list(plain.values())
    return sum(number for number in chosen if isinstance(number, int))
