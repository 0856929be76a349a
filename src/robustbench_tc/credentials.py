"""Credentials that a server is given, and texts without them: a server may quote what it was given."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import parse_qsl

KEY_LIKE = re.compile(r"key|token|secret|passw|auth|credential|cookie|session-?id", re.IGNORECASE)
"""Names whose values are keys."""

SHORTEST = 6
"""Characters: what is shorter (`none`, `EMPTY`) is not a key, and may be a word of the conversation."""


def is_long(value: str) -> bool:
    """Whether a value is long enough for a key."""
    return len(value) >= SHORTEST


class Secrets(NamedTuple):
    """Of one exchange, or of several."""

    keys: frozenset[str] = frozenset()
    """Stand nowhere in a line."""
    quoted: frozenset[str] = frozenset()
    """Stand in no text of a server's error: of other headers; they may be words of the conversation."""

    def __or__(self, other: "Secrets") -> "Secrets":
        return Secrets(self.keys | other.keys, self.quoted | other.quoted)

    def blanked(self, text: str) -> str:
        """An error's text without them, the longest first."""
        for secret in sorted(filter(is_long, self.keys | self.quoted), key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


NONE = Secrets()


def of_process(command: Sequence[str], environment: Mapping[str, str]) -> Secrets:
    """Keys that a server's process is given: `--api-key X`, `--api-key=X`, `API_KEY=X`."""
    keys = [value for name, value in environment.items() if KEY_LIKE.search(name)]
    for flag, following in pairwise((*command, "")):
        name, _, value = flag.partition("=")
        if name.startswith("-") and KEY_LIKE.search(name):
            keys.append(value or following)
    return Secrets(frozenset(keys))


def of_query(query: str) -> Secrets:
    """All values of an address's query, as they stand there and decoded."""
    raw = (part.rpartition("=")[2] for part in query.split("&"))
    return Secrets(frozenset({*raw, *(value for _, value in parse_qsl(query))}))
