"""Flags: what makes a run unlikely to be a model's, each with its figure.

The golden answers are public, so a file can be written that scores 1. A run is flagged where it

    near-gold          is near the gold: more than the best models by far
    knows-unsaid       is right where nobody can know the answer (docs/answerable.md) as it is elsewhere
    reference-agent    has the verdicts of a reference agent or null model of `eval.agents`
    copy               has the replies of another run

The first three are functions of the run and the dataset, worked out here and stored with its entry; `copy`
is found between entries, when a board is made, by their sketches.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from statistics import fmean
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from robustbench_tc import taxonomy
from robustbench_tc.eval import agents
from robustbench_tc.eval.agents import BLIND, NULL_MODELS, SCRIPTED, AgentContext
from robustbench_tc.eval.inputs import Dataset
from robustbench_tc.eval.score import answered_with_success
from robustbench_tc.eval.stats.intervals import clopper_pearson
from robustbench_tc.io.numbers import number
from robustbench_tc.schema import GOLD_NOT_STATED, Call, Prediction, Sample, Verdict, dumps

from .entry import Entry, Flag

NEAR_GOLD, KNOWS_UNSAID, REFERENCE, COPY = "near-gold", "knows-unsaid", "reference-agent", "copy"

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

SKETCHED = 512
"""Most rows of a sketch: every n-th of a larger dataset."""

SAME_REPLIES = 0.95
"""The share of rows with the same replies that makes a run equal to another."""

GROUP = 16
"""Rows that are compared at once. Where at most a row in twenty differs, one such group is wholly equal."""

_SAYS = {
    "letter": "replies equal the golden answer to the letter",
    "right": "rows are right",
    KNOWS_UNSAID: "rows are right whose golden answer nobody could know",
    REFERENCE: "rows or episodes are those of the reference agent",
    COPY: "rows have the replies of the run",
}


def says(flag: Flag) -> str:
    """The flag in words, with its figure."""
    near = flag.code == NEAR_GOLD
    whose = "" if near or not flag.of else f" {flag.of}"
    return f"{number(flag.value)} of {flag.n:,} {_SAYS[flag.of if near else flag.code]}{whose}"


# --- what a dataset is held against ---------------------------------------------------------------------


class Known(NamedTuple):
    """What is known of a dataset's rows before any run: made once, the same for every upload."""

    letters: dict[str, frozenset[str]]
    """Row id → its golden answers to the letter; rows where calling nothing is right have none."""
    unsaid: frozenset[str]
    """Ids of rows that nobody can know the answer to; none where that are too few."""
    agents: dict[str, dict[str, bool]]
    """Reference agent → its verdicts on the probed rows."""


def known(data: Dataset) -> Known:
    """Works it out: seconds for the paper's 3,994 rows."""
    anchors = data.anchors()
    probed = data.rows[:: -(-len(data.rows) // PROBED)]
    unsaid = [row for row in data.rows if GOLD_NOT_STATED in row.flags]
    enough = len({row.clean_id for row in unsaid}) >= UNSAID_SAMPLES
    return Known(
        {row.id: _letters(row, anchors[row.id]) for row in data.rows},
        frozenset(row.id for row in unsaid if enough),
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


Judged = Sequence[tuple[Prediction, Verdict]]


def of_run(judged: Judged, facts: Known) -> tuple[Flag, ...]:
    """The flags of one run that rest on it alone."""
    return tuple(chain(_near_gold(judged, facts), _knows_unsaid(judged, facts), _reference(judged, facts)))


def _near_gold(judged: Judged, facts: Known) -> Iterator[Flag]:
    """The first of these shares that is near 1: letter and right, over clean and over perturbed rows."""
    for codes in ({taxonomy.CLEAN}, set(taxonomy.codes())):
        rows = [(facts.letters[one.id], verdict) for one, verdict in judged if one.type_code in codes]
        letters = [_spelled(verdict.calls) in golds for golds, verdict in rows if golds]
        right = [verdict.correct for _, verdict in rows]
        for of, seen, least in (("letter", letters, LETTER), ("right", right, RIGHT)):
            if seen and clopper_pearson(sum(seen), len(seen))[0] >= least:
                yield Flag(code=NEAR_GOLD, value=fmean(seen), n=len(seen), of=of)
                return


def _knows_unsaid(judged: Judged, facts: Known) -> Iterator[Flag]:
    unsaid = [verdict.correct for one, verdict in judged if one.id in facts.unsaid]
    rest = [verdict.correct for one, verdict in judged if one.id not in facts.unsaid]
    if unsaid and rest and fmean(unsaid) >= max(UNSAID, fmean(rest) - UNSAID_BELOW):
        yield Flag(code=KNOWS_UNSAID, value=fmean(unsaid), n=len(unsaid))


def _reference(judged: Judged, facts: Known) -> Iterator[Flag]:
    """The first agent with the most equal verdicts, if it is all but equal. Of several answers to a row all
    count."""
    probed = next(iter(facts.agents.values()))
    rows = [(one.id, verdict.correct) for one, verdict in judged if one.id in probed]
    shares = {name: fmean(of[row] == right for row, right in rows) for name, of in facts.agents.items()}
    best = max(shares, key=lambda name: shares[name])
    if shares[best] >= SAME_VERDICTS:
        yield Flag(code=REFERENCE, value=shares[best], n=len(rows), of=best)


# --- the replies of another run ----------------------------------------------------------------------------


def sketch(predictions: Sequence[Prediction]) -> bytes:
    """The replies of a run, two bytes for each of up to SKETCHED rows, which the number of rows decides.

    The ids of native calls do not count: servers draw them.
    """
    rows: dict[str, list[Prediction]] = {}
    for one in sorted(predictions, key=lambda one: (one.id, one.repeat)):
        rows.setdefault(one.id, []).append(one)
    answers = list(rows.values())[:: -(-len(rows) // SKETCHED)]
    said = (
        [
            (one.status, one.raw_output, _bare(one.tool_calls), one.first_output, _bare(one.first_tool_calls))
            for one in repeats
        ]
        for repeats in answers
    )
    return b"".join(hashlib.blake2b(dumps(one).encode(), digest_size=2).digest() for one in said)


def _bare(calls: object) -> list[object]:
    return [[call["name"], call["arguments"]] for call in (calls if isinstance(calls, list) else ())]


def copies(entries: Iterable[Entry], trusted: Collection[str] = ()) -> dict[str, Flag]:
    """Run → the earlier run of the same dataset whose replies it has.

    A run of `trusted` (those that would have a rank) is held against earlier ones of these alone, so that no
    upload can take a rank from anybody; any other run against all.
    """
    first: dict[tuple[bool, str, int, int, bytes], str] = {}
    known: dict[str, NDArray[np.uint16]] = {}
    found: dict[str, Flag] = {}
    for one in sorted(entries, key=lambda one: (one.day, one.run)):
        replies = known[one.run] = np.frombuffer(b"" if one.core is None else one.core.replies, np.uint16)
        n, among = len(replies), one.run in trusted
        groups = [(one.fingerprint, n, at, replies[at : at + GROUP].tobytes()) for at in range(0, n, GROUP)]
        others = dict.fromkeys(first[among, *group] for group in groups if (among, *group) in first)
        shares = {other: float((known[other] == replies).mean()) for other in others}
        best = max(shares, key=lambda other: shares[other], default="")
        if best and shares[best] >= SAME_REPLIES:
            found[one.run] = Flag(code=COPY, value=shares[best], n=n, of=best)
        for group in groups:
            first.setdefault((False, *group), one.run)
            if among and one.run not in found:
                first.setdefault((True, *group), one.run)
    return found
