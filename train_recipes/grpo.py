"""GRPO on ToolRL's reward: `python -m robustbench_tc.train_recipes.grpo DATASET --model DIR --out RUN`.

Under TRL one process, one GPU or the CPU; `--on verl` starts verl's trainer on the same rows and values.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from robustbench_tc.errors import UserError

from . import start
from .recipe import Size, value_at
from .start import Cpu, Data, File, Limit, Lora, Model, On, Out, Run, Seed, Words
from .trl import data, live
from .validation import Scored, compared

CURVE, VALIDATION = "curve.jsonl", "validation.jsonl"
"""What a run's folder holds beside the checkpoints: a line for each step and for each validation."""

FIELDS = {
    "per_device_train_batch_size": "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
    "max_completion_length": "data.max_response_length",
    "num_generations": "actor_rollout_ref.rollout.n",
    "temperature": "actor_rollout_ref.rollout.temperature",
    "top_p": "actor_rollout_ref.rollout.top_p",
    "epsilon": "actor_rollout_ref.actor.clip_ratio",
    "beta": "algorithm.kl_ctrl.kl_coef",  # in the loss; the paper had it in the reward, which TRL has not
    "entropy_coef": "actor_rollout_ref.actor.entropy_coeff",
    "max_grad_norm": "actor_rollout_ref.actor.grad_clip",
    "learning_rate": "actor_rollout_ref.actor.optim.lr",
    "lr_scheduler_type": "actor_rollout_ref.actor.optim.lr_scheduler_type",
    "num_train_epochs": "trainer.total_epochs",
    "eval_steps": "trainer.test_freq",
}
"""Fields of TRL's `GRPOConfig` → the keys of the recipe that have their values."""


def grpo(
    model: Model,
    out: Out,
    dataset: Data = "toolrl-dr",
    words: Words = None,
    on: On = "trl",
    recipe: File = None,
    rows: Limit = None,
    seed: Seed = 0,
    lora: Lora = None,
    cpu: Cpu = False,
    shuffle_rewards: Annotated[
        bool, typer.Option("--shuffle-rewards", help="The control: learn from permuted rewards (TRL).")
    ] = False,
) -> None:
    """Train with GRPO on ToolRL's reward. The paper's settings are the defaults.

    Example: python -m robustbench_tc.train_recipes.grpo toolrl-dr --model ./Qwen2.5-3B --out runs/full
    """
    run = start.begin("grpo", dataset, words or [], model, out, recipe, rows, seed)
    if on == "verl":
        start.on_verl(run, {"--lora": lora, "--cpu": cpu, "--shuffle-rewards": shuffle_rewards})
    if run.recipe.data == "retry":
        raise UserError("data=retry has its errors inside the rollout, which TRL has not: --on verl")
    if run.recipe.data == "live" and shuffle_rewards:
        raise UserError("--shuffle-rewards is a control of rows that are answered once: not of data=live")
    more = {**_batches(run.recipe.values), "max_tool_calling_iterations": run.recipe.attempts.get("live")}
    arguments = start.arguments(run, "GRPOConfig", FIELDS, more, cpu=cpu)
    tokenizer, adapters = start.tokenizer_and_adapters(model, lora)
    trainer = _trainer(run, arguments, tokenizer, adapters, shuffled=seed if shuffle_rewards else None)
    start.keep(run, {"lora": lora, "shuffle_rewards": shuffle_rewards, "words": run.words})
    start.finish(trainer, out, tokenizer)


def _batches(values: dict[str, Any]) -> dict[str, int]:
    """TRL counts answers where verl counts prompts."""
    answers = value_at(values, FIELDS["num_generations"], Size)
    at_once = value_at(values, FIELDS["per_device_train_batch_size"], Size)
    prompts = {
        "gradient_accumulation_steps": "actor_rollout_ref.actor.ppo_mini_batch_size",
        "steps_per_generation": "data.train_batch_size",
    }
    return {name: max(1, value_at(values, key, Size) * answers // at_once) for name, key in prompts.items()}


def _trainer(run: Run, arguments: Any, tokenizer: Any, adapters: Any, shuffled: int | None) -> Any:
    """TRL's. `shuffled`: a seed, the control that learns from permuted rewards."""
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import GRPOTrainer

    answers: list[Scored] = []
    more: dict[str, Any] = {}
    if run.recipe.data == "live":
        train, held, reward = live.rows_of(run.rows.train), live.rows_of(run.rows.validation), live.reward()
        more["environment_factory"] = live.environments()
    else:
        train, held = data.rows(run.rows.train, "train"), data.rows(run.rows.validation, "validation")
        reward = data.reward(shaping=run.recipe.shaping, shuffled=shuffled, held=answers)
    with start.refusals():
        trainer = GRPOTrainer(
            run.model,
            reward,
            args=arguments,
            train_dataset=Dataset.from_list(train),
            eval_dataset=None if arguments.eval_strategy == "no" else Dataset.from_list(held),
            processing_class=tokenizer,
            peft_config=adapters,
            callbacks=[_curve(run.out, answers)],
            **more,
        )
    trainer.remove_callback(PrinterCallback)  # a line a step is enough
    return trainer


LOGGED = ("at_maximum", "reached", "learning_rate", "entropy", "kl", "completions/mean_length", "step_time")


def _curve(out: Path, answers: list[Scored]) -> Any:
    """A callback that writes a line for a step or a validation, and says it. It empties `answers`."""
    from transformers import TrainerCallback

    class Curve(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if not logs or "score" not in logs:
                return
            line = {"step": state.global_step, "score": logs["score"]}
            line |= {name.rpartition("/")[2]: logs[name] for name in LOGGED if name in logs}
            with (out / CURVE).open("a") as file:
                file.write(json.dumps(line) + "\n")
            typer.echo(
                f"step {state.global_step} of {state.max_steps}: reward {line['score']:.2f}, "
                f"at the maximum {line.get('at_maximum', line.get('reached', 0.0)):.0%}",
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
    start.command(grpo)
