"""Mixed types: what their codes mean, and the facts that follow from those of their parts."""

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, get_args

from . import taxonomy
from .errors import UserError
from .schema import Component

AFTER_ALL = 20_000
"""Order of the mixtures that no module states: after all other types, among themselves by code."""


def code_of(names: Sequence[str]) -> str:
    """The code of the mixture of these types, whatever their order. Raises UserError for an unknown type and
    for types that cannot be mixed."""
    if len(names) < 2:
        raise UserError(f"{_said(names)}: a mixture has two types or more")
    kinds = [taxonomy.get(taxonomy.find(name)) for name in names if not taxonomy.parts(name)]
    mixed = [name for name in names if taxonomy.parts(name)]
    if mixed:
        raise UserError(f"{_said(names)}: {mixed[0]} is a mixture itself: name its parts")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"{_said(names)}: {twice} stands there twice")
    first: dict[Component, str] = {}
    for kind in kinds:
        if kind.component in first:
            both = f"{first[kind.component]} and {kind.code}"
            raise UserError(f"{_said(names)}: {both} are both of the component {kind.component}")
        first[kind.component] = kind.code
    late = next((kind.code for kind in kinds if kind.component == "transition" and kind.pack != "core"), None)
    if late is not None:
        raise UserError(f"{_said(names)}: {late} cannot be mixed: the transition type is one of the core")
    for one, other in permutations(kinds, 2):
        if why := _clash(one, other):
            raise UserError(f"{_said(names)}: {one.code} and {other.code} cannot be mixed: {why}")
    if not set.intersection(*(set(kind.sources) for kind in kinds)):
        raise UserError(f"{_said(names)}: no source has samples for all of these types")
    return taxonomy.MIX + "__".join(first[one] for one in taxonomy.COMPONENTS if one in first)


def checked(code: str) -> tuple[str, ...]:
    """The parts that the code of a mixed type names. Raises UserError as `code_of`, and for another order."""
    found = taxonomy.parts(code)
    if (right := code_of(found)) != code:
        raise UserError(f"{code}: parts are in the order {', '.join(taxonomy.COMPONENTS)}: {right}")
    return found


def _clash(one: "taxonomy.PerturbationType", other: "taxonomy.PerturbationType") -> str:
    """Why rows of both would have no right answer that is certain; "" where they would."""
    if one.no_call == "right" and other.component in ("reward", "transition"):
        return f"no call is right in rows of {one.code}, and {other.code} is about one"
    if "parameter schemas" in one.may_change and "the set of tools" in other.may_change:
        return f"calls are held against the registry where {one.code} changed it, and {other.code} adds tools"
    if one.channel == "namesake" and other.traits.get("design"):
        return f"{other.code} moves the right answer to another tool, of which {one.code} has made namesakes"
    return ""


def _said(names: Sequence[str]) -> str:
    return f"mix:{'+'.join(names)}"


def facts(kinds: Sequence[Any]) -> Mapping[str, Any]:
    """The facts of the mixture of these types (in the order in which they are applied) that follow from
    theirs: all but order, rows, sources and what every mixture states. `kinds`: types, or the units that
    state their facts."""
    levels = [get_args(taxonomy.Level).index(kind.level) for kind in kinds]
    worth = [get_args(taxonomy.NoCall).index(kind.no_call) for kind in kinds]
    changed = {part for kind in kinds for part in kind.may_change}
    codes = [kind.code for kind in kinds]
    said = " Then ".join(kind.how_made for kind in kinds)
    return {
        "code": taxonomy.MIX + "__".join(codes),
        "display_name": " + ".join(kind.display_name for kind in kinds),
        "label": "+".join(kind.display_name for kind in kinds),
        "level": get_args(taxonomy.Level)[max(levels)],
        "what_is_modified": f"{', then '.join(codes)}, each on the row that the one before it made.",
        "how_made": f"Several types, one after the other. {said}",
        "method": "llm" if any(kind.method == "llm" for kind in kinds) else "rule",
        "may_change": tuple(part for part in get_args(taxonomy.Part) if part in changed),
        "ground_truth_changes": any(kind.ground_truth_changes for kind in kinds),
        "may_decline": any(kind.may_decline for kind in kinds),
        "no_call": get_args(taxonomy.NoCall)[max(worth)],
        "control": next((kind.control for kind in kinds if kind.control), ""),
        "injected_error": next((kind.injected_error for kind in kinds if kind.injected_error), None),
        "flags": {flag: words for kind in kinds for flag, words in kind.flags.items()},
        "solved_without_reading": " ".join(filter(None, (kind.solved_without_reading for kind in kinds))),
    }


PRIOR_ART = "none known for tool calls; a factorial design"


def by_name(code: str) -> "taxonomy.PerturbationType":
    """The type that no module states. Raises UserError as `checked`."""
    kinds = [taxonomy.get(part) for part in checked(code)]
    shared = set.intersection(*(set(kind.sources) for kind in kinds))
    return taxonomy.PerturbationType(
        **facts(kinds),
        order=AFTER_ALL,
        component="mixed",
        pack="mixed",
        channel="mixed",
        train_augmentable=False,
        sources=tuple(name for name in kinds[0].sources if name in shared),
        rows=taxonomy.Rows(paper=0, bundled=0),
        paper_rows=None,
        paper_unchanged=0,
        judged_as=None,
        traits={},
        prior_art=PRIOR_ART,
    )
