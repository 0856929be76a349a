"""Where a training config's files are found."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from robustbench_tc.train_recipes.dataset import hydra_list, locate
from tests.hub import WRITER, Hub
from tests.hub_client import Client
from tests.refusals import refuses
from tests.released import released


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
