"""Language: the user writes in another language than the tools speak (packs/language.md).

type                 the request                                              gold
language_zh, …       translated, every golden value verbatim                  unchanged
language_full_zh, …  as a native speaker types it, values translated too      unchanged

Five languages are stated here, with texts that ship with the package. Those of any other come into being by
their codes (`language_de`): a generator writes their texts. Only the text that `query_paraphrase` rewrites
changes; registry, history and gold stay English.
"""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import msgspec

from robustbench_tc.builders.plain import other_script
from robustbench_tc.languages import LANGUAGES, RECORDED, VALUE_MAP, Language, value_map
from robustbench_tc.schema import Change, Json, Message, Sample, Tool, dumps
from robustbench_tc.taxonomy import Rows

from .base import (
    DERIVED,
    Case,
    Context,
    NotApplicable,
    Perturbation,
    TextRequest,
    lost_digits,
    refuse_text,
    register,
    states,
)
from .context_text import holds
from .observation import QueryRewrite
from .query import gold_texts, kept_values, query_span, replace_span, reworded

NO_VALUE = "no_value_to_translate"
NOT_UNIQUE = "surface_not_unique"
TAKEN = "surface_is_accepted"
IN_ENGLISH = "value_stands_in_english"

LONGER = 40
"""Characters that words may have beyond four times those of their value."""

FIRST = 101
"""Order of the first type; those with translated values follow those with kept ones."""

_CHANGED = "The user's request is in {language}; {values} Tools, history and ground truth stay English."
_KEPT = "every ground-truth value stands verbatim."
_TRANSLATED = "its values are translated too, as a native speaker types."
_HOW_MADE = (
    "A model or a bilingual writer puts the user's query (API-Bank: the last substantive user turn) into "
    "{language}. "
)
_HOW_KEPT = (
    "Every golden value stays verbatim, and every digit; a text that loses one is refused, and so is one "
    "that is not mostly in the language's script, where that is not Latin. The golden call is the clean "
    "row's."
)
_HOW_TRANSLATED = (
    "Values are translated too, and a map says what stands for each golden value; digits stay. The golden "
    "call is the clean row's, in English. A sample takes no such row where no value was translated, where a "
    "translated value does not lead back to one English value, where one also stands in the row in English, "
    "and where the scorer takes the translated one."
)
_MLCL = "MLCL (Luo et al. 2026, arXiv:2601.05366): {} translated queries in Chinese, Hindi and Igbo"
_PRIOR_ART = {
    "kept": _MLCL.format("partially") + "; MASSIVE-Agents (Kulkarni et al. 2025) in 52 languages",
    "translated": _MLCL.format("fully"),
}


class InLanguage(QueryRewrite):
    """What the types of all languages share."""

    pack = "language"
    paper_rows = None
    language: ClassVar[str]
    """Its code."""
    values: ClassVar[str]
    """kept or translated."""
    traits = ("language", "values")


class Kept(InLanguage):
    """The request in another language, every golden value verbatim."""

    train_augmentable = True
    values = "kept"
    prompt = "language"
    prior_art = _PRIOR_ART["kept"]
    otherwise_caught_by = "gold_values_kept"

    def refuse(self, request: TextRequest, answer: Json) -> str | None:
        """As every rewritten text, and in the language's script."""
        return refuse_text(request, answer) or other_script(self.language, answer, request.keep)

    def check_text(self, before: str, text: str, clean: Sample, row: Sample) -> list[str]:
        """Values and digits stay, and the script is the language's."""
        script = other_script(self.language, text, kept_values(clean, before))
        return super().check_text(before, text, clean, row) + ([] if script is None else [script])

    def spoiled_otherwise(self, clean: Sample, row: Sample) -> Sample:
        """A golden value that was spelt in another way."""
        change = row.changes[0]
        text = str(change.after)
        for value in kept_values(clean, str(change.before)):
            if value.isalpha():
                return reworded(row, text.replace(value, "-".join(value)))
        return row


