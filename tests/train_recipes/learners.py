"""Simulated learners under each way to draw types: the table of docs/training.md.

python -m tests.train_recipes.learners
"""

import math
import random
from collections.abc import Mapping
from typing import NamedTuple

from robustbench_tc.train_recipes.sampling import MODES, Mode, Weights


class Learner(NamedTuple):
    """A simulated model: its loss of a type falls with the rows of that type, and a little with others."""

    speed: dict[str, float]
    """Type → how fast its loss falls with its own rows; 0: it cannot be learnt."""
    transfer: float = 0.0
    """What a row of another type is worth."""

    def trained(self, loss: Mapping[str, float], shares: Mapping[str, float], rows: int) -> dict[str, float]:
        """The losses after so many rows."""
        return {
            name: loss[name]
            * math.exp(-self.speed[name] * rows * (share + self.transfer * (1 - share)) / 1_000)
            for name, share in shares.items()
        }


LEARNERS = {
    "alike": Learner(dict.fromkeys("abcd", 4.0)),
    "one slow": Learner({"a": 8.0, "b": 8.0, "c": 8.0, "d": 1.5}),
    "one slow, transfer": Learner({"a": 8.0, "b": 8.0, "c": 8.0, "d": 1.5}, transfer=0.3),
    "one cannot be learnt": Learner({"a": 4.0, "b": 4.0, "c": 4.0, "d": 0.0}),
}


STEPS, ROWS, SEEN = 18, 150, 20
"""Of the simulation: validations, train rows between two, validation rows of a type."""


def simulated(learner: Learner, mode: Mode) -> dict[str, float]:
    """The losses at the end, from 0.8 each."""
    rng = random.Random(f"simulated {mode}")
    weights = Weights(dict.fromkeys(learner.speed, 1.0), mode)
    loss = dict.fromkeys(learner.speed, 0.8)
    for _ in range(STEPS):
        seen = {name: sum(rng.random() < value for _ in range(SEEN)) / SEEN for name, value in loss.items()}
        weights.update(seen)
        loss = learner.trained(loss, weights.shares, ROWS)
    return loss


def table() -> str:
    """Mean and worst loss of each learner under each mode, as Markdown."""
    lines = ["| learner | " + " | ".join(MODES) + " |", "|---|" + "---:|" * len(MODES)]
    for name, learner in LEARNERS.items():
        cells = []
        for mode in MODES:
            loss = simulated(learner, mode)
            cells.append(f"{math.fsum(loss.values()) / len(loss):.3f}, {max(loss.values()):.3f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())  # noqa: T201
