"""Edits of what an audit leaves beside a build, and of a signed release: its manifest, cards, signature."""

import json
from collections.abc import Callable
from typing import Any

from robustbench_tc.io import manifest, marker

from .build import EDITS, Base, Edit, Forged, edit

AUDIT = "audit"


def text(area: str, base: Base, name: str, what: str, change: Callable[[str], str]) -> Edit:
    return Edit(area, what, lambda build: build.text(name, change), True, base)


def late(area: str, base: Base, name: str, what: str, change: Callable[[str], str]) -> Edit:
    """An edit that resealing does not undo."""
    return Edit(area, what, lambda build: build.late.append((name, change)), True, base)


def replaced(before: str, after: str) -> Callable[[str], str]:
    return lambda found: found.replace(before, after, 1)


def verdict(build: Forged, change: Callable[[dict[str, Any]], Any]) -> None:
    """An audit report whose own seal is whole."""
    path = build.path / marker.AUDIT
    found = json.loads(path.read_bytes())
    change(found)
    found.pop("own_sha256", None)
    path.write_bytes(marker.sealed(found))


def sealed(what: str, change: Callable[[dict[str, Any]], Any]) -> Edit:
    return Edit(AUDIT, what, lambda build: verdict(build, change), True, "audited")


def a_red_one(report: dict[str, Any]) -> None:
    report["checks"][0]["status"] = "failed"


def none_left(report: dict[str, Any]) -> None:
    report["checks"] = []


EDITS += [
    sealed("the verdict turned round", lambda r: r.update(passed=False)),
    sealed("a failed check in a green report", a_red_one),
    sealed("no checks in a green report", none_left),
    sealed("a check twice", lambda r: r["checks"].append(r["checks"][0])),
    sealed("about another build", lambda r: r.update(build="0" * 64)),
    sealed("about another profile", lambda r: r.update(profile="full")),
    sealed("about another fingerprint", lambda r: r.update(fingerprint="0" * 32)),
    sealed("a field more", lambda r: r.update(approved=True)),
    sealed("a reason put in, the page as it was", lambda r: r["checks"][1].update(reason="Approved.")),
    sealed("another provenance, the page as it was", lambda r: r.update(provenance="rebuilt by hand")),
    sealed("another figure of what needs no reading", lambda r: r["shortcuts"][1].update(classifier=1)),
    sealed("it names a Parquet file", lambda r: r["files"].update({"clean/x.parquet": "0" * 64})),
    sealed("it names a file outside of `audit/`", lambda r: r["files"].update({"notes.txt": "0" * 64})),
    sealed("it names a file that is not there", lambda r: r["files"].update({"audit/x.json": "0" * 64})),
    late(AUDIT, "audited", marker.AUDIT, "a blank more in the report", replaced('"passed":', '"passed": ')),
    late(
        AUDIT,
        "audited",
        marker.AUDIT,
        "a key twice in the report",
        replaced('"kind":', '"kind": "x",\n "kind":'),
    ),
    late(
        AUDIT, "audited", marker.AUDIT, "NaN for a number", replaced('"applied": ', '"applied": NaN, "x": ')
    ),
    text(
        AUDIT,
        "audited",
        marker.PAGE,
        "a sentence more on the page",
        replaced("</h1>", "</h1><p>Approved.</p>"),
    ),
    text(AUDIT, "audited", marker.PAGE, "a script on the page", replaced("</h1>", "</h1><script>1</script>")),
    late(AUDIT, "audited", "audit/judgments.jsonl", "a judgment more", lambda t: t + '{"score": 5}\n'),
    Edit(
        AUDIT, "the report empty", lambda build: (build.path / marker.AUDIT).write_bytes(b""), True, "audited"
    ),
    Edit(AUDIT, "the page removed", lambda build: (build.path / marker.PAGE).unlink(), True, "audited"),
    Edit(
        AUDIT,
        "the report removed, its files left",
        lambda build: (build.path / marker.AUDIT).unlink(),
        True,
        "audited",
    ),
    Edit(
        AUDIT,
        "the data of another audit",
        lambda build: build.one("clean", lambda row: row.update(category="x")),
        True,
        "audited",
    ),
]


MANIFEST = "manifest"


def of_manifest(what: str, before: str, after: str) -> Edit:
    return late(MANIFEST, "release", manifest.NAME, what, replaced(before, after))


