"""What the advantages of a group are where only some rollouts meet the error, under three ways to normalise.

    python -m tests.train_recipes.noisy_table

A simulated model calls rightly in 8 of 10 rollouts, else not at all. Where it calls and its world has the
error, it tries again in 3 of 10, else gives up. Rewards are those of the retry recipe (README.md there).
"""

import math
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from robustbench_tc.train_recipes.noisy import met

CALLS, RETRIES = 0.8, 0.3
"""How often the model calls rightly, and tries again after the error."""
RIGHT, GAVE_UP, NO_CALL = 4.0, -0.2, -3.0
"""Rewards: all right; right, then nothing after the error; nothing at all."""
GROUPS = 4_000
"""Prompts that are simulated for each line."""


class Rollout(NamedTuple):
    """One simulated rollout."""

    drawn: bool
    """Its world has the error."""
    called: bool
    again: bool | None
    """Whether it tried again; None: it did not meet the error."""
    reward: float


NORMALISED: dict[str, Callable[[Rollout], object]] = {
    "one mean": lambda rollout: None,
    "by error met": lambda rollout: rollout.again is not None,
    "by error drawn": lambda rollout: rollout.drawn,
}
"""What parts the rollouts of a prompt in groups; the last is what `data.noisy` does."""


def advantages(rewards: Sequence[float], groups: Sequence[object]) -> list[float]:
    """GRPO's: the distance from the group's mean in its standard deviations; 0 for a group of one."""
    members: dict[object, list[float]] = defaultdict(list)
    for reward, group in zip(rewards, groups, strict=True):
        members[group].append(reward)
    scale = {
        group: (statistics.fmean(values), statistics.stdev(values))
        for group, values in members.items()
        if len(values) > 1
    }
    found = []
    for reward, group in zip(rewards, groups, strict=True):
        mean, deviation = scale.get(group, (reward, 1.0))
        found.append((reward - mean) / (deviation + 1e-6))
    return found


def played(rng: random.Random, drawn: bool) -> Rollout:
    """A rollout of the simulated model."""
    if rng.random() >= CALLS:
        return Rollout(drawn, False, None, NO_CALL)
    if not drawn:
        return Rollout(drawn, True, None, RIGHT)
    again = rng.random() < RETRIES
    return Rollout(drawn, True, again, RIGHT if again else GAVE_UP)


class Line(NamedTuple):
    """What a way to normalise makes of the simulated prompts."""

    spared: float
    """Mean advantage of a right first call in a world without the error; nan: there is none."""
    drawn: float
    """The same where the world has the error."""
    silent: float
    """Mean advantage of no call at all."""
    alike: float
    """Mean size of an advantage where all rollouts of the world earned the same; nan: there is none."""
    signal: float
    """Mean of a prompt's update of "try again" over its standard deviation."""
    compared: float
    """The same without the updates of prompts in which all who met the error did the same."""


def simulated(way: str, rate: float, rollouts: int, groups: int = GROUPS) -> Line:
    """Plays prompts of so many rollouts, drawn as training draws them."""
    rng = random.Random(f"simulated {rate} {rollouts}")  # the same rollouts for each way
    seen: dict[str, list[float]] = defaultdict(list)
    for number in range(groups):
        hit = met(rate, rollouts, 0, number)
        group = [played(rng, index in hit) for index in range(rollouts)]
        found = advantages([one.reward for one in group], [NORMALISED[way](one) for one in group])
        update = 0.0
        for one, advantage in zip(group, found, strict=True):
            name = "silent" if not one.called else "drawn" if one.drawn else "spared"
            seen[name].append(advantage)
            if len({other.reward for other in group if other.drawn == one.drawn}) == 1:
                seen["alike"].append(abs(advantage))
            if one.again is not None:  # the derivative of a logit
                update += advantage * (1 - RETRIES if one.again else -RETRIES)
        seen["signal"].append(update)
        seen["compared"].append(update if {True, False} <= {one.again for one in group} else 0.0)
    values = {name: statistics.fmean(seen[name]) if seen[name] else math.nan for name in Line._fields}
    for name in ("signal", "compared"):
        values[name] /= statistics.stdev(seen[name])
    return Line(**values)


def table(groups: int = GROUPS) -> str:
    """A line for each rate, group size and way to normalise, as Markdown."""
    lines = [
        "| rate, rollouts | normalised | right call, no error | right call, error | no call "
        "| all earned the same | signal | of both |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for rate, rollouts in ((0.5, 4), (0.5, 8), (1.0, 4)):
        for way in NORMALISED:
            values = simulated(way, rate, rollouts, groups)
            cells = " | ".join(
                "–" if math.isnan(value) else f"{round(value, 2) + 0.0:.2f}" for value in values
            )
            lines.append(f"| {rate:g}, {rollouts} | {way} | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())  # noqa: T201
