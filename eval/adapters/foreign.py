"""Logs of other harnesses in one form, and what their samples become: predictions with verdicts.

A harness's own module (`inspect_log`, `lm_eval_log`) says where in its files a `Log` and its samples stand;
what holds for every log is here. Nothing of a log is evaluated, and its sizes are bounded.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from robustbench_tc import sources, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval.data import Selection
from robustbench_tc.eval.record import Mode
from robustbench_tc.safe_text import safe
from robustbench_tc.schema import Prediction, Verdict

KEY = "robustbench_tc"
"""Under which a log holds what is ours, of a task and of a sample."""

MOST = 1_000_000
"""Samples in one log."""

KEPT = 2 * 2**30
"""Bytes of samples of our own task in one log: their replies are kept."""

LENIENT = 16 * 2**20
"""Bytes that are decoded with Python's own decoder too, which takes `NaN` and more memory."""

Scored: TypeAlias = tuple[Prediction, Verdict | None]

T = TypeVar("T")

Name = Annotated[str, msgspec.Meta(min_length=1)]


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a log that is not of our task has what pairs its samples."""

    clean_id: Name = "clean_id"
    """Key of the metadata that is equal for one question, clean and perturbed; without it the sample's id."""
    type: Name = "type"
    """Key of the metadata with `clean` or a type's code; without it every sample is clean."""
    score: Name | None = None
    """Which score decides, where samples have several."""


def keys_of(given: Sequence[str]) -> Keys:
    """From words like `clean_id=question`. Raises UserError."""
    try:
        return msgspec.convert(dict(word.split("=", 1) for word in given), Keys)
    except ValueError:  # of a word without `=` too
        said = safe(" ".join(given), keep="")
        raise UserError(f"--log-key {said!r}: write clean_id=KEY, type=KEY or score=NAME") from None


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What a log has to say of its dataset, so that runs of different rows are never compared."""

    dataset: str
    dataset_version: str | None = None
    dataset_revision: str | None = None
    fingerprint: str
    mode: Mode = "fc"
    prompt_version: str
    selection: Selection = Selection()


class Ours(msgspec.Struct):
    """What our task wrote into the metadata of a log."""

    origin: Origin | None = msgspec.field(default=None, name=KEY)


class LogSample(msgspec.Struct, frozen=True, kw_only=True):
    """One answer in a log, in words that harnesses share."""

    where: str
    """For messages: the file, and the sample in it."""
    id: str
    repeat: int = 0
    metadata: Mapping[str, Any]
    scores: Mapping[str, Any]
    failure: str | None = None
    """Why it has no answer or no score."""
    question_hash: str
    """Of a sample that is not of our task: equal for equal questions."""
    verdict: Any = None
    """Of a sample of our task."""
    size: int
    """Bytes in the file."""


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """A log, as far as it says something."""

    path: str
    model: str
    origin: Origin | None
    """None: not of our task."""
    backend: str
    samples: Iterable[LogSample]
    """Read from the file one after the other."""
    expected: int
    """Answers that it was to hold, as it says itself."""
    repeats: int = 1
    decoding: dict[str, Any]
    package: str
    started: str = ""
    notes: tuple[str, ...] = ()
    """What a reader has to know of how it was read, one line each."""

    def scored(self, keys: Keys) -> list[Scored]:
        """Every sample. Raises UserError with one line for whatever is wrong."""
        found: list[Scored] = []
        kept = 0
        for sample in self.samples:
            if self.origin is None:
                found.append(_foreign(sample, self.model, keys))
            else:
                kept += sample.size
                found.append(_own(sample, self.model, self.origin))
            if len(found) > MOST or kept > KEPT:
                raise UserError(
                    f"{self.path} holds more than {MOST:,} samples or {KEPT:,} bytes of them, which is as "
                    "much as is read"
                )
        seen = Counter((one.clean_id, one.type_code, one.repeat) for one, _ in found)
        for (clean_id, code, repeat), times in seen.items():
            if times > 1:
                raise UserError(
                    f"{self.path}: {times} samples have clean_id {text(clean_id, 60)!r}, type {code!r} and "
                    f"epoch {repeat + 1}: name keys that tell them apart (--log-key)"
                )
        return found


def text(value: object, limit: int = 300) -> str:
    """A short text of a log, as it may be shown."""
    return safe(str(value)[:limit], keep="")


def decoded(data: bytes, kind: type[T], where: str, writer: str) -> T:
    """What `writer` wrote. Raises UserError that names `where`.

    Harnesses write NaN as it is, which is no JSON: a decoder that takes it is asked where ours refuses.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise UserError(f"{where} is not as {writer} writes it: {text(error)}") from None
    except (ValueError, RecursionError) as error:
        if len(data) > LENIENT:
            raise UserError(f"{where} cannot be read: {text(error)}") from None
    try:
        return msgspec.convert(json.loads(data), kind)
    except (ValueError, RecursionError, OverflowError) as error:
        raise UserError(f"{where} cannot be read: {text(error)}") from None


