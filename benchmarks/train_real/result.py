"""The numbers of a run, the sentences about them, and the figure: all from `train-real.json`."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np

from robustbench_tc.eval.report import figures
from robustbench_tc.eval.stats.intervals import Interval, paired_difference, resampled_mean, t_upper
from robustbench_tc.eval.stats.significance import paired_p
from robustbench_tc.eval.stats.summary import FACTOR

Right = Mapping[str, bool]
"""Clean id → whether a question was answered rightly."""

Arm = Mapping[str, Right]
"""Condition → its questions."""

TRAINED = ("clean", "perturbed", "permuted")
"""The arms that are trained, beside `base`."""

CONDITIONS = ("clean", "action", "reward", "swap", "inv", "moot", "observation", "transition")
"""What questions are asked under. Training rows of the perturbed arms hold action and reward; swap, inv and
moot are rows on which taking the cheapest tool is no help; observation and transition are transfer."""

HELD = ("action", "reward")
"""Components of the primary endpoint."""

LEVEL = 0.05


class Bar(NamedTuple):
    """One arm's clean accuracy against another's, over the same questions of the same two models."""

    seed: int
    arm: str
    against: str
    gained: int
    lost: int
    p: float

    @property
    def holds(self) -> bool:
        """Whether the arm is above the other one."""
        return self.gained > self.lost and self.p < LEVEL

    @property
    def line(self) -> str:
        """For people."""
        verdict = "holds" if self.holds else "FAILED"
        counts = f"{self.gained} gained, {self.lost} lost, exact paired p = {self.p:.2g}"
        return f"seed {self.seed}: {self.arm} above {self.against} in clean accuracy: {counts}: {verdict}"


def bars(base: Arm, seeds: Sequence[Mapping[str, Arm]]) -> list[Bar]:
    """The clean and the perturbed arm, each above base and above the permuted arm."""
    found = []
    for seed, arms in enumerate(seeds):
        for arm in ("clean", "perturbed"):
            for name, other in (("base", base), ("permuted", arms["permuted"])):
                mine, theirs = arms[arm]["clean"], other["clean"]
                differences = np.array([int(mine[one]) - int(theirs[one]) for one in mine])
                gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
                found.append(Bar(seed, arm, name, gained, lost, paired_p(differences)))
    return found


def clean_difference(arms: Mapping[str, Arm]) -> Interval:
    """Clean accuracy of the perturbed arm less that of the clean arm, over paired questions."""
    pairs = [(arms["perturbed"]["clean"][one], right) for one, right in arms["clean"]["clean"].items()]
    return paired_difference(pairs.count((True, False)), pairs.count((False, True)), len(pairs))


def endpoint(arms: Mapping[str, Arm]) -> Interval:
    """Mean over action and reward of Δ (perturbed less clean accuracy, matched by clean id) in the perturbed
    arm, less the same of the clean arm."""
    ids = [one for one in arms["clean"]["clean"] if all(one in arms["clean"][held] for held in HELD)]

    def drop(arm: Arm, clean_id: str) -> int:
        return sum(int(arm[held][clean_id]) - int(arm["clean"][clean_id]) for held in HELD)

    totals = [drop(arms["perturbed"], one) - drop(arms["clean"], one) for one in ids]
    return resampled_mean(np.array(totals), len(HELD))


def over_seeds(values: Sequence[float]) -> tuple[float, float, float, float] | None:
    """Mean over seeds, its 95 % interval, and t; None with fewer than two seeds or without spread."""
    if len(values) < 2 or not (spread := stdev(values) / math.sqrt(len(values))):
        return None
    mean, reach = fmean(values), t_upper((1 - 0.95) / 2, len(values) - 1) * spread
    return mean, mean - reach, mean + reach, mean / spread


def power(questions: int, seeds: int) -> str:
    """What could be seen, said before the run. `questions`: under each condition."""
    flips = round(0.3 * questions)
    rows = FACTOR * paired_difference(flips // 2, flips - flips // 2, questions).half_width
    said = f"power, before the run: of two models, {100 * rows:.0f} points of clean accuracy are seen in four"
    said += f" runs of five ({questions} paired questions, 30 % of which differ)"
    if seeds < 2:
        return f"{said}; one seed: nothing is tested of the recipe"
    effect = (t_upper(0.025, seeds - 1) + t_upper(0.2, seeds - 1)) / math.sqrt(seeds)
    return f"{said}; of the recipe, {effect:.1f} times the spread over seeds ({seeds} seeds)"


def accuracy(arm: Arm, condition: str) -> float:
    """Share of right answers."""
    return fmean(arm[condition].values())


def lines(found: Mapping[str, Any]) -> list[str]:
    """What a run says: a table of the first seed's accuracy, bars, and what they do not speak of."""
    base, seeds = found["base"], found["seeds"]
    said = [f"{'right, of 100':<12}" + "".join(f"{name:>13}" for name in CONDITIONS) + f"{'written':>11}"]
    for name, arm in {"base": base, **seeds[0]}.items():
        cells = "".join(f"{100 * accuracy(arm['right'], one):>13.0f}" for one in CONDITIONS)
        said.append(f"{name:<12}{cells}{arm['written']:>8}/{found['written_of']}")
    scored = [{name: arm["right"] for name, arm in arms.items()} for arms in seeds]
    said += [bar.line for bar in bars(base["right"], scored)]
    for seed, arms in enumerate(scored):
        clean, main = clean_difference(arms), endpoint(arms)
        said.append(
            f"seed {seed}: clean accuracy, perturbed arm less clean arm: {_points(clean)}; primary endpoint "
            f"(mean change of Δ over action and reward): {_points(main)}, no test: these are two models"
        )
    test = over_seeds([endpoint(arms).value for arms in scored])
    if test is None:
        said.append(f"{len(seeds)} seed: a description of these models, no claim on the recipe")
    else:
        mean, low, high, t = (100 * value for value in test)
        said.append(
            f"over {len(seeds)} seeds: primary endpoint {mean:+.1f} points ({low:+.1f} to {high:+.1f}), "
            f"t = {t / 100:.2f}: {'seen' if low > 0 or high < 0 else 'not seen'}"
        )
    return said


def _points(found: Interval) -> str:
    return f"{100 * found.value:+.1f} points ({100 * found.low:+.1f} to {100 * found.high:+.1f})"


KINDS = {"base": "paper", "clean": "first", "perturbed": "third", "permuted": "second"}


def figure(found: Mapping[str, Any]) -> str:
    """Accuracy of the four arms under each condition, of the first seed."""
    dots, paths = [], []
    for name, arm in {"base": found["base"], **found["seeds"][0]}.items():
        points = [(float(at), accuracy(arm["right"], one)) for at, one in enumerate(CONDITIONS)]
        paths.append(figures.Path(points, KINDS[name], name))
        dots += [
            figures.Dot(at, value, KINDS[name], f"{name}, {CONDITIONS[int(at)]}: {100 * value:.0f} of 100")
            for at, value in points
        ]
    quarters = {one / 4: f"{25 * one} %" for one in range(5)}
    return figures.alone(
        figures.chart(
            figures.Axis(0, len(CONDITIONS) - 1, dict(enumerate(CONDITIONS)), name="held-out questions"),
            figures.Axis(0, 1, quarters, name="right"),
            dots,
            paths,
            "Accuracy of the four arms under each condition",
            size=(760, 340),
            right=90,
        )
    )
