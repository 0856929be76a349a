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
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.compute import parallel
from robustbench_tc.compute.parallel import SERIAL
from robustbench_tc.io import folders

from . import generations
from .generations import Recording
from .generators.base import Generator
from .marked import finished
from .sources import rlla
from .toolrl_configs import ConfigWriter
from .toolrl_report import TrainingReport, in_order, quantiles, uniformity
from .toolrl_spec import TrainingSpec
from .toolrl_versions import Checks, VersionMaker

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
        maker = VersionMaker(source, spec, used, checks)
        progress(f"reading {source.train.name}")
        # A client of an endpoint, its budget and its store belong to one process.
        workers = SERIAL if used else spec.workers
        versions = maker.make(scratch, progress, workers)
        writer = ConfigWriter(versions, spec)
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
