"""The rule for a tool's name on the wire, as OpenAI-compatible servers accept it: `[A-Za-z0-9_-]{1,64}`."""

import re

MAX_NAME = 64
"""Characters of a function's name that servers accept."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def safe_name(name: str) -> str:
    """The name with `_` for each character that is not accepted, cut. Different names may become equal."""
    return _UNSAFE.sub("_", name)[:MAX_NAME] or "_"
