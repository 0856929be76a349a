"""Types of the live dataset: the kinds of faults, and the core's types that put tools into a registry."""

from functools import cache

from . import taxonomy
from .errors import unknown
from .schema import BUILT_KINDS, EXPLICIT, KINDS, TASKS

CASCADES = {f"cascade_{letters}": letters for letters in ("a", "b", "c", "ab", "ac", "abc")}
"""Types of rows whose task has the same faults alone and together, and which of them: `a` is not carried out,
`b` is and says the same, `c` is of another call. Behind `a`, `b` meets the retry of the same call."""

FAULT_TYPES = (*KINDS, *CASCADES)
"""Types of rows with faults: one of a kind, or those of a cascade."""

BY_NAME = tuple(kind for kind in FAULT_TYPES if kind not in BUILT_KINDS)
"""Those that no build makes by itself."""

PACKS = {"cascade": tuple(CASCADES)}
"""Types that can be named in one word."""

FAMILIES = {
    "explicit": EXPLICIT,
    "implicit": tuple(kind for kind in BUILT_KINDS if kind not in EXPLICIT),
    "all": BUILT_KINDS,
}
"""The sums over kinds of faults, and their kinds; those that are built by name alone are in none."""


FORBIDDEN = "live_forbidden"
"""The type of the rows whose system text says which tool must not be called."""


def config_of(type_code: str) -> str:
    """The config in which rows of a type lie."""
    return TASKS if type_code == "clean" else type_code


@cache
def registry_types() -> tuple[str, ...]:
    """The core's types that live rows can have: rules that put tools into a registry and change nothing
    else. In the order of every table, where they stand after the kinds of faults."""
    return tuple(
        kind.code
        for kind in taxonomy.types("all")
        if kind.method == "rule" and kind.may_change == ("the set of tools",) and kind.channel != "mixed"
    )


def type_code(kind: str) -> str:
    """The type code of a kind of fault, or of a registry type. Raises UserError for one that does not
    exist."""
    if kind not in FAULT_TYPES and kind not in registry_types():
        raise unknown("kind of fault", kind, KINDS)
    return f"live_{kind}"


@cache
def registry_codes() -> frozenset[str]:
    """The type codes of rows whose registry has more tools."""
    return frozenset(map(type_code, registry_types()))


def by_name() -> frozenset[str]:
    """The type codes of rows that no profile of a build has."""
    return registry_codes() | set(map(type_code, BY_NAME))


def type_codes() -> tuple[str, ...]:
    """Every type code but `clean`, in the order of every table."""
    return tuple(map(type_code, (*FAULT_TYPES, *registry_types())))
