"""The recipes as files: their values are the paper's and ToolRL's, and each says which."""

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from robustbench_tc import train_recipes
from robustbench_tc.train_recipes.dataset import hydra_list, locate
from tests.hub import WRITER, Hub
from tests.hub_client import Client
from tests.refusals import refuses
from tests.released import released

FOLDER = Path(train_recipes.__file__).parent

PAPER = {
    "data.train_batch_size": "train_batch_size",
    "data.max_prompt_length": "max_prompt_length",
    "data.max_response_length": "max_response_length",
    "actor_rollout_ref.model.path": "base",
    "actor_rollout_ref.actor.ppo_mini_batch_size": "ppo_mini_batch",
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": "ppo_micro_batch_per_gpu",
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": "max_tokens_per_gpu",
    "actor_rollout_ref.actor.optim.lr": "lr",
    "actor_rollout_ref.rollout.n": "rollout_n",
    "actor_rollout_ref.rollout.tensor_model_parallel_size": "tensor_parallel",
    "trainer.total_epochs": "epochs",
    "trainer.save_freq": "checkpoint_every_steps",
    "trainer.test_freq": "eval_every_steps",
}
TOOLRL = {
    "algorithm.kl_ctrl.kl_coef": "kl_ctrl_kl_coef",
    "actor_rollout_ref.model.use_remove_padding": "use_remove_padding",
    "actor_rollout_ref.model.enable_gradient_checkpointing": "gradient_checkpointing",
    "actor_rollout_ref.actor.use_dynamic_bsz": "use_dynamic_bsz",
    "actor_rollout_ref.actor.use_kl_loss": "use_kl_loss",
    "actor_rollout_ref.actor.kl_loss_coef": "kl_loss_coef",
    "actor_rollout_ref.actor.kl_loss_type": "kl_loss_type",
    "actor_rollout_ref.actor.clip_ratio": "clip_ratio",
    "actor_rollout_ref.actor.grad_clip": "grad_clip",
    "actor_rollout_ref.actor.entropy_coeff": "entropy_coeff",
    "actor_rollout_ref.actor.ppo_epochs": "ppo_epochs",
    "actor_rollout_ref.actor.optim.lr_scheduler_type": "lr_schedule",
    "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio": "lr_warmup_steps_ratio",
    "actor_rollout_ref.ref.fsdp_config.param_offload": "ref_param_offload",
    "actor_rollout_ref.rollout.temperature": "rollout_temperature",
    "actor_rollout_ref.rollout.top_p": "top_p",
    "actor_rollout_ref.rollout.gpu_memory_utilization": "gpu_memory_utilization",
    "trainer.critic_warmup": "critic_warmup",
}


def recipe() -> dict[str, Any]:
    text = (FOLDER / "toolrl_dr/recipe.yaml").read_text()
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def value(config: dict[str, Any], key: str) -> Any:
    for part in key.split("."):
        config = config[part]
    # YAML 1.1 reads 1e-6 as text; hydra reads it as a number.
    return float(config) if isinstance(config, str) and config[0].isdigit() else config


@pytest.mark.parametrize(("section", "names"), [("training", PAPER), ("toolrl_script", TOOLRL)])
def test_the_values_are_those_of_the_facts(shared: Path, section: str, names: dict[str, str]) -> None:
    facts = json.loads((shared / "spec/paper/facts.json").read_bytes())[section]
    config = recipe()
    assert {key: value(config, key) for key in names} == {key: facts[name] for key, name in names.items()}


def test_every_value_says_where_it_is_from() -> None:
    for name in ("toolrl_dr/recipe.yaml", "paft/sft.yaml"):
        lines = (FOLDER / name).read_text().splitlines()
        for above, line in zip(["", *lines], lines, strict=False):
            key, _, rest = line.partition(": ")
            if rest.strip() and not line.lstrip().startswith(("#", "-")) and "???" not in rest:
                sources = ("# paper", "# toolrl", "# ours")
                plumbing = ("path", "name", "messages_key")
                assert any(word in line or word in above for word in sources) or key.strip() in plumbing, line


def test_the_scripts_can_be_run() -> None:
    for name in ("toolrl_dr", "retry", "mixture", "retry_live", "paft"):
        script = FOLDER / name / "train.sh"
        assert script.stat().st_mode & stat.S_IXUSR
        assert "set -euo pipefail" in script.read_text()


# --- Where a training config's files are found --------------------------------------------------------


def test_a_folder_gives_the_shards_of_both_splits(training_data: Path) -> None:
    shards = locate(str(training_data), "mixed")
    assert [path.name for path in shards.train] == ["train-00000-of-00001.parquet"]
    assert [path.name for path in shards.validation] == ["validation-00000-of-00001.parquet"]


def test_a_revision_of_a_build_is_refused(training_data: Path) -> None:
    refuses("unreleased build and has no version", locate, f"{training_data}@v1.0.0", "full")


def test_an_unknown_config_names_near_misses(training_data: Path) -> None:
    refuses("did you mean mixed", locate, str(training_data), "mixd")


def test_a_shard_that_was_half_written_is_named(training_data: Path, tmp_path: Path) -> None:
    shutil.copytree(training_data / "full", tmp_path / "full")
    shard = tmp_path / "full" / "validation-00000-of-00001.parquet"
    for part in (shard.read_bytes()[:-9], b""):
        shard.write_bytes(part)
        refuses(r"00001\.parquet is not a whole Parquet file", locate, str(tmp_path), "full")


def test_a_dataset_that_is_nowhere_is_one_line() -> None:
    refuses("nobody/nothing", locate, "nobody/nothing@v1", "full")


def test_the_shell_gets_two_lines(training_data: Path) -> None:
    command = [sys.executable, "-m", "robustbench_tc.train_recipes.dataset", str(training_data), "full"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    shards = locate(str(training_data), "full")
    assert done.stdout.splitlines() == [hydra_list(shards.train), hydra_list(shards.validation)]
    failed = subprocess.run([*command[:-1], "nope"], capture_output=True, text=True)
    assert failed.returncode == 1 and failed.stderr.count("\n") == 1


def test_a_release_on_the_hub_gives_the_files_that_were_published(
    training_data: Path, tmp_path: Path
) -> None:
    pytest.importorskip(
        "mlcroissant", reason="a release needs the extra audit, which verl's environment has not"
    )
    shutil.copytree(training_data, tmp_path / "build")
    release = tmp_path / "toolrl-dr"
    released(tmp_path / "build", release)
    with Hub() as hub:
        environment = hub.environment(WRITER, tmp_path / "home")
        with Client(environment) as client:
            assert "error" not in client.publish(release, "acme/toolrl-dr", WRITER)
        command = [
            sys.executable,
            "-m",
            "robustbench_tc.train_recipes.dataset",
            "acme/toolrl-dr@v1.0.0",
            "retry",
        ]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for line, split in zip(done.stdout.splitlines(), ("train", "validation"), strict=True):
        found, *more = line.strip("[]'").split("','")
        assert [Path(one).parent.name for one in more] == (["full"] if split == "validation" else [])
        assert Path(found).read_bytes() == (release / f"retry/{split}-00000-of-00001.parquet").read_bytes()
    assert locate(f"{release}@v1.0.0", "retry").train[0].is_file()
