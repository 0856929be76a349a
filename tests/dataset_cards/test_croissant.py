"""croissant.json validates with mlcroissant, and its records are the release's rows."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustbench_tc.audits.report import AuditReport
from robustbench_tc.dataset_cards.croissant import croissant
from robustbench_tc.dataset_cards.facts import Release
from robustbench_tc.io import manifest
from robustbench_tc.io.manifest import Manifest

from ..refusals import refuses
from ..released import released, small_build


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("croissant")
    released(small_build(folder / "build", codes=("CD_AB",)), folder / "robustbench-tc")
    return folder / "robustbench-tc"


def describe(folder: Path) -> None:
    said = Manifest(
        kind="toolrl-dr",
        version="1.0.0",
        created_at="2026-11-20",
        package_version="0",
        licence="apache-2.0",
        data_sha256="",
        files={path: manifest.entry(folder / path) for path in manifest.files_of(folder)},
    )
    audit = AuditReport(package_version="0", kind="training", name="x", build="x", passed=True, checks=())
    release = Release(folder, said, audit, "x", ())
    (folder / "croissant.json").write_bytes(croissant(release, description="x", responsible_ai={}))


def records(folder: Path, record_set: str) -> tuple[list[dict[str, Any]], Any]:
    """The records that mlcroissant reads, as plain values, and what it found wrong."""
    mlc = pytest.importorskip("mlcroissant", reason="needs the extra audit (make env)")
    dataset = mlc.Dataset(jsonld=str(folder / "croissant.json"))

    def plain(value: Any) -> Any:
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, list):
            return [plain(item) for item in value]
        if isinstance(value, dict):
            return {key.rsplit("/", 1)[-1]: plain(item) for key, item in value.items()}
        return value

    return [plain(record) for record in dataset.records(record_set)], dataset.metadata.issues


def test_a_release_validates_and_reads_as_its_rows(release: Path) -> None:
    found, issues = records(release, "CD_AB")
    assert not issues.errors
    assert found == pq.read_table(release / "CD_AB").to_pylist()
    document = json.loads((release / "croissant.json").read_text())
    assert document["version"] == "1.0.0"
    entries = manifest.read_manifest(release).files
    for file in document["distribution"]:
        assert file["sha256"] == entries[file["contentUrl"]].sha256
        assert file["contentSize"] == f"{entries[file['contentUrl']].bytes} B"
    assert {record_set["@id"] for record_set in document["recordSet"]} == {
        path.split("/")[0] for path in entries if path.endswith(".parquet")
    }


def test_a_release_says_who_made_it_when_where_and_what_it_is_not(release: Path) -> None:
    mlc = pytest.importorskip("mlcroissant", reason="needs the extra audit (make env)")
    document = json.loads((release / "croissant.json").read_text())
    assert document["conformsTo"] == [
        "http://mlcommons.org/croissant/1.1",
        "http://mlcommons.org/croissant/RAI/1.0",
    ]
    assert document["datePublished"] == manifest.read_manifest(release).created_at[:10] == "2026-11-20"
    assert document["creator"]["name"] == "The RobustBench-TC authors"
    assert document["url"] == document["creator"]["url"] == "https://arxiv.org/abs/2605.11928"
    assert document["license"] == "https://www.apache.org/licenses/LICENSE-2.0"
    assert document["citeAs"].startswith("@misc{robustbench_tc_1_0_0,")
    stated = {name for name in document if name.startswith("rai:")}
    assert stated == {
        *("rai:dataCollection", "rai:dataCollectionType", "rai:dataCollectionMissingData"),
        *("rai:dataPreprocessingProtocol", "rai:dataAnnotationProtocol", "rai:machineAnnotationTools"),
        *("rai:dataBiases", "rai:dataLimitations", "rai:dataUseCases", "rai:dataSocialImpact"),
        *("rai:personalSensitiveInformation", "rai:dataReleaseMaintenancePlan"),
    }
    read = mlc.Dataset(jsonld=str(release / "croissant.json")).metadata
    assert not read.issues.errors and not read.issues.warnings
    assert len(read.data_biases) == 3 and read.data_collection.startswith("73 single-turn")


def test_without_its_package_there_is_one_line(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from robustbench_tc.dataset_cards import croissant as made

    monkeypatch.setattr(made, "find_spec", lambda name: None)
    refuses(r"pip install -e '.\[audit\]'", describe, release)


def test_shards_and_splits_are_one_record_set_each(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": ["a", "b", "c"],
            "n": pa.array([1, None, 3], pa.int64()),
            "style": pa.array([{"kind": "x"}, {"kind": "y"}, {"kind": "z"}]),
            "flags": pa.array([["f"], [], None], pa.list_(pa.string())),
            "extra_info": ["{}"] * 3,
        }
    )
    (tmp_path / "full").mkdir()
    for number in range(2):
        pq.write_table(table.slice(number, 1), tmp_path / "full" / f"train-{number:05d}-of-00002.parquet")
    pq.write_table(table.slice(2), tmp_path / "full" / "validation-00000-of-00001.parquet")
    describe(tmp_path)
    train, issues = records(tmp_path, "full-train")
    assert not issues.errors
    assert sorted(record["id"] for record in train) == ["a", "b"]
    validation, _ = records(tmp_path, "full-validation")
    assert [record["id"] for record in validation] == ["c"]


def test_the_same_release_is_described_by_the_same_bytes(release: Path, tmp_path: Path) -> None:
    described = (release / "croissant.json").read_bytes()
    folder = tmp_path / "copy"
    released(release.parent / "build", folder)
    assert (folder / "croissant.json").read_bytes() == described
