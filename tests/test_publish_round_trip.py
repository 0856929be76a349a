"""Publish, then load: every config of two versions side by side, byte for byte; the other two kinds."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from robustbench_tc import taxonomy
from robustbench_tc.api import build_live
from robustbench_tc.builders.configs import CONFIGS, TABLES, combined
from robustbench_tc.builders.toolrl_dr import build
from robustbench_tc.builders.toolrl_spec import TrainingSpec
from robustbench_tc.builders.toolrl_versions import Checks
from robustbench_tc.dataset_cards.training import training_card
from robustbench_tc.eval.score.reward import earns_maximum
from robustbench_tc.io import manifest
from robustbench_tc.release.diff import configs_of, diff

from .builders import rlla_rows as made
from .hub import WRITER, Hub
from .hub_client import Client, rows_hash
from .released import released, small_build
from .trees import write

REPO = "acme/robustbench-tc"


@pytest.fixture(scope="module")
def versions(client: Client, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """v1.0.0 and v1.0.1 of the whole bundled benchmark, both published."""
    found = {}
    for seed, version in enumerate(("1.0.0", "1.0.1")):
        folder = tmp_path_factory.mktemp(version)
        small_build(folder / "build", seed=seed, codes=taxonomy.codes())
        released(folder / "build", folder / "robustbench-tc", version)
        done = client.publish(folder / "robustbench-tc", REPO, WRITER)
        assert done["read_back"] == len(manifest.files_of(folder / "robustbench-tc")) + 1
        found[f"v{version}"] = folder / "robustbench-tc"
    assert diff(*found.values()).moves_scores
    return found


def contents_of(folder: Path) -> dict[str, dict[str, dict[str, str]]]:
    """What a load of the release must give: rows and file hashes per config."""
    entries = manifest.read_manifest(folder).files
    found = {}
    for config, paths in configs_of(folder).items():
        names = [path.relative_to(folder).as_posix() for path in paths]
        rows = [row for path in paths for row in pq.read_table(path).to_pylist()]
        files = {name: entries[name].sha256 for name in names}
        found[config] = {"rows": {"test": rows_hash(rows)}, "files": files}
    return found


@pytest.mark.parametrize("revision", ["v1.0.0", "v1.0.1"])
def test_every_config_loads_at_its_revision_byte_for_byte(
    revision: str, client: Client, versions: dict[str, Path]
) -> None:
    expected = contents_of(versions[revision])
    assert set(expected) == {*CONFIGS, *TABLES}
    assert client.load(REPO, revision, list(expected)) == expected
    folder, together = versions[revision], combined(expected)
    assert list(together) == ["perturbed", *taxonomy.COMPONENTS]
    for config, found in client.load(REPO, revision, list(together)).items():
        paths = (path for code in together[config] for path in configs_of(folder)[code])
        rows = [row for path in paths for row in pq.read_table(path).to_pylist()]
        assert found["rows"] == {"test": rows_hash(rows)}
    found = client.verify(str(folder), against=f"{REPO}@{revision}")
    assert found["intact"] and "eval.yaml" in manifest.read_manifest(folder).files


def test_every_config_streams_the_same_rows(client: Client, versions: dict[str, Path]) -> None:
    expected = {config: found["rows"] for config, found in contents_of(versions["v1.0.0"]).items()}
    streamed = client.load(REPO, "v1.0.0", list(expected), streaming=True)
    assert {config: found["rows"] for config, found in streamed.items()} == expected


def test_a_checkpoint_goes_to_a_model_repository(hub: Hub, client: Client, tmp_path: Path) -> None:
    results = [{"dataset": "robustbench-tc 1.0.0", "mode": "prompt", "clean": 0.5, "reward": 0.25}]
    description = {
        "name": "ToolRL-DR-Full tiny",
        "base_model": "acme/tiny",
        "licence": "apache-2.0",
        "dataset": "toolrl-dr",
        "dataset_version": "1.0.0",
        "dataset_config": "full",
        "recipe_name": "grpo",
        "recipe": {"learning_rate": 1e-6, "steps": 183},
        "results": results,
    }
    files: dict[str, str | bytes] = {
        "model.safetensors": bytes(range(256)) * 40,
        "config.json": "{}",
        "LICENSE": "the base model's own",
        "README.md": "what the trainer wrote",
        "checkpoint.json": json.dumps(description),
    }
    frozen = released(write(tmp_path / "checkpoint", files), tmp_path / "release")
    assert frozen.kind == "checkpoint" and frozen.gate is None
    assert (tmp_path / "release" / "LICENSE").read_text() == "the base model's own"
    card = (tmp_path / "release" / "README.md").read_text()
    for fact in ("acme/tiny", "version 1.0.0", "183", "| robustbench-tc 1.0.0 | prompt | 0.5 | 0.25 |"):
        assert fact in card
    done = client.publish(tmp_path / "release", "acme/tiny-dr", WRITER)
    assert done["read_back"] == len(frozen.files) + 1
    assert hub.tags("models/acme/tiny-dr") == {"v1.0.0": done["commit"]}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of training data made from invented rows."""
    folder = tmp_path_factory.mktemp("training")
    (folder / "rlla").mkdir()
    made.write_parquet(folder / "rlla" / "train.parquet", [made.ferry_row(n) for n in range(24)])
    made.write_parquet(folder / "rlla" / "test.parquet", [made.ferry_row(1_000 + n) for n in range(3)])
    spec = TrainingSpec(rlla=folder / "rlla", types=("same_name_A", "CD"))
    build(spec, folder / "build", checks=Checks(earns_maximum=earns_maximum), card=training_card)
    released(folder / "build", folder / "toolrl-dr", "0.1.0")
    return folder / "toolrl-dr"


def test_training_data_make_the_same_round_trip(hub: Hub, client: Client, training: Path) -> None:
    frozen = manifest.read_manifest(training)
    assert frozen.kind == "toolrl-dr" and frozen.rows["full"] == 24 + 2 * 3
    done = client.publish(training, "acme/toolrl-dr", WRITER)
    assert hub.tags("datasets/acme/toolrl-dr") == {"v0.1.0": done["commit"]}
    for config, found in client.load("acme/toolrl-dr", "v0.1.0", ["full", "mixed", "retry", "paft"]).items():
        assert set(found["rows"]) == {"train", "validation"}
        for name, sha256 in found["files"].items():
            assert name.startswith(f"{config}/") and frozen.files[name].sha256 == sha256


def test_the_live_dataset_makes_the_same_round_trip(hub: Hub, client: Client, tmp_path: Path) -> None:
    """A world of one's own, published, loaded from the Hub at its tag, verified against it."""
    purse = Path(__file__).parent / "worlds" / "purse.py"
    kinds = ("silent_no_op", "transient_timeout")
    build_live(tmp_path / "build", worlds=(str(purse),), kinds=kinds)
    release = tmp_path / "robustbench-tc-live"
    frozen = released(tmp_path / "build", release, "1.0.0")
    configs = ["tasks", "live_transient_timeout", "live_silent_no_op"]
    assert frozen.kind == "robustbench-tc-live" and list(frozen.rows) == configs
    repo = "acme/robustbench-tc-live"
    done = client.publish(release, repo, WRITER)
    assert hub.tags(f"datasets/{repo}") == {"v1.0.0": done["commit"]}
    assert client.load(repo, "v1.0.0", configs) == contents_of(release)
    assert client.verify(f"{repo}@v1.0.0")["intact"]
