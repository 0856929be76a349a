"""Logs of inspect_ai (`.eval`), read without it. Nothing of a log is evaluated; its sizes are bounded."""

from pathlib import Path

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
    canonical,
    digest,
    made,
    number,
    own,
    plain_verdict,
    refuse_doubled,
    text,
    unanswered as without_answer,
)
from .inspect_form import Header, LogSample, Score
from .zipped import Zip

LENIENT = 16 * 2**20
"""Bytes of a member that are decoded with Python's own decoder too, which takes `NaN` and more memory."""


def read(path: Path, keys: Keys) -> Read:
    """Every sample of a log with its verdict. Raises UserError with one line for whatever is wrong."""
    with Zip(path) as log:
        header = _header(log, path)
        found = []
        origin, room = _origin(header, path), Room(str(path))
        model = text(header.eval.model) or "unnamed"
        for place, name in enumerate(log.names("samples/")):
            if place >= MOST:
                raise UserError(f"{path} holds more than {MOST:,} samples, which is as much as is read")
            data = log.read(name) or b""
            one = decoded(data, LogSample, f"{path}, {text(name, 100)!r}", writer="inspect_ai", most=LENIENT)
            if origin:
                room.take(data)
            where = f"{path}, sample {text(one.id, 80)!r}"
            if not 0 < one.epoch <= MOST:
                raise UserError(f"{where}: epoch {one.epoch}")
            found.append(_ours(one, where, model, origin) if origin else _theirs(one, where, model, keys))
    if not found:
        raise UserError(
            f"{path} holds no samples (status {text(header.status, 30)}): was it run with --no-log-samples?"
        )
    refuse_doubled(found, str(path))
    spec = header.eval
    asked = spec.dataset.sample_ids
    samples = len(asked) if asked is not None else spec.dataset.samples or 0
    repeats = max(1, min(spec.config.epochs or 1, MOST))
    decoding = {**header.plan.config, **spec.model_generate_config}
    return Read(
        model=model,
        origin=origin,
        backend="inspect_ai",
        found=found,
        expected=max(len(found), min(samples, MOST) * repeats),
        repeats=repeats,
        decoding={
            n: decoding[n]
            for n in ("temperature", "max_tokens", "top_p", "seed")
            if decoding.get(n) is not None
        },
        package=text(", ".join(f"{name} {version}" for name, version in spec.packages.items())),
        started=text(spec.created, 40),
        notes=[] if origin else between(found),
    )


def _header(log: Zip, path: Path) -> Header:
    for name in ("header.json", "_journal/start.json"):
        if (data := log.read(name)) is not None:
            return decoded(data, Header, f"{path}, {name}", writer="inspect_ai", most=LENIENT)
    raise UserError(f"{path} is no log of inspect_ai: it has no header.json")


def _origin(header: Header, path: Path) -> Origin | None:
    said = (header.eval.metadata or {}).get(KEY)
    if said is None:
        return None
    try:
        return msgspec.convert(said, Origin)
    except msgspec.ValidationError as error:
        raise UserError(f"{path}: what it says of its dataset cannot be read: {text(error)}") from None


def _ours(one: LogSample, where: str, model: str, origin: Origin) -> tuple[Prediction, Verdict | None]:
    """A sample of our task. What stands in `value` counts: inspect_ai lets people change a score."""
    score = next(iter((one.scores or {}).values()), None)
    value = None if score is None else number(score.value)
    if one.error is not None or one.invalidation is not None or score is None or value is None:
        why = "invalidated" if one.invalidation is not None else f"inspect_ai: {_error(one)}"
        missing = without_answer(one.metadata, str(one.id), one.epoch - 1, model, origin.mode, why)
        return missing, None
    prediction = own(one.metadata.get("prediction") or {}, str(one.id), model, where)
    try:
        verdict = msgspec.convert((score.metadata or {}).get("verdict"), Verdict)
    except msgspec.ValidationError as error:
        raise UserError(f"{where}: no verdict of our scorer: {text(error)}") from None
    if prediction.repeat != one.epoch - 1:
        raise UserError(f"{where}: epoch {one.epoch} holds the prediction of epoch {prediction.repeat + 1}")
    return prediction, verdict if verdict.correct == (value == 1) else plain_verdict(value)


def _theirs(one: LogSample, where: str, model: str, keys: Keys) -> tuple[Prediction, Verdict | None]:
    """A sample of another task, paired by its metadata or its id."""
    clean_id = text(one.metadata.get(keys.clean_id, one.id))
    code = text(one.metadata.get(keys.type, taxonomy.CLEAN))
    score = _chosen(one.scores or {}, keys, where)
    failed = one.error is not None or one.invalidation is not None or score is None
    failed = (
        failed or score is None or score.value != score.value
    )  # NaN is inspect_ai's word for "not scored"
    value = None if failed or score is None else number(score.value)
    if not failed and value is None:
        raise UserError(f"{where}: its score is neither C nor I nor a number")
    try:
        prediction = made(
            f"{clean_id}::{code}",
            clean_id,
            code,
            repeat=one.epoch - 1,
            model=model,
            sample_hash=_asked(one),
            error=_error(one) if value is None else None,
        )
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    return prediction, None if value is None else plain_verdict(value)


def _asked(one: LogSample) -> str:
    """A digest of the question: ids of messages are drawn anew for every run, so they are left out."""
    said = one.input
    if not isinstance(said, str):
        said = [{name: part.get(name) for name in ("role", "content")} for part in said]
    return digest(canonical(said), canonical(one.target))


def _chosen(scores: dict[str, Score], keys: Keys, where: str) -> Score | None:
    if not scores:
        return None
    if keys.score is not None:
        return scores.get(keys.score)
    if len(scores) > 1:
        listed = ", ".join(text(name, 40) for name in list(scores)[:10])
        raise UserError(f"{where} has {len(scores)} scores ({listed}): choose one with --log-key score=NAME")
    return next(iter(scores.values()))


def _error(one: LogSample) -> str:
    said = one.error.get("message") if isinstance(one.error, dict) else one.error
    return text(said or "no score")
