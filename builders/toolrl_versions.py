"""The versions of every training row: which rows serve, their clean form, their perturbed forms.

They are written to one scratch file in the order of the source, each row's clean version followed by its
perturbed ones.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc import schema
from robustbench_tc.builders.training_rows import TrainingRow
from robustbench_tc.compute import parallel
from robustbench_tc.compute.parallel import SERIAL, Workers
from robustbench_tc.errors import UserError
from robustbench_tc.eval.prompts.rlla_form import Originals
from robustbench_tc.eval.score.reward import earns_maximum
from robustbench_tc.io import parquet
from robustbench_tc.schema import (
    GOLD_NOT_STATED,
    Json,
    Message,
    Tool,
    arrow_schema,
    dumps,
)

from . import answerable
from .generators.base import Generator
from .report import add, merge
from .sources import rlla
from .sources.rlla import Dropped, RllaFiles, RllaRow
from .toolrl_spec import Draws, Outcome, TrainingSpec, Version, offers

DONORS = 512
"""Distinct tools of the first train rows that may lend wrong parameters where a registry has none to lend."""

BATCH = 1_000
"""Rows perturbed together: what a model writes texts for in one go."""


PERTURBED = pa.field("perturbed", pa.bool_())
"""A column that only the scratch file has."""


class Checks(msgspec.Struct, frozen=True, kw_only=True):
    """What rows are judged by: the reward, the benchmark's queries, a tokenizer."""

    earns_maximum: Callable[[str], bool] = earns_maximum
    """Whether a gold text, as an answer to itself, earns the maximum."""
    leaks: Callable[[str, Sequence[Message]], bool] | None = None
    """Whether the conversation of a row (clean id, messages) holds a benchmark query."""
    tokens: Callable[[list[dict[str, str]]], int] | None = None
    """A prompt's length in tokens; None: prompts are measured in characters and none is too long."""
    max_tokens: int = 2048


class Tally(msgspec.Struct, kw_only=True):
    """Everything that is counted while versions are made."""

    dropped: dict[str, dict[str, int]] = {}
    """Split → reason → rows."""
    dropped_rows: list[tuple[str, str]] = []
    refused: dict[str, dict[str, int]] = {}
    drawn_to_used: dict[str, dict[str, int]] = {}
    used: dict[str, int] = {}
    kept: dict[str, int] = {}
    lengths: dict[int, int] = {}
    """Length of a train prompt → versions."""
    validation_used: dict[str, int] = {}
    """Type → validation rows under it."""
    made: list[int] = []
    """Per train row how many perturbed versions follow its clean one in the scratch file."""

    def drop(self, split: str, clean_id: str, reason: str) -> None:
        """Counts a row that is left out, and keeps its id."""
        add(self.dropped.setdefault(split, {}), reason)
        self.dropped_rows.append((clean_id, reason))

    def outcome(self, outcome: Outcome, copies: int) -> None:
        """Counts a row's draws."""
        for code, reason in outcome.refused:
            add(self.refused.setdefault(code, {}), reason.partition(":")[0])
        used = [version.sample.type_code for version in outcome.versions]
        self.made.append(len(used))
        for code in used:
            add(self.used, code)
        if outcome.order:
            first = used[0] if used else "none"
            add(self.drawn_to_used.setdefault(outcome.order[0], {}), first)
        add(self.kept, "no_type_fits", not used)
        add(self.kept, "fewer_copies_than_asked", 0 < len(used) < copies)

    def merge(self, other: "Tally") -> None:
        """Takes another tally's counts in; of the dropped rows the first 1,000 are named."""
        merge(msgspec.structs.asdict(self), msgspec.structs.asdict(other))
        del self.dropped_rows[1_000:]


