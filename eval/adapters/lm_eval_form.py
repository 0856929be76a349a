"""What lm-eval writes beside its samples, as far as it is read."""

from typing import Any

import msgspec


class _Task(msgspec.Struct):
    metadata: Any = None
    generation_kwargs: dict[str, Any] | None = None


class Results(msgspec.Struct, rename={"samples": "n-samples"}):
    """`results_….json`, as far as it is read."""

    configs: dict[str, _Task] = {}
    samples: dict[str, dict[str, int]] = {}
    model_name: str | None = None
    date: float | None = None
    lm_eval_version: str | None = None


class Sample(msgspec.Struct):
    """A line of `samples_….jsonl`; its metrics stand beside these fields."""

    doc_id: int
    doc: dict[str, Any]
    metrics: list[str] = []
    filter: str = "none"
    doc_hash: str = ""
