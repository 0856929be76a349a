"""The judgment of written texts: does a rewritten text still mean what the clean one says, and could a new
tool answer the query?

Every written text is judged (benchmark.md, section 10). Judgments that ship with the package come first, a
live judge is asked about the rest; in every pass there are canaries, and a judge that one of them fools voids
the audit. What is reported beside all texts is a draw per type, as the paper has it.
"""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeGuard, TypeVar

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.io import numbers
from robustbench_tc.seeding import rng

from .invariants.base import REWRITES, codes_of
from .judge import (
    SEED,
    Item,
    Judge,
    Judgment,
    Unjudged,
    Verdict,
    canary_check,
    canary_pairs,
    canary_tools,
    fooled,
)
from .judgments import Line, Stored, line
from .report import (
    Agreement,
    Check,
    Failure,
    RedundantScore,
    TypeScore,
    check,
    not_run,
)
from .rows import NewTool, Pair

_HERE = Path(__file__).parent


MEAN_AT_LEAST = 4.7

LOW = 2
"""A pair that is scored this or less is bad, and there may be none; a canary that is scored more fools."""

WILSON_UPPER_AT_MOST = ((150, 0.025), (45, 0.08))
"""From so many judged pairs on, the upper bound of the bad share is at most so much. Fewer pairs can keep no
bound: the other two rules decide."""

CANARIES_PER_TYPE = 4

Z95 = 1.959963984540054
"""The 97.5 % point of the normal distribution."""


class Result(msgspec.Struct, frozen=True):
    """What the audit found."""

    checks: tuple[Check, ...]
    scores: tuple[TypeScore, ...]
    agreement: tuple[Agreement, ...]
    redundant: RedundantScore
    judgments: tuple[Line, ...]
    """Every judgment that it rests on, canaries included."""


@cache
def paper() -> dict[str, dict[str, float]]:
    """The paper's audit per type."""
    return msgspec.json.decode((_HERE / "paper_audit.json").read_bytes(), type=dict[str, dict[str, float]])


def audit(
    pairs: dict[Pair, str],
    new_tools: dict[NewTool, str],
    *judges: Judge,
    second: Judge | None = None,
    n: int | None = 50,
    seed: int = 0,
) -> Result:
    """Judges every pair of the rewriting types and every new tool.

    `pairs` and `new_tools` map to the first row that holds each. `n` pairs per type are drawn with `seed`
    (all with None): they are reported beside all of them, and are what the second judge scores.
    """
    asked = _Asked(judges)
    checks: list[Check] = []
    scores: list[TypeScore] = []
    agreement: list[Agreement] = []
    there = {pair.kind for pair in pairs}
    codes = [code for code in codes_of(REWRITES) if code in there or taxonomy.get(code).status == "core"]
    for code in codes:
        population = [pair for pair in pairs if pair.kind == code]
        fakes = canary_pairs(population, SEED, CANARIES_PER_TYPE)
        verdicts = asked.about(code, population, fakes, pairs)
        drawn = draw(population, n, seed, code)
        scopes = [("sample", drawn)] if len(drawn) < len(population) else []
        scopes.append(("all", population))
        of_type = [
            _score(code, named(judges), scope, chosen, verdicts, len(population)) for scope, chosen in scopes
        ]
        scores += of_type
        checks.append(_verdict(code, of_type, verdicts, pairs))
        if second is not None:
            agreement += _agreement(code, named(judges), second, drawn, verdicts)
    tools = list(new_tools)
    fake_tools = canary_tools(tools, SEED, CANARIES_PER_TYPE)
    answers = asked.about("redundant", tools, fake_tools, new_tools)
    redundant, redundant_check = _redundant(new_tools, answers)
    checks.append(redundant_check)
    canaries = canary_check(asked.fooled, asked.planted)
    if asked.fooled:
        checks = [
            msgspec.structs.replace(
                found,
                status="failed",
                failed=max(1, found.failed),
                reason="void: the judge was fooled by a canary",
            )
            for found in checks
        ]
    checks = [canaries, *checks, _agreement_check(second, agreement, codes), *asked.stored_checks()]
    return Result(tuple(checks), tuple(scores), tuple(agreement), redundant, tuple(asked.lines))


def named(judges: Sequence[Judge]) -> str:
    """What several judges are called."""
    return ", then ".join(judge.name for judge in judges)


