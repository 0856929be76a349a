"""How often a sentence claims a difference between runs that have none: over pairs of models of equal
ability.

The runs have the rows of a full build (199 samples, 22 types). Both models answer a sample with the same
ability, and perturbed rows are as easy as clean ones.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import compress

import msgspec
import numpy as np
from benchmarks.statistics import synthetic

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats import breakdown, compare, significance, summary
from robustbench_tc.eval.stats.outcomes import Outcomes

from .coverage import SEED

PAIRS = 2_000
AT_MOST = 0.06
"""What no sentence may exceed."""

MODELS = {
    "accuracy 0.7, ICC 0.5": (0.7, 0.5),
    "accuracy 0.95, ICC 0.5": (0.95, 0.5),
    "accuracy 0.99, ICC 0.1": (0.99, 0.1),
    "all right": (1.0, 0.5),
    "all wrong": (0.0, 0.5),
}
"""Name → accuracy and intraclass correlation."""


def outcomes(random: np.random.Generator, like: Outcomes, ability: np.ndarray) -> Outcomes:
    """A run over the rows of `like`."""
    right = (random.random(like.n.shape) < ability[:, None]).astype(np.int64)
    correct, anchors = right * like.n, right[:, :1]
    return msgspec.structs.replace(
        like,
        correct=correct,
        kept=like.pairs * (anchors & correct),
        lost=like.pairs * (anchors > correct),
        gained=like.pairs * (anchors < correct),
    )


def alarms(model: str, pairs: int = PAIRS) -> Counter[str]:
    """Sentence → pairs of runs in which it claims a difference."""
    accuracy, icc = MODELS[model]
    like, found = synthetic(0), Counter[str](dict.fromkeys(SENTENCES, 0))
    random = np.random.default_rng([SEED, round(accuracy * 1000), round(icc * 10)])
    known = (1 - icc) / icc
    for _ in range(pairs if 0 < accuracy < 1 else 1):
        size = len(like.clean_ids)
        ability = (
            random.beta(accuracy * known, (1 - accuracy) * known, size)
            if 0 < accuracy < 1
            else np.full(size, accuracy)
        )
        found.update(claims(outcomes(random, like, ability), outcomes(random, like, ability)))
    if accuracy in (0, 1):  # every pair is the same
        found = Counter({name: n * pairs for name, n in found.items()})
    return found


SENTENCES = (
    "compare: B is better than A on perturbed rows",
    "compare: ahead in a type, report: a star at a type (Holm over 22)",
    "compare: a line of the first table (Holm over 6)",
    "compare: a line of the Δ table (Holm over 4)",
    "compare: closes or widens a gap (worst of 4 components)",
    "report: a star in Table 2 (worst of 6 columns, as the paper marks)",
    "report: a type loses or gains samples (Holm over 22)",
    "report: Δ matched of a component is not 0 (worst of 4)",
    "what_to_gain: a type has something to gain (Holm over 22)",
)
"""Those of several components count each by itself: the worst is shown."""

NO_BREAKDOWN = breakdown.Breakdown()


def claims(a: Outcomes, b: Outcomes) -> Iterator[str]:
    """The sentences that claim a difference; those of single components with its name behind."""
    made = compare.compare_outcomes(("a", "b"), a, b)
    of_whole_runs = (
        "is better than" in made.verdict,
        " ahead (" in made.verdict,
        min(made.overall_holm.values()) < significance.LEVEL,
        min(made.deltas_holm.values()) < significance.LEVEL,
    )
    yield from compress(SENTENCES, of_whole_runs)
    for name, delta in made.deltas.items():
        if delta.closed is not None and not delta.closed.low <= 0 <= delta.closed.high:
            yield f"{SENTENCES[4]}|{name}"
    stars = [(name, made.overall[name].p) for name in (taxonomy.CLEAN, "perturbed")]
    stars += [(f"Δ {name}", delta.difference.p or 0.0) for name, delta in made.deltas.items()]
    yield from (f"{SENTENCES[5]}|{name}" for name, p in stars if p < significance.LEVEL)
    yield from of_one(summary.summarise(b))


def of_one(made: summary.Summary) -> Iterator[str]:
    if any(row.flips is not None and row.flips.p_holm < significance.LEVEL for row in made.types.values()):
        yield SENTENCES[6]
    for name in taxonomy.COMPONENTS:
        found = made.values[f"delta_matched_{name}"]
        if found is not None and not found.low <= 0 <= found.high:
            yield f"{SENTENCES[7]}|{name}"
    if any(
        one.p_holm is not None and one.p_holm < significance.LEVEL and one.gain > 0
        for one in breakdown.gains(made, NO_BREAKDOWN)
    ):
        yield SENTENCES[8]


def rates(found: Mapping[str, int], pairs: int = PAIRS) -> dict[str, float]:
    """Sentence → share of pairs; of several components the worst."""
    return {
        sentence: max(n for name, n in found.items() if name.partition("|")[0] == sentence) / pairs
        for sentence in SENTENCES
    }


def table(found: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """By model."""
    yield f"| sentence | {' | '.join(found)} |"
    yield f"|---|{'---:|' * len(found)}"
    for sentence in SENTENCES:
        yield f"| {sentence} | {' | '.join(f'{of[sentence]:.3f}' for of in found.values())} |"
