"""`rbtc gate`: a run's verdict for continuous integration, and the forms in which it is handed on."""

import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.io.files import atomic_file, check_file
from robustbench_tc.io.numbers import number, p_value, percent, points

from .stats import gate
from .stats.gate import Line, Verdict
from .stats.runs import Outcomes, Run, Subset, align
from .stats.unreviewed import unreviewed
from .stats.values import codes_of

MARK = "rbtc gate"
"""Stands in the first line of every file that the gate writes: only such a file is replaced."""

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def judge(
    run: Run,
    against: Run | None = None,
    *,
    max_drop: float = gate.MAX_DROP,
    components: Mapping[str, float | None] | None = None,
    strict: bool = False,
    allow_missing: bool = False,
    subset: Subset = "all",
) -> Verdict:
    """Holds a run against its own clean rows, or against another run of the same rows.

    `components`: the lines that are asked for, each with what it may drop (None: `max_drop`); by default all
    that the run has. Rows without a verdict make it `not shown`, unless `allow_missing`. Raises UserError.
    """
    found = align([run] if against is None else [against, run], subset=subset)
    new, base = found[-1], None if against is None else found[0]
    sides = {}
    for name in (*((taxonomy.CLEAN,) if base else ()), *taxonomy.COMPONENTS):
        codes = codes_of(name)
        one = gate.own_clean(new, codes) if base is None else gate.other_run(base, new, codes)
        if one is not None:
            sides[name] = one
    if not sides:
        raise UserError(
            f"{run.path} has no pair of rows to compare: it needs clean rows beside perturbed ones. Build "
            "types that fit the cases (the build says which made rows), or name an earlier run with --against"
        )
    allowed = gate.limits(tuple(sides), components or {}, max_drop)
    lines = gate.decide({name: sides[name] for name in allowed}, allowed, strict=strict)
    notes, whole = _notes(run, against, found)
    if never := [line.name for line in lines if line.before == 0]:
        notes += (f"nothing could be lost in {', '.join(never)}: not one row was right before",)
    if not whole and not allow_missing:  # every form of the verdict is to say so, line by line
        lines = tuple(gate.unpassed(line) for line in lines)
        notes += ("rows are missing, so nothing is passed: ask them, or say --allow-missing",)
    return Verdict(
        outcome=gate.outcome_of(lines),
        lines=lines,
        strict=strict,
        model=run.model,
        run=run.path,
        against=None if against is None else against.path,
        notes=notes,
    )


def _notes(run: Run, against: Run | None, found: list[Outcomes]) -> tuple[tuple[str, ...], bool]:
    """What a reader has to know beside the lines, and whether every row has its verdict."""
    notes, whole = [], True
    for one, outcomes in zip([run] if against is None else [against, run], found, strict=True):
        missing = int(outcomes.missing.sum()) + outcomes.unaccounted
        if missing:
            whole = False
            notes.append(f"{one.path}: {missing} rows have no verdict (request_error, or not asked)")
        if (logged := unreviewed(one, outcomes)) is not None:
            notes.append(f"{one.path}: {logged.line}")
    core = set(taxonomy.codes()) | {taxonomy.CLEAN}
    if others := [code for code in found[-1].types if code not in core]:
        notes.append(f"not looked at, beyond the core's types: {', '.join(others)}")
    return tuple(notes), whole


def size(share: float) -> str:
    """A share in points, without a sign: it is an amount."""
    return number(100 * share, 1)


def sentence(verdict: Verdict) -> str:
    """The verdict in a line."""
    failed = [line.name for line in verdict.lines if line.outcome == "fail"]
    if failed:
        return f"failed: {', '.join(failed)} dropped more than is allowed, and more than chance explains"
    missed = max(line.could_miss for line in verdict.lines)
    if verdict.outcome == "not shown":
        open_ = [line.name for line in verdict.lines if line.outcome == "not shown"]
        which = f" for {', '.join(open_)}" if open_ else ""
        return f"not shown{which}: no drop above what is allowed was found, and none is ruled out"
    return f"passed: a drop of up to {size(missed)} points could have been missed at this size"


def describe(line: Line) -> str:
    """A line in words, for a terminal, a test report or a pull request."""
    return (
        f"{line.name}: {percent(line.before)} → {percent(line.after)}, a drop of {points(line.drop.value)} "
        f"points [{points(line.drop.low)}, {points(line.drop.high)}], at most {size(line.max_drop)} "
        f"allowed, p (Holm) = {p_value(line.p_holm)}, {line.cases} cases; a drop of up to "
        f"{size(line.could_miss)} points could have been missed"
    )


def junit(verdict: Verdict) -> bytes:
    """JUnit XML: a test per line, which fails, is skipped (`not shown`) or passes."""
    counts = {
        "tests": len(verdict.lines),
        "failures": sum(line.outcome == "fail" for line in verdict.lines),
        "skipped": sum(line.outcome == "not shown" for line in verdict.lines),
        "errors": 0,
    }
    name = _xml(f"{MARK} {verdict.model}")
    suite = ET.Element("testsuite", {"name": name, **{key: str(count) for key, count in counts.items()}})
    for line in verdict.lines:
        case = ET.SubElement(suite, "testcase", classname=MARK.replace(" ", "."), name=line.name)
        said = _xml(describe(line))
        if line.outcome == "fail":
            ET.SubElement(case, "failure", message=said).text = said
        elif line.outcome == "not shown":
            ET.SubElement(case, "skipped", message=said)
    ET.SubElement(suite, "system-out").text = _xml("\n".join((sentence(verdict), *verdict.notes)))
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
    head = {"pass": "passed", "fail": "**failed**", "not shown": "**not shown**"}[verdict.outcome]
    lines = [
        f"<!-- {MARK} -->",
        f"### Robustness gate: {head}",
        "",
        f"`{_cell(verdict.model)}`, run `{_cell(verdict.run)}`, against {against}. {sentence(verdict)}.",
        "",
        "| | before | after | drop, points | 95 % | allowed | p (Holm) | cases | could miss | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {line.name} | {percent(line.before)} | {percent(line.after)} | {points(line.drop.value)} "
        f"| [{points(line.drop.low)}, {points(line.drop.high)}] | {size(line.max_drop)} "
        f"| {p_value(line.p_holm)} | {line.cases} | {size(line.could_miss)} | {line.outcome} |"
        for line in verdict.lines
    ]
    lines += ["", *(f"- {_cell(note)}" for note in verdict.notes)]
    return "\n".join(lines).rstrip() + "\n"


def _cell(text: str) -> str:
    flat = " ".join(_NOT_XML.sub("�", text).split())
    return re.sub(r"([`|<>\[\]])", lambda found: f"&#{ord(found[1])};", flat)


def check_place(path: Path) -> None:
    """UserError where something else than a file of the gate is at `path`."""
    if not path.is_file() or path.is_symlink():
        check_file(path)
        return
    with path.open("rb") as file:
        if MARK.encode() not in file.read(200):
            raise UserError(
                f"{path} is not a file of `rbtc gate`, so it is not replaced: choose another name"
            )


def save(path: Path, data: bytes) -> None:
    """A file of the gate, in place of an earlier one. Raises UserError for another file."""
    check_place(path)
    with atomic_file(path, replace=True) as beside:
        beside.write_bytes(data)
