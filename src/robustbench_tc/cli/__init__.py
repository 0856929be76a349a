"""`rbtc`: the command line. Every verb is a thin call into one room; heavy imports wait for their verb."""

import errno
import io
import os
import sys
from typing import NoReturn

from ..errors import UserError
from ._derive import WrongWords

INTERRUPTED = 130
"""What a shell expects of a command that Ctrl-C ended."""

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
    from ._launch import launch

    try:
        code = launch(sys.argv[1:])
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
    sys.exit(code)


def _fail(line: str, code: int = 1) -> NoReturn:
    """Prints the one line and ends with the exit code."""
    from . import _console

    _console.echo(f"rbtc: {line.strip()}", stderr=True)
    sys.exit(code)
