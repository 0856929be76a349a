"""What training on perturbed rows does to a small real model.

    make train-real MODEL=DIR [SEEDS=N] [BUDGET=MIN]
    .venv-trl/bin/python -m benchmarks.train_real DIR --out out/train-real

docs/training.md says beforehand what is compared and what would count. What is done already is not done
again: a run that was stopped goes on in its folder, in the sizes that it began with.
"""

import json
import math
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from robustbench_tc.errors import UserError, need_extra
from robustbench_tc.io import files, folders
from robustbench_tc.option import silent
from robustbench_tc.train_recipes import recipe, start
from robustbench_tc.train_recipes.trl.smoke import run_program

from . import likelihood, result, rows

ROWS, QUESTIONS = 480, 72
"""Training rows of an arm and held-out requests, at most; a smaller budget has the same share of both."""

LOSS = "{'loss'"
"""How the lines begin in which TRL tells of its steps."""

CLEAN = 4
"""Clean questions to one of every other condition, since the bars are of clean accuracy."""

QUESTIONS_FILE = "questions.json"

LEAST = 0.3
"""The least share of these that is worth a run."""

TYPES = {
    "action": "action",
    "reward": "reward",
    "swap": "CD_swap,TD_swap,CD_NT_swap,TD_NT_swap,CD_AB_swap,TD_AB_swap",
    "inv": "CD_inv,TD_inv",
    "moot": "CD_moot,TD_moot",
    "observation": "realistic_typos",
}
"""Condition → the types that its questions draw from."""

ASKED = len(result.CONDITIONS) - 1 + CLEAN
"""Questions to one held-out request."""

ARMS = {
    "clean": ["data=clean"],
    "perturbed": ["data=dr-mixed"],
    "permuted": ["data=dr-mixed", "--permute-golds"],
}
SETTINGS = {
    "per_device_train_batch_size": 4, "gradient_accumulation_steps": 1, "learning_rate": 1e-4,
    "num_train_epochs": 1, "max_length": 512, "save_steps": 40, "save_total_limit": 1, "eval_strategy": "no",
}  # fmt: skip
"""Fields of TRL's `SFTConfig`, for every arm."""

GRPO = {"max_completion_length": 96, "per_device_train_batch_size": 32, "gradient_accumulation_steps": 1,
        "steps_per_generation": 1, "num_generations": 8, "eval_strategy": "no", "save_steps": 20}  # fmt: skip
"""Fields of TRL's `GRPOConfig`, where GRPO follows."""


AT_ONCE = 2
"""Models that are trained or asked at once, each on one thread of the CPU: on a busy machine two threads of
one model wait for each other."""


class Cost(NamedTuple):
    """Seconds on one thread, measured."""

    row: float
    """A training row."""
    question: float
    written: float
    """An answer in writing."""

    def minutes(self, seeds: int, share: float) -> float:
        """Of a whole run with a share of the rows and questions."""
        trained, asked = (
            math.ceil(models / AT_ONCE) for models in (seeds * len(ARMS), seeds * len(ARMS) + 1)
        )
        training, asking = ROWS * self.row, QUESTIONS * ASKED * self.question
        fixed = asked * (likelihood.WRITTEN * self.written + 30)
        return (share * (trained * training + asked * asking) + fixed) / 60