@states(
    train_augmentable=False,
    values="translated",
    applies_to="one gold tool",
    prompt="language_full",
    prior_art=_PRIOR_ART["translated"],
    caught_by="gold_values_kept",
    otherwise_caught_by="surfaces_stand_for_values",
)
class Translated(InLanguage):
    """The request as a native speaker types it, with its values."""

    def requests(self, sample: Sample) -> tuple[TextRequest, ...]:
        """As the base; a sample without a value in words needs no text."""
        (request,) = super().requests(sample)
        if not any(letter.isalpha() for value in request.keep for letter in value):
            raise NotApplicable(NO_VALUE)
        return (request,)

    def refuse(self, request: TextRequest, answer: Json) -> str | None:
        """Every digit stands, each golden value verbatim or through its surface, and the script is right."""
        found = read_translation(answer)
        if isinstance(found, str):
            return found
        return refuse_translation(self.language, request.input, request.keep, found)

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """Replaces the query's span by the accepted text, and says in the diff what stands for which value.

        Raises NotApplicable where no value was translated, where a surface does not lead back to one value,
        where a value also stands in English, and where the scorer takes the golden call with the surfaces.
        """
        (request,) = self.requests(sample)
        answer = context.text(request)
        if reason := self.refuse(request, answer.value):
            raise NotApplicable(f"text_refused: {reason}")
        found = read_translation(answer.value)
        assert not isinstance(found, str)  # it was refused above
        surfaces = translated_values(sample, found)
        if not surfaces:
            raise NotApplicable(NO_VALUE)
        if set(surfaces) & set(found.unmapped) or not_unique(surfaces):
            raise NotApplicable(NOT_UNIQUE)
        messages, change = replace_span(sample, query_span(sample), found.text)
        if in_english(surfaces, messages, sample.tools):
            raise NotApplicable(IN_ENGLISH)
        if context.taken(sample, surfaces):
            raise NotApplicable(TAKEN)
        explained = Change(VALUE_MAP, None, surfaces)
        return self.row(sample, [change, explained], generator=answer.generator, messages=messages)

    def check_text(self, before: str, text: str, clean: Sample, row: Sample) -> list[str]:
        """Digits stay, values stand through the map, each of its surfaces stands there and for one value."""
        surfaces = value_map(row)
        found = Translation(text, surfaces)
        reason = refuse_translation(self.language, before, kept_values(clean, before), found)
        wrong = [] if reason is None else [f"the query: {reason}"]
        if not surfaces or surfaces != translated_values(clean, found) or not_unique(surfaces):
            wrong.append("the value map does not name what stands for the golden values")
        if in_english(surfaces, row.messages, row.tools):
            wrong.append("a translated value stands in the row in English too")
        return wrong

    def spoiled(self, clean: Sample, row: Sample) -> Sample:
        """The query without the words that stand for a golden value."""
        before, after = str(row.changes[0].before), str(row.changes[0].after)
        for value, surface in value_map(row).items():
            if value in before:
                return reworded(row, after.replace(surface, "…"))
        return row

    def spoiled_otherwise(self, clean: Sample, row: Sample) -> Sample:
        """A map that names a value that the golden call does not have."""
        surfaces = {f"{value} Bay": surface for value, surface in value_map(row).items()}
        more = Change(VALUE_MAP, None, {**value_map(row), **surfaces})
        return msgspec.structs.replace(row, changes=(row.changes[0], more))


class Translation(NamedTuple):
    """A translated request with what stands in it for golden values."""

    text: str
    value_map: Mapping[str, str]
    unmapped: tuple[str, ...] = ()
    """Values of the map whose surface could stand for another English value too."""


def read_translation(answer: Json) -> Translation | str:
    """The answer as a translation, or why it is none."""
    if not isinstance(answer, dict) or not isinstance(text := answer.get("text"), str) or not text.strip():
        return "not a JSON object with `text` and `value_map`"
    surfaces, unmapped = answer.get("value_map", {}), answer.get("unmapped", [])
    if not isinstance(surfaces, dict) or not all(isinstance(one, str) for one in surfaces.values()):
        return "`value_map` does not map values to texts"
    if not isinstance(unmapped, list) or not all(isinstance(one, str) for one in unmapped):
        return "`unmapped` is not a list of values"
    return Translation(text, surfaces, tuple(unmapped))


def refuse_translation(code: str, before: str, keep: tuple[str, ...], found: Translation) -> str | None:
    """Why a translated request cannot serve, or None."""
    if found.text.strip() == before.strip():
        return "unchanged"
    surfaces = found.value_map
    for value, surface in surfaces.items():
        if not surface.strip() or surface not in found.text:
            return f"no words for the value {value!r}: {surface!r} is not in the text"
        if len(surface) > 4 * len(value) + LONGER:
            return f"words that are far longer than the value {value!r}"
    for value in keep:
        if value not in found.text and not _is_other(value, surfaces.get(value, value)):
            return f"lost value {value!r}"
    if code == "zh" and _MONTH_IN_WORDS.search(found.text):
        return "a month in words before a day in digits: people type 3月16日"
    if digits := [one for one in lost_digits(before, found.text) if not _is_typed(code, one, found.text)]:
        return f"lost digits {digits[0]}"
    return other_script(code, found.text, keep)


_MONTH_IN_WORDS = re.compile(r"[一二三四五六七八九十]+月\s?\d")


def _is_typed(code: str, digits: str, text: str) -> bool:
    """Whether a month or a day stands in a Chinese date without its leading zero."""
    plain = digits.lstrip("0")
    return code == "zh" and len(digits) == 2 and re.search(rf"(?<!\d){plain}\s?[月日号]", text) is not None


def translated_values(sample: Sample, found: Translation) -> dict[str, str]:
    """Of the map what is about a golden value, and differs from it."""
    gold = set(gold_texts(sample))
    return {v: s for v, s in found.value_map.items() if v in gold and _is_other(v, s)}


def _is_other(value: str, surface: str) -> bool:
    """Whether a surface differs by more than its case."""
    return surface.casefold() != value.casefold()


