"""The retry-aware rollout with a fake model server, on a CPU."""

# ruff: noqa: I001 - needs_verl has to come first
from tests.train_recipes import needs_verl  # noqa: F401

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..known import INJECTED_ERRORS
from robustbench_tc.train_recipes import check, retry_reward
from robustbench_tc import schema
from robustbench_tc.train_recipes.reward import compute_score
import pyarrow.parquet as pq
from robustbench_tc.api.building import build_live
from robustbench_tc.train_recipes.live_rollout import play_gold
from tests.train_recipes.composed import composed, shards_of

THOUGHT = "<think> Try. </think>"
RATE_LIMIT = INJECTED_ERRORS["transient_rate_limit"]


def call(*names: str, **parameters: Any) -> str:
    lines = "\n".join(json.dumps({"name": name, "parameters": parameters}) for name in names)
    return f"{THOUGHT}\n<tool_call>\n{lines}\n</tool_call>"


GOLD = call("findFerryTimes", harbour="Turku")
REPLY = f"{THOUGHT}\n<response> At nine. </response>"
INFO = {
    "clean_id": "rlla__x",
    "split": "train",
    "rollout": "retry",
    "retry": {"type_code": "transient_rate_limit", "error": RATE_LIMIT, "position": 1},
}


class Server:
    """Answers each generation with the next text; remembers the prompts."""

    def __init__(self, tokenizer: Any, texts: list[str]) -> None:
        self._tokenizer, self._texts = tokenizer, list(texts)
        self.prompts: list[str] = []
        self.priorities: list[int] = []

    async def generate(
        self, request_id: str, *, prompt_ids: list[int], sampling_params: Any, **more: Any
    ) -> Any:
        from verl.workers.rollout.replica import TokenOutput

        self.prompts.append(self._tokenizer.decode(prompt_ids))
        self.priorities.append(more["priority"])
        ids = self._tokenizer.encode(self._texts.pop(0) + "<|im_end|>", add_special_tokens=False)
        step = {"min_global_steps": 7, "max_global_steps": 7 + len(self.prompts)}
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids), extra_fields=step)


@pytest.fixture(scope="module")
def config(training_data: Path, tiny: Path) -> Any:
    return composed(training_data, tiny, ["data=retry"])


def rollout(
    config: Any,
    tokenizer: Any,
    texts: list[str],
    info: dict[str, Any] = INFO,
    priority: Any = 0,
    more: dict[str, Any] | None = None,
    **arguments: Any,
) -> tuple[Any, Server]:
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap
    from verl.utils.dataset.rl_dataset import RLHFDataset

    from robustbench_tc.train_recipes.agent_loop import RolloutLoop

    server = Server(tokenizer, texts)
    prompt = [{"role": "system", "content": "Tools."}, {"role": "user", "content": "When?"}]

    async def run() -> Any:
        loop = RolloutLoop(
            trainer_config=DictConfigWrap(config),
            server_manager=server,
            tokenizer=tokenizer,
            processor=None,
            dataset_cls=RLHFDataset,
            data_config=DictConfigWrap(config.data),
            hf_model_type="qwen2",
            **arguments,
        )
        return await loop.run(
            {"temperature": 1.0}, priority, raw_prompt=prompt, extra_info=info, **(more or {})
        )

    return asyncio.run(run()), server


def test_the_first_call_meets_the_error_and_the_second_succeeds(config: Any, tokenizer: Any) -> None:
    output, server = rollout(config, tokenizer, [GOLD, GOLD, REPLY], priority=np.int64(5))
    assert output.extra_fields["error_attempt"] == 0
    assert [text.strip() for text in output.extra_fields["attempts"]] == [GOLD, GOLD, REPLY]
    assert f"<|im_start|>user\n<obs> {RATE_LIMIT} </obs><|im_end|>" in server.prompts[1]
    assert '<obs> [{"name": "findFerryTimes", "results": {"status": "success"}}] </obs>' in server.prompts[2]
    assert server.prompts[1].count(RATE_LIMIT) == server.prompts[2].count(RATE_LIMIT) == 1
    # Every generation has the priority of its rollout; the weights that took part are named.
    assert server.priorities == [5, 5, 5] and all(type(one) is int for one in server.priorities)
    assert (output.extra_fields["min_global_steps"], output.extra_fields["max_global_steps"]) == (7, 10)


