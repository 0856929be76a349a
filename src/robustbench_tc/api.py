"""What the command line does, as functions: a verb of `rbtc` here takes what the command takes.

`build`, `audit`, `release`, `publish`, `evaluate`, `score`, `report`, `compare` and `serve` print nothing and
end no process: they return what was made, tell how far they are to a function that they are given, and raise
`UserError` with one line for whatever the caller can put right.

This is also the one module that knows all rooms: what one room needs of another is handed over here, as a
function.
"""

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args

from .api_live import audit_live, build_live, live_defences, rebuild_live_of, render_live
from .api_own import NO_LICENCE, build_own, card_of, import_cases, init, lint, rebuild_own
from .api_proxy import ground, proxy_llm, proxy_run, score_journal, summarise_journal
from .compute.parallel import SERIAL, Workers
from .errors import UserError, need_extra, unknown
from .eval.callables.task import Reply, Task
from .schema import Message, dumps

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from .audits.judge import Judge, Recorded
    from .audits.provenance import Rebuild
    from .audits.report import AuditReport
    from .builders.build import BuildSpec
    from .builders.generate import Settings
    from .builders.report import BuildReport
    from .builders.sources import Profile
    from .builders.toolrl_dr import TrainingSpec
    from .builders.toolrl_report import TrainingReport
    from .eval.adapters.logs import Opened
    from .eval.compare import Comparison, PaperLine
    from .eval.evaluate import Evaluated, Names, evaluate
    from .eval.leaderboard.client import Submitted, submit
    from .eval.leaderboard.serve import serve
    from .eval.live.after import score_live, show_episode
    from .eval.live.evaluate import Played, run_live
    from .eval.live.report import report_live
    from .eval.report.content import Options, Report
    from .eval.stats.defences import DefenceTable
    from .eval.stats.gate import Verdict
    from .eval.stats.runs import Run, Subset
    from .eval.stats.summary import Convention
    from .eval.verdicts import score
    from .io.errata import Answers, Erratum
    from .io.manifest import Kind, Manifest, Previous
    from .own.mcp_tools import Server
    from .release.diff import Diff
    from .release.freeze import Facts
    from .release.publish import Published, publish

__all__ = [
    "Evaluated",
    "Played",
    "Published",
    "Reply",
    "Submitted",
    "Task",
    "UserError",
    "Workers",
    "amend",
    "audit",
    "build",
    "build_live",
    "compare",
    "compare_with_paper",
    "evaluate",
    "gate",
    "ground",
    "import_cases",
    "init",
    "lint",
    "live_defences",
    "proxy_llm",
    "proxy_run",
    "publish",
    "release",
    "report",
    "report_live",
    "run_live",
    "score",
    "score_journal",
    "score_live",
    "serve",
    "show_episode",
    "submit",
    "summarise_journal",
]
"""The verbs, and what they take and give; the rest is for other modules of the package."""

_ELSEWHERE = {
    "Evaluated": "eval.evaluate",
    "Played": "eval.live.evaluate",
    "Published": "release.publish",
    "Submitted": "eval.leaderboard.client",
    "evaluate": "eval.evaluate",
    "publish": "release.publish",
    "report_live": "eval.live.report",
    "run_live": "eval.live.evaluate",
    "score": "eval.verdicts",
    "score_live": "eval.live.after",
    "serve": "eval.leaderboard.serve",
    "show_episode": "eval.live.after",
    "submit": "eval.leaderboard.client",
}
"""Of `__all__`, what is imported when it is first asked for: no verb waits for the rooms of the others."""


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f".{_ELSEWHERE[name]}", __package__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


Progress: TypeAlias = Callable[[str], None]
"""Gets one short line at a time about what is being worked on."""

Conversations: TypeAlias = Callable[[], Iterable[tuple[str, Sequence[Message]]]]
"""Rows as (id, messages), read when they are needed."""

SOURCE_FILES_NAMED = 3
"""Source files that a message names before it says how many more there are."""

NO_LEAK_CHECK = "not done:"
"""How the note on a training build's leak check begins where there was none."""


