"""Errors on part of a group through verl's own trainer: batches, rollouts, advantages, checkpoints, on a CPU.

verl's TransferQueue needs a cluster; the tests give its calls to a store in this process instead.
"""

# ruff: noqa: I001 - needs_verl has to come first
from tests.train_recipes import needs_verl  # noqa: F401

import asyncio
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from tests.refusals import refuses
from robustbench_tc.train_recipes import verl_noisy
from robustbench_tc.train_recipes import check, verl_validation
from robustbench_tc.train_recipes.compose import NotReady
from tests.train_recipes.composed import composed
from tests.train_recipes.test_agent_loop import GOLD, INFO, REPLY, rollout

HALF = ["noisy=0.5", "algorithm.use_kl_in_reward=false", "data.train_batch_size=8"]


def in_groups(rewards: Sequence[float], groups: Sequence[object]) -> list[float]:
    """GRPO's advantages: the distance from the group's mean in its standard deviations; 0 for one alone."""
    members: dict[object, list[float]] = defaultdict(list)
    for reward, group in zip(rewards, groups, strict=True):
        members[group].append(reward)
    found = []
    for reward, group in zip(rewards, groups, strict=True):
        values = members[group]
        spread = statistics.stdev(values) if len(values) > 1 else 1.0
        found.append((reward - statistics.fmean(values)) / (spread + 1e-6))
    return found


class Store:
    """The calls of TransferQueue that the trainer and the rollout worker make, in this process."""

    def __init__(self) -> None:
        self.fields: dict[str, dict[str, Any]] = {}
        self.tags: dict[str, dict[str, Any]] = {}

    def kv_batch_put(
        self, keys: Sequence[str], partition_id: str, fields: Any = None, tags: Any = None
    ) -> Any:
        from verl.trainer.ppo.v1.trainer_base import KVBatchMeta

        for row, key in enumerate(keys):
            if fields is not None:
                self.fields.setdefault(key, {}).update({name: fields[name][row] for name in fields.keys()})  # noqa: SIM118
            if tags is not None:
                self.tags.setdefault(key, {}).update(tags[row])
        return KVBatchMeta(partition_id=partition_id, keys=list(keys), tags=[self.tags[key] for key in keys])

    def kv_batch_get(self, keys: Sequence[str], partition_id: str, select_fields: Sequence[str]) -> Any:
        from verl.utils.tensordict_utils import list_of_dict_to_tensordict

        names = [name for name in select_fields if name in self.fields[keys[0]]]
        return list_of_dict_to_tensordict([{n: self.fields[key][n] for n in names} for key in keys])

    async def async_kv_batch_put(self, **arguments: Any) -> None:
        self.kv_batch_put(**arguments)

    async def async_kv_put(self, key: str, partition_id: str, tag: dict[str, Any]) -> None:
        self.kv_batch_put([key], partition_id, tags=[tag])

    def rollouts(self) -> Any:
        from verl.trainer.ppo.v1.trainer_base import KVBatchMeta

        keys = [key for key in self.fields if key.count("_") == 2]
        return KVBatchMeta(partition_id="train", keys=keys, tags=[self.tags[key] for key in keys])


@pytest.fixture
def verl_with_noise() -> Iterator[Any]:
    """verl's trainer module with the option installed, and as it was afterwards."""
    from verl.trainer.ppo.v1 import agent_loop_tq, trainer_base

    trainer, names = trainer_base.PPOTrainer, ("tq", "compute_advantage_for_multi_trajectories")
    methods = ["_next_train_batch", "_compute_advantage", "_validate", "_val_metrics_update"]
    methods += ["_save_checkpoint", "_load_checkpoint"]
    kept = {name: getattr(trainer_base, name) for name in names}
    own = {name: getattr(trainer, name) for name in methods}
    trainer_base.tq = agent_loop_tq.tq = Store()
    verl_validation.install(trainer)
    verl_noisy.install(trainer_base)
    verl_noisy.install(trainer_base)
    yield trainer_base
    agent_loop_tq.tq = kept["tq"]
    for name, value in kept.items():
        setattr(trainer_base, name, value)
    for name, value in own.items():
        setattr(trainer, name, value)
    del trainer._rbtc_noisy, trainer._rbtc_rows