def in_english(values: Iterable[str], messages: Sequence[Message], tools: Sequence[Tool]) -> bool:
    """Whether one of the values stands in a message or a tool's definition: it can be copied from there."""
    said = "\n".join([*(message.content for message in messages), dumps(tools)]).casefold()
    return any(holds(said, value.casefold()) for value in values)


def not_unique(surfaces: Mapping[str, str]) -> bool:
    """Whether two values have the same surface: it leads back to neither."""
    folded = [surface.casefold() for surface in surfaces.values()]
    return len(set(folded)) < len(folded)


# --- the types ----------------------------------------------------------------------------------------

_TABLE = "Book 2 seats at Luna tonight."
_FERRY = "Which ferries leave Mallow Quay on Friday?"

_KEPT_CASES = {
    "zh": "今晚在 Luna 订 2 个座位。",
    "hi": "आज रात Luna में 2 सीटें बुक करो।",
    "es": "Reserva 2 asientos en Luna para esta noche.",
    "ar": "احجز 2 من المقاعد في Luna الليلة.",
    "sw": "Weka nafasi 2 za viti pale Luna usiku wa leo.",
}
_TRANSLATED_CASES = {
    "zh": ("table", "Luna", "露娜", "今晚在露娜订 2 个座位。"),
    "hi": ("table", "Luna", "लूना", "आज रात लूना में 2 सीटें बुक करो।"),
    "es": ("ferry", "Friday", "viernes", "¿Qué ferris salen de Mallow Quay el viernes?"),
    "ar": ("table", "Luna", "لونا", "احجز 2 من المقاعد في لونا الليلة."),
    "sw": ("ferry", "Friday", "Ijumaa", "Ni feri zipi zinaondoka Mallow Quay siku ya Ijumaa?"),
}


def _translated_case(code: str) -> Case:
    clean, value, surface, text = _TRANSLATED_CASES[code]
    asked = {"table": _TABLE, "ferry": _FERRY}[clean]
    answer = {"text": text, "value_map": {value: surface}}
    reads = f"- user: {asked}\n+ user: {text}\n+ {value} is written: {surface}"
    return Case(clean=clean, texts={asked: answer}, reads=reads)


def facts_of(base: type[InLanguage], language: Language) -> dict[str, Any]:
    """What tells the type of a language from those of others."""
    kept = base.values == "kept"
    changed, made = (_KEPT, _HOW_KEPT) if kept else (_TRANSLATED, _HOW_TRANSLATED)
    return {
        "__doc__": f"{base.__doc__} Language: {language.name}.",
        "__module__": __name__,
        "code": f"language_{language.code}" if kept else f"language_full_{language.code}",
        "language": language.code,
        "display_name": f"{language.name}-{'Kept' if kept else 'Full'}",
        "label": f"{language.name}, values {base.values}",
        "what_is_modified": _CHANGED.format(language=language.name, values=changed),
        "how_made": _HOW_MADE.format(language=language.name) + made,
        "prompt_words": MappingProxyType({"language": language.name}),
        "judged_as": f"a user's request; the second is a translation into {language.name}",
    }


def _type(base: type[InLanguage], language: Language, **facts: Any) -> type[Perturbation]:
    """The class of one language's type."""
    return type(base.__name__ + language.name, (base,), {**facts_of(base, language), **facts})


_ROWS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"zh": (199, 14), "hi": (199, 19), "es": (198, 18), "ar": (199, 17), "sw": (198, 10)}
)
"""Rows of profile paper: with values kept, and with values translated."""

_BUNDLED: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"zh": (23, 8), "hi": (23, 8), "es": (23, 7), "ar": (23, 8), "sw": (23, 6)}
)
"""The same of profile bundled."""

for _place, _code in enumerate(RECORDED):
    register(
        _type(
            Kept,
            LANGUAGES[_code],
            order=FIRST + _place,
            rows=Rows(paper=_ROWS[_code][0], bundled=_BUNDLED[_code][0]),
            golden=(
                Case(
                    clean="table",
                    texts={_TABLE: _KEPT_CASES[_code]},
                    reads=f"- user: {_TABLE}\n+ user: {_KEPT_CASES[_code]}",
                ),
            ),
        )
    )
    register(
        _type(
            Translated,
            LANGUAGES[_code],
            order=FIRST + len(RECORDED) + _place,
            rows=Rows(paper=_ROWS[_code][1], bundled=_BUNDLED[_code][1]),
            golden=(_translated_case(_code),),
        )
    )


@cache
def of_a_language(code: str) -> Perturbation | None:
    """The unit of a language that is not among the stated ones, by its code; None for another code."""
    for language in LANGUAGES.values():
        for base in (Kept, Translated):
            if code == facts_of(base, language)["code"] and language.code not in RECORDED:
                return _type(base, language, order=0, rows=Rows(paper=0, bundled=0), golden=())()
    return None


DERIVED.append(of_a_language)

TEMPLATES: tuple[Perturbation, ...] = tuple(
    _type(base, Language("{code}", "{language}", None), order=0, rows=Rows(paper=0, bundled=0), golden=())()
    for base in (Kept, Translated)
)
"""The facts of both families with holes for the language: `make facts` publishes them for the other rooms."""
