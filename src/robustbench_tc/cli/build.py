"""`rbtc build`: sources in, a release folder out."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import UserError
from ..taxonomy import CLEAN
from . import _console
from ._generating import AsJson, Concurrency, MaxCost, MaxRequests, Price, Store
from ._mcp import TIMEOUT_S, McpEnv, McpTimeout, McpUrl, ToolsFromMcp, server
from ._replacing import DiscardChanges, Force
from ._words import one_of
from ._workers import Address, Engine, NumProc, workers

if TYPE_CHECKING:
    from ..builders.report import BuildReport

ProfileName = Annotated[
    Literal["paper", "full", "bundled"],
    one_of(
        "profile",
        "paper",
        "full",
        "bundled",
        help="paper: the 199 samples. full: the whole pools. bundled: starter samples.",
    ),
]
Cases = Annotated[
    Path | None,
    typer.Option(help="A cases file of your own tools (docs/own.md), instead of a profile."),
]
Sources = Annotated[
    Path | None, typer.Option(help="Upstream files (default: RBTC_SOURCES, else the fetched ones).")
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        help="Types (code, name or label), components, packs or levels; default: the core's 22. "
        "Comma-separated, repeatable."
    ),
]
Design = Annotated[
    Literal["factorial"] | None,
    one_of(
        "design",
        "factorial",
        help="factorial: a type of each component, and every mixture of them (docs/packs/mixed.md).",
    ),
]
Generator = Annotated[
    list[str] | None,
    typer.Option(
        help="Who writes texts: recorded[:PATH], openai:MODEL[@BASE_URL[,BASE_URL…]], rule (typing "
        "errors) or none; TYPE=… for one type. Repeatable."
    ),
]
AllowMissing = Annotated[
    bool, typer.Option("--allow-missing", help="Skip pairs whose text nobody wrote, instead of ending.")
]
Errata = Annotated[
    Path | None,
    typer.Option(help="Golden answers to correct: an errata.jsonl of `rbtc amend`."),
]


def build(
    context: typer.Context,
    out: Annotated[
        Path, typer.Option(help="The release folder. Named robustbench-tc it loads by that name.")
    ] = Path("robustbench-tc"),
    profile: ProfileName = "paper",
    cases: Cases = None,
    tools_from_mcp: ToolsFromMcp = False,
    mcp_url: McpUrl = "",
    mcp_env: McpEnv = None,
    mcp_timeout: McpTimeout = TIMEOUT_S,
    sources: Sources = None,
    types: Types = None,
    design: Design = None,
    generator: Generator = None,
    seed: Annotated[int, typer.Option(min=0, help="Moves positions and distractors, never clean rows.")] = 0,
    allow_missing: AllowMissing = False,
    max_requests: MaxRequests = None,
    max_cost: MaxCost = None,
    price: Price = None,
    concurrency: Concurrency = 16,
    store: Store = Path(".rbtc/generations.jsonl"),
    errata: Errata = None,
    num_proc: NumProc = 1,
    engine: Engine = "local",
    address: Address = None,
    force: Force = False,
    discard_changes: DiscardChanges = False,
    as_json: AsJson = False,
) -> None:
    """Build the benchmark: clean rows, 22 perturbation types and three tables as Parquet.

    Example: rbtc build --profile paper --sources ../shared/sources --out robustbench-tc
    """
    if context.invoked_subcommand:
        return
    from .. import api
    from ..api.own import few_cases

    if cases is not None and _is_given(context, "profile"):
        raise UserError("--profile is for the published benchmark: leave it out beside --cases")
    with _console.status("building", _console.written_whole(out, store)) as progress:
        report = api.build(
            out,
            profile=profile,
            sources=sources,
            cases=cases,
            server=server(context, tools_from_mcp, mcp_url, mcp_env, mcp_timeout),
            types=types or (),
            design=design,
            generator=generator or (),
            seed=seed,
            allow_missing=allow_missing,
            max_requests=max_requests,
            max_cost=max_cost,
            price=price,
            concurrency=concurrency,
            store=store,
            errata=errata,
            workers=workers(num_proc, engine, address),
            force=force,
            discard_changes=discard_changes,
            progress=progress,
        )
    if as_json:
        _console.json(report.json())
        return
    _print(report, out)
    if cases is not None and (few := few_cases(out, report)):
        from ..eval.stats.gate import ENOUGH

        counts = ", ".join(f"{component} {count}" for component, count in few.items())
        _console.warn(f"too few cases for the gate to pass, write more ({counts}; it takes {ENOUGH})")


def _print(report: "BuildReport", out: Path) -> None:
    _console.out.print(_console.build_table(report))
    left_out: Counter[str] = Counter()
    for by_reason in report.known_issues.values():
        left_out.update(by_reason)
    skips = Counter(skip.reason for skip in report.skipped)
    for what, found, place in (
        ("records left out", left_out, "known_issues"),
        ("skipped pairs", skips, "build_report.json"),
    ):
        if found:
            reasons = ", ".join(f"{reason} {n}" for reason, n in found.items())
            _console.out.print(f"{what}: {reasons} (each one in {place})", markup=False)
    _console.out.print(f"{report.total} rows in {out}", markup=False)
    config = next((code for code in ("CD_AB", *report.types) if code in report.configs), CLEAN)
    _console.out.print(
        f'load_dataset("{out.name}", "{config}", split="test") in {out.absolute().parent}', markup=False
    )


def _is_given(context: typer.Context, option: str) -> bool:
    """Whether an option stands on the command line."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"
