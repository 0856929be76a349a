"""Reward: the types whose metadata should decide between two equal tools (table 1). How: `offers.py`.

type            distractor's name             preference in the query   gold
CD, TD          gold + `_Budget` / `_Fast`    stated                    unchanged
CD_NT, TD_NT    gold + `_1`                   stated                    unchanged
CD_AB, TD_AB    the original, readable name   none                      renamed to the abbreviation
CD_AB_pref, …   as AB                         stated                    renamed (extension)

And the severity of offers: the series `factor` (CD with one factor for all rows: how many times dearer the
distractor is) and `abbreviated` (CD_AB with other abbreviations: how many letters of each part of the gold
tool's name stay).
"""

from fractions import Fraction

from robustbench_tc.taxonomy import Rows

from .base import Facts, register
from .offers import NAMES_DISTRACTOR, OFFER, Preference

_HOW_MADE = (
    "A second tool equivalent to the gold tool enters and both descriptions are annotated with a "
    "{what}; the gold tool's is better by a factor of 4 or more. The annotations are true, names "
    "mislead: the other tool is called {name}. {query} The registry is shuffled."
)
_STATED = (
    "A sentence that asks for the {wish} joins the last user turn; where a call was executed after that "
    "turn, the closing turn that asks for the scored call."
)
_UNSTATED = "The query states no preference, and the golden answer takes the gold tool's new name."
_AB_NAME = "by the original, readable name, while the gold tool's name is abbreviated"

_ALWAYS_BETTER = (
    "Of two equal tools the better offer is always the gold, stated or not: whoever always takes the "
    "cheapest or quickest tool is right. Its name is always the shorter one, too."
)
"""Why the types of this module need no reading; it is stated here, so that other offers do not inherit it."""


SUFFIXED: Facts = {
    **OFFER,
    "paper_rows": 102,
    "rows": Rows(paper=148, bundled=60),
    "pack": "core",
    "may_change": ("messages", "the set of tools", "golden answers"),
    "ground_truth_changes": False,
    "train_augmentable": True,
    "stated": True,
    "solved_without_reading": _ALWAYS_BETTER,
}
"""The distractor has a suffixed name, and the query says what is wanted."""


ABBREVIATED: Facts = {
    **OFFER,
    "ground_truth_changes": True,
    "suffix": None,
    "flags": {
        NAMES_DISTRACTOR: "the transcript already calls the tool by the name that the "
        "distractor now has; reported apart"
    },
}
"""The gold tool is renamed to its abbreviation; the distractor has the readable name."""


UNSTATED: Facts = {
    **ABBREVIATED,
    "paper_rows": 144,
    "rows": Rows(paper=144, bundled=55),
    "pack": "core",
    "may_change": ("the set of tools", "golden answers"),
    "train_augmentable": True,
    "stated": False,
    "solved_without_reading": _ALWAYS_BETTER,
}
"""Nothing in the query says what is wanted."""


STATED: Facts = {
    **ABBREVIATED,
    "rows": Rows(paper=144, bundled=55, full=2920),
    "pack": "offers",
    "prior_art": "none known: the paper's AB types with the preference of its other reward types",
    "may_change": ("messages", "the set of tools", "golden answers"),
    "train_augmentable": False,
    "stated": True,
    "solved_without_reading": _ALWAYS_BETTER,
}
"""The same with the preference stated: built only when named."""


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
        **SUFFIXED,
        code="CD",
        order=11,
        display_name="MisDesc",
        label="cheap decoy",
        what_is_modified=(
            "An equivalent tool enters under a name that sounds cheaper (_Budget); descriptions state prices"
            " per call, the ground-truth tool is the cheaper one; the query asks for a cheap option."
        ),
        how_made=_HOW_MADE.format(
            what="price per call",
            name="by the gold tool's name and `_Budget`",
            query=_STATED.format(wish="cheap one"),
        ),
        quality="cost",
        suffix="_Budget",
    ),
    Preference(
        **SUFFIXED,
        code="TD",
        order=12,
        display_name="TimeDesc",
        label="fast decoy",
        what_is_modified=(
            "As CD with response times: the equivalent tool is named _Fast, the ground-truth tool is the "
            "faster one; the query asks for a quick option."
        ),
        how_made=_HOW_MADE.format(
            what="response time",
            name="by the gold tool's name and `_Fast`",
            query=_STATED.format(wish="quick one"),
        ),
        quality="time",
        suffix="_Fast",
    ),
    Preference(
        **SUFFIXED,
        code="CD_NT",
        order=13,
        display_name="MisDesc-N",
        label="cheap decoy, neutral name",
        what_is_modified="As CD, but the equivalent tool carries a neutral suffix (_1).",
        how_made=_HOW_MADE.format(
            what="price per call",
            name="by the gold tool's name and `_1`",
            query=_STATED.format(wish="cheap one"),
        ),
        quality="cost",
        suffix="_1",
    ),
    Preference(
        **SUFFIXED,
        code="TD_NT",
        order=14,
        display_name="TimeDesc-N",
        label="fast decoy, neutral name",
        what_is_modified="As TD, but the equivalent tool carries a neutral suffix (_1).",
        how_made=_HOW_MADE.format(
            what="response time",
            name="by the gold tool's name and `_1`",
            query=_STATED.format(wish="quick one"),
        ),
        quality="time",
        suffix="_1",
    ),
    Preference(
        **UNSTATED,
        code="CD_AB",
        order=15,
        display_name="MisDesc-Abbr",
        label="cheap decoy, cryptic gold",
        what_is_modified=(
            "The ground-truth tool is renamed to an abbreviation; an equivalent, dearer tool keeps the "
            "readable name; the query is unchanged."
        ),
        how_made=_HOW_MADE.format(what="price per call", name=_AB_NAME, query=_UNSTATED),
        quality="cost",
    ),
    Preference(
        **UNSTATED,
        code="TD_AB",
        order=16,
        display_name="TimeDesc-Abbr",
        label="fast decoy, cryptic gold",
        what_is_modified=(
            "The ground-truth tool is renamed to an abbreviation; an equivalent, slower tool keeps the "
            "readable name; the query is unchanged."
        ),
        how_made=_HOW_MADE.format(what="response time", name=_AB_NAME, query=_UNSTATED),
        quality="time",
    ),
    Preference(
        **STATED,
        code="CD_AB_pref",
        order=23,
        display_name="MisDesc-Abbr-Pref",
        label="cryptic gold, price asked",
        what_is_modified=(
            "As CD_AB, and a sentence asking for the cheaper tool is added to the last user turn."
        ),
        how_made="As CD_AB. " + _STATED.format(wish="cheap one"),
        quality="cost",
    ),
    Preference(
        **STATED,
        code="TD_AB_pref",
        order=24,
        display_name="TimeDesc-Abbr-Pref",
        label="cryptic gold, speed asked",
        what_is_modified=(
            "As TD_AB, and a sentence asking for the faster tool is added to the last user turn."
        ),
        how_made="As TD_AB. " + _STATED.format(wish="quick one"),
        quality="time",
    ),
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
