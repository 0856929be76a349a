"""How the answers of a run went beside right and wrong: error modes, sources, and what was cut or refused."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.schema import ERROR_MODES, Json

from .packs import Table
from .runs import Run
from .summary import Summary
from .values import HEADS, Line

EXTENSION = "extension"
"""Stands for the types beyond the core where rows are grouped by component."""


class SourceCell(msgspec.Struct, frozen=True):
    """The rows of one source in clean or in one component."""

    correct: int
    n: int
    missing: int
    """Rows without a verdict."""
    accuracy: float | None
    mean_score: float | None
    """With partial credit (ToolEyes); no accuracy."""


class Gain(msgspec.Struct, frozen=True):
    """A type by what undoing its net loss would give."""

    type_code: str
    pairs: int
    lost: int
    gained: int
    gain: float
    """Rise of perturbed accuracy if the type lost no more samples than it gains: (lost − gained) / perturbed
    rows. Below 0 where it gains more."""
    error: str | None
    """The most frequent way to be wrong; the first by name of equally frequent ones."""
    low: float | None = None
    """Ends of the 95 % interval of `gain`; None where rows of the type are missing."""
    high: float | None = None
    p_holm: float | None = None
    """Exact paired test of "as many lost as gained", corrected for looking at every type of the model."""


READ_WITH_CARE = ("call_in_thought", "quoted_call", "call_beside_refusal", "bad_arguments", "unread_shape")
"""Flags of replies whose reading a user wants to know the number of, also where it is 0 (docs/calls.md)."""


class Flagged(msgspec.Struct, frozen=True):
    """Replies whose verdict carries a flag, in clean and in the core types."""

    clean: tuple[int, int] = (0, 0)
    """Correct, n."""
    perturbed: tuple[int, int] = (0, 0)

    @property
    def replies(self) -> int:
        return self.clean[1] + self.perturbed[1]

    @property
    def right(self) -> int:
        return self.clean[0] + self.perturbed[0]

    def accuracies_without(self, lines: Mapping[str, Line]) -> dict[str, float | None]:
        """Accuracy on clean and perturbed without these replies; None where no others are left."""
        return {
            name: (lines[name].correct - correct) / (lines[name].n - n) if lines[name].n > n else None
            for name, (correct, n) in (("clean", self.clean), ("perturbed", self.perturbed))
        }


class Breakdown(msgspec.Struct, frozen=True, kw_only=True):
    """Counts over the answers of one run."""

    error_modes: dict[str, dict[str, int]] = {}
    """`clean`, component or type code → mode → wrong answers; a component's are those of its core types."""
    sources: dict[str, dict[str, SourceCell]] = {}
    """Source → `clean`, component or `extension` → its rows."""
    mean_scores: dict[str, float] = {}
    """Source → mean score over all its rows, with partial credit."""
    length: int = 0
    """Scored replies that were cut at the token limit."""
    content_filter: int = 0
    """Replies that a content filter cut or withheld, and requests that it refused: these have no verdict."""
    too_long: int = 0
    """Wrong because the endpoint refused the length."""
    rejected: int = 0
    """Wrong because the endpoint refused the registry."""
    flags: dict[str, Flagged] = {}
    """By flag of the verdict: those of READ_WITH_CARE always."""


_COLUMNS = (
    *("type_code", "source", "correct", "score", "error_mode", "finish_reason", "status"),
    "flags",
)


