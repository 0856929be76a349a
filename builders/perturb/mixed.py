"""Mixed: several types on one sample, applied in the order observation, action, reward, transition.

Each part is applied to the row that the part before it made. The row's diff names the parts one after the
other (`builders.steps` takes it apart again), so that each part's own `check` is held against the row
that it was applied to.
"""

import random
from functools import lru_cache
from typing import Any

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.builders.steps import TYPE_CODE, steps
from robustbench_tc.schema import Change, Sample
from robustbench_tc.taxonomy import Rows

from . import action, mixtures, observation, reward, severity_offers, severity_typos, transition
from .base import DERIVED, REGISTRY, Context, Facts, Perturbation, TextRequest, register

_MODULES = (observation, action, reward, severity_offers, severity_typos, transition)
"""Where parts can be from: read before this module asks for them."""

DESIGN = ("realistic_typos", "same_name_D", "CD", "transient_rate_limit")
"""One type for each component: the parts of the types below."""


class Mixed(Perturbation, frozen=True, kw_only=True):
    """What all mixed types share; `parts` are their types in the order in which they are applied."""

    parts: tuple[str, ...]

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


def mixture(parts: tuple[str, ...], **facts: Any) -> Mixed:
    """The type that puts these together: the facts that are not given follow from theirs.

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
    shared: Facts = {
        "component": "mixed",
        "pack": "mixed",
        "channel": "mixed",
        "train_augmentable": False,
        "prior_art": taxonomy.PRIOR_ART_OF_MIXTURES,
        "applies_to": "one gold tool" if one_tool else "every source",
        "borrows": tuple(dict.fromkeys(name for unit in units for name in unit.borrows)),
    }
    return Mixed(**{**taxonomy.facts_of_mixture(units), **shared, **facts}, parts=parts)


@lru_cache(256)
def of_parts(code: str) -> Perturbation | None:
    """The unit of a mixture that is not among the stated ones, by its code; None for another code."""
    if not taxonomy.parts(code) or not taxonomy.known(code):
        return None
    sources = taxonomy.get(code).sources
    last = 2 * taxonomy.AFTER_ALL
    return mixture(mixtures.checked(code), order=last, rows=Rows(paper=0, bundled=0), applies_to=sources)


DERIVED.append(of_parts)


register(
    *(
        mixture(tuple(DESIGN[place] for place in places), order=order, rows=rows)
        for order, (places, rows) in enumerate(
            (
                ((0, 1), Rows(paper=144, bundled=59)),
                ((0, 2), Rows(paper=148, bundled=60)),
                ((0, 3), Rows(paper=199, bundled=73)),
                ((1, 2), Rows(paper=144, bundled=59)),
                ((1, 3), Rows(paper=144, bundled=59)),
                ((2, 3), Rows(paper=148, bundled=60)),
                ((0, 1, 2), Rows(paper=144, bundled=59)),
                ((0, 1, 3), Rows(paper=144, bundled=59)),
                ((0, 2, 3), Rows(paper=148, bundled=60)),
                ((1, 2, 3), Rows(paper=144, bundled=59)),
                ((0, 1, 2, 3), Rows(paper=144, bundled=59)),
            ),
            701,
        )
    )
)
