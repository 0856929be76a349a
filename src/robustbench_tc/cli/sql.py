"""`rbtc sql`: a question to the marts, or a file of your own over the same views."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from ..errors import UserError
from ..io.numbers import number
from . import _console
from ._words import Subset, one_of

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["table", "csv", "json", "parquet"]


def sql(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A mart, or a .sql file. Without: list what may be queried."),
    ] = None,
    run: Annotated[
        list[str] | None, typer.Option("--run", help="Scored run folder, local or hf://. Repeatable.")
    ] = None,
    release: Annotated[
        str | None, typer.Option(help="Release folder, local or hf://: names rows that a run lacks.")
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's counts beside the runs (alone without --run).")
    ] = False,
    param: Annotated[
        list[str] | None, typer.Option("--param", help="k=v; `rbtc sql` lists each mart's. Repeatable.")
    ] = None,
    subset: Subset = "all",
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Values over the rows that are there.")
    ] = False,
    output: Annotated[
        Format, one_of("format", *get_args(Format), flag="--format", help="table, csv, json or parquet.")
    ] = "table",
    out: Annotated[Path | None, typer.Option(help="Write to this file (parquet needs one).")] = None,
) -> None:
    """Ask the marts: accuracy, table2, by_type, heatmap, deltas, flips, hardest, costs, recovery and more.

    Example: rbtc sql table2 --run runs/qwen3-8b-fc --format csv
    """
    from ..eval import paper as papers
    from ..io.files import check_file
    from ..sql.query import Inputs, query

    if name is None:
        _list(output)
        return
    if out is not None:
        check_file(out)
    runs = tuple(run or ())
    table = query(
        name,
        Inputs(
            runs=runs,
            release=release,
            paper=papers.CELLS if paper or not runs else None,
            subset=subset,
            allow_missing=allow_missing,
            parameters=_parameters(param or []),
        ),
    )
    write_table(table, output, out, title=name)
    if name == "gap_closure" and table.num_rows == 0:
        _console.note(
            "no other run has the dataset version of the baseline, or there is no baseline of that name: "
            "name one with --param baseline=MODEL or the run's folder"
        )


def _parameters(given: list[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not re.fullmatch(r"[a-z_][a-z0-9_]*", name):
            raise UserError(f"--param {text!r}: write it as name=value")
        found[name] = value
    return found


def _list(output: Format) -> None:
    """The marts, and the views that a file of one's own may query."""
    from rich.table import Table

    from ..sql.query import marts, views

    if output == "json":
        _console.json({"marts": marts(), "views": views()})
        return
    table = Table()
    for column in ("mart", "needs", "what it answers", "parameters"):
        table.add_column(column, no_wrap=column == "mart")
    for name, mart in marts().items():
        needs = {"runs": "runs", "live": "live runs", "cells": "runs or the paper"}[mart.needs]
        parameters = "; ".join(f"{key}: {meaning}" for key, meaning in mart.parameters.items())
        table.add_row(name, needs, mart.description, parameters)
    _console.out.print(table)
    table = Table(title="views that a .sql file of your own may query", title_justify="left")
    table.add_column("view", no_wrap=True)
    table.add_column("columns")
    for name, columns in views().items():
        table.add_row(name, ", ".join(f"{column} {kind}" for column, kind in columns.items()))
    _console.out.print(table)


def write_table(table: "pa.Table", output: str, out: Path | None, *, title: str) -> None:
    """A result for people or for programs; files are written whole or not at all."""
    from ..io.files import atomic_file

    if output == "table" and out is None:
        _print(table, title)
        return
    if output == "parquet":
        import pyarrow.parquet as pq

        if out is None:
            raise UserError("--format parquet needs --out FILE")
        with atomic_file(out) as beside:
            pq.write_table(table, beside)
        return
    text = as_csv(table) if output in ("csv", "table") else as_json(table)
    if out is None and output == "json":
        _console.json(text.encode())
        return
    if out is None:
        _console.data(text)
        return
    with atomic_file(out) as beside:
        beside.write_text(text, encoding="utf-8")


def as_csv(table: "pa.Table") -> str:
    """CSV with a header; an empty field is null."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(row.values() for row in table.to_pylist())
    return text.getvalue()


def as_json(table: "pa.Table") -> str:
    """A list of objects."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(table.to_pylist()), indent=1).decode() + "\n"


def _print(table: "pa.Table", title: str) -> None:
    from rich.table import Table

    rows = table.to_pylist()
    if len(rows) == 1:  # downwards: a row of twenty columns fits no terminal
        shown = Table("column", "value", title=title, title_justify="left")
        for name, value in rows[0].items():
            shown.add_row(name, _console.styled(_cell(value)))
        _console.out.print(shown)
        return
    distinct = {name: {_cell(row[name]) for row in rows} for name in table.column_names}
    # What is the same everywhere stands below once; a run needs its folder only where two share a model.
    same = [name for name in table.column_names if rows and len(distinct[name]) == 1]
    hidden = {*same, *(["run"] if len(distinct.get("run", ())) == len(distinct.get("model", ())) > 1 else [])}
    names = [name for name in table.column_names if name not in hidden] or table.column_names
    shown = Table(title=title, title_justify="left")
    for name in names:
        numeric = any(isinstance(row[name], int | float) for row in rows)
        shown.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(_console.styled(_cell(row[name])) for name in names))
    _console.out.print(shown)
    tail = "; everywhere: " + ", ".join(f"{name} {_cell(rows[0][name])}" for name in same) if same else ""
    _console.out.print(f"{len(rows)} rows{tail}", markup=False)


def _cell(value: object) -> str:
    return number(value) if value is None or isinstance(value, float) else str(value)
