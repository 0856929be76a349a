"""verl's agent loop in a world, with a fake model server, on a CPU."""

# ruff: noqa: I001 - needs_verl has to come first
from tests.train_recipes import needs_verl  # noqa: F401

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import pyarrow.parquet as pq

from robustbench_tc.api.building import build_live
from robustbench_tc.schema import LiveRow
from robustbench_tc.schema import loads, record
from robustbench_tc.train_recipes.check import Finding, readiness, score_golds
from robustbench_tc.train_recipes.compose import compose
from robustbench_tc.train_recipes.dataset import locate
from robustbench_tc.train_recipes.retry_live import rows
from robustbench_tc.train_recipes.retry_live.rollout import play_gold

from .test_agent_loop import Server


@pytest.fixture(scope="module")
def live_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live")
    build_live(out=folder / "robustbench-tc-live", kinds=("transient_timeout",))
    rows.write(str(folder / "robustbench-tc-live"), folder / "live-training")
    return folder / "live-training"


@pytest.fixture(scope="module")
def config(live_data: Path, tiny: Path) -> Any:
    return compose("retry_live", locate(str(live_data), "retry_live"), tiny)


def test_a_whole_task_is_played_and_its_end_state_rewarded(
    config: Any, tokenizer: Any, live_data: Path
) -> None:
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap
    from verl.utils.dataset.rl_dataset import RLHFDataset

    from robustbench_tc.train_recipes.retry_live.agent_loop import LiveAgentLoop
    from robustbench_tc.train_recipes.retry_live.reward import compute_score

    shard = locate(str(live_data), "retry_live").train[0]
    found = [row for row in pq.read_table(shard).to_pylist() if '"clean"' in row["extra_info"]]
    info = next(
        info
        for info in (loads(row["extra_info"]) for row in found)
        if info["type_code"] == "clean" and len(record(loads(info["live_row"]), LiveRow).turns) == 1
    )
    row = record(loads(info["live_row"]), LiveRow)
    texts, outcome = asyncio.run(play_gold(row))
    server = Server(tokenizer, texts)

    async def run() -> Any:
        loop = LiveAgentLoop(
            trainer_config=DictConfigWrap(config),
            server_manager=server,
            tokenizer=tokenizer,
            processor=None,
            dataset_cls=RLHFDataset,
            data_config=DictConfigWrap(config.data),
            hf_model_type="qwen2",
            max_attempts=16,
        )
        prompt = [{"role": "system", "content": "Tools."}, {"role": "user", "content": "Go."}]
        return await loop.run({"temperature": 1.0}, raw_prompt=prompt, extra_info=info)

    output = asyncio.run(run())
    assert [text.strip() for text in output.extra_fields["attempts"]] == texts
    world = json.loads(output.extra_fields["world"])
    assert world["reached"] and world["finished"] and world["calls"] == outcome.calls
    assert "<obs> [{" in server.prompts[1]
    assert compute_score("live", "", "", {**info, **output.extra_fields})["score"] == 4.0
    masked = [t for t, m in zip(output.response_ids, output.response_mask, strict=True) if not m]
    assert "<obs>" in tokenizer.decode(masked) and "<tool_call>" not in tokenizer.decode(masked)


def test_golds_earn_the_maximum_and_the_recipe_is_ready(
    config: Any, tokenizer: Any, live_data: Path, tiny: Path
) -> None:
    scores = asyncio.run(score_golds(config, tokenizer, locate(str(live_data), "retry_live").train, 12))
    assert len(scores) == 12 and all(score == best for score, best in scores)
    wide = ["data.max_prompt_length=8192"]  # the tiny model's tokens are bytes
    findings = readiness("retry_live", str(live_data), tiny, overrides=wide).findings
    assert [one for one in findings if one.verdict == "failed"] == []
    assert Finding("agent loop", "ok", "live_agent") in findings
