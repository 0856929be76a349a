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
    findings = readiness("toolrl_dr", str(training_data), tiny).findings
    assert failures(findings) == []
    details = {finding.what: finding.detail for finding in findings}
    assert details["reward"] == "68 golds earn the maximum through verl's reward manager"
    assert details["train rows"] == "68 rows, all of them in RLHFDataset"
    assert details["steps"].startswith("3 (1 per epoch × 3, 4 rows")


def test_the_retry_recipe_is_ready(training_data: Path, tiny: Path) -> None:
    findings = readiness("retry", str(training_data), tiny).findings
    assert failures(findings) == []
    assert Finding("agent loop", "ok", "retry_agent") in findings


def test_the_paft_recipe_is_ready(training_data: Path, tiny: Path) -> None:
    assert failures(readiness("paft", str(training_data), tiny).findings) == []


def test_a_missing_column_is_named(training_data: Path, tiny: Path, tmp_path: Path) -> None:
    data = without(training_data, tmp_path / "data", "prompt")
    ((what, detail),) = failures(readiness("toolrl_dr", str(data), tiny).findings)
    assert what == "columns" and "has no column 'prompt'" in detail


@pytest.mark.parametrize(
    ("override", "line"),
    [
        (
            "custom_reward_function.path=reward.py",
            "custom_reward_function.path has moved and is ignored by verl 0.9.1: "
            "set reward.custom_reward_function",
        ),
        ("+actor_rollout_ref.rollout.hf=1", "actor_rollout_ref.rollout.hf is not a key of verl 0.9.1"),
        ("actor_rollout_ref.rollout.nn=4", "Could not override 'actor_rollout_ref.rollout.nn'"),
    ],
)
def test_a_moved_or_misspelt_key_is_named(training_data: Path, tiny: Path, override: str, line: str) -> None:
    ((what, detail),) = failures(
        readiness("toolrl_dr", str(training_data), tiny, overrides=[override]).findings
    )
    assert what == "config" and detail.startswith(line)


def test_a_tokenizer_that_swallows_the_tags_is_named(training_data: Path, tiny: Path, tmp_path: Path) -> None:
    model = tmp_path / "the model's folder, a=b"
    shutil.copytree(tiny, model)
    save_tokenizer(model, special_tags=True)
    ((what, detail),) = failures(readiness("toolrl_dr", str(training_data), model).findings)
    assert what == "tokenizer" and detail.startswith("<tool_call> is a special token")


def test_rows_over_the_limit_and_rows_that_vanish_are_named(training_data: Path, tiny: Path) -> None:
    short = ["data.max_prompt_length=1000"]
    found = failures(readiness("toolrl_dr", str(training_data), tiny, overrides=short).findings)
    assert [what for what, _ in found] == ["train prompts", "validation prompts"]
    assert "exceed 1000 tokens (row " in found[0][1]
    filtered = [*short, "data.filter_overlong_prompts=true"]
    found = failures(readiness("toolrl_dr", str(training_data), tiny, overrides=filtered).findings)
    assert [what for what, _ in found] == ["train rows", "validation rows"]
    assert "rows vanish in RLHFDataset" in found[0][1]


def test_a_reward_that_does_not_know_the_data_is_named(training_data: Path, tiny: Path) -> None:
    path = "reward.custom_reward_function.path=null"
    found = failures(readiness("toolrl_dr", str(training_data), tiny, overrides=[path]).findings)
    assert [what for what, _ in found] == ["reward"]


def test_a_batch_that_no_rows_fill_is_named(training_data: Path, tiny: Path) -> None:
    big = ["data.train_batch_size=128", "actor_rollout_ref.actor.ppo_mini_batch_size=128"]
    found = failures(readiness("toolrl_dr", str(training_data), tiny, overrides=big).findings)
    assert [what for what, _ in found] == ["steps"]


def test_wrong_names_are_one_line_errors(training_data: Path, tiny: Path, tmp_path: Path) -> None:
    refuses("did you mean toolrl_dr", readiness, "toolrl-dr", str(training_data), tiny)
    refuses("--model-dir takes a folder", readiness, "toolrl_dr", str(training_data), tmp_path / "nowhere")
    refuses("did you mean full", readiness, "toolrl_dr", str(training_data), tiny, config="ful")
