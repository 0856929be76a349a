"""Logs of inspect_ai (`.eval`), read without it."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.errors import UserError

from .foreign import MOST, Keys, Log, LogSample, Ours, decoded, text
from .zipped import Zip


class _Score(msgspec.Struct):
    value: Any = None
    metadata: dict[str, Any] | None = None


class _Sample(msgspec.Struct):
    """A member of `samples/`, without its events."""

    id: str | int
    epoch: int = 1
    input: str | list[dict[str, Any]] = ""
    target: str | list[str] = ""
    metadata: dict[str, Any] = {}
    scores: dict[str, _Score] | None = None
    error: Any = None
    invalidation: Any = None


class _Dataset(msgspec.Struct):
    samples: int | None = None
    sample_ids: list[str | int] | None = None


class _Config(msgspec.Struct):
    epochs: int | None = None


class _Spec(msgspec.Struct):
    model: str = ""
    created: str = ""
    dataset: _Dataset = msgspec.field(default_factory=_Dataset)
    config: _Config = msgspec.field(default_factory=_Config)
    metadata: Ours | None = None
    packages: dict[str, str] = {}
    model_generate_config: dict[str, Any] = {}


class _Plan(msgspec.Struct):
    config: dict[str, Any] = {}


class _Header(msgspec.Struct):
    """`header.json`, or `_journal/start.json` of a log that is not finished."""

    eval: _Spec
    plan: _Plan = msgspec.field(default_factory=_Plan)


@contextmanager
def read(path: Path, keys: Keys) -> Iterator[Log]:
    """A log. Raises UserError with one line for whatever is wrong."""
    with Zip(path) as log:
        yield _log(log, path)


def _log(log: Zip, path: Path) -> Log:
    names = ("header.json", "_journal/start.json")
    data = next((data for name in names if (data := log.member(name)) is not None), None)
    if data is None:
        raise UserError(f"{path} is no log of inspect_ai: it has no header.json")
    header = decoded(data, _Header, f"{path}, its header", "inspect_ai")
    spec = header.eval
    samples = len(spec.dataset.sample_ids or ()) or spec.dataset.samples or 0
    repeats = max(1, min(spec.config.epochs or 1, MOST))
    decoding = {**header.plan.config, **spec.model_generate_config}
    return Log(
        path=str(path),
        model=text(spec.model) or "unnamed",
        origin=None if spec.metadata is None else spec.metadata.origin,
        backend="inspect_ai",
        samples=_samples(log, path),
        expected=min(samples, MOST) * repeats,
        repeats=repeats,
        decoding={
            name: decoding[name]
            for name in ("temperature", "max_tokens", "top_p", "seed")
            if decoding.get(name) is not None
        },
        package=text(", ".join(f"{name} {version}" for name, version in spec.packages.items())),
        started=text(spec.created, 40),
    )


def _samples(log: Zip, path: Path) -> Iterator[LogSample]:
    for name in (name for name in log.NameToInfo if name.startswith("samples/")):
        data = log.member(name) or b""
        one = decoded(data, _Sample, f"{path}, {text(name, 100)!r}", "inspect_ai")
        where = f"{path}, sample {text(one.id, 80)!r}"
        if not 0 < one.epoch <= MOST:
            raise UserError(f"{where}: epoch {one.epoch}")
        scores = one.scores or {}
        first = next(iter(scores.values()), _Score())
        yield LogSample(
            where=where,
            id=str(one.id),
            repeat=one.epoch - 1,
            metadata=one.metadata,
            scores={name: score.value for name, score in scores.items()},
            failure=_failure(one),
            question_hash=_question_hash(one),
            verdict=(first.metadata or {}).get("verdict"),
            size=len(data),
        )


def _failure(one: _Sample) -> str | None:
    if one.invalidation is not None:
        return "invalidated"
    if one.error is None:
        return None
    said = one.error.get("message") if isinstance(one.error, dict) else one.error
    return f"inspect_ai: {text(said)}"


def _question_hash(one: _Sample) -> str:
    """Ids of messages are drawn anew for every run, so they are left out."""
    said: Any = one.input
    if not isinstance(said, str):
        said = [[part.get("role"), part.get("content")] for part in said]
    return hashlib.sha256(json.dumps([said, one.target]).encode()).hexdigest()[:16]
