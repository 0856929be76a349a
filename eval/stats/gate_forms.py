"""The forms in which the gate's verdict is handed on: JUnit, a pull request's summary, a baseline."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq

from robustbench_tc.io import parquet
from robustbench_tc.io.folders import atomic_dir
from robustbench_tc.io.numbers import number, p_value, percent, points

from . import runs
from .gate import COLUMNS, Line, Verdict
from .runs import Run

MARK = "rbtc gate"
"""Stands in the first line of every file that the gate writes: only such a file is replaced."""

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def save_baseline(run: Run, folder: Path) -> None:
    """Writes the verdicts of a run, without its replies, to a folder that `--against` takes.

    Raises UserError for another folder than an earlier baseline.
    """
    source = Path(run.path)
    with atomic_dir(folder, kind="baseline", force=True) as made:
        made.joinpath("run.json").write_bytes((source / "run.json").read_bytes())
        scores = parquet.read_file(source / "scores.parquet", [*runs.COLUMNS, "flags"])
        pq.write_table(scores, made / "scores.parquet", compression="zstd")


def describe(line: Line) -> str:
    """A line in words, for a terminal, a test report or a pull request."""
    why = f": {line.why}" if line.why else ""
    return (
        f"{line.name} {line.outcome}: {percent(line.before)} → {percent(line.after)}, a drop of "
        f"{points(line.drop.value)} points [{points(line.drop.low)}, {points(line.drop.high)}], at most "
        f"{number(100 * line.max_drop, 1)} allowed, p (Holm) = {p_value(line.p_holm)}, "
        f"{line.cases} cases{why}"
    )


def junit(verdict: Verdict) -> bytes:
    """JUnit XML: a test per line, and one for each fault of the run.

    An inconclusive line fails its test, or skips it where that is allowed.
    """
    skipped = {"inconclusive"} if verdict.allow_inconclusive else set()
    tests = [(line.name, line.outcome, describe(line)) for line in verdict.lines]
    tests += [(f"run {at}", "fail", fault) for at, fault in enumerate(verdict.faults, 1)]
    counts = {
        "tests": len(tests),
        "failures": sum(outcome not in skipped | {"pass"} for _, outcome, _ in tests),
        "skipped": sum(outcome in skipped for _, outcome, _ in tests),
        "errors": 0,
    }
    name = _xml(f"{MARK} {verdict.model}")
    suite = ET.Element("testsuite", {"name": name, **{key: str(count) for key, count in counts.items()}})
    for test, outcome, text in tests:
        case = ET.SubElement(suite, "testcase", classname=MARK.replace(" ", "."), name=test)
        if outcome in skipped:
            ET.SubElement(case, "skipped", message=_xml(text))
        elif outcome != "pass":
            ET.SubElement(case, "failure", message=_xml(text)).text = _xml(text)
    ET.SubElement(suite, "system-out").text = _xml("\n".join((verdict.sentence, *verdict.notes)))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    head = f"<?xml version='1.0' encoding='utf-8'?>\n<!-- {MARK} -->\n".encode()
    found: bytes = head + ET.tostring(root, encoding="utf-8") + b"\n"
    return found


def _xml(text: str) -> str:
    return _NOT_XML.sub("�", text)


def markdown(verdict: Verdict) -> str:
    """A summary for a pull request."""
    against = f"`{_cell(verdict.against)}`" if verdict.against else "its own clean rows"
    head = {"pass": "passed", "fail": "**failed**", "inconclusive": "**inconclusive**"}[verdict.outcome]
    lines = [
        f"<!-- {MARK} -->",
        f"### Robustness gate: {head}",
        "",
        f"`{_cell(verdict.model)}`, run `{_cell(verdict.run)}`, against {against}. "
        f"{_cell(verdict.sentence)}.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
        *(f"| {' | '.join(line.cells)} |" for line in verdict.lines),
    ]
    lines += ["", *(f"- {_cell(note)}" for note in verdict.notes)]
    return "\n".join(lines).rstrip() + "\n"


def _cell(text: str) -> str:
    flat = " ".join(_NOT_XML.sub("�", text).split())
    return re.sub(r"([`|<>\[\]])", lambda found: f"&#{ord(found[1])};", flat)
