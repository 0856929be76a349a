"""Words in the prose around a call that say whether the reply makes it: six languages, one table each.

Every field is a regular expression over lower-case text. A reply's language is not declared and models mix them:
all languages of the scripts that occur are searched at once.
"""

import re
from functools import cache

from . import arabic, chinese, english, hindi, spanish, swahili
from .table import Cues

Compiled = Cues[re.Pattern[str]]
"""The same for several languages at once."""

_LATIN = ("latin", "english")
_TOGETHER = {"negated": ("negated", "refused", "supposed")}
"""Fields that one scan looks for."""


def _compiled(tables: tuple[Cues[str], ...]) -> Compiled:
    patterns = {}
    for field in Cues._fields:
        names = _TOGETHER.get(field, (field,))
        parts = [part for table in tables for name in names for part in _alternatives(getattr(table, name))]
        # One look for a word's beginning serves every alternative that asks for it: several times as fast.
        words = [part.removeprefix(r"\b") for part in parts if part.startswith(r"\b")]
        rest = [part for part in parts if not part.startswith(r"\b")]
        patterns[field] = re.compile("|".join([rf"\b(?:{'|'.join(words)})"] * bool(words) + rest))
    return Cues(**patterns)


def _alternatives(pattern: str) -> list[str]:
    """The alternatives of a regular expression, those inside groups and classes left together."""
    found: list[str] = []
    depth = start = at = 0
    in_class = False
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at += 1
        elif in_class:
            in_class = sign != "]"
        elif sign == "[":
            in_class = True
        elif sign in "()":
            depth += 1 if sign == "(" else -1
        elif sign == "|" and depth == 0:
            found.append(pattern[start:at])
            start = at + 1
        at += 1
    return [part for part in (*found, pattern[start:]) if part]


_LANGUAGES = {
    "english": (english.CUES,),
    "latin": (english.CUES, spanish.CUES, swahili.CUES),
    "han": (chinese.CUES, english.CUES),
    "devanagari": (hindi.CUES, english.CUES),
    "arabic": (arabic.CUES, english.CUES),
    "all": (english.CUES, spanish.CUES, swahili.CUES, chinese.CUES, hindi.CUES, arabic.CUES),
}
_SCRIPTS = {
    "han": re.compile("[\u3400-\u9fff]"),
    "devanagari": re.compile("[\u0900-\u097f]"),
    "arabic": re.compile("[\u0600-\u06ff]"),
}


_ENGLISH = frozenset("the i it to is and this for call calling retry request".split())
_OTHERS = frozenset("la el los las de que lo por en es ni na ya wa kwa tena lakini pero".split())
"""Little words: most replies are in English alone, and need no other table."""


@cache
def _of(script: str) -> Compiled:
    """Compiled when first needed, not at every start of the program."""
    return _compiled(_LANGUAGES[script])


def cues_for(text: str) -> Compiled:
    """The cues of the languages that a lower-case text may be in, by its scripts."""
    if text.isascii():
        words = set(text.split())
        is_english = len(_ENGLISH & words) > 1 and _OTHERS.isdisjoint(words)
        return _of(_LATIN[is_english])
    found = [name for name, script in _SCRIPTS.items() if script.search(text) is not None]
    if not found:
        return _of("latin")
    return _of(found[0] if len(found) == 1 else "all")
