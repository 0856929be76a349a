"""Predictions in and out: our own JSON lines, and those of the paper's public release. And, for whoever asks
elsewhere, the open requests of a run out, and their answers in.

The paper's rows hold the identity fields of its data (`paper_layout`), the golden answers, and

    "prediction": {"raw_output": "…", "tool_calls": [{"name": …, "parameters": {…}}], "error": null,
                   "transition_injected": true}

Requests and answers are JSON lines too; of each pair the first is the Batch API's form.

    {"custom_id": "5f0c…", "method": "POST", "url": "/v1/chat/completions", "body": {…}}
    {"custom_id": "5f0c…", "body": {…}}
    {"custom_id": "5f0c…", "response": {"status_code": 200, "body": a completion}}
    {"custom_id": "5f0c…", "response": a completion}

Equal requests of a run that shares them are one line, whose answer is that of all their rows. The run's
journal gets the answers: it is then what a run that asked is.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import cast, get_args

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.llm import LLMError, completion
from robustbench_tc.llm.errors import from_status
from robustbench_tc.schema import ASKED_AGAIN, Json, Prediction, Sample, Status, dumps
from robustbench_tc.shown import Line, Part

from . import growth, predictions, session, wire
from .dialogue import Dialogue, begin
from .inputs import Dataset
from .journal import Lines, replay
from .paper_layout import decoded, identity, lines_of
from .record import Answer, Mode, RunFolder, Settings, start
from .run import digest
from .score import answered_with_success, parse_prediction
from .score.golden import concrete
from .speakers import answer_of, body, failed


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
    """What was written."""

    count: int
    path: str
    notes: tuple[str, ...] = ()
    of: str = "predictions"

    def shown(self) -> Iterator[Part]:
        """Nothing on standard output, which has no use for it."""
        yield from (Line(note, aside=True) for note in self.notes)
        yield Line(f"{self.count} {self.of} in {self.path}", aside=True)


def in_paper_layout(one: Prediction, row: Sample) -> dict[str, Json]:
    """A prediction as the paper's release has it."""
    answer: dict[str, Json] = {
        "raw_output": one.raw_output or "",
        "error": None if one.status == "ok" else f"{one.status}: {one.error or ''}",
        "tool_calls": msgspec.to_builtins(parse_prediction(one, row).calls),
    }
    metadata: dict[str, Json] = {}
    if one.injected is not None:
        answer["transition_injected"] = metadata["pass1_had_tool_calls"] = one.injected
    return {
        "id": one.clean_id,
        "benchmark": one.source,
        "category": one.category,
        "perturbation": {"type": one.type_code, "mdp_category": one.component, "metadata": metadata},
        "eval_config": {},
        "golden_answers": flat_gold(row),
        "prediction": answer,
    }


def flat_gold(row: Sample) -> list[dict[str, Json]]:
    """Golden answers as the paper prints them: one value per parameter; RoTBench's alternatives in a list."""
    answers = row.golden_answers if row.source == "rotbench" else row.golden_answers[:1]
    tools = row.tools
    if row.gold_tool_index is not None:  # of tools of one name the first is looked at
        tools = (tools[row.gold_tool_index], *tools)
    return [
        msgspec.to_builtins(call) for answer in answers for call in concrete(answer, tools, source=row.source)
    ]


