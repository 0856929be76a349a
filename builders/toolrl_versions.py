"""The versions of every training row: which rows serve, their clean form, their perturbed forms.

They are written to one scratch file in the order of the source, each row's clean version followed by its
perturbed ones.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc import parquet, schema
from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json, Message, Tool, dumps

from .draws import Draws, Outcome, Version, offers
from .generators.base import Generator
from .sources import rlla
from .sources.rlla import Dropped, RllaFiles, RllaRow
from .sources.rlla_prompt import Originals
from .training_row import TrainingRow, training_features

DONORS = 512
"""Distinct tools of the first train rows that may lend wrong parameters where a registry has none to lend."""

BATCH = 1_000
"""Rows perturbed together: what a model writes texts for in one go."""


class Checks(msgspec.Struct, frozen=True, kw_only=True):
    """What rows are judged by, handed in: the reward, the benchmark's queries, a tokenizer."""

    earns_maximum: Callable[[str], bool]
    """Whether a gold text, as an answer to itself, earns the maximum."""
    leaks: Callable[[str, Sequence[Message]], bool] | None = None
    """Whether the conversation of a row (clean id, messages) holds a benchmark query."""
    tokens: Callable[[list[dict[str, str]]], int] | None = None
    """A prompt's length in tokens; None: prompts are measured in characters and none is too long."""
    max_tokens: int = 2048


class Versions(NamedTuple):
    """What was made."""

    scratch: Path
    starts: "array[int]"
    """Per train row the place of its clean version in the scratch file."""
    made: "array[int]"
    """Per train row how many perturbed versions follow it."""
    validation: list[TrainingRow]

    @property
    def total(self) -> int:
        """Versions in the scratch file."""
        return len(self.starts) + sum(self.made)


class Tally:
    """Everything that is counted while versions are made."""

    def __init__(self) -> None:
        self.dropped: dict[str, Counter[str]] = {"train": Counter(), "validation": Counter()}
        self.dropped_rows: list[tuple[str, str]] = []
        self.refused: dict[str, Counter[str]] = {}
        self.drawn_to_used: dict[str, Counter[str]] = {}
        self.used: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()
        self.lengths = array("I")

    def drop(self, split: str, clean_id: str, reason: str) -> None:
        self.dropped[split][reason] += 1
        if len(self.dropped_rows) < 1_000:
            self.dropped_rows.append((clean_id, reason))

    def outcome(self, outcome: Outcome, copies: int) -> None:
        """Counts a row's draws."""
        for code, reason in outcome.refused:
            self.refused.setdefault(code, Counter())[reason.partition(":")[0]] += 1
        used = [version.sample.type_code for version in outcome.versions]
        self.used.update(used)
        if outcome.order:
            first = used[0] if used else "none"
            self.drawn_to_used.setdefault(outcome.order[0], Counter())[first] += 1
        self.kept["no_type_fits"] += not used
        self.kept["fewer_copies_than_asked"] += 0 < len(used) < copies

    def oddities(self, row: RllaRow) -> None:
        """Counts what is strange about a row that stays."""
        declared: dict[str, set[str]] = {}
        for tool in row.sample.tools:
            declared.setdefault(tool.name, set()).update(tool.properties)
        calls = [call for answer in row.sample.golden_answers for call in answer]
        self.kept["gold_tool_not_listed"] += any(call.name not in declared for call in calls)
        self.kept["gold_parameter_not_declared"] += any(
            not declared[call.name].issuperset(call.parameters) for call in calls if call.name in declared
        )


