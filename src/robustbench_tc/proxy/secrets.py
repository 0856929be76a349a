"""What a door is told and must not write down."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

KEY_LIKE = re.compile(r"key|token|secret|passw|auth|credential|cookie|session-?id", re.IGNORECASE)
"""Names whose values are keys."""

SHORTEST = 6
"""Characters: what is shorter (`none`, `EMPTY`) is not a key, and may be a word of the conversation."""


class Secrets(NamedTuple):
    """Of one exchange, or of several."""

    keys: frozenset[str] = frozenset()
    """Stand nowhere in a line."""
    quoted: frozenset[str] = frozenset()
    """Stand in no text of a server's error: of other headers; they may be words of the conversation."""

    @staticmethod
    def of(keys: Iterable[str], quoted: Iterable[str] = ()) -> "Secrets":
        """Of values as they came: those that are too short are none."""
        long = (frozenset(one for one in words if len(one) >= SHORTEST) for words in (keys, quoted))
        return Secrets(*long)

    def __or__(self, other: "Secrets") -> "Secrets":
        return Secrets(self.keys | other.keys, self.quoted | other.quoted)

    def blanked(self, text: str) -> str:
        """An error's text without them, the longest first."""
        for secret in sorted(self.keys | self.quoted, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


NONE = Secrets()


def of_process(command: Sequence[str], environment: Mapping[str, str]) -> Secrets:
    """Keys that a server's process is given: `--api-key X`, `--api-key=X`, `API_KEY=X`."""
    keys = [value for name, value in environment.items() if KEY_LIKE.search(name)]
    for flag, following in zip(command, [*command[1:], ""], strict=True):
        name, _, value = flag.partition("=")
        if name.startswith("-") and KEY_LIKE.search(name):
            keys.append(value or following)
    return Secrets.of(keys)