def build(
    out: str | Path,
    *,
    profile: "Profile" = "paper",
    sources: Path | None = None,
    cases: Path | None = None,
    server: "Server | None" = None,
    types: "Names" = (),
    design: str | None = None,
    generator: Sequence[str] = (),
    seed: int = 0,
    allow_missing: bool = False,
    max_requests: int | None = None,
    max_cost: float | None = None,
    price: tuple[float, float] | None = None,
    concurrency: int = 16,
    store: Path = Path(".rbtc/generations.jsonl"),
    errata: Path | None = None,
    workers: Workers = SERIAL,
    force: bool = False,
    discard_changes: bool = False,
    progress: Progress = lambda line: None,
) -> "BuildReport":
    """`rbtc build`: writes the benchmark into the new folder `out`, all or nothing.

    `cases`: a cases file of one's own tools, instead of a profile of the benchmark; `server`: a live MCP
    server whose tools they name. `types`: codes, components, packs, levels and mixtures, by default all 22.
    `design`: `factorial`, whose cells are built beside the `types` that are named. `generator`: who writes
    texts, as on the command line; by default what ships with the package, and for `cases` honest rules.

    `max_cost` is in the currency of `price`, which is per million prompt and completion tokens; answers of
    endpoints are kept in `store` and never asked for twice. `workers` moves no byte.

    Raises UserError for a wrong option, sources that are not as pinned, a text that nobody wrote (unless
    `allow_missing`), a spent budget, and a folder that is there already (`force` replaces one of ours).

    >>> build("robustbench-tc", profile="bundled").total  # doctest: +SKIP
    """
    from .builders.build import BuildSpec, factorial, select_types
    from .builders.generate import Settings
    from .builders.sources import Profile
    from .eval.evaluate import words
    from .io.errata import read_file
    from .io.store import refuse_foreign

    out = Path(out)
    if profile not in get_args(Profile):
        raise unknown("profile", profile, get_args(Profile))
    if design not in (None, "factorial"):
        raise unknown("design", str(design), ("factorial",))
    refuse_foreign(store)
    if cases is not None:
        _refuse_beside_cases(sources=sources, errata=errata)
    spec = BuildSpec(
        profile=profile,
        sources=sources,
        codes=select_types([*words(types), *(factorial() if design else ())]),
        seed=seed,
        generators=tuple(generator) or ("recorded",),
        settings=Settings(
            store=store,
            concurrency=concurrency,
            max_requests=max_requests,
            max_cost=max_cost,
            price=price,
            workers=workers,
        ),
        allow_missing=allow_missing,
        errata=() if errata is None else read_file(errata),
        workers=workers,
    )
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: name a folder with --out")
    if cases is not None:
        replace = {"force": force, "discard_changes": discard_changes}
        return build_own(Path(cases), spec, out, server, generator=generator, progress=progress, **replace)
    if server is not None:
        raise UserError("--tools-from-mcp is for your own cases: name them with --cases")
    return build_release(spec, out, force=force, discard_changes=discard_changes, progress=progress)


def _refuse_beside_cases(**options: Path | None) -> None:
    for name, given in options.items():
        if given is not None:
            raise UserError(f"--{name} is for the published benchmark: leave it out beside --cases")


def build_release(
    spec: "BuildSpec",
    out: Path,
    *,
    force: bool = False,
    discard_changes: bool = False,
    progress: Progress = lambda line: None,
) -> "BuildReport":
    """`build` of a spec: the builder with the scorers' self-check of every golden answer, and the card."""
    from .builders.build import build
    from .dataset_cards.render import benchmark_card
    from .eval.validate import self_check, taken

    return build(
        spec,
        out,
        card=benchmark_card,
        accept=self_check,
        taken=taken,
        force=force,
        discard_changes=discard_changes,
        progress=progress,
    )


