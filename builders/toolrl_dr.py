"""`rbtc build toolrl-dr`: rlla rows in, domain-randomized training parquet out.

DIR/full/{train,validation}-*.parquet     every train row perturbed (ToolRL-DR-Full)
DIR/mixed/…                               a share of the train rows perturbed (ToolRL-DR-Mixed)
DIR/retry/…                               clean rows; the first call meets a transition error in the rollout
DIR/paft/…                                conversations for fine-tuning, a share alpha perturbed
DIR/README.md, build_report.json, build_report.md
DIR/generations.jsonl                     every answer of a generator: enough to build it again

Every version of every row is made once, into a scratch file (`toolrl_versions`); a config is a choice of
versions. One batch is in memory at a time.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from robustbench_tc import schema, seeding, taxonomy
from robustbench_tc.builders.training_rows import FineTuningRow, TrainingRow
from robustbench_tc.compute import parallel
from robustbench_tc.compute.parallel import SERIAL
from robustbench_tc.io import folders, parquet
from robustbench_tc.schema import Json, Message, arrow_schema

from . import generations
from .generations import Recording
from .generators.base import Generator
from .report import finished
from .sources import rlla
from .toolrl_report import TrainingReport, in_order, quantiles
from .toolrl_spec import TrainingSpec
from .toolrl_versions import PERTURBED, Checks, VersionMaker

_ERRORS = {t.code: t.injected_error for t in taxonomy.types() if t.injected_error is not None}
"""What calls of `retry` meet: the benchmark's own six texts."""


class ConfigWriter:
    """Writes configs from one set of versions."""

    def __init__(self, versions: VersionMaker, spec: TrainingSpec) -> None:
        self._versions, self._spec = versions, spec
        self._shares = {"mixed": spec.ratio, "paft": spec.alpha}
        self.left_out: dict[str, int] = {}
        """Config → train rows that are in no version of it, because no type fits them."""
        self.injected: Counter[str] = Counter()
        """Transition type → train rows of `retry` that meet it."""

    def write(self, config: str, folder: Path) -> dict[str, int]:
        """Writes both splits; returns the numbers of train, perturbed train and validation rows, and of the
        perturbed among these: `full` and `mixed` have each validation row clean and under a type."""
        arrow = arrow_schema(FineTuningRow if config == "paft" else TrainingRow)
        held, more = self._versions.validation, self._versions.validation_perturbed
        more = more if config in ("full", "mixed") else []
        counts = Counter(
            train=0, perturbed=0, validation=len(held) + len(more), validation_perturbed=len(more)
        )
        parquet.write_shards(self._train(config, counts), folder, "train", arrow)
        batches = parquet.batches([*held, *more])
        validation = (self._table(config, batch)[0] for batch in batches)
        parquet.write_shards(validation, folder, "validation", arrow)
        return dict(counts)

    def _times(self, config: str) -> Sequence[int]:
        """How often each version of the scratch file stands in the config."""
        made = self._versions.tally.made
        if config in self._shares:
            rng = seeding.rng(self._spec.seed, "mixture", config)
            times, self.left_out[config] = mixture(made, self._shares[config], rng)
            return times
        if config == "retry":
            return b"".join(b"\1" + bytes(perturbed) for perturbed in made)
        self.left_out[config] = made.count(0)
        return b"".join(b"\0" + b"\1" * perturbed for perturbed in made)

    def _train(self, config: str, counts: Counter[str]) -> Iterator[pa.Table]:
        """The config's train rows, in the order of the scratch file."""
        chosen = self._chosen(config, counts)
        if config in ("full", "mixed"):
            yield from chosen
            return

        def work(table: pa.Table) -> tuple[pa.Table, Counter[str]]:
            rows = [schema.record(row, TrainingRow) for row in table.to_pylist()]
            return self._table(config, rows)

        for table, met in parallel.map_ordered(work, chosen, self._spec.workers):
            self.injected.update(met)
            yield table

    def _chosen(self, config: str, counts: Counter[str]) -> Iterator[pa.Table]:
        """The versions that stand in the config."""
        times, at = self._times(config), 0
        with parquet.opened(self._versions.scratch) as file:
            for batch in file.iter_batches(parquet.BATCH_ROWS, use_threads=False):
                here = times[at : at + batch.num_rows]
                at += batch.num_rows
                taken = [i for i, n in enumerate(here) for _ in range(n)]
                chosen = pa.Table.from_batches([batch]).take(pa.array(taken, pa.int64()))  # may be none
                counts["train"] += chosen.num_rows
                counts["perturbed"] += pc.sum(chosen[PERTURBED.name]).as_py() or 0
                yield chosen.drop_columns([PERTURBED.name])

    def _table(self, config: str, rows: Sequence[TrainingRow]) -> tuple[pa.Table, Counter[str]]:
        """Rows as the config has them, and how often each transition type is met."""
        if config == "paft":
            conversations = [conversation(row) for row in rows]
            return schema.arrow_table(conversations, FineTuningRow), Counter()
        if config == "retry":
            rows = [self._with_error(row) for row in rows]
        errors = (row.extra_info.get("retry") for row in rows)
        met = Counter(error["type_code"] for error in errors if error)
        return schema.arrow_table(rows, TrainingRow), met

    def _with_error(self, row: TrainingRow) -> TrainingRow:
        """The row with the transition error that its rollout meets, if it has a call and the draw says so."""
        rng = seeding.rng(self._spec.seed, "retry", row.extra_info["clean_id"])
        meets, code = rng.random() < self._spec.retry_probability, rng.choice(tuple(_ERRORS))
        error: Json = None
        if meets and "<tool_call>" in row.reward_model["ground_truth"]:
            text = _ERRORS[code]
            error = {"type_code": code, "error": text, "position": self._spec.retry_position}
        return msgspec.structs.replace(row, extra_info=row.extra_info | {"retry": error})


