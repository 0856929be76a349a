"""The composition that knows all rooms: what one room needs of another is handed over here, as a function."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from .builders.build import BuildSpec, build
from .builders.report import BuildReport
from .builders.sources.at_hand import sources_at_hand
from .dataset_cards.render import benchmark_card
from .errors import UserError, need_extra
from .eval.validate import self_check
from .schema import Message

if TYPE_CHECKING:
    from .audits.judge import Judge, Recorded
    from .audits.provenance import Rebuild
    from .audits.report import AuditReport
    from .builders.sources import Profile

Progress: TypeAlias = Callable[[str], None]
"""Gets one short line at a time about what is being worked on."""

Conversations: TypeAlias = Callable[[], Iterable[tuple[str, Sequence[Message]]]]
"""Rows as (id, messages), read when they are needed."""

NO_LEAK_CHECK = "not done:"
"""How the note on a training build's leak check begins where there was none."""


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
    rlla: Path | None = None,
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
    Named ones have to be whole. `rlla`: for a training build, ToolRL's files, if they are not among these.
    """
    _need_expectations()
    from .audits import gate
    from .audits.folder import Folder
    from .builders.perturb import REGISTRY
    from .train_recipes.toolrl_dr.reward import earns_maximum

    pools = Folder(folder).kind == "benchmark"
    whole, why_not = sources_at_hand(sources, "full" if pools else "paper")
    return gate.audit(
        folder,
        unit_checks=lambda clean, row: REGISTRY[row.type_code].check(clean, row),
        self_check=self_check,
        judge=make_judge(judge, store, max_requests),
        rebuild=rebuild_of(folder, sources, rlla),
        second_judge=None if second_judge is None else make_judge(second_judge, store, max_requests),
        benchmark_queries=_benchmark_queries(benchmark, whole),
        pool_queries=_of_sources(whole, "full") if pools else None,
        without_sources=why_not,
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


def _of_sources(root: Path | None, profile: "Profile") -> Conversations | None:
    from .builders.sources import read

    if root is None:
        return None
    return lambda: ((sample.id, sample.messages) for sample in read(root, profile).samples)


def rebuild_of(folder: Path, sources: Path | None = None, rlla: Path | None = None) -> "Rebuild":
    """How the build in `folder` is made again: from the sources where they are whole, else from itself.

    `rlla`: where ToolRL's files lie, for training data; default: in the sources. Raises UserError where
    `sources` are named and not whole.
    """
    from .audits.folder import Folder
    from .audits.provenance import Rebuild
    from .builders.rebuild import rebuild

    build = Folder(folder)
    if build.kind == "training":
        return _training_rebuild_of(folder, sources, rlla)
    profile = str(build.report.get("profile"))
    if profile == "bundled":
        root, origin, why_not = None, "the starter samples of the package", ""
    else:
        root, why_not = sources_at_hand(sources, "full" if profile == "full" else "paper")
        origin = "" if root is None else "the pinned sources"

    def make(build: Path, out: Path) -> None:
        rebuild(build, out, sources=root, card=benchmark_card, accept=self_check)

    return Rebuild(make, origin, why_not)


def _training_rebuild_of(folder: Path, sources: Path | None, rlla: Path | None) -> "Rebuild":
    from .audits.provenance import Rebuild
    from .builders.rebuild import TrainingTold, has_rlla, rebuild_training, told_by
    from .builders.sources.fetch import default_root
    from .builders.toolrl_versions import Checks
    from .dataset_cards.training import training_card
    from .train_recipes.toolrl_dr.reward import earns_maximum

    try:
        told = told_by(folder, TrainingTold)
    except UserError as error:
        return Rebuild(None, why_not=str(error))
    leak_checked = not told.leak_check.startswith(NO_LEAK_CHECK)
    whole, why_not = sources_at_hand(sources, "full") if leak_checked else (None, "")
    if told.with_tokenizer:
        return Rebuild(None, why_not="prompts were measured with a tokenizer, which no build holds")
    if leak_checked and whole is None:
        return Rebuild(None, why_not=f"its leak check needs the benchmark's sources: {why_not}")
    roots = (rlla, whole or sources or default_root())
    at_hand = next((root for root in roots if root is not None and has_rlla(folder, root)), None)
    if at_hand is None:
        return Rebuild(
            None, why_not="the ToolRL files that it was made of are not at hand: name their --rlla"
        )
    rlla_root = at_hand

    def make(build: Path, out: Path) -> None:
        leaks, note = leaks_of(whole)
        rebuild_training(
            build,
            out,
            rlla_root=rlla_root,
            checks=Checks(earns_maximum=earns_maximum, leaks=leaks),
            leak_note=note,
            card=training_card,
        )

    return Rebuild(make, "ToolRL's files")


def leaks_of(
    root: Path | None, progress: Progress = lambda line: None
) -> "tuple[Callable[[str, Sequence[Message]], bool] | None, str]":
    """Whether a training row asks what the benchmark asks (the 199 and the full pools), and a note on it.

    The gate of a release asks the same question in the same way. Without sources nothing is compared.
    """
    from .audits.contamination import Index, query
    from .builders.sources import read

    if root is None:
        where = "no benchmark sources at hand (run `rbtc sources fetch`, or pass --sources)."
        return None, f"{NO_LEAK_CHECK} {where}"
    progress("reading the benchmark's queries")
    samples = (*read(root, "paper").samples, *read(root, "full").samples)
    index = Index(query(sample.id, sample.messages) for sample in samples)

    def leaks(clean_id: str, messages: "Sequence[Message]") -> bool:
        overlap = index.look_up(query(clean_id, messages))
        return overlap is not None and overlap.contaminated

    return leaks, f"user turns compared with {index.size} benchmark rows (the 199 and the full pools)."
