"""Mixed: several types on one sample, applied in the order observation, action, reward, transition.

Each part is applied to the row that the part before it made. The row's diff names the parts one after the
other (`builders.steps` takes it apart again), so that each part's own `check` is held against the row
that it was applied to.
"""

import inspect
import random
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.builders.steps import TYPE_CODE, steps
from robustbench_tc.schema import Change, Message, Sample
from robustbench_tc.taxonomy import Rows

from . import action, mixtures, observation, reward, severity_offers, severity_typos, transition
from .base import DERIVED, REGISTRY, Case, Context, Perturbation, TextRequest, register, states

_MODULES = (observation, action, reward, severity_offers, severity_typos, transition)
"""Where parts can be from: read before this module asks for them."""

DESIGN = ("realistic_typos", "same_name_D", "CD", "transient_rate_limit")
"""One type for each component: the parts of the types below."""


@states(
    component="mixed",
    pack="mixed",
    channel="mixed",
    train_augmentable=False,
    caught_by="diff_explains_the_row",
    otherwise_caught_by="unit_finds_nothing",
    prior_art=taxonomy.PRIOR_ART_OF_MIXTURES,
)
class Mixed(Perturbation):
    """What all mixed types share; `parts` are their types in the order in which they are applied."""

    parts: ClassVar[tuple[str, ...]]

    def requests(self, sample: Sample) -> tuple[TextRequest, ...]:
        """The texts that its parts need."""
        return tuple(request for code in self.parts for request in REGISTRY[code].requests(sample))

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """The parts one after the other, all drawing from the same generator. Raises NotApplicable with the
        reason of the part that does not apply."""
        row, changes, generators = sample, [], set[str]()
        for code in self.parts:
            after = REGISTRY[code].perturb(row, rng, context)
            changes += [Change(TYPE_CODE, row.type_code, code), *after.changes]
            generators |= {after.generator} - {"rule"}
            row = after
        return msgspec.structs.replace(
            row,
            id=f"{sample.clean_id}::{self.code}",
            type_code=self.code,
            component=self.component,
            changes=tuple(changes),
            generator="+".join(sorted(generators)) or "rule",
        )

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """The diff leads back to the clean row, and each part finds nothing wrong with its step."""
        try:
            found = steps(row, clean)
        except ValueError as error:
            return [str(error)]
        return [
            f"{code}: {wrong}"
            for code, (before, after) in zip(self.parts, found, strict=True)
            for wrong in REGISTRY[code].problems(before, after)
        ]

    def spoiled(self, clean: Sample, row: Sample) -> Sample:
        """The diff without what its first part changed."""
        second = next(i for i, one in enumerate(row.changes[1:], 1) if one.path == TYPE_CODE)
        return msgspec.structs.replace(row, changes=(row.changes[0], *row.changes[second:]))

    def spoiled_otherwise(self, clean: Sample, row: Sample) -> Sample:
        """A first message more, which no part brought."""
        return msgspec.structs.replace(row, messages=(Message("system", "Be brief."), *row.messages))


def kind_of(parts: tuple[str, ...], order: int, rows: Rows, golden: tuple[Case, ...]) -> type[Mixed]:
    """The type that puts these together: its facts follow from theirs.

    Raises ValueError for parts that are not of different components, in the order in which they are applied,
    and for a transition type beyond the core, whose harness does something else.
    """
    units = [REGISTRY[code] for code in parts]
    places = [taxonomy.COMPONENTS.index(unit.component) for unit in units]
    if len(parts) < 2 or places != sorted(set(places)):
        raise ValueError(f"{'+'.join(parts)}: one type for each of two components or more, in their order")
    if any(unit.component == "transition" and unit.pack != "core" for unit in units):
        raise ValueError(f"{'+'.join(parts)}: the transition type is one of the core")
    one_tool = any(unit.applies_to == "one gold tool" for unit in units)
    facts = dict(taxonomy.facts_of_mixture(units)) | {
        "__doc__": f"{' + '.join(unit.display_name for unit in units)}.",
        "__module__": __name__,
        "order": order,
        "parts": parts,
        "applies_to": "one gold tool" if one_tool else "every source",
        "borrows": tuple(dict.fromkeys(name for unit in units for name in unit.borrows)),
        "rows": rows,
        "golden": golden,
    }
    facts["flags"] = MappingProxyType(facts["flags"])
    return type("Mixed_" + "_".join(parts), (Mixed,), facts)


@lru_cache(256)
def of_parts(code: str) -> Perturbation | None:
    """The unit of a mixture that is not among the stated ones, by its code; None for another code."""
    if not taxonomy.parts(code) or not taxonomy.known(code):
        return None
    made = kind_of(mixtures.checked(code), 2 * taxonomy.AFTER_ALL, Rows(paper=0, bundled=0), ())
    made.applies_to = taxonomy.get(code).sources
    return made()


DERIVED.append(of_parts)


