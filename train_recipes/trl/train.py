"""GRPO under TRL: ToolRL's reward on the rows of `rbtc build toolrl-dr`, with a real model or the toy.

    python -m robustbench_tc.train_recipes.trl.train --help

One process, one GPU or the CPU.
"""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from robustbench_tc.errors import UserError, need_extra

from .. import dataset as datasets
from ..validation import Scored, compared
from . import data

CURVE, VALIDATION, SETTINGS = "curve.jsonl", "validation.jsonl", "settings.json"
"""What a run's folder holds beside the checkpoints: a line for each step and for each validation, and what
the run was asked for."""

PAPER: dict[str, Any] = {
    "per_device_train_batch_size": 16,
    "gradient_accumulation_steps": 8,  # 128 answers an update: 32 prompts, as verl's mini-batch
    "steps_per_generation": 16,  # 64 prompts × 4 answers are generated at a time
    "max_completion_length": 1024,
    "temperature": 1.0,
    "top_p": 1.0,
    "epsilon": 0.2,
    "beta": 0.001,  # TRL has the KL term in the loss only, the paper had it in the reward
    "loss_type": "dapo",
    "entropy_coef": 0.001,
    "max_grad_norm": 1.0,
    "lr_scheduler_type": "constant",
    "bf16": True,
}
"""Settings of train_recipes/toolrl_dr/recipe.yaml in TRL's names, for one GPU."""


def train(
    model: Annotated[str, typer.Option(help="A model's folder, or its name on the Hub.")],
    out: Annotated[Path, typer.Option(help="The run's folder; a run that was stopped goes on in it.")],
    dataset: Annotated[
        str, typer.Argument(help="The training data: a folder, or ORG/NAME@REVISION on the Hub.")
    ] = "toolrl-dr",
    config: Annotated[str, typer.Option(help="full or mixed.")] = "full",
    rows: Annotated[int | None, typer.Option(min=1, help="Only the first rows.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Updates; default: --epochs.")] = None,
    epochs: Annotated[float, typer.Option(min=0.001, help="Passes over the rows.")] = 3.0,
    learning_rate: Annotated[float, typer.Option(min=0.0)] = 1e-6,
    completions: Annotated[int, typer.Option(min=2, help="Answers to each prompt.")] = 4,
    lora: Annotated[int | None, typer.Option(min=1, help="Train adapters of this rank only.")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    save_steps: Annotated[int, typer.Option(min=1, help="Steps between checkpoints; two are kept.")] = 50,
    validate_every: Annotated[
        int, typer.Option(min=0, help="Steps between validations by component; 0: none.")
    ] = 10,
    report_to: Annotated[Literal["none", "wandb", "trackio", "tensorboard"], typer.Option()] = "none",
    cpu: Annotated[bool, typer.Option("--cpu", help="Train on the CPU in float32.")] = False,
    shuffle_rewards: Annotated[
        bool, typer.Option("--shuffle-rewards", help="The control: learn from permuted rewards.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A field of TRL's GRPOConfig, as JSON. Repeatable."),
    ] = None,
) -> None:
    """Train with GRPO on ToolRL's reward. The paper's settings are the defaults, for one GPU.

    Example: python -m robustbench_tc.train_recipes.trl.train toolrl-dr --model ./Qwen2.5-3B --out runs/full
    """
    if config not in data.CONFIGS:
        inside = config in ("retry", "mixture")
        why = f": its errors come inside the rollout, take train_recipes/{config}" if inside else ""
        raise UserError(f"--config {config}: this recipe trains on {' or '.join(data.CONFIGS)}{why}")
    shards = datasets.locate(dataset, config)
    found = data.rows(shards.train, rows)
    if not found:
        raise UserError(f"{dataset} has no rows in the config {config}")
    asked: dict[str, Any] = {
        "model": model,
        "rows": [row["clean_id"] + "::" + row["type_code"] for row in found],
        "config": config,
        "steps": steps,
        "epochs": epochs,
        "learning_rate": learning_rate,
        "completions": completions,
        "lora": lora,
        "seed": seed,
        "shuffle_rewards": shuffle_rewards,
        "validate_every": validate_every,
        "set": _settings(set_ or ()),
    }
    arguments = _arguments(out, asked, save_steps=save_steps, report_to=report_to, cpu=cpu)
    tokenizer, adapters = _tokenizer(model), None if lora is None else _adapters(lora)
    _keep(out, asked)
    held = data.rows(shards.validation) if validate_every else []
    _run(found, held, out, asked, arguments, tokenizer, adapters)


def _settings(given: list[str] | tuple[str, ...]) -> dict[str, Any]:
    """KEY=VALUE as TRL's fields. Raises UserError."""
    found: dict[str, Any] = {}
    for one in given:
        key, equals, value = one.partition("=")
        if not equals:
            raise UserError(f"--set {one}: write KEY=VALUE, a field of TRL's GRPOConfig and its value")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def _keep(out: Path, asked: dict[str, Any]) -> None:
    """Writes what the run was asked for, or refuses a folder of another run. Raises UserError."""
    path = out / SETTINGS
    if path.is_file():
        if json.loads(path.read_text()) != asked:
            raise UserError(f"{out} holds a run with other settings or rows: choose another --out")
    elif out.exists() and any(out.iterdir()):
        raise UserError(f"{out} is not empty and holds no run of this recipe: choose another --out")
    else:
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asked, indent=1) + "\n")


