"""Severity of offers: the series `factor` (how many times dearer the distractor is) and `abbreviated` (how
many letters the gold tool's name keeps).

The first is CD with one factor for all rows, the second CD_AB with other abbreviations; see `offers.py`.
"""

from fractions import Fraction

from robustbench_tc.taxonomy import Rows

from .base import (
    Facts,
    register,
)
from .offers import OFFER, Preference
from .reward import ABBREVIATED

_BEST_OFFER = (
    "Of two equal tools the better offer is always the gold, as in the core type that this one is a dose of."
)


FACTOR: Facts = {
    **OFFER,
    "rows": Rows(paper=148, bundled=60, full=3028),
    "pack": "severity",
    "may_change": ("messages", "the set of tools", "golden answers"),
    "ground_truth_changes": False,
    "train_augmentable": True,
    "stated": True,
    "quality": "cost",
    "series": "factor",
    "solved_without_reading": _BEST_OFFER,
    "prior_art": "none known: the paper draws the factor from 4 to 10",
    "suffix": "_Budget",
    "values": {"cost": (2, 10, 20, 50)},
}


_FACTOR = (
    "As CD, with prices of 0.002, 0.010, 0.020 or 0.050 dollars for the gold tool, and {times} that for the "
    "distractor in every row."
)


SHORTENED: Facts = {
    **ABBREVIATED,
    "pack": "severity",
    "may_change": ("the set of tools", "golden answers"),
    "train_augmentable": True,
    "stated": False,
    "quality": "cost",
    "series": "abbreviated",
    "solved_without_reading": _BEST_OFFER + " Its name is always the shorter one, too.",
    "prior_art": "none known: the paper abbreviates to three letters",
}
"""CD_AB with so many letters kept of each part of the gold tool's name."""


_SHORTENED = (
    "As CD_AB: a dearer look-alike keeps the readable name, the query states no preference. Of each part of "
    "the gold tool's name that has at least {least} letters {kept}; names that do not change are skipped."
)


register(
    Preference(
        **FACTOR,
        code="factor_1_5",
        order=604,
        display_name="Factor-1.5",
        label="decoy costs 1.5 times",
        what_is_modified="As CD; the tool called _Budget costs one and a half times what the gold tool does.",
        how_made=_FACTOR.format(times="one and a half times"),
        factors=(Fraction(3, 2),),
        dose=1.5,
    ),
    Preference(
        **FACTOR,
        code="factor_5",
        order=605,
        display_name="Factor-5",
        label="decoy costs 5 times",
        what_is_modified="As CD; the tool called _Budget costs five times what the gold tool does.",
        how_made=_FACTOR.format(times="five times"),
        factors=(5,),
        dose=5,
    ),
    Preference(
        **FACTOR,
        code="factor_100",
        order=606,
        display_name="Factor-100",
        label="decoy costs 100 times",
        what_is_modified="As CD; the tool called _Budget costs a hundred times what the gold tool does.",
        how_made=_FACTOR.format(times="a hundred times"),
        factors=(100,),
        dose=100,
    ),
    Preference(
        **SHORTENED,
        code="abbreviated_5",
        order=607,
        display_name="Abbr-5",
        label="gold keeps 5 letters",
        what_is_modified="As CD_AB; each part of the gold tool's name keeps five letters.",
        how_made=_SHORTENED.format(least=7, kept="the first five stay"),
        letters=5,
        dose=5,
        rows=Rows(paper=93, bundled=35, full=1872),
    ),
    Preference(
        **SHORTENED,
        code="abbreviated_3",
        order=608,
        display_name="Abbr-3",
        label="gold keeps 3 letters",
        what_is_modified="As CD_AB, drawn once more; each part of the gold tool's name keeps three letters.",
        how_made=_SHORTENED.format(least=5, kept="the first three stay"),
        letters=3,
        dose=3,
        rows=Rows(paper=144, bundled=55, full=2920),
    ),
    Preference(
        **SHORTENED,
        code="abbreviated_1",
        order=609,
        display_name="Abbr-1",
        label="gold keeps 1 letter",
        what_is_modified="As CD_AB; each part of the gold tool's name keeps one letter.",
        how_made=_SHORTENED.format(least=3, kept="the first one stays"),
        letters=1,
        dose=1,
        rows=Rows(paper=148, bundled=60, full=3023),
    ),
)
