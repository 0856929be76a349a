"""`errata.jsonl`: golden answers of upstream that a later version of the dataset corrects, one a line.

It lies in the build and is one of its sources: who builds again applies it to the same records and gets the
same rows. Each line says what stood there before, so that an erratum never meets another answer than its own.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.eval.validate import self_check
from robustbench_tc.io.manifest import bounded
from robustbench_tc.schema import GOLD_NOT_STATED, GoldenAnswer, Sample, dumps

from . import answerable
from .sources.base import tool_meant

NAME = "errata.jsonl"

Answers = tuple[GoldenAnswer, ...]
"""The golden answers of one row: every acceptable one."""


class Erratum(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One correction."""

    clean_id: str
    field: Literal["golden_answers"] = "golden_answers"
    before: Answers
    before_tool_index: int | None
    """The row's `gold_tool_index` under the answers before."""
    after: Answers
    reason: str
    date: str
    """The day on which it was found, ISO 8601."""


def read_errata(path: Path) -> tuple[Erratum, ...]:
    """The errata of a build; none where there is no file. UserError naming the line that does not fit."""
    return read_file(path) if path.is_file() else ()


def read_file(path: Path) -> tuple[Erratum, ...]:
    """The errata of a file that has to be there. UserError."""
    if not path.is_file():
        raise UserError(f"no errata at {path}: name the errata.jsonl of an amended build or release")
    found = []
    for number, line in enumerate(bounded(path).splitlines(), 1):
        try:
            found.append(msgspec.json.decode(line, type=Erratum))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UserError(f"{path}, line {number}: {error}") from None
    return tuple(found)


def write(path: Path, errata: Iterable[Erratum]) -> None:
    """Writes the file, a line each."""
    path.write_text("".join(f"{dumps(erratum)}\n" for erratum in errata), "utf-8")


def reverted(
    rows: Iterable[Mapping[str, Any]], errata: Sequence[Erratum], unstated: Collection[str] = ()
) -> Iterator[Mapping[str, Any]]:
    """Clean rows as they lie in Parquet, as they were before the errata: what upstream's records gave.

    `unstated`: the clean ids whose answers of before nobody could know, so that their rows were flagged. A
    row that holds another answer than its last erratum gave is left as it is.
    """
    for row in rows:
        for erratum in reversed(errata):
            mine = erratum.clean_id == row.get("clean_id")
            if mine and row.get(erratum.field) == dumps(erratum.after):
                before = {erratum.field: dumps(erratum.before), "gold_tool_index": erratum.before_tool_index}
                row = {**row, **before}
                flags, was = list(row.get("flags") or ()), erratum.clean_id in unstated
                if (GOLD_NOT_STATED in flags) != was:
                    others = [flag for flag in flags if flag != GOLD_NOT_STATED]
                    row["flags"] = [*others, GOLD_NOT_STATED] if was else others
        yield row


def read_answers(path: Path) -> Answers:
    """The golden answers in a JSON file: a list of answers, each a list of calls. UserError if not."""
    try:
        return msgspec.json.decode(bounded(path), type=Answers)
    except FileNotFoundError:
        raise UserError(f"no answers at {path}: give a JSON file with the right golden answers") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(
            f'{path} holds no golden answers: {error}; give [[{{"name": …, "parameters": {{…: [values]}}}}]]'
        ) from None


def amended(samples: Iterable[Sample], errata: Iterable[Erratum]) -> tuple[Sample, ...]:
    """The clean rows with their golden answers corrected, in order.

    UserError for an erratum that meets no row, another answer than it
    corrects, or that the scorer refuses.
    """
    found = {sample.clean_id: sample for sample in samples}
    for erratum in errata:
        sample = found.get(erratum.clean_id)
        if sample is None:
            raise UserError(f"erratum of {erratum.clean_id}: there is no clean row with this id")
        held = sample.golden_answers, sample.gold_tool_index
        if dumps(held) != dumps((erratum.before, erratum.before_tool_index)):
            raise UserError(
                f"erratum of {erratum.clean_id}: it corrects other golden answers than the row has"
            )
        corrected = corrected_row(sample, erratum.after)
        if refusal := self_check(corrected):
            raise UserError(f"erratum of {erratum.clean_id}: its scorer refuses the new answer: {refusal}")
        found[erratum.clean_id] = corrected
    return tuple(found.values())


def corrected_row(sample: Sample, answers: Answers) -> Sample:
    """A clean row with other golden answers. UserError for an answer that no listed tool could give."""
    names = {tool.name for tool in sample.tools}
    if not answers or not all(answers):
        raise UserError(f"{sample.clean_id}: a golden answer contains no call")
    for call in (call for answer in answers for call in answer):
        if call.name not in names:
            raise UserError(f"{sample.clean_id}: the golden tool {call.name!r} is not listed in its tools")
    first, index = answers[0][0], sample.gold_tool_index
    if index is None or sample.tools[index].name != first.name:
        index = tool_meant(sample.tools, first, first.parameters)
    corrected = msgspec.structs.replace(sample, golden_answers=answers, gold_tool_index=index)
    return answerable.flagged(corrected, answerable.audit(corrected).missing is not None)
