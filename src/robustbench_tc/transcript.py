"""Transcripts: dialogues that a source writes into one message, with the user's turns between tags."""

import re

CLOSING_TURN = re.compile(r"(?i)\b(?:one|a single) tool call\b")
"""Tells the last turn of a processed API-Bank dialogue: boiler-plate that asks for a single call, no request
of the user's. Look for it in the last turn only."""

_USER_TURN = re.compile(r"<user>(.*?)</user>", re.DOTALL)

MAY_DECLINE = "If no listed tool fits or a value is missing, say so or ask."
"""Rows in which calling nothing can be right are asked with this sentence, and so are their counterparts."""


def closing_order(text: str) -> tuple[int, int] | None:
    """Where a transcript's last turn orders one call, with the white space before it; None where none
    does."""
    turns = list(_USER_TURN.finditer(text))
    if len(turns) > 1 and CLOSING_TURN.search(turns[-1][1]):
        return len(text[: turns[-1].start()].rstrip()), turns[-1].end()
    return None
