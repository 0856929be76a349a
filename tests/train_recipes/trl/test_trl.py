"""The recipe under TRL itself, on the CPU with the toy's model (`make test-trl`)."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("trl", reason="needs TRL: make test-trl")

from robustbench_tc.train_recipes import recipe as recipes, sft
from robustbench_tc.train_recipes.rows import choose
from robustbench_tc.train_recipes.trl import data, smoke, toy
from tests.conftest import nightly
from tests.refusals import refuses

from .forked import run, start

GRPO, SFT = ([sys.executable, "-m", f"robustbench_tc.train_recipes.{name}"] for name in ("grpo", "sft"))
ENV = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy's rows, and its model after one pass over them."""
    made = tmp_path_factory.mktemp("toy")
    toy.write_rows(made / "rows")
    build = ["build", "toolrl-dr", "--rlla", str(made / "rows"), "--configs", "full,paft"]
    words = [sys.executable, "-m", "robustbench_tc", *build, "--out", str(made / "toolrl-dr")]
    subprocess.run(words, check=True, capture_output=True, env=ENV, timeout=300)
    toy.make_model(str(made / "toolrl-dr"), made / "base", epochs=1)
    return made


def words(folder: Path, out: str, *more: str, steps: int = 4) -> list[str]:
    settings = {**smoke.SETTINGS, "per_device_train_batch_size": 4, "max_completion_length": 16}
    settings |= {"num_generations": 2, "max_steps": steps, "save_steps": 2, "learning_rate": 1e-3}
    given = [f"{key}={value}" for key, value in settings.items()]
    base = ["--model", str(folder / "base"), "--out", str(folder / out), "--cpu", "--rows", "8"]
    return [*GRPO, str(folder / "toolrl-dr"), *base, *given, *more]


def curve(folder: Path, out: str) -> dict[int, dict[str, float]]:
    lines = map(json.loads, (folder / out / "curve.jsonl").read_text().splitlines())
    return {line["step"]: line for line in lines}


def test_a_killed_run_goes_on_from_its_checkpoint(folder: Path) -> None:
    whole = run(words(folder, "whole"))
    assert whole.returncode == 0, whole.stderr[-2000:]
    assert whole.stderr.count("\nstep ") == 4 or whole.stderr.startswith("step 1 of 4")
    assert {path.name for path in (folder / "whole").glob("checkpoint-*")} == {"checkpoint-2", "checkpoint-4"}
    told = folder / "told"
    process = start(words(folder, "killed"), folder / "out", told)
    while process.is_alive() and "\nstep 3" not in (told.read_text() if told.is_file() else ""):
        time.sleep(0.01)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    again = run(words(folder, "killed"))
    assert again.returncode == 0 and "going on from" in again.stderr, again.stderr[-2000:]
    values = {
        name: [(at, line["score"], line["mean_length"]) for at, line in sorted(curve(folder, name).items())]
        for name in ("whole", "killed")
    }
    assert [at for at, *_ in values["whole"]] == [1, 2, 3, 4]
    assert values["killed"] == values["whole"]
    # Killed while it wrote a checkpoint: the one before it is taken.
    (folder / "killed" / "checkpoint-4" / "trainer_state.json").write_text('{"global_')
    again = run(words(folder, "killed"))
    assert again.returncode == 0 and "checkpoint-2\n" in again.stderr, again.stderr[-2000:]
    assert curve(folder, "killed")[4]["score"] == curve(folder, "whole")[4]["score"]
    # A run that has all its steps makes no other, and gives the same model.
    lines = (folder / "killed" / "curve.jsonl").read_text()
    model = (folder / "killed" / "model" / "model.safetensors").read_bytes()
    again = run(words(folder, "killed"))
    assert again.returncode == 0, again.stderr[-2000:]
    assert (folder / "killed" / "curve.jsonl").read_text() == lines
    assert (folder / "killed" / "model" / "model.safetensors").read_bytes() == model
    other = run(words(folder, "killed", steps=5))
    assert other.returncode == 1 and "other settings" in other.stderr and "Traceback" not in other.stderr


