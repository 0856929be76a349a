"""Is the gold answerable? For every golden value, from where a reader could take it, or that he could take it nowhere.

A sample is answerable where one of its accepted answers is, in every value; a value is, where one of the accepted
values is. The rules know no ids: they read what a model is shown and judge by the same classes for every source.
docs/answerable.md has the classes and what came out.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from robustbench_tc import sources
from robustbench_tc.schema import GOLD_NOT_STATED, Json, Sample

from . import schemas
from .reading import KINDS, Finding, Kind, Reading
from .values import Reader

__all__ = [
    "KINDS",
    "Finding",
    "Gold",
    "Kind",
    "Verdict",
    "audit",
    "classes",
    "flagged",
    "golds",
    "missing_in",
]

NAMES_ONLY = frozenset({"tooleyes"})
"""Scorers that judge the names of tools and parameters: their golden values are information (`eval/score`)."""


class Gold(msgspec.Struct, frozen=True):
    """One golden value and its class."""

    answer: int
    """Index of the accepted answer."""
    call: str
    parameter: str
    accepted: tuple[Json, ...]
    finding: Finding


class Verdict(NamedTuple):
    """What the golden values of a sample amount to."""

    golds: tuple[Gold, ...]
    missing: str | None
    """Why no accepted answer can be reached: a sentence that quotes no value; None where one can be."""


def audit(sample: Sample) -> Verdict:
    """Classifies every golden value of a sample."""
    found = tuple(golds(sample))
    lacking = {gold.answer: gold for gold in reversed(found) if gold.finding.kind == "nowhere"}
    if len(lacking) < len(sample.golden_answers):
        return Verdict(found, None)
    first = lacking[min(lacking)]
    return Verdict(found, f"{first.parameter!r} of {first.call}: {first.finding.note}.")


def golds(sample: Sample) -> Iterator[Gold]:
    """Every golden value in the order of answers, calls and parameters."""
    source = sources.find(sample.source)  # training rows are of none
    scorer = source and source.scorer
    reader = Reader(Reading.of_sample(sample), scorer == "bfcl_v3")
    for index, answer in enumerate(sample.golden_answers):
        for call in answer:
            tool = schemas.declared(sample, call.name, sample.gold_tool_index)
            for name, accepted in call.parameters.items():
                schema = None if tool is None else tool.properties.get(name)
                found = reader.accepted(accepted, schema, tool)
                if found.kind != "free" and tool and (why := reader.unwanted(name, tool)):
                    found = Finding("nowhere", why)
                if scorer in NAMES_ONLY:
                    found = Finding("free", "only names are judged")
                yield Gold(index, call.name, name, tuple(accepted), found)


def missing_in(row: Sample, clean: Sample) -> str | None:
    """Why no golden call of a row can be reached, as `Verdict.missing`, where none of its clean row can.

    The row's own golden answers decide. They are looked for in the words of the clean row, whose meaning a
    rewriting keeps. Where calling nothing is the one right answer, it can be reached; where it is accepted
    beside calls, the calls decide.
    """
    unreached, calling = audit(clean).missing, tuple(filter(None, row.golden_answers))
    if unreached is None or not calling:
        return None
    own, known = (
        [[call.parameters for call in answer] for answer in answers]
        for answers in (calling, clean.golden_answers)
    )
    if all(values in known for values in own):  # the same calls, perhaps of renamed tools
        return unreached
    judged = msgspec.structs.replace(row, messages=clean.messages, golden_answers=calling)
    return audit(judged).missing


def classes(row: Sample, clean: Sample) -> tuple[tuple[str, ...], str | None]:
    """The class of every golden value of the clean row, and `missing_in` of the row: the gate's question.

    Raises UserError for a row of no source of the benchmark.
    """
    sources.get(row.source)
    return tuple(gold.finding.kind for gold in golds(clean)), missing_in(row, clean)


def flagged(sample: Sample, unstated: bool) -> Sample:
    """The row with the flag `gold_not_stated`, or without it."""
    flags = tuple(flag for flag in sample.flags if flag != GOLD_NOT_STATED)
    flags += (GOLD_NOT_STATED,) if unstated else ()
    return sample if flags == sample.flags else msgspec.structs.replace(sample, flags=flags)
