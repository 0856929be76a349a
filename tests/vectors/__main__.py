"""Holds parser, scorers and reward against oracle vectors; exit 1 if a row disagrees in an unlisted way.

    python -m tests.vectors DIR [--show N] [--world-python PYTHON]

BFCL's multi-turn rows are carried out in its world (`make env-live`); without it they are not checked.
"""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from robustbench_tc.builders.live import bfcl
from robustbench_tc.cli import _console
from robustbench_tc.errors import UserError
from robustbench_tc.worlds import find

from ..worlds.bfcl_replays import bfcl_data
from . import CHECKS, MULTI_TURN, FileResult, run_vectors
from .bfcl_multi_turn import MultiTurn


def main(
    folder: Annotated[Path, typer.Argument(help="Folder of *.jsonl vector files.")],
    show: Annotated[int, typer.Option(help="Print the first so many unlisted rows.")] = 0,
    world_python: Annotated[str | None, typer.Option(help="A Python with bfcl-eval.")] = None,
) -> None:
    """Holds parser, scorers and reward against oracle vectors."""
    try:
        results = checked(folder, world_python)
    except UserError as error:
        sys.exit(str(error))
    for result in results:
        outcomes = ", ".join(f"{name} {count}" for name, count in sorted(result.outcomes.items()))
        _console.echo(f"{result.name}: {result.rows} rows: {outcomes}")
        for style in result.replies.styles if result.replies else ():
            share = "recall" if style.kind == "call" else "false acceptance"
            _console.echo(f"    {style.style}: {style.replies} replies, {share} {style.share:.3f}")
    unlisted = [(result.name, row) for result in results for row in result.unlisted]
    for name, row in unlisted[:show]:
        _console.echo(f"{name}: {msgspec.json.encode(row).decode()}")
    sys.exit(bool(unlisted))


def checked(folder: Path, world_python: str | None) -> list[FileResult]:
    """The files, with BFCL's world where there is one; a Python that is named has to have it."""
    checks = dict(CHECKS)
    with ExitStack() as worlds:
        if any(folder.glob(f"{MULTI_TURN}*.jsonl")):
            try:
                python = find.bfcl_python(world_python)
                world = MultiTurn(bfcl.tasks_in(bfcl_data(python)), find.find(find.BFCL, python=python))
                checks[MULTI_TURN] = worlds.enter_context(world)
            except UserError as reason:
                if world_python is not None:
                    raise
                _console.echo(f"{MULTI_TURN}*.jsonl: not checked: {reason}", stderr=True)
        return run_vectors(folder, checks)


if __name__ == "__main__":
    typer.run(main)
