"""The recipe's smoke test: does the reward rise, and only because of the reward?

    python -m robustbench_tc.train_recipes.trl.smoke --out out/train-toy

A model of a million parameters is taught 16 rows of ours by fine-tuning, then trained with GRPO on eight of
them, twice: with ToolRL's reward, and with the rewards of each batch permuted. The rows are those it was
taught, so this says that the recipe's parts work together, and nothing about what is learnt from other rows.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from robustbench_tc.errors import UserError

from .. import start
from ..grpo import CURVE
from . import toy

STEPS, WINDOW = 100, 12
"""A pass over the eight rows is two steps: the first and last twelve are six whole passes each."""

SETTINGS: dict[str, Any] = {
    "num_generations": 8,
    "learning_rate": 2e-4,
    "save_steps": 20,
    "eval_strategy": "no",
    "per_device_train_batch_size": 32,
    "gradient_accumulation_steps": 1,
    "steps_per_generation": 1,
    "max_completion_length": 96,
    "beta": 0.0,
    "entropy_coef": 0.0,
}


class Bar(NamedTuple):
    """A threshold on the change from the first to the last window."""

    run: str
    value: str
    at_least: float | None = None
    at_most: float | None = None

    def holds(self, change: float) -> bool:
        """Whether a change is on the right side."""
        return (self.at_least is None or change >= self.at_least) and (
            self.at_most is None or change <= self.at_most
        )

    def verdict_line(self, change: float) -> str:
        """One line."""
        bound = (
            f"at least {self.at_least:+.2f}" if self.at_least is not None else f"at most {self.at_most:+.2f}"
        )
        return (
            f"{self.run}, {self.value}: {change:+.3f}, {bound}: {'holds' if self.holds(change) else 'FAILED'}"
        )


SHORT_STEPS = 36
SHORT_BARS = (Bar("reward", "score", at_least=0.25), Bar("shuffled", "score", at_most=0.3))
"""For CI; the same steps of the same runs, fewer of them."""

BARS = (
    Bar("reward", "score", at_least=0.8),
    Bar("reward", "at_maximum", at_least=0.08),
    Bar("shuffled", "score", at_most=0.3),
)
"""Fixed beforehand on three seeds (docs/training.md)."""


def change(curve: Sequence[dict[str, float]], value: str, window: int = WINDOW) -> float:
    """The mean of the last steps less that of the first."""
    first, last = [one[value] for one in curve[:window]], [one[value] for one in curve[-window:]]
    return sum(last) / len(last) - sum(first) / len(first)


def smoke(
    out: Annotated[Path, typer.Option(help="Where rows, model, runs and train-toy.json go.")] = Path(
        "out/train-toy"
    ),
    seed: Annotated[int, typer.Option(min=0)] = 0,
    steps: Annotated[int, typer.Option(min=1, help="Updates of each run.")] = STEPS,
    short: Annotated[bool, typer.Option("--short", help="36 steps, and the bars for those.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget what is there; otherwise it goes on.")
    ] = False,
) -> None:
    """Train the toy twice and compare; exit code 1 where a bar fails.

    Example: python -m robustbench_tc.train_recipes.trl.smoke --out out/train-toy
    """
    if fresh and out.exists():
        if not (out / "rows/train.parquet").is_file():
            raise UserError(f"{out} is not a smoke test's folder and is kept: choose another --out")
        shutil.rmtree(out)
    bars, steps = (SHORT_BARS, SHORT_STEPS) if short else (BARS, steps)
    if steps < 2 * WINDOW:
        raise UserError(f"--steps {steps}: the first and the last {WINDOW} are compared, give {2 * WINDOW}")
    curves = _trained(out, _prepared(out, seed), seed, steps)
    changes = [(bar, change(curves[bar.run], bar.value)) for bar in bars]
    found = {
        "seed": seed,
        "steps": steps,
        "window": WINDOW,
        "settings": SETTINGS,
        "bars": [{**bar._asdict(), "change": value, "holds": bar.holds(value)} for bar, value in changes],
        "curves": curves,
    }
    (out / "train-toy.json").write_text(json.dumps(found, indent=1) + "\n")
    for bar, value in changes:
        typer.echo(bar.verdict_line(value))
    typer.echo(f"curves: {out / 'train-toy.json'}")
    if not all(bar.holds(value) for bar, value in changes):
        raise typer.Exit(1)


def _prepared(out: Path, seed: int) -> Path:
    """The model that both runs begin with."""
    rows, training, base = out / "rows", out / "toolrl-dr", out / f"base-{seed}"
    if not (rows / "train.parquet").is_file():
        toy.write_rows(rows)
    if not (training / "build_report.json").is_file():
        build = ["build", "toolrl-dr", "--rlla", str(rows), "--configs", "full", "--out", str(training)]
        run_program([sys.executable, "-m", "robustbench_tc", *build], "the build", print)
    if not (base / "config.json").is_file():
        typer.echo(f"fine-tuning a random model on {toy.SFT_ROWS} rows", err=True)
        half = base.with_name(f"{base.name}-part")
        toy.make_model(str(training), half, seed=seed)
        half.rename(base)
    return base


RUNS: dict[str, list[str]] = {"reward": [], "shuffled": ["--shuffle-rewards"]}
"""The runs that are compared, and what is said to each."""


def _trained(out: Path, base: Path, seed: int, steps: int) -> dict[str, list[dict[str, float]]]:
    """The runs, side by side, and their curves."""
    common = [sys.executable, "-m", "robustbench_tc.train_recipes.grpo", str(out / "toolrl-dr")]
    common += ["--model", str(base), "--rows", "8", "--seed", str(seed), "--cpu", f"max_steps={steps}"]
    common += [f"{key}={value}" for key, value in SETTINGS.items()]

    def run(name: str) -> None:
        folder = out / f"{name}-{seed}"
        words = [*common, "--out", str(folder), *RUNS[name]]
        run_program(words, name, lambda line: typer.echo(f"{name}: {line}", err=True))

    with ThreadPoolExecutor() as pool:
        list(pool.map(run, RUNS))
    return {name: _curve(out / f"{name}-{seed}" / CURVE, steps) for name in RUNS}


def _curve(path: Path, steps: int) -> list[dict[str, float]]:
    """The curve of a run; a step that was done again after a stop counts once."""
    found = {line["step"]: line for line in map(json.loads, path.read_text().splitlines())}
    if sorted(found) != list(range(1, steps + 1)):
        raise UserError(f"{path} has {len(found)} of {steps} steps: run it again with --fresh")
    return [found[step] for step in range(1, steps + 1)]


def run_program(words: Sequence[str], what: str, tell: Callable[[str], None], lines: str = "step ") -> None:
    """Runs a program on one thread to its end, telling those of its lines that begin so.

    Raises UserError with its last line where it fails.
    """
    env = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
    ) as process:
        last = ""
        for line in process.stdout or ():
            if line.startswith(lines):
                tell(line.rstrip())
            if line.strip():
                last = line.strip()
    if process.returncode:
        raise UserError(f"{what} ended with status {process.returncode}: {last[:300]}")


if __name__ == "__main__":
    start.command(smoke)
