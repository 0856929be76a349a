"""The Space, run as a Space runs it, and the same app over a folder.

The Hub and the sign-in are on loopback, their clients and the browser are the real ones.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import HfApi

from ...browsing import running
from ...hub import WRITER, Hub
from ...refusals import refuses
from .conftest import RunOf

pytest.importorskip("gradio", reason="a Space needs the extra leaderboard (make env-leaderboard)")

from robustbench_tc.eval.leaderboard import app
from robustbench_tc.eval.leaderboard.space import requirements, space

from .identity import CLIENT, SECRET, Provider

RESULTS = "acme/results"
HOOK = "webhook-secret-0123456789"
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def url() -> str:
    """A free port; the name under which a browser takes cookies that want https."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://localhost:{free.getsockname()[1]}"


def rbtc(*words: object, env: dict[str, str] | None = None) -> str:
    command = [sys.executable, "-m", "robustbench_tc", "leaderboard", *map(str, words)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def serve(results: Path, url: str) -> list[str]:
    port = url.rpartition(":")[2]
    return ["-m", "robustbench_tc", "leaderboard", "serve", str(results), "--port", port]


def until(page: Any, address: str, what: Callable[[str], bool]) -> str:
    """The page at the address, once it says that."""

    def visited() -> str:
        page.goto(address)
        return str(page.inner_text("body"))

    return wait_for(visited, what)


def check(page: Any, *files: Path, **fields: str) -> str:
    """Uploads files, asks for the check, and gives the answer."""
    page.goto("/submit/")
    page.wait_for_selector("#check")
    page.set_input_files("#files input[type=file]", [str(file) for file in files])
    page.wait_for_selector("#files table, #files .file-preview")
    for name, text in fields.items():
        page.fill(f"#{name} textarea, #{name} input", text)
    return press(page, "check")


def press(page: Any, button: str) -> str:
    """The answer to a press of a button."""
    before = page.input_value("#answer textarea")
    page.click(f"#{button}")
    page.wait_for_function(
        "before => { const now = document.querySelector('#answer textarea').value; "
        "return now && now !== before; }",
        arg=before,
    )
    return str(page.input_value("#answer textarea"))


def test_the_card_says_what_a_space_needs(tmp_path: Path) -> None:
    folder = tmp_path / "space"
    files = space(folder, results=RESULTS, title='It\'s a "board": yes')
    card = yaml.safe_load((folder / "README.md").read_text().split("---")[1])
    assert card["sdk"] == "gradio" and card["app_file"] == "app.py" and card["hf_oauth"] is True
    assert card["title"] == 'It\'s a "board": yes' and card["python_version"] == "3.11"
    assert card["datasets"] == [RESULTS] and len(card["short_description"]) <= 60
    pinned = dict(line.split("==") for line in (folder / "requirements.txt").read_text().split())
    assert pinned["gradio[oauth]"] == card["sdk_version"] and [*pinned] == [
        line.split("==")[0] for line in requirements()
    ]
    compile((folder / "app.py").read_text(), "app.py", "exec")
    there = [path for path in folder.rglob("*") if path.is_file()]
    assert len(there) == files + 1, "and the marker"
    assert not [path for path in there if path.is_symlink() or "__pycache__" in path.parts]
    assert not [path for path in there if b"\0" in path.read_bytes()], "binary files go another way"


@pytest.mark.parametrize(
    ("results", "title", "line"),
    [
        ("../results", "A board", "--results '../results' is no dataset of the Hub"),
        ('a/b"); evil("', "A board", "is no dataset of the Hub"),
        (RESULTS, "a\nsdk: docker", "one line"),
    ],
)
def test_what_no_space_can_use_is_refused(results: str, title: str, line: str, tmp_path: Path) -> None:
    refuses(re.escape(line), space, tmp_path / "space", results=results, title=title)
    assert not (tmp_path / "space").exists()


def told(action: str, scope: str, **more: Any) -> dict[str, Any]:
    """What the Hub posts to a webhook."""
    url = {"web": "https://hub.example/acme/results", "api": "https://hub.example/api"}
    return {
        "event": {"action": action, "scope": scope},
        "repo": {
            "type": "dataset",
            "name": RESULTS,
            "id": "1",
            "private": False,
            "url": url,
            "owner": {"id": "2"},
        },
        "webhook": {"id": "3", "version": 3},
        **more,
    }


def discussion(number: int, status: str = "open", is_pull: bool = True) -> dict[str, Any]:
    url = {"web": "https://hub.example/d"}
    on = {"id": "4", "num": number, "title": "A run", "url": url, "author": {"id": "5"}, "status": status}
    return told("create", "discussion", discussion={**on, "isPullRequest": is_pull})


def pushed(*refs: str) -> dict[str, Any]:
    return told("update", "repo.content", updatedRefs=[{"ref": ref, "newSha": "0" * 40} for ref in refs])


@pytest.mark.parametrize(
    ("event", "number"),
    [
        (discussion(7), 7),
        (discussion(7, is_pull=False), None),
        (discussion(7, status="merged"), None),
        (pushed("refs/pr/12"), 12),
        (pushed("refs/heads/main"), None),
    ],
)
def test_an_event_names_the_pull_request_that_it_is_about(event: dict[str, Any], number: int | None) -> None:
    from huggingface_hub import WebhookPayload

    assert app.pull_of(WebhookPayload.model_validate(event)) == number


def test_a_command_that_takes_too_long_is_stopped_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "LONGEST_S", 0.01)
    refuses(r"longer than 0\.01 seconds and was stopped", app.command, "--help")


