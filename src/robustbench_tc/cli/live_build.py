"""`rbtc build live`: worlds and their tasks in, a folder of clean and faulted rows out."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import typer

from .. import taxonomy
from . import _console
from ._generating import AsJson
from ._replacing import DiscardChanges, Force
from ._words import one_of
from ._workers import NumProc, workers

Out = Annotated[
    Path, typer.Option(help="The folder to write. Named robustbench-tc-live it loads by that name.")
]
ProfileName = Annotated[
    Literal["bundled", "lite", "full"],
    one_of(
        "profile",
        "bundled",
        "lite",
        "full",
        help="bundled: our worlds. lite: BFCL's base tasks, one fault each. full: all of BFCL's.",
    ),
]
World = Annotated[
    list[str] | None,
    typer.Option(
        "--world",
        help="orders, calendar, bfcl, or a world's Python file; in place of the profile's. Repeatable.",
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(help="Kinds of faults, also comma-separated; default: all. Repeatable."),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        help="Core types that put tools into the registry, beside the kinds (same_name_A, flood_3, …); also "
        "comma-separated. Repeatable."
    ),
]
Sources = Annotated[
    Path | None,
    typer.Option(help="Upstream files of BFCL (default: RBTC_SOURCES, else the fetched ones)."),
]
WorldPython = Annotated[
    str | None, typer.Option(help="The Python that has BFCL's classes (default: that of make env-live).")
]


def build_live(
    out: Out = Path("robustbench-tc-live"),
    profile: ProfileName = "bundled",
    world: World = None,
    kinds: Kinds = None,
    types: Types = None,
    sources: Sources = None,
    world_python: WorldPython = None,
    seed: Annotated[int, typer.Option(min=0, help="Moves where, how often and with what faults happen.")] = 0,
    num_proc: NumProc = 1,
    force: Force = False,
    discard_changes: DiscardChanges = False,
    as_json: AsJson = False,
) -> None:
    """Build the live dataset: tasks in worlds that calls change, and the same tasks with a fault.

    Example: rbtc build live --world my_world.py --out my-live
    """
    from .. import api

    with _console.status("building", _console.written_whole(out)) as progress:
        report = api.build_live(
            out,
            profile=profile,
            worlds=tuple(world or ()),
            kinds=tuple(_split(kinds)),
            types=tuple(taxonomy.split(types or ())),
            seed=seed,
            sources=sources,
            python=world_python,
            workers=workers(num_proc, "local", None),
            force=force,
            discard_changes=discard_changes,
            progress=progress,
        )
    if as_json:
        _console.json(report.json())
        return
    from rich.markdown import Markdown

    _console.out.print(Markdown(report.markdown()))
    reasons = Counter(skip.reason for skip in report.skipped)
    if reasons:
        listed = ", ".join(f"{reason} {n}" for reason, n in reasons.items())
        _console.out.print(
            f"tasks without a row of a kind: {listed} (each in build_report.json)", markup=False
        )
    _console.out.print(f"{report.total} rows in {out}", markup=False)
    _console.out.print(
        f'load_dataset("{out.name}", "tasks", split="test") in {out.absolute().parent}', markup=False
    )


def _split(values: list[str] | None) -> list[str]:
    return [name.strip() for value in values or () for name in value.split(",") if name.strip()]