def test_lora_saves_adapters_alone(folder: Path) -> None:
    done = run(words(folder, "lora", "--lora", "2", steps=1))
    assert done.returncode == 0, done.stderr[-2000:]
    saved = {path.name for path in (folder / "lora" / "model").iterdir()}
    assert "adapter_model.safetensors" in saved and "model.safetensors" not in saved


def test_validation_goes_by_component(folder: Path) -> None:
    """Before the first step and every two; each row of the validation split is answered once."""
    done = run(words(folder, "validated", "eval_strategy=steps", "eval_steps=2", steps=2))
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [
        json.loads(line) for line in (folder / "validated" / "validation.jsonl").read_text().splitlines()
    ]
    assert [line["step"] for line in lines] == [0, 2]
    for line in lines:
        assert line["val-aux/perturbed/pairs"] == 2 and 0 <= line["val-core/clean/accuracy"] <= 1
    assert (folder / "validated" / "validation_baseline.json").is_file()
    assert "validation at step 0: " in done.stderr and "score" not in lines[0]
    assert [line["step"] for line in map(json.loads, (folder / "validated" / "curve.jsonl").open())] == [1, 2]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("beat=0",), "unexpected keyword argument 'beat'"),
        (("num_generations=7",), "TRL refuses these settings"),
        (("--model", "/nowhere"), "/nowhere: no model with a tokenizer"),
    ],
)
def test_what_trl_would_not_take_is_one_line(folder: Path, more: tuple[str, ...], said: str) -> None:
    done = run([*words(folder, f"wrong{len(said)}"), *more])
    lines = [line for line in done.stderr.splitlines() if line.strip() and "Warning" not in line]
    assert done.returncode == 1 and said in lines[-1], done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert not (folder / f"wrong{len(said)}").exists()


def labels(trainer: Any) -> list[tuple[int, int]]:
    """Of each row of a batch: tokens, and tokens that the loss is of."""
    batch = next(iter(trainer.get_train_dataloader()))
    return [
        (int(mask.sum()), int((ids != -100).sum()))
        for mask, ids in zip(batch["attention_mask"], batch["labels"], strict=True)
    ]


def test_the_rows_go_through_trls_trainers_as_they_are(folder: Path, tmp_path: Path) -> None:
    """Published Parquet and the recipe's rows, without a line between `datasets` and the trainer."""
    from datasets import Dataset, load_dataset
    from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

    common: dict[str, Any] = {
        "output_dir": str(tmp_path),
        "use_cpu": True,
        "bf16": False,
        "report_to": "none",
    }
    sft_settings = SFTConfig(max_length=None, per_device_train_batch_size=4, **common)
    shards = {name: str(next((folder / "toolrl-dr" / name).glob("train-*"))) for name in ("paft", "full")}
    published = load_dataset("parquet", data_files=shards["paft"], split="train")
    conversations = SFTTrainer(str(folder / "base"), sft_settings, train_dataset=published)
    recipe, _ = recipes.read_recipe("sft")
    pairs = Dataset.from_list(sft.pairs(choose(str(folder / "toolrl-dr"), recipe).train))
    answers = SFTTrainer(str(folder / "base"), sft_settings, train_dataset=pairs)
    for tokens, trained in labels(answers):
        assert 0 < trained < tokens / 2
    assert sum(all for all, _ in labels(answers)) > 0 < sum(trained for _, trained in labels(conversations))
    prompts = load_dataset("parquet", data_files=shards["full"], split="train")
    settings = GRPOConfig(
        num_generations=2, per_device_train_batch_size=2, max_steps=1, max_completion_length=8, **common
    )

    def earned(completions: Any, reward_model: Any, data_source: Any, **_: Any) -> list[float]:
        return data.scores(completions, data_source, [one["ground_truth"] for one in reward_model])

    trainer = GRPOTrainer(str(folder / "base"), earned, args=settings, train_dataset=prompts)
    assert trainer.train().global_step == 1


