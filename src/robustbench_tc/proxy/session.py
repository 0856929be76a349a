"""Which case and which repeat a request belongs to: by its path, else by a header."""

import re
from typing import NamedTuple
from urllib.parse import unquote

HEADER = "X-RBTC-Session"
MOST = 1_000
"""Characters of a session's name."""

_PATH = re.compile(r"/s/([^/]*)(/v1(?:/.*)?)", re.DOTALL)
_NAME = re.compile(r"(.+)\.(0|[1-9]\d{0,8})", re.DOTALL | re.ASCII)


class Session(NamedTuple):
    """One attempt at one case."""

    case: str
    repeat: int

    def __str__(self) -> str:
        return f"{self.case}.{self.repeat}"


class Refused(Exception):
    """What a door does not take, in one line, and the status that says it to the caller."""

    def __init__(self, said: str, status: int = 400) -> None:
        super().__init__(said)
        self.status = status


class NoSession(Refused):
    """What should name a session does not."""


def of_path(path: str) -> tuple[str | None, str]:
    """The name of the session that a path holds, and the path without it: `/v1/…`."""
    found = _PATH.fullmatch(path)
    return (unquote(found[1]), found[2]) if found else (None, path)


def parse(name: str) -> Session:
    """A session by its name, `<case>.<repeat>`. Raises NoSession."""
    found = _NAME.fullmatch(name)
    if found is None or len(name) > MOST or not name.isprintable():
        raise NoSession(
            f"the session {name[:60]!r} is not written <case>.<repeat>, such as refund-17.0, in at most "
            f"{MOST} characters"
        )
    return Session(found[1], int(found[2]))
