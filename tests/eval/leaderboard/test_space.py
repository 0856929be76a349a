"""The exported Space, run as a Space runs it: the Hub, signing in and the browser are all on loopback."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

import robustbench_tc
from robustbench_tc.errors import UserError
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.store import Store

from ...hub import WRITER, Hub
from .conftest import RunOf

pytest.importorskip("gradio", reason="a Space needs the extra leaderboard (make env-leaderboard)")

from robustbench_tc.eval.leaderboard.space import export_space, requirements

from .identity import CLIENT, SECRET, provider
from .test_rebuild import listed

UPLOAD = """
import sys
from huggingface_hub import HfApi
api = HfApi()
for name, folder, patterns in (("bench", sys.argv[1], None), ("results", sys.argv[2], ["submissions/*"])):
    api.create_repo(f"acme/{name}", repo_type="dataset")
    api.upload_folder(
        folder_path=folder, repo_id=f"acme/{name}", repo_type="dataset", allow_patterns=patterns
    )
"""

NOBODY = 65534
AS_NOBODY = [
    "setpriv",
    f"--reuid={NOBODY}",
    f"--regid={NOBODY}",
    "--clear-groups",
    "--no-new-privs",
    *(f"--{kind}=-all,+dac_read_search" for kind in ("bounding-set", "inh-caps", "ambient-caps")),
]
"""A user who may write to their own files only. The interpreter may lie in root's home: they may read it."""


def exported(folder: Path, **options: Any) -> Path:
    given = {"dataset": "acme/bench", "revision": None, "results_repo": "acme/results", "title": "A board"}
    export_space(folder, **{**given, **options})
    return folder


def test_the_card_says_what_a_space_needs(tmp_path: Path) -> None:
    folder = exported(tmp_path / "space", title='It\'s a "board": yes', revision="v1.0.0")
    text = (folder / "README.md").read_text()
    card = yaml.safe_load(text.split("---")[1])
    assert card["sdk"] == "gradio" and card["app_file"] == "app.py" and card["hf_oauth"] is True
    assert card["title"] == 'It\'s a "board": yes' and card["python_version"] == "3.11"
    assert card["datasets"] == ["acme/bench", "acme/results"] and len(card["short_description"]) <= 60
    pinned = dict(line.split("==") for line in (folder / "requirements.txt").read_text().split())
    assert pinned["gradio[oauth]"] == card["sdk_version"] and "duckdb" in pinned
    assert list(pinned) == [line.split("==")[0] for line in requirements()]
    compile((folder / "app.py").read_text(), "app.py", "exec")
    assert "revision='v1.0.0'" in (folder / "app.py").read_text().replace('"', "'")
    assert not [path for path in folder.rglob("*") if path.is_symlink() or path.name == "__pycache__"]
    for path in folder.rglob("*"):  # the Hub takes binary files by another way only
        assert not path.is_file() or b"\0" not in path.read_bytes()


def test_a_space_that_takes_live_runs_names_their_dataset(tmp_path: Path) -> None:
    folder = exported(tmp_path / "space", live_dataset="acme/live", live_revision="v2")
    card = yaml.safe_load((folder / "README.md").read_text().split("---")[1])
    assert card["datasets"] == ["acme/bench", "acme/live", "acme/results"]
    assert "`acme/live`, revision `v2`" in (folder / "README.md").read_text()
    app = (folder / "app.py").read_text().replace('"', "'")
    assert "live_dataset='acme/live'" in app and "live_revision='v2'" in app
    assert (folder / "robustbench_tc" / "worlds" / "orders.py").is_file()
    with pytest.raises(UserError, match="--live-dataset 'here' is not a Hub id"):
        exported(tmp_path / "other", live_dataset="here")


def test_an_export_refuses_what_no_space_can_use(tmp_path: Path) -> None:
    exported(tmp_path / "space")
    with pytest.raises(UserError, match="exists"):
        exported(tmp_path / "space")
    exported(tmp_path / "space", force=True)
    with pytest.raises(UserError, match="is not a Hub id"):
        exported(tmp_path / "other", dataset="../release")
    with pytest.raises(UserError, match="one line"):
        exported(tmp_path / "other", title="a\nsdk: docker")


