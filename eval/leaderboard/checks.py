"""A stranger's run folder: read into structs, bounded, and checked. What does not pass is refused with one
line that says what to do.

Only columns of known types are read, a little at a time; nothing is unpacked or evaluated. What cannot be
bounded by looking first (a small page that unpacks to gigabytes) the limits of `checker.in_child` bound.
Nothing of a run is believed that can be known: identity fields come from the dataset, verdicts from the
scorers, totals are counted. What is taken over is the answers themselves.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Meta

from robustbench_tc import schema
from robustbench_tc.errors import UserError
from robustbench_tc.eval import defend, predictions, wire
from robustbench_tc.eval.data import Selection
from robustbench_tc.eval.inputs import Dataset
from robustbench_tc.eval.live.inputs import LiveData
from robustbench_tc.eval.read_reply import read_reply
from robustbench_tc.eval.record import FORMAT, RunRecord
from robustbench_tc.schema import Episode, Prediction, Sample, arrow_schema, dataset_label

from .datasets import title
from .entry import Refused, shown

MAKE = "make it with `rbtc eval`"

FILE_BYTES, RECORD_BYTES, DECODED_BYTES = 64 << 20, 30_000, 512 << 20
"""Of the replies' file, of run.json, and of all columns together once they are unpacked."""

REPEATS = 5
"""Answers to a row."""

REPLY_CHARS, FIELD_CHARS = 200_100, 2_000
"""Of a reply's text and of a call's arguments, which the harness cuts at 200,000; of any other text."""

_LONG = ("raw_output", "first_output", "text")

Row = TypeVar("Row", bound=Prediction | Episode)
_Read = TypeVar("_Read")


class NativeCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A native call as the harness keeps it; the arguments are the raw text, whatever it holds."""

    name: Annotated[str, Meta(max_length=FIELD_CHARS)]
    arguments: Annotated[str, Meta(max_length=REPLY_CHARS)]
    id: Annotated[str, Meta(max_length=FIELD_CHARS)] = ""


_calls = partial(msgspec.convert, type=Annotated[list[NativeCall], Meta(max_length=128)] | None)


def regular(path: Path, most: int) -> bytes:
    """The bytes of a file of the run. Raises Refused for one that is missing, no plain file, or too long."""
    if path.is_symlink() or not path.is_file():
        raise Refused("format", f"{path.name} is missing, a link, or no plain file: {MAKE}")
    if (size := path.stat().st_size) > most:
        raise Refused("size", f"{path.name} has {size:,} bytes: at most {most:,} are read")
    return path.read_bytes()


def read_record(path: Path) -> RunRecord:
    """`run.json`. Raises Refused."""
    text = regular(path, RECORD_BYTES)
    found = _fits(text, "run.json", msgspec.json.Decoder(RunRecord).decode, "record")
    if found.format != FORMAT:
        raise Refused("record", f"run.json is of format {found.format}: ask again with this version")
    return found


def read_rows(path: Path, kind: type[Row], most: int) -> list[Row]:
    """At most so many predictions or episodes, checked for form and size, without log probabilities. Raises
    Refused."""
    found: list[Row] = []
    for number, plain in enumerate(_plain(path, kind, most), 1):
        where = f"row {number}"
        found.append(_fits(plain, where, partial(schema.record, kind=kind)))
        for part in (found[-1], *getattr(found[-1], "replies", ())):
            _check_sizes(part, where)
    return found


def _fits(value: Any, where: str, read: Callable[[Any], _Read], step: str = "format") -> _Read:
    """The value as what it is meant to be. Raises Refused."""
    try:
        return read(value)
    except (ValueError, RecursionError, OverflowError) as error:
        raise Refused(step, f"{where} cannot be read ({shown(str(error), 200)}): {MAKE}") from None


def _check_sizes(of: msgspec.Struct, where: str) -> None:
    """Native calls, lengths of texts and sizes of numbers. Raises Refused."""
    for name in of.__struct_fields__:
        value, most = getattr(of, name), REPLY_CHARS if name in _LONG else FIELD_CHARS
        if name in ("tool_calls", "first_tool_calls"):
            _fits(value, f"{where}, {name}", _calls)
        if isinstance(value, str) and len(value) > most:
            raise Refused("size", f"{where}, {name}: {len(value):,} characters, at most {most:,} are read")
        if isinstance(value, int | float) and not (math.isfinite(value) and 0 <= value < 2**31):
            raise Refused("format", f"{where}, {name}: {shown(str(value), 30)} is out of range")


def _plain(path: Path, kind: type[msgspec.Struct], most: int) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file with the columns of a struct, as their types. Raises Refused."""
    number = total = 0
    large = Refused("size", f"{path.name} unpacks to more than {DECODED_BYTES:,} bytes")
    try:
        with pq.ParquetFile(
            path,
            pre_buffer=False,  # a little of it at a time
            thrift_string_size_limit=4 << 20,
            thrift_container_size_limit=100_000,
            arrow_extensions_enabled=False,  # type: ignore[call-arg]
        ) as parquet:
            there = set(parquet.schema_arrow.names) - {"logprobs"}
            columns = pa.schema([field for field in arrow_schema(kind) if field.name in there])
            for batch in parquet.iter_batches(64, columns=columns.names, use_threads=False):
                total += batch.nbytes
                number += batch.num_rows
                if total > DECODED_BYTES:
                    raise large
                if number > most:
                    raise Refused("size", f"{path.name} has more than the {most:,} rows that are asked")
                yield from batch.select(columns.names).cast(columns).to_pylist()
    except MemoryError:  # pyarrow's is one too
        raise large from None
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, RecursionError) as error:
        why = shown(str(error).strip().partition("\n")[0], 200)
        raise Refused("format", f"{path.name} is damaged ({why}): {MAKE}") from None
    if not number:
        raise Refused("format", f"{path.name} has no rows: {MAKE}")


