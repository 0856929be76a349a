"""The paraphrase audit: does a rewritten text still mean what the clean one says?

A judge scores pairs from 1 to 5 (benchmark.md, section 10). Recorded judgments cover the whole build for
nothing; a live judge is asked about a draw per type, unless all are wanted. Among a live judge's pairs are
canaries: another sample's text as a rewriting, half of them with an order to give a 5. A judge that scores
one above 2 reads instead of comparing, and the audit is void.
"""

import statistics
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

from robustbench_tc.seeding import rng

from .agreement import quadratic_kappa, wilson_upper
from .canaries import canary_check, canary_pairs, fooled
from .invariants.texts import REWRITES
from .judge import Judge, Judgment, Unjudged
from .report import (
    Agreement,
    Check,
    Failure,
    LowPair,
    RedundantScore,
    TypeScore,
    check,
    not_run,
)
from .rows import NewTool, Pair

_HERE = Path(__file__).parent


class Bound(msgspec.Struct, frozen=True):
    """From `pairs` judged pairs on, the upper bound of the bad share is at most `share`."""

    pairs: int
    share: float


class Thresholds(msgspec.Struct, frozen=True):
    """`thresholds.json`: what the audit asks for."""

    mean_at_least: float
    low: int
    """A pair that is scored this or less is bad; there may be none."""
    wilson_upper_at_most: tuple[Bound, ...]
    """Widest first. Fewer pairs than the last asks for can keep no bound: the other two rules decide."""
    canary_at_most: int
    canaries_per_type: int
    redundant_could_answer_at_most: int
    lowest_listed: int

    def limit(self, pairs: int) -> float | None:
        """What the upper bound may be at this number of pairs."""
        return next((bound.share for bound in self.wilson_upper_at_most if pairs >= bound.pairs), None)


class Result(msgspec.Struct, frozen=True):
    """What the audit found."""

    checks: tuple[Check, ...]
    scores: tuple[TypeScore, ...]
    agreement: tuple[Agreement, ...]
    redundant: RedundantScore


@cache
def thresholds() -> Thresholds:
    return msgspec.json.decode((_HERE / "thresholds.json").read_bytes(), type=Thresholds)


@cache
def paper() -> dict[str, dict[str, float]]:
    """The paper's audit per type."""
    return msgspec.json.decode((_HERE / "paper_audit.json").read_bytes(), type=dict[str, dict[str, float]])


def audit(
    pairs: dict[Pair, str],
    new_tools: dict[NewTool, str],
    judge: Judge,
    second: Judge | None = None,
    *,
    n: int | None = 50,
    seed: int = 0,
) -> Result:
    """Judges the pairs of every rewriting type: `n` drawn with `seed`, or all with None.

    `pairs` and `new_tools` map to the first row that holds each.
    """
    limits = thresholds()
    checks: list[Check] = []
    scores: list[TypeScore] = []
    agreement: list[Agreement] = []
    canaries: list[Failure] = []
    planted = 0
    for code in REWRITES:
        population = [pair for pair in pairs if pair.kind == code]
        drawn = draw(population, n, seed, code)
        wanted = drawn if judge.live else population
        fakes = canary_pairs(population, seed, limits.canaries_per_type) if judge.live else []
        judged, fake_judged = _mixed(judge, wanted, fakes, seed)
        planted += len(fakes)
        canaries += fooled(
            code,
            fake_judged,
            limits.canary_at_most,
            expected=limits.canaries_per_type if judge.live else 0,
        )
        verdicts = dict(zip(wanted, judged, strict=True))
        scopes = [("sample", drawn)] if len(drawn) < len(population) else []
        if len(wanted) == len(population):
            scopes.append(("all", population))
        of_type = [
            _score(code, judge.name, scope, chosen, verdicts, pairs, len(population))
            for scope, chosen in scopes
        ]
        scores += of_type
        checks.append(_verdict(code, of_type, verdicts, pairs, limits))
        if second is not None:
            agreement += _agreement(code, judge, second, drawn, verdicts)
    checks.insert(0, canary_check(judge, canaries, planted))
    if canaries:
        checks = [checks[0], *(_void(found) for found in checks[1:])]
    redundant, redundant_check = _redundant(new_tools, judge, n, seed, limits)
    if second is None:
        checks.append(_agreement_check(None, agreement))
    else:
        checks.append(_agreement_check(second, agreement))
    return Result((*checks, redundant_check), tuple(scores), tuple(agreement), redundant)


def draw(population: Sequence[Pair], n: int | None, seed: int, code: str) -> list[Pair]:
    """`n` of the pairs (all with None or where there are no more), in the order of the build."""
    if n is None or n >= len(population):
        return list(population)
    chosen = sorted(rng(seed, "paraphrase", code).sample(range(len(population)), n))
    return [population[at] for at in chosen]


def _mixed(
    judge: Judge, pairs: Sequence[Pair], fakes: Sequence[Pair], seed: int
) -> tuple[list[Judgment | Unjudged], list[Judgment | Unjudged]]:
    """Judges pairs and canaries in one shuffled batch."""
    order = list(range(len(pairs) + len(fakes)))
    rng(seed, "mix", pairs[0].kind if pairs else "").shuffle(order)
    both = [*pairs, *fakes]
    answers = dict(zip(order, judge.score([both[at] for at in order]), strict=True))
    found = [answers[at] for at in range(len(both))]
    return found[: len(pairs)], found[len(pairs) :]


