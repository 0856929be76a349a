"""Rows of one answer and rows that meet an error in one batch through verl: its dataset, its agent loop, its
reward manager."""

# ruff: noqa: I001 - needs_verl has to come first
from tests.train_recipes import needs_verl  # noqa: F401

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robustbench_tc.train_recipes.check import readiness, reward_batch, score_golds

from .composed import composed
from .test_agent_loop import Server
from .test_check import failures

WORDS = ["data=retry", "alpha=0.5"]


@pytest.fixture(scope="module")
def config(training_data: Path, tiny: Path) -> Any:
    return composed(training_data, tiny, WORDS)


@pytest.fixture(scope="module")
def dataset(config: Any, tokenizer: Any) -> Any:
    from verl.trainer.ppo.utils import create_rl_dataset

    return create_rl_dataset(list(config.data.train_files), config.data, tokenizer, None)


def rolled_out(config: Any, tokenizer: Any, item: dict[str, Any], texts: list[str]) -> Any:
    """One rollout of a row of verl's dataset, by the loop that verl has under the row's name."""
    import hydra
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap, ToolListWrap
    from verl.utils.dataset.rl_dataset import RLHFDataset

    (about,) = OmegaConf.load(config.actor_rollout_ref.rollout.agent.agent_loop_config_path)
    arguments = {
        "trainer_config": DictConfigWrap(config),
        "server_manager": Server(tokenizer, texts),
        "tokenizer": tokenizer,
        "processor": None,
        "dataset_cls": RLHFDataset,
        "data_config": DictConfigWrap(config.data),
        "hf_model_type": "qwen2",
        "tools": ToolListWrap([]),
    }
    about.pop("name", None)

    async def run() -> Any:
        return await hydra.utils.instantiate(about, **arguments).run({"temperature": 1.0}, priority=0, **item)

    return asyncio.run(run())


def test_every_row_is_rolled_out_and_rewarded_as_it_says(config: Any, tokenizer: Any, dataset: Any) -> None:
    from verl.trainer.ppo.reward import load_reward_manager

    async def score(batch: Any) -> Any:
        return await load_reward_manager(config, tokenizer).run_single(batch)

    seen = {}
    for index in range(len(dataset)):
        item = dataset[index]
        gold, info = item["reward_model"]["ground_truth"], item["extra_info"]
        if "<tool_call>" not in gold or info["rollout"] in seen:
            continue
        if (info.get("retry") or {}).get("type_code") == "transient_auth_error":
            continue
        wrong = gold.replace('"name": "', '"name": "x')
        output = rolled_out(
            config, tokenizer, item, [wrong, gold, "<think> d </think>\n<response> Done. </response>"]
        )
        row = {"data_source": item["data_source"], "reward_model": item["reward_model"], "extra_info": info}
        batch = reward_batch(tokenizer, row, tokenizer.decode(output.response_ids, skip_special_tokens=True))
        batch.non_tensor_batch["tool_extra_fields"] = np.array([output.extra_fields], dtype=object)
        seen[info["rollout"]] = (output, asyncio.run(score(batch)))
    single, retried = seen["single"], seen["retry"]
    # One generation, its first answer rewarded; and a second try, which weighs more.
    assert len(single[0].extra_fields["attempts"]) == 1 and all(single[0].response_mask)
    assert retried[0].extra_fields["error_attempt"] == 0 and not all(retried[0].response_mask)
    assert single[1]["reward_score"] < 0 < retried[1]["reward_score"]
    assert single[1]["reward_extra_info"].keys() == retried[1]["reward_extra_info"].keys()
    assert single[1]["reward_extra_info"]["met_error"] == 0.0 < retried[1]["reward_extra_info"]["met_error"]


def test_golds_earn_the_maximum_and_the_recipe_is_ready(
    config: Any, tokenizer: Any, training_data: Path, tiny: Path
) -> None:
    paths = [Path(path) for path in config.data.train_files]
    scores = asyncio.run(score_golds(config, tokenizer, paths, 40))
    assert len(scores) == 40 and all(score == best for score, best in scores)
    assert failures(readiness("grpo", str(training_data), tiny, WORDS).findings) == []
    other = "reward.custom_reward_function.path=pkg://robustbench_tc.train_recipes.nothing"
    ((what, _),) = failures(readiness("grpo", str(training_data), tiny, [*WORDS, other]).findings)
    assert what == "reward"


def test_validation_shows_both(config: Any, tokenizer: Any) -> None:
    from torch.utils.data import DataLoader
    from verl.trainer.ppo.utils import create_rl_dataset
    from verl.utils.dataset.rl_dataset import collate_fn

    from robustbench_tc.train_recipes.validation import scored, summary
    from robustbench_tc.train_recipes.verl_validation import Named

    dataset = create_rl_dataset(list(config.data.val_files), config.data, tokenizer, None)
    named = Named(DataLoader(dataset, batch_size=64, collate_fn=collate_fn))
    for number, batch in enumerate(named):
        batch["uid"] = np.array([f"{number}-{at}" for at in range(len(batch["raw_prompt"]))], dtype=object)
    components = {about.component for about in named.rows.values()}
    assert len(named.rows) == len(dataset)
    assert {"clean", "retry", "action", "reward"} >= components > {"retry"}
    answers = [scored(row, row.best if row.component != "retry" else -3.0) for row in named.rows.values()]
    found = summary(answers)
    assert found["val-core/retry/delta"] == -1.0 and found["val-core/perturbed/delta"] == 0.0
    assert found["val-aux/retry/pairs"] > 0 < found["val-aux/perturbed/pairs"]