# --- the checks -----------------------------------------------------------------------------------------

LISTED = 10
"""Ids of each kind that a refusal names."""


def check(path: Path, record: RunRecord, data: Dataset) -> tuple[Prediction, ...]:
    """The answers in a file of that record, under the dataset's own identity fields, in the dataset's order.
    Raises Refused by the first check that fails."""
    settings = record.settings
    found = asked(path, record, data, Prediction)
    hashes = data.hashes
    other = [one.id for one in found if one.sample_hash != hashes[one.id]]
    refuse("dataset", "these are not the dataset's", {"other words": other}, "evaluate on that version")
    whose = {(one.model, one.mode) for one in found}
    if whose != {(settings.model, settings.mode)}:
        raise Refused(
            "record",
            f"the answers are of {', '.join(sorted(shown(model) for model, _ in whose)[:3])}, run.json is of "
            f"{shown(settings.model)} in mode {settings.mode}: add the one that lies beside the file",
        )
    taken = tuple(_identified(one, data.by_id[one.id]) for one in found)
    mistakes: dict[str, list[str]] = {}
    for one in taken:
        for mistake in _mistakes(one, data.by_id[one.id], stated=settings.backend == "import"):
            mistakes.setdefault(mistake, []).append(one.id)
    refuse(
        "protocol", "the transition rows were not run in two passes", mistakes, "run them with `rbtc eval`"
    )
    return taken


