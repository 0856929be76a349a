"""The checks of an upload, in order. Each passes with a word on what was found, or refuses with one line.

Nothing of an upload is believed that can be known: identity fields come from the dataset, verdicts from the
scorers. What is taken over is the answers themselves.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from robustbench_tc import schema, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval import defend, predictions, wire
from robustbench_tc.eval.inputs import Dataset, Selection
from robustbench_tc.eval.read_reply import read_reply
from robustbench_tc.eval.record import RunRecord, Session
from robustbench_tc.schema import Prediction, Sample

from . import flags, names, reading
from .limits import Limits
from .names import shown
from .reading import Line
from .records import Step
from .refusal import APART, LIVE, STEPS, Refused

RECORD = "attach run.json, which lies beside predictions.parquet in the run folder"
LISTED = 10
"""Ids of each kind that a refusal names."""


class Asked(Dataset, frozen=True, kw_only=True, dict=True):
    """The dataset of a board."""

    @classmethod
    def of(cls, dataset: Dataset) -> "Asked":
        """Raises UserError for a dataset that no board can be made of."""
        there = {row.type_code for row in dataset.rows}
        if missing := [code for code in (taxonomy.CLEAN, *taxonomy.codes()) if code not in there]:
            raise UserError(
                f"{dataset.name} has no rows of {', '.join(missing)}: a board needs a dataset with every type"
            )
        return cls(**{name: getattr(dataset, name) for name in Dataset.__struct_fields__})

    @property
    def label(self) -> str:
        """The version as it is shown and stored."""
        return self.version or "unversioned"

    @cached_property
    def by_id(self) -> dict[str, Sample]:
        return {row.id: row for row in self.rows}

    @cached_property
    def known(self) -> flags.Known:
        """What runs on it are held against."""
        return flags.known(self)


class Accepted(msgspec.Struct, frozen=True):
    """An upload that passed: its answers under the dataset's own identity fields, in the dataset's order."""

    model: str
    record: RunRecord
    predictions: tuple[Prediction, ...]
    claims: tuple[bool | None, ...]
    """What the file said of each prediction."""


class Trail:
    """The steps so far; `passed` notes one and `steps` completes the list. `other`: checks of other kinds of
    runs."""

    def __init__(self, other: Sequence[str] = LIVE) -> None:
        self._done: list[Step] = []
        self._other = other

    def passed(self, code: str, text: str) -> None:
        self._done.append(Step(code, True, text))

    def refused(self, refusal: Refused) -> tuple[Step, ...]:
        """The steps that passed, the failed one, and the rest of STEPS as not reached (but those `APART`)."""
        known = {step.code for step in self._done}
        failed = Step(refusal.step, False, str(refusal), refusal.details)
        rest = [code for code in STEPS if code not in (*known, refusal.step, *APART, *self._other)]
        kept = [step for step in self._done if step.code != refusal.step]
        return (*kept, failed, *(Step(code, None) for code in rest))

    def steps(self) -> tuple[Step, ...]:
        return tuple(self._done)


def check(
    upload: Path,
    record: Path | None,
    asked: Asked,
    *,
    name: str | None = None,
    listed: Iterable[str] = (),
    limits: Limits,
    trail: Trail,
    complete: Callable[[Sequence[Line]], None] = lambda lines: None,
) -> Accepted:
    """An upload as the answers to score. `name` is what the user typed, else the run record's model is taken.

    `complete` gets the answers once they are known to be those of the dataset's rows, before a reply is
    parsed. Raises Refused by the first check that fails; what passed before it is on the trail.
    """
    lines = reading.read(upload, len(asked.by_id) * limits.repeats, limits)
    trail.passed("size", f"{upload.stat().st_size:,} bytes, {len(lines):,} rows")
    trail.passed("format", "every row is a prediction")
    run, problem = _record(record, limits)
    _dataset(lines, run, asked)
    trail.passed("dataset", f"version {asked.label}, fingerprint {asked.fingerprint()[:12]}")
    repeats = run.settings.repeat if run is not None else 1 + max(line.repeat for line in lines)
    ordered = _every_row_once(lines, asked, repeats, limits)
    complete(ordered)
    trail.passed(
        "ids", f"{len(asked.by_id):,} rows" + (f", each asked {repeats} times" if repeats > 1 else "")
    )
    if run is None:
        raise problem
    _record_fits(run, lines, asked)
    behind = f", behind {', '.join(run.settings.defend)}: it has no place" if run.settings.defend else ""
    trail.passed("record", f"{run.settings.model}, mode {run.settings.mode}{behind}")
    model = names.check_model(name or run.settings.model)
    names.refuse_lookalike(model, {*listed, *names.reserved()})
    trail.passed("name", model)
    taken = tuple(_prediction(line, asked.by_id[line.id], asked, model, run) for line in ordered)
    _protocol(taken, asked)
    trail.passed("protocol", _injected(taken))
    return Accepted(model, _public(run, asked, taken, model), taken, tuple(line.correct for line in ordered))


def _record(path: Path | None, limits: Limits) -> tuple[RunRecord | None, Refused]:
    """The run record, or why there is none: that is said at its place in the order."""
    if path is None:
        return None, Refused("record", f"there is no run record: {RECORD}")
    size = path.stat().st_size
    if size > limits.record_bytes:
        return None, Refused(
            "record", f"the run record has {size:,} bytes, at most {limits.record_bytes:,}: {RECORD}"
        )
    try:
        run = msgspec.json.decode(path.read_bytes(), type=RunRecord)
        if len(schema.dumps(run.settings)) > 20_000:
            raise ValueError("its settings are longer than any run's")
        return run, Refused("record", "")
    except (ValueError, RecursionError, OverflowError) as error:
        return None, Refused("record", f"the run record cannot be read ({shown(str(error), 120)}): {RECORD}")


def _dataset(lines: Sequence[Line], run: RunRecord | None, asked: Asked) -> None:
    if run is not None and run.settings.fingerprint != asked.fingerprint():
        raise Refused(
            "dataset",
            f"the run is of dataset version {shown(run.dataset_version or 'unversioned')}, fingerprint "
            f"{shown(run.settings.fingerprint, 12)}; this board is of version {asked.label}, fingerprint "
            f"{asked.fingerprint()[:12]}: evaluate on that version",
        )
    ours = [line for line in lines if line.id in asked.by_id]
    if not ours:
        raise Refused("dataset", f"no row is of dataset version {asked.label}: evaluate on that version")
    other = [line.id for line in ours if line.sample_hash != asked.hashes()[line.id]]
    if other:
        raise Refused(
            "dataset",
            f"{len(other):,} of {len(lines):,} rows were asked in other words than dataset version "
            f"{asked.label} has: evaluate on that version",
            _ids("other words", other),
        )


def _every_row_once(lines: Sequence[Line], asked: Asked, repeats: int, limits: Limits) -> list[Line]:
    if not 1 <= repeats <= limits.repeats:
        raise Refused(
            "ids", f"every row was asked {shown(str(repeats))} times: 1 to {limits.repeats} are taken"
        )
    unknown = [line.id for line in lines if line.id not in asked.by_id]
    found = {(line.id, line.repeat): line for line in lines}
    counted = Counter((line.id, line.repeat) for line in lines)
    double = [key[0] for key, times in counted.items() if times > 1]
    wanted = [(row, repeat) for row in asked.by_id for repeat in range(repeats)]
    missing = [key[0] for key in wanted if key not in found]
    surplus = [line.id for line in lines if line.id in asked.by_id and line.repeat >= repeats]
    problems = {"missing": missing, "unknown": unknown, "duplicate": double, "surplus repeat": surplus}
    if there := {what: ids for what, ids in problems.items() if ids}:
        counts = ", ".join(f"{len(ids):,} {what}" for what, ids in there.items())
        raise Refused(
            "ids",
            f"the rows are not those of the dataset: {counts}; the same `rbtc eval` without --samples, "
            "--limit, --types, --sources and --ids asks what is missing",
            tuple(line for what, ids in there.items() for line in _ids(what, ids)),
        )
    unanswered = [line.id for line in lines if line.status == "request_error"]
    if unanswered:
        raise Refused(
            "ids",
            f"{len(unanswered):,} rows have no answer (request_error): run the same `rbtc eval` again",
            _ids("no answer", unanswered),
        )
    return [found[key] for key in wanted]


def _ids(what: str, ids: Sequence[str]) -> tuple[str, ...]:
    more = (f"{what}: … and {len(ids) - LISTED:,} more",) if len(ids) > LISTED else ()
    return tuple(f"{what}: {shown(one, 120)}" for one in ids[:LISTED]) + more


def _record_fits(run: RunRecord, lines: Sequence[Line], asked: Asked) -> None:
    settings = run.settings
    if (run.dataset_version or "unversioned") != asked.label:
        raise Refused(
            "record",
            f"the run record names dataset version {shown(run.dataset_version or 'unversioned')}, this board "
            f"is of {asked.label}",
        )
    check_chain(settings.defend)
    if settings.selection != Selection() or run.expected != len(lines):
        raise Refused(
            "record",
            f"the run record is of {run.expected:,} predictions or of selected rows, the file has "
            f"{len(lines):,}: {RECORD}",
        )
    for line in lines:
        if (line.model, line.mode) != (settings.model, settings.mode):
            raise Refused(
                "record",
                f"the file has answers of {shown(line.model)} in mode {line.mode}, the run record is of "
                f"{shown(settings.model)} in mode {settings.mode}: {RECORD}",
            )


def check_chain(words: Sequence[str], attach: str = RECORD) -> None:
    """Raises Refused for defences that are none, or not as `--defend` writes them. `attach`: what to do."""
    others = [word for word in words if word != "schema"]  # which is made with jsonschema: not needed here
    try:
        known = defend.names(defend.parse(others[: defend.MOST]))
    except UserError as error:
        raise Refused("record", f"the run's defences cannot be read ({shown(str(error), 160)})") from None
    if known != tuple(others) or len(words) > len(others) + 1:
        raise Refused(
            "record",
            f"the run's defences are written {shown(', '.join(words), 80)}, "
            f"`--defend` writes {', '.join(known)}: {attach}",
        )


def _prediction(line: Line, row: Sample, asked: Asked, model: str, run: RunRecord) -> Prediction:
    """The answer under the dataset's identity fields; logprobs are left behind."""
    made = {name: getattr(line, name) for name in Prediction.__struct_fields__}
    transition = row.injected_error is not None
    made |= {
        name: getattr(row, name) for name in ("clean_id", "type_code", "component", "source", "category")
    }
    made |= {
        "model": model,
        "mode": run.settings.mode,
        "sample_hash": asked.hashes()[row.id],
        "tool_calls": msgspec.to_builtins(line.tool_calls),
        "first_tool_calls": msgspec.to_builtins(line.first_tool_calls) if transition else None,
        "first_output": line.first_output if transition else None,
        "injected": line.injected if transition else None,
        "attempts": line.attempts if predictions.counts_attempts(row) else None,
        "logprobs": None,
    }
    return Prediction(**made)