def test_fine_tuning_goes_on_keeps_checkpoints_and_its_model_is_read(folder: Path) -> None:
    line = [*SFT, str(folder / "toolrl-dr"), "--model", str(folder / "base"), "--out", str(folder / "sft")]
    line += ["--cpu", "--rows", "8", "data=dr-full", "max_length=4096", "save_steps=2", "max_steps=4"]
    line += ["per_device_train_batch_size=2", "gradient_accumulation_steps=1", "logging_steps=1"]
    done = run(line)
    assert done.returncode == 0, done.stderr[-2000:]
    out = folder / "sft"
    assert {path.name for path in out.glob("checkpoint-*")} == {"checkpoint-2", "checkpoint-4"}
    history = json.loads((out / "checkpoint-4" / "trainer_state.json").read_text())["log_history"]
    assert len([one for one in history if "loss" in one]) == 4
    for name in ("model", "checkpoint-2"):
        assert {"model.safetensors", "tokenizer.json"} <= {path.name for path in (out / name).iterdir()}
    model = (out / "model" / "model.safetensors").read_bytes()
    (out / "checkpoint-4" / "trainer_state.json").write_text('{"global_')  # killed while it wrote one
    again = run(line)
    assert again.returncode == 0 and "checkpoint-2\n" in again.stderr, again.stderr[-2000:]
    assert (out / "model" / "model.safetensors").read_bytes() == model
    tuned = run([word.replace(str(out), f"{out}-lora") for word in line] + ["--lora", "2"])
    assert tuned.returncode == 0, tuned.stderr[-2000:]
    assert (folder / "sft-lora" / "model" / "adapter_model.safetensors").is_file()


def test_rows_that_would_be_cut_are_refused(folder: Path) -> None:
    line = [*SFT, str(folder / "toolrl-dr"), "--model", str(folder / "base"), "--out", str(folder / "cut")]
    done = run([*line, "--cpu", "data=dr-full", "max_length=100"])
    assert done.returncode == 1 and "16 of 16 rows exceed max_length=100 tokens" in done.stderr
    assert "Traceback" not in done.stderr and not (folder / "cut").exists()


