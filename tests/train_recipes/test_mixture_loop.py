"""A mixed batch through verl: its dataset, each row's own rollout, its reward manager."""

# ruff: noqa: I001 - needs_verl has to come first
from tests.train_recipes import needs_verl  # noqa: F401

import asyncio
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from omegaconf import OmegaConf

from robustbench_tc.train_recipes.check import readiness, reward_batch, score_golds
from robustbench_tc.train_recipes.compose import compose
from robustbench_tc.train_recipes.dataset import locate
from robustbench_tc.train_recipes.mixture.rows import write

from tests.conftest import ROOT

from .test_agent_loop import Server
from .test_check import failures


@pytest.fixture(scope="module")
def mixed(training_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("mixed") / "mixture-training"
    write(str(training_data), out, 0.5)
    return out


@pytest.fixture(scope="module")
def config(mixed: Path, tiny: Path) -> Any:
    return compose("mixture", locate(str(mixed), "mixture"), tiny)


@pytest.fixture(scope="module")
def dataset(config: Any, tokenizer: Any) -> Any:
    from verl.trainer.ppo.utils import create_rl_dataset

    return create_rl_dataset(list(config.data.train_files), config.data, tokenizer, None)


def rolled_out(config: Any, tokenizer: Any, item: dict[str, Any], texts: list[str]) -> Any:
    """One rollout of a row of verl's dataset, by the loop that verl has under the row's name."""
    import hydra
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap, ToolListWrap, _agent_loop_registry
    from verl.utils.dataset.rl_dataset import RLHFDataset

    loops = OmegaConf.load(config.actor_rollout_ref.rollout.agent.agent_loop_config_path)
    known = {**_agent_loop_registry, **{loop.name: loop for loop in loops}}
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
    about = OmegaConf.create(known[item["agent_name"]])
    about.pop("name", None)

    async def run() -> Any:
        loop = hydra.utils.instantiate(about, **arguments)
        return await loop.run({"temperature": 1.0}, priority=0, **item)

    return asyncio.run(run())


def test_every_row_is_rolled_out_and_rewarded_as_its_recipe_does(
    config: Any, tokenizer: Any, dataset: Any
) -> None:
    from verl.trainer.ppo.reward import load_reward_manager

    async def score(batch: Any) -> Any:
        return await load_reward_manager(config, tokenizer).run_single(batch)

    seen = {}
    for index in range(len(dataset)):
        item = dataset[index]
        gold, info = item["reward_model"]["ground_truth"], item["extra_info"]
        if "<tool_call>" not in gold or info["recipe"] in seen:
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
        seen[info["recipe"]] = (output, asyncio.run(score(batch)))
    single, retried = seen["toolrl_dr"], seen["retry"]
    # One generation, its first answer rewarded; and a second try, which weighs more.
    assert single[0].num_turns == 2 and all(single[0].response_mask)
    assert retried[0].extra_fields["error_attempt"] == 0 and not all(retried[0].response_mask)
    assert single[1]["reward_score"] < 0 < retried[1]["reward_score"]
    assert single[1]["reward_extra_info"].keys() == retried[1]["reward_extra_info"].keys()
    assert single[1]["reward_extra_info"]["met_error"] == 0.0 < retried[1]["reward_extra_info"]["met_error"]


def test_golds_earn_the_maximum_and_the_recipe_is_ready(
    config: Any, tokenizer: Any, mixed: Path, tiny: Path
) -> None:
    scores = asyncio.run(score_golds(config, tokenizer, locate(str(mixed), "mixture").train, 40))
    assert len(scores) == 40 and all(score == best for score, best in scores)
    findings = readiness("mixture", str(mixed), tiny).findings
    assert [one for one in findings if one.verdict == "failed"] == []
    (loops,) = [one for one in findings if one.what == "agent loop"]
    counts = Counter(
        str(name)
        for paths in locate(str(mixed), "mixture")
        for path in paths
        for name in pq.read_table(path, columns=["agent_name"])["agent_name"]
    )
    assert loops.detail == ", ".join(f"{name} ({count} rows)" for name, count in sorted(counts.items()))


def test_rows_that_name_an_agent_that_is_not_there(mixed: Path, tiny: Path, tmp_path: Path) -> None:
    for path in (path for paths in locate(str(mixed), "mixture") for path in paths):
        table = pq.read_table(path)
        column = table.schema.get_field_index("agent_name")
        wrong = pa.array(["nobody"] * table.num_rows)
        (tmp_path / "mixture").mkdir(exist_ok=True)
        pq.write_table(table.set_column(column, "agent_name", wrong), tmp_path / "mixture" / path.name)
    (line,) = failures(readiness("mixture", str(tmp_path), tiny).findings)
    assert line[0] == "agent loop" and "name the agent 'nobody', which verl does not know" in line[1]


def test_rows_of_a_single_config_are_refused_as_a_mixture(training_data: Path, tiny: Path) -> None:
    findings = readiness("mixture", str(training_data), tiny, config="full").findings
    (failed,) = [one for one in findings if one.verdict == "failed"]
    assert failed.what == "columns" and "no column 'agent_name'" in failed.detail


def test_an_answer_to_a_row_of_full_has_the_room_of_its_own_recipe(
    config: Any, tokenizer: Any, dataset: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = next(one for one in map(dataset.__getitem__, range(40)) if one["agent_name"] == "full_agent")
    asked: list[Any] = []
    generate = Server.generate

    async def noted(self: Server, request_id: str, **more: Any) -> Any:
        asked.append(more["sampling_params"])
        return await generate(self, request_id, **more)

    monkeypatch.setattr(Server, "generate", noted)
    output = rolled_out(config, tokenizer, item, ["a" * 3_000])
    own = OmegaConf.load(ROOT / "train_recipes" / "toolrl_dr" / "recipe.yaml").data.max_response_length
    assert len(output.response_ids) == len(output.response_mask) == own == 1024
    assert asked == [{"temperature": 1.0, "max_tokens": own}] and config.data.max_response_length == 2 * own


def test_the_loop_of_retry_is_set_as_in_its_own_recipe() -> None:
    files = [ROOT / "train_recipes" / name / "agent_loop.yaml" for name in ("retry", "mixture")]
    own, mixed = ([dict(one) for one in OmegaConf.load(file) if one.name == "retry_agent"] for file in files)
    assert own == mixed and len(own) == 1


def test_rows_are_held_against_loop_and_reward(mixed: Path, tiny: Path, tmp_path: Path) -> None:
    """A row that says two things, and rows under a recipe that has one reward for all."""
    (path,) = locate(str(mixed), "mixture").train
    table = pq.read_table(path)
    agents = pa.array(["full_agent"] * table.num_rows)
    swapped = tmp_path / "mixture"
    shutil.copytree(path.parent, swapped)
    at = table.schema.get_field_index("agent_name")
    pq.write_table(table.set_column(at, "agent_name", agents), swapped / path.name)
    ((what, detail),) = failures(readiness("mixture", str(tmp_path), tiny).findings)
    assert what == "mixture" and "is of the recipe 'retry' and names the agent 'full_agent'" in detail
    for recipe in ("retry", "toolrl_dr"):
        found = failures(readiness(recipe, str(mixed), tiny, config="mixture").findings)
        assert ("agent loop" in [what for what, _ in found]) and "--recipe mixture" in found[-1][1]
    other = "reward.custom_reward_function.path=pkg://robustbench_tc.train_recipes.retry.reward"
    ((what, detail),) = failures(readiness("mixture", str(mixed), tiny, overrides=[other]).findings)
    assert what == "mixture" and "the rows name a reward each" in detail


def test_validation_shows_both_recipes(config: Any, tokenizer: Any, mixed: Path) -> None:
    from torch.utils.data import DataLoader
    from verl.trainer.ppo.utils import create_rl_dataset
    from verl.utils.dataset.rl_dataset import collate_fn

    from robustbench_tc.train_recipes.validation import scored, summary
    from robustbench_tc.train_recipes.verl_validation import Named

    dataset = create_rl_dataset(list(config.data.val_files), config.data, tokenizer, None)
    named = Named(DataLoader(dataset, batch_size=64, collate_fn=collate_fn))
    for number, batch in enumerate(named):
        batch["uid"] = np.array([f"{number}-{at}" for at in range(len(batch["raw_prompt"]))], dtype=object)
    answers = [scored(row, row.best if row.component != "retry" else -3.0) for row in named.rows.values()]
    found = summary(answers)
    assert found["val-core/retry/delta"] == -1.0 and found["val-core/perturbed/delta"] == 0.0
    assert found["val-aux/retry/pairs"] > 0 < found["val-aux/perturbed/pairs"]
