"""The composition that knows all rooms: what one room needs of another is handed over here, as a function."""

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from .builders.build import BuildSpec, build
from .builders.report import BuildReport
from .dataset_cards.render import benchmark_card
from .errors import UserError, need_extra, unknown
from .eval.validate import self_check
from .schema import Message, dumps

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from .audits.judge import Answer, Judge, Judgment, Recorded, Unjudged
    from .audits.provenance import Rebuild
    from .audits.report import AuditReport
    from .audits.rows import NewTool, Pair
    from .builders.sources import Profile
    from .io.errata import Answers, Erratum
    from .io.manifest import Kind, Manifest, Previous
    from .release.diff import Diff
    from .release.freeze import Facts

T = TypeVar("T")

Progress: TypeAlias = Callable[[str], None]
"""Gets one short line at a time about what is being worked on."""

Conversations: TypeAlias = Callable[[], Iterable[tuple[str, Sequence[Message]]]]
"""Rows as (id, messages), read when they are needed."""

SOURCE_FILES_NAMED = 3
"""Source files that a message names before it says how many more there are."""

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
    judge: "str | Judge" = "recorded",
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
        judge=make_judge(judge, store, max_requests) if isinstance(judge, str) else judge,
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


def recorded_judge(path: Path | None = None, *, also: Path | None = None) -> "Recorded":
    """The judgments that ship with the package, or those of a folder or file, found by the builder's keys.

    `also`: a file whose judgments come first.
    """
    from .audits.judge import Judgment, Recorded
    from .audits.rows import Pair
    from .builders.generators.recorded import judgment_address, load_judgments
    from .builders.perturb.base import TextRequest

    known = load_judgments(path) | ({} if also is None else load_judgments(also))

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


def sources_at_hand(sources: Path | None, profile: "Profile") -> tuple[Path | None, str]:
    """The sources folder, if every file that the profile needs is there as pinned; else why not.

    Every needed file is looked at before any work, which takes a second. Raises UserError where `sources` are
    named and not whole.
    """
    from .builders.sources import needed_files, problems
    from .builders.sources.fetch import default_root

    root = sources or default_root()
    if not root.is_dir():
        if sources is not None:
            raise UserError(
                f"no sources folder at {root}: run `rbtc sources fetch`, or name another --sources"
            )
        return None, "no sources at hand (run `rbtc sources fetch`, or pass --sources)"
    bad = problems(root, profile)
    if not bad:
        return root, ""
    named = "; ".join(f"{path}: {problem}" for path, problem in bad[:SOURCE_FILES_NAMED])
    more = f"; and {len(bad) - SOURCE_FILES_NAMED} more" if len(bad) > SOURCE_FILES_NAMED else ""
    needed = len(needed_files(profile))
    why = f"{len(bad)} of {needed} source files of profile {profile} are not as pinned ({named}{more})"
    if sources is not None:
        raise UserError(f"{root}: {why}: `rbtc sources fetch --out {root}` completes it")
    return None, why


# --- releases -----------------------------------------------------------------------------------------


def release(
    build_folder: Path,
    out: Path,
    *,
    version: str,
    created_at: str,
    kind: "Kind | None" = None,
    previous: str | None = None,
    repo: str | None = None,
    doi: str | None = None,
    trial: bool = False,
    key: "Ed25519PrivateKey | None" = None,
    sources: Path | None = None,
    benchmark: Path | None = None,
    training: Path | None = None,
    rlla: Path | None = None,
    progress: Progress = lambda line: None,
) -> "Manifest":
    """`rbtc release`: audits the build, replaying its stored judgments, and freezes what passed.

    `previous`: a folder or `org/name@v1.0.0` that this version follows; a version that says less than the
    data have changed is refused. `key` signs the manifest. `sources`, `benchmark`, `training`, `rlla`: as
    for `audit`. Raises UserError.
    """
    from .io import manifest
    from .release import freeze

    version = manifest.check_version(version)
    followed = None if previous is None else _follows(build_folder, version, previous)

    def gate(folder: Path) -> None:
        _audit_copy(build_folder, folder, sources, benchmark, training, rlla, progress)

    return freeze.release(
        build_folder,
        out,
        version=version,
        created_at=created_at,
        render=render,
        audit=gate,
        kind=kind,
        previous=followed,
        repo=repo,
        doi=doi,
        trial=trial,
        key=key,
    )