@nightly  # minutes
def test_the_short_smoke_test(tmp_path: Path) -> None:
    """As `make train-toy`, with fewer steps and the bars for those."""
    line = [
        sys.executable,
        "-m",
        "robustbench_tc.train_recipes.trl.smoke",
        "--short",
        "--out",
        str(tmp_path / "toy"),
    ]
    done = subprocess.run(line, capture_output=True, text=True, env=ENV, timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    found = json.loads((tmp_path / "toy" / "train-toy.json").read_text())
    assert all(bar["holds"] for bar in found["bars"]) and len(found["bars"]) == 2
    assert [one["step"] for one in found["curves"]["reward"]] == list(range(1, found["steps"] + 1))


@nightly
def test_toolrls_own_rows_go_through_the_recipe(folder: Path, shared: Path) -> None:
    """Their long prompts, golds of several calls and responses; two steps, so nothing is learnt."""
    build = ["build", "toolrl-dr", "--rlla", str(shared / "sources" / "toolrl"), "--configs", "mixed"]
    environment = {**ENV, "RBTC_SOURCES": str(shared / "sources")}
    line = [sys.executable, "-m", "robustbench_tc", *build, "--out", str(folder / "real")]
    subprocess.run(line, check=True, capture_output=True, env=environment, timeout=600)
    line = words(folder, "on-real", "data=dr-mixed", steps=2)
    done = run([str(folder / "real") if word == str(folder / "toolrl-dr") else word for word in line])
    assert done.returncode == 0, done.stderr[-2000:]
    found = curve(folder, "on-real")
    assert [*found] == [1, 2] and all(-3 <= one["score"] <= 4 for one in found.values())
    assert (folder / "on-real" / "model" / "model.safetensors").is_file()


def test_a_long_prompt_is_not_cut_while_the_toy_is_taught(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRL's own limit is 1,024 tokens: a longer row lost its answer, and then left without a word."""
    from trl import SFTTrainer

    long = folder / "long"
    (long / "full").mkdir(parents=True)
    for split in ("train", "validation"):
        name = f"{split}-00000-of-00001.parquet"
        table: Any = pq.read_table(folder / "toolrl-dr" / "full" / name)
        rows = table["prompt"].to_pylist()
        for number, turns in enumerate(rows):
            turns[-1]["content"] += " ".join(f"{number * 7919 + at * 104729:x}" for at in range(400))
        column = pa.array(rows, table.schema.field("prompt").type)
        pq.write_table(
            table.set_column(table.schema.get_field_index("prompt"), "prompt", column), long / "full" / name
        )
    lengths: list[int] = []

    def counted(trainer: Any, **_: Any) -> Any:
        lengths.extend(map(len, trainer.train_dataset["input_ids"]))
        return train(trainer)

    train = SFTTrainer.train
    monkeypatch.setattr(SFTTrainer, "train", counted)
    toy.make_model(str(long), folder / "long-base", epochs=0.1)
    assert len(lengths) == toy.SFT_ROWS and min(lengths) > 1_024


def test_packing_changes_neither_the_loss_nor_what_a_row_sees(folder: Path) -> None:
    """Eight rows in one sequence, on the CPU without FlashAttention: each is by itself all the same."""
    losses, batches = [], []
    for name, more in (
        ("each", ["per_device_train_batch_size=8"]),
        ("packed", ["packing=true", "per_device_train_batch_size=1"]),
        ("wrapped", ["packing=true", "packing_strategy=wrapped", "per_device_train_batch_size=1"]),
    ):
        given = ["data=dr-full", "max_steps=1", "gradient_accumulation_steps=1", "max_length=8192"]
        given += ["logging_steps=1", *more]
        sft.sft(str(folder / "base"), folder / name, str(folder / "toolrl-dr"), given, rows=8, cpu=True)
        state = json.loads((folder / name / "checkpoint-1" / "trainer_state.json").read_text())
        losses.append(state["log_history"][0]["loss"])
        batches.append(state["log_history"][0]["num_tokens"])
    assert batches[0] == batches[1] > 2_000
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert losses[2] != pytest.approx(losses[0], rel=1e-4)  # there a row reads those before it


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["packing=true", "max_length=null"], "`max_length` can't be `None`"),
        (["packing=true", "max_length=100"], "rows exceed max_length=100 tokens"),
        (["report_to=wandb"], "requires wandb"),
        (["assistant_only_loss=true"], "template"),
        (["output_dir=elsewhere"], "multiple values for keyword argument 'output_dir'"),
        (["chat*"], "Unrecognized model"),
        ([], "chat_template is not set"),
    ],
)
def test_what_trl_cannot_begin_with_is_one_line(
    folder: Path, tmp_path: Path, more: list[str], said: str
) -> None:
    model = folder / "base"
    if "=" not in "".join(more):  # a tokenizer without weights, or even without a template
        model = tmp_path / "model"
        model.mkdir()
        for name in ("tokenizer*", *more):
            for path in (folder / "base").glob(name):
                (model / path.name).write_bytes(path.read_bytes())
        more = []
    given: Any = {"words": ["data=dr-full", *more], "rows": 4, "cpu": True}
    refuses(said, sft.sft, str(model), tmp_path / "run", str(folder / "toolrl-dr"), **given)
    assert not [*(tmp_path / "run").glob("*")]  # the next try is not refused for this one
