"""What a training build leaves behind about itself. No clock in it: same build, same report."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Literal

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.io import templates

from .report import Report

BATCH, EPOCHS = 64, 3
"""The paper's batch and epochs: what the step counts are computed with."""

PAPER_STEPS = {"full": 153, "mixed": 156}
"""Printed in the paper; they do not follow from its own row counts (183 and 186 would)."""


class TrainingReport(Report, frozen=True, kw_only=True):
    """`build_report.json` of a training build, its marker (`io.marker`)."""

    kind: Literal["toolrl-dr"] = "toolrl-dr"
    form: str
    """rl_parquet, raw_json, or sft_json (400 rows that stand in for the 4,000)."""
    sources: tuple[dict[str, Any], ...]
    """Files that the build read: bytes, sha256, whether they are the pinned ones."""
    seed: int
    copies: int
    counterbalance: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether half of the priced rows have their offers swapped; not stated where they have not."""
    ratio: str
    """Perturbed share of the train split of `mixed`."""
    alpha: str
    """Perturbed share of the train split of `paft`."""
    retry_probability: float
    """Share of the rows with a call whose call meets an error (`retry`)."""
    retry_position: int
    """Which tool turn of the rollout meets it, from 1."""
    types: tuple[str, ...]
    """Types that rows could draw."""
    not_generated: tuple[str, ...]
    """Types asked for whose texts nobody writes in this build."""
    rows: dict[str, dict[str, int]]
    """Config → train, perturbed (of train), validation, validation_perturbed (of validation)."""
    used: dict[str, int]
    """Type → versions made of it (the train split of `full`); with `counterbalance` also of types that
    nobody draws."""
    validation_used: dict[str, int]
    """Type → validation rows of `full` and `mixed` under it."""
    drawn: dict[str, int]
    """Type → rows whose first draw it was."""
    drawn_to_used: dict[str, dict[str, int]]
    """First draw → type of the first version (or `none`) → rows."""
    refused: dict[str, dict[str, int]]
    """Type → reason → draws that did not apply."""
    dropped: dict[str, dict[str, int]]
    """Split → reason → rows left out."""
    dropped_rows: tuple[tuple[str, str], ...]
    """(clean id, reason), the first 1,000."""
    left_out: dict[str, int]
    """Config → train rows that it lacks because no type fits them (`mixed`, `paft`: at the asked share)."""
    kept: dict[str, int]
    """Oddities of train rows that stay, such as that no type fits."""
    injected: dict[str, int]
    """Transition type → train rows of `retry` that meet it."""
    prompt_length: dict[str, Any]
    """Unit, limit, and quantiles of every train prompt that was made."""
    leak_check: str
    generators: dict[str, Any]

    @property
    def with_tokenizer(self) -> bool:
        """Whether prompts were measured with a tokenizer, which the build does not hold."""
        return self.prompt_length.get("limit") is not None

    def steps(self, config: str) -> int:
        """Optimiser steps of the paper's recipe: whole batches only, as verl's loader drops the last one."""
        return self.rows[config]["train"] // BATCH * EPOCHS

    @property
    def unused(self) -> tuple[str, ...]:
        """Types that rows should draw, and of which no train row was made."""
        return tuple(code for code in (*self.types, *self.not_generated) if not self.used.get(code))

    @property
    def perturbed(self) -> int:
        """Train rows under a type, over all configs."""
        return sum(counts["perturbed"] for counts in self.rows.values())

    @property
    def components(self) -> dict[str, int]:
        """Component → versions of train rows that its types made."""
        return _by_component(self.used)

    @property
    def validation_components(self) -> dict[str, int]:
        """Component → validation rows under one of its types."""
        return _by_component(self.validation_used)

    @property
    def lacking(self) -> dict[str, list[str]]:
        """Component → its types that nobody wrote texts for, where no other type of it could be drawn."""
        present = {taxonomy.get(code).component for code in self.types}
        found: dict[str, list[str]] = {}
        for code in self.not_generated:
            if (component := taxonomy.get(code).component) not in present:
                found.setdefault(component, []).append(code)
        return found

    def markdown(self) -> str:
        """The readable form: rows per config, types drawn and used, what was left out and why."""
        environment = templates.environment("robustbench_tc.builders")
        return environment.get_template("toolrl_report.md.j2").render(
            report=self,
            paper_steps=PAPER_STEPS,
            component_of=taxonomy.component_of,
            swapped={code: n for code, n in self.used.items() if code not in self.types},
            left_out={config: n for config, n in self.left_out.items() if n},
        )


def _by_component(counts: Mapping[str, int]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for code, rows in counts.items():
        found[taxonomy.get(code).component] += rows
    return dict(found)


def quantiles(lengths: Mapping[int, int]) -> dict[str, int]:
    """Minimum, median, 90 %, 99 % and maximum of lengths, given how often each occurs; {} of none."""
    ordered = sorted(lengths)
    upto = list(accumulate(lengths[length] for length in ordered))
    if not ordered:
        return {}
    at = {"min": 0.0, "median": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {name: ordered[bisect_right(upto, round(share * (upto[-1] - 1)))] for name, share in at.items()}


def in_order(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Keys in the taxonomy's order, others last."""
    order = {t.code: place for place, t in enumerate(taxonomy.known_with(counts))}
    return {key: counts[key] for key in sorted(counts, key=lambda key: order.get(key, len(order)))}