def asked(path: Path, record: RunRecord, data: Dataset | LiveData, kind: type[Row]) -> list[Row]:
    """The answers or episodes in a file, in the dataset's order. Raises Refused unless the record is of all
    of this dataset, and each row is there once for each repeat, and answered."""
    settings = record.settings
    if settings.fingerprint != data.fingerprint():
        theirs = dataset_label(record.dataset_version, settings.fingerprint)
        raise Refused(
            "dataset",
            f"the run is of the dataset {shown(theirs)}, and {title(data)} is "
            f"{dataset_label(data.version, data.fingerprint())}: evaluate on that one",
        )
    if not 1 <= settings.repeat <= REPEATS:
        raise Refused("ids", f"every row was asked more than {REPEATS} times, or less than once")
    wanted = dict.fromkeys((row, repeat) for row in data.by_id for repeat in range(settings.repeat))
    found = read_rows(path, kind, len(wanted))
    counted = Counter((one.id, one.repeat) for one in found)
    problems = {
        "missing": [row for row, repeat in wanted if (row, repeat) not in counted],
        "unknown": [row for row, repeat in counted if (row, repeat) not in wanted],
        "duplicate": [row for (row, _), times in counted.items() if times > 1],
        "without an answer": [
            one.id
            for one in found
            if (one.status if isinstance(one, Prediction) else one.ended) == "request_error"
        ],
    }
    refuse(
        "ids",
        "these are not the dataset's",
        problems,
        "run the same `rbtc` command again for the missing rows",
    )
    if settings.selection != Selection() or record.expected != len(wanted):
        raise Refused(
            "record",
            f"the run is of {record.expected:,} answers or of selected rows, the dataset asks "
            f"{len(wanted):,}: run all of it, without --samples, --limit, --types, --sources and --ids",
        )
    _known_defences(settings.defend)
    at = {(one.id, one.repeat): one for one in found}
    return [at[key] for key in wanted]


def _known_defences(named: Sequence[str]) -> None:
    """Raises Refused for defences that are none, and such as are not written as `--defend` does."""
    others = [word for word in named if word != "schema"]  # made with jsonschema: not needed here
    try:
        known = defend.names(defend.parse(others))
    except UserError as error:
        raise Refused("record", f"the run's defences cannot be read ({shown(str(error), 160)})") from None
    if known != tuple(others) or len(named) > len(others) + 1:
        raise Refused("record", f"the run's defences are not written as `--defend` does: {', '.join(known)}")


def refuse(step: str, what: str, problems: Mapping[str, Sequence[str]], then: str) -> None:
    """Raises Refused where one of the problems has ids."""
    if there := {problem: ids for problem, ids in problems.items() if ids}:
        counts = ", ".join(f"{len(ids):,} {problem}" for problem, ids in there.items())
        named = [(problem, one) for problem, ids in there.items() for one in ids[:LISTED]]
        details = tuple(f"{problem}: {shown(one, 120)}" for problem, one in named)
        raise Refused(step, f"{what}: {counts}; {then}", details)


def _identified(one: Prediction, row: Sample) -> Prediction:
    """The answer under the dataset's identity fields."""
    transition = row.injected_error is not None
    return msgspec.structs.replace(
        one,
        **{name: getattr(row, name) for name in ("clean_id", "type_code", "component", "source", "category")},
        first_tool_calls=one.first_tool_calls if transition else None,
        first_output=one.first_output if transition else None,
        injected=one.injected if transition else None,
        attempts=one.attempts if predictions.counts_attempts(row) else None,
    )


def _mistakes(one: Prediction, row: Sample, *, stated: bool) -> Iterator[str]:
    """benchmark.md §6: an error is injected after a first reply with a call, and only then. `stated`: of
    imported predictions the first reply may not be there; then what they state of it counts."""
    if row.injected_error is None or one.status != "ok":
        return
    first = (one.first_output, one.first_tool_calls) if one.injected else (one.raw_output, one.tool_calls)
    called = bool(
        read_reply(*first, source=row.source, tools=row.tools, model=one.model, mode=one.mode).calls
    )
    on_trust = stated and one.first_output is None and one.first_tool_calls is None
    tries, met = one.attempts or 0, bool(one.injected)
    if one.injected is None:
        yield "do not say whether the error was injected"
    elif one.injected and not called and not on_trust:
        yield "met the error although the first reply has no call"
    elif called and not one.injected:
        yield "have a first reply with a call that was not answered with the error"
    elif predictions.counts_attempts(row) and not met <= tries <= wire.answered(row) * met:
        yield "do not say how many calls met the error"