def read_predictions(
    path: Path, dataset: Dataset, *, model: str, mode: Mode
) -> tuple[list[Prediction], dict[str, int]]:
    """Predictions of a file or a folder of files, ours (`rbtc export`) or in the paper's layout.

    Returns them with what was left out, by reason: rows that the dataset does not have or has with another
    golden answer (so another text was asked), second answers to a row, a torn last line.
    """
    rows, hashes = dataset.by_id, dataset.hashes
    found: dict[tuple[str, int], Prediction] = {}
    left_out: Counter[str] = Counter()
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise UserError(f"no predictions at {path}: give a .jsonl file, or a folder of them")
    for file in files:
        for where, record in lines_of(file, left_out):
            if "multi_turn" in str(record.get("category")):
                left_out["multi-turn row"] += 1
                continue
            if "sample_hash" in record:
                try:
                    one = msgspec.convert(record, Prediction)
                except msgspec.ValidationError as error:
                    raise UserError(f"{where}: {error}") from None
                known = one.sample_hash == hashes.get(one.id)
            else:
                one, names = _theirs(record, file.stem, where, model, mode)
                known = one.id in rows and names in ([], [call["name"] for call in flat_gold(rows[one.id])])
                one = msgspec.structs.replace(one, sample_hash=hashes.get(one.id, ""))
            row = rows.get(one.id)
            no_first = one.injected and one.first_output is None and not one.first_tool_calls
            why_not = {
                "row that the dataset does not have": row is None,
                "row whose first reply is judged too, and is not there": (
                    row is not None and no_first and answered_with_success(row)
                ),
                "answer to another text than the dataset's": not known,
                "second answer to a row": (one.id, one.repeat) in found,
            }
            if reason := next((why for why, holds in why_not.items() if holds), None):
                left_out[reason] += 1
            else:
                found[one.id, one.repeat] = one
    if not found:
        reasons = "; ".join(f"{count} {reason}" for reason, count in left_out.items()) or "it is empty"
        raise UserError(f"no prediction in {path} belongs to {dataset.name}: {reasons}")
    order = {row.id: index for index, row in enumerate(dataset.rows)}
    return sorted(found.values(), key=lambda p: (order[p.id], p.repeat)), dict(left_out)


def import_run(
    path: Path, dataset: Dataset, *, model: str, mode: Mode, out: Path
) -> tuple[RunFolder, list[Prediction]]:
    """A run folder of `read_predictions`, not scored yet; what was left out is in its record."""
    found, left_out = read_predictions(path, dataset, model=model, mode=mode)
    settings = Settings(
        fingerprint=dataset.fingerprint(),
        model=model,
        mode=mode,
        backend="import",
        decoding={},
        prompt_version="unknown",
        repeat=1 + max(one.repeat for one in found),
    )
    folder = start(out, dataset, settings, len(found))
    folder.record.left_out = dataset.left_out | left_out
    predictions.leave(folder, found)
    return folder, found


def _theirs(
    record: dict[str, Json], stem: str, where: str, model: str, mode: Mode
) -> tuple[Prediction, list[Json]]:
    """A prediction in the paper's layout, and the tools that the golden answers beside it call; none: whether
    it answers the dataset's text is taken on trust."""
    source, clean_id, code = identity(record, stem, where)
    answer = decoded(record.get("prediction"))
    if not isinstance(answer, dict):
        raise UserError(f"{where}: no prediction in it; is this a file of data?")
    raw, said = answer.get("raw_output"), answer.get("error")
    text = raw if isinstance(raw, str) else "" if raw is None else dumps(raw)
    status: Status = "ok"
    if said:
        word = str(said).partition(":")[0]
        status = cast(Status, word) if word in get_args(Status) else "request_error"
    native = None
    # Calls without a text were native ones; beside a text they are what a parser made of it, except in fc.
    if mode == "fc" or not text.strip():
        calls = decoded(answer.get("tool_calls")) or []
        native = [_native(call, number) for number, call in enumerate(calls)]
    injected = None
    if taxonomy.component_of(code) == "transition":
        metadata = (decoded(record.get("perturbation")) or {}).get("metadata") or {}
        injected = bool(answer.get("transition_injected", metadata.get("pass1_had_tool_calls", False)))
    one = Prediction(
        id=f"{clean_id}::{code}",
        clean_id=clean_id,
        type_code=code,
        component=taxonomy.component_of(code),
        source=source,
        category=str(record.get("category") or ""),
        model=model,
        mode=mode,
        sample_hash="",
        status=status,
        raw_output=None if status == "request_error" else text,
        tool_calls=native or None,
        injected=injected,
        error=str(said) if said else None,
    )
    golden = [decoded(gold) for gold in decoded(record.get("golden_answers")) or []]
    return one, [gold.get("name") if isinstance(gold, dict) else None for gold in golden]


def _native(call: Json, number: int) -> dict[str, Json]:
    found = call if isinstance(call := decoded(call), dict) else {}
    inner: dict[str, Json] = found["function"] if isinstance(found.get("function"), dict) else found
    arguments = inner.get("parameters", inner.get("arguments", {}))
    text = arguments if isinstance(arguments, str) else dumps(arguments)
    return {"id": str(found.get("id") or f"call_{number}"), "name": str(inner.get("name")), "arguments": text}


