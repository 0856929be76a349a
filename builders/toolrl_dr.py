"""`rbtc build toolrl-dr`: rlla rows in, domain-randomized training parquet out.

DIR/full/{train,validation}-*.parquet     every train row perturbed (ToolRL-DR-Full)
DIR/mixed/…                               a share of the train rows perturbed (ToolRL-DR-Mixed)
DIR/retry/…                               clean rows; the first call meets a transition error in the rollout
DIR/paft/…                                conversations for fine-tuning, a share alpha perturbed
DIR/README.md, build_report.json, build_report.md
DIR/generations.jsonl                     every answer of a generator: enough to build it again

Every version of every row is made once, into a scratch file (`toolrl_versions`); a config is a choice of
versions (`toolrl_configs`). One batch is in memory at a time.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.compute import parallel
from robustbench_tc.compute.parallel import SERIAL, Workers
from robustbench_tc.errors import UserError, need_extra, unknown
from robustbench_tc.io import folders

from . import generations
from .build import select_types
from .generations import Recording
from .generators.base import Generator
from .marked import finished
from .perturb.swapped import SWAPPED
from .sources import rlla
from .toolrl_configs import CONFIGS, ConfigWriter
from .toolrl_report import TrainingReport, in_order, quantiles, uniformity
from .toolrl_versions import Checks, VersionMaker

SPLITS = ("train", "validation")

SWAPS = tuple(unit.code for unit in SWAPPED.values())
"""The types that `counterbalance` makes rows of."""


class TrainingSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a training build is a function of, besides the source files and the written texts."""

    rlla: Path
    """Folder with ToolRL's files, see `sources.rlla.find_files`."""
    configs: tuple[str, ...] = CONFIGS
    types: tuple[str, ...] = ()
    """Type codes, components, packs and levels to draw from; empty: the core's 16 static types."""
    seed: int = 0
    ratio: Fraction = Fraction(1, 2)
    """Perturbed share of `mixed`; the paper has 1,994 of 4,000."""
    alpha: Fraction = Fraction(3, 10)
    """Perturbed share of `paft`; 0 is plain fine-tuning. 0.3 is the best value reported second-hand."""
    copies: int = 1
    """Differently perturbed copies of each train row."""
    counterbalance: bool = False
    """Whether half of the rows that draw one of the core's reward types have their offers swapped."""
    retry_probability: float = 1.0
    """Share of the rows with a call whose call meets an error (`retry`)."""
    retry_position: int = 1
    """Which tool turn of the rollout meets it, from 1."""
    workers: Workers = SERIAL
    """Moves no byte. Texts that a model writes are asked for by one process."""

    def codes(self) -> tuple[str, ...]:
        """The types that rows draw from, in the taxonomy's order.

        Of a pack or a level those that are there to train on. Raises UserError for a type that is not.
        """
        found: set[str] = set()
        for name in self.types or taxonomy.COMPONENTS[:3]:
            codes = set(select_types((name,)))
            kinds = [kind for kind in taxonomy.types("all") if kind.code in codes]
            static = [kind for kind in kinds if kind.static]
            if not static:
                raise UserError(
                    f"{name} happens at run time and is never drawn: the config `retry` trains on it"
                )
            drawn = {kind.code for kind in static if kind.train_augmentable}
            if not drawn:
                raise UserError(
                    f"{name} is for measuring only and is never drawn (its train_augmentable is false)"
                )
            found |= drawn
        return tuple(kind.code for kind in taxonomy.types("all") if kind.code in found)

    def validation_codes(self) -> tuple[str, ...]:
        """The types that validation rows draw from: also those of the core that training leaves out, so that
        a run shows whether robustness carries over to them."""
        core = {kind.code for kind in taxonomy.types() if kind.static}
        return tuple(kind.code for kind in taxonomy.types("all") if kind.code in {*core, *self.codes()})

    def check(self) -> None:
        """Raises UserError for a value out of range."""
        for config in self.configs:
            if config not in CONFIGS:
                raise unknown("config", config, CONFIGS)
        for name, share in (("--ratio", self.ratio), ("--alpha", self.alpha)):
            if not 0 <= share <= 1:
                raise UserError(f"{name} {share} is not a share: give a number from 0 to 1")
        if not 0 <= self.retry_probability <= 1:
            raise UserError(f"--retry-probability {self.retry_probability}: give a number from 0 to 1")
        if not 1 <= self.copies <= 16:
            raise UserError(f"--copies {self.copies}: give 1 to 16 copies, there are 16 types")
        if self.counterbalance and (twice := [c for c in self.codes() if c in SWAPS]):
            raise UserError(f"--counterbalance makes the rows of {twice[0]} itself: leave it out of --types")
        if self.counterbalance and SWAPPED.keys().isdisjoint(self.codes()):
            raise UserError("--counterbalance swaps offers, and no reward type of the core is drawn")
        if not 1 <= self.retry_position <= 8:
            raise UserError(f"--retry-position {self.retry_position}: give a turn from 1 to 8")


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
    codes, validation_codes = spec.codes(), spec.validation_codes()
    source = rlla.find_files(spec.rlla)
    sources = tuple(rlla.provenance(path) for path in (source.train, source.validation) if path)
    used = {
        code: Recording(code, writes)
        for code, writes in (generators or {}).items()
        if code in validation_codes
    }
    with (
        parallel.on_ray(spec.workers),
        folders.atomic_dir(out, kind="toolrl-dr", force=force, discard_changes=discard_changes) as folder,
    ):
        scratch = folder / "scratch.parquet"
        maker = VersionMaker(
            source, codes, spec.seed, spec.copies, used, checks, spec.counterbalance, validation_codes
        )
        progress(f"reading {source.train.name}")
        # A client of an endpoint, its budget and its store belong to one process.
        workers = SERIAL if used else spec.workers
        versions = maker.make(scratch, progress, workers)
        writer = ConfigWriter(
            versions,
            spec.seed,
            spec.ratio,
            spec.alpha,
            spec.retry_probability,
            spec.retry_position,
            spec.workers,
        )
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
    tally, drawable = maker.tally, maker.drawable
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
        uniform=uniformity(drawn, drawable),
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


def prompt_tokens(folder: Path) -> Callable[[list[dict[str, str]]], int]:
    """Counts a prompt's tokens as the rollout will: chat template, generation prompt included."""
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise need_extra("transformers", "train") from None
    if not folder.is_dir():
        raise UserError(f"no tokenizer folder {folder}: --tokenizer takes the model's folder")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError) as error:
        raise UserError(f"{folder} holds no tokenizer: {str(error).splitlines()[0]}") from None
    return lambda turns: len(
        tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=False)
    )
