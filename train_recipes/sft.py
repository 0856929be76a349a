"""Supervised fine-tuning: `python -m robustbench_tc.train_recipes.sft DATASET --model DIR --out RUN`.

Under TRL the loss falls on the answer alone, whatever the model's template: a row is `prompt` and
`completion`. Checkpoints, packing and precision are fields of TRL's `SFTConfig`; verl has the same rows as
`messages`.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from robustbench_tc import seeding
from robustbench_tc.builders.training_rows import FineTuningRow
from robustbench_tc.errors import UserError

from . import start
from .recipe import Size, value_at
from .start import Cpu, Data, File, Limit, Lora, Model, On, Out, Seed, Words


def sft(
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
    gpus: Annotated[int, typer.Option(min=1, help="GPUs of this machine (verl).")] = 2,
    permute_golds: Annotated[
        bool, typer.Option("--permute-golds", help="The control: learn other rows' answers (TRL).")
    ] = False,
) -> None:
    """Fine-tune a model on the gold answers.

    Example: python -m robustbench_tc.train_recipes.sft toolrl-dr --model ./Qwen2.5-3B --out runs/sft
    """
    run = start.begin("sft", dataset, words or [], model, out, recipe, rows, seed)
    if on == "verl":
        start.on_verl(
            run,
            {"--lora": lora, "--cpu": cpu, "--permute-golds": permute_golds},
            ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={gpus}"],
        )
    batch = value_at(run.recipe.values, "data.train_batch_size", Size)
    at_once = value_at(run.recipe.values, "data.micro_batch_size_per_gpu", Size)
    more = {"gradient_accumulation_steps": max(1, batch // at_once)}
    arguments = start.arguments(run, "SFTConfig", FIELDS, more, cpu=cpu)
    tokenizer, adapters = start.tokenizer_and_adapters(model, lora)
    train, held = pairs(run.rows.train), pairs(run.rows.validation)
    if permute_golds:
        golds = [row["completion"] for row in train]
        seeding.rng(seed, "permuted golds").shuffle(golds)
        train = [{**row, "completion": gold} for row, gold in zip(train, golds, strict=True)]

    from datasets import Dataset
    from trl import SFTTrainer

    with start.refusals():
        if arguments.max_length is not None:
            _check_lengths(train, tokenizer, arguments.max_length)
        trainer = SFTTrainer(
            model,
            args=arguments,
            train_dataset=Dataset.from_list(train),
            eval_dataset=Dataset.from_list(held) if held and arguments.eval_strategy != "no" else None,
            processing_class=tokenizer,
            peft_config=adapters,
        )
    start.keep(run, {"lora": lora, "permute_golds": permute_golds, "words": run.words})
    start.finish(trainer, out, tokenizer)


FIELDS = {
    "per_device_train_batch_size": "data.micro_batch_size_per_gpu",
    "max_length": "data.max_length",
    "learning_rate": "optim.lr",
    "lr_scheduler_type": "optim.lr_scheduler_type",
    "warmup_steps": "optim.lr_warmup_steps_ratio",
    "max_grad_norm": "optim.clip_grad",
    "num_train_epochs": "trainer.total_epochs",
}
"""Fields of TRL's `SFTConfig` → the keys of the recipe that have their values."""


def pairs(rows: Sequence[FineTuningRow]) -> list[dict[str, Any]]:
    """Conversations as TRL reads them: `prompt`, and the last turn as `completion`, which the loss is of."""
    found = []
    for row in rows:
        turns = [{"role": turn.role, "content": turn.content} for turn in row.messages]
        found.append({"prompt": turns[:-1], "completion": turns[-1:]})
    return found


def _check_lengths(rows: Sequence[dict[str, Any]], tokenizer: Any, limit: int) -> None:
    """Raises UserError for rows that TRL would cut, and with them the answer, without a word."""
    lengths = [
        len(tokenizer.apply_chat_template(row["prompt"] + row["completion"], return_dict=False))
        for row in rows
    ]
    over = sum(length > limit for length in lengths)
    if over:
        raise UserError(
            f"{over} of {len(rows)} rows exceed max_length={limit} tokens (the longest has {max(lengths)}): "
            "raise it, or build with --tokenizer and --max-prompt-length"
        )


if __name__ == "__main__":
    start.command(sft)
