"""The ways that files really take: Xet, LFS in parts, listings in pages, a Hub that wants fewer requests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from robustbench_tc.io import manifest

from .hub import ROUTES, WRITER, Hub
from .hub_client import Client
from .released import released, small_build

pytestmark = pytest.mark.usefixtures("repaired")


@pytest.fixture(scope="module")
def xet(hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client as everybody has it: large files go through the real hf_xet."""
    with Client(hub.environment(None, tmp_path_factory.mktemp("hf-xet"), xet=True)) as found:
        yield found


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    small_build(folder / "build", codes=("CD_AB",), tables=False)
    released(folder / "build", folder / "robustbench-tc")
    return folder / "robustbench-tc"


def routes(hub: Hub) -> list[str]:
    return [route for _, route, _, _ in hub.log()]


def held(release: Path) -> dict[str, str]:
    """What the repository has to hold after publishing."""
    frozen = manifest.read(release)
    own = {manifest.NAME: manifest.entry(release / manifest.NAME).sha256}
    return own | {path: entry.sha256 for path, entry in frozen.files.items()}


# --- Xet ----------------------------------------------------------------------------------------------


def test_a_release_goes_through_xet_there_and_back(hub: Hub, xet: Client, release: Path) -> None:
    done = xet.publish(release, "acme/xet", WRITER)
    assert "error" not in done, done
    log = hub.log()
    asked = [route for _, route, _, _ in log]
    assert "xet-write-token" in asked and "xet-read-token" in asked
    assert "batch" not in asked and "upload" not in asked  # nothing took the client way, nor came by it
    assert not [path for method, _, path, _ in log if method == "GET" and path.endswith(".parquet")]
    assert hub.tags("datasets/acme/xet") == {"v1.0.0": done["commit"]}
    assert held(release).items() <= hub.tree("datasets/acme/xet").items()
    loaded = xet.load("acme/xet", "v1.0.0", ["clean", "CD_AB"])
    for config, found in loaded.items():
        for name, sha256 in found["files"].items():
            assert name.startswith(f"{config}/") and sha256 == held(release)[name]
    verified = xet.verify("acme/xet@v1.0.0")
    assert verified["problems"] == [] and verified["commit"] == done["commit"]


def test_what_went_through_xet_is_read_without_it(
    hub: Hub, xet: Client, client: Client, release: Path
) -> None:
    assert "error" not in xet.publish(release, "acme/both", WRITER)
    hub.log()
    assert client.verify("acme/both@v1.0.0")["intact"]
    assert "xet-read-token" not in routes(hub)
    streamed = client.load("acme/both", "v1.0.0", ["CD_AB"], streaming=True)
    assert streamed["CD_AB"]["rows"] == xet.load("acme/both", "v1.0.0", ["CD_AB"])["CD_AB"]["rows"]


def test_a_xet_token_that_is_refused_is_one_line_and_a_second_run_completes(
    hub: Hub, xet: Client, release: Path
) -> None:
    hub.fault("xet-write-token", status=403, message=f"not with {WRITER}")
    error = xet.publish(release, "acme/xet-refused", WRITER)["error"]
    assert error.startswith("acme/xet-refused: uploading: ") and len(error.splitlines()) == 1
    assert WRITER not in error and "no tag was made" in error
    assert hub.tags("datasets/acme/xet-refused") == {}
    hub.repair()
    assert "error" not in xet.publish(release, "acme/xet-refused", WRITER)


# --- LFS in parts, listings in pages ------------------------------------------------------------------


def test_large_files_are_sent_in_parts(hub: Hub, client: Client, release: Path) -> None:
    hub.settings(chunk=10_000)
    done = client.publish(release, "acme/parts", WRITER)
    assert "error" not in done, done
    sent = [path for _, route, path, _ in hub.log() if route in ("upload", "complete")]
    assert any(path.endswith("/3") for path in sent) and any(path.endswith("/complete") for path in sent)
    assert held(release).items() <= hub.tree("datasets/acme/parts").items()


