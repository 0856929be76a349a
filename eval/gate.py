"""`rbtc gate`: a run's verdict for continuous integration, and the forms in which it is handed on."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
from msgspec.structs import replace

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.io import parquet
from robustbench_tc.io.files import atomic_file, check_file
from robustbench_tc.io.folders import atomic_dir
from robustbench_tc.io.numbers import number, p_value, percent, points

from .reasons import of_predictions
from .stats import gate
from .stats.caveats import caveats, statuses
from .stats.delivery import as_delivered, delivery
from .stats.evidence import cure
from .stats.gate import Line, Verdict
from .stats.runs import COLUMNS, Outcomes, Run, Subset, align
from .stats.sides import Sides, other_run, own_clean
from .stats.unreviewed import unreviewed
from .stats.values import codes_of

MARK = "rbtc gate"
"""Stands in the first line of every file that the gate writes: only such a file is replaced."""

UNDELIVERED = 0.01
"""Share of the calls meant that a server may fail to deliver."""

ONE_SIDED = "gated on meant calls: only one of the two runs says what was delivered"

REJECTED = 0.01
"""Share of rows that may be rejected for another reason than tools of one name."""

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def judge(
    run: Run,
    against: Run | None = None,
    *,
    max_drop: float = gate.MAX_DROP,
    components: Mapping[str, float | None] | None = None,
    verdict: Literal["meant", "delivered"] | None = None,
    allow_undelivered: bool = False,
    allow_inconclusive: bool = False,
    allow_agent_errors: int = 0,
    allow_missing: bool = False,
    subset: Subset = "all",
) -> Verdict:
    """Holds a run against its own clean rows, or against another run of the same rows.

    `components`: the lines that are asked for, each with what it may drop (None: `max_drop`); by default all
    that the run has. Rows without a verdict pass nothing, unless `allow_missing`. `verdict`: on what is
    gated, always the same on both sides; by default what was delivered, where both sides have that. More than
    one call in a hundred that was not delivered fails, unless `allow_undelivered`. Raises UserError.
    """
    runs = [run] if against is None else [against, run]
    got = [delivery(one, outcomes) for one, outcomes in zip(runs, align(runs, subset=subset), strict=True)]
    if verdict == "delivered" and None in got:
        raise UserError("--verdict delivered: only a server's run in fc mode has it; --verdict meant")
    held = partial(
        _judge,
        max_drop=max_drop,
        components=components,
        allow_inconclusive=allow_inconclusive,
        allow_agent_errors=allow_agent_errors,
        allow_missing=allow_missing,
        subset=subset,
    )
    meant = held(run, against)
    if None in got or verdict == "meant":
        partly = got != [None] * len(got) and verdict is None
        return replace(meant, notes=(*meant.notes, *((ONE_SIDED,) if partly else ())))
    base = None if against is None else as_delivered(against)
    found = held(as_delivered(run), base)
    by_name = {line.name: line.outcome for line in meant.lines}
    lines = tuple(
        replace(line, why=f"server: {line.why}") if by_name[line.name] == "pass" != line.outcome else line
        for line in found.lines
    )
    faults = found.faults
    new = got[-1]
    if new is not None and new.undelivered > UNDELIVERED * new.called and not allow_undelivered:
        faults += (f"server: {new.undelivered} of {new.called} calls were not delivered: {new.culprit}",)
    return replace(
        found,
        outcome="fail" if faults else found.outcome,
        lines=lines,
        faults=faults,
        notes=(f"gated on delivered calls: {new.line}" if new else "", *found.notes),
    )


def _judge(
    run: Run,
    against: Run | None,
    *,
    max_drop: float,
    components: Mapping[str, float | None] | None,
    allow_inconclusive: bool,
    allow_agent_errors: int,
    allow_missing: bool,
    subset: Subset,
) -> Verdict:
    """The verdict on what `correct` says."""
    found = align([run] if against is None else [against, run], subset=subset)
    pairs = list(zip([run] if against is None else [against, run], found, strict=True))
    new = found[-1]
    refused = [statuses(*pair)["rejected"] for pair in pairs]
    inexpressible = {code for one in refused for code in one if _has_namesakes(code)}

    def held(*codes: str) -> Sides | None:
        kept = [code for code in codes if code not in inexpressible]
        return own_clean(new, kept) if against is None else other_run(found[0], new, kept)

    heads = (*((taxonomy.CLEAN,) if against else ()), *taxonomy.COMPONENTS)
    sides = {name: one for name in heads if (one := held(*codes_of(name))) is not None}
    if not sides:
        raise UserError(
            f"{run.path} has no pair of rows to compare: it needs clean rows beside perturbed ones. Build "
            "types that fit the cases (the build says which made rows), or name an earlier run with --against"
        )
    allowed = gate.limits(tuple(sides), components or {}, max_drop)
    types = {
        name: {code: one for code in codes_of(name) if (one := held(code)) is not None}
        for name in allowed
        if name != taxonomy.CLEAN
    }
    lines = gate.decide({name: sides[name] for name in allowed}, types, allowed)
    notes = _notes(pairs)
    if inexpressible:
        notes += (f"left out, the server rejects tools of one name: {', '.join(sorted(inexpressible))}",)
    missing = sum(int(one.missing.sum()) + one.unaccounted for one in found)
    if missing and not allow_missing:
        ask = (
            f"{missing} rows have no verdict: run the same rbtc eval again, or allow it with --allow-missing"
        )
        lines = tuple(line if line.outcome == "fail" else gate.unsettled(line, ask) for line in lines)
    else:
        lines = tuple(
            gate.unsettled(line, cure(run, new, line.cases, line.factor))
            if line.outcome == "inconclusive"
            else line
            for line in lines
        )
    faults = _faults(run, new, allow_agent_errors)
    return Verdict(
        outcome="fail" if faults else gate.outcome_of(lines),
        lines=lines,
        faults=faults,
        allow_inconclusive=allow_inconclusive,
        model=run.model,
        run=run.path,
        against=None if against is None else against.path,
        notes=notes,
    )


def _has_namesakes(code: str) -> bool:
    """Whether a row of the type has two tools of one name, which some servers refuse."""
    return taxonomy.known(code) and taxonomy.get(code).channel == "namesake"


def _faults(run: Run, outcomes: Outcomes, allowed: int) -> tuple[str, ...]:
    """Why the run fails as a whole."""
    found, faults = statuses(run, outcomes), []
    rows = sum(of_status.total() for of_status in found.values())
    if (failed := found["agent_error"].total()) > allowed:
        said = (
            one for one in of_predictions(Path(run.path) / "scores.parquet") if one.status == "agent_error"
        )
        message = next((f": {one.message}" for one in said), "")
        faults.append(f"the agent failed on {failed} of {rows} rows ({allowed} allowed){message}")
    refused = sum(n for code, n in found["rejected"].items() if not _has_namesakes(code))
    if refused > REJECTED * rows:
        faults.append(f"the server rejected {refused} of {rows} rows: rbtc failures shows why")
    return tuple(faults)


def _notes(pairs: list[tuple[Run, Outcomes]]) -> tuple[str, ...]:
    """What a reader has to know beside the lines."""
    notes = [
        f"{run.path}: {logged.line}"
        for run, outcomes in pairs
        if (logged := unreviewed(run, outcomes)) is not None
    ]
    run, outcomes = pairs[-1]
    notes += caveats(run, outcomes)[1]
    core = set(taxonomy.codes()) | {taxonomy.CLEAN}
    if others := [code for code in outcomes.types if code not in core]:
        notes.append(f"not gated, beyond the core types: {', '.join(others)}")
    return tuple(notes)


def save_baseline(run: Run, folder: Path) -> None:
    """Writes the verdicts of a run, without its replies, to a folder that `--against` takes.

    Raises UserError for another folder than an earlier baseline.
    """
    source = Path(run.path)
    with atomic_dir(folder, kind="baseline", force=True) as made:
        made.joinpath("run.json").write_bytes((source / "run.json").read_bytes())
        scores = parquet.read_file(source / "scores.parquet", [*COLUMNS, "flags"])
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
        "| | before | after | drop, points | 95 % | allowed | p (Holm) | cases | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {line.name} | {percent(line.before)} | {percent(line.after)} | {points(line.drop.value)} "
        f"| [{points(line.drop.low)}, {points(line.drop.high)}] | {number(100 * line.max_drop, 1)} "
        f"| {p_value(line.p_holm)} | {line.cases} | {line.outcome} |"
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
