"""`build`: the benchmark or a dataset of own cases, live rows, training data."""

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from .. import taxonomy
from ..errors import UserError
from ..option import Option, Tell, check, listed, silent
from . import options
from .own import server_of

if TYPE_CHECKING:
    from ..builders.build import BuildSpec
    from ..builders.own.dataset import OwnCases
    from ..builders.report import BuildReport, LiveReport
    from ..builders.toolrl_report import TrainingReport

STORE = Path(".rbtc/generations.jsonl")


def _share(words: Sequence[str]) -> Fraction:
    """An exact share: 0.3 is three tenths, not the nearest binary fraction. Raises UserError."""
    try:
        return Fraction(words[-1])
    except (ValueError, ZeroDivisionError):
        raise UserError(f"{words[-1]!r} is not a number: give a share from 0 to 1") from None


def build(
    out: Annotated[Path | str, options.OUT] = Path("robustbench-tc"),
    *,
    profile: Annotated[Literal["paper", "full", "bundled"] | None, options.PROFILE] = None,
    cases: Annotated[
        Path | None, Option(help="A cases file of your own tools (docs/own.md), instead of a profile.")
    ] = None,
    sources: Annotated[Path | None, options.SOURCES] = None,
    types: Annotated[str | Sequence[str], options.TYPES] = (),
    design: Annotated[
        Literal["factorial"] | None,
        Option(help="factorial: a type of each component, and every mixture of them (docs/packs/mixed.md)."),
    ] = None,
    generator: Annotated[Sequence[str], options.GENERATOR] = (),
    seed: Annotated[int, options.SEED] = 0,
    allow_missing: Annotated[bool, options.ALLOW_MISSING] = False,
    errata: Annotated[
        Path | None, Option(help="Golden answers to correct: an errata.jsonl of `rbtc data amend`.")
    ] = None,
    max_requests: Annotated[int | None, options.MAX_REQUESTS] = None,
    max_cost: Annotated[float | None, options.MAX_COST] = None,
    price: Annotated[tuple[float, float] | None, options.PRICE] = None,
    concurrency: Annotated[int, options.CONCURRENCY] = 16,
    store: Annotated[Path, options.STORE] = STORE,
    mcp_command: Sequence[str] = (),
    mcp_url: Annotated[str, options.MCP_URL] = "",
    mcp_env: Annotated[Sequence[str], options.MCP_ENV] = (),
    mcp_timeout: Annotated[float, options.MCP_TIMEOUT] = 60.0,
    num_proc: Annotated[int, options.NUM_PROC] = 1,
    engine: Annotated[Literal["local", "ray"], options.ENGINE] = "local",
    address: Annotated[str | None, options.ADDRESS] = None,
    force: Annotated[bool, options.FORCE] = False,
    discard_changes: Annotated[bool, options.DISCARD_CHANGES] = False,
    progress: Tell = silent,
    say: Tell = silent,
) -> "BuildReport":
    """Build the benchmark as Parquet: clean rows, the core's 22 perturbation types and three tables.

    With --cases you can add the tools of an MCP server: end the line with -- COMMAND ARG… (docs/own.md).

    Example: rbtc build --profile paper --sources ../shared/sources --out robustbench-tc

    Raises UserError for a wrong option, sources that differ from their pins, a missing text (unless
    `allow_missing`), an exhausted budget, and an existing folder (`force` replaces one that rbtc wrote).

    >>> build("robustbench-tc", profile="bundled").total  # doctest: +SKIP
    """
    check(build, locals())
    from ..builders.build import BuildSpec, factorial, select_types
    from ..builders.errata_files import read_file
    from ..builders.generate import Settings
    from ..builders.own.dataset import BY_RULE, read_own
    from ..builders.sources import OWN_CASES
    from ..llm.store import refuse_foreign

    refuse_foreign(store)
    if small := taxonomy.few(names := taxonomy.split(types)):
        kinds = ", ".join(f"{kind.code} {kind.rows.paper}" for kind in small)
        progress(f"{len(small)} types left out, too small in profile paper: {kinds} (name one to build it)")
    server = server_of(mcp_command, mcp_url, mcp_env, mcp_timeout)
    own = None
    if cases is not None:
        beside = {"profile": profile, "sources": sources, "errata": errata}
        if wrong := [name for name, given in beside.items() if given is not None]:
            raise UserError(f"--{wrong[0]} is for the published benchmark: leave it out with --cases")
        own = read_own(Path(cases), server, progress)
    elif server is not None:
        raise UserError("an MCP server is for your own cases: name them with --cases")
    workers = options.workers_of(num_proc, engine, address)
    spec = BuildSpec(
        profile=profile or "paper" if own is None else OWN_CASES,
        sources=sources,
        codes=select_types([*names, *(factorial() if design else ())]),
        seed=seed,
        generators=(*(("recorded",) if own is None else BY_RULE), *generator),
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
    out = Path(out)
    replace = {"force": force, "discard_changes": discard_changes}
    report = build_release(spec, out, own=own, progress=progress, **replace)
    first = next((code for code in ("CD_AB", *report.types) if code in report.configs), taxonomy.CLEAN)
    say(_where(out, report.total, first))
    if own is not None and (few := few_cases(out, report)):
        from ..eval.stats.gate import ENOUGH

        counts = ", ".join(f"{component} {count}" for component, count in few.items())
        say(f"warning: too few cases for the gate to pass; write more ({counts}; it takes {ENOUGH})")
    return report


def build_release(
    spec: "BuildSpec",
    out: Path,
    *,
    own: "OwnCases | None" = None,
    force: bool = False,
    discard_changes: bool = False,
    progress: Tell = silent,
) -> "BuildReport":
    """`build` of a spec: the builder and the card."""
    from ..builders.build import build
    from ..dataset_cards.render import benchmark_card, own_card
    from ..own.book import NAME

    return build(
        spec,
        out,
        card=benchmark_card if own is None else partial(own_card, book=own.book),
        pool=None if own is None else own.pool,
        beside={} if own is None else {NAME: own.book.json()},
        force=force,
        discard_changes=discard_changes,
        progress=progress,
    )


def few_cases(build: Path, report: "BuildReport") -> dict[str, int]:
    """Components of a build of own cases that have too few cases for the gate to pass, with how many."""
    from ..eval.score.category import case_of
    from ..eval.stats.gate import ENOUGH
    from ..io.parquet import read_rows, shards

    skipped = {(skip.clean_id, skip.type_code) for skip in report.skipped}
    rows = list(read_rows(shards(build / taxonomy.CLEAN), ["clean_id", "category"]))
    found = dict[str, int]()
    for component in taxonomy.COMPONENTS:
        codes = [code for code in report.types if taxonomy.get(code).component == component]
        cases = {
            case_of(row["clean_id"], row["category"])
            for row in rows
            if any((row["clean_id"], code) not in skipped for code in codes)
        }
        if 0 < len(cases) < ENOUGH:
            found[component] = len(cases)
    return found


def _where(out: Path, rows: int, config: str) -> str:
    """Where the rows are and how they are loaded."""
    return f'{rows:,} rows in {out}: load_dataset("{out.name}", "{config}", split="test") beside it'


def build_live(
    out: Annotated[Path | str, options.OUT] = Path("robustbench-tc-live"),
    *,
    profile: Annotated[Literal["bundled", "lite", "full"], options.PROFILE] = "bundled",
    worlds: Annotated[Sequence[str], options.WORLDS] = (),
    kinds: Annotated[
        Sequence[str],
        Option(help="Kinds of faults (default: the profile's); comma-separated, repeatable.", read=listed),
    ] = (),
    types: Annotated[str | Sequence[str], options.TYPES] = (),
    seed: Annotated[int, options.SEED] = 0,
    sources: Annotated[Path | None, options.SOURCES] = None,
    world_python: Annotated[str | None, options.WORLD_PYTHON] = None,
    num_proc: Annotated[int, options.NUM_PROC] = 1,
    force: Annotated[bool, options.FORCE] = False,
    discard_changes: Annotated[bool, options.DISCARD_CHANGES] = False,
    progress: Tell = silent,
    say: Tell = silent,
) -> "LiveReport":
    """Build the live dataset: tasks in worlds that calls change, and the same tasks with a fault.

    --worlds replaces the profile's worlds. --types takes the core's types that add tools to the registry
    (same_name_A, flood_3, …), faults of running systems (outage, dropped_tool, truncated, empty_result,
    oversized), live_cascade (two and three faults per episode) and forbidden (a tool that must not be
    called); these are built in addition to --kinds.

    Example: rbtc build live --worlds my_world.py --out my-live

    Raises UserError for an unknown name, a file without a world, a task whose gold fails, and an existing
    folder (`force` replaces one that rbtc wrote).

    >>> build_live("robustbench-tc-live").total  # doctest: +SKIP
    """
    from ..builders.live.build import LiveSpec, build
    from ..dataset_cards.live import live_card

    spec = LiveSpec(
        profile=profile,
        worlds=tuple(worlds),
        kinds=tuple(kinds),
        types=tuple(taxonomy.split(types)),
        seed=seed,
        sources=sources,
        python=world_python,
        workers=options.workers_of(num_proc),
    )
    report = build(
        spec, Path(out), card=live_card, force=force, discard_changes=discard_changes, progress=progress
    )
    say(_where(Path(out), report.total, "tasks"))
    return report


def build_training(
    out: Annotated[Path | str, options.OUT] = Path("toolrl-dr"),
    *,
    rlla: Annotated[Path | None, options.RLLA] = None,
    sources: Annotated[Path | None, options.SOURCES] = None,
    configs: Annotated[
        Sequence[str],
        Option(help="full, mixed, retry, paft (default: all); comma-separated, repeatable.", read=listed),
    ] = (),
    ratio: Annotated[
        Fraction, Option(help="Perturbed share of mixed (default: 0.5).", read=_share)
    ] = Fraction(1, 2),
    alpha: Annotated[
        Fraction, Option(help="Perturbed share of paft (default 0.3); 0 is plain fine-tuning.", read=_share)
    ] = Fraction(3, 10),
    copies: Annotated[int, Option(help="Differently perturbed copies of each train row.")] = 1,
    types: Annotated[str | Sequence[str], options.TYPES] = (),
    counterbalance: Annotated[bool, Option(help="Swap the offers in about half of the priced rows.")] = False,
    generator: Annotated[Sequence[str], options.GENERATOR] = ("none",),
    seed: Annotated[int, options.SEED] = 0,
    max_requests: Annotated[int | None, options.MAX_REQUESTS] = None,
    max_cost: Annotated[float | None, options.MAX_COST] = None,
    price: Annotated[tuple[float, float] | None, options.PRICE] = None,
    concurrency: Annotated[int, options.CONCURRENCY] = 16,
    store: Annotated[Path, options.STORE] = STORE,
    retry_probability: Annotated[float, Option(help="Share of rows with a call that get an error.")] = 1.0,
    retry_position: Annotated[int, Option(help="Tool turn that gets the error, from 1.")] = 1,
    tokenizer: Annotated[
        Path | None, Option(help="The model's tokenizer folder, to drop prompts over --max-prompt-length.")
    ] = None,
    max_prompt_length: Annotated[int, Option(help="Longest prompt, in tokens.")] = 2048,
    num_proc: Annotated[int, options.NUM_PROC] = 1,
    engine: Annotated[Literal["local", "ray"], options.ENGINE] = "local",
    address: Annotated[str | None, options.ADDRESS] = None,
    force: Annotated[bool, options.FORCE] = False,
    discard_changes: Annotated[bool, options.DISCARD_CHANGES] = False,
    progress: Tell = silent,
    say: Tell = silent,
) -> "TrainingReport":
    """Build the domain-randomized training data: full, mixed, retry and paft as Parquet.

    Rows draw from the core's 16 static types unless --types names others. The leak check needs the
    benchmark's --sources; without them it is skipped, and the report says so.

    Example: rbtc build toolrl-dr --rlla ../shared/sources --out toolrl-dr

    Raises UserError.
    """
    from ..audits import contamination
    from ..builders.generate import Settings, parse_generators
    from ..builders.sources.upstream import default_root, resolve_root
    from ..builders.toolrl_dr import build
    from ..builders.toolrl_spec import CONFIGS, TrainingSpec, prompt_tokens
    from ..builders.toolrl_versions import Checks
    from ..dataset_cards.training import training_card
    from ..llm.store import refuse_foreign

    refuse_foreign(store)
    workers = options.workers_of(num_proc, engine, address)
    spec = TrainingSpec(
        rlla=rlla or resolve_root(sources) / "toolrl" / "dataset",
        configs=tuple(configs) or CONFIGS,
        types=tuple(taxonomy.split(types)),
        seed=seed,
        ratio=ratio,
        alpha=alpha,
        copies=copies,
        counterbalance=counterbalance,
        retry_probability=retry_probability,
        retry_position=retry_position,
        workers=workers,
    )
    settings = Settings(
        store=store,
        concurrency=concurrency,
        max_requests=max_requests,
        max_cost=max_cost,
        price=price,
        workers=workers,
    )
    generators = parse_generators(generator, settings=settings)
    root: Path | None = sources or default_root()
    if root is not None and not (root / "bfcl").is_dir():
        if sources is not None:
            raise UserError(f"no benchmark sources in {sources}: name their folder, or leave --sources out")
        root = None
    leaks, note = contamination.leaks_of(root, progress)
    report = build(
        spec,
        Path(out),
        checks=Checks(
            leaks=leaks,
            tokens=None if tokenizer is None else prompt_tokens(tokenizer),
            max_tokens=max_prompt_length,
        ),
        card=training_card,
        generators={kind: one for kind, one in generators.items() if one.label != "none"},
        leak_note=note,
        force=force,
        discard_changes=discard_changes,
        progress=progress,
    )
    say(f'load_dataset("{Path(out).name}", "full") in {Path(out).absolute().parent}')
    if report.unused:
        say(f"warning: no row was made of {', '.join(report.unused)} (build_report.md says why)")
    return report
