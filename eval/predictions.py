"""From a journal's answers to predictions, and predictions on disk."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.io import parquet
from robustbench_tc.io.files import atomic_file
from robustbench_tc.schema import Json, Prediction, Sample, arrow_schema, arrow_table, dumps, record

from . import delivered, wire
from .defend.chain import total
from .record import Answer, RunFolder, Settings
from .scripted import parsed

if TYPE_CHECKING:
    import pyarrow as pa


def combine(
    row: Sample,
    sample_hash: str,
    settings: Settings,
    first: Answer,
    *later: Answer,
    noticed: Iterable[str] | None = None,
) -> Prediction:
    """One prediction from the replies to a row that count. The last is the scored one.

    Where an error was injected and the answer after it is missing or failed, the status says so: an earlier
    reply never stands in for it.
    """
    injected = None if row.injected_error is None else bool(first.has_call)
    answers = [first, *later]
    scored = answers[-1]
    together = answers[wire.answered(row) :] or [scored]
    native = sum(len(one.tool_calls or ()) for one in together)
    if len(together) > 1:  # calls in order, over several replies
        said = [one.text for one in together if one.text]
        calls = _native_calls(row, settings, together)
        scored = msgspec.structs.replace(scored, text="\n".join(said) or None, tool_calls=calls)
    undelivered, thought_call = _delivery(row, settings, answers)
    return Prediction(
        id=row.id,
        clean_id=row.clean_id,
        type_code=row.type_code,
        component=row.component,
        source=row.source,
        category=row.category,
        model=settings.model,
        mode=settings.mode,
        repeat=first.repeat,
        sample_hash=sample_hash,
        status=scored.status,
        raw_output=scored.text,
        tool_calls=scored.tool_calls,
        injected=injected,
        first_output=first.text if injected else None,
        first_tool_calls=first.tool_calls if injected else None,
        finish_reason=scored.finish_reason,
        error=scored.error,
        prompt_tokens=total(answers, "prompt_tokens"),
        completion_tokens=total(answers, "completion_tokens"),
        latency_s=total(answers, "latency_s"),
        retries=sum(a.retries for a in answers),
        logprobs=scored.logprobs,
        attempts=sum(bool(one.has_call) for one in answers) if counts_attempts(row) else None,
        native_calls=native if settings.mode == "fc" else None,
        undelivered=undelivered,
        reasoning_call=thought_call,
        noticed=None if noticed is None else tuple(sorted(noticed)),
    )


def _delivery(row: Sample, settings: Settings, answers: Sequence[Answer]) -> tuple[str | None, bool | None]:
    """Of the first reply whose calls a client did not get, why; and whether any reasoning holds a call.

    Only of fc mode: in prompt mode no server delivers a call.
    """
    if settings.mode != "fc":
        return None, None
    why: str | None = None
    thought_call = False
    for answer in answers:
        if answer.status != "ok":
            continue
        read = parsed(row, settings, answer)
        thought_call = thought_call or "call_in_thought" in read.flags
        why = why or delivered.undelivered(answer.tool_calls, read, row.tools, answer.finish_reason)
    return why, thought_call


def _native_calls(row: Sample, settings: Settings, answers: Sequence[Answer]) -> Json:
    """The calls of several replies as those of one, in the form of native calls."""
    found: list[dict[str, Json]] = []
    for answer in answers:
        if answer.tool_calls:
            found += answer.tool_calls
            continue
        for call in parsed(row, settings, answer).calls:
            found.append({"id": f"call_{len(found)}", "name": call.name, "arguments": dumps(call.parameters)})
    return found or None


def counts_attempts(row: Sample) -> bool:
    """Whether it matters how many of the row's calls met its error: where more than the first can."""
    return taxonomy.known(row.type_code) and "times" in taxonomy.get(row.type_code).traits


def leave(folder: RunFolder, found: Iterable[Prediction]) -> None:
    """Writes `predictions.parquet`, and the totals into the record."""
    made = list(found)
    write(folder.answers_path, made)
    folder.record.totals = totals(made)
    folder.save()


def write(path: Path, found: Iterable[Prediction]) -> None:
    """A file of predictions as `predictions.parquet`."""
    tables = (arrow_table(batch, Prediction) for batch in parquet.batches(found))
    parquet.write_file(tables, path, arrow_schema(Prediction), replace=True)


def write_lines(path: Path, found: Iterable[Json]) -> None:
    """Predictions as JSON lines, one a prediction, under exactly this name."""
    with atomic_file(path) as beside, beside.open("wb") as file:
        for one in found:
            file.write(dumps(one).encode() + b"\n")


def read_predictions(path: Path) -> list[Prediction]:
    """Predictions of a parquet file. Raises UserError when it is damaged."""
    return [one for batch in read_batches(path) for one in records(path, batch)]


def read_batches(path: Path) -> "Iterator[pa.RecordBatch]":
    """The file's row groups. Raises UserError for a file that is missing, damaged or of something else."""
    try:
        for batch in parquet.read_batches([path]):
            if missing := {"id", "sample_hash"} - set(batch.schema.names):
                raise UserError(f"{path} is damaged: it has no column {', '.join(sorted(missing))}")
            yield batch
    except UserError as error:
        raise UserError(f"{error}; the same rbtc eval makes it again from the journal") from None


def records(path: Path, batch: "pa.RecordBatch") -> list[Prediction]:
    """The predictions of a batch of the file. Raises UserError where they are none."""
    try:
        return [record(row, Prediction) for row in batch.to_pylist()]
    except ValueError as error:
        what = f"{path} is damaged: {error}; the same rbtc eval makes it again from the journal"
        raise UserError(what) from None


def totals(found: Sequence[Prediction]) -> dict[str, Json]:
    """Counts over predictions: statuses, finish reasons, tokens, retries, and seconds per sample."""
    latencies = sorted(one.latency_s for one in found if one.latency_s is not None)
    finished = Counter(one.finish_reason for one in found if one.finish_reason is not None)
    return {
        "predictions": len(found),
        "status": dict(sorted(Counter(one.status for one in found).items())),
        "finish_reason": dict(sorted(finished.items())),
        "injected": sum(bool(one.injected) for one in found),
        "prompt_tokens": sum(one.prompt_tokens or 0 for one in found),
        "completion_tokens": sum(one.completion_tokens or 0 for one in found),
        "retries": sum(one.retries for one in found),
        "latency_s": {
            name: round(latencies[min(len(latencies) - 1, int(share * len(latencies)))], 4)
            for name, share in (("p50", 0.5), ("p95", 0.95))
            if latencies
        },
    }
