"""Edits of the build report, the card and the kept answers."""

import re
from collections.abc import Callable
from typing import Any

from robustbench_tc.io import marker

from .build import EDITS, Edit, Forged

REPORT = "build report"


def report(name: str, change: Callable[[dict[str, Any]], Any]) -> Edit:
    return Edit(REPORT, name, lambda build: build.report(change), True)


EDITS += [
    report("another `kind`", lambda r: r.update(kind="toolrl-dr")),
    report("another `report_version`", lambda r: r.update(report_version=1)),
    report("another `fingerprint`", lambda r: r.update(fingerprint="0" * 32)),
    report("another `profile` (full)", lambda r: r.update(profile="full")),
    report("another `profile` (bundled)", lambda r: r.update(profile="bundled")),
    report("an unknown `profile`", lambda r: r.update(profile="papyrus")),
    report("another `seed`", lambda r: r.update(seed=1)),
    report("`seed` as a float", lambda r: r.update(seed=0.0)),
    report("`seed` as a boolean", lambda r: r.update(seed=False)),
    report("`types` in another order", lambda r: r["types"].reverse()),
    report("a type less in `types`", lambda r: r["types"].remove("TD")),
    report("a type twice in `types`", lambda r: r["types"].append("TD")),
    report("a type more in `types`", lambda r: r["types"].append("CD_AB_pref")),
    report("`configs` in another order", lambda r: r["configs"].reverse()),
    report("another count of rows", lambda r: r["rows"]["CD"].update(bfcl_v3=33)),
    report("a count of rows as a float", lambda r: r["rows"]["CD"].update(bfcl_v3=32.0)),
    report("another reason of a skip", lambda r: r["skipped"][0].update(reason="no_tools")),
    report("a skip less", lambda r: r["skipped"].pop()),
    report("a skip more", lambda r: r["skipped"].append(dict(r["skipped"][0]))),
    report("skips in another order", lambda r: r["skipped"].reverse()),
    report("another count of a flag", lambda r: next(iter(r["flags"].values())).update(CD_AB=0)),
    report("a flag more", lambda r: r["flags"].update(checked={"clean": 199})),
    report("another count of typing errors", lambda r: r["typing_errors"].update({"2": 999})),
    report("another length", lambda r: r["lengths"]["query_paraphrase"].update(median=1.0)),
    report("another generator", lambda r: r["generators"]["redundant"].update(generator="gpt-5@v1")),
    report("another number of answers", lambda r: r["generators"]["redundant"].update(answered=1)),
    report(
        "another count of known issues", lambda r: next(iter(r["known_issues"].values())).update(no_label=0)
    ),
    report("another pinned commit", lambda r: r["pins"][0].update(commit="0" * 40)),
    report("another licence of a source", lambda r: r["pins"][0].update(licence="MIT")),
    report("another number of pinned bytes", lambda r: r["pins"][0].update(bytes=1)),
    report("a pinned source less", lambda r: r["pins"].pop()),
    report("another source of a skip", lambda r: r["skipped"][0].update(source="x")),
    report("another sample of a skip", lambda r: r["skipped"][0].update(clean_id="x")),
    report("no skips", lambda r: r.update(skipped=[])),
    report("another repository of a pin", lambda r: r["pins"][0].update(repository="https://example.org/x")),
    report("pins in another order", lambda r: r["pins"].reverse()),
    report("a pin more", lambda r: r["pins"].append(dict(r["pins"][0]))),
    report("a config more", lambda r: r["configs"].append("hard")),
    report("rows null", lambda r: r.update(rows=None)),
    report("rows of a config more", lambda r: r["rows"].update(hard={"bfcl_v3": 1})),
    report("an unknown type", lambda r: r["types"].append("CD_XX")),
    report("types as text", lambda r: r.update(types="CD")),
    report("no types", lambda r: r.update(types=[])),
    report("no seed", lambda r: r.pop("seed")),
    report("the seed as text", lambda r: r.update(seed="0")),
    report("a negative seed", lambda r: r.update(seed=-1)),
    report("another pyarrow", lambda r: r.update(pyarrow="24.0.0")),
    report("no pyarrow", lambda r: r.pop("pyarrow")),
    report("a field more", lambda r: r.update(approved=True)),
    report("a field less", lambda r: r.pop("typing_errors")),
    report("fields in another order", lambda r: r.update(seed=r.pop("seed"))),
]


def late(name: str, change: Callable[[str], str]) -> Edit:
    """An edit of the report's text that resealing does not undo."""
    return Edit(REPORT, name, lambda build: build.late.append((marker.BUILD, change)), True)


def in_object(field: str, key: str) -> Callable[[str], str]:
    """Another sha256 under `key` of the object `field`."""
    return lambda text: re.sub(
        rf'("{field}": {{[^}}]*?"{re.escape(key)}": ")\w{{64}}', lambda match: match.group(1) + "0" * 64, text
    )


