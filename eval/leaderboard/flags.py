"""Flags: what makes a run unlikely to be a model's, each with its figure.

The golden answers are public, so a file can be written that scores 1. A run is flagged where it

    near-gold          is near the gold: more than the best models by far
    knows-unsaid       is right where nobody can know the answer (docs/answerable.md) as it is elsewhere
    reference-agent    has the verdicts of a reference agent or null model of `eval.agents`
    copy               has the replies of another run

The first three are functions of the run and the dataset, worked out here and stored with its entry; `copy`
is found between entries, when a board is made (`copies`).
"""

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.eval import agents
from robustbench_tc.eval.agents import AgentContext
from robustbench_tc.eval.agents.blind import BLIND
from robustbench_tc.eval.agents.null_models import NULL_MODELS
from robustbench_tc.eval.agents.scripted import SCRIPTED
from robustbench_tc.eval.score import answered_with_success
from robustbench_tc.eval.stats.exact import clopper_pearson
from robustbench_tc.io.numbers import number
from robustbench_tc.schema import GOLD_NOT_STATED, Call, Prediction, Sample, Verdict, dumps

from .copies import COPY
from .entry import Flag

if TYPE_CHECKING:
    from .datasets import Rows

NEAR_GOLD, KNOWS_UNSAID, REFERENCE = "near-gold", "knows-unsaid", "reference-agent"

MEANING = {
    NEAR_GOLD: "near the gold, far above what models reach",
    KNOWS_UNSAID: "right where nobody can know the answer",
    REFERENCE: "the verdicts of a reference agent",
    COPY: "the replies of another run",
}

LETTER, RIGHT = 0.9, 0.95
"""The lower end of the exact 95 % interval above which a share of replies that equal the gold to the letter,
or that are right, is near the gold. The best of the paper's models has .779 of the clean rows right and .527
of the perturbed ones."""

UNSAID = 0.5
"""Least accuracy over rows that nobody can know the answer to. Of the paper's eight samples a guess (a year,
the end of a meeting) can meet five at most."""

UNSAID_BELOW = 0.1
"""How far a model's accuracy there is at least below that over the other rows."""

UNSAID_SAMPLES = 4
"""With fewer such samples nothing is said."""

SAME_VERDICTS = 0.99
"""The share of rows with a reference agent's verdict that makes a run equal to it."""

PROBED = 4_000
"""Rows of a dataset over which runs are held against reference agents: every n-th of a larger one."""

AGENTS = (*SCRIPTED, *NULL_MODELS, *BLIND, "always-calls", "never-calls")


_SAYS = {
    "letter": "replies equal the golden answer to the letter",
    "right": "rows are right",
    KNOWS_UNSAID: "rows are right whose golden answer nobody could know",
    REFERENCE: "rows or episodes are those of the reference agent",
    COPY: "rows have the replies of the run",
}


def says(flag: Flag) -> str:
    """The flag in words, with its figure."""
    if flag.code == REFERENCE and not flag.value:
        return "its own record says that a scripted agent played it"
    near = flag.code == NEAR_GOLD
    rest = "" if flag.rest is None else f"; {number(flag.rest)} of the others"
    whose = "" if near or not flag.of else f" {flag.of}"
    return f"{number(flag.value)} of {flag.n:,} {_SAYS[flag.of if near else flag.code]}{whose}{rest}"


# --- what a dataset is held against ---------------------------------------------------------------------


class Known(NamedTuple):
    """What is known of a dataset's rows before any run: made once, the same for every upload."""

    letters: dict[str, frozenset[str]]
    """Row id → its golden answers to the letter; rows where calling nothing is right have none."""
    agents: dict[str, dict[str, bool]]
    """Reference agent → its verdicts on the probed rows."""


def known(data: "Rows") -> Known:
    """Works it out: seconds for the paper's 3,994 rows."""
    anchors = data.anchors()
    probed = data.rows[:: -(-len(data.rows) // PROBED)]
    return Known(
        {row.id: _letters(row, anchors[row.id]) for row in data.rows},
        {name: {row.id: agents.is_right(name, row, anchors[row.id]) for row in probed} for name in AGENTS},
    )


def _letters(row: Sample, clean: Sample) -> frozenset[str]:
    scene = AgentContext(row, clean, row.injected_error is not None)
    if () in row.golden_answers or answered_with_success(row):
        return frozenset()
    golds = (msgspec.structs.replace(row, golden_answers=(answer,)) for answer in row.golden_answers)
    return frozenset(_spelled(scene._replace(row=one).gold) for one in golds)


def _spelled(calls: Sequence[Call]) -> str:
    return dumps(sorted(dumps([call.name, call.parameters]) for call in calls))


# --- one run ------------------------------------------------------------------------------------------------


def of_run(predictions: Sequence[Prediction], verdicts: Sequence[Verdict], data: "Rows") -> tuple[Flag, ...]:
    """The flags of one run that rest on it alone."""
    judged = list(zip(predictions, verdicts, strict=True))
    found = [_near_gold(judged, data.known), _knows_unsaid(judged, data), _reference(judged, data.known)]
    return tuple(flag for flag in found if flag is not None)


Judged = Sequence[tuple[Prediction, Verdict]]


def _near_gold(judged: Judged, facts: Known) -> Flag | None:
    """The first of these shares that is near 1: letter and right, over clean and over perturbed rows."""
    core = set(taxonomy.codes())
    for codes in ({taxonomy.CLEAN}, core):
        rows = [(one, verdict) for one, verdict in judged if one.type_code in codes]
        letters = [
            _spelled(verdict.calls) in facts.letters[one.id] for one, verdict in rows if facts.letters[one.id]
        ]
        right = [verdict.correct for _, verdict in rows]
        for of, seen, least in (("letter", letters, LETTER), ("right", right, RIGHT)):
            if seen and clopper_pearson(sum(seen), len(seen))[0] >= least:
                return Flag(code=NEAR_GOLD, value=sum(seen) / len(seen), n=len(seen), of=of)
    return None


def _knows_unsaid(judged: Judged, data: "Rows") -> Flag | None:
    flagged = {row.id for row in data.rows if GOLD_NOT_STATED in row.flags}
    unsaid = [verdict.correct for one, verdict in judged if one.id in flagged]
    rest = [verdict.correct for one, verdict in judged if one.id not in flagged]
    samples = {one.clean_id for one, _ in judged if one.id in flagged}
    if len(samples) < UNSAID_SAMPLES or not rest:
        return None
    here, elsewhere = sum(unsaid) / len(unsaid), sum(rest) / len(rest)
    if here < UNSAID or here < elsewhere - UNSAID_BELOW:
        return None
    return Flag(code=KNOWS_UNSAID, value=here, n=len(unsaid), rest=elsewhere)


def _reference(judged: Judged, facts: Known) -> Flag | None:
    """The first agent with the most equal verdicts, if it is all but equal. Of several answers to a row all
    count."""
    probed = next(iter(facts.agents.values()))
    rows = [(one.id, verdict.correct) for one, verdict in judged if one.id in probed]
    shares = {name: fmean(of[row] == right for row, right in rows) for name, of in facts.agents.items()}
    best = max(shares, key=lambda name: shares[name])
    if shares[best] < SAME_VERDICTS:
        return None
    return Flag(code=REFERENCE, value=shares[best], n=len(rows), of=best)