class Client:
    """A model that makes gold's call, tries again after every second error, and else gives up."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer, self._errors = tokenizer, 0

    async def generate(self, request_id: str, *, prompt_ids: list[int], **more: Any) -> Any:
        from verl.workers.rollout.replica import TokenOutput

        said = self._tokenizer.decode(prompt_ids).rpartition("<obs>")[2]
        if "<obs>" not in self._tokenizer.decode(prompt_ids):
            text = GOLD
        elif '"success"' in said:
            text = REPLY
        else:
            self._errors += 1
            text = GOLD if self._errors % 2 else REPLY
        ids = self._tokenizer.encode(text + "<|im_end|>", add_special_tokens=False)
        return TokenOutput(token_ids=ids, log_probs=None, extra_fields={"max_global_steps": 1})


class Reward:
    """The reward worker's handle, without a cluster."""

    def __init__(self, config: Any, tokenizer: Any) -> None:
        from verl.trainer.ppo.reward import load_reward_manager

        self._manager = load_reward_manager(config, tokenizer)
        self.compute_score = self

    async def remote(self, data: Any) -> Any:
        return await self._manager.run_single(data)


class Manager:
    """Hands a batch to one of verl's own rollout workers, and waits for it."""

    def __init__(self, config: Any, tokenizer: Any) -> None:
        self._config, self._tokenizer = config, tokenizer
        self.batches: list[Any] = []

    def generate_sequences(self, batch: Any) -> None:
        self.batches.append(batch)
        asyncio.run(self._run(batch))

    async def _run(self, batch: Any) -> None:
        from omegaconf import OmegaConf
        from verl.experimental.agent_loop import agent_loop
        from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ
        from verl.utils.dataset.rl_dataset import RLHFDataset

        for entry in OmegaConf.load(self._config.actor_rollout_ref.rollout.agent.agent_loop_config_path):
            agent_loop._agent_loop_registry[entry.name] = entry
        kind = AgentLoopWorkerTQ.__ray_metadata__.modified_class
        worker = kind.__new__(kind)
        worker.config, worker.tokenizer, worker.processor = self._config, self._tokenizer, None
        worker.llm_client, worker.hf_model_type = Client(self._tokenizer), "qwen2"
        worker.dataset_cls, worker.tools, worker.background_tasks = RLHFDataset, [], set()
        worker.reward_loop_worker_handles = [Reward(self._config, self._tokenizer)]
        worker.distillation_enabled, worker.mm_processor_kwargs = False, {}
        await worker.generate_sequences(batch)
        await asyncio.gather(*worker.background_tasks)


def trainer_of(
    verl: Any, data: Path, tiny: Path, tokenizer: Any, overrides: Sequence[str], folder: Path
) -> Any:
    """verl's own trainer as far as a step of it needs no GPU."""
    from torchdata.stateful_dataloader import StatefulDataLoader
    from verl.trainer.ppo.utils import create_rl_dataset, create_rl_sampler
    from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
    from verl.utils.dataset.rl_dataset import collate_fn

    config = composed(data, tiny, ["data=retry", *overrides, f"trainer.default_local_dir='{folder}'"])
    trainer = PPOTrainerSync.__new__(PPOTrainerSync)
    trainer.config, trainer.trainer_mode, trainer.use_critic = config, "sync", False
    trainer.train_dataset = create_rl_dataset(list(config.data.train_files), config.data, tokenizer, None)
    trainer.train_dataloader = StatefulDataLoader(
        trainer.train_dataset,
        batch_size=config.data.train_batch_size,
        drop_last=True,
        collate_fn=collate_fn,
        sampler=create_rl_sampler(config.data, trainer.train_dataset),
    )
    trainer.train_dataloader_it = None
    trainer.steps_per_epoch = len(trainer.train_dataset) // config.data.train_batch_size
    trainer.global_steps = 1
    trainer.agent_loop_manager = Manager(config, tokenizer)
    trainer.actor_rollout_wg = trainer.checkpoint_callback = Mock()  # the calls that a checkpoint makes
    return trainer


