"""`rbtc verify` with the Hub as witness: the listing of a commit says what every file is."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc.io import manifest
from robustbench_tc.release import sign
from robustbench_tc.release.hub import Hub as Repository, HubFile, differs, git_blob
from robustbench_tc.release.verify import verify

from .hub import WRITER, Hub
from .hub_client import Client
from .refusals import refuses
from .released import forge, release_of, to_spoil
from .test_verify import flipped, make_key, no_warning

REPO = "acme/robustbench-tc"


pytestmark = pytest.mark.usefixtures("repaired")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the client caches."""
    return tmp_path_factory.mktemp("hf")


@pytest.fixture(scope="module")
def client(hub: Hub, home: Path) -> Iterator[Client]:
    with Client(hub.environment(None, home)) as found:
        yield found


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_key(tmp_path_factory.mktemp("keys"), "ours")


@pytest.fixture(scope="module")
def release(key: Path, client: Client, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed release that is on the Hub."""
    folder = release_of(
        tmp_path_factory.mktemp("release"),
        codes=("query_paraphrase", "CD_AB"),
        key=sign.private_key(key, warn=no_warning),
    )
    assert "error" not in client.publish(folder, REPO, WRITER)
    return folder


def test_a_version_on_the_hub_is_what_its_commit_lists(
    hub: Hub, client: Client, release: Path, key: Path
) -> None:
    found = client.verify(f"{REPO}@v1.0.0", key=key.with_suffix(".pub"))
    assert found["problems"] == [] and found["witness"] == "key and hub"
    assert found["commit"] == hub.tags(f"datasets/{REPO}")["v1.0.0"]
    assert found["tolerated"] == [".gitattributes"]
    assert client.verify(f"{REPO}@1.0.0")["intact"]
    assert client.verify(f"{REPO}@{found['commit']}")["intact"]


def test_a_folder_is_compared_with_the_hub(client: Client, release: Path) -> None:
    found = client.verify(str(release), against=f"{REPO}@v1.0.0")
    assert found["problems"] == [] and found["witness"] == "hub"


@given(data=st.data())
@settings(max_examples=100)
def test_against_the_hub_every_changed_byte_of_every_file_is_found(
    data: st.DataObject, client: Client, release: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = client.verify(str(flipped(data, release, tmp_path_factory)), against=f"{REPO}@v1.0.0")
    assert "error" in found or found["problems"]


def test_a_forged_folder_is_not_the_hubs(client: Client, release: Path, tmp_path: Path) -> None:
    folder = to_spoil(release, tmp_path / "forged")
    forge(folder)
    assert verify(folder).intact
    found = client.verify(str(folder), against=f"{REPO}@v1.0.0")
    assert found["problems"] == [["bad", "README.md"], ["bad", manifest.NAME]]
    (folder / manifest.SIGNATURE).unlink()
    (folder / "more.txt").write_text("")
    kinds = {kind for kind, _ in client.verify(str(folder), against=f"{REPO}@v1.0.0")["problems"]}
    assert kinds == {"bad", "missing", "surplus"}


@pytest.mark.parametrize("path", ["README.md", "CD_AB/test-00000-of-00001.parquet", manifest.NAME])
def test_a_copy_in_the_cache_that_was_changed_is_found(
    path: str, client: Client, release: Path, home: Path
) -> None:
    assert client.verify(f"{REPO}@v1.0.0")["intact"]
    (snapshot,) = (home / "hub" / "datasets--acme--robustbench-tc" / "snapshots").iterdir()
    blob = (snapshot / path).resolve()
    before = blob.read_bytes()
    blob.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    try:
        found = client.verify(f"{REPO}@v1.0.0")
        assert "error" in found or [kind for kind, where in found["problems"] if where == path] == ["bad"]
    finally:
        blob.write_bytes(before)
    assert client.verify(f"{REPO}@v1.0.0")["intact"]


@pytest.mark.parametrize("path", ["README.md", "CD_AB/test-00000-of-00001.parquet"])
def test_bytes_that_change_on_their_way_are_found(path: str, hub: Hub, release: Path, tmp_path: Path) -> None:
    hub.fault("resolve", garble=True, path=path)
    with Client(hub.environment(None, tmp_path)) as fresh:
        found = fresh.verify(f"{REPO}@v1.0.0")
    assert ["bad", path] in found["problems"]


def test_a_hub_that_changed_a_file_under_a_commit_is_found_by_the_manifest(
    hub: Hub, client: Client, release: Path, tmp_path: Path
) -> None:
    repo = "acme/rotten"
    assert "error" not in client.publish(release, repo, WRITER)
    hub.change(f"datasets/{repo}", "README.md", at=40)
    with Client(hub.environment(None, tmp_path)) as fresh:
        assert fresh.verify(f"{repo}@v1.0.0")["problems"] == [["bad", "README.md"]]


def test_what_is_not_there_is_one_line(client: Client, release: Path) -> None:
    assert client.verify(f"{REPO}@v9.9.9")["error"] == f"{REPO} has no version 'v9.9.9': it has v1.0.0"
    assert client.verify("acme/none@v1.0.0")["error"].startswith("no dataset acme/none on the Hub")
    error = client.verify(f"{REPO}@{'0' * 40}")["error"]
    assert error == f"{REPO}: downloading: the Hub answered 404: Invalid rev id: {'0' * 40}; try again later"


def test_the_command_line_says_who_vouches(hub: Hub, release: Path, tmp_path: Path) -> None:
    done = hub.rbtc("verify", f"{REPO}@v1.0.0", home=tmp_path)
    commit = hub.tags(f"datasets/{REPO}")["v1.0.0"]
    assert done.returncode == 0 and done.stderr == ""
    assert f"are those of the Hub's commit {commit}" in done.stdout and "integrity only" not in done.stdout
    plain = json.loads(
        hub.rbtc("verify", release, "--against", f"{REPO}@v1.0.0", "--json", home=tmp_path).stdout
    )
    assert plain["intact"] and plain["witness"] == "hub" and plain["commit"] == commit
    missing = hub.rbtc("verify", "nowhere", "--against", f"{REPO}@v1.0.0", home=tmp_path)
    assert missing.returncode == 1 and missing.stderr.count("\n") == 1


# --- the parts ----------------------------------------------------------------------------------------


class Listing(Repository):
    """A repository that lists what a folder holds."""

    def __init__(self, folder: Path) -> None:
        self.repo, self.folder = REPO, folder
        self.progress = lambda line: None

    def commit_of(self, revision: str) -> str:
        return "0" * 40

    def tree(self, commit: str) -> dict[str, HubFile]:
        return {
            path: HubFile((self.folder / path).stat().st_size, git_blob(self.folder / path))
            for path in manifest.contents(self.folder).files
        }


def test_a_tag_of_another_version_is_bad(release: Path) -> None:
    hub = Listing(release)
    assert verify(release, hub=hub, revision="v1.0.0").intact
    assert verify(release, hub=hub, revision="0" * 40).intact
    for revision in ("v1.0.1", "1.0.1", "v1.0.0-rc.1"):
        (problem,) = verify(release, hub=hub, revision=revision).problems
        assert (problem.kind, problem.path) == ("bad", manifest.NAME) and revision in problem.what


def test_a_git_blob_id_is_gits(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"hello\n")
    assert git_blob(tmp_path / "x") == "ce013625030ba8dba906f756967f9e9ca394464a"
    if shutil.which("git"):
        (tmp_path / "y").write_bytes(os.urandom(3 * 2**20 + 1))
        command = ["git", "hash-object", "--no-filters", str(tmp_path / "y")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert git_blob(tmp_path / "y") == done.stdout.strip()


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ({"bytes": 6, "git": "ce013625030ba8dba906f756967f9e9ca394464a"}, ""),
        ({"bytes": 5, "git": "ce013625030ba8dba906f756967f9e9ca394464a"}, "6 bytes instead of 5"),
        ({"bytes": 6, "git": "0" * 40}, "git blob ce0136250"),
        ({"bytes": 6, "git": "0" * 40, "sha256": "0" * 64}, "sha256 5891b5b522d5"),
    ],
)
def test_a_file_differs_by_size_then_by_hash(listed: dict[str, Any], said: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"hello\n")
    found = differs(tmp_path / "x", HubFile(**listed))
    assert found.startswith(said) and bool(found) == bool(said)


def test_an_offline_machine_is_one_line(release: Path) -> None:
    refuses(
        "asking for its versions: OfflineModeIsEnabled.*HF_HUB_OFFLINE",
        verify,
        release,
        hub=Repository(REPO),
        revision="v1.0.0",
    )
