"""Where a training config's files are found."""

import subprocess
import sys
from pathlib import Path

import pytest

from robustbench_tc.errors import UserError
from robustbench_tc.train_recipes.dataset import hydra_list, locate


def test_a_folder_gives_the_shards_of_both_splits(training_data: Path) -> None:
    shards = locate(str(training_data), "mixed")
    assert [path.name for path in shards.train] == ["train-00000-of-00001.parquet"]
    assert [path.name for path in shards.validation] == ["validation-00000-of-00001.parquet"]


def test_a_revision_of_a_build_is_refused(training_data: Path) -> None:
    with pytest.raises(UserError, match="unreleased build and has no version"):
        locate(f"{training_data}@v1.0.0", "full")


def test_an_unknown_config_names_near_misses(training_data: Path) -> None:
    with pytest.raises(UserError, match="did you mean mixed"):
        locate(str(training_data), "mixd")


def test_a_dataset_that_is_nowhere_is_one_line() -> None:
    with pytest.raises(UserError, match="nobody/nothing") as caught:
        locate("nobody/nothing@v1", "full")
    assert "\n" not in str(caught.value)


def test_the_shell_gets_two_lines(training_data: Path) -> None:
    command = [sys.executable, "-m", "robustbench_tc.train_recipes.dataset", str(training_data), "full"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    shards = locate(str(training_data), "full")
    assert done.stdout.splitlines() == [hydra_list(shards.train), hydra_list(shards.validation)]
    failed = subprocess.run([*command[:-1], "nope"], capture_output=True, text=True)
    assert failed.returncode == 1 and failed.stderr.count("\n") == 1