def _own(sample: LogSample, model: str, origin: Origin) -> Scored:
    """A sample of our task. Its score counts beside the verdict: a harness lets people change a score."""
    value = _number(next(iter(sample.scores.values()), None))
    about = sample.metadata
    if sample.failure is not None or value is None:
        columns = {name: str(about.get(name) or "") for name in ("source", "category", "sample_hash")}
        clean_id, code = str(about.get("clean_id")), str(about.get("type"))
        failure = sample.failure or "no score"
        return _unread(
            sample, clean_id, code, model, failure, id=sample.id, mode=origin.mode, **columns
        ), None
    try:
        found = msgspec.convert(about.get("prediction"), Prediction)
        verdict = msgspec.convert(sample.verdict, Verdict)
    except msgspec.ValidationError as error:
        raise UserError(f"{sample.where}: no prediction and verdict of our task: {text(error)}") from None
    if found.id != sample.id or f"{found.clean_id}::{found.type_code}" != found.id:
        raise UserError(f"{sample.where}: it holds the prediction of another sample")
    if found.repeat != sample.repeat:
        raise UserError(f"{sample.where}: it holds the prediction of epoch {found.repeat + 1}")
    found = msgspec.structs.replace(found, model=model)
    return found, verdict if verdict.correct == (value == 1) else _verdict(value)


def _foreign(sample: LogSample, model: str, keys: Keys) -> Scored:
    """A sample of another task, paired by its metadata or its id."""
    clean_id = text(sample.metadata.get(keys.clean_id, sample.id))
    code = text(sample.metadata.get(keys.type, taxonomy.CLEAN))
    scores = sample.scores
    wanted = keys.score or next(iter(scores), "")
    if scores and (wanted not in scores or (len(scores) > 1 and keys.score is None)):
        listed = ", ".join(text(name, 40) for name in list(scores)[:10])
        raise UserError(
            f"{sample.where} has {len(scores)} scores ({listed}): choose one with --log-key score=NAME"
        )
    said = scores.get(wanted)
    failure = sample.failure
    if failure is None and (said is None or said != said):  # NaN is inspect_ai's word for "not scored"
        failure = "no score"
    value = _number(said)
    if failure is None and value is None:
        raise UserError(f"{sample.where}: its score is neither C nor I nor a number")
    id_, asked = f"{clean_id}::{code}", sample.question_hash
    prediction = _unread(sample, clean_id, code, model, failure, id=id_, sample_hash=asked)
    return prediction, None if failure is not None or value is None else _verdict(value)


def _unread(
    sample: LogSample, clean_id: str, code: str, model: str, failure: str | None, **given: Any
) -> Prediction:
    """A prediction of whose reply nothing is known."""
    if code != taxonomy.CLEAN and not taxonomy.known(code):
        raise UserError(
            f"{sample.where}: type {text(code, 60)!r} is neither clean nor a type of the taxonomy "
            "(docs/types.md lists them): name the key that holds it with --log-key type=KEY"
        )
    return Prediction(
        **{"category": "", "source": sources.OWN, "mode": "prompt"} | given,
        clean_id=clean_id,
        type_code=code,
        component=taxonomy.component_of(code),
        model=model,
        repeat=sample.repeat,
        status="ok" if failure is None else "request_error",
        error=failure,
    )


def _verdict(score: float) -> Verdict:
    """Of a score that another scorer gave: 1 is right, anything else is wrong."""
    right = score == 1
    return Verdict(
        calls=(), variant=None, score=score, correct=right, reason=None, error_mode=None if right else "other"
    )


def _number(value: object) -> float | None:
    """A score as a number: what inspect_ai's words and booleans mean; None for what is none."""
    words = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
    if isinstance(value, bool | int | float):
        return float(value) if abs(value) < 1e300 else None  # false for NaN
    if isinstance(value, str):
        return words.get(value, words.get(value.lower()))
    return None
