"""Sample logs of lm-eval, by their `results_….json`, read without it.

`lm-eval run --output_path DIR --log_samples` leaves `results_DATE.json` and beside it a file of samples for
every task, `samples_TASK_DATE.jsonl`. Several filters of one task are several scores of one answer.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.errors import UserError

from .foreign import MOST, Keys, Log, LogSample, Ours, decoded, text

RESULTS = 64 * 2**20
"""Bytes of a results file."""

LINE = 16 * 2**20
"""Bytes of a sample."""

DATED = re.compile(r"_(\d{4}-\d\d-\d\dT[\d.-]{8,20})\.json")


class _Task(msgspec.Struct):
    metadata: Ours | list[Any] | None = None
    generation_kwargs: dict[str, Any] | None = None


class _Results(msgspec.Struct, rename={"samples": "n-samples"}):
    """`results_….json`."""

    configs: dict[str, _Task] = {}
    samples: dict[str, dict[str, int]] = {}
    model_name: str | None = None
    lm_eval_version: str | None = None


class _Sample(msgspec.Struct):
    """A line of `samples_….jsonl`; its metrics stand beside these fields."""

    doc_id: int
    doc: dict[str, Any]
    metrics: list[str] = []
    filter: str = "none"
    doc_hash: str = ""


@contextmanager
def open_log(path: Path, keys: Keys) -> Iterator[Log]:
    """One evaluation. Raises UserError with one line for whatever is wrong."""
    if path.stat().st_size > RESULTS:
        raise UserError(f"{path} has more than {RESULTS:,} bytes, which is as much as is read")
    results = decoded(path.read_bytes(), _Results, str(path), "lm-eval")
    dated = DATED.search(path.name)
    if not results.configs or dated is None:
        raise UserError(
            f"{path} is no results_DATE.json of lm-eval (of inspect_ai's, `inspect log convert` makes .eval)"
        )
    origins = {
        task: one.metadata.origin
        for task, one in results.configs.items()
        if isinstance(one.metadata, Ours) and one.metadata.origin is not None
    }
    if len({origin.fingerprint for origin in origins.values()}) > 1:
        raise UserError(f"{path}: its tasks are of different datasets")
    tasks = list(origins or results.configs)
    left = len(results.configs) - len(tasks)
    decoding = results.configs[tasks[0]].generation_kwargs or {}
    yield Log(
        path=str(path),
        model=text(results.model_name or "unnamed"),
        origin=next(iter(origins.values()), None),
        backend="lm-eval",
        samples=_samples(path, dated[1], tasks, keys),
        expected=sum(min(results.samples.get(task, {}).get("effective", 0), MOST) for task in tasks),
        decoding={
            name: decoding[name]
            for name in ("temperature", "max_gen_toks")
            if isinstance(decoding.get(name), int | float)
        },
        package=text(f"lm_eval {results.lm_eval_version or ''}", 60),
        notes=(f"{left} other tasks of this evaluation are not read",) if left else (),
    )


def _samples(path: Path, date: str, tasks: list[str], keys: Keys) -> Iterator[LogSample]:
    """Of all tasks; with `score=METRIC,FILTER` those of that filter."""
    wanted = (keys.score or "").partition(",")[2]
    for task in tasks:
        if not re.fullmatch(r"[\w.:-]{1,200}", task):
            raise UserError(f"{path}: the name of a task is {text(task, 60)!r}")
        file = path.with_name(f"samples_{task}_{date}.jsonl")
        if not file.is_file():
            raise UserError(f"{path}: no {file.name} beside it: run lm-eval with --log_samples")
        for where, data in _lines(file):
            one = decoded(data, _Sample, where, "lm-eval")
            whole = decoded(data, dict[str, Any], where, "lm-eval")
            if wanted in ("", one.filter):
                own = "prediction" in one.doc  # then it has the row's id
                number = f"{task}:{one.doc_id}" if len(tasks) > 1 else one.doc_id
                yield LogSample(
                    where=where,
                    id=str(one.doc.get("id") if own else number),
                    metadata=one.doc,
                    scores={f"{name},{wanted}" if wanted else name: whole.get(name) for name in one.metrics},
                    question_hash=text(one.doc_hash, 64),
                    verdict=one.doc.get("verdict"),
                    size=len(data),
                )


def _lines(file: Path) -> Iterator[tuple[str, bytes]]:
    """The lines that hold something, each with its place."""
    with file.open("rb") as lines:
        for number, data in enumerate(iter(partial(lines.readline, LINE + 1), b""), 1):
            if len(data) > LINE:
                raise UserError(f"{file}, line {number} has more than {LINE:,} bytes")
            if data.strip():
                yield f"{file}, line {number}", data
