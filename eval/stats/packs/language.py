"""The language pack: what another language costs, how much of it is values in the user's words, and how often
a wrong answer left a value in the user's language (packs/language.md).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from robustbench_tc import taxonomy
from robustbench_tc.io import numbers
from robustbench_tc.languages import language

from ..intervals import difference, of_estimate, shares
from ..significance import paired_p
from . import Cell, Given, Table

PACKS = ("language",)

EVERY = "all languages"


def tables(given: Given) -> Iterator[Table]:
    """Δ per language, the share of execution, and the errors in the user's language."""
    found = _by_language(given.codes("language"))
    losses = {code: row.delta_matched for code, row in given.summary.types.items()}
    deltas = {
        language(lang).name: [losses.get(types.get(values, "")) for values in ("kept", "translated")]
        for lang, types in found.items()
    }
    yield Table(
        name="language_deltas",
        title="Loss of accuracy by language",
        columns=("language", "pairs, values kept", "Δ", "pairs, translated", "Δ translated"),
        rows=tuple(
            (name, kept and kept.n, kept, translated and translated.n, translated)
            for name, (kept, translated) in deltas.items()
        ),
        note="Δ: accuracy on the English row minus accuracy on the translated one, on the same samples. The "
        "two columns rest on other samples; the next table compares them on the same.",
    )
    if execution := tuple(_executions(given, found)):
        yield Table(
            name="language_execution",
            title="Values in the user's language: what they cost beyond the language itself",
            columns=("language", "samples", "right, values kept", "right, translated", "difference", "p"),
            rows=execution,
            note="Only samples that have both rows. The difference is accuracy with values kept minus that "
            "with values translated, which is Δ translated minus Δ kept on the same samples: the part of "
            "the loss that lies in writing the call and not in reading the request. Its interval and the "
            "exact paired test take samples as units, also over all languages.",
        )
    yield Table(
        name="language_errors",
        title="Wrong answers with a value in the user's language",
        columns=("language", "values", "wrong answers", "wrong_language", "share"),
        rows=tuple(_errors(given, found)),
        note="wrong_language: the right tool, and the first value that differs is the one that the request "
        "has for it or is written in the request's script. In a language of Latin letters only the former "
        "can be seen, so rows with values kept can have none there.",
    )


def _by_language(codes: Sequence[str]) -> dict[str, dict[str, str]]:
    """Language code → values kept or translated → type, languages in the order of their first type."""
    found: dict[str, dict[str, str]] = {}
    for code in codes:
        traits = taxonomy.get(code).traits
        found.setdefault(str(traits["language"]), {})[str(traits["values"])] = code
    return found


def _executions(given: Given, found: dict[str, dict[str, str]]) -> Iterator[tuple[Cell, ...]]:
    pairs = {
        language(lang).name: [(types["kept"], types["translated"])]
        for lang, types in found.items()
        if len(types) == 2
    }
    every = {EVERY: [pair for [pair] in pairs.values()]} if len(pairs) > 1 else {}
    for name, several in {**pairs, **every}.items():
        if (made := _execution(given, several)) is not None:
            yield name, *made


def _execution(given: Given, pairs: Sequence[tuple[str, str]]) -> tuple[Cell, ...] | None:
    """Samples, both accuracies, their difference and its p over the samples that have both rows of a pair."""
    one = given.outcomes
    right, rows = np.zeros((2, len(one.clean_ids))), np.zeros(len(one.clean_ids))
    for pair in pairs:
        both, answers = one.whole(pair)
        right[:, both] += answers.T
        rows += both * one.repeats
    n = int(rows.sum())
    if not n:
        return None
    kept, translated = (shares(one.by_unit(side), one.by_unit(rows)) for side in right)
    p = paired_p(one.by_unit((right[0] - right[1]).astype(np.int64)))
    found = of_estimate(difference(kept, translated), n, "mover", p)
    return int((rows > 0).sum()), float(kept.value), float(translated.value), found, numbers.p_value(p)


def _errors(given: Given, found: dict[str, dict[str, str]]) -> Iterator[tuple[Cell, ...]]:
    for lang, types in found.items():
        for values, code in types.items():
            modes = [one.error_mode for one in given.answers(code) if not one.right]
            foreign = modes.count("wrong_language")
            yield language(lang).name, values, len(modes), foreign, foreign / len(modes) if modes else None