def train_real(
    model: Annotated[Path, typer.Argument(help="The model's folder, such as SmolLM2-135M-Instruct.")],
    out: Annotated[Path, typer.Option(help="Where rows, models and train-real.json go.")] = Path(
        "out/train-real"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="Runs of every arm.")] = 1,
    budget: Annotated[float, typer.Option(min=0, help="Minutes that it may take.")] = 90,
    grpo_steps: Annotated[
        int | None, typer.Option(min=0, help="GRPO after fine-tuning; default: 100 on a GPU, else none.")
    ] = None,
) -> None:
    """Train, ask held-out questions, compare; exit code 1 where a bar fails."""
    try:
        import torch
    except ImportError:
        raise need_extra("trl", "trl") from None
    if problem := recipe.gguf_problem(model):
        raise UserError(problem)
    if not (model / "config.json").is_file():
        raise UserError(f"no model in {model} (make real-model shows how one is made of a wheel)")
    on_gpu = torch.cuda.is_available()
    steps = grpo_steps if grpo_steps is not None else 100 * on_gpu
    plan = _planned(out, model, seeds, budget)
    typer.echo(result.power(CLEAN * plan["questions"], seeds), err=True)
    _ask(out, plan["questions"])
    for seed in range(seeds):
        _train_rows(out / f"seed-{seed}", plan["rows"], seed)

    def arm(seed: int, name: str) -> dict[str, Any]:
        folder = out / f"seed-{seed}"
        trained = _trained(model, folder, name, seed, on_gpu=on_gpu, grpo_steps=steps)
        scored = _scored(trained, out, folder / f"{name}.json")
        for checkpoint in folder.glob(f"{name}*/checkpoint-*"):  # gigabytes that nothing reads any more
            shutil.rmtree(checkpoint)
        return scored

    with ThreadPoolExecutor(1 if on_gpu else AT_ONCE) as pool:
        waited = [{name: pool.submit(arm, seed, name) for name in ARMS} for seed in range(seeds)]
        base = pool.submit(_scored, model, out, out / "base.json")
        found: dict[str, Any] = {
            **plan,
            "written_of": likelihood.WRITTEN,
            "settings": SETTINGS,
            "grpo_steps": steps,
        }
        try:
            for one in as_completed([base, *(one for arms in waited for one in arms.values())]):
                one.result()
        except UserError:
            pool.shutdown(wait=False, cancel_futures=True)  # what follows would fail likewise
            raise
        found["base"] = base.result()
        found["seeds"] = [{name: one.result() for name, one in arms.items()} for arms in waited]
    (out / "train-real.json").write_text(json.dumps(found) + "\n")
    (out / "train-real.svg").write_text(result.figure(found))
    typer.echo("\n".join(result.lines(found)))
    typer.echo(f"figure and numbers: {out / 'train-real.svg'}, {out / 'train-real.json'}")
    scored = [{name: arm["right"] for name, arm in arms.items()} for arms in found["seeds"]]
    if not all(bar.holds for bar in result.bars(found["base"]["right"], scored)):
        raise typer.Exit(1)


def _planned(out: Path, model: Path, seeds: int, budget: float) -> dict[str, Any]:
    """The sizes that fit the budget, from a minute of timing; those that a run began with stay.

    Raises UserError for a budget that is too small, and a folder of another run.
    """
    path, asked = out / "plan.json", {"model": model.name, "seeds": seeds, "budget": budget}
    if path.is_file():
        plan: dict[str, Any] = json.loads(path.read_text())
        if {key: plan[key] for key in asked} != asked:
            raise UserError(f"{out} holds a run of another model, seeds or budget: choose another --out")
        return plan
    folders.check_new(out)
    with tempfile.TemporaryDirectory() as scratch:
        cost = _timed(Path(scratch), model)
    most = cost.minutes(seeds, 1)
    fixed = cost.minutes(seeds, 0)
    share = min(1.0, (budget - fixed) / (most - fixed))
    needed = cost.minutes(seeds, LEAST)
    typer.echo(
        f"timed: {cost.row:.1f} s a training row, {cost.question:.1f} s a question; all of it would take "
        f"{most:.0f} minutes",
        err=True,
    )
    if share < LEAST:
        raise UserError(f"a run worth making takes {needed:.0f} minutes on this machine: --budget {budget:g}")
    plan = {**asked, "rows": int(share * ROWS), "questions": int(share * QUESTIONS)}
    typer.echo(
        f"{plan['rows']} training rows an arm, {plan['questions']} held-out requests under "
        f"{len(result.CONDITIONS)} conditions, {CLEAN} times as many clean: about "
        f"{cost.minutes(seeds, share):.0f} of {budget:g} minutes",
        err=True,
    )
    with files.atomic_file(path) as made:
        made.write_text(json.dumps(plan, indent=1) + "\n")
    return plan


