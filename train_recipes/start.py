"""What the two recipes' commands share: options, the run's folder, TRL's settings, and the way into verl."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import typer

from robustbench_tc.errors import UserError, need_extra
from robustbench_tc.io import files, folders
from robustbench_tc.own.yaml import load

from . import compose, recipe as recipes, rows as training_rows
from .recipe import Name, Recipe, value_at
from .rows import Rows

SETTINGS = "settings.json"
"""What a run was asked for, in its folder."""

Model = Annotated[str, typer.Option(help="A model's folder, or its name on the Hub.")]
Out = Annotated[Path, typer.Option(help="The run's folder; a run that was stopped goes on in it.")]
Data = Annotated[
    str,
    typer.Argument(help="The training data: a folder, or ORG/NAME@REVISION on the Hub.", metavar="DATASET"),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="A switch of the recipe, or a setting of the trainer."),
]
On = Annotated[Literal["trl", "verl"], typer.Option(help="The trainer: TRL anywhere, verl on GPUs.")]
File = Annotated[
    Path | None, typer.Option("--recipe-file", help="A recipe of your own; default: the one that ships.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only so many train rows.")]
Seed = Annotated[int, typer.Option(min=0, help="Draws the rows of alpha, and is TRL's seed.")]
Lora = Annotated[int | None, typer.Option(min=1, help="Train adapters of this rank only (TRL).")]
Cpu = Annotated[bool, typer.Option("--cpu", help="Train on the CPU in float32 (TRL).")]


class Run(NamedTuple):
    """What a command was asked for."""

    recipe: Recipe
    rows: Rows
    words: list[str]
    """Settings of the trainer."""
    model: str
    out: Path
    seed: int


def begin(
    name: Name,
    dataset: str,
    words: Sequence[str],
    model: str,
    out: Path,
    file: Path | None,
    limit: int | None,
    seed: int,
) -> Run:
    """Reads the recipe and chooses its rows. Raises UserError."""
    recipe, others = recipes.read_recipe(name, words, file)
    if problem := recipes.gguf_problem(Path(model)):
        raise UserError(problem)
    chosen = training_rows.choose(dataset, recipe, limit, seed)
    for reason, count in chosen.left_out.items():
        typer.echo(f"left out: {count} train rows, {reason}", err=True)
    return Run(recipe, chosen, others, model, out, seed)


def keep(run: Run, more: Mapping[str, Any]) -> None:
    """Writes what the run was asked for, or refuses a folder of another run. Raises UserError."""
    ids = [f"{row.extra_info['clean_id']}::{row.extra_info['type_code']}" for row in run.rows.train]
    asked = {
        "model": run.model,
        "rows": ids,
        "seed": run.seed,
        "recipe": msgspec.to_builtins(run.recipe),
        **more,
    }
    path, text = run.out / SETTINGS, json.dumps(asked, indent=1) + "\n"
    if not path.is_file():
        folders.check_new(run.out.resolve())  # a link to a larger disk will do
        with files.atomic_file(path) as made:
            made.write_text(text)
    elif path.read_text() != text:
        raise UserError(f"{run.out} holds a run with other settings or rows: choose another --out")


# --- verl ---------------------------------------------------------------------------------------------

PLUGIN = "robustbench_tc.train_recipes.verl_plugin"
"""Validation by component, and `data.noisy`."""


def on_verl(run: Run, trls: Mapping[str, Any], launcher: Sequence[str] = ()) -> None:
    """Writes rows and config into the run's folder and becomes verl's trainer, which goes on where it was.

    `trls`: what the command says that only TRL can do. Raises UserError for that, and where verl is missing.
    """
    if refused := [name for name, value in trls.items() if value]:
        raise UserError(f"{refused[0]} is for TRL: on verl, Hydra's KEY=VALUE sets the like")
    if find_spec("verl") is None:
        raise need_extra("verl", "train")
    keep(run, {"on": "verl"})
    shards = training_rows.write(run.rows, run.out / "rows")
    compose.write(run.recipe, shards, run.model, run.out)
    trainer = "verl.trainer.sft_trainer" if run.recipe.name == "sft" else "verl.trainer.main_ppo"
    command = [sys.executable, *launcher, "-m", trainer, "--config-path", str(run.out.absolute())]
    command += ["--config-name", run.recipe.name, *run.words]
    if run.recipe.name == "grpo":
        named = [os.environ.get("VERL_USE_EXTERNAL_MODULES"), PLUGIN]
        os.environ["VERL_USE_EXTERNAL_MODULES"] = ",".join(filter(None, named))
    typer.echo(f"+ {' '.join(command)}", err=True)
    os.execv(sys.executable, command)


# --- TRL ----------------------------------------------------------------------------------------------


def arguments(run: Run, kind: str, fields: Mapping[str, str], more: Mapping[str, Any], *, cpu: bool) -> Any:
    """TRL's own settings: of the recipe, then what the command says. Raises UserError for what it refuses.

    `fields`: field of TRL → key of the recipe.
    """
    settings: dict[str, Any] = {name: value_at(run.recipe.values, key) for name, key in fields.items()}
    settings |= {"disable_tqdm": True, **more, **run.recipe.trl}
    if cpu:
        settings |= {"use_cpu": True, "bf16": False, "gradient_checkpointing": False}
    for word in run.words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UserError(f"{word}: write KEY=VALUE, a switch of the recipe or a field of TRL's {kind}")
        settings[key] = load(value.encode(), word).data()
    if settings.get("eval_strategy") == "no" or not run.rows.validation:
        settings |= {"eval_strategy": "no", "eval_on_start": False}
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    try:
        import trl
    except ImportError:
        raise need_extra("trl", "trl") from None
    with refusals():
        return getattr(trl, kind)(output_dir=str(run.out), seed=run.seed, **settings)


@contextmanager
def refusals() -> Iterator[None]:
    """What TRL says of settings, weights or packages that it cannot work with is one line."""
    try:
        yield
    except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(f"TRL refuses these settings: {' '.join(str(error).split())[:300]}") from None


def tokenizer_and_adapters(model: str, rank: int | None) -> tuple[Any, Any]:
    """The model's tokenizer, and LoRA's settings: None without a rank. Raises UserError."""
    from peft import LoraConfig
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise UserError(f"{model}: no model with a tokenizer: {str(error).splitlines()[0]}") from None
    if rank is None:
        return tokenizer, None
    return tokenizer, LoraConfig(
        r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM"
    )


def finish(trainer: Any, out: Path, words: Any) -> None:
    """Trains to the end, from the last checkpoint if there is one, and saves `model/`. Raises UserError."""
    last, finished = last_whole(out)
    if last is not None:
        typer.echo(f"going on from {last}", err=True)
    if last is None or not finished:  # transformers makes one step more of a run that has all of them
        trainer.train(resume_from_checkpoint=None if last is None else str(last))
    else:
        trainer._load_from_checkpoint(str(last))
    trainer.save_model(str(out / "model"))
    words.save_pretrained(str(out / "model"))


def last_whole(out: Path) -> tuple[Path | None, bool]:
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


def command(function: Callable[..., None]) -> None:
    """A recipe's command line: a mistake is one line."""
    try:
        typer.run(function)
    except UserError as error:
        sys.exit(str(error))
