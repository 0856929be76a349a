"""Releases on the test hub: refusals, faults in every step, and what a second run makes of them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.io import manifest

from .hub import FINE, NARROW, READER, ROUTES, STRANGER, WRITER, Hub
from .hub_client import Client
from .refusals import refuses
from .released import release_of, to_spoil
from .trees import write

pytestmark = pytest.mark.usefixtures("repaired")


@pytest.fixture(scope="module")
def v1(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release_of(tmp_path_factory.mktemp("v1"))


@pytest.fixture(scope="module")
def v2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The next version: another seed, and another type."""
    return release_of(tmp_path_factory.mktemp("v2"), "1.0.1", seed=1, codes=("TD",))


@pytest.fixture(scope="module")
def xet(hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client as everybody has it: large files go through the real hf_xet."""
    with Client(hub.environment(None, tmp_path_factory.mktemp("hf-xet"), xet=True)) as found:
        yield found


def writes(hub: Hub) -> list[str]:
    """Routes of the requests that could have changed something."""
    return [route for method, route, _, _ in hub.log() if method in ("POST", "PUT") and route != "validate"]


# --- what goes wrong on the way -----------------------------------------------------------------------

FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "upload-500": ({"route": "upload", "status": 500, "after": 1}, "uploading: the Hub answered 500"),
    "upload-truncated": ({"route": "upload", "truncate": True, "after": 1}, "the Hub answered 400"),
    "commit-500": ({"route": "commit", "status": 500}, "uploading: the Hub answered 500"),
    "commit-401": ({"route": "commit", "status": 401}, "uploading: the Hub answered 401"),
    "commit-412": ({"route": "commit", "status": 412}, "uploading: the Hub answered 412"),
    "commit-lost": ({"route": "commit", "drop": True}, "uploading: [A-Za-z]+Error: "),
    "commit-slow": ({"route": "commit", "seconds": 2.0}, "uploading: ReadTimeout: "),
    "create-403": ({"route": "create", "status": 403}, "creating the repository: the Hub answered 403"),
    "create-500": ({"route": "create", "status": 500}, "creating the repository: the Hub answered 500"),
    "refs-500": ({"route": "refs", "status": 500}, "asking for its versions: the Hub answered 500"),
    "whoami-401": ({"route": "whoami", "status": 401}, "belongs to: the Hub answered 401"),
    "read-truncated": (
        {"route": "resolve", "truncate": True, "path": "CD_AB/"},
        "reading back: RemoteProtocolError",
    ),
    "read-garbled": (
        {"route": "resolve", "garble": True, "path": "CD_AB/"},
        r"CD_AB/test-00000-of-00001\.parquet has other bytes when read back",
    ),
    "card-garbled": (
        {"route": "resolve", "garble": True, "path": "build_report.md"},
        r"build_report\.md has other bytes when read back",
    ),
    "tree-500": ({"route": "tree", "status": 500}, "reading back: the Hub answered 500"),
    "tag-500": ({"route": "tag", "status": 500}, r"tagging v1\.0\.0: the Hub answered 500"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_in_one_line_without_a_tag_and_a_second_run_completes(
    name: str, hub: Hub, client: Client, v1: Path
) -> None:
    fault, message = FAULTS[name]
    repo = f"acme/{name}"
    hub.fault(**fault)
    failed = client.publish(v1, repo, WRITER, timeout_s=1.0)
    assert re.search(message, failed["error"])
    assert len(failed["error"].splitlines()) == 1
    assert failed["error"].startswith(f"{repo}: ")
    assert WRITER not in failed["error"]
    assert hub.tags(f"datasets/{repo}") == {}
    hub.repair()
    done = client.publish(v1, repo, WRITER)
    assert hub.tags(f"datasets/{repo}") == {"v1.0.0": done["commit"]}
    assert done["read_back"] == len(manifest.files_of(v1)) + 1
    assert hub.commits(f"datasets/{repo}") == 2  # the Hub's own first commit, and the release


def test_what_the_hub_has_already_is_not_sent_twice(hub: Hub, client: Client, v1: Path) -> None:
    hub.fault("upload", status=500, after=1)
    assert "error" in client.publish(v1, "acme/halfway", WRITER)
    sent = [path for _, route, path, status in hub.log() if route == "upload" and status == 200]
    assert len(sent) == 1
    hub.repair()
    client.publish(v1, "acme/halfway", WRITER)
    again = [path for _, route, path, status in hub.log() if route == "upload"]
    assert again and not set(sent) & set(again)


def test_a_passing_fault_is_waited_out(hub: Hub, client: Client, v1: Path) -> None:
    hub.fault("upload", status=503, times=2)
    assert client.publish(v1, "acme/passing", WRITER)["commit"]


def test_a_tag_whose_answer_got_lost_is_no_failure(hub: Hub, client: Client, v1: Path) -> None:
    hub.fault("tag", drop=True)
    done = client.publish(v1, "acme/lost-tag", WRITER)
    assert hub.tags("datasets/acme/lost-tag") == {"v1.0.0": done["commit"]}


def test_a_hub_that_repeats_the_token_is_not_quoted(hub: Hub, client: Client, v1: Path) -> None:
    hub.fault("commit", status=500, message=f"no such token: {WRITER}")
    error = client.publish(v1, "acme/echo", WRITER)["error"]
    assert "no such token: ***" in error and WRITER not in error


# --- what is refused before anything is written -------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (None, "no token for the Hub: run `hf auth login`"),
        ("hf_nobody_0123456789", "the Hub answered 401"),
        *((token, "the Hub answered 403: You don't have the rights") for token in (READER, NARROW, STRANGER)),
    ],
)
def test_a_token_without_write_rights_is_refused(
    token: str | None, message: str, hub: Hub, client: Client, v1: Path
) -> None:
    error = client.publish(v1, "acme/refused", token)["error"]
    assert re.search(message, error) and len(error.splitlines()) == 1
    assert token is None or token not in error
    assert hub.commits("datasets/acme/refused") == 0


def test_a_folder_that_is_no_gated_release_is_refused(
    hub: Hub, client: Client, v1: Path, tmp_path: Path
) -> None:
    def refused(folder: Path) -> str:
        return str(client.publish(folder, "acme/refused", WRITER)["error"])

    assert "it is not a release" in refused(v1.parent / "build")
    assert "is not a folder" in refused(tmp_path / "nowhere")
    spoilt = to_spoil(v1, tmp_path / "spoilt")
    write(spoilt, {"README.md": "another card", "extra": ""})
    assert "not as it was released: bad: README.md" in refused(spoilt)
    assert "(and 1 more)" in refused(spoilt)
    text = (v1 / manifest.NAME).read_text()
    (spoilt / manifest.NAME).write_text(text.replace('"passed": true', '"passed": false'))
    assert "has no green gate" in refused(spoilt)
    assert hub.log() == []


def test_an_offline_machine_says_so(v1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from robustbench_tc.release.publish import publish

    refuses(
        r"who the token belongs to: OfflineModeIsEnabled.*HF_HUB_OFFLINE",
        publish,
        v1,
        "acme/offline",
        token=WRITER,
    )


@pytest.mark.parametrize("repo", ["robustbench-tc", "a/b/c", "acme/", "acme/a b", "https://x/y"])
def test_a_name_that_is_no_repository_is_refused(repo: str, client: Client, v1: Path) -> None:
    assert "is not a name on the Hub" in client.publish(v1, repo, WRITER)["error"]


def test_a_tag_is_never_made_twice(hub: Hub, client: Client, v1: Path, v2: Path, tmp_path: Path) -> None:
    client.publish(v1, "acme/once", WRITER)
    before = hub.tags("datasets/acme/once")
    hub.log()
    assert "these very bytes: nothing to do" in client.publish(v1, "acme/once", WRITER)["error"]
    other = to_spoil(v2, tmp_path / "other")
    text = (other / manifest.NAME).read_text().replace('"version": "1.0.1"', '"version": "1.0.0"')
    (other / manifest.NAME).write_text(text)
    assert (
        "with other bytes: release under a new --version"
        in client.publish(other, "acme/once", WRITER)["error"]
    )
    assert writes(hub) == [] and hub.tags("datasets/acme/once") == before


def test_a_dry_run_checks_everything_and_changes_nothing(hub: Hub, client: Client, v1: Path) -> None:
    planned = client.publish(v1, "acme/planned", WRITER, dry_run=True)
    assert planned["commit"] is None and planned["creates_repo"] is True
    assert set(planned["files"]) == {*manifest.files_of(v1), manifest.NAME}
    assert writes(hub) == [] and hub.commits("datasets/acme/planned") == 0


def test_a_fine_grained_token_with_the_right_is_enough(hub: Hub, client: Client, v1: Path) -> None:
    assert client.publish(v1, "acme/fine", FINE)["commit"]


# --- what it leaves behind ----------------------------------------------------------------------------


def test_a_release_is_one_commit_and_drops_what_it_no_longer_has(
    hub: Hub, client: Client, v1: Path, v2: Path
) -> None:
    first = client.publish(v1, "acme/two", WRITER)
    second = client.publish(v2, "acme/two", WRITER)
    assert hub.commits("datasets/acme/two") == 3
    assert second["removed"] == ["CD_AB/test-00000-of-00001.parquet"]
    assert hub.tags("datasets/acme/two") == {"v1.0.0": first["commit"], "v1.0.1": second["commit"]}
    one = client.resolve("acme/two", "v1.0.0")["folder"]
    two = client.resolve("acme/two", "v1.0.1")["folder"]
    assert manifest.problems(Path(one)) == manifest.problems(Path(two)) == []
    assert manifest.read_manifest(Path(one)) == manifest.read_manifest(v1)
    assert manifest.read_manifest(Path(two)) == manifest.read_manifest(v2)
    assert "has no revision 'v9.9.9'" in client.resolve("acme/two", "v9.9.9")["error"]
    assert "no dataset acme/none" in client.resolve("acme/none", None)["error"]


def test_the_command_line_says_it_in_one_line(hub: Hub, v1: Path, tmp_path: Path) -> None:
    hub.fault("commit", status=500)
    failed = hub.rbtc("publish", v1, "acme/line", home=tmp_path, token=WRITER)
    assert failed.returncode == 1 and failed.stdout == ""
    assert failed.stderr == (
        "rbtc: acme/line: uploading: the Hub answered 500; "
        "no tag was made; the same command run again completes the upload\n"
    )
    hub.repair()
    done = hub.rbtc("publish", v1, "acme/line", home=tmp_path, token=WRITER)
    assert done.returncode == 0 and done.stderr == ""
    assert "published" in done.stdout and "tag v1.0.0" in done.stdout
    assert WRITER not in failed.stdout + failed.stderr + done.stdout + done.stderr
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or WRITER.encode() not in path.read_bytes()


# --- how files really travel ------------------------------------------------------------------------


def routes(hub: Hub) -> list[str]:
    return [route for _, route, _, _ in hub.log()]


def held(v1: Path) -> dict[str, str]:
    """What the repository has to hold after publishing."""
    frozen = manifest.read_manifest(v1)
    own = {manifest.NAME: manifest.entry(v1 / manifest.NAME).sha256}
    return own | {path: entry.sha256 for path, entry in frozen.files.items()}


# --- Xet ----------------------------------------------------------------------------------------------


def test_a_release_goes_through_xet_there_and_back(hub: Hub, xet: Client, v1: Path) -> None:
    done = xet.publish(v1, "acme/xet", WRITER)
    assert "error" not in done, done
    log = hub.log()
    asked = [route for _, route, _, _ in log]
    assert "xet-write-token" in asked and "xet-read-token" in asked
    assert "batch" not in asked and "upload" not in asked  # nothing took the client way, nor came by it
    assert not [path for method, _, path, _ in log if method == "GET" and path.endswith(".parquet")]
    assert hub.tags("datasets/acme/xet") == {"v1.0.0": done["commit"]}
    assert held(v1).items() <= hub.tree("datasets/acme/xet").items()
    for config, found in xet.load("acme/xet", "v1.0.0", ["clean", "CD_AB"]).items():
        for name, sha256 in found["files"].items():
            assert name.startswith(f"{config}/") and sha256 == held(v1)[name]
    verified = xet.verify("acme/xet@v1.0.0")
    assert verified["problems"] == [] and verified["commit"] == done["commit"]


def test_what_went_through_xet_is_read_without_it(hub: Hub, xet: Client, client: Client, v1: Path) -> None:
    assert "error" not in xet.publish(v1, "acme/both", WRITER)
    hub.log()
    assert client.verify("acme/both@v1.0.0")["intact"]
    assert "xet-read-token" not in routes(hub)
    streamed = client.load("acme/both", "v1.0.0", ["CD_AB"], streaming=True)
    assert streamed["CD_AB"]["rows"] == xet.load("acme/both", "v1.0.0", ["CD_AB"])["CD_AB"]["rows"]


def test_a_xet_token_that_is_refused_is_one_line_and_a_second_run_completes(
    hub: Hub, xet: Client, v1: Path
) -> None:
    hub.fault("xet-write-token", status=403, message=f"not with {WRITER}")
    error = xet.publish(v1, "acme/xet-refused", WRITER)["error"]
    assert error.startswith("acme/xet-refused: uploading: ") and len(error.splitlines()) == 1
    assert WRITER not in error and "no tag was made" in error
    assert hub.tags("datasets/acme/xet-refused") == {}
    hub.repair()
    assert "error" not in xet.publish(v1, "acme/xet-refused", WRITER)


# --- fewer requests (429) -----------------------------------------------------------------------------


TAKEN = [route for route in ROUTES if route != "info"]
"""Routes that publishing takes; `info` is for the head of main, and every revision is named."""


@pytest.mark.parametrize("route", TAKEN)
def test_a_hub_that_wants_fewer_requests_is_waited_for(
    route: str, hub: Hub, client: Client, xet: Client, v1: Path
) -> None:
    hub.fault(route, status=429, retry_after=2, times=1 if "xet" in route else 2)
    done = (xet if "xet" in route else client).publish(v1, f"acme/busy-{route}", WRITER)
    assert "error" not in done, done
    assert [route, 429] in [[asked, status] for _, asked, _, status in hub.log()]
    assert hub.tags(f"datasets/acme/busy-{route}") == {"v1.0.0": done["commit"]}
    assert hub.commits(f"datasets/acme/busy-{route}") == 2


@pytest.mark.parametrize("route", ["whoami", "refs", "commit", "tag"])
def test_a_hub_that_never_wants_more_is_given_up_in_one_line(
    route: str, hub: Hub, client: Client, v1: Path
) -> None:
    hub.fault(route, status=429, retry_after=30)
    error = client.publish(v1, f"acme/full-{route}", WRITER)["error"]
    assert "the Hub answered 429" in error and len(error.splitlines()) == 1
    assert hub.tags(f"datasets/acme/full-{route}") == {}


def test_a_wait_that_nobody_would_wait_is_not_begun(hub: Hub, client: Client, v1: Path) -> None:
    hub.fault("refs", status=429, retry_after=86_400)
    assert "429" in client.publish(v1, "acme/tomorrow", WRITER)["error"]
    assert routes(hub).count("refs") == 1


def test_verifying_waits_too(hub: Hub, client: Client, v1: Path) -> None:
    assert "error" not in client.publish(v1, "acme/busy", WRITER)
    for route in ("refs", "tree", "resolve"):
        hub.fault(route, status=429, retry_after=1, times=1)
    assert client.verify("acme/busy@v1.0.0")["intact"]
