"""`audit`: the gate's verdict, with what it needs of the other rooms."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import need_extra
from . import rebuilding
from .at_hand import benchmark_queries, queries_of_sources, sources_at_hand
from .judges import make_judge, second_opinion
from .live import audit_live
from .progress import Progress

if TYPE_CHECKING:
    from ..audits.judge import Judge
    from ..audits.report import AuditReport


def audit(
    folder: Path,
    *,
    judge: "str | Judge" = "recorded",
    second_judge: str | None = None,
    n: int | None = 50,
    training: Path | None = None,
    benchmark: Path | None = None,
    sources: Path | None = None,
    rlla: Path | None = None,
    worlds: Sequence[str] = (),
    world_python: str | None = None,
    seed: int = 0,
    store: Path = Path(".rbtc/judgments.jsonl"),
    max_requests: int | None = None,
    progress: Progress = lambda line: None,
    files: dict[str, bytes] | None = None,
    green_only: bool = False,
) -> "AuditReport":
    """`rbtc audit`: the gate's verdict on a build; nothing is written.

    `judge`: `recorded` (with what an earlier audit kept in the build), `recorded:PATH` or `MODEL[@BASE_URL]`,
    asked about what the package has no judgment of. `second_judge`: another one, which scores `n` pairs a
    type (None: all). A live one keeps its answers in `store`. `training`: a training build to hold against
    this benchmark. `benchmark`: for a training build, the benchmark that it must not hold. `sources`: the
    upstream files; by default RBTC_SOURCES or the fetched ones, and without any the checks that need them
    say so. Named ones have to be whole. `rlla`: for a training build, ToolRL's files, if they are not here.
    `worlds`, `world_python`: for a live build, files of one's own worlds, and the Python with BFCL's classes.
    `files` is filled with what belongs under `audit/` beside the report, for `audits.gate.write`; with
    `green_only` not where the gate is red, which saves the time.

    Raises UserError for a folder that is not a build, and for a judge or sources that cannot be used.
    """
    need_expectations()
    from ..audits.folder import Folder

    kind = Folder(folder).kind
    if kind == "live":
        replayed = {"worlds": worlds, "world_python": world_python, "sources": sources}
        return audit_live(folder, **replayed, progress=progress, files=files, green_only=green_only)  # type: ignore[arg-type]
    pools = kind == "benchmark"
    whole, why_not = sources_at_hand(sources, "full" if pools else "paper")
    from ..audits import gate  # after the sources were looked at: these take their time
    from ..builders import answerable
    from ..builders.perturb import REGISTRY
    from ..eval.agents import try_blind
    from ..eval.validate import self_check
    from ..train_recipes.toolrl_dr.reward import earns_maximum

    return gate.audit(
        folder,
        unit_checks=lambda clean, row: REGISTRY[row.type_code].problems(clean, row),
        self_check=self_check,
        try_blind=try_blind,
        golds=answerable.classes,
        judge=make_judge(judge, store, max_requests, folder) if isinstance(judge, str) else judge,
        rebuild=rebuilding.rebuild_of(folder, sources, rlla),
        second_judge=None if second_judge is None else second_opinion(second_judge, store, max_requests),
        benchmark_queries=benchmark_queries(benchmark, whole),
        pool_queries=queries_of_sources(whole, "full") if pools else None,
        without_sources=why_not,
        earns_maximum=earns_maximum,
        training=training,
        seed=seed,
        n=n,
        progress=progress,
        files=files,
        green_only=green_only,
    )


def audit_predictions(file: Path, dataset: Path) -> "AuditReport":
    """`rbtc audit predictions`: a predictions or scores file against the dataset that was asked."""
    need_expectations()
    from ..audits import gate

    return gate.audit_predictions(file, dataset)


def need_expectations() -> None:
    """Raises UserError naming the extra where Great Expectations is not installed."""
    if find_spec("great_expectations") is None:
        raise need_extra("great_expectations", "audit")
