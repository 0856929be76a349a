"""A log of another harness as predictions with verdicts: its shape, and which keys pair its samples."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from robustbench_tc import sources, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.safe_text import safe
from robustbench_tc.schema import Prediction, Verdict, dumps

from .bench import Origin

MOST = 1_000_000
"""Answers in one log."""

KEPT = 2 * 2**30
"""Bytes of samples of our own task in one log: their replies are kept."""

WORDS = ("clean_id", "type", "score")


class Keys(msgspec.Struct, frozen=True):
    """Where a log that is not of our task has what pairs its samples."""

    clean_id: str = "clean_id"
    """Key of the metadata that is equal for one question, clean and perturbed; without it the sample's id."""
    type: str = "type"
    """Key of the metadata with `clean` or a type's code; without it every sample is clean."""
    score: str | None = None
    """Which score decides, where samples have several."""


def keys_of(given: Sequence[str]) -> Keys:
    """From words like `clean_id=question`. Raises UserError."""
    found: dict[str, str] = {}
    for word in given:
        name, equals, value = word.partition("=")
        if name not in WORDS or not equals or not value:
            raise UserError(f"--log-key {safe(word, keep='')!r}: write clean_id=KEY, type=KEY or score=NAME")
        found[name] = value
    return Keys(**found)


class Read(msgspec.Struct, kw_only=True):
    """A log that was read."""

    model: str
    origin: Origin | None = None
    """None: not of our task."""
    backend: str
    found: list[tuple[Prediction, Verdict | None]]
    expected: int
    """Answers that it was to hold."""
    repeats: int = 1
    decoding: dict[str, Any] = {}
    package: str = ""
    started: str = ""
    notes: list[str] = []
    """What a reader has to know of how it was read, one line each."""


def text(value: object, limit: int = 300) -> str:
    """A short text of a log, as it may be shown."""
    return safe(str(value)[:limit], keep="")


def digest(*parts: bytes) -> str:
    """16 hex digits over what a sample asks."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8) + part)
    return found.hexdigest()[:16]


class Room:
    """Counts what is kept of a log, up to KEPT."""

    def __init__(self, where: str) -> None:
        self._where, self._left = where, KEPT

    def take(self, data: bytes) -> None:
        """Raises UserError where it is too much."""
        self._left -= len(data)
        if self._left < 0:
            raise UserError(
                f"{self._where} holds more than {KEPT:,} bytes of samples, which is as much as is read"
            )


def own(record: Mapping[str, Any], expected_id: str, model: str, where: str) -> Prediction:
    """A prediction as our task wrote it. Raises UserError where it is none, or of another sample."""
    try:
        one = msgspec.convert(record, Prediction)
    except msgspec.ValidationError as error:
        raise UserError(f"{where}: no prediction of our task: {text(error)}") from None
    if one.id != expected_id or f"{one.clean_id}::{one.type_code}" != one.id or not 0 <= one.repeat < MOST:
        raise UserError(f"{where}: it holds the prediction of another sample")
    return msgspec.structs.replace(one, model=model)


def unanswered(
    identity: Mapping[str, Any], row_id: str, repeat: int, model: str, mode: str, why: str
) -> Prediction:
    """The prediction of a row that got no answer, from what the log says of the row."""
    code = str(identity.get("type"))
    return made(
        row_id,
        str(identity.get("clean_id")),
        code,
        repeat=repeat,
        model=model,
        mode=mode,
        source=str(identity.get("source") or ""),
        category=str(identity.get("category") or ""),
        sample_hash=str(identity.get("sample_hash") or ""),
        error=why,
    )


def made(row_id: str, clean_id: str, code: str, *, error: str | None = None, **given: Any) -> Prediction:
    """A prediction of which nothing but its row is known. Raises UserError for a type nobody knows."""
    if code != taxonomy.CLEAN and not taxonomy.known(code):
        raise UserError(
            f"type {text(code, 60)!r} is neither clean nor a type of the taxonomy (docs/types.md lists "
            "them): name the key that holds it with --log-key type=KEY"
        )
    return Prediction(
        **{"category": "", "source": sources.OWN, "mode": "prompt"} | given,
        id=row_id,
        clean_id=clean_id,
        type_code=code,
        component=taxonomy.component_of(code),
        status="ok" if error is None else "request_error",
        error=error,
    )


def plain_verdict(score: float) -> Verdict:
    """Of a score that another scorer gave: 1 is right, anything else is wrong."""
    right = score == 1
    return Verdict(
        calls=(), variant=None, score=score, correct=right, reason=None, error_mode=None if right else "other"
    )


def between(found: Sequence[tuple[Prediction, Verdict | None]]) -> list[str]:
    """The line about scores that are neither 0 nor 1."""
    count = sum(verdict is not None and verdict.score not in (0, 1) for _, verdict in found)
    return [f"{count} scores lie between right and wrong: they count as wrong"] if count else []


def number(value: object) -> float | None:
    """A score as a number: what inspect_ai's words and booleans mean; None for what is none."""
    words = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
    if isinstance(value, bool | int | float):
        return float(value) if abs(value) < 1e300 else None  # false for NaN
    if isinstance(value, str):
        return words.get(value, words.get(value.lower()))
    return None


def refuse_doubled(found: Sequence[tuple[Prediction, Verdict | None]], where: str) -> None:
    """UserError where two samples stand for one row and repeat: nothing tells them apart."""
    seen = Counter((one.clean_id, one.type_code, one.repeat) for one, _ in found)
    doubled = next((key for key, times in seen.items() if times > 1), None)
    if doubled is not None:
        raise UserError(
            f"{where}: {seen[doubled]} samples have clean_id {text(doubled[0], 60)!r}, type {doubled[1]!r} "
            f"and epoch {doubled[2] + 1}: name keys that tell them apart (--log-key)"
        )


def canonical(value: object) -> bytes:
    """A value's JSON, for a digest."""
    try:
        return dumps(value).encode()
    except (ValueError, TypeError):
        return repr(value).encode("utf-8", "surrogatepass")
