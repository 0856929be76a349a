"""`rbtc`: the command line. Every verb is a thin call into one room; heavy imports wait for their verb."""

import errno
import io
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, NoReturn

from ..errors import UserError
from ._derive import WrongWords

if TYPE_CHECKING:
    import typer
    from typer._click import Command
    from typer.exceptions import TyperException

INTERRUPTED = 130
"""What a shell expects of a command that Ctrl-C ended, and what typer makes of one."""

_QUIET = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_VERBOSITY": "error",
    "DATASETS_VERBOSITY": "error",
}
"""Read when the Hub's clients are imported: they do not phone home, and our own lines name the step."""

AGAIN = "files are written whole or not at all; run the same command again"
"""What is said after Ctrl-C where no block of work says more (`_console.keeping`)."""


def main() -> None:
    """Entry point. What goes wrong is one line on standard error and an exit code, never a traceback.

    1: a `UserError`. 2: wrong words on the command line. 130: Ctrl-C.
    """
    try:
        _open_closed_streams()
        _run()
    except KeyboardInterrupt:
        _fail(f"interrupted: {AGAIN}", INTERRUPTED)


def _open_closed_streams() -> None:
    """`rbtc … >&-`, as some schedulers start it: what is written there is thrown away, nothing is read.

    Python has None for such a stream, and the next file that is opened gets its number: a library that
    writes there would write into the dataset.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 (it stays open)


def _run() -> None:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal of another alphabet shows what it can
            stream.reconfigure(errors="backslashreplace")
    from ._console import Interrupted

    try:
        code = _called(sys.argv[1:])
        sys.stdout.flush()  # while an error can still be said
    except WrongWords as error:
        _fail(str(error), 2)
    except UserError as error:
        _fail(str(error))
    except Interrupted as error:
        _fail(f"interrupted: {error}", INTERRUPTED)
    except BrokenPipeError:  # `| head` has seen enough; Python would flush once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except UnicodeEncodeError as error:  # half of a surrogate pair: how Python reads a name that is not UTF-8
        _fail(f"{error.object}: the name is not valid UTF-8, which Parquet files need: choose another")
    except OSError as error:
        advice = {
            errno.ENOSPC: "free some space",
            errno.EACCES: "choose another place, or change its rights",
            errno.ENAMETOOLONG: "choose a shorter one",
        }
        # Whatever is written to a file is named (`io.files.named`): what is left is the standard output.
        name = error.filename or ("standard output" if error.errno == errno.ENOSPC else "")
        where = f"{name}: " if name else ""
        hint = advice.get(error.errno or 0)
        _fail(f"{where}{error.strerror or error}" + (f" ({hint})" if hint else ""))
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    sys.exit(code)


def _called(words: list[str]) -> int:
    """Calls what the words name; its exit code."""
    from . import _launch

    if _launch.knows(words):
        return _launch.launch(words)
    from typer.exceptions import TyperException

    command = _command(_app())
    try:
        return int(command(_with_home(words), standalone_mode=False) or 0)
    except TyperException as error:
        _usage(error, command)


def _fail(line: str, code: int = 1) -> NoReturn:
    """Prints the one line and ends with the exit code."""
    from . import _console

    _console.echo(f"rbtc: {line.strip()}", stderr=True)
    sys.exit(code)


def _usage(error: "TyperException", command: "Command") -> NoReturn:
    """Wrong words on the command line: what is wrong, and where the right ones are listed."""
    path = ["rbtc"]
    for word in sys.argv[1:]:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        command, path = inner, [*path, word]
    said = " ".join(error.format_message().split())
    if not said:  # a group without a command: its help is printed, which is an answer
        sys.exit(error.exit_code)
    _fail(f"{said} (see {' '.join(path)} --help)", error.exit_code)


def _with_home(words: list[str]) -> list[str]:
    """`--out=~/a` with the user's home for the `~`, which shells replace only where a word begins with it.

    Behind `--` are another program's words.
    """
    ours = words.index("--") if "--" in words else len(words)
    return (
        [
            f"{option}={os.path.expanduser(value)}"  # noqa: PTH111 (a text, which a Path would tidy)
            if option.startswith("--") and (value == "~" or value.startswith("~/"))
            else word
            for word in words[:ours]
            for option, _, value in [word.partition("=")]
        ]
        + words[ours:]
    )


@cache  # whoever calls `main` again in one process waits for it once
def _command(app: "typer.Typer") -> "Command":
    from typer.main import get_command

    return get_command(app)


@cache  # the parts are modules' own: a second call would add their commands to them again
def _app() -> "typer.Typer":
    import typer

    app = typer.Typer(
        name="rbtc",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="RobustBench-TC: does my tool-calling model survive deployment?",
    )

    def options(
        version: Annotated[
            bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        """RobustBench-TC: does my tool-calling model survive deployment?"""

    app.callback()(options)
    groups = (
    )  # fmt: skip
    for panel, name, group in groups:
        app.add_typer(group, name=name, rich_help_panel=panel)
    for panel, commands in _panels().items():
        for name, command in commands.items():
            app.command(name, rich_help_panel=panel)(command)
    return app


def _panels() -> dict[str, dict[str, Callable[..., None]]]:
    """The commands that stand alone: one panel per stage, in the order of the pipeline."""
    from . import (
        runs,
    )

    return {
        "Evaluate": {
            "export": runs.export,
            "import": runs.import_,
        },
    }


def _version(asked: bool) -> None:
    if asked:
        import typer

        from .. import __version__
        from . import _console

        _console.echo(f"rbtc {__version__}")
        raise typer.Exit()
