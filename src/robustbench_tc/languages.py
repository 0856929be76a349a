"""The languages that a request can be written in, their scripts, and how a row says which of its values a
user wrote in their own language.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from .errors import UserError, unknown
from .schema.rows import Sample

RECORDED = ("zh", "hi", "es", "ar", "sw")
"""Languages whose texts ship with the package; of any other a generator writes them."""

VALUE_MAP = "/value_map"
"""Path of the entry in `changes` that maps a golden value to what stands for it in the row's request. It is
part of the diff's explanation and not a place in the row."""

_SCRIPTS = {
    "Arabic": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff",
    "Armenian": "\u0530-\u058f",
    "Bengali": "\u0980-\u09ff",
    "Cyrillic": "\u0400-\u052f",
    "Devanagari": "\u0900-\u097f",
    "Ethiopic": "\u1200-\u139f",
    "Georgian": "\u10a0-\u10ff\u1c90-\u1cbf",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Gujarati": "\u0a80-\u0aff",
    "Han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "Hangul": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "Hebrew": "\u0590-\u05ff\ufb1d-\ufb4f",
    "Japanese": "\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f",
    "Kannada": "\u0c80-\u0cff",
    "Khmer": "\u1780-\u17ff",
    "Lao": "\u0e80-\u0eff",
    "Malayalam": "\u0d00-\u0d7f",
    "Myanmar": "\u1000-\u109f",
    "Sinhala": "\u0d80-\u0dff",
    "Tamil": "\u0b80-\u0bff",
    "Telugu": "\u0c00-\u0c7f",
    "Thai": "\u0e00-\u0e7f",
}
"""Script → its characters. Latin is not among them: it does not tell a language from English."""


class Language(NamedTuple):
    """A language by its ISO 639-1 code."""

    code: str
    name: str
    """In English."""
    script: str | None
    """None for Latin letters."""


_KNOWN = """
am Amharic Ethiopic      ar Arabic Arabic         az Azerbaijani -         be Belarusian Cyrillic
bg Bulgarian Cyrillic    bn Bengali Bengali       bs Bosnian -             ca Catalan -
cs Czech -               cy Welsh -               da Danish -              de German -
el Greek Greek           es Spanish -             et Estonian -            eu Basque -
fa Persian Arabic        fi Finnish -             fr French -              ga Irish -
gl Galician -            gu Gujarati Gujarati     ha Hausa -               he Hebrew Hebrew
hi Hindi Devanagari      hr Croatian -            hu Hungarian -           hy Armenian Armenian
id Indonesian -          ig Igbo -                is Icelandic -           it Italian -
ja Japanese Japanese     ka Georgian Georgian     kk Kazakh Cyrillic       km Khmer Khmer
kn Kannada Kannada       ko Korean Hangul         lo Lao Lao               lt Lithuanian -
lv Latvian -             mk Macedonian Cyrillic   ml Malayalam Malayalam   mn Mongolian Cyrillic
mr Marathi Devanagari    ms Malay -               my Burmese Myanmar       ne Nepali Devanagari
nl Dutch -               no Norwegian -           pl Polish -              pt Portuguese -
ro Romanian -            ru Russian Cyrillic      si Sinhala Sinhala       sk Slovak -
sl Slovenian -           so Somali -              sq Albanian -            sr Serbian Cyrillic
sv Swedish -             sw Swahili -             ta Tamil Tamil           te Telugu Telugu
th Thai Thai             tl Tagalog -             tr Turkish -             uk Ukrainian Cyrillic
ur Urdu Arabic           uz Uzbek -               vi Vietnamese -          xh Xhosa -
yo Yoruba -              zh Chinese Han           zu Zulu -
"""

LANGUAGES: Mapping[str, Language] = {
    code: Language(code, name, None if script == "-" else script)
    for code, name, script in re.findall(r"(\w{2}) (\w+) (\w+|-)", _KNOWN)
}
"""By code, without English: that is the language of the clean rows."""


def language(code: str) -> Language:
    """The language of a code. Raises UserError with near misses."""
    if code not in LANGUAGES:
        raise unknown("language", code, LANGUAGES)
    return LANGUAGES[code]


@cache
def letters(script: str) -> re.Pattern[str]:
    """One letter of the script."""
    return re.compile(f"[{_SCRIPTS[script]}]")


def value_map(row: Sample) -> dict[str, str]:
    """Golden value → what stands for it in the row's request; {} for a row that keeps its values.

    Raises UserError for an entry that does not map texts to texts.
    """
    found: dict[str, str] = {}
    for change in row.changes:
        if change.path == VALUE_MAP:
            after = change.after
            if not isinstance(after, dict) or not all(isinstance(text, str) for text in after.values()):
                raise UserError(f"{row.id}: {VALUE_MAP} does not map values to texts")
            found.update(after)
    return found
