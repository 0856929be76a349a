"""Golden cases: small clean samples of our own, and how a row of each type differs from one, to be read.

The samples stand in clean.yaml, the cases in golden.yaml. A test makes each row again and compares, and
`docs/types.md` shows them all.
"""

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from robustbench_tc import seeding
from robustbench_tc.builders.perturb import REGISTRY, Context, Perturbation, Text
from robustbench_tc.languages import value_map
from robustbench_tc.schema import Json, Sample, dumps

HERE = Path(__file__).parent


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a type's row differs from a clean sample."""

    clean: str
    reads: str
    """`difference` of the two, line by line."""
    texts: dict[str, Json] = {}
    """What somebody wrote for the texts that the type asks for, by their input."""


class Samples(msgspec.Struct):
    samples: dict[str, Sample]
    lent: dict[str, tuple[Sample, ...]]


T = TypeVar("T")


def read(name: str, kind: type[T]) -> T:
    """A data file of this folder."""
    return msgspec.yaml.decode((HERE / name).read_bytes(), type=kind)


_READ = read("clean.yaml", Samples)
CLEAN, LENT = _READ.samples, _READ.lent
GOLDEN = read("golden.yaml", dict[str, tuple[Case, ...]])
"""The cases of each type, by its code."""

_DONORS = ("table", "dialogue")
"""Their tools lend parameters; a new sample moves no case of another."""


def context_of(unit: Perturbation, case: Case) -> Context:
    """What the unit needs for the case: its texts, and the donors' tools."""
    clean = CLEAN[case.clean]
    written = {
        request.key: Text(case.texts[request.input], "hand-written")
        for request in unit.requests(clean)
        if request.input in case.texts
    }
    donors = {clean.source: [tool for name in _DONORS for tool in CLEAN[name].tools]}
    return Context(written, donors, loans=LENT, taken=lambda sample, surfaces: False)


def row_of(code: str, case: Case | None = None) -> Sample:
    """The type's row of the case (its first one), drawn with seed 0."""
    case = case or GOLDEN[code][0]
    unit, clean = REGISTRY[code], CLEAN[case.clean]
    rng = seeding.rng(0, unit.draws_as or code, clean.clean_id)
    return unit.perturb(clean, rng, context_of(unit, case))


def pair(code: str) -> tuple[Sample, Sample]:
    """The clean sample of the type's first case, and its row."""
    return CLEAN[GOLDEN[code][0].clean], row_of(code)


def difference(clean: Sample, row: Sample) -> str:
    """The lines that only one of the two has: `- ` of the clean row, `+ ` of the other."""
    lines = difflib.unified_diff(list(_lines(clean)), list(_lines(row)), n=0, lineterm="")
    return "\n".join(f"{line[0]} {line[1:]}" for line in list(lines)[2:] if not line.startswith("@@"))


SHOWN = 4
"""Messages of a long conversation that are shown: the first half and the last half of so many."""


def _lines(row: Sample) -> Iterator[str]:
    many = len(row.messages) > 2 * SHOWN
    for index, message in enumerate(row.messages):
        if many and SHOWN // 2 <= index < len(row.messages) - SHOWN // 2:
            if index == SHOWN // 2:
                left_out = row.messages[index : len(row.messages) - SHOWN // 2]
                length = sum(len(one.content) for one in left_out)
                yield f"(and {len(left_out)} messages more, of {length} characters)"
            continue
        first, *rest = message.content.split("\n")
        if many and index < len(row.messages) - 1:
            yield f"{message.role}: {first[:80]}…"
            continue
        yield f"{message.role}: {first}"
        yield from (f"    {line}" for line in rest)
    for index, tool in enumerate(row.tools):
        mark = "gold tool" if index == row.gold_tool_index else "tool"
        parameters = ", ".join(_parameter(name, inner) for name, inner in tool.properties.items())
        yield f"{mark}: {tool.name}({parameters}) {tool.description}".rstrip()
    for answer in row.golden_answers:
        calls = "; ".join(f"{call.name} {dumps(call.parameters)}" for call in answer)
        yield f"gold: {calls or 'no call'}"
    if row.injected_error is not None:
        first, *rest = row.injected_error.split("\n")
        yield f"the first call is answered: {first}"
        yield from (f"    {line}" for line in rest)
    for flag in row.flags:
        yield f"flag: {flag}"
    for value, surface in value_map(row).items():
        yield f"{value} is written: {surface}"


def _parameter(name: str, inner: object) -> str:
    if not isinstance(inner, dict):
        return name
    text = f"{name}: {inner['description']}" if inner.get("description") else name
    return f"{text} {inner['pattern']}" if "pattern" in inner else text