_I = TypeVar("_I", Pair, NewTool)


class _Asked:
    """Asks the judges in turn, canaries among each one's texts, and keeps what they said."""

    def __init__(self, judges: Sequence[Judge]) -> None:
        self._judges = judges
        self.lines: list[Line] = []
        self.fooled: list[Failure] = []
        self.planted: Counter[str] = Counter()
        """Judge → canaries mixed into its passes."""
        self.contradicted: list[Failure] = []

    def about(
        self, kind: str, items: Sequence[_I], fakes: Sequence[_I], rows: dict[_I, str]
    ) -> dict[_I, Verdict]:
        """The verdicts on `items`: each judge is asked about what those before left unjudged."""
        verdicts: dict[_I, Verdict] = dict.fromkeys(items, Unjudged("nobody was asked"))
        for judge in self._judges:
            left = [item for item, found in verdicts.items() if isinstance(found, Unjudged)]
            if left:
                verdicts |= zip(left, self._pass(judge, kind, fakes, left), strict=True)
        for item, found in verdicts.items():
            if isinstance(found, Judgment):
                self.lines.append(line(item, found, rows[item]))
                its = (one.contradicts(item, found, rows[item]) for one in self._judges if _is_stored(one))
                self.contradicted += filter(None, its)
        return verdicts

    def _pass(self, judge: Judge, kind: str, fakes: Sequence[Item], left: Sequence[Item]) -> list[Verdict]:
        """One judge's verdicts on what is left, given in one shuffled batch with the canaries."""
        both = [*left, *fakes]
        order = list(range(len(both)))
        rng(SEED, "mix", kind).shuffle(order)
        answers = dict(zip(order, judge.judge([both[at] for at in order]), strict=True))
        found = [answers[at] for at in range(len(both))]
        of_fakes = found[len(left) :]
        self.planted[judge.name] += len(fakes)
        self.fooled += fooled(kind, judge, fakes, of_fakes, LOW)
        for fake, said in zip(fakes, of_fakes, strict=True):
            if isinstance(said, Judgment):
                self.lines.append(line(fake, said, kind, canary=True))
        return found[: len(left)]

    def stored_checks(self) -> list[Check]:
        """Where judgments of a file are replayed: it may not contradict the package."""
        compared = sum(not one.canary for one in self.lines) * sum(map(_is_stored, self._judges))
        protects = "Stored judgments say what the package's own say: a file that was edited is not believed."
        made = check("paraphrase.stored_judgments", protects, compared, self.contradicted)
        return [made] if any(map(_is_stored, self._judges)) else []


def _is_stored(judge: Judge) -> TypeGuard[Stored]:
    return isinstance(judge, Stored)


def wilson_upper(bad: int, n: int) -> float:
    """Upper end of the 95 % Wilson score interval of `bad` in `n` (n at least 1)."""
    share, square = bad / n, Z95 * Z95
    centre = share + square / (2 * n)
    spread = Z95 * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    return min(1.0, (centre + spread) / (1 + square / n))


def quadratic_kappa(left: Sequence[int], right: Sequence[int]) -> float | None:
    """Cohen's kappa with squared distances as weights; None where every score of both is the same one.

    One minus the mean squared difference over the one that is expected of independent judges with the same
    distributions of scores.
    """
    n = len(left)
    observed = sum((a - b) ** 2 for a, b in zip(left, right, strict=True)) / n
    expected = sum((a - b) ** 2 for a in left for b in right) / (n * n)
    return None if expected == 0 else 1 - observed / expected


def draw(population: Sequence[Pair], n: int | None, seed: int, code: str) -> list[Pair]:
    """`n` of the pairs (all with None or where there are no more), in the order of the build."""
    if n is None or n >= len(population):
        return list(population)
    chosen = sorted(rng(seed, "paraphrase", code).sample(range(len(population)), n))
    return [population[at] for at in chosen]