def _follows(build_folder: Path, version: str, previous: str) -> "Previous":
    """What the manifest says of the version before. UserError where the new number is too low."""
    from .io import manifest
    from .release.diff import diff
    from .release.versions import check_step

    folder = dataset_folder(previous)
    before = manifest.read(folder)
    step = diff(folder, build_folder).step
    check_step(version, before, step)
    return manifest.Previous(before.version, before.data_sha256, step)


def dataset_folder(name: str) -> Path:
    """A folder here, or the data of `org/name@revision` from the Hub. Raises UserError."""
    from .io.resolve import resolve_dataset

    if Path(name).expanduser().exists():
        return Path(name).expanduser()
    repo, _, revision = name.partition("@")
    return resolve_dataset(repo, revision or None, patterns=["*/*.parquet", "*.json", "*.jsonl"])


class _Replayed:
    """A judge that only looks up, and notes what it was asked in vain."""

    live = False

    def __init__(self, judge: "Judge") -> None:
        self.name = judge.name
        self._judge = judge
        self.missing: list[str] = []
        """A line for every text or tool without a judgment."""

    def score(self, pairs: "Sequence[Pair]") -> "list[Judgment | Unjudged]":
        return self._noting(self._judge.score(pairs), [f"{pair.kind} {pair.after!r:.80}" for pair in pairs])

    def could_answer(self, tools: "Sequence[NewTool]") -> "list[Answer | Unjudged]":
        return self._noting(
            self._judge.could_answer(tools), [f"redundant {tool.name!r:.80}" for tool in tools]
        )

    def _noting(self, found: list[T], names: list[str]) -> list[T]:
        from .audits.judge import Unjudged

        self.missing += [name for name, one in zip(names, found, strict=True) if isinstance(one, Unjudged)]
        return found


def _audit_copy(
    build_folder: Path,
    folder: Path,
    sources: Path | None,
    benchmark: Path | None,
    training: Path | None,
    rlla: Path | None,
    progress: Progress,
) -> None:
    """Audits the copy of a build in `folder`; the reports go there. UserError for a missing judgment."""
    import msgspec

    from .audits import gate
    from .release.freeze import JUDGMENTS

    stored = folder / JUDGMENTS
    judge = _Replayed(recorded_judge(also=stored if stored.is_file() else None))
    report = audit(
        folder,
        judge=judge,
        sources=sources,
        benchmark=benchmark,
        training=training,
        rlla=rlla,
        progress=progress,
    )
    if judge.missing:
        more = f" and {len(judge.missing) - 1:,} more" if len(judge.missing) > 1 else ""
        raise UserError(
            f"{build_folder}: nobody judged {judge.missing[0]}{more}: "
            f"run `rbtc audit {build_folder} --judge MODEL@URL --all`, which keeps its judgments in the build"
        )
    gate.write(msgspec.structs.replace(report, name=build_folder.resolve().name), folder)