def _protocol(taken: Sequence[Prediction], asked: Asked) -> None:
    """benchmark.md §6: an error is injected after a first reply with a call, and only then."""
    problems: dict[str, list[str]] = {}

    def has_call(text: str | None, calls: schema.Json, row: Sample, one: Prediction) -> bool:
        return bool(read_reply(row, text, calls, model=one.model, mode=one.mode).calls)

    for one in taken:
        row = asked.by_id[one.id]
        if row.injected_error is None or one.status != "ok":
            continue
        tries, met = one.attempts or 0, bool(one.injected)
        if one.injected is None:
            problems.setdefault("does not say whether the error was injected", []).append(one.id)
        elif one.injected and not has_call(one.first_output, one.first_tool_calls, row, one):
            problems.setdefault("error injected although the first reply has no call", []).append(one.id)
        elif not one.injected and has_call(one.raw_output, one.tool_calls, row, one):
            problems.setdefault("first reply has a call and was not answered with the error", []).append(
                one.id
            )
        elif predictions.counts_attempts(row) and not met <= tries <= wire.answered(row) * met:
            problems.setdefault("does not say how many calls met the error", []).append(one.id)
    if problems:
        counts = "; ".join(f"{len(ids):,} rows: {what}" for what, ids in problems.items())
        raise Refused(
            "protocol",
            f"the transition rows were not run in two passes: {counts}; run them with `rbtc eval`",
            tuple(line for what, ids in problems.items() for line in _ids(what, ids)),
        )


def _injected(taken: Sequence[Prediction]) -> str:
    said = [one.injected for one in taken if one.injected is not None]
    return f"{sum(said):,} of {len(said):,} transition rows met the error"


def _requests(run: RunRecord) -> list[Session]:
    """How many requests all sessions made, and nothing else of them; none where that is not said."""
    made, again = (sum(getattr(one, name) for one in run.sessions) for name in ("requests", "retries"))
    if not 0 <= again <= made <= 10**12:
        return []
    counted = Session(
        started="", endpoint="", package_version="", concurrency=0, requests=made, retries=again
    )
    return [counted] if made else []


def _public(run: RunRecord, asked: Asked, taken: Sequence[Prediction], model: str) -> RunRecord:
    """The run record as it is stored: without places on the submitter's machine, totals counted by us."""
    return msgspec.structs.replace(
        run,
        dataset="robustbench-tc",
        dataset_version=asked.label,
        dataset_revision=None,
        left_out={},
        settings=msgspec.structs.replace(run.settings, model=model),
        also=(),
        reused={},
        sessions=_requests(run),
        served_models=[],
        totals=predictions.totals(taken),
        flagged={},
        needs_no_reading=(),
    )