def breakdown(run: Run, *, allow_missing: bool = False) -> Breakdown:
    """Counts what lies in the run's columns. `allow_missing`: accuracies are over the rows that are there."""
    modes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    cells: defaultdict[str, defaultdict[str, list[_Scored]]] = defaultdict(lambda: defaultdict(list))
    finished, statuses = Counter[str](), Counter[str]()
    flagged: dict[str, Counter[tuple[str, int]]] = {name: Counter() for name in READ_WITH_CARE}
    filtered = 0
    columns = (run.rows[name].tolist() for name in _COLUMNS)
    for row, n in Counter(zip(*columns, strict=True)).items():
        code, source, verdict, score, mode, finish, status, carried = row
        # `clean`, or the component that a core type counts for
        component = taxonomy.component_of(code) if code in taxonomy.codes() else None
        head = component or (taxonomy.CLEAN if code == taxonomy.CLEAN else EXTENSION)
        cells[source][head].append((verdict, score, n))
        filtered += n * (finish == "content_filter")
        if verdict < 0:
            continue
        if not verdict:
            for name in {code, head}:
                modes[name][mode or "other"] += n
        side = "perturbed" if component else head
        for flag in filter(None, carried.split(",")):
            flagged.setdefault(flag, Counter())[side, verdict] += n
        finished[finish] += n
        statuses[status] += n
    return Breakdown(
        error_modes={
            name: {mode: modes[name][mode] for mode in ERROR_MODES if modes[name][mode]}
            for name in (*HEADS, *(t.code for t in taxonomy.among(modes)))
            if name in modes
        },
        sources={
            source: {
                name: _cell(cells[source][name], allow_missing)
                for name in (*HEADS, EXTENSION)
                if name in cells[source]
            }
            for source in sorted(cells)
        },
        mean_scores={
            source: mean
            for source, parts in cells.items()
            if (mean := _mean([one for part in parts.values() for one in part])) is not None
        },
        length=finished["length"],
        content_filter=filtered,
        too_long=statuses["too_long"],
        rejected=statuses["rejected"],
        flags={
            flag: Flagged(
                *((of[side, 1], of[side, 0] + of[side, 1]) for side in (taxonomy.CLEAN, "perturbed"))
            )
            for flag, of in flagged.items()
        },
    )


_Scored = tuple[int, float | None, int]
"""Verdict, score, and how many rows."""


def _cell(rows: list[_Scored], allow_missing: bool) -> SourceCell:
    correct, n, every = (sum(k for v, _, k in rows if v >= least) for least in (1, 0, -1))
    shown = n and (allow_missing or n == every)
    return SourceCell(correct, n, every - n, correct / n if shown else None, _mean(rows))


def _mean(rows: list[_Scored]) -> float | None:
    scored = [(score, k) for verdict, score, k in rows if verdict >= 0 and score is not None]
    return math.fsum(score * k for score, k in scored) / sum(k for _, k in scored) if scored else None


def gains(made: Summary, found: Breakdown) -> tuple[Gain, ...]:
    """The core types by net loss, most first."""
    listed = []
    n = made.lines["perturbed"].n
    for code in taxonomy.codes():
        line, row = made.lines.get(code), made.types.get(code)
        if line is None or not line.pairs:
            continue
        modes = found.error_modes.get(code, {})
        most = min(modes, key=lambda mode: (-modes[mode], mode), default=None)
        matched = row.delta_matched if row else None
        listed.append(
            Gain(
                type_code=code,
                pairs=line.pairs,
                lost=line.lost,
                gained=line.gained,
                gain=(line.lost - line.gained) / n,
                error=most,
                low=None if matched is None else matched.low * line.pairs / n,
                high=None if matched is None else matched.high * line.pairs / n,
                p_holm=row.flips.p_holm if row and row.flips else None,
            )
        )
    return tuple(sorted(listed, key=lambda one: (one.gained - one.lost, one.type_code)))


def table(found: Breakdown, made: Summary, flagged: Mapping[str, Json]) -> Table:
    """How replies ended and were read. `flagged`: of the run's record, rows that carry a flag."""
    of_types = (found.error_modes.get(code, {}) for code in (taxonomy.CLEAN, *made.types))
    modes = sum(map(Counter, of_types), Counter[str]())
    without = found.flags["call_beside_refusal"].accuracies_without(made.lines)
    return Table(
        name="counts",
        title="retention, and how replies ended and were read",
        columns=("", "value"),
        rows=(
            ("retention", made.values["retention"]),
            ("retention with transition", made.values["retention_with_transition"]),
            ("ToolEyes mean partial score", found.mean_scores.get("tooleyes")),
            *((f"wrong answers: {mode}", n) for mode, n in modes.items()),
            ("cut at the token limit", found.length),
            ("content filter", found.content_filter),
            ("too long", found.too_long),
            ("rejected", found.rejected),
            *((f"replies with {flag}", one.replies) for flag, one in found.flags.items()),
            *((f"{name} without calls beside a refusal", value) for name, value in without.items()),
            *(
                (f"right among {code} flagged {flag}", f"{cell['correct']} of {cell['n']}")
                for flag, cells in flagged.items()
                for code, cell in cells.items()
            ),
        ),
        note="`rbtc failures RUN --flag` shows replies by flag (docs/calls.md).",
    )