def build_training(
    spec: "TrainingSpec",
    out: Path,
    *,
    generator: Sequence[str] = ("none",),
    settings: "Settings | None" = None,
    sources: Path | None = None,
    tokens: Callable[[list[dict[str, str]]], int] | None = None,
    max_tokens: int = 2048,
    force: bool = False,
    discard_changes: bool = False,
    progress: Progress = lambda line: None,
) -> "TrainingReport":
    """`rbtc build toolrl-dr`: the training data, with every row's reward and leaks to the benchmark checked.

    `sources`: the benchmark's, for the leak check; by default those at hand, and without any the report says
    so. `tokens` counts a prompt's tokens; prompts over `max_tokens` are dropped. Raises UserError.
    """
    from .builders.generate import Settings, parse_generators
    from .builders.sources.fetch import default_root
    from .builders.toolrl_dr import build
    from .builders.toolrl_versions import Checks
    from .dataset_cards.training import training_card
    from .train_recipes.toolrl_dr.reward import earns_maximum

    generators = parse_generators(generator, settings=settings or Settings())
    root: Path | None = sources or default_root()
    if root is not None and not (root / "bfcl").is_dir():
        if sources is not None:
            raise UserError(f"no benchmark sources in {sources}: name their folder, or leave --sources out")
        root = None
    leaks, note = leaks_of(root, progress)
    return build(
        spec,
        out,
        checks=Checks(earns_maximum=earns_maximum, leaks=leaks, tokens=tokens, max_tokens=max_tokens),
        card=training_card,
        generators={kind: one for kind, one in generators.items() if one.label != "none"},
        leak_note=note,
        force=force,
        discard_changes=discard_changes,
        progress=progress,
    )


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
    from .audits.folder import Folder

    kind = Folder(folder).kind
    if kind == "live":
        replayed = {"worlds": worlds, "world_python": world_python, "sources": sources}
        return audit_live(folder, **replayed, progress=progress, files=files, green_only=green_only)  # type: ignore[arg-type]
    pools = kind == "benchmark"
    whole, why_not = sources_at_hand(sources, "full" if pools else "paper")
    from .audits import gate  # after the sources were looked at: these take their time
    from .builders import answerable
    from .builders.perturb import REGISTRY
    from .eval.agents import try_blind
    from .eval.validate import self_check
    from .train_recipes.toolrl_dr.reward import earns_maximum

    return gate.audit(
        folder,
        unit_checks=lambda clean, row: REGISTRY[row.type_code].check(clean, row),
        self_check=self_check,
        try_blind=try_blind,
        golds=answerable.classes,
        judge=make_judge(judge, store, max_requests, folder) if isinstance(judge, str) else judge,
        rebuild=rebuild_of(folder, sources, rlla),
        second_judge=None if second_judge is None else _second(second_judge, store, max_requests),
        benchmark_queries=_benchmark_queries(benchmark, whole),
        pool_queries=_of_sources(whole, "full") if pools else None,
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
    from .audits import gate

    return gate.audit_predictions(file, dataset)


def need_expectations() -> None:
    """Raises UserError naming the extra where Great Expectations is not installed."""
    if find_spec("great_expectations") is None:
        raise need_extra("great_expectations", "audit")


def make_judge(spec: str, store: Path, max_requests: int | None, folder: Path) -> "Judge":
    """The judge that `--judge` names, after the judgments that ship with the package. Raises UserError."""
    from .audits.judge import Chain

    name, _, path = spec.partition(":")
    if name == "recorded":
        return Chain(recorded_judge(), recorded_judge(Path(path))) if path else replayed_judge(folder)
    return Chain(recorded_judge(), live_judge(spec, store, max_requests))


def _second(spec: str, store: Path, max_requests: int | None) -> "Judge":
    """A judge of its own: a second opinion is not looked up among the first one's judgments."""
    name, _, path = spec.partition(":")
    if name == "recorded":
        return recorded_judge(Path(path) if path else None)
    return live_judge(spec, store, max_requests)


def live_judge(spec: str, store: Path, max_requests: int | None = None) -> "Judge":
    """A model behind an endpoint. Raises UserError."""
    from .audits.judge import EndpointJudge
    from .llm import parse_endpoint

    endpoint = parse_endpoint(spec)
    endpoint.resolved()  # a missing key is said before any work
    return EndpointJudge(endpoint, store=store, max_requests=max_requests)


def replayed_judge(folder: Path) -> "Judge":
    """The judgments that ship with the package, then those that an audit kept in the build."""
    from .audits.judge import Chain
    from .audits.judgments import Stored
    from .io.audit_files import JUDGMENTS

    stored = folder / JUDGMENTS
    return Chain(recorded_judge(), Stored(stored)) if stored.is_file() else recorded_judge()


def recorded_judge(path: Path | None = None) -> "Recorded":
    """The judgments that ship with the package, or those of a folder or file, found by the builder's keys."""
    from .audits.judge import Answer, Judgment, Recorded
    from .audits.rows import NewTool, Pair
    from .builders.generators.recorded import judgment_address, load_judgments, load_served
    from .builders.perturb.base import TextRequest

    known, served = load_judgments(path), load_served(path)
    pinned = path is None  # a file's judgments are its writer's word, whatever they are called in it
    name = "recorded" if path is None else f"file {path.name}"

    def find(pair: Pair) -> Judgment | None:
        request = TextRequest(kind=pair.kind, input=pair.before, tool=pair.tool, parameter=pair.parameter)
        found = known.get(judgment_address(request, pair.after))
        if found is None:
            return None
        return Judgment(found.score, found.reason, found.judge if pinned else name, pinned)

    def find_answer(tool: NewTool) -> Answer | None:
        found = served.get(tool.hash)
        if found is None or not found.parameters.issuperset(tool.own):
            return None  # no judge was shown such a tool, or such a parameter of it
        return Answer(found.serves, found.reason, found.judge if pinned else name, pinned)

    return Recorded(find, name, find_answer)


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
    """What the rows of sources ask, each of whose files is as pinned; None without sources."""
    if root is None:
        return None
    return lambda: iter(_asked(root.resolve(), profile))


@cache  # an audit after another in the same process: pinned files hold the same
def _asked(root: Path, profile: "Profile") -> tuple[tuple[str, Sequence[Message]], ...]:
    from .builders.sources import read

    return tuple((sample.id, sample.messages) for sample in read(root, profile).samples)


def rebuild_of(folder: Path, sources: Path | None = None, rlla: Path | None = None) -> "Rebuild":
    """How the build in `folder` is made again: from the sources where they are whole, else from itself.

    `rlla`: where ToolRL's files lie, for training data; default: in the sources. Raises UserError where
    `sources` are named and not whole.
    """
    from .audits.folder import Folder
    from .audits.provenance import Rebuild
    from .builders.rebuild import rebuild
    from .builders.sources import OWN_CASES
    from .dataset_cards.render import benchmark_card
    from .eval.validate import self_check, taken

    build = Folder(folder)
    if build.kind == "live":
        return rebuild_live_of(folder, sources)
    if build.kind == "training":
        return _training_rebuild_of(folder, sources, rlla)._replace(cards=_rendered_again)
    profile = str(build.report.get("profile"))
    if profile in ("bundled", OWN_CASES):
        root, origin, why_not = None, "the starter samples of the package", ""
    else:
        root, why_not = sources_at_hand(sources, "full" if profile == "full" else "paper")
        origin = "" if root is None else "the pinned sources"

    if profile == OWN_CASES:
        return Rebuild(rebuild_own, "the build's own clean rows", "", _rendered_again)

    def make(build: Path, out: Path) -> None:
        rebuild(build, out, sources=root, card=benchmark_card, accept=self_check, taken=taken)

    return Rebuild(make, origin, why_not, _rendered_again)


def fresh_rows(dataset: str, seed: int, out: Path) -> None:
    """Builds a benchmark (a folder, or `org/name@revision`) again from its own clean rows with another seed.

    Raises UserError where that cannot be.
    """
    from .builders.rebuild import rebuild
    from .dataset_cards.render import benchmark_card
    from .eval.validate import self_check, taken

    folder = dataset_folder(dataset)
    rebuild(folder, out, sources=None, card=benchmark_card, accept=self_check, taken=taken, seed=seed)


def _rendered_again(folder: Path) -> Mapping[str, bytes]:
    """The cards of a release, from its own manifest and reports. Raises UserError."""
    from .io import manifest
    from .release.freeze import facts_of

    return render(folder, facts_of(folder, manifest.read(folder)))


def _training_rebuild_of(folder: Path, sources: Path | None, rlla: Path | None) -> "Rebuild":
    from .audits.provenance import Rebuild
    from .builders.rebuild import TrainingSettings, has_rlla, rebuild_training, settings_of
    from .builders.sources.fetch import default_root
    from .builders.toolrl_versions import Checks
    from .dataset_cards.training import training_card
    from .train_recipes.toolrl_dr.reward import earns_maximum

    try:
        settings = settings_of(folder, TrainingSettings)
    except UserError as error:
        return Rebuild(None, why_not=str(error))
    leak_checked = not settings.leak_check.startswith(NO_LEAK_CHECK)
    whole, why_not = sources_at_hand(sources, "full") if leak_checked else (None, "")
    if settings.with_tokenizer:
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
    own_data: bool = False,
    key: "Ed25519PrivateKey | None" = None,
    sources: Path | None = None,
    benchmark: Path | None = None,
    training: Path | None = None,
    worlds: Sequence[str] = (),
    world_python: str | None = None,
    progress: Progress = lambda line: None,
) -> "Manifest":
    """`rbtc release`: audits the build, replaying its stored judgments, and freezes what passed.

    `previous`: a folder or `org/name@v1.0.0` that this version follows; a version that says less than the
    data have changed is refused. `key` signs the manifest. `sources`, `benchmark`, `training`, `worlds` and
    `world_python`: as for `audit`. `own_data`: a dataset of own tools may leave your hands. Raises UserError.
    """
    from .io import manifest
    from .release import freeze

    version = manifest.check_version(version)
    followed = None if previous is None else _follows(build_folder, version, previous)

    def gate(folder: Path) -> None:
        given = {"sources": sources, "benchmark": benchmark, "training": training}
        _audit_copy(build_folder, folder, progress, **given, worlds=worlds, world_python=world_python)

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
        own_data=own_data,
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


