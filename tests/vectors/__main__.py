"""Holds parser, scorers and reward against oracle vectors; exit 1 if a row disagrees in an unlisted way.

    python -m tests.vectors DIR [--show N] [--world-python PYTHON]

BFCL's multi-turn rows are carried out in its world (`make env-live`); without it they are not checked.
"""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

import msgspec
from rich.table import Table

from robustbench_tc.builders.live.bfcl import tasks_in
from robustbench_tc.cli import _console
from robustbench_tc.errors import UserError
from robustbench_tc.worlds import find

from ..worlds.bfcl_replays import bfcl_data
from . import CHECKS, MULTI_TURN, FileResult, run_vectors
from .bfcl_multi_turn import MultiTurn
from .replies import ReplyResult


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder of *.jsonl vector files")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N unlisted rows")
    parser.add_argument("--world-python", help="a Python with bfcl-eval; default: .venv-live's")
    options = parser.parse_args()
    checks = dict(CHECKS)
    with ExitStack() as worlds:
        if any(options.folder.glob(f"{MULTI_TURN}*.jsonl")):
            try:
                python = find.bfcl_python(options.world_python)
                world = MultiTurn(tasks_in(bfcl_data(python)), find.find(find.BFCL, python=python))
                checks[MULTI_TURN] = worlds.enter_context(world)
            except UserError as reason:
                if options.world_python is not None:
                    sys.exit(str(reason))
                _console.echo(f"{MULTI_TURN}*.jsonl: not checked: {reason}", stderr=True)
        try:
            results = run_vectors(options.folder, checks)
        except UserError as error:
            sys.exit(str(error))
    _console.out.print(_files(results))
    for result in results:
        if result.replies is not None:
            _console.out.print(_styles(result.name, result.replies))
    unlisted = [(result.name, row) for result in results for row in result.unlisted]
    for name, row in unlisted[: options.show]:
        _console.echo(f"{name}: {msgspec.json.encode(row).decode()}")
    sys.exit(bool(unlisted))


def _files(results: list[FileResult]) -> Table:
    table = Table()
    for name in ("file", "rows", "agreed", "listed disagreements", "unlisted"):
        table.add_column(name, justify="right" if name in ("rows", "agreed", "unlisted") else "left")
    for result in results:
        if result.not_checked == result.rows:
            table.add_row(result.name, str(result.rows), "", "not checked", "")
            continue
        listed = [f"{name} {count}" for name, count in sorted(result.listed.items())]
        if result.not_checked:
            listed.append(f"not checked {result.not_checked}")
        agreed, defects = str(result.outcomes["agreed"]), str(len(result.unlisted))
        table.add_row(result.name, str(result.rows), agreed, ", ".join(listed), defects)
    return table


def _styles(name: str, found: ReplyResult) -> Table:
    """Recall and false acceptance of every style of replies."""
    table = Table(
        title=f"{name}: recall {found.share('call'):.3f}, false acceptance {found.share('none'):.3f}"
    )
    for column in ("style", "replies", "recall", "false acceptance"):
        table.add_column(column, justify="left" if column == "style" else "right")
    for style in found.styles:
        shares = (f"{style.share:.3f}", "") if style.kind == "call" else ("", f"{style.share:.3f}")
        table.add_row(style.style, str(style.replies), *shares)
    return table


if __name__ == "__main__":
    main()
