"""`rbtc sources`: download, check and list the pinned upstream files."""

from pathlib import Path
from typing import Annotated

import typer

from . import _console
from ._replacing import DiscardChanges

OutDir = Annotated[
    Path | None,
    typer.Option("--out", help="Folder to fill; default: RBTC_SOURCES, else a folder in the user's cache."),
]
BaseUrl = Annotated[
    str | None,
    typer.Option("--base-url", help="Of raw files: BASE/owner/name/commit/path. Default: GitHub's."),
]
Only = Annotated[
    list[str] | None, typer.Option("--only", help="A source's folder name; may be given more than once.")
]


def fetch(
    out: OutDir = None,
    base_url: BaseUrl = None,
    only: Only = None,
    discard_changes: DiscardChanges = False,
) -> None:
    """Download the pinned upstream files, resuming what an earlier run began.

    Every file is checked against its sha256 before it gets its name; files that are right are not asked for.

    Example: rbtc sources fetch --out ./sources
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

    from robustbench_tc.builders.sources.fetch import BASE_URL, default_root, fetch as download

    root = out or default_root()
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        console=_console.err,
        transient=True,
        disable=not _console.err.is_terminal,
    )
    kept = f"what was downloaded is kept in {root}, begun files too; the same command goes on"
    latest = "nothing downloaded yet"
    with _console.keeping(kept), _console.each_minute(lambda: latest), bar:
        tasks: dict[str, TaskID] = {}

        def progress(path: str, done: int, total: int) -> None:
            nonlocal latest
            latest = f"{path}: {done / 1e6:.1f} of {total / 1e6:.1f} MB"
            if path not in tasks:
                tasks[path] = bar.add_task(path.rpartition("/")[2], total=total)
            bar.update(tasks[path], completed=done)

        result = download(
            root,
            base_url=base_url or BASE_URL,
            only=only or None,
            progress=progress,
            discard_changes=discard_changes,
        )
    fetched, present = len(result.downloaded), len(result.present)
    _console.echo(f"{root}: {fetched} files downloaded, {present} were there already; all checksums right")


def verify(
    folder: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="Default: as for fetch.")] = None,
    only: Only = None,
) -> None:
    """Check that every pinned file is in the folder, with its pinned sha256. Exit code 1 if one is not.

    Example: rbtc sources verify ./sources
    """
    from robustbench_tc.builders.sources.fetch import resolve_root, verify as check

    root = resolve_root(folder)
    found = check(root, only=only or None)
    for path, problem in found.bad:
        _console.echo(f"{path}: {problem}")
    if found.bad:
        _console.echo(f"{len(found.bad)} of {found.checked} files in {root} are not as pinned", stderr=True)
        raise typer.Exit(1)
    _console.echo(f"{root}: {found.checked} files, all as pinned")


def list_sources(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable: one object per source.")] = False,
) -> None:
    """List the upstream repositories with commit, licence, and what is taken from them.

    Example: rbtc sources list --json
    """
    from robustbench_tc.builders.sources.pins import pins

    rows = pins().rows()
    if as_json:
        _console.json(rows)
        return
    columns = ("source", "repository", "commit", "licence", "files", "bytes")
    lines = (
        (
            row["source"],
            row["repository"],
            row["commit"][:12],
            row["licence"],
            str(row["files"]),
            f"{row['bytes']:,}",
        )
        for row in rows
    )
    _console.out.print(_console.table(columns, lines, folded=columns[1:4]))


app = typer.Typer(no_args_is_help=True, help="Download, check and list the pinned upstream files.")
app.command("fetch")(fetch)
app.command("verify")(verify)
app.command("list")(list_sources)
