"""What verl itself makes of the training data and the reward, on a CPU."""

# ruff: noqa: I001 - needs_verl has to come first
from tests.train_recipes import needs_verl  # noqa: F401

import asyncio
import contextlib
import io
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from robustbench_tc.train_recipes.check import reward_batch, score_golds
from robustbench_tc.train_recipes import compose, recipe as recipes, rows
from robustbench_tc.train_recipes.rows import locate
from robustbench_tc.train_recipes.start import PLUGIN
from tests.train_recipes.composed import composed, shards_of
from robustbench_tc.eval.score import reward

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def config(training_data: Path, tiny: Path) -> Any:
    return composed(training_data, tiny)


def test_every_row_reaches_the_rollout_with_its_extra_info(
    config: Any, tokenizer: Any, training_data: Path
) -> None:
    from verl.trainer.ppo.utils import create_rl_dataset

    files = [str(path) for path in shards_of(training_data).train]
    dataset = create_rl_dataset(files, config.data, tokenizer, None)
    assert len(dataset) == 68
    item = dataset[3]
    assert [turn["role"] for turn in item["raw_prompt"]] == ["system", "user"]
    assert item["index"] == item["extra_info"]["index"]
    assert item["extra_info"]["type_code"] != "clean"
    assert json.loads(item["extra_info"]["changes"])


@pytest.mark.parametrize("shaping", [0, 0.25])
def test_golds_earn_the_maximum_through_the_async_manager(
    tokenizer: Any, training_data: Path, tiny: Path, shaping: float
) -> None:
    config = composed(training_data, tiny, [f"shaping={shaping}"])
    scores = asyncio.run(score_golds(config, tokenizer, shards_of(training_data).train, 68))
    assert len(scores) == 68
    for score, best in scores:
        assert score in (best, best + shaping)
    assert (max(score for score, _ in scores) > 4) is bool(shaping)


def test_the_legacy_manager_gives_the_same_scores_and_parts(
    tokenizer: Any, training_data: Path, config: Any
) -> None:
    import datasets
    from verl.trainer.ppo.reward import get_custom_reward_fn
    from verl.workers.reward_manager import get_reward_manager_cls

    files = [str(path) for path in locate(str(training_data), "full").train]
    row = datasets.load_dataset("parquet", data_files=files, split="train")[0]
    manager = get_reward_manager_cls("naive")(tokenizer, 0, compute_score=get_custom_reward_fn(config))
    gold = row["reward_model"]["ground_truth"]
    for answer in (gold, gold.replace("</tool_call>", "")):
        out = manager(reward_batch(tokenizer, row, answer), return_dict=True)
        parts = reward.compute_score("rlla", answer, gold)
        assert out["reward_tensor"].sum().item() == pytest.approx(parts["score"])
        assert {name: values[0] for name, values in out["reward_extra_info"].items()} == parts


def test_dual_clipping_is_out_of_reach(config: Any) -> None:
    from verl.trainer.ppo.core_algos import compute_policy_loss_vanilla
    from verl.utils.config import omega_conf_to_dataclass

    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    log_prob, mask = torch.tensor([[7.0]]), torch.tensor([[1.0]])
    loss, _ = compute_policy_loss_vanilla(torch.zeros(1, 1), log_prob, -mask, mask, "token-mean", actor)
    assert float(loss) == pytest.approx(math.exp(7.0))  # verl's own bound would make 3 of it


def test_grpo_advantages_rank_answers_within_their_group() -> None:
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

    gold = '<think> a </think>\n<tool_call>\n{"name": "f", "parameters": {"x": 1}}\n</tool_call>'
    wrong = gold.replace('"x": 1', '"x": 2')
    scores = [reward.compute_score("rlla", text, gold)["score"] for text in (gold, wrong, gold, gold)]
    rewards = torch.tensor([[0.0, score] for score in scores])
    groups = np.array(["a", "a", "b", "b"], dtype=object)
    advantages, _ = compute_grpo_outcome_advantage(rewards, torch.ones(4, 2), groups)
    assert advantages[:, 0].tolist() == pytest.approx([0.7071, -0.7071, 0.0, 0.0], abs=1e-3)


TAGS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<response>", "</response>", "\n", "x"]
LINES = [
    '{"name": "f", "parameters": {"x": 1, "y": [2]}}',
    '{"name": "g", "parameters": {}}',
    '{"name": "f"}',
]
TEXT = st.lists(st.sampled_from(TAGS + LINES), max_size=12).map("".join)
CALLS = st.lists(st.sampled_from(LINES), min_size=1, max_size=3).map(
    lambda lines: "<think> t </think>\n<tool_call>\n" + "\n".join(lines) + "\n</tool_call>"
)


@settings(max_examples=300)
@given(TEXT | CALLS, CALLS | st.just("<think> t </think>\n<response> r </response>"))
def test_verls_own_copy_of_the_reward_agrees(answer: str, gold: str) -> None:
    from verl.utils.reward_score import rlla

    with contextlib.redirect_stdout(io.StringIO()):
        theirs = rlla.compute_score("rlla", answer, gold, {"experiment_name": "qwen"})
    ours = reward.compute_score("rlla", answer, gold)
    assert ours["score"] == pytest.approx(theirs["score"], abs=1e-9)
    assert ours["format_score"] == theirs["format_reward"]