def test_what_the_tool_said_is_masked_and_every_sampled_token_is_trained_on(
    config: Any, tokenizer: Any
) -> None:
    output, _ = rollout(config, tokenizer, [GOLD, GOLD, REPLY])
    trained = [t for t, m in zip(output.response_ids, output.response_mask, strict=True) if m]
    masked = [t for t, m in zip(output.response_ids, output.response_mask, strict=True) if not m]
    assert tokenizer.decode(trained) == f"{GOLD}<|im_end|>{GOLD}<|im_end|>{REPLY}<|im_end|>"
    assert RATE_LIMIT in tokenizer.decode(masked) and "<tool_call>" not in tokenizer.decode(masked)
    assert [p == -0.5 for p in output.response_logprobs] == [bool(m) for m in output.response_mask]
    assert len(output.response_ids) == len(output.response_mask) == len(output.response_logprobs)
    assert tokenizer.decode(output.prompt_ids).endswith("<|im_start|>assistant\n")


def test_the_reward_manager_scores_the_call_after_the_error(config: Any, tokenizer: Any) -> None:
    from verl.trainer.ppo.reward import load_reward_manager

    from robustbench_tc.train_recipes.check import reward_batch

    other = call("identify_mushroom", cap="red")
    for texts, score in {(other, GOLD): 1.6, (GOLD, GOLD): 4.0, (GOLD, REPLY): -0.2}.items():
        output, _ = rollout(config, tokenizer, [*texts, REPLY])
        row = {
            "data_source": "rlla",
            "reward_model": {"style": "rule", "ground_truth": GOLD},
            "extra_info": dict(INFO),
        }
        batch = reward_batch(tokenizer, row, tokenizer.decode(output.response_ids))
        batch.non_tensor_batch["tool_extra_fields"] = np.array([output.extra_fields], dtype=object)

        async def run(batch: Any = batch) -> Any:
            return await load_reward_manager(config, tokenizer).run_single(batch)

        result = asyncio.run(run())
        assert result["reward_score"] == pytest.approx(score)
        assert result["reward_extra_info"]["met_error"] == 1.0


def test_no_call_means_no_error(config: Any, tokenizer: Any) -> None:
    output, server = rollout(config, tokenizer, [REPLY])
    assert output.extra_fields["error_attempt"] == -1 and len(server.prompts) == 1


def test_a_row_without_an_error_only_meets_success(config: Any, tokenizer: Any) -> None:
    output, server = rollout(config, tokenizer, [GOLD, REPLY], info={"rollout": "retry", "retry": None})
    assert output.extra_fields["error_attempt"] == -1
    assert "success" in server.prompts[1]


def test_a_refused_credential_is_refused_again(config: Any, tokenizer: Any) -> None:
    error = INJECTED_ERRORS["transient_auth_error"]
    info = INFO | {"retry": {"type_code": "transient_auth_error", "error": error, "position": 1}}
    report = f"{THOUGHT}\n<response> The ferry service refused my credentials. </response>"
    output, server = rollout(config, tokenizer, [GOLD, GOLD, report], info=info)
    assert server.prompts[2].count(f"<obs> {error} </obs>") == 2 and "success" not in server.prompts[2]
    found = info | output.extra_fields
    assert output.extra_fields["error_attempt"] == 0
    assert retry_reward.compute_score("rlla", "", GOLD, found)["score"] == pytest.approx(2.2)


def test_several_calls_of_any_name_are_one_answer(config: Any, tokenizer: Any) -> None:
    both = call("findFerryTimes", "Library Hours")
    _, server = rollout(config, tokenizer, [both, both, REPLY])
    assert server.prompts[1].count(RATE_LIMIT) == 1
    assert '{"name": "Library Hours", "results"' in server.prompts[2]