def step(verl: Any, trainer: Any) -> tuple[dict[str, float], dict[str, dict[str, Any]]]:
    """Rollouts and advantages of one step: what is logged, and each rollout's fields with its advantage."""
    verl.tq.fields.clear()
    verl.tq.tags.clear()
    trainer._add_batch_to_generate()
    metrics: dict[str, float] = {}
    trainer._compute_advantage(verl.tq.rollouts(), metrics)
    trainer.global_steps += 1
    found = {}
    for key in verl.tq.rollouts().keys:
        fields = verl.tq.fields[key]
        first = int(torch.as_tensor(fields["response_mask"]).argmax())
        found[key] = fields | {"advantage": float(fields["advantages"][first])}
    return metrics, found


def test_a_step_of_verls_trainer_parts_each_prompt_by_its_worlds(
    verl_with_noise: Any, training_data: Path, tiny: Path, tokenizer: Any, tmp_path: Path
) -> None:
    trainer = trainer_of(verl_with_noise, training_data, tiny, tokenizer, HALF, tmp_path)
    metrics, rollouts = step(verl_with_noise, trainer)
    assert len(rollouts) == 8 * 4 and metrics["noisy/alone"] == 0.0
    worlds = {}
    for key, fields in rollouts.items():
        uid, session, _ = key.rsplit("_", 2)
        extra, faulty = fields["extra_fields"], bool(fields["extra_info"]["retry"])
        # The error is met exactly where it was drawn, in rows that have one.
        assert extra["error_drawn"] == (faulty and int(session) in fields["noisy"]["met"])
        assert (extra["error_attempt"] == 0) == extra["error_drawn"]
        worlds[key] = f"{uid} {extra['error_drawn']}"
    rewards = [float(torch.as_tensor(fields["rm_scores"]).sum()) for fields in rollouts.values()]
    expected = in_groups(rewards, list(worlds.values()))
    assert [fields["advantage"] for fields in rollouts.values()] == pytest.approx(expected, abs=1e-4)
    assert any(abs(value) > 0.5 for value in expected)
    drawn = [fields["extra_fields"]["error_drawn"] for fields in rollouts.values()]
    assert metrics["noisy/drawn"] == sum(drawn) / len(drawn) and 0 < sum(drawn) < len(drawn)
    # A right call without an error is no better than others in its world, whatever the error costs elsewhere.
    assert {f["advantage"] for f in rollouts.values() if not f["extra_fields"]["error_drawn"]} == {0.0}


def of_prompts(rollouts: dict[str, dict[str, Any]]) -> list[float]:
    """What GRPO's advantages are where a prompt's rollouts are one group."""
    rewards = [float(torch.as_tensor(one["rm_scores"]).sum()) for one in rollouts.values()]
    return in_groups(rewards, [key.split("_")[0] for key in rollouts])


def test_off_is_verls_own_step(
    verl_with_noise: Any, training_data: Path, tiny: Path, tokenizer: Any, tmp_path: Path
) -> None:
    trainer = trainer_of(verl_with_noise, training_data, tiny, tokenizer, HALF[1:], tmp_path)
    metrics, rollouts = step(verl_with_noise, trainer)
    assert metrics == {} and not (tmp_path / "global_step_1").exists()
    for fields in rollouts.values():
        assert "noisy" not in fields and "error_drawn" not in fields["extra_fields"]
    assert [one["advantage"] for one in rollouts.values()] == pytest.approx(of_prompts(rollouts), abs=1e-4)


