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
from .findings import KINDS, Finding, Kind
from .reading import Place, Reading
from .values import Reader

__all__ = ["KINDS", "Finding", "Gold", "Kind", "Place", "Verdict", "audit", "classes", "flagged", "golds"]

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
    reader = Reader(Reading.of(sample), scorer == "bfcl_v3")
    for index, answer in enumerate(sample.golden_answers):
        for call in answer:
            tool = schemas.declared(sample, call.name, sample.gold_tool_index)
            for name, accepted in call.parameters.items():
                schema = None if tool is None else tool.properties.get(name)
                found = reader.accepted(accepted, schema, tool)
                if scorer in NAMES_ONLY:
                    found = Finding("free", "only names are judged")
                yield Gold(index, call.name, name, tuple(accepted), found)


def classes(sample: Sample) -> tuple[tuple[str, ...], str | None]:
    """The class of every golden value, and why no accepted answer can be reached: what the gate asks for."""
    found, missing = audit(sample)
    return tuple(gold.finding.kind for gold in found), missing


def flagged(sample: Sample, unstated: bool) -> Sample:
    """The clean row with the flag `gold_not_stated`, or without it."""
    flags = tuple(flag for flag in sample.flags if flag != GOLD_NOT_STATED)
    flags += (GOLD_NOT_STATED,) if unstated else ()
    return sample if flags == sample.flags else msgspec.structs.replace(sample, flags=flags)