# --- requests and answers ---------------------------------------------------------------------------------


def write_requests(path: Path, folder: RunFolder, data: Dataset, *, batch: bool) -> int:
    """Writes the open requests of a run, for the Batch API or plainly; how many there are."""
    settings = folder.record.settings
    found = {
        _custom_id(one, ask, settings): body(ask, settings, one.repeat)
        for one in _dialogues(folder, data)
        if (ask := one.ask()) is not None
    }
    sent = {"method": "POST", "url": "/v1/chat/completions"} if batch else {}
    predictions.write_lines(path, ({"custom_id": key, **sent, "body": one} for key, one in found.items()))
    return len(found)


def take_answers(path: Path, folder: RunFolder, data: Dataset) -> list[str]:
    """Puts the answers in the file `path` into a run's journal and predictions; lines for people.

    Raises UserError, and leaves the run as it is, where none is to an open request.
    """
    left_out: Counter[str] = Counter()
    replies = dict[str, list[dict[str, Json]]]()
    for _, line in lines_of(path, left_out):
        replies.setdefault(str(line.get("custom_id")), []).append(line)
    ours = set[str]()
    record, new = folder.record, dict[str, dict[str, Json]]()
    for dialogue in _dialogues(folder, data):
        while (ask := dialogue.ask()) is not None:
            ours.add(custom_id := _custom_id(dialogue, ask, record.settings))
            answers = [_answer(line, dialogue, ask) for line in replies.get(custom_id, ())]
            kept = [one for one in answers if one.status not in ASKED_AGAIN]
            if not kept:
                left_out.update(one.error or one.status for one in answers[:1])
                break
            answer = kept[0]  # a request that was sent again after a failure has several
            new[dialogue.key()] = msgspec.to_builtins(answer)
            dialogue.reply(answer)
    left_out["further answer to a request"] = sum(len(replies[one]) - 1 for one in ours & replies.keys())
    left_out["answer to no open request"] = sum(len(replies[one]) for one in replies.keys() - ours)
    notes = [f"left out: {count} × {why}" for why, count in left_out.items() if count]
    if not new:
        raise UserError("; ".join([f"no answer in {path} is to an open request of {folder.path}", *notes]))
    record.reused[path.name] = record.reused.get(path.name, 0) + len(new)
    served = (one.get("served_model") for one in new.values())
    record.served_models = sorted({*record.served_models, *filter(None, served)})
    with folder.journal() as journal:
        journal.extend(new)
        session.leave(folder, journal, data)
    if left := record.expected - record.answered:
        notes.append(f"{left} rows wait for more: rbtc export requests --second-pass {folder.path}")
    return notes


def _dialogues(folder: RunFolder, data: Dataset) -> Iterator[Dialogue]:
    """The dialogues of a run, each as far as its journal goes."""
    settings, journal = folder.record.settings, Lines(folder.journal_path)
    for repeat in range(settings.repeat):
        for row in session.sample_by_sample(growth.rows(data, folder.record.selections)):
            dialogue = begin(row, settings, repeat, data.results.get(row.clean_id, {}))
            replay(journal, dialogue)
            yield dialogue


def _custom_id(dialogue: Dialogue, ask: wire.Ask, settings: Settings) -> str:
    """Of a dialogue's next request: equal ones share it where the run shares their answers."""
    return digest(dialogue, ask) if settings.shares else dialogue.key()


def _answer(line: dict[str, Json], dialogue: Dialogue, ask: wire.Ask) -> Answer:
    """A line of a file of answers, as the journal has it; when it came is not known."""
    found, base = line.get("response") or line, dialogue.base()
    status = found.get("status_code") if isinstance(found, dict) else None
    try:
        if isinstance(status, int) and status >= 400:
            raise from_status(status, found.get("body"), {}, with_tools=ask.tools is not None, now=0)
        done = completion(found if status is None else found.get("body"))
    except LLMError as error:
        return failed(error, base, ask)
    answer = dialogue.noted(answer_of(done, base, dialogue.env.tools))
    return msgspec.structs.replace(answer, latency_s=None, reused=True)
