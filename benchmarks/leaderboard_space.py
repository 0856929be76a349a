"""The exported Space as a Space runs it: how long until it answers, with 1,000 stored submissions.

    .venv-leaderboard/bin/python -m benchmarks.leaderboard_space [--submissions 1000] [--environment DIR]

`rbtc leaderboard export` writes the folder, which is made read-only; a new environment gets its
requirements.txt and nothing else; `python app.py` runs in the folder as user 65534 (where the benchmark is
run by root, else as the same user) with no home to write to. The Hub, with dataset and results, and signing
in are on loopback. Three starts: with the results kept from before but without their index (`kept`), with it
(`again`), and with nothing, so that all results come from the Hub (`fetched`). Bars: the first page, of all
submissions that are kept, within 10 s; of a start with nothing the page that says what is on its way.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .leaderboard import ROOT, in_leaderboard_environment
from .leaderboard_scale import Server, fill, ground

if TYPE_CHECKING:
    from tests.hub import Hub

NOBODY = 65534
PATIENCE_S = 600.0

UPLOAD = """
import sys
from huggingface_hub import HfApi
api = HfApi()
bench, results, *patterns = sys.argv[1:]
for repo, folder, patterns in (("acme/bench", bench, None), ("acme/results", results, patterns)):
    api.create_repo(repo, repo_type="dataset")
    api.upload_folder(folder_path=folder, repo_id=repo, repo_type="dataset", allow_patterns=patterns)
"""


class Space(Server):
    """An exported folder that runs."""

    def __init__(self, folder: Path, python: Path, environment: dict[str, str], log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        other: dict[str, Any] = {}
        if os.getuid() == 0:
            other = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.log = log
        with log.open("wb") as into:
            self._started = time.monotonic()
            self.process = subprocess.Popen(
                [str(python), "app.py"],
                cwd=folder,
                env=environment | {"GRADIO_SERVER_PORT": str(self.port)},
                stdout=into,
                stderr=into,
                start_new_session=True,  # as a server, it shares the cores with nothing of ours
                **other,
            )

    def shown(self, wanted: int) -> float:
        """Seconds from the command until the board has so many runs."""
        while time.monotonic() - self._started < PATIENCE_S:
            if len(json.loads(self.get("/board.json?unranked=on", PATIENCE_S)[2])["rows"]) == wanted:
                return round(time.monotonic() - self._started, 2)
            time.sleep(0.1)
        sys.exit(f"{wanted} runs are never shown: {self.log.read_text()[-2000:]}")

    def cpu_s(self) -> float:
        """Seconds of processor time that it has had: what a machine that others use as well moves less."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return round((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), 2)

    def whole(self) -> float:
        """Seconds from the command until the submit page, and with it everything, is there."""
        while time.monotonic() - self._started < PATIENCE_S:
            with suppress(urllib.error.HTTPError):  # 503: it is starting
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/submit/", timeout=PATIENCE_S).read()
                return round(time.monotonic() - self._started, 2)
        sys.exit(f"the submit page is never there: {self.log.read_text()[-2000:]}")


def environment_of(requirements: Path, folder: Path) -> Path:
    """The python of an environment with these requirements and nothing else; one that is there is that."""
    if (folder / "installed").is_file():
        return folder / "bin" / "python"
    bases = (getattr(sys, "_base_executable", sys.executable), "/usr/bin/python3.11", "/usr/bin/python3")
    base = next((one for one in bases if _reached(one)), None)
    if base is None:
        sys.exit(f"user {NOBODY} can run none of {', '.join(bases)}")
    subprocess.run([base, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    install = ["-m", "pip", "--python", str(python), "install", "-q", "-r", str(requirements)]
    subprocess.run([sys.executable, *install], check=True, stdout=sys.stderr)
    (folder / "installed").touch()
    return python


def _reached(python: str) -> bool:
    """Whether the unprivileged user can run it."""
    if os.getuid() != 0:
        return shutil.which(python) is not None
    try:
        done = subprocess.run([python, "-c", ""], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
    except OSError:
        return False
    return done.returncode == 0


def read_only(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & 0o555 | 0o444)


@contextmanager
def running(space: Space) -> Iterator[Space]:
    try:
        yield space
    except Exception:
        sys.stderr.write(space.log.read_text()[-4000:])
        raise
    finally:
        space.process.terminate()
        space.process.wait(60)


def measured(
    folder: Path, hub: "Hub", identity: str, size: int, environment: Path | None = None
) -> dict[str, Any]:
    from tests.eval.leaderboard.identity import CLIENT, SECRET
    from tests.hub import WRITER

    made = ground(folder)
    store = fill(folder / "results", made, size)
    patterns = ["submissions/*", "verifications/*", "entries/*"]
    env = hub.environment(WRITER, folder / "cache")
    subprocess.run(
        [sys.executable, "-c", UPLOAD, str(made.release), str(store.folder), *patterns],
        env=env,
        check=True,
        stdout=sys.stderr,
    )
    space = folder / "space"
    repos = ["--dataset", "acme/bench", "--results-repo", "acme/results"]
    command = [sys.executable, "-m", "robustbench_tc", "leaderboard", "export", str(space), *repos]
    subprocess.run(command, check=True, cwd=ROOT, stdout=sys.stderr)
    read_only(space)
    python = environment_of(space / "requirements.txt", environment or folder / "environment")
    found: dict[str, Any] = {"submissions": size}
    base = {
        "PATH": os.defpath,
        "HOME": "/nonexistent",
        "TMPDIR": str(_own(folder / "tmp")),
        "SPACE_ID": "acme/board",
        "SYSTEM": "spaces",
        "OAUTH_CLIENT_ID": CLIENT,
        "OAUTH_CLIENT_SECRET": SECRET,
        "OAUTH_SCOPES": "openid profile",
        "OPENID_PROVIDER_URL": identity,
        "HF_ENDPOINT": hub.url,
        "HF_TOKEN": WRITER,
    }
    kept = {"RBTC_RESULTS": str(_own(store.folder))}
    for start, more in (("kept", kept), ("again", kept), ("fetched", {})):
        with running(Space(space, python, base | more, folder / f"log-{start}")) as server:
            found |= {f"{start}_port_open_s": server.opened(), f"{start}_first_page_s": server.answered()}
            found[f"{start}_first_page_cpu_s"] = server.cpu_s()
            found[f"{start}_all_shown_s"] = server.shown(size)
            found[f"{start}_submit_page_s"] = server.whole()
        said = server.log.read_text()
        sys.stderr.write(f"{json.dumps(found)}\n{said}")
        if "Traceback" in said:
            sys.exit(f"{start}: {said[-3000:]}")
    return found


def _own(folder: Path) -> Path:
    """The folder, the unprivileged user's with all that is in it."""
    folder.mkdir(exist_ok=True)
    if os.getuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return folder


def main() -> None:
    in_leaderboard_environment("benchmarks.leaderboard_space")
    from tests.eval.leaderboard.identity import provider
    from tests.hub import Hub

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--submissions", type=int, default=1000)
    parser.add_argument("--environment", type=Path, help="made there, and used again; default a new one")
    options = parser.parse_args()
    found: dict[str, Any] = {"load_before": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory() as folder, Hub() as hub, provider("ann") as identity:
        Path(folder).chmod(0o755)
        found |= measured(Path(folder), hub, identity, options.submissions, options.environment)
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