def _score(
    code: str,
    judge: str,
    scope: str,
    chosen: Sequence[Pair],
    verdicts: dict[Pair, Verdict],
    population: int,
) -> TypeScore:
    judged = [found for pair in chosen if isinstance(found := verdicts[pair], Judgment)]
    values = [found.value for found in judged]
    bad = sum(value <= LOW for value in values)
    n = len(values)
    return TypeScore(
        type_code=code,
        judge="+".join(sorted({found.judge for found in judged})) or judge,
        scope=scope,  # type: ignore[arg-type]
        population=population,
        n=n,
        unjudged=len(chosen) - n,
        pinned=sum(found.pinned for found in judged),
        mean=round(statistics.fmean(values), 4) if values else None,
        median=float(statistics.median(values)) if values else None,
        std=round(statistics.pstdev(values), 4) if values else None,
        share_low=round(bad / n, 6) if n else None,
        upper=round(wilson_upper(bad, n), 6) if n else None,
        limit=next((share for pairs, share in WILSON_UPPER_AT_MOST if n >= pairs), None),
        paper=paper().get(code),
    )


def _verdict(
    code: str,
    scores: Sequence[TypeScore],
    verdicts: dict[Pair, Verdict],
    rows: dict[Pair, str],
) -> Check:
    """Every pair judged, none bad, the mean high, and the bound kept."""
    failures: list[Failure] = []
    for score in scores:
        if score.mean is not None and score.mean < MEAN_AT_LEAST:
            said, asked = numbers.number(score.mean), numbers.number(MEAN_AT_LEAST, 1)
            failures.append(Failure(code, f"mean {said} over {score.n} pairs, at least {asked} is asked"))
        if score.upper is not None and score.limit is not None and score.upper > score.limit:
            said, asked = numbers.percent(score.upper), numbers.percent(score.limit)
            failures.append(Failure(code, f"upper bound {said} of the bad share, {asked} at most"))
    for pair, found in verdicts.items():
        if isinstance(found, Unjudged):
            failures.append(Failure(rows[pair], found.why))
        elif found.value <= LOW:
            failures.append(Failure(rows[pair], f"scored {found.value}: {found.reason}"))
    return check(
        f"paraphrase.{code}",
        "A rewritten text means what the clean one says, else the golden call is no longer the right one.",
        sum(isinstance(found, Judgment) for found in verdicts.values()),
        failures,
        reason="" if verdicts else "the build holds no pair of this type",
    )


def _agreement(
    code: str, judge: str, second: Judge, drawn: Sequence[Pair], verdicts: dict[Pair, Verdict]
) -> list[Agreement]:
    both = [
        (one.value, other.value)
        for pair, other in zip(drawn, second.judge(drawn), strict=True)
        if isinstance(one := verdicts[pair], Judgment) and isinstance(other, Judgment)
    ]
    if not both:
        return []
    left, right = [a for a, _ in both], [b for _, b in both]
    kappa = quadratic_kappa(left, right)
    return [
        Agreement(
            type_code=code,
            judges=(judge, second.name),
            n=len(both),
            exact=round(sum(a == b for a, b in both) / len(both), 4),
            kappa=None if kappa is None else round(kappa, 4),
        )
    ]


def _agreement_check(second: Judge | None, agreement: Sequence[Agreement], judged: Sequence[str]) -> Check:
    protects = "A second judge shows whether the scores are more than one model's taste."
    if second is None:
        return not_run(
            "paraphrase.agreement",
            protects,
            "one judge",
            may_be_left_out="a second judge is optional",
        )
    missing = [
        Failure(code, "no pair was judged by both")
        for code in judged
        if code not in {a.type_code for a in agreement}
    ]
    return check("paraphrase.agreement", protects, sum(a.n for a in agreement), missing)


def _redundant(
    new_tools: dict[NewTool, str], answers: dict[NewTool, Verdict]
) -> tuple[RedundantScore, Check]:
    """The question of its own for `redundant`: could a new tool answer the query?"""
    failures = []
    for tool, answer in answers.items():
        if isinstance(answer, Unjudged):
            failures.append(Failure(new_tools[tool], f"{tool.name}: {answer.why}"))
        elif answer.value:
            what = f"{tool.name} could answer it: {answer.reason}"
            failures.append(Failure(new_tools[tool], what, tool.hash))
    judged = [answer for answer in answers.values() if isinstance(answer, Judgment)]
    score = RedundantScore(
        judge="+".join(sorted({answer.judge for answer in judged})) or None,
        population=len(answers),
        asked=len(judged),
        pinned=sum(answer.pinned for answer in judged),
        could_answer=sum(answer.value for answer in judged),
    )
    protects = "A redundant tool that could answer the query would make a right call wrong."
    return score, check(
        "paraphrase.redundant",
        protects,
        len(answers),
        failures,
        reason="" if answers else "the build holds no new tool",
    )
