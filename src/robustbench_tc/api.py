"""The composition that knows all rooms: what one room needs of another is handed over here, as a function."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from .builders.build import BuildSpec, build
from .builders.report import BuildReport
from .dataset_cards.render import benchmark_card
from .errors import UserError, need_extra
from .eval.validate import self_check
from .schema import Message

if TYPE_CHECKING:
    from .audits.judge import Judge, Recorded
    from .audits.report import AuditReport

Progress: TypeAlias = Callable[[str], None]
"""Gets one short line at a time about what is being worked on."""

Conversations: TypeAlias = Callable[[], Iterable[tuple[str, Sequence[Message]]]]
"""Rows as (id, messages), read when they are needed."""


def build_release(
    spec: BuildSpec, out: Path, *, force: bool = False, progress: Progress = lambda line: None
) -> BuildReport:
    """`rbtc build`: the builder with the scorers' self-check of every golden answer, and the card."""
    return build(spec, out, card=benchmark_card, accept=self_check, force=force, progress=progress)


# --- the gate -----------------------------------------------------------------------------------------


def audit(
    folder: Path,
    *,
    judge: str = "recorded",
    second_judge: str | None = None,
    n: int | None = 50,
    training: Path | None = None,
    benchmark: Path | None = None,
    sources: Path | None = None,
    seed: int = 0,
    store: Path = Path(".rbtc/judgments.jsonl"),
    max_requests: int | None = None,
    progress: Progress = lambda line: None,
) -> "AuditReport":
    """`rbtc audit`: the gate's verdict on a build; nothing is written.

    `judge`, `second_judge`: `recorded`, `recorded:PATH` or `MODEL[@BASE_URL]`; a live one keeps its answers
    in `store` and scores `n` pairs a type (None: all). `training`: a training build to hold against this
    benchmark. `benchmark`: for a training build, the benchmark that it must not hold. `sources`: the upstream
    files; by default RBTC_SOURCES or the fetched ones, and without any the checks that need them say so.
    """
    _need_expectations()
    from .audits import gate
    from .builders.perturb import REGISTRY
    from .train_recipes.toolrl_dr.reward import earns_maximum

    return gate.audit(
        folder,
        unit_checks=lambda clean, row: REGISTRY[row.type_code].check(clean, row),
        self_check=self_check,
        judge=make_judge(judge, store, max_requests),
        second_judge=None if second_judge is None else make_judge(second_judge, store, max_requests),
        benchmark_queries=_benchmark_queries(benchmark, sources),
        pool_queries=_of_sources(sources, "full"),
        earns_maximum=earns_maximum,
        training=training,
        seed=seed,
        n=n,
        progress=progress,
    )


def audit_predictions(file: Path, dataset: Path) -> "AuditReport":
    """`rbtc audit predictions`: a predictions or scores file against the dataset that was asked."""
    _need_expectations()
    from .audits import gate

    return gate.audit_predictions(file, dataset)


def _need_expectations() -> None:
    if find_spec("great_expectations") is None:
        raise need_extra("great_expectations", "audit")


def make_judge(spec: str, store: Path, max_requests: int | None = None) -> "Judge":
    """The judge that `--judge` names. Raises UserError."""
    name, _, path = spec.partition(":")
    if name == "recorded":
        return recorded_judge(Path(path) if path else None)
    from .audits.judge import EndpointJudge
    from .llm import parse_endpoint

    endpoint = parse_endpoint(spec)
    endpoint.resolved()  # a missing key is said before any work
    return EndpointJudge(endpoint, store=store, max_requests=max_requests)


def recorded_judge(path: Path | None = None) -> "Recorded":
    """The judgments that ship with the package, or those of a folder or file, found by the builder's keys."""
    from .audits.judge import Judgment, Recorded
    from .audits.rows import Pair
    from .builders.generators.recorded import judgment_address, load_judgments
    from .builders.perturb.base import TextRequest

    known = load_judgments(path)

    def find(pair: Pair) -> Judgment | None:
        request = TextRequest(kind=pair.kind, input=pair.before, tool=pair.tool, parameter=pair.parameter)
        found = known.get(judgment_address(request, pair.after))
        return None if found is None else Judgment(found.score, found.reason, found.judge)

    return Recorded(find)


def _benchmark_queries(folder: Path | None, sources: Path | None) -> Conversations | None:
    """The clean rows of a benchmark folder, else the 199 of the sources; None where there are neither."""
    from .io.parquet import read_rows, shards
    from .schema import Sample, record

    if folder is None:
        return _of_sources(sources, "paper")
    files = shards(folder / "clean")

    def of_folder() -> Iterator[tuple[str, Sequence[Message]]]:
        for row in read_rows(files):
            sample = record(row, Sample)
            yield sample.id, sample.messages

    return of_folder


def _of_sources(sources: Path | None, profile: str) -> Conversations | None:
    from .builders.sources import read
    from .builders.sources.fetch import resolve_root

    try:
        root = resolve_root(sources)
    except UserError:
        if sources is not None:
            raise
        return None
    return lambda: ((sample.id, sample.messages) for sample in read(root, profile).samples)  # type: ignore[arg-type]