class VersionMaker:
    """Reads the rows, drops what cannot serve, perturbs the rest."""

    def __init__(
        self,
        source: RllaFiles,
        codes: tuple[str, ...],
        seed: int,
        copies: int,
        generators: Mapping[str, Generator],
        checks: Checks,
    ) -> None:
        self.tally = Tally()
        self._source, self._checks = source, checks
        donors, lent = donor_pool(source)
        self._draws = Draws(
            codes=codes,
            seed=seed,
            copies=copies,
            donors=donors,
            lent=lent,
            generators=generators,
            fits=self._fits,
        )
        self._validation: list[TrainingRow] = []
        self._validation_prompts: dict[str, set[str]] = {}
        """User text → system texts."""

    @property
    def drawable(self) -> tuple[str, ...]:
        """The types that rows draw from: those asked for, less those whose texts nobody writes."""
        return self._draws.drawn_codes

    def make(self, scratch: Path, progress: Callable[[str], None]) -> Versions:
        """Writes every version of the train rows to `scratch`. Raises UserError if no row can serve."""
        starts, made = array("Q"), array("B")
        features = training_features()
        wire = features.arrow_schema.append(pa.field("perturbed", pa.bool_()))
        stood = 0
        with pq.ParquetWriter(scratch, wire, compression="zstd", compression_level=1) as writer:
            for batch in parquet.batches(self._train_rows(), BATCH):
                rows: list[TrainingRow] = []
                for outcome in self._draws(batch):
                    self.tally.outcome(outcome, self._draws.copies)
                    starts.append(stood + len(rows))
                    made.append(len(outcome.versions))
                    clean = self._draws.version(outcome.row, outcome.row.sample)
                    for copy, version in enumerate((clean, *outcome.versions)):
                        if version.gold != clean.gold and not self._checks.earns_maximum(version.gold):
                            raise UserError(
                                f"{version.sample.id}: its renamed gold does not earn the maximum: report it"
                            )
                        rows.append(self._training_row(version, stood + len(rows), "train", copy))
                stood += len(rows)
                table = parquet.table(schema.columns(rows, TrainingRow), features)
                perturbed = pa.array([row.extra_info["copy"] > 0 for row in rows], pa.bool_())
                writer.write_table(pa.table([*table.columns, perturbed], schema=wire))
                progress(f"{len(starts)} train rows")
        if not starts:
            reasons = ", ".join(f"{reason} {n}" for reason, n in self.tally.dropped["train"].items())
            raise UserError(f"{self._source.train}: no row can serve ({reasons or 'the file is empty'})")
        return Versions(scratch, starts, made, self._validation)

    def _train_rows(self) -> Iterator[RllaRow]:
        """The train rows that can serve; validation rows are put aside, the others counted as dropped."""
        for item in rlla.read(self._source):
            reason = item.reason if isinstance(item, Dropped) else self._unusable(item)
            if isinstance(item, Dropped) or reason is not None:
                clean_id = item.clean_id if isinstance(item, Dropped) else item.sample.clean_id
                self.tally.drop(item.split, clean_id, str(reason))
            elif item.split == "validation":
                version = self._draws.version(item, item.sample)
                self._validation_prompts.setdefault(version.user, set()).add(version.system)
                self._validation.append(self._training_row(version, len(self._validation), "validation", 0))
            else:
                self.tally.oddities(item)
                yield item

    def _unusable(self, row: RllaRow) -> str | None:
        """Why a row cannot serve, or None."""
        sample = row.sample
        names = {tool.name for tool in sample.tools}
        called = [call.name for answer in sample.golden_answers for call in answer]
        if row.split == "validation" and not names.issuperset(called):
            return "gold_tool_not_listed"
        same_user = self._validation_prompts.get(sample.messages[0].content)
        if row.split == "train" and same_user and row.system in same_user:
            return "also_in_validation"
        if not self._checks.earns_maximum(row.gold):
            return "gold_below_maximum"
        leaks = self._checks.leaks
        if leaks is not None and leaks(sample.clean_id, sample.messages):
            return "benchmark_query"
        if self._checks.tokens is not None and not self._fits(self._draws.version(row, sample)):
            return "prompt_too_long"
        return None

    def _fits(self, version: Version) -> bool:
        return self._checks.tokens is None or self._length(version) <= self._checks.max_tokens

    def _length(self, version: Version) -> int:
        if self._checks.tokens is None:
            return len(version.system) + len(version.user)
        turns = (("system", version.system), ("user", version.user))
        return self._checks.tokens([{"role": role, "content": text} for role, text in turns])

    def _training_row(self, version: Version, index: int, split: str, copy: int) -> TrainingRow:
        """A version as verl reads it; a train prompt's length is noted."""
        sample = version.sample
        if split == "train":
            self.tally.lengths.append(self._length(version))
        info: dict[str, Json] = {
            "index": index,
            "split": split,
            "clean_id": sample.clean_id,
            "type_code": sample.type_code,
            "component": sample.component,
            "copy": copy,
            "generator": sample.generator,
            "flags": list(sample.flags),
            "changes": dumps(sample.changes),
        }
        if sample.component == "reward":
            info["offers"] = offers(sample)
        return TrainingRow(
            prompt=(Message("system", version.system), Message("user", version.user)),
            reward_model={"style": "rule", "ground_truth": version.gold},
            extra_info=info,
        )


def donor_pool(source: RllaFiles) -> tuple[Sequence[Tool], Originals]:
    """The distinct tools with parameters of the first train rows, and their parameter texts."""
    pool: dict[str, Tool] = {}
    lent: dict[str, str] = {}
    rows: Iterator[Any] = (r for r in rlla.read(source) if isinstance(r, RllaRow) and r.split == "train")
    for row in islice(rows, DONORS):
        if len(pool) >= DONORS:
            break
        for tool in row.sample.tools:
            if tool.properties:
                pool.setdefault(dumps(tool), tool)
        lent |= row.registry.originals
    return list(pool.values()), lent
