"""Tokens of several replies that go out as one."""

from collections.abc import Mapping

from robustbench_tc.schema import Json

CHAT = ("prompt_tokens", "completion_tokens", "total_tokens")
RESPONSES = ("input_tokens", "output_tokens", "total_tokens")


def counted(names: tuple[str, ...], before: Mapping[str, int], usage: Json) -> dict[str, int]:
    """The counts of `usage` added to those of the replies before it."""
    found = dict(before)
    for name in names:
        number = usage.get(name) if isinstance(usage, dict) else None
        if isinstance(number, int) and not isinstance(number, bool):
            found[name] = found.get(name, 0) + number
    return found
