"""What inspect_ai writes into a log, as far as it is read."""

from typing import Any

import msgspec


class Score(msgspec.Struct):
    """Of a sample."""

    value: Any = None
    metadata: dict[str, Any] | None = None


class LogSample(msgspec.Struct):
    """A member of `samples/`, without its events."""

    id: str | int
    epoch: int = 1
    input: str | list[dict[str, Any]] = ""
    target: str | list[str] = ""
    metadata: dict[str, Any] = {}
    scores: dict[str, Score] | None = None
    error: Any = None
    invalidation: Any = None


class _Dataset(msgspec.Struct):
    samples: int | None = None
    sample_ids: list[str | int] | None = None


class _Config(msgspec.Struct):
    epochs: int | None = None


class _Spec(msgspec.Struct):
    task: str = ""
    model: str = ""
    created: str = ""
    dataset: _Dataset = msgspec.field(default_factory=_Dataset)
    config: _Config = msgspec.field(default_factory=_Config)
    metadata: dict[str, Any] | None = None
    packages: dict[str, str] = {}
    model_generate_config: dict[str, Any] = {}


class _Plan(msgspec.Struct):
    config: dict[str, Any] = {}


class Header(msgspec.Struct):
    """`header.json`, or `_journal/start.json` of a log that is not finished."""

    eval: _Spec
    plan: _Plan = msgspec.field(default_factory=_Plan)
    status: str = "started"
