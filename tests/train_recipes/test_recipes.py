"""The recipes as files: their values are the paper's and ToolRL's, and each says which."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from robustbench_tc import train_recipes
from robustbench_tc.train_recipes import grpo, recipe as recipes, sft, start
from robustbench_tc.train_recipes.rows import locate
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
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / "grpo.yaml").read_text())["verl"]
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
    for name in ("grpo.yaml", "sft.yaml"):
        lines = (
            (FOLDER / name)
            .read_text()
            .partition("\nverl:\n")[2]
            .partition("\nverl_with:")[0]
            .partition("\ntrl:")[0]
            .splitlines()
        )
        for above, line in zip(["", *lines], lines, strict=False):
            key, _, rest = line.partition(": ")
            if rest.strip() and not line.lstrip().startswith(("#", "-")) and "???" not in rest:
                sources = ("# paper", "# toolrl", "# ours")
                plumbing = ("path", "name", "messages_key")
                assert any(word in line or word in above for word in sources) or key.strip() in plumbing, line


def test_the_recipe_that_ships_is_the_papers() -> None:
    shipped, words = recipes.read_recipe("grpo", ["trainer.n_gpus_per_node=4"])
    assert words == ["trainer.n_gpus_per_node=4"]
    assert (shipped.data, shipped.alpha, shipped.shaping, shipped.hold_out) == ("dr-full", None, 0, None)
    reward = shipped.verl["reward"]["custom_reward_function"]
    assert (reward["path"], reward["name"]) == ("pkg://robustbench_tc.eval.score.reward", "compute_score")
    assert shipped.values == shipped.verl


def test_trls_values_are_made_of_the_same_file() -> None:
    """As they were written out before: 128 answers an update, 64 prompts with 4 answers at a time."""
    values = recipes.read_recipe("grpo")[0].values
    made = {name: recipes.value_at(values, key) for name, key in grpo.FIELDS.items()} | grpo._batches(values)
    assert made == {
        "per_device_train_batch_size": 16,
        "gradient_accumulation_steps": 8,
        "steps_per_generation": 16,
        "max_completion_length": 1024,
        "num_generations": 4,
        "temperature": 1.0,
        "top_p": 1.0,
        "epsilon": 0.2,
        "beta": 0.001,
        "entropy_coef": 0.001,
        "max_grad_norm": 1.0,
        "learning_rate": 1e-6,
        "lr_scheduler_type": "constant",
        "num_train_epochs": 3,
        "eval_steps": 10,
    }
    values = recipes.read_recipe("sft")[0].values
    assert all(recipes.value_at(values, key) is not None for key in sft.FIELDS.values())


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("grpo", ["data=full"], "Invalid enum value 'full'"),
        ("grpo", ["data=paft"], "data=paft is not for the recipe grpo"),
        ("sft", ["data=retry"], "data=retry is not for the recipe sft"),
        ("sft", ["shaping=0.25"], "shaping is part of ToolRL's reward"),
        ("grpo", ["data=live", "shaping=0.25"], "shaping is part of ToolRL's reward"),
        ("grpo", ["noisy=0.5"], "noisy is for the errors of data=retry"),
        ("grpo", ["data=retry", "noisy=2"], "<= 1.0"),
        ("grpo", ["shaping=-0.25"], ">= 0.0"),
        ("grpo", ["attempts={live: 0}"], "Expected `int` >= 1"),
        ("grpo", ["attempts={lives: 3}"], "Invalid enum value .lives."),
        ("grpo", ["attempts=3"], "Expected `object`"),
        ("sft", ["alpha=.nan"], "cannot be sent as JSON"),
        ("sft", ["hold_out="], "the file is empty"),
    ],
)
def test_switches_that_do_not_go_together_are_one_line(name: Any, words: list[str], said: str) -> None:
    refuses(said, recipes.read_recipe, name, words)


def test_a_recipe_of_ones_own(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text((FOLDER / "grpo.yaml").read_text().replace("data: dr-full ", "data: dr-mixed "))
    assert recipes.read_recipe("grpo", [], mine)[0].data == "dr-mixed"
    mine.write_text(mine.read_text() + "sampling: minimax\n")
    refuses("unknown field `sampling`", recipes.read_recipe, "grpo", [], mine)
    refuses("no recipe", recipes.read_recipe, "grpo", [], tmp_path / "none.yaml")
    for text in ("hello", "- data", "3"):
        mine.write_text(text)
        refuses("is not a mapping", recipes.read_recipe, "grpo", ["data=clean"], mine)
    assert recipes.read_recipe("grpo", ["attempts={retry: 2}"])[0].attempts == {"retry": 2, "live": 16}


def test_a_value_that_a_recipe_of_ones_own_lacks_or_has_wrong_is_named(
    training_data: Path, tmp_path: Path
) -> None:
    shipped = {name: (FOLDER / f"{name}.yaml").read_text() for name in ("grpo", "sft")}
    cases: tuple[tuple[Any, str, str], ...] = (
        (sft.sft, shipped["grpo"], "verl.data.micro_batch_size_per_gpu is missing"),
        (sft.sft, shipped["sft"].replace("gpu: 4  ", "gpu: 0  "), "micro_batch_size_per_gpu .*>= 1"),
        (sft.sft, "data: paft\nverl: {data: 3}\ntrl: {}\n", "verl.data.train_batch_size is missing or wrong"),
        (
            grpo.grpo,
            shipped["grpo"].replace(" n: 4 ", " n: x "),
            "verl.actor_rollout_ref.rollout.n is missing",
        ),
        (grpo.grpo, shipped["grpo"].replace("  optim:\n", "  opt:\n"), "actor.optim.lr is missing or wrong"),
    )
    for recipe, text, said in cases:
        (tmp_path / "mine.yaml").write_text(text)
        given: Any = {"dataset": str(training_data), "recipe": tmp_path / "mine.yaml"}
        refuses(said, recipe, "base", tmp_path / "run", **given)
        assert not (tmp_path / "run").exists()


def test_verl_is_started_on_rows_and_config_of_the_runs_folder(
    training_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, command: begun.append(command))
    monkeypatch.setenv("VERL_USE_EXTERNAL_MODULES", "mine")
    out = tmp_path / "run"
    words = ["data=retry", "noisy=0.5", "trainer.n_gpus_per_node=4"]
    run = start.begin("grpo", str(training_data), words, "base", out, None, None, 0)
    refuses("--lora is for TRL", start.on_verl, run, {"--cpu": False, "--lora": 2})
    monkeypatch.setattr(start, "find_spec", lambda name: None)
    refuses("verl is not installed", start.on_verl, run, {})
    assert not out.exists() and not begun
    monkeypatch.setattr(start, "find_spec", lambda name: name)
    start.on_verl(run, {})
    start.on_verl(run, {})  # a run that was stopped
    assert begun[0] == begun[1] and begun[0][1:3] == ["-m", "verl.trainer.main_ppo"]
    assert begun[0][3:] == ["--config-path", str(out), "--config-name", "grpo", "trainer.n_gpus_per_node=4"]
    assert os.environ["VERL_USE_EXTERNAL_MODULES"].startswith(f"mine,{start.PLUGIN}")
    written = yaml.safe_load((out / "grpo.yaml").read_text())
    assert written["data"]["noisy"] == 0.5 and written["data"]["max_response_length"] == 2048
    assert written["actor_rollout_ref"]["model"]["path"] == "base"
    agent = written["actor_rollout_ref"]["rollout"]["agent"]
    (loop,) = yaml.safe_load(Path(agent["agent_loop_config_path"]).read_text())
    assert loop["name"] == agent["default_agent_loop"] and loop["retry_attempts"] == 4
    for split in ("train_files", "val_files"):
        assert all(Path(path).is_file() for path in written["data"][split])
    other = start.begin("grpo", str(training_data), [], "base", out, None, None, 0)
    refuses("other settings or rows", start.on_verl, other, {})


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
        refuses(r"00001\.parquet is not a readable Parquet file", locate, str(tmp_path), "full")


def test_a_dataset_that_is_nowhere_is_one_line() -> None:
    refuses("nobody/nothing", locate, "nobody/nothing@v1", "full")


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
        line = "from robustbench_tc.train_recipes.rows import locate as l; "
        line += "[print(*paths) for paths in l('acme/toolrl-dr@v1.0.0', 'retry')]"
        done = subprocess.run([sys.executable, "-c", line], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for line, split in zip(done.stdout.splitlines(), ("train", "validation"), strict=True):
        found, *more = line.split(" ")
        assert [Path(one).parent.name for one in more] == (["full"] if split == "validation" else [])
        assert Path(found).read_bytes() == (release / f"retry/{split}-00000-of-00001.parquet").read_bytes()
    assert locate(f"{release}@v1.0.0", "retry").train[0].is_file()
