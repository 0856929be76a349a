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
from itertools import product
from typing import Any, ClassVar, Literal, NamedTuple

from robustbench_tc.builders.plain import other_script
from robustbench_tc.languages import LANGUAGES, RECORDED, VALUE_MAP, value_map
from robustbench_tc.schema import Change, Json, Message, Sample, Tool, dumps
from robustbench_tc.taxonomy import Rows

from .base import (
    DERIVED,
    Context,
    Facts,
    NotApplicable,
    Perturbation,
    TextRequest,
    lost_digits,
    refuse_text,
    register,
)
from .context_text import holds
from .observation import QUERY_REWRITE, QueryRewrite
from .query import gold_texts, kept_values, query_span, replace_span

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


class InLanguage(QueryRewrite, frozen=True, kw_only=True):
    """What the types of all languages share."""

    TRAITS: ClassVar[tuple[str, ...]] = ("language", "values")
    language: str
    """Its code."""
    values: Literal["kept", "translated"]


class Kept(InLanguage, frozen=True):
    """The request in another language, every golden value verbatim."""

    def refuse(self, request: TextRequest, answer: Json) -> str | None:
        """As every rewritten text, and in the language's script."""
        return refuse_text(request, answer) or other_script(self.language, answer, request.keep)

    def check_text(self, before: str, text: str, clean: Sample, row: Sample) -> list[str]:
        """Values and digits stay, and the script is the language's."""
        script = other_script(self.language, text, kept_values(clean, before))
        return super().check_text(before, text, clean, row) + ([] if script is None else [script])


class Translated(InLanguage, frozen=True):
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

_QUERIES: Facts = {
    **{name: fact for name, fact in QUERY_REWRITE.items() if name not in ("pack", "paper_rows", "rows")},
    "pack": "language",
}


def in_language(translated: bool, code: str, name: str, **facts: Any) -> InLanguage:
    """The type of one language: `code` is the language's, as in `LANGUAGES`."""
    changed, made = (_TRANSLATED, _HOW_TRANSLATED) if translated else (_KEPT, _HOW_KEPT)
    shared: Facts = {
        **_QUERIES,
        **facts,
        "language": code,
        "label": f"{name}, values {'translated' if translated else 'kept'}",
        "what_is_modified": _CHANGED.format(language=name, values=changed),
        "how_made": _HOW_MADE.format(language=name) + made,
        "prompt_words": {"language": name},
        "judged_as": f"a user's request; the second is a translation into {name}",
    }
    if translated:
        return Translated(
            **{**shared, "train_augmentable": False, "applies_to": "one gold tool"},
            code=f"language_full_{code}",
            display_name=f"{name}-Full",
            values="translated",
            prompt="language_full",
            prior_art=_MLCL.format("fully"),
        )
    return Kept(
        **shared,
        code=f"language_{code}",
        display_name=f"{name}-Kept",
        values="kept",
        prompt="language",
        prior_art=_MLCL.format("partially") + "; MASSIVE-Agents (Kulkarni et al. 2025) in 52 languages",
    )


ROWS: Mapping[str, tuple[Rows, Rows]] = {
    "zh": (Rows(paper=199, bundled=23), Rows(paper=14, bundled=8)),
    "hi": (Rows(paper=199, bundled=23), Rows(paper=19, bundled=8)),
    "es": (Rows(paper=198, bundled=23), Rows(paper=18, bundled=7)),
    "ar": (Rows(paper=199, bundled=23), Rows(paper=17, bundled=8)),
    "sw": (Rows(paper=198, bundled=23), Rows(paper=10, bundled=6)),
}
"""The languages whose texts ship with the package: rows with values kept, and with values translated."""

register(
    *(
        in_language(bool(full), code, LANGUAGES[code].name, order=order, rows=ROWS[code][full])
        for order, (full, code) in enumerate(product((0, 1), RECORDED), FIRST)
    )
)

_UNKNOWN: Facts = {"order": 0, "rows": Rows(paper=0, bundled=0)}


@cache
def of_a_language(code: str) -> Perturbation | None:
    """The unit of a language that is not among the stated ones, by its code; None for another code."""
    family, _, language = code.rpartition("_")
    if family not in ("language", "language_full") or language not in LANGUAGES or language in RECORDED:
        return None
    return in_language(family == "language_full", language, LANGUAGES[language].name, **_UNKNOWN)


DERIVED.append(of_a_language)

TEMPLATES: tuple[Perturbation, ...] = tuple(
    in_language(translated, "{code}", "{language}", **_UNKNOWN) for translated in (False, True)
)
"""The facts of both families with holes for the language: `make facts` publishes them for the other rooms."""