def test_a_good_and_a_bad_run_get_their_answers_in_a_browser(
    release: Path, run_of: RunOf, local_run_of: RunOf, url: str, browser: Any, tmp_path: Path
) -> None:
    """Over a folder, without any network: nobody signs in, and what is submitted is on the page."""
    results, run = tmp_path / "results", run_of("name-biased")
    rbtc("init", results, release)
    bad = tmp_path / "predictions.parquet"
    bad.write_bytes((run / "predictions.parquet").read_bytes()[:-100])
    lines = tmp_path / "lines.jsonl"
    exported = ["export", str(local_run_of("name-biased")), "--layout", "paper", "--out", str(lines)]
    subprocess.run([sys.executable, "-m", "robustbench_tc", *exported], check=True, capture_output=True)
    env = {name: text for name, text in os.environ.items() if name != "HF_ENDPOINT"} | {"HF_HUB_OFFLINE": "1"}
    with running(serve(results, url), url, tmp_path / "log", env=env):
        page = browser.new_context(base_url=url).new_page()
        page.set_default_timeout(60_000)
        asked: list[str] = []
        errors: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        said = check(page, run / "run.json", bad)
        assert said.startswith("Not accepted: ") and not page.is_visible("#submit")
        said = check(page, run / "run.json", run / "predictions.parquet", model="Alpha-3B", params="x")
        assert "--params" in said
        assert check(page, lines, model="Alpha-3B", mode="prompt").startswith("Accepted"), "the paper's JSON"
        said = check(page, run / "run.json", run / "predictions.parquet", model="Alpha-3B", params="3")
        assert said.startswith("Accepted") and "perturbed" in page.inner_text("#table")
        assert not list(results.glob("runs/*")), "nothing was submitted yet"
        assert "on the board" in press(page, "submit")
        until(page, "/", lambda text: "Alpha-3B" in text)
        assert len(list(results.glob("runs/local/Alpha-3B/*/entry.json"))) == 1
        assert [one for one in asked if not one.startswith((url, "data:", "blob:"))] == [] and errors == []


def test_nobody_reads_a_file_of_the_server_by_an_event_written_by_hand(
    release: Path, url: str, tmp_path: Path
) -> None:
    """Gradio would copy any path that an event names into its cache; ours takes what was uploaded to it."""
    results, secret = tmp_path / "results", tmp_path / "run.json"
    rbtc("init", results, release)
    secret.write_text("{}")

    def answer(*paths: object) -> str:
        files = [{"path": str(path), "meta": {"_type": "gradio.FileData"}} for path in paths]
        body = json.dumps({"data": [files, "local", *[""] * 10, None]}).encode()
        called = f"{url}/submit/gradio_api/call/check"
        sent = urllib.request.Request(called, body, {"Content-Type": "application/json"})
        number = json.loads(urllib.request.urlopen(sent, timeout=60).read())["event_id"]
        return str(urllib.request.urlopen(f"{called}/{number}", timeout=60).read().decode())

    with running(serve(results, url), url, tmp_path / "log"):
        assert "event: complete" in answer(), "the event is the form's own"
        for path in (secret, "/etc/hostname", results / "status.yaml"):
            assert "event: error" in answer(path)
    assert (tmp_path / "log").read_text().count("it was not uploaded by a user") == 3