def test_the_rollout_ends_after_its_attempts_and_within_its_room(config: Any, tokenizer: Any) -> None:
    output, server = rollout(config, tokenizer, [GOLD] * 9, retry_attempts=4)
    assert len(server.prompts) == 4
    info = INFO | output.extra_fields
    assert retry_reward.compute_score("rlla", "", GOLD, info)["charged"] == 1.0
    output, server = rollout(config, tokenizer, [GOLD.replace("Try", "Try " * 600)] * 9)
    assert len(server.prompts) == 1 and output.extra_fields["error_attempt"] == -1
    assert len(output.response_ids) <= config.data.max_response_length


def test_golds_earn_the_maximum_under_the_retry_reward(
    config: Any, tokenizer: Any, training_data: Path
) -> None:
    scores = asyncio.run(
        check.score_golds(config, tokenizer, shards_of(training_data, ["data=retry"]).train, 70)
    )
    assert len(scores) == 70 and all(score == best for score, best in scores)


def test_verl_builds_the_loop_from_its_file(config: Any, tokenizer: Any) -> None:
    import hydra
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap, ToolListWrap
    from verl.utils.dataset.rl_dataset import RLHFDataset

    (entry,) = OmegaConf.load(config.actor_rollout_ref.rollout.agent.agent_loop_config_path)
    assert entry.name == config.actor_rollout_ref.rollout.agent.default_agent_loop
    loop = hydra.utils.instantiate(
        config=entry,
        trainer_config=DictConfigWrap(config),
        server_manager=Server(tokenizer, []),
        tokenizer=tokenizer,
        processor=None,
        hf_model_type="qwen2",
        dataset_cls=RLHFDataset,
        data_config=DictConfigWrap(config.data),
        tools=ToolListWrap([]),
    )
    assert type(loop).__name__ == "RolloutLoop"


# --- verl's agent loop in a world, with a fake model server, on a CPU ---------------------------------


# ruff: noqa: I001 - needs_verl has to come first


@pytest.fixture(scope="module")
def live_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live")
    build_live(out=folder / "robustbench-tc-live", kinds=("transient_timeout",))
    return folder / "robustbench-tc-live"


@pytest.fixture(scope="module")
def live_config(live_data: Path, tiny: Path) -> Any:
    return composed(live_data, tiny, ["data=live"])


def test_a_whole_task_is_played_and_its_end_state_rewarded(
    live_config: Any, tokenizer: Any, live_data: Path
) -> None:
    shard = shards_of(live_data, ["data=live"]).train[0]
    found = [row for row in pq.read_table(shard).to_pylist() if '"clean"' in row["extra_info"]]
    info = next(
        info
        for info in (schema.loads(row["extra_info"]) for row in found)
        if info["type_code"] == "clean"
        and len(schema.record(schema.loads(info["live_row"]), schema.LiveRow).turns) == 1
    )
    row = schema.record(schema.loads(info["live_row"]), schema.LiveRow)
    texts, outcome = asyncio.run(play_gold(row))
    output, server = rollout(live_config, tokenizer, texts, info, live_attempts=16)
    assert [text.strip() for text in output.extra_fields["attempts"]] == texts
    world = json.loads(output.extra_fields["world"])
    assert world["reached"] and world["finished"] and world["calls"] == outcome.calls
    assert "<obs> [{" in server.prompts[1]
    assert compute_score("live", "", "", {**info, **output.extra_fields})["score"] == 4.0
    masked = [t for t, m in zip(output.response_ids, output.response_mask, strict=True) if not m]
    assert "<obs>" in tokenizer.decode(masked) and "<tool_call>" not in tokenizer.decode(masked)


def test_golds_earn_the_maximum_and_the_recipe_is_ready(
    live_config: Any, tokenizer: Any, live_data: Path, tiny: Path
) -> None:
    scores = asyncio.run(
        check.score_golds(live_config, tokenizer, shards_of(live_data, ["data=live"]).train, 12)
    )
    assert len(scores) == 12 and all(score == best for score, best in scores)
    wide = ["data.max_prompt_length=8192"]  # the tiny model's tokens are bytes
    findings = check.readiness("grpo", str(live_data), tiny, ["data=live", *wide]).findings
    assert [one for one in findings if one.verdict == "failed"] == []
