"""What `rbtc summary` says of one scored run: its values with intervals, and how its answers went."""

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.schema import ERROR_MODES, Json

from . import blind, values
from .blind import BlindLine
from .breakdown import Flagged, breakdown
from .evidence import Answer, answer
from .intervals import Interval
from .levels import LevelLine, levels
from .packs import Given, Table, tables as pack_tables
from .power import Power
from .repeats import Repeated, repeated
from .runs import Run, Subset, align, unstated
from .stages import Stages, stages
from .summary import TypeRow, gaps, summarise
from .unreviewed import Unreviewed, unreviewed
from .values import Line
from .verified import Beside, beside


class TypeLine(Line, frozen=True, kw_only=True):
    """One type of the table; its values are positive when the type is worse than clean."""

    type_code: str
    component: str | None
    error_modes: dict[str, int]
    injected: int | None
    """Transition types: how many met the error."""


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """`rbtc summary --json`. Fractions in 0 to 1; null where there are no rows."""

    subset: Subset
    """`all`, `paper`: the rows whose kind the paper's release has, or `verified`: those that somebody could
    answer."""
    expected: int
    answered: int
    missing: int
    """Expected predictions that nobody answered; in a subset, of the whole run."""
    samples: int
    rows: int
    """Of the subset, each once however often it was asked."""
    answer: Answer
    """The headline, a word for each component and type, and warnings."""
    clean: Line
    perturbed: Line
    """Over all perturbed rows of the core types, sample-weighted."""
    components: dict[str, Line]
    verified: dict[str, Beside]
    """Clean, perturbed and the components without the rows that nobody could answer, and the best accuracy
    that an honest model can reach over all."""
    retention: float | None
    retention_with_transition: float | None
    """The same over all four components."""
    intervals: dict[str, Interval]
    """By METRICS, those that have a value."""
    type_intervals: dict[str, TypeRow]
    """By type code: accuracy, Δ and Δ matched with intervals, and the test of lost against gained."""
    power: Power | None
    """The smallest loss that the run could have seen."""
    repeated: Repeated | None
    """With repeats: pass@k, pass^k, and the variance within samples."""
    types: list[TypeLine]
    error_modes: dict[str, int]
    """Over perturbed and clean."""
    length: int
    """Scored replies that were cut at the token limit."""
    content_filter: int
    """Replies that a content filter cut or withheld, and requests that it refused: these have no answer."""
    too_long: int
    """Wrong because the endpoint refused the length."""
    rejected: int
    """Wrong because the endpoint refused the registry."""
    tooleyes_score: float | None
    """Mean partial credit of ToolEyes; no accuracy."""
    flagged: dict[str, Json]
    """Counts of rows that carry a flag, by flag and type."""
    reply_flags: dict[str, Flagged]
    """Replies by flag of their verdict, (correct, n) in clean and in the core types."""
    without_beside_refusal: dict[str, float | None]
    """Accuracy on clean and perturbed without replies that refuse or only report beside a marked call."""
    stages: Stages
    """Where wrong answers fail."""
    gaps: tuple[str, ...]
    """What the values do not rest on, one line each."""
    needs_no_reading: tuple[BlindLine, ...] = ()
    """Reference lines: how often the gold tool is found in the dataset without the request."""
    packs: tuple[Table, ...] = ()
    """What the packs beyond the core measure."""
    levels: tuple[LevelLine, ...] = ()
    """Every level's rows: of the core, of each pack, and of all."""
    unreviewed: Unreviewed | msgspec.UnsetType = msgspec.UNSET
    """Golden answers of logs that nobody looked at; left out where there are none."""

    @property
    def lines(self) -> dict[str, Line]:
        """By HEADS."""
        return {taxonomy.CLEAN: self.clean, "perturbed": self.perturbed, **self.components}


def overview(
    run: Run, expected: int, flagged: dict[str, Json], *, subset: Subset = "all", allow_missing: bool = False
) -> Overview:
    """The values of a run over the types that it was asked.

    Raises UserError where one of the `expected` answers is missing, unless that is allowed.
    """
    answered = int((run.rows["correct"] >= 0).sum())
    missing = expected - answered
    if missing > 0 and not allow_missing:
        failed = int((run.rows["status"] == "request_error").sum())
        raise UserError(
            f"{missing} of {expected} rows have no answer ({failed} request_error, {missing - failed} not "
            "asked): run the same rbtc eval again, or take --allow-missing for numbers without them"
        )
    [outcomes] = align([run], subset=subset)
    found = values.from_counts(outcomes.counts(), outcomes.usable(True), partial=True)
    made = summarise(outcomes, allow_missing=True)
    rest = breakdown(run, subset, allow_missing=True)
    there = [code for code in (taxonomy.CLEAN, *found.types) if found.lines[code].n]
    modes = [rest.error_modes.get(code, {}) for code in there]
    return Overview(
        subset=subset,
        expected=expected,
        answered=answered,
        missing=missing,
        samples=len(outcomes.clean_ids),
        rows=int((outcomes.n + outcomes.missing > 0).sum()),
        answer=answer(run, outcomes),
        clean=found.lines[taxonomy.CLEAN],
        perturbed=found.lines["perturbed"],
        components={name: found.lines[name] for name in taxonomy.COMPONENTS},
        verified={} if run.own_tools else beside(outcomes, unstated(run), found.lines),
        retention=found.retention,
        retention_with_transition=found.retention_with_transition,
        intervals={metric: one for metric, one in made.values.items() if one is not None},
        type_intervals=made.types,
        packs=pack_tables(Given(run, outcomes, made, True)),
        levels=levels(outcomes, allow_missing=True),
        stages=stages(run, outcomes, subset, allow_missing=True),
        power=made.power,
        repeated=repeated(outcomes),
        types=[
            TypeLine(
                **msgspec.structs.asdict(found.lines[code]),
                type_code=code,
                component=(component := taxonomy.component_of(code)),
                error_modes=of_type,
                injected=rest.injected.get(code, 0) if component == "transition" else None,
            )
            for code, of_type in zip(there, modes, strict=True)
        ],
        error_modes={mode: n for mode in ERROR_MODES if (n := sum(one.get(mode, 0) for one in modes))},
        length=rest.length,
        content_filter=rest.content_filter,
        too_long=rest.too_long,
        rejected=rest.rejected,
        tooleyes_score=rest.mean_scores.get("tooleyes"),
        flagged=flagged,
        reply_flags=rest.flags,
        without_beside_refusal=rest.flags["call_beside_refusal"].accuracies_without(found.lines),
        gaps=gaps(outcomes),
        needs_no_reading=blind.lines(run.record.needs_no_reading),
        unreviewed=unreviewed(run, outcomes) or msgspec.UNSET,
    )
