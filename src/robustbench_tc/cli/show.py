"""`rbtc list` and `rbtc show`: what there is, and one row as a person reads it."""

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.table import Table

from .. import sources, taxonomy
from ..errors import UserError
from ..schema import Json, Sample, Tool, dumps
from . import _console
from ._console import styled

if TYPE_CHECKING:
    from rich.text import Text

app = typer.Typer(no_args_is_help=True, help="List what exists.")


@app.command("types")
def list_types(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the perturbation types: code and label, the paper's name, component, method.

    Example: rbtc list types --json
    """
    from ..builders.configs import published

    rows = taxonomy.types("all")
    if as_json:
        _console.json([msgspec.to_builtins(row) | msgspec.to_builtins(published(row)) for row in rows])
        return
    table = Table()
    for column in ("type", "paper's name", "component", "level", "pack", "method", "what is modified"):
        table.add_column(column, no_wrap=column == "type")
    for row in rows:
        name, facts = taxonomy.named(row.code), (row.component, row.level, row.pack, row.method)
        table.add_row(name, row.display_name, *facts, row.what_is_modified)
    _console.out.print(table)


@app.command("lm-eval")
def list_lm_eval() -> None:
    """The folder with the tasks for lm-eval's --include_path.

    Example: rbtc list lm-eval
    """
    from ..eval import adapters

    _console.echo(str(Path(adapters.__file__).resolve().parent / "lm_eval"))


@app.command("verifiers")
def list_verifiers() -> None:
    """The folder with the tasksets for verifiers, which an environment of its own installs.

    Example: rbtc list verifiers
    """
    from ..eval import adapters

    _console.echo(str(Path(adapters.__file__).resolve().parent / "verifiers"))


def show(
    wanted: Annotated[str, typer.Argument(metavar="ID", help="An id, a clean_id, or a unique prefix.")],
    type_code: Annotated[str | None, typer.Option("--type", help="Only the row of this type.")] = None,
    release: Annotated[Path, typer.Option(help="Release folder.")] = Path("robustbench-tc"),
    run: Annotated[Path | None, typer.Option(help="Run folder: show what the model answered.")] = None,
) -> None:
    """One sample: the clean row, and what each perturbation changed in it.

    Example: rbtc show bfcl_v3__BFCL_v3_multiple__multiple_110 --type CD_AB
    """
    if run is not None:
        from ._predictions import show_prediction

        show_prediction(wanted, run=run, release=release, type_code=type_code)
        return
    rows = find_rows(release, wanted, type_code)
    clean = next((row for row in rows if row.type_code == taxonomy.CLEAN), None)
    if clean is not None:
        _print_clean(clean)
    for row in rows:
        if row.type_code != taxonomy.CLEAN:
            _print_changes(row)


def find_rows(release: Path, wanted: str, type_code: str | None = None) -> list[Sample]:
    """The clean row and the perturbed rows that `wanted` means: an id, a clean_id, or a unique prefix of one.

    Raises UserError where nothing or several clean ids fit, and where the release has no such row.
    """
    from ..io.parquet import read_rows, shards
    from ..schema import record

    folders = [release / code for code in taxonomy.configs(release)]
    if not folders:
        raise UserError(f"{release} holds no release: name one with --release, or run rbtc build")
    clean_id, _, code = wanted.rpartition("::")
    if not clean_id:
        clean_id, code = wanted, type_code or ""
    if code:
        there = {taxonomy.CLEAN, *(folder.name for folder in folders)}
        code = taxonomy.find_in(there, code, "type of this release")
    ids = [row["clean_id"] for row in read_rows(shards(release / taxonomy.CLEAN), ["clean_id"])]
    found = [i for i in ids if i == clean_id] or [i for i in ids if i.startswith(clean_id)]
    if not found:
        near = difflib.get_close_matches(clean_id, ids, n=3, cutoff=0.3)
        hint = (
            f"did you mean {' or '.join(near)}?" if near else f"try a prefix such as {sources.names()[0]}__"
        )
        raise UserError(f"{release} has no sample {clean_id!r}: {hint}")
    if len(found) > 1:
        raise UserError(
            f"{clean_id!r} fits {len(found)} samples, first {found[0]!r} and {found[1]!r}: say more"
        )
    wanted_codes = {taxonomy.CLEAN, code} if code else {folder.name for folder in folders}
    rows = []
    for folder in folders:
        if folder.name in wanted_codes:
            # The id is the filter; the other columns are read for the row that fits only.
            for row in read_rows(shards(folder)):
                if row["clean_id"] == found[0]:
                    rows.append(record(row, Sample))
                    break
    if code and code not in {row.type_code for row in rows}:
        raise UserError(f"{found[0]} has no row of type {code}: build_report.json says why it was skipped")
    return rows


def _print_clean(row: Sample) -> None:
    echo = _console.out.print
    echo(styled(row.clean_id, style="bold"))
    echo(f"{row.source}, category {row.category}, asks for {row.output_format}", markup=False)
    for message in row.messages:
        echo(styled(f"{message.role}: ", style="cyan") + styled(message.content))
    for index, tool in enumerate(row.tools):
        mark = "*" if index == row.gold_tool_index else " "
        echo(styled(f"{mark} {_signature(tool)}", style="green") + styled(f"  {tool.description}"))
    for answer in row.golden_answers:
        calls = "; ".join(f"{c.name} {dumps(c.parameters)}" for c in answer)
        echo(styled("gold: ", style="cyan") + styled(calls))


def _print_changes(row: Sample) -> None:
    echo = _console.out.print
    echo()
    echo(styled(f"{taxonomy.named(row.type_code)} ({row.component}, {row.generator})", style="bold"))
    if row.injected_error:
        echo(styled("the first call is answered with: ", style="cyan") + styled(row.injected_error))
    for change in row.changes:
        where = change.path + (f" at {change.at}" if change.at is not None else "")
        if isinstance(change.before, str) and isinstance(change.after, str):
            echo(styled(f"{where}: ", style="cyan") + _inline_diff(change.before, change.after))
        else:
            echo(styled(where, style="cyan"))
            for sign, value, style in (("-", change.before, "red"), ("+", change.after, "green")):
                if value is not None:
                    echo(styled(f"  {sign} {_readable(value)}", style=style))
    for flag in row.flags:
        echo(styled(f"flag: {flag}", style="yellow"))


def _readable(value: Json) -> str:
    """A tool as its signature and description, names as a list, anything else as JSON."""
    if isinstance(value, dict) and {"name", "parameters"} <= value.keys():
        tool = msgspec.convert(value, Tool)
        return f"{_signature(tool)}  {tool.description}"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return dumps(value)


def _signature(tool: Tool) -> str:
    """`name(required, optional?)`."""
    names = (name + ("" if name in tool.required else "?") for name in tool.properties)
    return f"{tool.name}({', '.join(names)})"


def _inline_diff(before: str, after: str) -> "Text":
    """Both texts in one: removed words red and struck, added words green."""
    from ..eval.changed import pieces

    text = styled("")
    for kind, piece in pieces(before, after):
        if kind == "same":
            text.append_text(styled(piece))
            continue
        word = piece[:-1]
        said = f"[-{word}-]" if kind == "removed" else f"{{+{word}+}}"
        text.append_text(styled(said, style="red strike" if kind == "removed" else "green")).append(" ")
    return text
