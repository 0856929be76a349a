"""How a command ends other than well: one line on standard error, an exit code, never a traceback."""

import re
import sys
from typing import TYPE_CHECKING, NoReturn

from ..safe_text import safe

if TYPE_CHECKING:
    from typer._click import Command
    from typer.exceptions import TyperException

GATE = ["rbtc", "gate"]
"""Its status 2 is a verdict, which a mistyped option must not pass for."""


def fail(line: str, code: int = 1) -> NoReturn:
    """Prints the one line and ends with the exit code."""
    print(in_one_line(line), file=sys.stderr)  # noqa: T201
    sys.exit(code)


def in_one_line(line: str) -> str:
    """As every such line is written."""
    return "rbtc: " + safe(line.strip(), keep="")


def usage(error: "TyperException", command: "Command") -> NoReturn:
    """Wrong words on the command line: what is wrong, where, and where the right ones are listed."""
    path = ["rbtc"]
    for word in sys.argv[1:]:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        command, path = inner, [*path, word]
    said = _message(error)
    if not said:  # a group without a command: its help is printed, which is an answer
        sys.exit(error.exit_code)
    code = error.exit_code if path != GATE else 1
    fail(f"{said} (see {' '.join(path)} --help)", code)


def _message(error: "TyperException") -> str:
    """Typer's message in our form: the word, what is wrong with it, what it should be."""
    said = " ".join(error.format_message().split()).rstrip(".")
    wrong = re.fullmatch(r"Invalid value for '?(.+?)'?: Input should be (.+?)(?:, unable to .*)?", said)
    if wrong:
        given: list[dict[str, object]] = getattr(error.__cause__, "errors", list)()
        value = f" {given[0]['input']}" if given else ""
        return f"{wrong[1]}{value}: it has to be {wrong[2]}"
    said = re.sub(r"\. Did you mean (.+)", r": did you mean \1", said)
    near = getattr(error, "possibilities", None)
    if near:
        said = f"{said.partition(' (Possible')[0]}: did you mean {' or '.join(sorted(near))}?"
    return said[:1].lower() + said[1:]