def test_a_resumed_run_draws_the_same(
    verl_with_noise: Any, training_data: Path, tiny: Path, tokenizer: Any, tmp_path: Path
) -> None:
    def steps(trainer: Any, numbers: Sequence[int]) -> list[Any]:
        """The train rows of each step with their draws, between the checkpoints of a run."""
        found = []
        for number in numbers:
            trainer.global_steps = number
            batch = trainer._next_train_batch()
            prompts = [info["clean_id"] for info in batch["extra_info"]]
            found.append(list(zip(prompts, batch["noisy"], strict=True)))
            trainer._save_checkpoint()
        return found

    def begun() -> Any:
        return trainer_of(verl_with_noise, training_data, tiny, tokenizer, HALF, tmp_path)

    all_steps = steps(begun(), range(1, 13))
    assert len({str(row) for rows in all_steps for row in rows}) > 20
    for at in (3, 6):
        (tmp_path / "latest_checkpointed_iteration.txt").write_text(str(at))
        resumed = begun()
        resumed._load_checkpoint()
        assert resumed.global_steps == at and steps(resumed, range(at + 1, 13)) == all_steps[at:]


def advantages(scores: Sequence[float], keys: Sequence[str], worlds: dict[str, bool]) -> list[float]:
    """verl's advantages of these rewards, through the wrapped function."""
    from tensordict import TensorDict
    from verl import DataProto
    from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories

    rewards = torch.tensor([[0.0, score] for score in scores])
    batch = TensorDict(
        {"token_level_rewards": rewards, "response_mask": torch.ones(rewards.shape)}, len(scores)
    )
    uids = np.array([key.split("_")[0] for key in keys], dtype=object)
    data = DataProto(batch=batch, non_tensor_batch={"uid": uids})
    wrapped = verl_noisy.by_world(compute_advantage_for_multi_trajectories, worlds)
    found = wrapped(data, batch_keys=list(keys), adv_estimator="grpo")
    assert found.non_tensor_batch["uid"].tolist() == uids.tolist()
    assert found.batch["returns"].tolist() == found.batch["advantages"].tolist()
    return [float(value) for value in found.batch["advantages"][:, 0]]


def test_a_rollout_that_is_alone_in_its_world_gets_nothing() -> None:
    keys = ["a_0_0", "a_1_0", "a_2_0", "b_0_0", "b_1_0"]
    scores = [4.0, -3.0, 2.5, 4.0, 1.0]
    worlds = dict(zip(keys, (True, True, False, True, False), strict=True))
    assert advantages(scores, keys, worlds) == pytest.approx([0.7071, -0.7071, 0, 0, 0], abs=1e-3)
    # verl's own: a group of one has its bare reward for its advantage.
    assert advantages([*scores[:3], 4.0], [*keys[:3], "c_0_0"], {})[3] == pytest.approx(4.0, abs=1e-3)


def test_several_outputs_of_a_rollout_are_one_member_of_its_group() -> None:
    keys = ["a_0_0", "a_0_1", "a_1_0"]
    scores = [0.0, 4.0, -3.0]
    assert advantages(scores, keys, dict.fromkeys(keys, True)) == pytest.approx(
        [0.7071, 0.7071, -0.7071], abs=1e-3
    )
    assert advantages(scores, keys, dict(zip(keys, (True, True, False), strict=True))) == [0.0, 0.0, 0.0]


@pytest.fixture(scope="module")
def config(training_data: Path, tiny: Path) -> Any:
    return composed(training_data, tiny, ["data=retry", *HALF])


