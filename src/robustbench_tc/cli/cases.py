"""`rbtc cases`: cases that logs or tools propose, and their review."""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from . import _console

if TYPE_CHECKING:
    from ..own.reviewing import Proposed, Reviewing

app = typer.Typer(help="Propose cases from logs or from tools, and review them.", no_args_is_help=True)

SHOWN = 10
"""Refused lines that the terminal shows."""
TEXT = 2_000
"""Characters of a text that a review shows."""

Logs = Annotated[
    list[Path], typer.Argument(metavar="LOG...", help="Chat messages or GenAI spans as JSON lines.")
]
Tools = Annotated[
    list[Path] | None,
    typer.Option(help="A file of the tools; default: those that the logs bring. Repeatable."),
]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
Ids = Annotated[
    list[str] | None, typer.Option(metavar="ID", help="Decide this one, without asking. Repeatable.")
]


@app.command("import")
def import_(
    logs: Logs,
    out: Annotated[Path, typer.Option(help="A new or empty folder.")],
    tools: Tools = None,
    redact: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Patterns of what is to be replaced too, one a line.")
    ] = None,
    names_ok: Annotated[
        bool, typer.Option("--names-ok", help="Write into a git work tree: names of people may stand there.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Propose a case for every batch of calls in logs, without mail addresses, numbers and keys of people.

    Names are not removed (docs/own-logs.md). Nothing is sent anywhere.

    Example: rbtc cases import agent.jsonl --tools tools.json --out imported
    """
    from .. import api

    with _console.status(
        "importing", lambda: f"nothing was written to {out}; run the same command again"
    ) as tell:
        made = api.import_cases(logs, out, tools=tools or (), redact=redact, names_ok=names_ok, progress=tell)
    if as_json:
        _console.json(made)
        return
    for log, line in made.refused[:SHOWN]:
        _console.echo(f"{log}:{line.line}: refused: {line.why}", stderr=True)
    if len(made.refused) > SHOWN:
        _console.echo(f"{len(made.refused) - SHOWN:,} more lines refused (--json names them)", stderr=True)
    _console.echo(
        f"{made.cases:,} cases of {made.conversations:,} conversations: {made.no_call:,} without a call, "
        f"{made.problems:,} that cannot be built as they stand"
    )
    for why, count in made.left_out.items():
        _console.echo(f"left out: {why}: {count:,}")
    if made.ignored:
        _console.echo(f"left out: spans without GenAI messages: {made.ignored:,}")
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(made.replaced.items()))
    _console.echo(f"replaced by reserved values: {kinds or 'nothing'}")
    _console.echo(f"Names of people are not removed: they may stand in any of {made.messages:,} messages.")
    _console.echo(f"wrote {', '.join(made.files)} in {out}")
    _console.echo(f"next: rbtc cases review {shlex.quote(str(out / 'cases.yaml'))}")


@app.command("draft")
def draft(
    tools: Annotated[list[Path], typer.Argument(metavar="TOOLS...", help="Files of your tools.")],
    out: Annotated[Path, typer.Option(help="A new or empty folder.")],
    model: Annotated[str | None, typer.Option(help="Write the requests with this model.")] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the model is; default: OpenAI's address.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Propose cases for each tool: calls with sample values, and requests that state them. Review them all.

    With --model a model writes the requests; each tool's definition is sent to it.

    Example: rbtc cases draft tools.json --out drafted
    """
    from .. import api

    with _console.status("drafting", f"nothing was written to {out}; run the same command again"):
        made = api.draft_cases(tools, out, model=model, base_url=base_url)
    if as_json:
        _console.json(made)
        return
    _console.echo(f"{made.cases:,} cases for {made.tools:,} tools, {made.problems:,} of them not buildable")
    if model is not None:
        _console.echo(f"{model} wrote the requests for {made.by_model:,} of the tools")
    if made.left_out:
        _console.echo(f"left out: keys too long or values too deep: {made.left_out:,}")
    _console.echo(f"wrote {', '.join(made.files)} in {out}")
    _console.echo(f"next: rbtc cases review {shlex.quote(str(out / 'cases.yaml'))}")


@app.command("review")
def review(
    cases: Annotated[Path, typer.Argument(metavar="CASES", help="The cases file.")],
    accept: Ids = None,
    drop: Ids = None,
    by: Annotated[str, typer.Option(help="Who decides; default: your user name.")] = "",
    as_json: Json = False,
) -> None:
    """Look at proposed cases, one by one: accept, edit, drop, skip.

    Decisions stand in CASES.review.jsonl; an edited case is open again. Your own cases need none.

    Example: rbtc cases review imported/cases.yaml
    """
    from ..own.reviewing import Reviewing, counts

    found = Reviewing(cases, by)
    if both := set(accept or ()) & set(drop or ()):
        raise UserError(f"{min(both)[:80]}: --accept and --drop name it both")
    for name in [*(accept or ()), *(drop or ())]:
        found.case(name)
    for name in accept or ():
        found.decide(name, "accept")
    for name in drop or ():
        found.decide(name, "drop")
    if as_json:
        _console.json({"cases": [one.plain() for one in found.cases], **counts(found.cases)})
        return
    if not accept and not drop and any(one.status == "open" for one in found.cases):
        if not sys.stdin.isatty():
            raise UserError(
                "a review asks in a terminal: without one use --accept ID and --drop ID, or --json"
            )
        with _console.keeping(f"what was decided is kept beside {cases}; run the same command again"):
            _ask_all(found)
    left = counts(found.cases)
    _console.echo(
        f"{left['accepted']:,} accepted, {left['dropped']:,} dropped, {left['open']:,} to be reviewed"
    )


def _ask_all(found: "Reviewing") -> None:
    names = [one.id for one in found.cases if one.status == "open"]
    for number, name in enumerate(names, 1):
        _show(found.case(name), f"{number} of {len(names)}")
        if not _ask(found, name):
            return


def _ask(found: "Reviewing", name: str) -> bool:
    """Asks about one case until it is decided or skipped; False: no more."""
    while True:
        typed = _console.ask("[a]ccept, [e]dit, [d]rop, [s]kip, [q]uit? ")
        word = None if typed is None else typed.lower()
        try:
            if word in ("q", "quit", None):
                return False
            if word in ("s", "skip"):
                return True
            if word in ("a", "accept"):
                found.decide(name, "accept")
                return True
            if word in ("d", "drop"):
                found.decide(name, "drop")
                return True
            if word in ("e", "edit") and _edit(found, name):
                _show(found.case(name), "edited")
        except UserError as error:
            _console.echo(str(error), stderr=True)


def _edit(found: "Reviewing", name: str) -> bool:
    """Gives a case to the user's editor; True where it changed."""
    from ..io.files import atomic_file

    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not editor:
        raise UserError("no editor: set EDITOR, or edit the file yourself and run the same command again")
    text = found.text(name)
    with tempfile.TemporaryDirectory(prefix="rbtc-") as folder:
        path = Path(folder) / "case.yaml"
        path.write_text(text)
        try:
            code = subprocess.run([*editor, str(path)], check=False).returncode
        except OSError as error:
            raise UserError(f"{editor[0]}: cannot be run: {error.strerror}") from None
        if code:
            raise UserError(f"{editor[0]} ended with status {code}: nothing was changed")
        try:
            new = path.read_text()
        except (OSError, ValueError):
            raise UserError("the edited text cannot be read: nothing was changed") from None
    if new == text and not found.case(name).problem:
        return False
    made = found.edited(name, new)
    found.decide(name, "edit")
    with atomic_file(found.path.resolve(), replace=True) as beside:
        beside.write_bytes(made)
    found.reload()
    return True


def _show(case: "Proposed", place: str) -> None:
    """A case as it stands. Every line of a text has a bar before it: none can pose as a line of ours."""
    from ..own.logs.written import value

    _console.echo("")
    _console.echo(f"{case.id} ({place}; {case.data['proposed_by']})")
    if case.problem:
        _console.echo(f"  cannot be built: {case.problem}")
    for key, found in case.data.items():
        if key in ("id", "proposed_by", "problem"):
            continue
        for one in found if isinstance(found, list) else [found]:
            said = one if key == "request" else None
            if isinstance(one, dict) and isinstance(one.get("content"), str) and "role" in one:
                said = f"{one['role']}: {one['content']}"
                rest = {name: inner for name, inner in one.items() if name not in ("role", "content")}
                said += f"\n{value(rest)}" if rest else ""
            _text(key, said if isinstance(said, str) else value(one))


def _text(key: str, text: str) -> None:
    for number, line in enumerate(text[:TEXT].split("\n")):
        _console.echo(f"  {key if number == 0 else '':<9}| {line}")
    if len(text) > TEXT:
        _console.echo(f"  {'':<9}| ({len(text) - TEXT:,} more characters)")
