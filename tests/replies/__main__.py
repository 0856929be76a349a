"""`make replies`: every style in every setting over a release's clean rows, as a table.

    python -m tests.replies RELEASE [--every 60] [--style NAME] [--show]

Exit code 1 where a style misses a bar.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from robustbench_tc import schema, taxonomy
from robustbench_tc.io.parquet import read_rows, shards

from .bars import check


def main(
    release: Annotated[Path, typer.Argument(help="A release folder: `rbtc build --profile full`.")],
    every: Annotated[int, typer.Option(help="Rows of a setting: every so many.")] = 60,
    style: Annotated[list[str], typer.Option(help="One style alone; may be repeated.")] = [],  # noqa: B006
    show: Annotated[bool, typer.Option("--show", help="Print some replies that were read wrong.")] = False,
) -> None:
    """Every style in every setting over a release's clean rows; exits with 1 where a style misses a bar."""
    if not (release / taxonomy.CLEAN).is_dir():
        sys.exit(f"not a release folder: {release}. Build one with `rbtc build`.")
    rows = [schema.record(row, schema.Sample) for row in read_rows(shards(release / taxonomy.CLEAN))]
    write = sys.stdout.write
    write(
        f"{'style':24} {'code':4} {'':6} {'made':>8} {'wrong':>6} {'thought':>8} {'read':>6} {'unflagged':>9}"
    )
    write(f" {'spoken of':>9} {'missed':>6}\n")
    totals = [0] * 7
    missed = []
    for one in check(rows, every, style):
        counts = (
            one.made,
            one.made_wrong,
            one.thought,
            one.thought_accepted,
            one.thought_unflagged,
            one.spoken,
            one.spoken_accepted + one.spoken_unflagged,
        )
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        write(_line(one.name, one.style.code, "marked" if one.style.marked else "bare", counts))
        if not one.passed:
            missed.append(one.name)
        for example in one.examples if show else ():
            write(f"    {example}\n")
    write(_line("all", "", "", totals))
    if missed:
        sys.exit(f"below the bar: {', '.join(missed)}")


def _line(style: str, code: str, kind: str, counts: Sequence[int]) -> str:
    widths = (8, 6, 8, 6, 9, 9, 6)
    numbers = " ".join(f"{count:{width},}" for count, width in zip(counts, widths, strict=True))
    return f"{style:24} {code:4} {kind:6} {numbers}\n"


if __name__ == "__main__":
    typer.run(main)
