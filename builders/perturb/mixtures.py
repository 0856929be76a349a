"""Which types can be mixed, and the code of their mixture."""

from collections.abc import Sequence
from itertools import permutations

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.schema import Component
from robustbench_tc.taxonomy import PerturbationType


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


def _clash(one: PerturbationType, other: PerturbationType) -> str:
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
