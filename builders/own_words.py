"""Whether a request is written in its language's script: by what its writer says in their own words."""

import re
from collections.abc import Iterable

from robustbench_tc.languages import LANGUAGES, letters

_QUOTED = re.compile(r"""(?<!\w)(['"`])[^'"`]{1,300}\1(?!\w)""")
_COPIED = re.compile(r"[A-Z0-9@/_=]|[a-z]\.[a-z]")


def own_words(text: str, values: Iterable[str] = ()) -> str:
    """What of a text its writer says in their own words: without the `values` and what is quoted, and without
    names, numbers, addresses and identifiers in Latin letters, which are copied whatever the language."""
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, " ")
    text = _QUOTED.sub(" ", text)
    return re.sub(r"[\x21-\x7e]+", lambda found: " " if _COPIED.search(found[0]) else found[0], text)


def other_script(code: str, text: str, values: Iterable[str] = ()) -> str | None:
    """Why a text is not written in the language's script, or None.

    At least half of the letters of its own words are; in a language of Latin letters nothing is asked.
    """
    script = LANGUAGES[code].script
    if script is None:
        return None
    own = [char for char in own_words(text, values) if char.isalpha()]
    if not own or 2 * sum(letters(script).match(char) is not None for char in own) < len(own):
        return f"fewer than half of its letters are {script}"
    return None