T, D, CD, RL = DESIGN
_DESIGNED: tuple[tuple[tuple[str, ...], Rows, str], ...] = (
    (
        (T, D),
        Rows(paper=144, bundled=59),
        """
        - user: Book 2 seats at Luna tonight.
        + user: Bok 2 seast at Luna tonigth.
        + tool: reserve(dish: What to look for) Books a table.
        """,
    ),
    (
        (T, CD),
        Rows(paper=148, bundled=60),
        """
        - user: Book 2 seats at Luna tonight.
        + user: Bok 2 seast at Luna tonigth. Please keep the cost of the call as low as possible.
        + tool: reserve_Budget(place: Where, seats: How many) Books a table. Price per call: $0.010.
        + gold tool: reserve(place: Where, seats: How many) Books a table. Price per call: $0.002.
        - gold tool: reserve(place: Where, seats: How many) Books a table.
        """,
    ),
    (
        (T, RL),
        Rows(paper=199, bundled=73),
        """
        - user: Book 2 seats at Luna tonight.
        + user: Bok 2 seast at Luna tonigth.
        + the first call is answered: {error}
        """,
    ),
    (
        (D, CD),
        Rows(paper=144, bundled=59),
        """
        - user: Book 2 seats at Luna tonight.
        + user: Book 2 seats at Luna tonight. I would like the option that costs the least per call.
        + tool: reserve(dish: What to look for) Books a table.
        - gold tool: reserve(place: Where, seats: How many) Books a table.
        + gold tool: reserve(place: Where, seats: How many) Books a table. Price per call: $0.025.
        + tool: reserve_Budget(place: Where, seats: How many) Books a table. Price per call: $0.100.
        """,
    ),
    (
        (D, RL),
        Rows(paper=144, bundled=59),
        """
        + tool: reserve(dish: What to look for) Books a table.
        + the first call is answered: {error}
        """,
    ),
    (
        (CD, RL),
        Rows(paper=148, bundled=60),
        """
        - user: Book 2 seats at Luna tonight.
        + user: Book 2 seats at Luna tonight. Please keep the cost of the call as low as possible.
        + tool: reserve_Budget(place: Where, seats: How many) Books a table. Price per call: $0.016.
        - gold tool: reserve(place: Where, seats: How many) Books a table.
        + gold tool: reserve(place: Where, seats: How many) Books a table. Price per call: $0.002.
        + the first call is answered: {error}
        """,
    ),
    (
        (T, D, CD),
        Rows(paper=144, bundled=59),
        """
        - user: Book 2 seats at Luna tonight.
        + user: Bok 2 seast at Luna tonigth. My budget is tight, so pick the least expensive tool.
        + gold tool: reserve(place: Where, seats: How many) Books a table. Price per call: $0.002.
        + tool: reserve(dish: What to look for) Books a table.
        - gold tool: reserve(place: Where, seats: How many) Books a table.
        + tool: reserve_Budget(place: Where, seats: How many) Books a table. Price per call: $0.008.
        """,
    ),
    (
        (T, D, RL),
        Rows(paper=144, bundled=59),
        """
        - user: Book 2 seats at Luna tonight.
        + user: Bok 2 seast at Luna tonigth.
        + tool: reserve(dish: What to look for) Books a table.
        + the first call is answered: {error}
        """,
    ),
    (
        (T, CD, RL),
        Rows(paper=148, bundled=60),
        """
        - user: Book 2 seats at Luna tonight.
        + user: Bok 2 seast at Luna tonigth. Please keep the cost of the call as low as possible.
        + gold tool: reserve(place: Where, seats: How many) Books a table. Price per call: $0.025.
        + tool: reserve_Budget(place: Where, seats: How many) Books a table. Price per call: $0.125.
        - gold tool: reserve(place: Where, seats: How many) Books a table.
        + the first call is answered: {error}
        """,
    ),
    (
        (D, CD, RL),
        Rows(paper=144, bundled=59),
        """
        - user: Book 2 seats at Luna tonight.
        + user: Book 2 seats at Luna tonight. My budget is tight, so pick the least expensive tool.
        + tool: reserve(dish: What to look for) Books a table.
        + gold tool: reserve(place: Where, seats: How many) Books a table. Price per call: $0.010.
        - gold tool: reserve(place: Where, seats: How many) Books a table.
        + tool: reserve_Budget(place: Where, seats: How many) Books a table. Price per call: $0.050.
        + the first call is answered: {error}
        """,
    ),
    (
        (T, D, CD, RL),
        Rows(paper=144, bundled=59),
        """
        - user: Book 2 seats at Luna tonight.
        + user: Bok 2 seast at Luna tonigth. Use whichever tool is the cheapest for this.
        + tool: reserve(dish: What to look for) Books a table.
        + tool: reserve_Budget(place: Where, seats: How many) Books a table. Price per call: $0.012.
        + gold tool: reserve(place: Where, seats: How many) Books a table. Price per call: $0.002.
        - gold tool: reserve(place: Where, seats: How many) Books a table.
        + the first call is answered: {error}
        """,
    ),
)
"""Parts, rows and how the golden case reads: the six pairs, the four triples, all four."""

_ERROR = REGISTRY["transient_rate_limit"].injected_error or ""
_TEXTS = {"Book 2 seats at Luna tonight.": "Bok 2 seast at Luna tonigth."}
for _place, (_parts, _rows, _reads) in enumerate(_DESIGNED, 701):
    _read = inspect.cleandoc(_reads).replace("{error}", _ERROR)
    register(kind_of(_parts, _place, _rows, (Case(clean="table", texts=dict(_TEXTS), reads=_read),)))
