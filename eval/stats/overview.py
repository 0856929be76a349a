"""Everything that is counted of one scored run, for `rbtc summary` and for a model of the report."""

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

from . import blind
from .blind import BlindLine
from .breakdown import Breakdown, breakdown
from .caveats import Beside, Unreviewed, beside, unreviewed
from .evidence import Answer, answer
from .levels import LevelLine, levels
from .packs import Given, Table, tables as pack_tables
from .packs.live import Line as Fault, lines
from .repeats import Repeated, repeated
from .runs import Outcomes, Run, Subset, align, unstated, within
from .stages import Stages, stages
from .summary import Summary, summarise


class Counted(Breakdown, frozen=True, kw_only=True):
    """What a run says. Fractions in 0 to 1; null where there are no rows."""

    summary: Summary
    """Counts and values of clean, perturbed, the components and every type."""
    answer: Answer | None = None
    """The headline, a word for each component and type, and warnings. This and all that follows is empty
    where only counts are known, as of the paper's models."""
    verified: dict[str, Beside] = msgspec.field(default_factory=dict)
    """Clean, perturbed and the components without the rows that nobody could answer, and the best accuracy
    that an honest model can reach over all."""
    repeated: Repeated | None = None
    """With repeats: pass@k, pass^k, and the variance within samples."""
    packs: tuple[Table, ...] = ()
    """What the packs beyond the core, or faults in live episodes, measure."""
    levels: tuple[LevelLine, ...] = ()
    """Every level's rows: of the core, of each pack, and of all."""
    stages: Stages | None = None
    """Where wrong answers fail."""
    faults: tuple[Fault, ...] = ()
    """Of a live run: each kind of fault, and of several."""
    unreviewed: Unreviewed | msgspec.UnsetType = msgspec.UNSET
    """Golden answers of logs that nobody looked at; left out where there are none."""


def counted(run: Run, outcomes: Outcomes, summary: Summary, *, allow_missing: bool) -> dict[str, object]:
    """The fields of `Counted`."""
    run = within(run, outcomes)
    return {
        **msgspec.structs.asdict(breakdown(run, allow_missing=allow_missing)),
        "summary": summary,
        "answer": answer(run, outcomes),
        "verified": {} if run.own_tools else beside(outcomes, unstated(run), summary.lines),
        "repeated": repeated(outcomes),
        "packs": pack_tables(Given(run, outcomes, summary, allow_missing)),
        "levels": levels(outcomes, allow_missing=allow_missing),
        "stages": stages(run, outcomes, allow_missing=allow_missing),
        "faults": tuple(lines(run.live)),
        "unreviewed": unreviewed(run, outcomes) or msgspec.UNSET,
    }


class Overview(Counted, frozen=True, kw_only=True):
    """`rbtc summary --json`."""

    answer: Answer
    stages: Stages
    subset: Subset
    expected: int
    """Predictions."""
    missing: int
    """Of these, nobody answered so many; in a subset, of the whole run."""
    samples: int
    rows: int
    """Of the subset, each once however often it was asked."""
    flagged: dict[str, Json]
    """Counts of rows that carry a flag, by flag and type."""
    needs_no_reading: tuple[BlindLine, ...]
    """Reference lines: how often the gold tool is found in the dataset without the request."""


def overview(
    run: Run, expected: int, flagged: dict[str, Json], *, subset: Subset = "all", allow_missing: bool = False
) -> Overview:
    """The values of a run over the types that it was asked.

    Raises UserError where one of the `expected` answers is missing, unless that is allowed.
    """
    failed = int((run.rows["status"] == "request_error").sum())
    missing = expected - len(run.rows["status"]) + failed
    if missing > 0 and not allow_missing:
        raise UserError(
            f"{missing} of {expected} rows have no answer ({failed} request_error, {missing - failed} not "
            "asked): run the same rbtc eval again, or take --allow-missing for numbers without them"
        )
    [outcomes] = align([run], subset=subset)
    made = summarise(outcomes, allow_missing=True)
    return Overview(
        **counted(run, outcomes, made, allow_missing=True),  # type: ignore[arg-type]
        subset=subset,
        expected=expected,
        missing=missing,
        samples=len(outcomes.clean_ids),
        rows=int((outcomes.n + outcomes.missing > 0).sum()),
        flagged=flagged,
        needs_no_reading=blind.lines(run.record.needs_no_reading),
    )
