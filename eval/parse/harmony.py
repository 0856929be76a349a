"""OpenAI's harmony format: channels, with their tokens and as they look once a server has stripped these."""

import re
from typing import Literal

from .context import ParseContext

MESSAGE_ENDS = ("<|end|>", "<|return|>", "<|call|>")
"""Tokens that end a message; `<|call|>` one that is a call, `<|return|>` the reply."""

ANALYSIS = (
    r"(?:<\|start\|>\s*assistant\s*)?<\|channel\|>\s*analysis(?![^<]{0,200}\bto=)[^<]{0,200}<\|message\|>"
)
"""The header of a message of the analysis channel without a recipient."""

ANALYSIS_END = re.compile(r"<\|(?:end|return|call|start|channel)\|>")

_EMPTY_HEADER = re.compile(
    r"<\|start\|>\s*assistant\s*(?:<\|message\|>|\Z|(?=<\|channel\|>\s*(?:final"
    r"|commentary)(?![^<]{0,200}\bto=)))"
    r"|<\|channel\|>\s*(?:final|commentary)(?![^<]{0,200}\bto=)[^<]{0,60}(?:<\|message\|>|\Z)"
    r"|assistantcommentary(?!\s*to=)"
)
_ADDRESSED = re.compile(r"\bto=[\w.-]{1,128}\s*\Z")
_BEGINS = re.compile(r"\s*+(?:assistant\s*)?analysis(?=[A-Z\u00c0-\uffff][\w'’-]*[\s,.!?:;，。！？：]|\Z)")
_MAY_BEGIN = re.compile(r"\s*+(?:assistant\s*)?analysis(?=\S)")
_BOUNDARY = re.compile(
    r"assistant(?P<channel>final|commentary|analysis)|functions\.[\w.-]{1,128} to=assistant"
    r"|(?<=[.!?)\]}\"'\s])(?:assistant|commentary)(?= to=)"
)
_FINAL = re.compile(r"\s*+(?:assistant)?final(?=[\[{<`*A-Z\u4e00-\u9fff])")
_WORD = re.compile(r"\s*+([\w.-]++)")

Part = tuple[Literal["reasoning", "invented", "final"], int, int]
"""Kind, start and end of a passage of the text."""


def without_headers(text: str) -> str:
    """The text without the headers of its own messages to the user."""
    if "<|" not in text and "assistantcommentary" not in text:
        return text

    def dropped(header: re.Match[str]) -> str:
        addressed = _ADDRESSED.search(text, max(0, header.start() - 200), header.start())
        return header[0] if addressed is not None else "\n"

    return _EMPTY_HEADER.sub(dropped, text)


def split_stripped(text: str, context: ParseContext) -> list[Part]:
    """The parts of a reply whose harmony tokens were stripped; [] for any other reply."""
    if not text.lstrip().startswith(("analysis", "assistant", "final", "commentary")):
        return []
    word = _WORD.match(text)
    if word is not None and context.resolve(word[1]) is not None:
        return []
    first = _BOUNDARY.search(text)
    begins = _BEGINS.match(text) or (_MAY_BEGIN.match(text) if first else None)
    if begins is None:
        final = _FINAL.match(text)
        if final is None:
            return []
        return [("final", final.end(), len(text))]
    parts: list[Part] = []
    kind: Literal["reasoning", "invented", "final"] = "reasoning"
    start = 0
    for boundary in _BOUNDARY.finditer(text, begins.end()):
        parts.append((kind, start, boundary.start()))
        if boundary["channel"] is None and boundary[0] not in (
            "assistant",
            "commentary",
        ):  # a function's answer
            parts.append(("invented", boundary.start(), len(text)))
            return parts
        kind = "reasoning" if boundary["channel"] == "analysis" else "final"
        start = boundary.end() if boundary["channel"] == "final" else boundary.start()
    parts.append((kind, start, len(text)))
    return parts
