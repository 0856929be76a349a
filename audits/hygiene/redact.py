"""Text that may be printed: reports quote rows, and a row may hold a credential."""

from .personal import personal
from .secrets import guesses, tokens


def redact(text: str) -> str:
    """The text with every credential replaced by its kind; all of it, where one stands there encoded."""
    found = sorted((*tokens(text), *guesses(text), *personal(text)), key=lambda m: (m.start, -len(m.value)))
    if found and found[0].start < 0:
        return f"[{found[0].kind}, encoded]"
    out, done = [], 0
    for match in found:
        if match.start >= done:
            out += [text[done : match.start], f"[{match.kind}]"]
            done = match.start + len(match.value)
        elif match.start + len(match.value) > done:
            done = match.start + len(match.value)
    return "".join([*out, text[done:]])
