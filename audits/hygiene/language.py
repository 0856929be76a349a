"""In which language and script a text is written."""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

from robustbench_tc.builders.plain import other_script, own_words
from robustbench_tc.errors import need_extra

from .characters import scripts

SURE = 0.9
"""Probability from which the detector is believed; of 3,400 recorded rewritings it is wrong about none."""

SHORT = 20
"""Shorter texts are names and numbers: only their script is compared."""


def other_language(before: Sequence[str], after: str) -> Iterator[str]:
    """Whether a text is written in another script or language than those that it goes with."""
    here = set().union(*(scripts(text) for text in before))
    there = scripts(after)
    if here and there - here:
        yield f"{' and '.join(sorted(there - here))} letters beside {' and '.join(sorted(here))}"
    elif here and here - {"LATIN"} and not there & (here - {"LATIN"}) and there:
        yield f"no {' or '.join(sorted(here - {'LATIN'}))} letters any more"
    elif len(after) >= SHORT:
        language, probability = _language(after)
        original, certain = _language(" ".join(before))
        # Two sure answers, or anything sure that is not English: short English texts are taken for Danish.
        if language != original and probability > SURE and (language != "en" or certain > SURE):
            yield f"{language} instead of {original}"


def not_in_language(lang: str, values: Sequence[str], after: str) -> Iterator[str]:
    """Whether a translated text is in another script or language than it says; `values` stay as they are."""
    if wrong := other_script(lang, after, values):
        yield wrong
    said = own_words(after, values)
    if len(after) >= SHORT and not wrong:
        language, probability = _language(said)
        if language != lang and probability > SURE:
            yield f"{language} instead of {lang}"


@lru_cache(maxsize=65_536)
def _language(text: str) -> tuple[str, float]:
    """The language of the text's prose, and how likely it is."""
    # Words only: identifiers, numbers and quoted values belong to no language.
    prose = re.findall(r"(?<![\w./@'\"])[^\W\d_]+(?:['’][^\W\d_]+)?(?![\w/@])", text)
    label, probability = _detector().classify(" ".join(prose) or text)
    return label, float(probability)


@cache
def _detector() -> Any:
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError:
        raise need_extra("py3langid", "audit") from None
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