class VersionMaker:
    """Reads the rows, drops what cannot serve, perturbs the rest."""

    def __init__(
        self,
        source: RllaFiles,
        spec: TrainingSpec,
        generators: Mapping[str, Generator],
        checks: Checks,
        scratch: Path,
    ) -> None:
        """`scratch`: where every version of the train rows is written."""
        self.tally = Tally()
        self.scratch, self._source, self._checks = scratch, source, checks
        donors, lent = donor_pool(source)
        codes = spec.codes()
        self.draws = Draws(
            codes=codes,
            seed=spec.seed,
            copies=spec.copies,
            donors=donors,
            lent=lent,
            generators={code: one for code, one in generators.items() if code in codes},
            counterbalance=spec.counterbalance,
            fits=self._fits,
        )
        self._validation_draws = msgspec.structs.replace(
            self.draws,
            codes=spec.validation_codes(),
            copies=1,
            generators=generators,
            counterbalance=False,
        )
        self.validation: list[TrainingRow] = []
        """Clean."""
        self.validation_perturbed: list[TrainingRow] = []
        """Those of them that a type fits, each under one."""
        self._held_prompts: set[tuple[str, str]] = set()
        """System and user text of each validation row."""

    def make(self, progress: Callable[[str], None], workers: Workers = SERIAL) -> None:
        """Writes the versions. Raises UserError if no row can serve."""
        wire = arrow_schema(TrainingRow).append(PERTURBED)
        with pq.ParquetWriter(self.scratch, wire, compression="zstd", compression_level=1) as writer:
            for split, texts in groupby(rlla.raw(self._source), lambda one: one[1]):
                if split == "validation":
                    self._validate(texts)
                    continue
                items = parquet.batches(enumerate(texts), BATCH)
                for table, counted in parallel.map_ordered(self._part, items, workers):
                    self.tally.merge(counted)
                    writer.write_table(table)
                    progress(f"{len(self.tally.made)} train rows")
        if not self.tally.made:
            reasons = ", ".join(f"{why} {n}" for why, n in self.tally.dropped.get("train", {}).items())
            raise UserError(f"{self._source.train}: no row can serve ({reasons or 'the file is empty'})")

    def _validate(self, texts: Iterable[rlla.Raw]) -> None:
        """Puts the validation rows aside, clean and perturbed."""
        rows = list(self._usable(texts, self.tally))
        for row in rows:
            version = self.draws.version(row, row.sample)
            self._held_prompts.add((version.system, version.user))
            self.validation.append(self._training_row(version, len(self.validation), "validation", 0))
        for outcome in self._validation_draws(rows):
            add(self.tally.kept, "validation_no_type_fits", not outcome.versions)
            for version in outcome.versions:
                self._must_earn_maximum(version, outcome.row.gold)
                index = len(rows) + len(self.validation_perturbed)
                add(self.tally.validation_used, version.sample.type_code)
                self.validation_perturbed.append(self._training_row(version, index, "validation", 1))

    def _must_earn_maximum(self, version: Version, clean_gold: str) -> None:
        if version.gold != clean_gold and not self._checks.earns_maximum(version.gold):
            raise UserError(
                f"{version.sample.id}: its renamed gold does not earn the maximum reward: please report it"
            )

    def _part(self, numbered: Sequence[tuple[int, rlla.Raw]]) -> tuple[pa.Table, Tally]:
        """Every version of some train rows, clean ones first, and what was counted on the way."""
        tally, rows = Tally(), list[TrainingRow]()
        places = {texts[0]: place for place, texts in numbered}
        for outcome in self.draws(list(self._usable((texts for _, texts in numbered), tally))):
            tally.outcome(outcome, self.draws.copies)
            clean = self.draws.version(outcome.row, outcome.row.sample)
            first = places[outcome.row.sample.clean_id] * (1 + self.draws.copies)
            for copy, version in enumerate((clean, *outcome.versions)):
                self._must_earn_maximum(version, clean.gold)
                add(tally.lengths, self._length(version))
                rows.append(self._training_row(version, first + copy, "train", copy))
        table = schema.arrow_table(rows, TrainingRow)
        perturbed = [row.extra_info["copy"] > 0 for row in rows]
        return table.append_column(PERTURBED, pa.array(perturbed, pa.bool_())), tally

    def _usable(self, texts: Iterable[rlla.Raw], tally: Tally) -> Iterator[RllaRow]:
        """The rows that can serve; the others are counted as dropped."""
        for item in (rlla.row(*one) for one in texts):
            if isinstance(item, Dropped):
                tally.drop(item.split, item.clean_id, item.reason)
            elif (reason := self._unusable(item)) is not None:
                tally.drop(item.split, item.sample.clean_id, reason)
            else:
                yield item

    def _unusable(self, row: RllaRow) -> str | None:
        """Why a row cannot serve, or None."""
        sample = row.sample
        declared: dict[str, set[str]] = {}
        for tool in sample.tools:
            declared.setdefault(tool.name, set()).update(tool.properties)
        calls = [call for answer in sample.golden_answers for call in answer]
        if any(call.name not in declared for call in calls):  # it would teach to call what is not there
            return "gold_tool_not_listed"
        if any(not declared[call.name].issuperset(call.parameters) for call in calls):  # or to make one up
            return "gold_parameter_not_declared"
        if sample.golden_answers and answerable.audit(sample).missing is not None:
            return GOLD_NOT_STATED
        if row.split == "train" and (row.system, sample.messages[0].content) in self._held_prompts:
            return "also_in_validation"
        if not self._checks.earns_maximum(row.gold):
            return "gold_below_maximum"
        leaks = self._checks.leaks
        if leaks is not None and leaks(sample.clean_id, sample.messages):
            return "benchmark_query"
        if self._checks.tokens is not None and not self._fits(self.draws.version(row, sample)):
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
        """A version as verl reads it. `index` is unique in its split, and the same in every config."""
        sample = version.sample
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
    rows: Iterator[Any] = (r for r in rlla.read_rows(source) if isinstance(r, RllaRow) and r.split == "train")
    for row in islice(rows, DONORS):
        if len(pool) >= DONORS:
            break
        for tool in row.sample.tools:
            if tool.properties:
                pool.setdefault(dumps(tool), tool)
        lent |= row.registry.originals
    return list(pool.values()), lent