def test_only_the_drawn_rollouts_of_a_prompt_meet_the_error(config: Any, tokenizer: Any) -> None:
    column = {"met": [0, 3]}
    for session, met in ((0, True), (1, False), (2, False), (3, True)):
        more = {"noisy": column, "session_id": session}
        output, server = rollout(config, tokenizer, [GOLD, GOLD, REPLY], more=more)
        assert output.extra_fields["error_drawn"] is met
        assert (output.extra_fields["error_attempt"] == 0) is met
        assert ("429" in server.prompts[1]) is met
    # A rollout that makes no call meets no error; its world has it all the same.
    output, _ = rollout(config, tokenizer, [REPLY], more={"noisy": column, "session_id": 0})
    assert output.extra_fields["error_drawn"] is True and output.extra_fields["error_attempt"] == -1
    # A row without an error has none, drawn or not: one group.
    output, _ = rollout(
        config,
        tokenizer,
        [GOLD, REPLY],
        info={"rollout": "retry", "retry": None},
        more={"noisy": column, "session_id": 0},
    )
    assert output.extra_fields["error_drawn"] is False


def test_validation_rows_all_meet_their_error(config: Any, tokenizer: Any) -> None:
    output, _ = rollout(config, tokenizer, [GOLD, GOLD, REPLY], info=INFO | {"split": "validation"})
    assert output.extra_fields["error_attempt"] == 0 and "error_drawn" not in output.extra_fields


def test_training_without_the_plugin_is_an_error_and_not_silence(config: Any, tokenizer: Any) -> None:
    refuses("VERL_USE_EXTERNAL_MODULES", rollout, config, tokenizer, [GOLD])


def test_a_loop_that_does_not_say_what_it_met_ends_the_run(
    verl_with_noise: Any, training_data: Path, tiny: Path, tokenizer: Any, tmp_path: Path
) -> None:
    trainer = trainer_of(verl_with_noise, training_data, tiny, tokenizer, HALF, tmp_path)
    trainer._add_batch_to_generate()
    for fields in verl_with_noise.tq.fields.values():
        del fields["extra_fields"]["error_drawn"]
    refuses("data=retry", trainer._compute_advantage, verl_with_noise.tq.rollouts(), {})


def said(data: Path, tiny: Path, *words: str) -> list[tuple[str, str]]:
    findings = check.readiness("grpo", str(data), tiny, ["data=retry", *words]).findings
    return [(one.verdict, one.detail) for one in findings if one.what == "noisy groups"]


def test_the_check_says_what_will_be_done_and_refuses_what_cannot(training_data: Path, tiny: Path) -> None:
    assert said(training_data, tiny) == []
    assert said(training_data, tiny, "noisy=0.5") == [("ok", "2 of 4 rollouts in the mean meet the error")]
    for override, line in (
        ("actor_rollout_ref.rollout.n=2", "rollout.n is 2"),
        ("algorithm.adv_estimator=rloo", "adv_estimator is rloo"),
        ("trainer.use_v1=false", "use_v1 is false"),
        ("data.noisy=2", "data.noisy is 2: give a share"),
        ("data.noisy=half", "data.noisy is half: give a share"),
    ):
        ((verdict, detail),) = said(training_data, tiny, "noisy=0.5", override)
        assert verdict == "failed" and line in detail and "\n" not in detail


def test_other_data_do_not_take_it(training_data: Path, tiny: Path) -> None:
    with pytest.raises(NotReady, match=r"data\.noisy is not a key of verl"):
        composed(training_data, tiny, ["+data.noisy=0.5"])
    refuses("noisy is for the errors of data=retry", composed, training_data, tiny, ["noisy=0.5"])


def test_a_wrong_setting_ends_the_run_before_anything_is_trained(
    verl_with_noise: Any, training_data: Path, tiny: Path, tokenizer: Any, tmp_path: Path
) -> None:
    for override, line in (("data.noisy=2", "data.noisy is 2"), ("actor_rollout_ref.rollout.n=3", "n is 3")):
        trainer = trainer_of(verl_with_noise, training_data, tiny, tokenizer, [*HALF, override], tmp_path)
        refuses(line, trainer._load_checkpoint)
