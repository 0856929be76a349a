"""`rbtc train check`: ready where all is right, one clear line where something is not."""

# ruff: noqa: I001 - needs_verl has to come first
from tests.train_recipes import needs_verl  # noqa: F401

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
from tests.refusals import refuses
import pytest

from robustbench_tc.train_recipes.check import Finding, readiness
from tests.train_recipes.tiny import save_tokenizer


def failures(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    found = [(finding.what, finding.detail) for finding in findings if finding.verdict == "failed"]
    assert all("\n" not in detail for _, detail in found)
    return found


def without(data: Path, out: Path, column: str) -> Path:
    shutil.copytree(data, out)
    for path in (out / "full").glob("*.parquet"):
        pq.write_table(pq.read_table(path).drop_columns([column]), path)
    return out


def test_the_grpo_recipe_is_ready(training_data: Path, tiny: Path) -> None:
    findings = readiness("grpo", str(training_data), tiny).findings
    assert failures(findings) == []
    details = {finding.what: finding.detail for finding in findings}
    assert details["reward"] == "68 golds earn the maximum through verl's reward manager"
    assert details["train rows"] == "68 rows, all of them in RLHFDataset"
    assert details["steps"].startswith("3 (1 per epoch × 3, 4 rows")


@pytest.mark.parametrize("data", ["clean", "dr-mixed", "retry"])
def test_the_grpo_recipe_is_ready_for_other_data(training_data: Path, tiny: Path, data: str) -> None:
    findings = readiness("grpo", str(training_data), tiny, [f"data={data}"]).findings
    assert failures(findings) == []
    details = {finding.what: finding.detail for finding in findings}
    assert details["data"].startswith(f"{data}: ") and "64 for validation" not in details["data"]


@pytest.mark.parametrize(
    "words", [["data=paft"], ["data=clean"], ["hold_out=reward", "data.train_batch_size=16"]]
)
def test_the_sft_recipe_is_ready(training_data: Path, tiny: Path, words: list[str]) -> None:
    assert failures(readiness("sft", str(training_data), tiny, words).findings) == []


def test_weights_that_cannot_be_saved_are_named(training_data: Path, tiny: Path, tmp_path: Path) -> None:
    model = tmp_path / "gguf"
    shutil.copytree(tiny, model, ignore=shutil.ignore_patterns("*.safetensors"))
    (model / "model-Q4_1.gguf").write_bytes(b"GGUF")
    ((what, detail),) = failures(readiness("sft", str(training_data), model).findings)
    assert what == "weights" and detail.startswith("model-Q4_1.gguf is GGUF") and "docs/training.md" in detail


def test_a_missing_column_is_named(training_data: Path, tiny: Path, tmp_path: Path) -> None:
    data = without(training_data, tmp_path / "data", "prompt")
    ((what, detail),) = failures(readiness("grpo", str(data), tiny).findings)
    assert what == "data" and "missing required field `prompt`" in detail


def test_a_tokenizer_that_swallows_the_tags_is_named(training_data: Path, tiny: Path, tmp_path: Path) -> None:
    model = tmp_path / "the model's folder, a=b"
    shutil.copytree(tiny, model)
    save_tokenizer(model, special_tags=True)
    ((what, detail),) = failures(readiness("grpo", str(training_data), model).findings)
    assert what == "tokenizer" and detail.startswith("<tool_call> is a special token")


SHORT = "data.max_prompt_length=1000"
NOT_READY = {
    "a moved key": (
        ["custom_reward_function.path=reward.py"],
        ["config"],
        "custom_reward_function.path has moved and is ignored by verl 0.9.1: "
        "set reward.custom_reward_function",
    ),
    "an unknown key": (
        ["+actor_rollout_ref.rollout.hf=1"],
        ["config"],
        "actor_rollout_ref.rollout.hf is not a key of verl 0.9.1",
    ),
    "a misspelt key": (
        ["actor_rollout_ref.rollout.nn=4"],
        ["config"],
        "Could not override 'actor_rollout_ref.rollout.nn'",
    ),
    "prompts over the limit": (
        [SHORT],
        ["train prompts", "validation prompts"],
        "64 of 68 exceed 1000 tokens (row ",
    ),
    "rows that vanish": (
        [SHORT, "data.filter_overlong_prompts=true"],
        ["train rows", "validation rows"],
        "64 of 68 rows vanish in RLHFDataset",
    ),
    "a reward that does not know the data": (
        ["reward.custom_reward_function.path=null"],
        ["reward"],
        "the reward manager raises: ",
    ),
    "a batch that no rows fill": (
        ["data.train_batch_size=128", "actor_rollout_ref.actor.ppo_mini_batch_size=128"],
        ["steps"],
        "68 rows make no batch of 128",
    ),
}
"""Words of the recipe, which checks they fail, and how the first finding begins."""


@pytest.mark.parametrize("case", NOT_READY)
def test_what_is_not_ready_is_named(training_data: Path, tiny: Path, case: str) -> None:
    words, checks, line = NOT_READY[case]
    found = failures(readiness("grpo", str(training_data), tiny, words).findings)
    assert [what for what, _ in found] == checks and found[0][1].startswith(line)


def test_wrong_names_are_one_line_errors(training_data: Path, tiny: Path, tmp_path: Path) -> None:
    refuses("Invalid enum value 'full'", readiness, "grpo", str(training_data), tiny, ["data=full"])
    refuses("--model-dir takes a folder", readiness, "grpo", str(training_data), tmp_path / "nowhere")
    assert [what for what, _ in failures(readiness("grpo", "nobody/nothing@v1", tiny).findings)] == ["data"]
