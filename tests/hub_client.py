"""A process with the real `huggingface_hub` and `datasets`, which gets its orders through a pipe.

The clients read their environment when they are imported, so they cannot live in the test's own process; one
process serves many tests, because the imports take seconds. Waits between the clients' retries are cut short.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Json = Any


class Client:
    """The process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.hub_client"],
            cwd=Path(__file__).resolve().parents[1],
            env=dict(self.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def __getattr__(self, what: str) -> Callable[..., Json]:
        """One of `DO` below: gives what it returns as plain values, or `{"error": the UserError's line}`."""
        return partial(self._ask, what)

    def _ask(self, what: str, *given: Json, **how: Json) -> Json:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([what, given, how], default=str) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the client process ended while it was asked to {what}"
        return json.loads(line)


def rows_hash(rows: list[dict[str, Json]]) -> str:
    """sha256 over rows as plain values."""
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def _publish(folder: str, repo: str, token: str | None, **more: Json) -> Json:
    from robustbench_tc.release.publish import publish

    done = publish(Path(folder), repo, token=token, **more)
    return {name: getattr(done, name) for name in done.__struct_fields__}


def _load(repo: str, revision: str, configs: list[str], streaming: bool = False) -> Json:
    """Config → split → `{"rows": hash of the rows, "files": {path: sha256 of what was downloaded}}`."""
    import datasets
    from huggingface_hub import HfApi, hf_hub_download

    datasets.disable_progress_bars()
    listed = HfApi().list_repo_files(repo, repo_type="dataset", revision=revision)
    found: dict[str, Json] = {}
    for config in configs:
        loaded = datasets.load_dataset(repo, config, revision=revision, streaming=streaming)
        names = [] if streaming else [name for name in listed if name.startswith(f"{config}/")]
        paths = {
            name: hf_hub_download(repo, name, repo_type="dataset", revision=revision, local_files_only=True)
            for name in names
        }
        files = {name: hashlib.sha256(Path(path).read_bytes()).hexdigest() for name, path in paths.items()}
        rows = {split: rows_hash(list(data)) for split, data in loaded.items()}
        found[config] = {"rows": rows, "files": files}
    return found


def _resolve(repo: str, revision: str | None) -> Json:
    from robustbench_tc.io.resolve import resolve_dataset

    return {"folder": str(resolve_dataset(repo, revision))}


def _verify(name: str, against: str | None = None, key: str | None = None) -> Json:
    """Of a folder `against` the Hub, or of `org/name@version`."""
    from robustbench_tc.release import verify
    from robustbench_tc.release.hub import Hub

    repo, revision = verify.parse_name(against or name)
    hub, public = Hub(repo), None if key is None else Path(key)
    found = verify.verify(Path(name) if against else None, key=public, hub=hub, revision=revision)
    return {
        "intact": found.intact,
        "problems": [[problem.kind, problem.path] for problem in found.problems],
        "tolerated": list(found.tolerated),
        "witness": found.witness,
        "commit": found.commit,
        "yanked": found.yanked,
    }


def _yank(repo: str, revision: str, reason: str | None, token: str, use: str | None = None) -> Json:
    from robustbench_tc.release.hub import Hub
    from robustbench_tc.release.yank import yank_on_hub

    done = yank_on_hub(Hub(repo, token=token), revision, reason, date="2026-11-21", use=use)
    return {"yanked": [[one.version, one.reason, one.use] for one in done.yanked], "commit": done.commit}


DO: dict[str, Callable[..., Json]] = {
    "publish": _publish,
    "load": _load,
    "resolve": _resolve,
    "verify": _verify,
    "yank": _yank,
}


def serve() -> None:
    """Does what each line of standard input says until it ends."""
    import time

    from robustbench_tc.errors import UserError

    time.sleep = lambda seconds: None
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        what, given, how = json.loads(line)
        try:
            found = DO[what](*given, **how)
        except UserError as error:
            found = {"error": str(error)}
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