def test_a_submission_goes_its_whole_way_without_a_human_but_the_one_who_merges(
    hub: Hub, release: Path, run_of: RunOf, url: str, browser: Any, tmp_path: Path
) -> None:
    """The form, a pull request, the webhook, the check, the comment; a merge, the entry, the page."""
    folder, port = tmp_path / "space", url.rpartition(":")[2]
    space(folder, results=RESULTS, title="A board")
    run = run_of("name-biased")
    with Provider("ada", "lab") as identity:
        env = hub.environment(WRITER, tmp_path / "cache")
        rbtc("init", RESULTS, release, env=env)
        env |= {
            "SPACE_ID": "acme/board",
            "SYSTEM": "spaces",
            "OAUTH_CLIENT_ID": CLIENT,
            "OAUTH_CLIENT_SECRET": SECRET,
            "OAUTH_SCOPES": "openid profile",
            "OPENID_PROVIDER_URL": identity.url,
            "GRADIO_SERVER_PORT": port,
            "WEBHOOK_SECRET": HOOK,
        }
        with running(["app.py"], url, tmp_path / "log", cwd=folder, env=env):
            page = browser.new_context(base_url=url).new_page()
            page.set_default_timeout(60_000)
            files = (run / "run.json", run / "predictions.parquet")
            assert "Sign in" in check(page, *files, model="lab/Alpha-3B")
            page.click("text=Sign in with Hugging Face")
            page.wait_for_selector("text=Signed in as ada")
            assert check(page, *files, model="lab/Alpha-3B").startswith("Accepted")
            assert "pull request is open" in (line := press(page, "submit"))
            api = HfApi(hub.url, token=WRITER)
            [pull] = api.get_repo_discussions(
                RESULTS, repo_type="dataset", discussion_type="pull_request", discussion_status="open"
            )
            assert f"/discussions/{pull.num}" in line and "ada" in said_in(api, pull.num)

            assert post(url, discussion(pull.num), secret="wrong") == 403
            assert post(url, discussion(pull.num)) == 202
            comment = wait_for(lambda: said_in(api, pull.num), lambda text: "perturbed" in text)
            assert "Checked: commit" in comment

            api.merge_pull_request(RESULTS, pull.num, repo_type="dataset")
            assert post(url, pushed("refs/heads/main")) == 202
            until(page, "/", lambda text: "Alpha-3B" in text)
            page.click("nav >> text=Submit a run")
            page.wait_for_selector("text=Signed in as ada")
            [entry] = [path for path in hub.tree(f"datasets/{RESULTS}") if path.endswith("/entry.json")]
            assert entry.startswith("runs/ada/Alpha-3B/")
            for path in ("/", "/submit/", "/data.json", "/submit/config"):
                body = page.request.get(path).text()
                assert WRITER not in body and SECRET not in body and "oauth_access_token" not in body
        log = (tmp_path / "log").read_text()
        assert WRITER not in log and SECRET not in log and HOOK not in log
    assert not list(folder.rglob("*.parquet")), "nothing is kept beside the code"


def test_a_space_starts_where_the_hub_cannot_be_reached(url: str, browser: Any, tmp_path: Path) -> None:
    folder, port = tmp_path / "space", url.rpartition(":")[2]
    space(folder, results=RESULTS, title="A board")
    env = {name: text for name, text in os.environ.items() if not name.startswith("HF_")}
    env |= {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "cache"), "HF_TOKEN": WRITER}
    env |= {"SPACE_ID": "acme/board", "SYSTEM": "spaces", "OAUTH_CLIENT_ID": CLIENT, "OAUTH_SCOPES": "openid"}
    env |= {"OAUTH_CLIENT_SECRET": SECRET, "OPENID_PROVIDER_URL": NOWHERE, "GRADIO_SERVER_PORT": port}
    with running(["app.py"], url, tmp_path / "log", cwd=folder, env=env):
        page = browser.new_context(base_url=url).new_page()
        page.goto("/submit/")
        page.wait_for_selector("text=Sign in with Hugging Face")
        assert "being made" in until(page, "/", bool)
        line = wait_for((tmp_path / "log").read_text, lambda text: f"{RESULTS}: listing" in text)
        assert WRITER not in line and "Traceback" not in line


def said_in(api: HfApi, number: int) -> str:
    """Everything that stands in a discussion."""
    events = api.get_discussion_details(RESULTS, number, repo_type="dataset").events
    return "\n".join(f"{getattr(one, 'title', '')} {getattr(one, 'content', '')}" for one in events)


def wait_for(look: Callable[[], str], enough: Callable[[str], bool]) -> str:
    for _ in range(240):
        if enough(found := look()):
            return found
        time.sleep(0.5)
    raise AssertionError(found)


def post(url: str, event: dict[str, Any], secret: str = HOOK) -> int:
    """The answer's status."""
    headers = {"Content-Type": "application/json", "X-Webhook-Secret": secret}
    sent = urllib.request.Request(f"{url}/webhook", json.dumps(event).encode(), headers)
    try:
        with urllib.request.urlopen(sent, timeout=30) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code
