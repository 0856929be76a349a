"""Texts without their escapes: `%40`, `\\u0040` and `&#64;` are all an `@`."""

import re

_ESCAPED = re.compile(
    r"%(?P<percent>[2-7][0-9A-Fa-f])|\\u00(?P<unicode>[2-7][0-9A-Fa-f])|\\x(?P<hex>[2-7][0-9A-Fa-f])"
    r"|&#x0{0,4}(?P<entity>[2-7][0-9A-Fa-f]);|&#0{0,4}(?P<decimal>[0-9]{2,3});|\\(?P<char>[ntr\\\"'/])"
)
_BLANK = {"n": "\n", "t": "\t", "r": "\r"}


def decoded(text: str) -> tuple[str, list[int]]:
    """The text without escapes, and for each of its places, and its end, where that begins in `text`."""
    view, places = text, list(range(len(text) + 1))
    for _ in range(3):  # escapes of escapes
        if not any(mark in view for mark in ("%", "\\", "&#")):
            break
        out, at, left = [], 0, list[int]()
        for match in _ESCAPED.finditer(view):
            char = _char(match)
            if char is None:
                continue
            out += [view[at : match.start()], char]
            left += [*places[at : match.start()], places[match.start()]]
            at = match.end()
        if not out:
            break
        out.append(view[at:])
        left += places[at:]
        view, places = "".join(out), left
    return view, places


def _char(match: re.Match[str]) -> str | None:
    if (char := match["char"]) is not None:
        return _BLANK.get(char, char)
    decimal = match["decimal"]
    code = int(decimal) if decimal else int(next(filter(None, match.groups())), 16)
    return chr(code) if 0x20 < code < 0x7F else None