EDITS += [
    late("another checksum of a config", in_object("checksums", "CD")),
    late("another checksum of a file", in_object("files", "README.md")),
    late("a file more is named", lambda t: t.replace('"files": {', '"files": {\n  "hard/x.html": "00",', 1)),
    late(
        "a file that leads elsewhere is named",
        lambda t: t.replace('"files": {', '"files": {\n  "../x": "00",', 1),
    ),
    late("a file less is named", lambda t: re.sub(r'  "README.md": "\w+",\n', "", t, count=1)),
    late("a key twice", lambda t: t.replace('"profile":', '"profile": "full",\n "profile":', 1)),
    late("the seed twice", lambda t: t.replace('"seed": 0', '"seed": 7,\n "seed": 0', 1)),
    late("the seed as -0", lambda t: t.replace('"seed": 0', '"seed": -0', 1)),
    late("the seed as a great number", lambda t: t.replace('"seed": 0', f'"seed": {10**40}', 1)),
    late("no `own_sha256`", lambda t: re.sub(r',\s*"own_sha256": "\w*"', "", t)),
    late("a blank more", lambda t: t.replace('"profile":', '"profile": ', 1)),
    late("no line at the end", lambda t: t.rstrip("\n")),
    Edit(REPORT, "an empty report", lambda build: (build.path / marker.BUILD).write_text("{}\n"), True),
]


CARD = "card"


def card(name: str, change: Callable[[str], str]) -> Edit:
    return Edit(CARD, name, lambda build: build.text("README.md", change), True)


EDITS += [
    card("another licence", lambda t: t.replace("license: apache-2.0", "license: mit", 1)),
    card(
        "a config reads another's files",
        lambda t: t.replace("path: CD/test-*.parquet", "path: TD/test-*.parquet", 1),
    ),
    card("a config less", lambda t: t.replace("- config_name: CD\n", "- config_name: CD_\n", 1)),
    card(
        "a config reads every file",
        lambda t: t.replace("path: clean/test-*.parquet", "path: '**/*.parquet'", 1),
    ),
    card("another number of rows", lambda t: t.replace("3977", "4994")),
    card("another name", lambda t: t.replace("pretty_name: RobustBench-TC", "pretty_name: RobustBench", 1)),
    card(
        "a config more",
        lambda t: t.replace("configs:\n", "configs:\n- config_name: hard\n  data_files: '*'\n", 1),
    ),
    card("another checksum", lambda t: re.sub(r"sha256:\w", "sha256:g", t, count=1)),
    card("another default", lambda t: t.replace("  default: true\n", "", 1)),
    card("a tag more", lambda t: t.replace("- agents\n", "- agents\n- approved\n", 1)),
    card("no front matter", lambda t: t.removeprefix("---\n")),
    card("a look-alike letter", lambda t: t.replace("RobustBench", "RоbustBench", 1)),
    card("a sentence more", lambda t: t + "\nThis build was approved.\n"),
    card("a blank more", lambda t: t + " "),
    Edit(
        CARD,
        "the readable report counts otherwise",
        lambda build: build.text("build_report.md", lambda t: t.replace("3977 rows", "4994 rows", 1)),
        True,
    ),
]


ANSWERS = "kept answers"


def answers(name: str, change: Callable[[list[dict[str, Any]]], Any], *, clean: bool = True) -> Edit:
    return Edit(ANSWERS, name, lambda build: build.answers(change), clean)


def first(lines: list[dict[str, Any]], kind: str = "query_paraphrase") -> dict[str, Any]:
    return next(line for line in lines if line["kind"] == kind and "output" in line)


EDITS += [
    answers("another output", lambda ls: first(ls).update(output=first(ls)["output"] + " Please.")),
    answers("another input", lambda ls: first(ls).update(input=first(ls)["input"] + " Please.")),
    answers("another generator", lambda ls: first(ls).update(generator="gpt-5@v1")),
    answers("an answer refused", lambda ls: first(ls).update(refused="lost value 'x'")),
    answers("an answer dropped", lambda ls: ls.remove(first(ls))),
    answers("an answer twice", lambda ls: ls.insert(ls.index(first(ls)), dict(first(ls)))),
    answers(
        "an answer that nobody asked for",
        lambda ls: ls.append({**first(ls, "redundant"), "input": "x", "tool": "x"}),
    ),
    answers("answers in another order", lambda ls: ls.insert(2, ls.pop(1))),
    answers("another count in the head", lambda ls: ls[0]["statistics"].update(asked=1)),
    answers(
        "a refused answer more, not in the report", lambda ls: ls.insert(1, {**ls[1], "refused": "unchanged"})
    ),
    answers("another reason for what is missing", lambda ls: ls[0].update(missing="not_generated")),
    answers("a type without a head", lambda ls: ls.pop(0)),
    answers("a field more", lambda ls: first(ls).update(approved=True)),
    answers("an answer that loses a gold value", lambda ls: first(ls).update(output="Do it.")),
    Edit(ANSWERS, "an empty file", lambda build: (build.path / "generations.jsonl").write_bytes(b""), True),
    Edit(
        ANSWERS,
        "not JSON",
        lambda build: (build.path / "generations.jsonl").write_bytes(b"\xef\xbb\xbf[" * 100_000),
        True,
    ),
]


def consistently(kind: str, change: Callable[[Any], Any]) -> Callable[[Forged], None]:
    """Another text in the kept answers, and the whole build made again with it: only a judge can tell."""

    def plant(build: Forged) -> None:
        def put(lines: list[dict[str, Any]]) -> None:
            line = first(lines, kind)
            line["output"] = change(line["output"])

        build.answers(put)
        build.build_again()

    return plant


for kind in (
    "realistic_typos",
    "query_paraphrase",
    "paraphrase_tool_description",
    "paraphrase_parameter_description",
):
    EDITS.append(
        Edit(
            ANSWERS,
            f"another text of {kind}, and the whole build made again with it",
            consistently(kind, lambda text: f"{text} Please."),
            False,
        )
    )