@pytest.mark.parametrize("fault", [{"truncate": True, "times": 1}, {"status": 500}])
def test_a_part_that_is_lost_leaves_no_tag(
    fault: dict[str, object], hub: Hub, client: Client, release: Path
) -> None:
    repo = f"acme/lost-{'part' if 'status' in fault else 'half'}"
    hub.settings(chunk=10_000)
    hub.fault("upload", path="/2", **fault)
    error = client.publish(release, repo, WRITER)["error"]
    assert "uploading: the Hub answered" in error and hub.tags(f"datasets/{repo}") == {}
    hub.repair()
    assert "error" not in client.publish(release, repo, WRITER)


@pytest.mark.parametrize("page", [1, 3])
def test_a_listing_in_pages_is_read_to_its_end(page: int, hub: Hub, client: Client, release: Path) -> None:
    """The second version drops files that stand on a later page of the first one's listing."""
    repo = f"acme/pages-{page}"
    assert "error" not in client.publish(release, repo, WRITER)
    hub.settings(page=page)
    hub.log()
    assert client.verify(f"{repo}@v1.0.0")["intact"]
    trees = [path for _, route, path, _ in hub.log() if route == "tree"]
    assert len(trees) >= len(held(release)) // page
    folder = release.parent / f"next-{page}"
    small_build(folder / "build", codes=("TD",), tables=False)
    released(folder / "build", folder / "robustbench-tc", "2.0.0")
    done = client.publish(folder / "robustbench-tc", repo, WRITER)
    assert done["removed"] == ["CD_AB/test-00000-of-00001.parquet"]
    assert "CD_AB/test-00000-of-00001.parquet" not in hub.tree(f"datasets/{repo}")


# --- fewer requests (429) -----------------------------------------------------------------------------


CLASSIC = [route for route in ROUTES if not route.startswith("xet") and route != "info"]
"""Routes that publishing takes; `info` is for the head of main, and every revision is named."""


@pytest.mark.parametrize("route", CLASSIC)
def test_a_hub_that_wants_fewer_requests_is_waited_for(
    route: str, hub: Hub, client: Client, release: Path
) -> None:
    if route == "complete":
        hub.settings(chunk=10_000)
    hub.fault(route, status=429, retry_after=2, times=2)
    done = client.publish(release, f"acme/busy-{route}", WRITER)
    assert "error" not in done, done
    assert [route, 429] in [[asked, status] for _, asked, _, status in hub.log()]
    assert hub.tags(f"datasets/acme/busy-{route}") == {"v1.0.0": done["commit"]}
    assert hub.commits(f"datasets/acme/busy-{route}") == 2


@pytest.mark.parametrize("route", ["xet-write-token", "xet-read-token"])
def test_a_hub_that_wants_fewer_requests_for_xet_is_waited_for(
    route: str, hub: Hub, xet: Client, release: Path
) -> None:
    hub.fault(route, status=429, retry_after=1, times=1)
    done = xet.publish(release, f"acme/busy-{route}", WRITER)
    assert "error" not in done, done
    assert [route, 429] in [[asked, status] for _, asked, _, status in hub.log()]


@pytest.mark.parametrize("route", ["whoami", "refs", "commit", "tag"])
def test_a_hub_that_never_wants_more_is_given_up_in_one_line(
    route: str, hub: Hub, client: Client, release: Path
) -> None:
    hub.fault(route, status=429, retry_after=30)
    error = client.publish(release, f"acme/full-{route}", WRITER)["error"]
    assert "the Hub answered 429" in error and len(error.splitlines()) == 1
    assert hub.tags(f"datasets/acme/full-{route}") == {}


def test_a_wait_that_nobody_would_wait_is_not_begun(hub: Hub, client: Client, release: Path) -> None:
    hub.fault("refs", status=429, retry_after=86_400)
    assert "429" in client.publish(release, "acme/tomorrow", WRITER)["error"]
    assert routes(hub).count("refs") == 1


def test_verifying_waits_too(hub: Hub, client: Client, release: Path) -> None:
    assert "error" not in client.publish(release, "acme/busy", WRITER)
    for route in ("refs", "tree", "resolve"):
        hub.fault(route, status=429, retry_after=1, times=1)
    assert client.verify("acme/busy@v1.0.0")["intact"]