EDITS += [
    of_manifest("another version", '"version": "1.0.0"', '"version": "1.0.1"'),
    of_manifest("another kind", '"kind": "robustbench-tc"', '"kind": "toolrl-dr"'),
    of_manifest("another manifest version", '"manifest_version": 1', '"manifest_version": 2'),
    of_manifest("another day", "2026-11-21T", "2025-11-21T"),
    of_manifest("another hour", "T09:30", "T09:31"),
    of_manifest("another package", '"package_version": "', '"package_version": "9'),
    of_manifest("another licence", '"licence": "apache-2.0"', '"licence": "mit"'),
    of_manifest("another digest of the data", '"data_sha256": "', '"data_sha256": "0'),
    of_manifest("another seed", '"seed": 0', '"seed": 1'),
    of_manifest("the seed as a boolean", '"seed": 0', '"seed": false'),
    of_manifest("another profile", '"profile": "paper"', '"profile": "full"'),
    of_manifest("another number of rows", '"CD": ', '"CD": 1'),
    of_manifest("another pinned commit", '"commit": "', '"commit": "0'),
    of_manifest("the gate was red", '"passed": true', '"passed": false'),
    of_manifest("another number of checks", '"checks": ', '"checks": 9'),
    of_manifest("another repository", "org/robustbench-tc", "org/robustbench-tc2"),
    of_manifest("a DOI", '"doi": null', '"doi": "10.57967/hf/1234"'),
    of_manifest(
        "a previous version",
        '"previous": null',
        '"previous": {"version":"0.9.0","data_sha256":"0","step":"minor"}',
    ),
    of_manifest("another size of a file", '"bytes": ', '"bytes": 1'),
    of_manifest("another checksum of a file", '"sha256": "', '"sha256": "0'),
    of_manifest("a field more", '"version":', '"approved": true,\n "version":'),
    of_manifest("a key twice", '"version":', '"version": "9.9.9",\n "version":'),
    of_manifest("a blank more", '"version":', '"version": '),
    of_manifest("NaN for the seed", '"seed": 0', '"seed": NaN'),
]

RELEASE = "release"
EDITS += [
    text(RELEASE, "release", "README.md", "a sentence more on the card", lambda t: t + "\nApproved.\n"),
    text(
        RELEASE,
        "release",
        "README.md",
        "another licence on the card",
        replaced("license: apache-2.0", "license: mit"),
    ),
    text(RELEASE, "release", "croissant.json", "another creator", replaced('"creator"', '"creators"')),
    text(
        RELEASE,
        "release",
        "croissant.json",
        "another hash of a file",
        replaced('"sha256": "', '"sha256": "0'),
    ),
    text(RELEASE, "release", "LICENSE", "another licence text", replaced("Apache", "Apachi")),
    text(RELEASE, "release", "build_report.md", "another count", replaced("3977 rows", "4994 rows")),
    text(
        RELEASE,
        "release",
        marker.PAGE,
        "a sentence more on the audit's page",
        replaced("</h1>", "</h1><p>Ok.</p>"),
    ),
    late(
        RELEASE,
        "release",
        manifest.NAME,
        "lines of the manifest that end otherwise",
        lambda t: t.replace("\n", "\r\n"),
    ),
]
EDITS.append(
    Edit(
        RELEASE,
        "another profile in its build report",
        lambda build: build.report(lambda r: r.update(profile="full")),
        True,
        "release",
    )
)


edit(RELEASE, "a gold off, in the clean row and all its types", base="release")(
    lambda build: build.everywhere(lambda row: row["golden_answers"].append(row["golden_answers"][0]))
)


@edit(RELEASE, "the signature of another", base="release")
def _(build: Forged) -> None:
    (build.path / manifest.SIGNATURE).chmod(0o600)
    (build.path / manifest.SIGNATURE).write_bytes(bytes(64))


for gone in (manifest.SIGNATURE, "LICENSE", "croissant.json", marker.AUDIT, "generations.jsonl"):

    def remove(build: Forged, gone: str = gone) -> None:
        (build.path / gone).unlink()

    EDITS.append(Edit(RELEASE, f"{gone} removed", remove, True, "release"))


edit(RELEASE, "a Parquet file more", base="release")(
    lambda build: (build.path / "CD" / "more.parquet").write_bytes(b"PAR1")
)


@edit(RELEASE, "a folder of the Hub's client with a Parquet file", base="release")
def _(build: Forged) -> None:
    path = build.path / ".cache" / "huggingface" / "x.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PAR1")