def _score(
    code: str,
    judge: str,
    scope: str,
    chosen: Sequence[Pair],
    verdicts: dict[Pair, Judgment | Unjudged],
    rows: dict[Pair, str],
    population: int,
) -> TypeScore:
    limits = thresholds()
    judged = [(pair, found) for pair in chosen if isinstance(found := verdicts[pair], Judgment)]
    values = [found.score for _, found in judged]
    bad = sum(value <= limits.low for value in values)
    n = len(values)
    worst = sorted(judged, key=lambda item: item[1].score)[: limits.lowest_listed]
    return TypeScore(
        type_code=code,
        judge="+".join(sorted({found.judge for _, found in judged})) or judge,
        scope=scope,  # type: ignore[arg-type]
        population=population,
        n=n,
        unjudged=len(chosen) - n,
        mean=round(statistics.fmean(values), 4) if values else None,
        median=float(statistics.median(values)) if values else None,
        std=round(statistics.pstdev(values), 4) if values else None,
        share_low=round(bad / n, 6) if n else None,
        upper=round(wilson_upper(bad, n), 6) if n else None,
        limit=limits.limit(n),
        paper=paper().get(code),
        lowest=tuple(
            LowPair(
                row=rows[pair],
                score=found.score,
                reason=found.reason,
                judge=found.judge,
                before=pair.before,
                after=pair.after,
            )
            for pair, found in worst
        ),
    )


def _verdict(
    code: str,
    scores: Sequence[TypeScore],
    verdicts: dict[Pair, Judgment | Unjudged],
    rows: dict[Pair, str],
    limits: Thresholds,
) -> Check:
    """Every pair judged, none bad, the mean high, and the bound kept."""
    failures: list[Failure] = []
    for score in scores:
        if score.mean is not None and score.mean < limits.mean_at_least:
            failures.append(
                Failure(
                    code,
                    f"mean {score.mean:.3f} over {score.n} pairs, at least {limits.mean_at_least} is asked",
                )
            )
        if score.upper is not None and score.limit is not None and score.upper > score.limit:
            failures.append(
                Failure(
                    code,
                    f"upper bound {score.upper:.3%} of the bad share, {score.limit:.1%} at most",
                )
            )
    for pair, found in verdicts.items():
        if isinstance(found, Unjudged):
            failures.append(Failure(rows[pair], found.why))
        elif found.score <= limits.low:
            failures.append(Failure(rows[pair], f"scored {found.score}: {found.reason}"))
    return check(
        f"paraphrase.{code}",
        "A rewritten text means what the clean one says, else the golden call is no longer the right one.",
        sum(isinstance(found, Judgment) for found in verdicts.values()),
        failures,
        reason="" if verdicts else "the build holds no pair of this type",
    )


def _void(found: Check) -> Check:
    return msgspec.structs.replace(
        found, status="failed", failed=max(1, found.failed), reason="void: the judge was fooled by a canary"
    )


def _agreement(
    code: str, judge: Judge, second: Judge, drawn: Sequence[Pair], verdicts: dict[Pair, Judgment | Unjudged]
) -> list[Agreement]:
    both = [
        (one.score, other.score)
        for pair, other in zip(drawn, second.score(drawn), strict=True)
        if isinstance(one := verdicts[pair], Judgment) and isinstance(other, Judgment)
    ]
    if not both:
        return []
    left, right = [a for a, _ in both], [b for _, b in both]
    kappa = quadratic_kappa(left, right)
    return [
        Agreement(
            type_code=code,
            judges=(judge.name, second.name),
            n=len(both),
            exact=round(sum(a == b for a, b in both) / len(both), 4),
            kappa=None if kappa is None else round(kappa, 4),
        )
    ]


def _agreement_check(second: Judge | None, agreement: Sequence[Agreement]) -> Check:
    protects = "A second judge shows whether the scores are more than one model's taste."
    if second is None:
        return not_run(
            "paraphrase.agreement",
            protects,
            "one judge",
            may_be_left_out="issue 4, scope 2: two judges are optional",
        )
    missing = [
        Failure(code, "no pair was judged by both")
        for code in REWRITES
        if code not in {a.type_code for a in agreement}
    ]
    return check("paraphrase.agreement", protects, sum(a.n for a in agreement), missing)


def _redundant(
    new_tools: dict[NewTool, str], judge: Judge, n: int | None, seed: int, limits: Thresholds
) -> tuple[RedundantScore, Check]:
    """The question of its own for `redundant`: could a new tool answer the query?"""
    name = "paraphrase.redundant"
    protects = "A redundant tool that could answer the query would make a right call wrong."
    tools = list(new_tools)
    if not judge.live:
        return RedundantScore(judge=None, population=len(tools)), not_run(
            name,
            protects,
            "nobody judged it",
            may_be_left_out="issue 4, scope 2: where nobody judged, the card says so",
        )
    if n is not None and n < len(tools):
        tools = [tools[at] for at in sorted(rng(seed, "redundant").sample(range(len(tools)), n))]
    answers = judge.could_answer(tools)
    failures = []
    yes = 0
    for tool, answer in zip(tools, answers, strict=True):
        if isinstance(answer, Unjudged):
            failures.append(Failure(new_tools[tool], answer.why))
        elif answer.could_answer:
            yes += 1
            failures.append(Failure(new_tools[tool], f"{tool.name} could answer it: {answer.reason}"))
    if yes <= limits.redundant_could_answer_at_most and yes == len(failures):
        failures = []
    asked = sum(not isinstance(answer, Unjudged) for answer in answers)
    score = RedundantScore(judge=judge.name, population=len(new_tools), asked=asked, could_answer=yes)
    return score, check(name, protects, asked, failures)
