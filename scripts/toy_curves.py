"""Draws the two curves of the TRL recipe's smoke test: `scripts/toy_curves.py train-toy.json FIGURE.svg`."""

import json
import sys
from pathlib import Path

from robustbench_tc.eval.report import figures

NAMES = {"reward": "ToolRL's reward", "shuffled": "permuted rewards"}
KINDS = {"reward": "first", "shuffled": "second"}


def drawn(found: dict) -> str:
    """The mean reward of each step; means over a pass of the rows (two steps)."""
    lines = {
        name: [
            ((one["step"] + two["step"]) / 2, (one["score"] + two["score"]) / 2)
            for one, two in zip(curve[::2], curve[1::2], strict=True)
        ]
        for name, curve in found["curves"].items()
    }
    low = min(value for line in lines.values() for _, value in line)
    high = max(value for line in lines.values() for _, value in line)
    steps = found["steps"]
    return figures.alone(
        figures.chart(
            figures.Axis(0, steps, {at: str(at) for at in range(0, steps + 1, 10)}, name="step"),
            figures.Axis(low, high, figures.ticks(low, high), name="mean reward"),
            [],
            [figures.Path(line, KINDS[name], NAMES[name]) for name, line in lines.items()],
            "Mean reward over the steps: with the reward it rises, with permuted rewards it does not",
            size=(640, 300),
            right=130,
        )
    )


if __name__ == "__main__":
    source, figure = map(Path, sys.argv[1:])
    figure.write_text(drawn(json.loads(source.read_text())))