def _arguments(out: Path, asked: dict[str, Any], *, save_steps: int, report_to: str, cpu: bool) -> Any:
    """TRL's own settings. Raises UserError for what it refuses."""
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    try:
        from trl import GRPOConfig
    except ImportError:
        raise need_extra("trl", "trl") from None
    validates: dict[str, Any] = {}
    if asked["validate_every"]:
        validates = {"eval_strategy": "steps", "eval_steps": asked["validate_every"]}
        validates |= {"eval_on_start": True, "num_generations_eval": 1}
    on_cpu = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False} if cpu else {}
    settings = {
        **PAPER,
        "output_dir": str(out),
        "num_train_epochs": asked["epochs"],
        "max_steps": asked["steps"] or -1,
        "learning_rate": asked["learning_rate"],
        "num_generations": asked["completions"],
        "seed": asked["seed"],
        "save_steps": save_steps,
        "save_total_limit": 2,
        "logging_steps": 1,
        "report_to": report_to,
        "disable_tqdm": True,
        "remove_unused_columns": False,
        **validates,
        **on_cpu,
        **asked["set"],
    }
    try:
        return GRPOConfig(**settings)
    except (TypeError, ValueError) as error:
        raise UserError(f"TRL refuses these settings: {' '.join(str(error).split())[:300]}") from None


def _tokenizer(model: str) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise UserError(f"{model}: no model with a tokenizer: {str(error).splitlines()[0]}") from None


def _adapters(rank: int) -> Any:
    try:
        from peft import LoraConfig
    except ImportError:
        raise need_extra("peft", "trl") from None
    return LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")


def _run(
    found: list[dict[str, Any]],
    held: list[dict[str, Any]],
    out: Path,
    asked: dict[str, Any],
    arguments: Any,
    tokenizer: Any,
    adapters: Any,
) -> None:
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import GRPOTrainer

    answers: list[Scored] = []
    trainer = GRPOTrainer(
        asked["model"],
        data.reward(shuffled=asked["seed"] if asked["shuffle_rewards"] else None, held=answers),
        args=arguments,
        train_dataset=Dataset.from_list([row | {"split": "train"} for row in found]),
        eval_dataset=Dataset.from_list([row | {"split": "validation"} for row in held]) if held else None,
        processing_class=tokenizer,
        peft_config=adapters,
        callbacks=[_curve(out, answers)],
    )
    trainer.remove_callback(PrinterCallback)  # a line a step is enough
    last, finished = _last_whole(out)
    if last is not None:
        typer.echo(f"going on from {last}", err=True)
    if last is None or not finished:  # transformers makes one step more of a run that has all of them
        trainer.train(resume_from_checkpoint=None if last is None else str(last))
    else:
        trainer._load_from_checkpoint(str(last))
    trainer.save_model(str(out / "model"))
    tokenizer.save_pretrained(str(out / "model"))


def _last_whole(out: Path) -> tuple[Path | None, bool]:
    """The newest checkpoint that is all there, and whether the run has all its steps with it.

    A run that was killed while it wrote one leaves a part: the one before it is taken. Raises UserError where
    there are only parts: to begin again without a word would lose what was paid for.
    """
    found = [path for path in out.glob("checkpoint-*") if path.name.removeprefix("checkpoint-").isdecimal()]
    for path in sorted(found, key=lambda one: int(one.name.rpartition("-")[2]), reverse=True):
        try:
            state = json.loads((path / "trainer_state.json").read_text())
            return path, state["global_step"] >= state["max_steps"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    if found:
        raise UserError(f"{out} has no whole checkpoint ({len(found)} in part): remove them to begin again")
    return None, False


def _curve(out: Path, answers: list[Scored]) -> Any:
    """A callback that writes a line for a step or a validation, and says it. It empties `answers`."""
    from transformers import TrainerCallback

    class Curve(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if not logs or "score" not in logs:
                return
            line = {"step": state.global_step, "score": logs["score"], "at_maximum": logs["at_maximum"]}
            for name in ("learning_rate", "entropy", "kl", "completions/mean_length", "step_time"):
                if name in logs:
                    line[name.rpartition("/")[2]] = logs[name]
            with (out / CURVE).open("a") as file:
                file.write(json.dumps(line) + "\n")
            typer.echo(
                f"step {state.global_step} of {state.max_steps}: reward {line['score']:.2f}, "
                f"at the maximum {line['at_maximum']:.0%}",
                err=True,
            )

        def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if not answers:
                return
            found = compared(answers, out, state.global_step)
            answers.clear()
            with (out / VALIDATION).open("a") as file:
                file.write(json.dumps({"step": state.global_step, **found}) + "\n")
            said = ", ".join(
                f"{name.split('/')[1]} {value:.0%}"
                for name, value in found.items()
                if name.endswith("/accuracy")
            )
            typer.echo(f"validation at step {state.global_step}: {said}", err=True)

    return Curve()


if __name__ == "__main__":
    try:
        typer.run(train)
    except UserError as error:
        sys.exit(str(error))
