"""Mixed: several types on one sample, applied in the order observation, action, reward, transition.

Each part is applied to the row that the part before it made. The row's diff names the parts one after the
other (`builders.steps` takes it apart again), so that each part's own `check` is held against the row
that it was applied to.
"""

import random
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.builders.steps import TYPE_CODE, steps
from robustbench_tc.errors import UserError
from robustbench_tc.schema import Change, Sample
from robustbench_tc.taxonomy import PerturbationType, Rows

from . import action, observation, reward, severity_typos, transition
from .base import DERIVED, REGISTRY, Context, Facts, Perturbation, TextRequest, register

_MODULES = (observation, action, reward, severity_typos, transition)
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


def code_of(names: Sequence[str]) -> str:
    """The code of the mixture of these types, whatever their order. Raises UserError for an unknown type and
    for types that cannot be mixed."""
    if why := next(_refusals(names), ""):
        raise UserError(f"mix:{'+'.join(names)}: {why}")
    codes = {kind.component: kind.code for kind in map(taxonomy.get, map(taxonomy.find, names))}
    return taxonomy.MIX + "__".join(codes[one] for one in taxonomy.COMPONENTS if one in codes)


def _refusals(names: Sequence[str]) -> Iterator[str]:
    """Why these types cannot be mixed."""
    if len(names) < 2:
        yield "a mixture has two types or more"
    for name in names:
        if taxonomy.parts(name):
            yield f"{name} is a mixture itself: name its parts"
        if names.count(name) > 1:
            yield f"{name} stands there twice"
    kinds = [taxonomy.get(taxonomy.find(name)) for name in names]
    for one, other in combinations(kinds, 2):
        if one.component == other.component:
            yield f"{one.code} and {other.code} are both of the component {one.component}"
    for kind in kinds:
        if kind.component == "transition" and kind.pack != "core":
            yield f"{kind.code} cannot be mixed: the transition type is one of the core"
    for one, other in permutations(kinds, 2):
        if why := _clash(one, other):
            yield f"{one.code} and {other.code} cannot be mixed: {why}"
    if not set.intersection(*(set(kind.sources) for kind in kinds)):
        yield "no source has samples for all of these types"


def checked(code: str) -> tuple[str, ...]:
    """The parts that the code of a mixed type names. Raises UserError as `code_of`, and for another order."""
    found = taxonomy.parts(code)
    if (right := code_of(found)) != code:
        raise UserError(f"{code}: parts are in the order {', '.join(taxonomy.COMPONENTS)}: {right}")
    return found


def _clash(one: PerturbationType, other: PerturbationType) -> str:
    """Why rows of both would have no right answer that is certain; "" where they would."""
    if one.no_call == "right" and other.component in ("reward", "transition"):
        return f"no call is right in rows of {one.code}, and {other.code} is about one"
    if "parameter schemas" in one.may_change and "the set of tools" in other.may_change:
        return f"calls are held against the registry where {one.code} changed it, and {other.code} adds tools"
    if one.channel == "namesake" and other.traits.get("design"):
        return f"{other.code} moves the right answer to another tool, of which {one.code} has made namesakes"
    return ""


def mixture(parts: tuple[str, ...], **facts: Any) -> Mixed:
    """The type that puts these together, in this order: the facts that are not given follow from theirs."""
    units = [REGISTRY[code] for code in parts]
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
    return mixture(checked(code), order=last, rows=Rows(paper=0, bundled=0), applies_to=sources)


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
