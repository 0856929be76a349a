"""Whether a value was left in the user's language: right tool, and the first value that differs is the one
that the request has for it, or is written in the request's script (packs/language.md).
"""

import unicodedata
from collections.abc import Iterator, Sequence

from robustbench_tc import taxonomy
from robustbench_tc.languages import LANGUAGES, letters, value_map
from robustbench_tc.schema import ANY, Call, GoldenAnswer, Json, Sample, dumps

from .values import leaves

_SIGNS = {ord(sign): None for sign in " \t\n,./-_*^"}
"""What a scorer that compares loosely does not look at."""


def leaves_users_language(calls: Sequence[Call], golden: GoldenAnswer, row: Sample) -> bool:
    """Whether the first value of `calls` that is not one of gold's is in the language of the row's request.

    False for rows whose request is in English, and where nothing but names or numbers of parameters differ.
    """
    lang = taxonomy.get(row.type_code).traits.get("language") if taxonomy.known(row.type_code) else None
    if not isinstance(lang, str):
        return False
    surfaces = {_folded(value): _plain(surface) for value, surface in value_map(row).items()}
    script = LANGUAGES[lang].script
    for text, accepted in _differing(calls, golden):
        if text is None:
            return False
        if any(surfaces.get(_folded(value)) == _plain(text) for value in accepted):
            return True
        signs = [char for char in text if char.isalnum()]
        written = 0 if script is None else sum(letters(script).match(char) is not None for char in signs)
        return bool(written) and 2 * written >= len(signs)
    return False


def _differing(calls: Sequence[Call], golden: GoldenAnswer) -> Iterator[tuple[str | None, set[str]]]:
    """The values that gold does not accept, in gold's order, each with the texts that gold accepts there;
    None for one that is not a text."""
    for expected, call in _paired(calls, golden):
        for name, accepted in expected.parameters.items():
            texts = {text for text, is_text in _leaves(accepted) if is_text}
            for text, is_text in _others(call, name, accepted):
                yield (text if is_text else None), texts


def _paired(calls: Sequence[Call], golden: GoldenAnswer) -> list[tuple[Call, Call]]:
    """Golden calls with the call of the same name that means each, in gold's order: those that differ least
    are paired first."""
    costs = sorted(
        (sum(len(_others(call, *one)) for one in expected.parameters.items()), place, other)
        for place, expected in enumerate(golden)
        for other, call in enumerate(calls)
        if call.name == expected.name
    )
    meant: dict[int, int] = {}
    for _, place, other in costs:
        if place not in meant and other not in meant.values():
            meant[place] = other
    return [(golden[place], calls[meant[place]]) for place in sorted(meant)]


def _others(call: Call, name: str, accepted: Json) -> list[tuple[str, bool]]:
    """The values of a parameter that stand in none of the accepted ones; [] where it takes any value, or is
    not there."""
    if name not in call.parameters or ANY in accepted:
        return []
    known = {_folded(text) for text, _ in _leaves(accepted)}
    return [leaf for leaf in _leaves(call.parameters[name]) if _folded(leaf[0]) not in known]


def _leaves(value: Json) -> Iterator[tuple[str, bool]]:
    """The values inside of lists and objects as texts, and whether they are texts."""
    yield from ((one, True) if isinstance(one, str) else (dumps(one), False) for one in leaves(value))


def _plain(text: str) -> str:
    """NFKC, case folded, runs of white space as one space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _folded(text: str) -> str:
    return _plain(text).translate(_SIGNS)
