"""`rbtc data amend --withdraw`: a withdrawn version stays, and whoever loads it is warned."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given, strategies as st

from robustbench_tc.io import manifest
from robustbench_tc.io.resolve import Yank, read_yanked, resolve_dataset
from robustbench_tc.release.publish import check_folder
from robustbench_tc.release.verify import verify
from robustbench_tc.release.yank import with_warning, yank

from .conftest import ROOT, Done
from .hub import READER, WRITER, Hub
from .hub_client import Client
from .refusals import refuses
from .released import released, small_build

REPO = "acme/robustbench-tc"


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_build(tmp_path_factory.mktemp("build") / "robustbench-tc", codes=("CD_AB",), tables=False)


@pytest.fixture
def release(build: Path, tmp_path: Path) -> Path:
    released(build, tmp_path / "release" / "robustbench-tc")
    return tmp_path / "release" / "robustbench-tc"


# --- a folder -----------------------------------------------------------------------------------------


def test_a_folder_that_is_yanked_is_intact_warns_and_is_not_published(
    release: Path, rbtc: Callable[..., Done], caplog: pytest.LogCaptureFixture
) -> None:
    reason = "Golden answers of 12 rows are wrong."
    code, out, _ = rbtc("data", "amend", release, "--withdraw", "--reason", reason, "--use", "1.0.1")
    assert code == 0 and reason in out
    (found,) = read_yanked(release / manifest.YANKED)
    assert (found.version, found.reason, found.use) == ("1.0.0", reason, "1.0.1")
    assert verify(release).intact
    code, out, err = rbtc("verify", release)
    assert code == 0 and f"version 1.0.0 was yanked: {reason}; use 1.0.1" in " ".join(err.split())
    resolve_dataset(str(release))
    assert reason in caplog.text
    refuses(r"was yanked: .*: publish another version", check_folder, release)
    assert rbtc("data", "amend", release, "--undo").code == 0
    assert not (release / manifest.YANKED).exists()
    check_folder(release)


def test_what_is_printed_as_json(release: Path, rbtc: Callable[..., Done]) -> None:
    plain = json.loads(
        rbtc("data", "amend", release, "--withdraw", "--reason", "wrong\n  rows", "--json").out
    )
    assert plain["version"] == "1.0.0" and plain["yanked"][0]["reason"] == "wrong rows"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--reason is missing"),
        (("--reason", "x", "--undo"), "--undo takes no --reason"),
        (("--reason", " \n"), "--reason is missing"),
        (("--reason", "x" * 2_000), "--reason has 2000 characters"),
        (("--reason", "x", "--use", "newest"), "not a semantic version"),
        (("--reason", "x", "--use", "1.0.0"), "this is the version that is yanked"),
        (("--undo",), "is not yanked"),
    ],
)
def test_a_yank_that_says_too_little_is_refused(
    arguments: tuple[str, ...], said: str, release: Path, rbtc: Callable[..., Done]
) -> None:
    assert said in rbtc("data", "amend", release, "--withdraw", *arguments).refusal
    assert not (release / manifest.YANKED).exists()


def test_a_version_is_yanked_once(release: Path) -> None:
    yank(release, "wrong", date="2026-11-21")
    refuses("it is already yanked", yank, release, "wrong again", date="2026-11-22")


def test_a_build_is_not_yanked(build: Path, rbtc: Callable[..., Done]) -> None:
    assert (
        "it is not a release" in rbtc("data", "amend", build, "--withdraw", "--reason", "x").refusal
        and not (build / manifest.YANKED).exists()
    )


@pytest.mark.parametrize("text", ["", "{}", '[{"version": 1}]', "\xff", "[" * 100_000])
def test_a_broken_list_is_one_line(text: str, release: Path, rbtc: Callable[..., Done]) -> None:
    (release / manifest.YANKED).write_bytes(text.encode("latin-1"))
    code, out, err = rbtc("data", "amend", release, "--withdraw", "--reason", "x")
    assert code == 1 and out == "" and err.count("\n") == 1


# --- the card -----------------------------------------------------------------------------------------

CARDS = ("", "# A card\n", "---\nlicense: x\n---\n\n# A card\n", "---\nno end\n", "text\n---\nx\n---\n")


@pytest.mark.parametrize("card", CARDS)
def test_the_warning_is_at_the_top_under_the_front_matter_and_goes_again(card: str) -> None:
    one = (Yank("1.0.0", "wrong", "2026-11-21", "1.0.1"),)
    two = (*one, Yank("1.0.1", "wrong too", "2026-11-22"))
    text = with_warning(card, one)
    assert "> - **1.0.0** (2026-11-21): wrong Use 1.0.1." in text
    if card.startswith("---\nlicense"):
        assert yaml.safe_load(text.split("---\n")[1]) == {"license": "x"}
        assert text.index("license") < text.index("WARNING") < text.index("# A card")
    again = with_warning(text, two)
    assert again.count("WARNING") == 1 and again.index("1.0.1** (") < again.index("1.0.0** (")
    assert with_warning(again, two) == again
    assert with_warning(again, ()).split() == card.split()


@given(st.text(max_size=80))
def test_no_reason_gets_out_of_the_warning(reason: str) -> None:
    text = with_warning("# Card\n", (Yank("1.0.0", " ".join(reason.split()), "2026-11-21"),))
    _, _, rest = text.partition("<!-- end of yanked versions -->")
    assert rest.strip() == "# Card" and text.count("<!--") == 2
    assert with_warning(text, ()).strip() == "# Card"


# --- the Hub ------------------------------------------------------------------------------------------


def test_a_version_on_the_hub_is_yanked_by_one_commit_and_no_tag_moves(
    hub: Hub, client: Client, build: Path, tmp_path: Path
) -> None:
    for version in ("1.0.0", "1.1.0"):
        released(build, tmp_path / version, version)
        assert "error" not in client.publish(tmp_path / version, REPO, WRITER)
    tags, commits = hub.tags(f"datasets/{REPO}"), hub.commits(f"datasets/{REPO}")
    done = client.yank(REPO, "v1.0.0", "Twelve rows are wrong.", WRITER, use="1.1.0")
    assert done["yanked"] == [["1.0.0", "Twelve rows are wrong.", "1.1.0"]]
    assert hub.tags(f"datasets/{REPO}") == tags and hub.commits(f"datasets/{REPO}") == commits + 1

    # the version is as it was, and says so
    for version, said in (
        ("1.0.0", "version 1.0.0 was yanked: Twelve rows are wrong.; use 1.1.0"),
        ("1.1.0", None),
    ):
        found = client.verify(f"{REPO}@v{version}")
        assert found["problems"] == [] and found["yanked"] == said
        rows = client.load(REPO, f"v{version}", ["CD_AB"])["CD_AB"]["files"]
        assert set(rows.values()) <= {
            entry.sha256 for entry in manifest.read_manifest(tmp_path / version).files.values()
        }

    # what main says
    command = [sys.executable, "-c", "from robustbench_tc.io.resolve import resolve_dataset as r; print(r("]
    command[-1] += f"{REPO!r}, 'v1.0.0'))"
    home = tmp_path / "home"
    loading = subprocess.run(
        command, cwd=ROOT, env=hub.environment(None, home), capture_output=True, text=True, check=True
    )
    assert loading.stderr.strip() == f"{REPO}: version 1.0.0 was yanked: Twelve rows are wrong.; use 1.1.0"
    card = Path(client.resolve(REPO, None)["folder"]) / "README.md"
    assert "> - **1.0.0** (2026-11-21): Twelve rows are wrong. Use 1.1.0." in card.read_text()
    assert yaml.safe_load(card.read_text().split("---\n")[1])["license"] == "apache-2.0"

    # the next version keeps the list; taking it back removes it
    released(build, tmp_path / "1.2.0", "1.2.0")
    done = client.publish(tmp_path / "1.2.0", REPO, WRITER)
    assert done["removed"] == [] and manifest.YANKED in hub.tree(f"datasets/{REPO}")
    found = client.verify(f"{REPO}@v1.2.0")
    assert found["problems"] == [] and found["yanked"] is None
    assert client.yank(REPO, "1.0.0", None, WRITER)["yanked"] == []
    assert manifest.YANKED not in hub.tree(f"datasets/{REPO}")
    assert client.verify(f"{REPO}@v1.0.0")["yanked"] is None


def test_what_cannot_be_yanked_is_one_line_and_changes_nothing(
    hub: Hub, client: Client, build: Path, tmp_path: Path
) -> None:
    repo = "acme/kept"
    released(build, tmp_path / "v1")
    assert "error" not in client.publish(tmp_path / "v1", repo, WRITER)
    commits = hub.commits(f"datasets/{repo}")

    def refused(revision: str, reason: str | None, token: str = WRITER, **more: str) -> str:
        error: str = client.yank(repo, revision, reason, token, **more)["error"]
        assert len(error.splitlines()) == 1 and token not in error
        return error

    assert "has no version 'v2.0.0': it has v1.0.0" in refused("v2.0.0", "x")
    assert "not a semantic version" in refused("main", "x")
    assert "has no such version" in refused("v1.0.0", "x", use="3.0.0")
    assert "the Hub answered 403" in refused("v1.0.0", "x", READER)
    assert "is not yanked" in refused("v1.0.0", None)
    hub.fault("commit", status=500)
    assert "nothing was changed; run the same command again" in refused("v1.0.0", "x")
    hub.repair()
    assert hub.commits(f"datasets/{repo}") == commits


def test_the_command_line_says_it_in_one_line(hub: Hub, client: Client, build: Path, tmp_path: Path) -> None:
    repo = "acme/lines"
    released(build, tmp_path / "v1")
    assert "error" not in client.publish(tmp_path / "v1", repo, WRITER)
    words = ("data", "amend", f"{repo}@v1.0.0", "--withdraw", "--reason", "wrong rows")
    done = hub.rbtc(*words, home=tmp_path / "home", token=WRITER)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith(f"version 1.0.0 was yanked: wrong rows ({repo}, commit ")
    again = client.yank(repo, "v1.0.0", "wrong rows", WRITER)["error"]
    assert "already yanked" in again and "\n" not in again