def test_two_fine_tuning_steps_lower_the_loss(training_data: Path, tiny: Path, tmp_path: Path) -> None:
    recipe, _ = recipes.read_recipe("sft", [])
    shards = rows.write(rows.choose(str(training_data), recipe), tmp_path / "rows")
    compose.write(recipe, shards, str(tiny), tmp_path)
    overrides = {
        "data.val_files": "null",
        "data.train_batch_size": 2,
        "data.max_length": 2048,
        "data.num_workers": 0,
        "data.train_max_samples": 2,  # the same two rows in both epochs: their loss has to fall
        "data.use_dynamic_bsz": "false",
        "data.micro_batch_size_per_gpu": 2,
        "model.use_remove_padding": "false",
        "+model.override_config.attn_implementation": "eager",
        "engine.strategy": "fsdp2",
        "engine.use_torch_compile": "false",
        "optim.lr": 0.01,
        "optim.lr_scheduler_type": "constant",
        "optim.lr_warmup_steps_ratio": 0.0,
        "trainer.device": "cpu",
        "trainer.total_epochs": 2,
        "trainer.total_training_steps": 2,
        "trainer.resume_mode": "disable",
        "trainer.test_freq": -1,
        "hydra.run.dir": tmp_path / "hydra",
    }
    command = [sys.executable, "-m", "tests.train_recipes.cpu_platform"]
    command += ["--config-path", str(tmp_path), "--config-name", "sft"]
    command += [f"{key}={value}" for key, value in overrides.items()]
    env = os.environ | {"VERL_PLATFORM": "cpu", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "2"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    losses = [float(loss) for loss in re.findall(r"train/loss:([\d.]+)", done.stdout + done.stderr)]
    assert len(losses) == 2 and losses[1] < losses[0]
    assert (tmp_path / "checkpoints/global_step_2/huggingface/config.json").is_file()


def test_validation_goes_through_our_summary() -> None:
    """verl imports the plugin by the variable that the command sets; its loop writes the ids that we read."""
    import inspect

    from verl.trainer.ppo.v1 import PPOTrainer

    assert 'batch_dict["uid"] = ' in inspect.getsource(PPOTrainer._validate)
    named = list(inspect.signature(PPOTrainer._val_metrics_update).parameters)
    assert named[1:5] == ["data_sources", "sample_uids", "reward_extra_infos_dict", "sample_turns"]
    line = "from verl.trainer.ppo.v1 import get_trainer_cls as g; print(hasattr(g('sync'), '_rbtc_rows'))"
    for plugin, wrapped in ((PLUGIN, "True"), ("", "False")):
        env = os.environ | {"VERL_USE_EXTERNAL_MODULES": plugin}
        done = subprocess.run(
            [sys.executable, "-c", line], capture_output=True, text=True, env=env, timeout=600, check=True
        )
        assert done.stdout.split()[-1] == wrapped


def test_rows_of_verls_own_loader_are_named(config: Any, tokenizer: Any, training_data: Path) -> None:
    from torch.utils.data import DataLoader
    from verl.trainer.ppo.utils import create_rl_dataset
    from verl.utils.dataset.rl_dataset import collate_fn

    from robustbench_tc.train_recipes.verl_validation import Named

    files = [str(path) for path in shards_of(training_data, ["data=retry"]).validation]
    dataset = create_rl_dataset(files, config.data, tokenizer, None)
    named = Named(DataLoader(dataset, batch_size=64, collate_fn=collate_fn))
    for number, batch in enumerate(named):
        batch["uid"] = np.array([f"{number}-{at}" for at in range(len(batch["raw_prompt"]))], dtype=object)
    components = {about.component for about in named.rows.values()}
    assert len(named.rows) == len(dataset) and {"clean", "retry", "action", "reward"} >= components > {
        "retry"
    }


def test_the_gpu_script_installs_what_verl_asks_for() -> None:
    from importlib import metadata

    script = (ROOT / "train_recipes" / "install-gpu.sh").read_text()
    last = (ROOT / "train_recipes" / "requirements-gpu.txt").read_text().splitlines()[-1]
    assert last == f"verl[vllm,fsdp]=={metadata.version('verl')}"
    asked = {line.partition(";")[0].strip() for line in metadata.requires("verl") or ()}
    for pinned in re.findall(r"\b(?:torch|flash-attn)==[\w.]+", script):
        assert pinned in asked
    printed = subprocess.run(
        [ROOT / "train_recipes" / "install-gpu.sh", "--print"], capture_output=True, text=True, check=True
    )
    lines = printed.stdout.splitlines()
    assert ["torch==" in lines[0], "flash-attn==" in lines[1], "requirements-gpu.txt" in lines[2]] == [
        True
    ] * 3
