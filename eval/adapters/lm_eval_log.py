"""Sample logs of lm-eval, by their `results_….json`, read without it and bounded.

`lm-eval run --output_path DIR --log_samples` leaves `results_DATE.json` and beside it a file of samples for
every task, `samples_TASK_DATE.jsonl`. Several filters of one task are several scores of one answer.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.schema import Prediction, Verdict

from .bench import KEY, Origin
from .decoding import decoded
from .foreign import (
    MOST,
    Keys,
    Read,
    Room,
    between,
    made,
    number,
    own,
    plain_verdict,
    refuse_doubled,
    text,
)
from .lm_eval_form import Results, Sample

RESULTS = 64 * 2**20
"""Bytes of a results file."""

LINE = 16 * 2**20
"""Bytes of a sample."""

DATED = re.compile(r"_(\d{4}-\d\d-\d\dT[\d.-]{8,20})\.json")


def read(path: Path, keys: Keys) -> Read:
    """All samples of one evaluation. Raises UserError with one line for whatever is wrong."""
    results = _results(path)
    dated = DATED.search(path.name)
    if dated is None:
        raise UserError(f"{path} has no date in its name: name the results_DATE.json that lm-eval wrote")
    origins = {task: origin for task in results.configs if (origin := _origin(results, task, path))}
    tasks = list(origins or results.configs)
    room = Room(str(path))
    model = text(results.model_name) if results.model_name else "unnamed"
    found: list[tuple[Prediction, Verdict | None]] = []
    for task in tasks:
        if not re.fullmatch(r"[\w.:-]{1,200}", task):
            raise UserError(f"{path}: the name of a task is {text(task, 60)!r}")
        file = path.with_name(f"samples_{task}_{dated[1]}.jsonl")
        for line, one in _lines(file, path):
            where = f"{file}, line {line}"
            if task in origins:
                room.take(one.data)
                found.append(_ours(one, where, model))
            elif (theirs := _theirs(one, task, len(tasks) > 1, where, model, keys)) is not None:
                found.append(theirs)
            if len(found) > MOST:
                raise UserError(f"{path} has more than {MOST:,} samples, which is as much as is read")
    if not found:
        raise UserError(
            f"{path}: no samples{'' if keys.score is None else f' with the score {text(keys.score)!r}'}"
        )
    refuse_doubled(found, str(path))
    said = len({origin.fingerprint for origin in origins.values()})
    if said > 1:
        raise UserError(f"{path}: its tasks are of {said} different datasets")
    asked = sum(min(results.samples.get(task, {}).get("effective", 0), MOST) for task in tasks)
    left = len(results.configs) - len(tasks)
    notes = [f"{left} other tasks of this evaluation are not read"] if left else []
    decoding = results.configs[tasks[0]].generation_kwargs or {}
    return Read(
        model=model,
        origin=next(iter(origins.values()), None),
        backend="lm-eval",
        found=found,
        expected=max(asked, len(found)),
        decoding={
            n: decoding[n]
            for n in ("temperature", "max_gen_toks")
            if isinstance(decoding.get(n), int | float)
        },
        package=text(f"lm_eval {results.lm_eval_version or ''}", 60),
        notes=[*notes, *([] if origins else between(found))],
    )


def _results(path: Path) -> Results:
    try:
        with path.open("rb") as file:
            data = file.read(RESULTS + 1)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    if len(data) > RESULTS:
        raise UserError(f"{path} has more than {RESULTS:,} bytes, which is as much as is read")
    found = decoded(data, Results, str(path), writer="lm-eval", most=LINE)
    if not found.configs:
        raise UserError(
            f"{path} is no results file of lm-eval (of inspect_ai's, `inspect log convert` makes .eval)"
        )
    return found


def _origin(results: Results, task: str, path: Path) -> Origin | None:
    metadata = results.configs[task].metadata
    if not isinstance(metadata, dict) or KEY not in metadata:
        return None
    try:
        return msgspec.convert(metadata[KEY], Origin)
    except msgspec.ValidationError as error:
        raise UserError(f"{path}: what it says of its dataset cannot be read: {text(error)}") from None


class _Line(msgspec.Struct):
    """A sample, and its line for what is named in it."""

    sample: Sample
    data: bytes

    def metric(self, name: str, where: str) -> object:
        return decoded(self.data, dict[str, Any], where, writer="lm-eval", most=LINE).get(name)


def _lines(file: Path, results: Path) -> Iterator[tuple[int, _Line]]:
    try:
        with file.open("rb") as lines:
            place = 0
            while data := lines.readline(LINE + 1):
                place += 1
                if len(data) > LINE:
                    raise UserError(f"{file}, line {place} has more than {LINE:,} bytes")
                if data.strip():
                    one = decoded(data, Sample, f"{file}, line {place}", writer="lm-eval", most=LINE)
                    yield place, _Line(one, data)
    except FileNotFoundError:
        raise UserError(f"{results}: no {file.name} beside it: run lm-eval with --log_samples") from None
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or error}") from None


def _ours(line: _Line, where: str, model: str) -> tuple[Prediction, Verdict | None]:
    doc = line.sample.doc
    prediction = own(doc.get("prediction") or {}, str(doc.get("id")), model, where)
    try:
        verdict = msgspec.convert(doc.get("verdict"), Verdict)
    except msgspec.ValidationError as error:
        raise UserError(f"{where}: no verdict of our scorer: {text(error)}") from None
    return prediction, verdict


def _theirs(
    line: _Line, task: str, several: bool, where: str, model: str, keys: Keys
) -> tuple[Prediction, Verdict | None] | None:
    """A sample of another task, by `doc`'s keys or its number; None for another filter's score."""
    one = line.sample
    wanted, _, filtered = (keys.score or "").partition(",")
    if filtered and one.filter != filtered:
        return None
    if not wanted and len(one.metrics) != 1:
        listed = ", ".join(text(name, 40) for name in one.metrics[:10])
        raise UserError(
            f"{where} has {len(one.metrics)} scores ({listed}): choose one with --log-key score=NAME"
        )
    name = wanted or one.metrics[0]
    value = number(line.metric(name, where))
    if value is None:
        raise UserError(f"{where}: {text(name, 40)!r} is no score of one sample")
    number_of = f"{task}:{one.doc_id}" if several else str(one.doc_id)
    clean_id = text(one.doc.get(keys.clean_id, number_of))
    code = text(one.doc.get(keys.type, taxonomy.CLEAN))
    try:
        found = made(f"{clean_id}::{code}", clean_id, code, model=model, sample_hash=text(one.doc_hash, 64))
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    return found, plain_verdict(value)
