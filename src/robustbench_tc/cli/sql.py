"""`rbtc sql`: a question to the marts, or SQL of your own over the same views."""

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
        typer.Argument(metavar="[QUERY]", help="A mart, a select or a .sql file; default: list them."),
    ] = None,
    run: Annotated[
        list[str] | None, typer.Option("--run", help="Scored run folder, local or hf://. Repeatable.")
    ] = None,
    release: Annotated[
        str | None, typer.Option(help="Dataset folder, local or hf://; default for a select: the run's.")
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
    """Query runs and datasets: a mart such as table2, by_type or flips, or SQL of your own.

    Example: rbtc sql "select type_code, avg(score) from stg_predictions group by all" --run runs/qwen3-8b-fc
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
    write_table(table, output, out)
    if name == "gap_closure" and table.num_rows == 0:
        _console.note(
            "no other run is of the baseline's dataset, or there is no baseline of that name: "
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
    """The marts by group, examples, and the views that SQL of your own may query."""
    from rich.table import Table

    from ..sql.query import EXAMPLES, marts, views

    if output == "json":
        _console.json({"marts": marts(), "views": views()})
        return
    needs = {"runs": "needs --run", "live": "needs a live run", "cells": ""}
    for group in dict.fromkeys(mart.group for mart in marts().values()):
        table = Table("mart", "answers", "", title=group, title_justify="left")
        for name, mart in marts().items():
            if mart.group == group:
                told = [needs[mart.needs]]
                told += (f"--param {key}=…: {meaning}" for key, meaning in mart.parameters.items())
                table.add_row(name, mart.description, "; ".join(filter(None, told)))
        _console.out.print(table)
    table = Table("view", "columns", title="views for SQL of your own", title_justify="left")
    for name, columns in views().items():
        table.add_row(name, ", ".join(f"{column} {kind}" for column, kind in columns.items()))
    _console.out.print(table)
    for example in EXAMPLES:
        _console.out.print(example, markup=False, soft_wrap=True)


def write_table(table: "pa.Table", output: str, out: Path | None) -> None:
    """A result for people or for programs; files are written whole or not at all."""
    from ..io.files import atomic_file

    if output == "table" and out is None:
        _print(table)
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


def _print(table: "pa.Table") -> None:
    from rich.table import Table

    rows = table.to_pylist()
    if len(rows) == 1:  # downwards: a row of twenty columns fits no terminal
        shown = Table("column", "value")
        for name, value in rows[0].items():
            shown.add_row(name, _console.styled(_cell(value)))
        _console.out.print(shown)
        return
    shown = Table()
    for name in table.column_names:
        numeric = any(isinstance(row[name], int | float) for row in rows)
        shown.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(_console.styled(_cell(value)) for value in row.values()))
    _console.out.print(shown)
    _console.out.print(f"{len(rows)} rows", markup=False)


def _cell(value: object) -> str:
    return number(value) if value is None or isinstance(value, float) else str(value)
