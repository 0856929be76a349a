"""Texts in a tool's description that are directed at the model: orders, secrecy and hidden characters.

A description says what a tool does. One that tells the model what to ignore, to hide from the user or to call
first steers the agent whoever wrote it. Only phrases that hardly occur in honest descriptions are listed.
"""

import re
import unicodedata
from collections.abc import Iterator

from robustbench_tc.schema import Json, Tool

from .schemas import walk

_PHRASES = re.compile(
    r"\b(?:ignore|disregard|forget|override)\s+(?:\w+\s+){0,3}?(?:previous|prior|above|earlier|other)\s+"
    r"(?:\w+\s+)?(?:instruction|prompt|rule|message|tool|direction)s?\b"
    r"|\b(?:do\s+not|don't|never)\s+(?:tell|inform|mention|reveal|notify)\s+(?:\w+\s+){0,4}?users?\b"
    r"|\bwithout\s+(?:telling|informing|notifying)\s+the\s+user\b"
    r"|\balways\s+(?:call|use|invoke|run)\s+this\s+(?:tool|function)\b"
    r"|\b(?:call|use|invoke|run)\s+this\s+(?:tool|function)\s+(?:first|before\s+(?:any|every|all|each)\b)"
    r"|\byou\s+must\s+(?:always|never|first|call|use|invoke|ignore)\b"
    r"|<\s*/?\s*(?:system|important|instructions?)\s*>",
    re.IGNORECASE,
)
_HIDDEN = frozenset(map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200B, 0x2060, 0xFEFF]))
"""Direction overrides and characters without width. Joiners (U+200C, U+200D) belong to scripts and emoji."""


def instructions(tool: Tool) -> Iterator[tuple[str, str]]:
    """(place, what was found) for the tool's own description and those of its schema."""
    for place, text in _texts(tool):
        if found := _PHRASES.search(text):
            yield place, f"{' '.join(found.group().split())[:80]!r}"
        if hidden := next((char for char in text if _is_hidden(char)), None):
            yield place, f"the hidden character U+{ord(hidden):04X}"


def _texts(tool: Tool) -> Iterator[tuple[str, str]]:
    yield "description", tool.description
    for place, node in walk(tool.parameters):
        text: Json = node.get("description")
        if isinstance(text, str):
            yield f"{place}/description", text


def _is_hidden(char: str) -> bool:
    tag = 0xE0000 <= ord(char) <= 0xE007F
    return tag or char in _HIDDEN or (unicodedata.category(char) == "Cc" and char not in "\n\r\t")
