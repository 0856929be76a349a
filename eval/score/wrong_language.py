"""Whether a value was left in the user's language: right tool, and the first value that differs is the one
that the request has for it, or is written in the request's script (spec/axes.md, section 1).
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from robustbench_tc import taxonomy
from robustbench_tc.languages import LANGUAGES, is_written_in, value_map
from robustbench_tc.schema import ANY, Call, GoldenAnswer, Json, Sample, dumps

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
        return script is not None and is_written_in(script, text)
    return False


def _differing(calls: Sequence[Call], golden: GoldenAnswer) -> Iterator[tuple[str | None, set[str]]]:
    """The values that gold does not accept, in gold's order, each with the texts that gold accepts there;
    None for one that is not a text."""
    left = list(calls)
    for expected in golden:
        same = [call for call in left if call.name == expected.name]
        if not same:
            continue
        call = min(same, key=lambda call: sum(_differs(call.parameters, *one) for one in _compared(expected)))
        left.remove(call)
        for name, accepted in _compared(expected):
            if _differs(call.parameters, name, accepted):
                texts = {text for text in _leaves(accepted) if text is not None}
                known = {_folded(text) for text in texts}
                for text in _leaves(call.parameters[name]):
                    if text is None or _folded(text) not in known:
                        yield text, texts


def _compared(golden: Call) -> list[tuple[str, Json]]:
    return [(name, accepted) for name, accepted in golden.parameters.items() if ANY not in accepted]


def _differs(parameters: Mapping[str, Json], name: str, accepted: Json) -> bool:
    """Whether the value of a parameter that is there is none of the accepted ones."""
    if name not in parameters:
        return False
    value = _shape(parameters[name])
    return all(value != _shape(one) for one in accepted)


def _shape(value: Json) -> str:
    """A value for comparing: its JSON text, folded, with numbers and their texts alike."""
    return _folded(value if isinstance(value, str) else dumps(value).replace('"', ""))


def _leaves(value: Json) -> Iterator[str | None]:
    """The texts inside of a value; None for each number or truth value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value if isinstance(value, str) else None


def _plain(text: str) -> str:
    """NFKC, case folded, runs of white space as one space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _folded(text: str) -> str:
    return _plain(text).translate(_SIGNS)