def render(folder: Path, facts: "Facts") -> Mapping[str, bytes]:
    """The files of a release that hold its version: cards and reports, croissant.json, the licence."""
    import hashlib

    import msgspec

    from .builders.sources.pins import pins
    from .builders.toolrl_report import TrainingReport
    from .dataset_cards import citation, responsible_ai
    from .dataset_cards.checkpoint import checkpoint_card
    from .dataset_cards.croissant import About, croissant
    from .dataset_cards.facts import release_facts
    from .dataset_cards.training import training_card
    from .release.freeze import licence_text

    if facts.kind == "checkpoint":
        return {"README.md": checkpoint_card(facts.build, facts.version).encode()}
    benchmark = facts.kind == "robustbench-tc"
    told = {**facts.build, "dataset_version": facts.version}
    report: BuildReport | TrainingReport
    try:
        report = msgspec.convert(told, BuildReport) if benchmark else msgspec.convert(told, TrainingReport)
    except msgspec.ValidationError as error:
        raise UserError(f"build_report.json is not of this package's version: {error}") from None
    read = {row["source"]: row for row in facts.build.get("pins", ())} if benchmark else {"toolrl": None}
    sha256 = {path: entry.sha256 for path, entry in facts.files.items()}
    published = datetime.date.fromisoformat(facts.created_at[:10])
    address = citation.hub_address(facts.repo) if facts.repo else citation.ADDRESS
    title = "RobustBench-TC" if benchmark else "ToolRL-DR"
    bibtex = citation.dataset_bibtex(title, facts.version, published.year, address, facts.doi)
    release = release_facts(
        folder,
        version=facts.version,
        sha256=sha256,
        audit=facts.audit or {},
        citations={name: origin.citation for name, origin in pins().sources.items() if name in read},
        bibtex=bibtex,
        repo=facts.repo,
        previous=facts.previous.version if facts.previous else None,
        step=facts.previous.step if facts.previous else "",
    )
    writers = sorted({str(made.get("generator", "")) for made in report.generators.values()} - {""})
    if isinstance(report, BuildReport):
        card = benchmark_card(report, release)
        clean = sum(report.rows.get("clean", {}).values())
        said = responsible_ai.benchmark(clean, list(read), writers)
    else:
        card = training_card(report, release)
        said = responsible_ai.training(sum(row["train"] for row in report.rows.values()), writers)
    about = About(
        name=facts.kind,
        version=facts.version,
        description="Tool calling under deployment noise" if benchmark else "Training rows for tool calling",
        creator=citation.CREATOR,
        url=address,
        published=published,
        cite_as=bibtex,
        keywords=("tool calling", "robustness"),
        doi=facts.doi,
        responsible_ai=said,
    )
    made = {"README.md": card.encode(), "build_report.md": report.markdown().encode()}
    named = report.files | {name: hashlib.sha256(data).hexdigest() for name, data in made.items()}
    made["build_report.json"] = msgspec.structs.replace(report, files=named).json()
    return {**made, "croissant.json": croissant(folder, about, sha256), "LICENSE": licence_text()}


class Amended(NamedTuple):
    """What `amend` made."""

    report: BuildReport
    erratum: "Erratum"
    diff: "Diff"
    """Of the release against the new build."""
    next_version: str
    """The lowest version that the new build may be released under."""


def amend(
    folder: Path,
    out: Path,
    *,
    clean_id: str,
    answers: "Answers",
    reason: str,
    date: str,
    sources: Path | None = None,
    progress: Progress = lambda line: None,
) -> Amended:
    """`rbtc amend`: builds a release again with the golden answers of one sample corrected.

    The correction becomes a line of the new build's `errata.jsonl`, after those that the release has already.
    Sources are read where they are at hand, else the release's own clean rows; texts are those of the
    release, but for what no longer keeps a value of the new answer. Raises UserError.
    """
    from .builders import generations, rebuild
    from .builders.errata import amended
    from .builders.sources import Pool
    from .builders.sources.fetch import resolve_root
    from .io import errata, manifest
    from .release.diff import diff
    from .release.versions import next_version

    before = manifest.read(folder)
    if before.kind != "robustbench-tc":
        raise UserError(f"{folder} is a release of {before.kind}: only the benchmark has errata of its own")
    if found := manifest.problems(folder):
        raise UserError(f"{folder} is not as it was released: {found[0]}; `rbtc verify {folder}` lists all")
    own = rebuild.own_pool(folder)
    samples = {sample.clean_id: sample for sample in own.samples}
    if clean_id not in samples:
        raise unknown("clean id", clean_id, samples)
    now = samples[clean_id]
    if dumps(now.golden_answers) == dumps(answers):
        raise UserError(f"{clean_id}: these are its golden answers already")
    erratum = errata.Erratum(
        clean_id=clean_id,
        before=now.golden_answers,
        before_tool_index=now.gold_tool_index,
        after=answers,
        reason=reason,
        date=date,
    )
    told = rebuild.told_by(folder, rebuild.Told)
    try:
        root = None if told.profile == "bundled" else resolve_root(sources)
        pool = None
    except UserError:
        if sources is not None:
            raise
        root, pool = None, Pool(amended(own.samples, [erratum], self_check), own.issues)
    spec = BuildSpec(
        profile=told.profile,
        sources=root,
        codes=told.types,
        seed=told.seed,
        errata=(*errata.read(folder / errata.NAME), erratum),
        allow_missing=True,
    )
    report = build(
        spec,
        out,
        card=benchmark_card,
        accept=self_check,
        generators=generations.replay(folder / generations.NAME, strict=False),
        pool=pool,
        progress=progress,
    )
    changed = diff(folder, out)
    return Amended(report, erratum, changed, next_version(before.version, changed.step))
