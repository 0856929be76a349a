"""`rbtc build`: sources in, a release folder out."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError, unknown
from . import _console
from ._workers import Address, Engine, NumProc, workers

PROFILES = ("paper", "full", "bundled")


def build(
    context: typer.Context,
    out: Annotated[
        Path, typer.Option(help="The release folder. Named robustbench-tc it loads by that name.")
    ] = Path("robustbench-tc"),
    profile: Annotated[
        str, typer.Option(help="paper: the 199 samples. full: the whole pools. bundled: starter samples.")
    ] = "paper",
    sources: Annotated[
        Path | None, typer.Option(help="Upstream files (default: RBTC_SOURCES, else the fetched ones).")
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(help="Codes or components, also comma-separated; default all 22. Repeatable."),
    ] = None,
    generator: Annotated[
        list[str] | None,
        typer.Option(
            help="Who writes texts: recorded[:PATH], openai:MODEL[@BASE_URL[,BASE_URL…]] or none; TYPE=… for "
            "one type. Repeatable."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Moves positions and distractors, never clean rows.")] = 0,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Skip pairs whose text nobody wrote, instead of ending.")
    ] = False,
    max_requests: Annotated[
        int | None, typer.Option(min=0, help="Requests that the whole build may send to endpoints.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="In the currency of --price; the build stops before it.")
    ] = None,
    price: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Price per million prompt and completion tokens, for --max-cost."),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight, per address.")] = 16,
    store: Annotated[
        Path, typer.Option(help="Where answers of endpoints are kept: asked once, replayed ever after.")
    ] = Path(".rbtc/generations.jsonl"),
    num_proc: NumProc = 1,
    engine: Engine = "local",
    address: Address = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing release folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the build report as JSON.")] = False,
) -> None:
    """Build the benchmark: clean rows, 22 perturbation types and three tables as Parquet.

    Example: rbtc build --profile paper --sources ../shared/sources --out robustbench-tc
    """
    if context.invoked_subcommand:
        return
    from ..builders.build import BuildSpec, select_types
    from ..builders.generate import Settings
    from ..release import build_release

    if profile not in PROFILES:
        raise unknown("profile", profile, PROFILES)
    who = workers(num_proc, engine, address)
    spec = BuildSpec(
        profile=profile,  # type: ignore[arg-type]
        sources=sources,
        codes=select_types([name for item in types or () for name in item.split(",") if name]),
        seed=seed,
        generators=tuple(generator or ("recorded",)),
        settings=Settings(
            store=store,
            concurrency=concurrency,
            max_requests=max_requests,
            max_cost=max_cost,
            price=price,
            workers=who,
        ),
        allow_missing=allow_missing,
        workers=who,
    )
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: name a folder with --out")
    with _console.status("building") as progress:
        report = build_release(spec, out, force=force, progress=progress)
    if as_json:
        typer.echo(report.json().decode(), nl=False)
        return
    _console.out.print(_console.build_table(report))
    skips: dict[str, int] = {}
    for skip in report.skipped:
        skips[skip.reason] = skips.get(skip.reason, 0) + 1
    if skips:
        reasons = ", ".join(f"{reason} {n}" for reason, n in skips.items())
        _console.out.print(f"skipped pairs: {reasons} (each one in build_report.json)", markup=False)
    _console.out.print(f"{report.total} rows in {out}", markup=False)
    _console.out.print(
        f'load_dataset("{out.name}", "CD_AB", split="test") in {out.absolute().parent}', markup=False
    )
