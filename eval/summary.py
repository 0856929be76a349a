"""What a scored run says: accuracies, the four gaps, retention, error modes (benchmark.md §8).

Point estimates only; intervals are `rbtc report`'s. Everything is over answered predictions: a request_error
is no answer, and with one missing there is no headline unless it is asked for.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.schema import Json

ERROR_MODES = ("empty", "omitted", "wrong_name", "wrong_parameters", "name_bias", "other")


class ScoredRow(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of scores.parquet that a summary needs. Verdict columns are null for a request_error."""

    id: str
    clean_id: str
    type_code: str
    component: str | None
    source: str
    category: str
    repeat: int
    status: str
    injected: bool | None
    finish_reason: str | None
    score: float | None
    correct: bool | None
    error_mode: str | None


class Cell(msgspec.Struct, frozen=True):
    """Correct of n predictions."""

    correct: int
    n: int

    @property
    def accuracy(self) -> float | None:
        return self.correct / self.n if self.n else None


class TypeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One type of the table. Differences are positive when the type is worse than clean."""

    type_code: str
    component: str | None
    n: int
    correct: int
    accuracy: float
    delta: float | None
    """Clean accuracy over all clean rows − this accuracy (the paper's)."""
    delta_matched: float | None
    """Mean over anchored pairs of (clean correct − perturbed correct)."""
    error_modes: dict[str, int]
    injected: int | None
    """Transition types: how many met the error."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """`rbtc summary --json`. Fractions in 0 to 1; null where there are no rows."""

    subset: str
    """`all`, or `paper`: the rows whose kind the paper's release has."""
    expected: int
    answered: int
    missing: int
    """Expected predictions that nobody answered; in a subset, of the whole run."""
    clean: Json
    """Accuracy on clean."""
    perturbed: Json
    """Accuracy over all perturbed rows, sample-weighted."""
    components: dict[str, Json]
    """Per component: n, correct, accuracy, delta, delta_matched, pairs."""
    retention: float | None
    """1 − mean(Δ observation, Δ action, Δ reward) / clean."""
    types: list[TypeLine]
    error_modes: dict[str, int]
    """Over perturbed and clean."""
    length: int
    """Scored replies that were cut at the token limit."""
    too_long: int
    """Wrong because the endpoint refused the length."""
    rejected: int
    """Wrong because the endpoint refused the registry."""
    tooleyes_score: float | None
    """Mean partial credit of ToolEyes; no accuracy."""
    flagged: dict[str, Json] = {}
    """Cells of rows that carry a flag, by flag and type."""


def in_paper_subset(row: ScoredRow) -> bool:
    """Whether the paper's release has rows of this kind (benchmark.md §7)."""
    if row.type_code in ("CD", "TD", "CD_NT", "TD_NT"):
        return row.source != "bfcl_v3" and not (row.source == "apibank" and row.category.startswith("level3"))
    if row.type_code.startswith("same_name_"):
        return row.source != "bfcl_v3"
    return row.type_code == taxonomy.CLEAN or row.type_code in taxonomy.codes()


SUBSETS: dict[str, Callable[[ScoredRow], bool]] = {"all": lambda row: True, "paper": in_paper_subset}


def summarise(
    rows: Sequence[ScoredRow],
    expected: int,
    *,
    subset: str = "all",
    allow_missing: bool = False,
    flagged: dict[str, Json] | None = None,
) -> Summary:
    """The summary of a scored run. Raises UserError when answers are missing and that is not allowed."""
    if subset not in SUBSETS:
        raise unknown("subset", subset, SUBSETS)
    answered = [row for row in rows if row.correct is not None]
    missing = expected - len(answered)
    if missing > 0 and not allow_missing:
        failed = sum(row.status == "request_error" for row in rows)
        raise UserError(
            f"{missing} of {expected} rows have no answer ({failed} request_error, {missing - failed} not "
            "asked): run the same rbtc eval again, or take --allow-missing for numbers without them"
        )
    kept = [row for row in answered if SUBSETS[subset](row)]
    clean_rows = [row for row in kept if row.type_code == taxonomy.CLEAN]
    clean = _cell(clean_rows)
    anchors = {(row.clean_id, row.repeat): bool(row.correct) for row in clean_rows}
    core = set(taxonomy.codes())
    perturbed = [row for row in kept if row.type_code in core]
    components: dict[str, Json] = {
        name: _component([row for row in perturbed if row.component == name], clean, anchors)
        for name in taxonomy.COMPONENTS
    }
    order = [taxonomy.CLEAN, *(t.code for t in taxonomy.types("all"))]
    by_type = [(code, [row for row in kept if row.type_code == code]) for code in order]
    tooleyes = [row.score for row in kept if row.source == "tooleyes" and row.score is not None]
    return Summary(
        subset=subset,
        expected=expected,
        answered=len(answered),
        missing=missing,
        clean=_plain(clean),
        perturbed=_plain(_cell(perturbed)),
        components=components,
        retention=_retention(clean, components),
        types=[_line(code, found, clean, anchors) for code, found in by_type if found],
        error_modes=_modes(kept),
        length=sum(row.finish_reason == "length" for row in kept),
        too_long=sum(row.status == "too_long" for row in kept),
        rejected=sum(row.status == "rejected" for row in kept),
        tooleyes_score=sum(tooleyes) / len(tooleyes) if tooleyes else None,
        flagged=flagged or {},
    )


def _cell(rows: Iterable[ScoredRow]) -> Cell:
    outcomes = [bool(row.correct) for row in rows]
    return Cell(sum(outcomes), len(outcomes))


def _plain(cell: Cell) -> dict[str, Json]:
    return {"correct": cell.correct, "n": cell.n, "accuracy": cell.accuracy}


def _matched(rows: Iterable[ScoredRow], anchors: dict[tuple[str, int], bool]) -> tuple[float | None, int]:
    """Mean of clean correct − perturbed correct over the rows whose clean row was answered, and how many."""
    pairs = [
        anchors[row.clean_id, row.repeat] - bool(row.correct)
        for row in rows
        if (row.clean_id, row.repeat) in anchors
    ]
    return (sum(pairs) / len(pairs) if pairs else None), len(pairs)


def _delta(clean: Cell, cell: Cell) -> float | None:
    if clean.accuracy is None or cell.accuracy is None:
        return None
    return clean.accuracy - cell.accuracy


def _component(
    rows: Sequence[ScoredRow], clean: Cell, anchors: dict[tuple[str, int], bool]
) -> dict[str, Json]:
    cell = _cell(rows)
    matched, pairs = _matched(rows, anchors)
    return {**_plain(cell), "delta": _delta(clean, cell), "delta_matched": matched, "pairs": pairs}


def _retention(clean: Cell, components: dict[str, Json]) -> float | None:
    deltas: list[float | None] = [components[name]["delta"] for name in ("observation", "action", "reward")]
    there = [delta for delta in deltas if delta is not None]
    if not clean.accuracy or len(there) < 3:
        return None
    return 1 - sum(there) / 3 / clean.accuracy


def _modes(rows: Iterable[ScoredRow]) -> dict[str, int]:
    found = Counter(row.error_mode for row in rows if row.error_mode is not None)
    return {mode: found[mode] for mode in ERROR_MODES if found[mode]}


def _line(
    code: str, rows: Sequence[ScoredRow], clean: Cell, anchors: dict[tuple[str, int], bool]
) -> TypeLine:
    cell = _cell(rows)
    component = taxonomy.component_of(code)
    perturbed = code != taxonomy.CLEAN
    return TypeLine(
        type_code=code,
        component=component,
        n=cell.n,
        correct=cell.correct,
        accuracy=cell.correct / cell.n,
        delta=_delta(clean, cell) if perturbed else None,
        delta_matched=_matched(rows, anchors)[0] if perturbed else None,
        error_modes=_modes(rows),
        injected=sum(bool(row.injected) for row in rows) if component == "transition" else None,
    )