def _timed(folder: Path, model: Path) -> Cost:
    """What a row, a question and a written answer take, on rows as the run has them."""
    import torch

    own, _ = rows.registries()
    rows.write(folder / "rows", own, 12, seed=0)
    _built(folder / "rows", folder / "train", "reward", seed=0)
    asked = rows.questions(folder / "train", own, "dr-full")
    torch.set_num_threads(1)
    read, tokenizer = likelihood.loaded(model)
    optimizer = torch.optim.AdamW(read.parameters(), lr=0.0)
    began = time.perf_counter()
    for batch in (asked[:4], asked[4:8], asked[8:12]):
        ids = [likelihood.prompt_ids(tokenizer, one) for one in batch]
        longest = max(map(len, ids)) + 60
        tokens = torch.tensor([one + [0] * (longest - len(one)) for one in ids], device=read.device)
        read(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    trained = time.perf_counter()
    for one in asked:
        likelihood.is_right(read, tokenizer, one)
    answered = time.perf_counter()
    likelihood.writes_right(read, tokenizer, asked[:2])
    wrote = time.perf_counter()
    return Cost((trained - began) / 12, (answered - trained) / len(asked), (wrote - answered) / 2)


def _ask(out: Path, many: int) -> None:
    """The held-out requests under every condition, as `questions.json`."""
    _, held = rows.registries()
    found = {}
    rows.write(out / "held-rows-clean", held, CLEAN * many, seed=0)
    _built(out / "held-rows-clean", out / "held-clean", TYPES["action"], seed=0)
    found["clean"] = rows.questions(out / "held-clean", held, "clean")
    for condition, types in TYPES.items():
        source, build = out / "held-rows", out / f"held-{condition}"
        if condition == "moot":
            source = out / "held-rows-moot"
        if not source.is_dir():
            rows.write(source, held, many, seed=0, more=rows.UNUSED if condition == "moot" else {})
        _built(source, build, types, seed=0)
        found[condition] = rows.questions(build, held, "dr-full")
    found["transition"] = rows.questions(out / "held-action", held, "retry")
    (out / QUESTIONS_FILE).write_text(json.dumps({one: found[one] for one in result.CONDITIONS}) + "\n")


def _train_rows(folder: Path, many: int, seed: int) -> None:
    """The rows of a seed: every one clean, and half of them under a type of action or reward. Raises
    UserError where the two are not the same requests: the arms would not be paired."""
    own, _ = rows.registries()
    rows.write(folder / "rows", own, many, seed)
    _built(folder / "rows", folder / "train", "action,reward", seed)
    kinds = [rows.questions(folder / "train", own, data) for data in ("clean", "dr-mixed")]
    clean, perturbed = ([one.clean_id for one in asked] for asked in kinds)
    if clean != perturbed:
        raise UserError(f"{folder}: clean and perturbed rows are of different requests")


def _built(source: Path, build: Path, types: str, seed: int) -> None:
    if not (build / "build_report.json").is_file():
        words = ["--rlla", str(source), "--types", types, "--seed", str(seed), "--out", str(build)]
        words += ["--configs", "full,mixed,retry", "--generator", "realistic_typos=rule"]
        run_program(
            [sys.executable, "-m", "robustbench_tc", "build", "toolrl-dr", *words], "the build", silent
        )


def _trained(model: Path, folder: Path, arm: str, seed: int, *, on_gpu: bool, grpo_steps: int) -> Path:
    """The model of an arm: fine-tuned, then with GRPO where that is asked for."""
    common = [str(folder / "train"), "--seed", str(seed), *([] if on_gpu else ["--cpu"])]
    tuned = folder / arm
    words = [*common, "--model", str(model), "--out", str(tuned), *ARMS[arm]]
    words += [f"{key}={value}" for key, value in SETTINGS.items()]
    _recipe("sft", words, tuned, f"seed {seed}, {arm}")
    if not grpo_steps:
        return tuned / "model"
    after = folder / f"{arm}-grpo"
    words = [
        *common,
        "--model",
        str(tuned / "model"),
        "--out",
        str(after),
        ARMS[arm][0],
        f"max_steps={grpo_steps}",
    ]
    words += [f"{key}={value}" for key, value in GRPO.items()]
    words += ["--shuffle-rewards"] if arm == "permuted" else []
    _recipe("grpo", words, after, f"seed {seed}, {arm}, GRPO")
    return after / "model"


def _recipe(name: str, words: list[str], out: Path, what: str) -> None:
    if not (out / "model" / "config.json").is_file():
        typer.echo(f"{what}: training", err=True)
        command = [sys.executable, "-m", f"robustbench_tc.train_recipes.{name}", *words]
        run_program(command, what, lambda line: typer.echo(f"{what}: {line}", err=True), LOSS)


def _scored(model: Path, out: Path, path: Path) -> dict[str, Any]:
    """What a model answers rightly under every condition, and how much it writes rightly."""
    if not path.is_file():
        words = [
            sys.executable,
            "-m",
            "benchmarks.train_real.likelihood",
            str(model),
            str(out / QUESTIONS_FILE),
        ]
        run_program([*words, str(path)], str(path), silent)
        typer.echo(f"{path}: asked", err=True)
    return dict(json.loads(path.read_text()))


if __name__ == "__main__":
    start.command(train_real)