def _audit_copy(build_folder: Path, folder: Path, progress: Progress, **given: Any) -> None:
    """Audits the copy of a build in `folder`, with what else `audit` is `given`; the reports go there.

    UserError for a missing judgment.
    """
    import msgspec

    from .audits import gate
    from .io.audit_files import JUDGMENTS

    stored = folder / JUDGMENTS
    files: dict[str, bytes] = {}
    report = audit(
        folder,
        judge=replayed_judge(folder),
        **given,
        progress=progress,
        files=files,
        green_only=True,  # a red one is not released: nobody would see them
    )
    if missing := report.unjudged():
        raise UserError(
            f"{build_folder}: nobody judged {', '.join(f'{code} ({n:,})' for code, n in missing.items())}: "
            f"run `rbtc audit {build_folder} --judge MODEL@URL`, which keeps its judgments in the build"
        )
    stored.unlink(missing_ok=True)  # the copy's: the audit writes them again
    gate.write(msgspec.structs.replace(report, name=build_folder.resolve().name), folder, files)


def render(folder: Path, facts: "Facts") -> Mapping[str, bytes]:
    """The files of a release that hold its version: cards and reports, croissant.json, the licence."""
    import hashlib

    import msgspec

    from .builders.report import BuildReport
    from .builders.sources.pins import pins
    from .builders.toolrl_report import TrainingReport
    from .dataset_cards import responsible_ai
    from .dataset_cards.checkpoint import checkpoint_card
    from .dataset_cards.croissant import About, croissant
    from .dataset_cards.facts import release_facts
    from .dataset_cards.training import training_card
    from .io import citation
    from .release.freeze import OWN_PROFILE, licence_text

    if facts.kind == "checkpoint":
        return {"README.md": checkpoint_card(facts.build, facts.version).encode()}
    if facts.kind == "robustbench-tc-live":
        return render_live(folder, facts)
    benchmark = facts.kind == "robustbench-tc"
    built = {**facts.build, "dataset_version": facts.version}
    report: BuildReport | TrainingReport
    try:
        report = msgspec.convert(built, BuildReport) if benchmark else msgspec.convert(built, TrainingReport)
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
        card = card_of(folder, report, release)
        clean = sum(report.rows.get("clean", {}).values())
        said = responsible_ai.benchmark(clean, list(read), writers)
    else:
        card = training_card(report, release)
        said = responsible_ai.training(sum(row["train"] for row in report.rows.values()), writers)
    own = isinstance(report, BuildReport) and report.profile == OWN_PROFILE
    licence = NO_LICENCE if own else licence_text()
    description = "Tool calling under deployment noise" if benchmark else "Training rows for tool calling"
    about = About(
        name=facts.kind,
        version=facts.version,
        description="Requests to somebody's own tools under deployment noise" if own else description,
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
    return {**made, "croissant.json": croissant(folder, about, sha256), "LICENSE": licence}


class Amended(NamedTuple):
    """What `amend` made."""

    report: "BuildReport"
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
    from .builders.build import BuildSpec, build
    from .builders.errata import amended
    from .builders.sources import Pool
    from .builders.sources.fetch import resolve_root
    from .dataset_cards.render import benchmark_card
    from .eval.validate import self_check, taken
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
    settings = rebuild.settings_of(folder, rebuild.BuildSettings)
    try:
        root = None if settings.profile == "bundled" else resolve_root(sources)
        pool = None
    except UserError:
        if sources is not None:
            raise
        root, pool = None, Pool(amended(own.samples, [erratum], self_check), own.issues)
    spec = BuildSpec(
        profile=settings.profile,
        sources=root,
        codes=settings.types,
        seed=settings.seed,
        errata=(*errata.read(folder / errata.NAME), erratum),
        allow_missing=True,
    )
    report = build(
        spec,
        out,
        card=benchmark_card,
        accept=self_check,
        taken=taken,
        generators=generations.replay(folder / generations.NAME, strict=False),
        pool=pool,
        progress=progress,
    )
    changed = diff(folder, out)
    return Amended(report, erratum, changed, next_version(before.version, changed.step))


# --- answers ------------------------------------------------------------------------------------------


def gate(
    run: "str | Path | Run",
    against: "str | Path | Run | None" = None,
    *,
    max_drop: float = 0.05,
    components: "Mapping[str, float | None] | None" = None,
    strict: bool = False,
    allow_missing: bool = False,
    subset: "Subset" = "all",
) -> "Verdict":
    """`rbtc gate`: whether a scored run lost more than it may; `exit_code` is the command's.

    Against its own clean rows, or `against` another run of the same dataset. `components`: those that are
    asked for, each with its own `max_drop` or None; by default all of them. Raises UserError for runs that
    cannot be held against each other.

    >>> gate("runs/mine", "runs/released").outcome  # doctest: +SKIP
    """
    from .eval.gate import judge
    from .eval.stats.runs import Run, read

    new = run if isinstance(run, Run) else read(run)
    base = against if isinstance(against, Run) or against is None else read(against)
    return judge(
        new,
        base,
        max_drop=max_drop,
        components=components,
        strict=strict,
        allow_missing=allow_missing,
        subset=subset,
    )


def compare(
    a: "str | Path | Run",
    b: "str | Path | Run",
    *,
    subset: "Subset" = "all",
    log_keys: Sequence[str] = (),
    progress: Progress = lambda line: None,
) -> "Comparison":
    """`rbtc compare A B`: whether B is better than A, paired over the rows that both answered.

    `a`, `b`: scored run folders, logs of inspect_ai (`.eval`), or runs that were read. `log_keys`: as on the
    command line. Shares are from 0 to 1, intervals hold 95 %. `progress` gets a line before each value.
    Raises UserError for a run that is not scored, a log that cannot be read, and for runs of different
    datasets or without a common row.
    """
    import msgspec

    from .eval.compare import compare_runs

    progress("reading the runs")
    (first, second), notes = _runs((a, b), log_keys)
    found = compare_runs(first, second, subset=subset, progress=progress)
    return msgspec.structs.replace(found, notes=(*notes, *found.notes))


def defences(base: "str | Path | Run", runs: "Sequence[str | Path | Run]") -> "DefenceTable":
    """`rbtc defences BASE RUN…`: what defended runs recover of each component's Δ, at what harm and price.

    Raises UserError for a run that is not scored, has no defences (or `base`: has some), or is of other rows
    or another model.
    """
    from .eval.stats.defences import table

    first, *others = _runs((base, *runs))[0]
    return table(first, others)


def compare_with_paper(
    run: "str | Path | Run", model: str, *, subset: "Subset" = "all", log_keys: Sequence[str] = ()
) -> "Sequence[PaperLine]":
    """`rbtc compare A --vs paper:MODEL`: a run beside one of the paper's models, unpaired.

    Raises UserError for a run that is not scored and for a model that the paper has not.
    """
    from .eval.compare import beside_paper

    return beside_paper(_runs((run,), log_keys)[0][0], model, subset=subset)


def _runs(
    of: "Sequence[str | Path | Run]", log_keys: Sequence[str] = ()
) -> "tuple[list[Run], tuple[str, ...]]":
    """Runs from what was given, and what has to be said of logs among it."""
    from .eval.adapters.logs import opened

    with opened([str(one) for one in of if isinstance(one, str | Path)], log_keys) as found:
        named = iter([one.read() for one in found])
        notes = tuple(note for one in found for note in one.notes)
    return [next(named) if isinstance(one, str | Path) else one for one in of], notes


def report(
    runs: "Sequence[str | Path]",
    out: str | Path | None = None,
    *,
    baseline: str | None = None,
    ci: "Convention" = "cluster",
    subset: "Subset" = "all",
    release: Path | None = None,
    allow_missing: bool = False,
    browser: bool = True,
    discard_changes: bool = False,
    log_keys: Sequence[str] = (),
    progress: Progress = lambda line: None,
) -> "Report":
    """`rbtc report`: the paper's tables and figures over scored runs, and over logs of inspect_ai (`.eval`).

    `out`: a folder for report.html, .md, .csv and .json; None writes nothing. `baseline`: the model or run
    that differences are marked against. `ci`: `cluster` takes whole samples as units, `paper` takes rows as
    independent. `release`: names rows that a run lacks. `browser`: rows and replies go into the page, from
    `release`, else from the dataset folder that the runs name, if it is there.
    Raises UserError for a run that is not scored or lacks rows (unless `allow_missing`), and for a folder
    that holds anything but a report.
    """
    from .eval.adapters.logs import opened
    from .eval.report import content
    from .io.files import check_dir

    folder = None if out is None else Path(out)
    if folder is not None:  # before minutes of work
        check_dir(folder, kind="report", force=True, discard_changes=discard_changes)
    options = content.Options(convention=ci, subset=subset, allow_missing=allow_missing, baseline=baseline)
    progress(f"reading {len(runs)} runs")
    with opened([str(run).rstrip("/") or "/" for run in runs], log_keys) as found:
        return _report(found, options, folder, release, browser, discard_changes, progress)


def _report(
    runs: "Sequence[Opened]",
    options: "Options",
    folder: Path | None,
    release: Path | None,
    browser: bool,
    discard_changes: bool,
    progress: Progress,
) -> "Report":
    import msgspec

    from .eval.report import content, page
    from .eval.report.samples import embed
    from .sql.query import Inputs, connect, text_of

    read = [one.read() for one in runs]
    inputs = Inputs(
        runs=[one.folder for one in runs],
        release=None if release is None else str(release),
        subset=options.subset,
        allow_missing=options.allow_missing,
    )
    expected: list[tuple[str, str]] | None = None
    marts: dict[str, list[dict[str, Any]]] = {}
    named = {one.folder: one.name for one in runs}
    with connect(inputs, check=False) as connection:  # reading a run has looked for doubled rows
        if release is not None:
            found = connection.sql("select clean_id, type_code from stg_release").fetchall()
            expected = [(str(clean_id), str(code)) for clean_id, code in found]
        for mart in content.MARTS:
            rows = connection.sql(text_of(mart, inputs)).to_arrow_table().to_pylist()
            marts[mart] = [{**row, "run": named[row["run"]]} if "run" in row else row for row in rows]
    progress("counting")
    made = content.build(read, options, marts=marts, expected=expected)
    made = msgspec.structs.replace(made, gaps=(*(note for one in runs for note in one.notes), *made.gaps))
    if folder is not None:
        progress("writing the page")
        of = {
            one.name: msgspec.structs.replace(run, path=one.folder)
            for one, run in zip(runs, read, strict=True)
        }
        samples = page.NO_ROWS
        if browser:
            samples = embed([of[m.run] for m in made.models], [m.label for m in made.models], release)
        page.write(made, folder, samples, discard_changes=discard_changes)
    return made
