"""Text that cannot steer a terminal or a page: what models, servers and files wrote is shown, not obeyed."""

# Persian, Hindi and emoji are written with these two: escaped they would hide what a reader has to see.
_JOINERS = "\u200c\u200d"


def safe(text: str, keep: str = "\n\t") -> str:
    r"""`text` with each character that is not seen but obeyed as Python writes it: `\x1b`, `\u202e`.

    These are the C0 and C1 controls (`keep` excepted), DEL, bidi and other format characters, line
    separators, lone surrogates, and code points that are not assigned.
    """
    if text.isprintable():
        return text
    return "".join(c if _is_seen(c) or c in keep else _as_python(c) for c in text)


def shortened(text: str, length: int) -> str:
    """At most so many characters, the last one an ellipsis where more follow."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def safe_json(text: str) -> str:
    r"""JSON whose strings cannot steer a terminal: as `safe`, but as JSON writes it, so values stay."""
    return "\n".join(
        line
        if line.isprintable()
        else "".join(c if _is_seen(c) or c in "\t\r" else _as_json(c) for c in line)
        for line in text.split("\n")
    )


def _is_seen(c: str) -> bool:
    return c.isprintable() or (c.isspace() and c >= "\xa0" and c not in "\u2028\u2029") or c in _JOINERS


def _as_python(c: str) -> str:
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _as_json(c: str) -> str:
    units = c.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
