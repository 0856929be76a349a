"""Every value of the tables, from whole counts: the one place where an accuracy, a Δ, retention and a closed
gap are worked out. `summary` puts intervals around them; the terminal, the report and the board show them.
"""

import functools
import operator
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.live_types import CASCADES, FAMILIES, type_code, type_codes

STATIC = taxonomy.COMPONENTS[:3]
"""The components that retention averages over: transition is not one of them."""

HEADS = (taxonomy.CLEAN, "perturbed", *taxonomy.COMPONENTS)
"""The lines above those of single types."""

LIVE_HEADS = (taxonomy.CLEAN, "all", "explicit", "implicit")
"""The same of a live run, whose types are kinds of faults."""

RETENTIONS = {"retention": STATIC, "retention_with_transition": taxonomy.COMPONENTS}
"""The paper's retention and the one that counts transition too, each by the components that it averages
over."""

METRICS = (
    "clean",
    "perturbed",
    *(f"delta_{name}" for name in taxonomy.COMPONENTS),
    *RETENTIONS,
    *(f"accuracy_{name}" for name in taxonomy.COMPONENTS),
    *(f"delta_matched_{name}" for name in taxonomy.COMPONENTS),
)
"""Table 2's columns, retention, and what lies behind them. A positive Δ is a loss."""


class Counts(msgspec.Struct, frozen=True):
    """The rows of one type, of clean, or of several types together."""

    correct: int = 0
    n: int = 0
    """Rows with a verdict, repeats counted."""
    missing: int = 0
    """Rows that should have a verdict and have none."""
    pairs: int = 0
    """Anchored pairs: a perturbed row and its clean row, both with a verdict, in the same repeat."""
    kept: int = 0
    """Pairs that are right on both rows."""
    lost: int = 0
    """Pairs that are right on the clean row and wrong on the perturbed one."""
    gained: int = 0
    """The way back."""

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, name) + getattr(other, name) for name in Counts.__struct_fields__))

    @property
    def tally(self) -> tuple[int, int]:
        """(correct, n)"""
        return self.correct, self.n


class Line(Counts, frozen=True):
    """One line of a table: counts, and the values that follow. None where a value would rest on missing
    rows."""

    accuracy: float | None = None
    delta: float | None = None
    """Accuracy over all clean rows − this accuracy (the paper's); None for clean."""
    delta_matched: float | None = None
    """Mean over anchored pairs of (clean correct − perturbed correct); None for clean."""


class Values(msgspec.Struct, frozen=True):
    """The lines of one model's tables."""

    lines: dict[str, Line]
    """HEADS, then every type that has a row, in the taxonomy's order."""
    codes: dict[str, tuple[str, ...]]
    """Line → the types whose rows it rests on."""

    @property
    def types(self) -> tuple[str, ...]:
        """The type codes among the lines."""
        return tuple(name for name in self.lines if name not in HEADS)


@functools.lru_cache(maxsize=256)  # asked for with every figure of every entry
def codes_of(name: str) -> tuple[str, ...]:
    """The core types of a component, of a level, or of all for `perturbed`; of a family of faults its kinds;
    of anything else itself."""
    if name in FAMILIES:
        return tuple(map(type_code, FAMILIES[name]))
    found = tuple(t.code for t in taxonomy.types() if name in ("perturbed", t.component, t.level))
    return found or (name,)


def leading(codes: Iterable[str]) -> tuple[str, ...]:
    """The types that sentences and figures about all types speak of: those of the core; where there is none
    of them, all."""
    found = tuple(codes)
    return tuple(code for code in found if code in taxonomy.codes()) or found


def beyond_core(codes: Iterable[str]) -> bool:
    """Whether a line holds types beyond the core."""
    return any(code != taxonomy.CLEAN and pack_of(code) != "core" for code in codes)


def pack_of(code: str) -> str:
    """The types that a type's tests are corrected with: its pack; of live rows `live`, or `live_cascade`."""
    if code.removeprefix("live_") in CASCADES:
        return "live_cascade"
    return "live" if code in type_codes() else taxonomy.get(code).pack


def scored(codes: Iterable[str]) -> tuple[str, ...]:
    """Those of which an accuracy says anything (`PerturbationType.scored`)."""
    return tuple(code for code in codes if not taxonomy.known(code) or taxonomy.get(code).scored)


def from_counts(counts: Mapping[str, Counts], usable: Container[str], *, partial: bool = False) -> Values:
    """The values of a model. `counts` is by type code and `clean`; types outside `usable` have a row missing.

    A component of which a type is missing has no values, unless `partial`.
    """
    lines: dict[str, Line] = {}
    used: dict[str, tuple[str, ...]] = {}
    for name in (*HEADS, *(code for code in counts if code != taxonomy.CLEAN)):
        wanted = codes_of(name)
        used[name] = there = tuple(code for code in scored(wanted) if code in usable)
        rows = sum((counts[code] for code in wanted if code in counts), Counts())
        clean = lines[taxonomy.CLEAN].accuracy if lines else None
        lines[name] = line_of(rows, bool(there) if partial else there == wanted, clean)
    return Values(lines, used)


def line_of(counts: Counts, whole: bool, clean: float | None) -> Line:
    """The line of some rows beside the clean accuracy; without values unless all rows are there (`whole`)."""
    accuracy = counts.correct / counts.n if whole else None
    delta = matched = None
    if accuracy is not None and clean is not None:
        delta = clean - accuracy
        matched = (counts.lost - counts.gained) / counts.pairs if counts.pairs else None
    return Line(**msgspec.structs.asdict(counts), accuracy=accuracy, delta=delta, delta_matched=matched)


def retention(lines: Mapping[str, Line], components: Sequence[str]) -> float | None:
    """1 − mean(Δ of the components) / clean."""
    clean, *found = (lines[name].accuracy for name in (taxonomy.CLEAN, *components))
    there = [accuracy for accuracy in found if accuracy is not None]
    if not clean or len(there) < len(components):
        return None
    # Added from left to right, as SQL does: `sum` rounds otherwise from Python 3.12 on.
    return functools.reduce(operator.add, there) / len(components) / clean


def closure(base: float, new: float) -> float | None:
    """The share of the baseline's Δ that the new model closes; None where the baseline has no gap."""
    return (base - new) / base if base > 0 else None