def mixture(made: Sequence[int], share: Fraction, rng: random.Random) -> tuple[bytearray, int]:
    """How often each version is taken so that floor(share · rows) train rows are perturbed.

    `made` holds per row how many perturbed versions follow its clean one. Every row has as many slots as the
    most versions of any row (the copies asked for); a slot takes its perturbed version or the clean one.
    Where fewer slots can be perturbed than the share asks for, slots that cannot are left out until the share
    holds; their number is returned too.
    """
    copies = max(max(made, default=0), 1)
    slots, able = copies * len(made), sum(made)
    kept, wanted = slots - able, math.floor(share * slots)
    if wanted > able:
        most = math.ceil((able + 1) / share) - 1  # the most slots of which a floor(share) is able
        kept, wanted = min(slots, most) - able, able
    perturbed = _ones(able, wanted, rng)
    clean = _ones(slots - able, kept, rng)
    times = bytearray()
    for versions in made:
        chosen = bytes(islice(perturbed, versions))
        unperturbed = versions - sum(chosen) + sum(islice(clean, copies - versions))
        times += bytes((unperturbed, *chosen))
    return times, slots - able - kept


def _ones(size: int, ones: int, rng: random.Random) -> Iterator[bool]:
    """`size` flags of which `ones` are set, at random places."""
    places = set(rng.sample(range(size), ones))
    return (place in places for place in range(size))


def conversation(row: TrainingRow) -> FineTuningRow:
    """A row with its gold as the assistant's turn."""
    gold = Message("assistant", row.reward_model["ground_truth"])
    return FineTuningRow(messages=(*row.prompt, gold), extra_info=row.extra_info)


SPLITS = ("train", "validation")


def build(
    spec: TrainingSpec,
    out: Path,
    *,
    checks: Checks,
    card: Callable[[TrainingReport], str],
    generators: Mapping[str, Generator] | None = None,
    leak_note: str = "not done",
    force: bool = False,
    discard_changes: bool = False,
    progress: Callable[[str], None] = lambda line: None,
) -> TrainingReport:
    """Writes the folder `out`, all or nothing, and returns its report.

    `card` renders the README. `generators` write the texts of the model-written types; a type without one is
    not drawn, and reported. `leak_note` says in the report what `checks.leaks` compared with.
    """
    spec.check()
    codes = spec.validation_codes()
    source = rlla.find_files(spec.rlla)
    sources = tuple(rlla.provenance(path) for path in (source.train, source.validation) if path)
    used = {code: Recording(code, writes) for code, writes in (generators or {}).items() if code in codes}
    with (
        parallel.on_ray(spec.workers),
        folders.atomic_dir(out, kind="toolrl-dr", force=force, discard_changes=discard_changes) as folder,
    ):
        scratch = folder / "scratch.parquet"
        maker = VersionMaker(source, spec, used, checks, scratch)
        progress(f"reading {source.train.name}")
        # A client of an endpoint, its budget and its store belong to one process.
        workers = SERIAL if used else spec.workers
        maker.make(progress, workers)
        writer = ConfigWriter(maker, spec)
        rows = {}
        for config in spec.configs:
            progress(f"writing {config}")
            rows[config] = writer.write(config, folder / config)
        scratch.unlink()
        report = _report(spec, source.form, sources, checks, leak_note, maker, writer, rows, used)
        generations.write(folder / generations.NAME, used.values())
        return finished(folder, report, card)


def _report(
    spec: TrainingSpec,
    form: str,
    sources: tuple[dict[str, Any], ...],
    checks: Checks,
    leak_note: str,
    maker: VersionMaker,
    writer: ConfigWriter,
    rows: dict[str, dict[str, int]],
    used: Mapping[str, Recording],
) -> TrainingReport:
    """What the build was, but for the hashes of its files."""
    tally, drawable = maker.tally, maker.draws.drawn_codes
    drawn = {code: sum(counts.values()) for code, counts in tally.drawn_to_used.items()}
    return TrainingReport(
        form=form,
        sources=sources,
        seed=spec.seed,
        copies=spec.copies,
        counterbalance=spec.counterbalance or msgspec.UNSET,
        ratio=str(spec.ratio),
        alpha=str(spec.alpha),
        retry_probability=spec.retry_probability,
        retry_position=spec.retry_position,
        types=drawable,
        not_generated=tuple(code for code in spec.codes() if code not in drawable),
        rows=rows,
        used=in_order(tally.used),
        drawn=in_order(drawn),
        drawn_to_used={code: in_order(tally.drawn_to_used[code]) for code in in_order(drawn)},
        validation_used=in_order(tally.validation_used),
        refused={code: tally.refused[code] for code in in_order(tally.refused)},
        dropped={split: tally.dropped[split] for split in SPLITS if split in tally.dropped},
        dropped_rows=tuple(tally.dropped_rows),
        left_out=writer.left_out,
        kept={what: n for what, n in sorted(tally.kept.items()) if n},
        injected=in_order(writer.injected),
        prompt_length={
            "unit": "characters" if checks.tokens is None else "tokens",
            "limit": None if checks.tokens is None else checks.max_tokens,
            "quantiles": quantiles(tally.lengths),
        },
        leak_check=leak_note,
        generators={code: generator.statistics() for code, generator in used.items()},
    )