def read_only(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


def test_an_exported_space_signs_in_and_stores_on_the_hub(
    release: Path, asked: Asked, run_of: RunOf, tmp_path: Path
) -> None:
    """As a Space that is handled roughly runs it: another user's read-only code, no home, nothing kept."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright")
    from .test_browser import CHROMIUM, OPTIONS, upload

    folder = exported(tmp_path / "space")
    [stated] = folder.glob("*.dist-info/METADATA")
    stated.write_text(stated.read_text().replace(robustbench_tc.__version__, "9.9.9"))
    read_only(folder)
    store = Store(tmp_path / "before")
    kept = listed(store, asked, run_of("name-biased"), "Kept-1B")
    own = tmp_path / "tmp"
    own.mkdir()
    is_root = os.getuid() == 0
    if is_root:
        os.chown(own, NOBODY, NOBODY)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://localhost:{port}"
    with Hub() as hub, provider("ann") as identity:
        env = hub.environment(WRITER, tmp_path / "cache")
        uploads = [sys.executable, "-c", UPLOAD, str(release), str(store.folder)]
        subprocess.run(uploads, env=env, check=True, capture_output=True)
        del env["HF_HOME"]
        env |= {
            "HOME": "/nonexistent",
            "TMPDIR": str(own),
            "SPACE_ID": "acme/board",
            "SYSTEM": "spaces",
            "OAUTH_CLIENT_ID": CLIENT,
            "OAUTH_CLIENT_SECRET": SECRET,
            "OAUTH_SCOPES": "openid profile",
            "OPENID_PROVIDER_URL": identity,
            "GRADIO_SERVER_PORT": str(port),
        }
        log = (tmp_path / "log").open("w+")
        process = subprocess.Popen(
            [*(AS_NOBODY if is_root else ()), sys.executable, "app.py"],
            cwd=folder,
            env=env,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait(url, process, tmp_path / "log")
            with playwright.sync_playwright() as tool:
                browser = tool.chromium.launch(executable_path=str(CHROMIUM), args=OPTIONS)
                page = browser.new_page(base_url=url)
                page.set_default_timeout(240_000)
                run = run_of("oracle")
                page.goto("/submit/")
                page.wait_for_selector("#check")
                page.click("#check")
                page.wait_for_selector("#report .verdict")
                assert "you are not signed in" in page.inner_text("#report .verdict")
                sent = page.request.post("/submit/gradio_api/upload", data="x" * 1000)
                assert sent.status == 401 and "Sign in" in sent.text()
                page.click("#signed-in >> text=Sign in with Hugging Face")
                page.wait_for_selector("#signed-in >> text=Signed in as ann")
                upload(page, run / "predictions.parquet", run / "run.json", "Alpha-3B")
                assert "Every check passed" in page.inner_text("#report .verdict")
                page.click("#list")
                page.wait_for_selector("#outcome .verdict.good")
                page.goto("/")
                board = page.inner_text("table.board")
                assert "Alpha-3B" in board and "ann" in board
                assert page.request.get(f"/model/{kept}").status == 200 and "Kept-1B" in board
                for path in ("/", "/submit/", "/board.json"):
                    body = page.request.get(path).text()
                    assert WRITER not in body and SECRET not in body and "oauth_access_token" not in body
                page.goto("/submit/")
                page.click("#signed-in >> text=Sign out")
                page.wait_for_selector("#signed-in >> text=Sign in with Hugging Face")
                browser.close()
        finally:
            process.terminate()
            process.wait(60)
        said = (tmp_path / "log").read_text()
        assert WRITER not in said and SECRET not in said and "oauth_access_token" not in said, said
        assert "Traceback" not in said, said
        # Made, what was there, the card, the entry of that, the submission.
        assert hub.commits("datasets/acme/results") == 5
    # Nothing was written beside the code.
    assert not list(folder.rglob("__pycache__")) and not (folder / "results").exists()
    records = list(own.glob("rbtc-results-*/submissions/*/record.json"))
    versions = {json.loads(path.read_text())["package_version"] for path in records}
    # What ran was the folder's own package, the part that reads uploads included.
    assert len(records) == 2 and versions == {robustbench_tc.__version__, "9.9.9"}


def _wait(url: str, process: "subprocess.Popen[Any]", log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(url, timeout=5).read()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(log.read_text())


def test_outside_a_space_signing_in_is_refused_in_one_line(tmp_path: Path) -> None:
    code = (
        "from robustbench_tc.cli.leaderboard import serve\n"
        "from robustbench_tc.errors import UserError\n"
        f"try: serve(store={str(tmp_path / 'r')!r}, login='hf')\n"
        "except UserError as error: print(error)"
    )
    env = {name: value for name, value in os.environ.items() if name != "SPACE_ID"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert "signing in works in a Space" in done.stdout
