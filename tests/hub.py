"""A hub on the loopback interface for the real `huggingface_hub` and `datasets` clients.

    with Hub() as hub:                  # by hand: python -m tests.hub (docs/releases.md)
        hub.fault("commit", status=500)
        subprocess.run([...], env=hub.environment(WRITER, home))

The server (`hub_server.py`) runs in threads of the test's process. Large files go through Xet as in a real
upload: the token route names a `local://` folder, which the real `hf_xet` uploads into and downloads from,
and the hub reads the store's shards. With `HF_HUB_DISABLE_XET=1` the same files are classic LFS. A fault of a
route is a status (429 with `Retry-After`), silence, a dropped connection, half the bytes or other bytes.
Clients run in processes of their own (`hub_client.py`): they read their environment when imported.
"""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from .hub_store import Repo

Json = Any

WRITER = "hf_writer_of_acme_0123456789"
READER = "hf_reader_of_acme_0123456789"
FINE = "hf_fine_grained_acme_0123456789"
NARROW = "hf_fine_grained_elsewhere_0123456789"
STRANGER = "hf_stranger_to_acme_0123456789"
ADA = "hf_ada_of_lab_0123456789"
"""Of another organisation, `lab`."""
MALLORY = "hf_mallory_0123456789"
"""Of none."""

ROUTES = (
    *("whoami", "create", "validate", "refs", "preupload", "batch", "upload", "commit", "tag"),
    *("info", "revision", "tree", "resolve", "xet-write-token", "xet-read-token"),
)
"""What a fault can be about."""

_SCOPES = {
    FINE: [{"entity": {"type": "org", "name": "acme"}, "permissions": ["repo.content.read", "repo.write"]}],
    NARROW: [{"entity": {"type": "org", "name": "acme"}, "permissions": ["repo.content.read"]}],
}
TOKENS = {WRITER: "write", READER: "read", FINE: "fineGrained", NARROW: "fineGrained", STRANGER: "write"}
TOKENS |= {ADA: "write", MALLORY: "write"}
_ACCOUNTS = {STRANGER: ("stranger", None), ADA: ("ada", "lab"), MALLORY: ("mallory", None)}
"""Name and organisation of accounts; of the other tokens `maintainer`, of acme."""


def identity(token: str) -> Json:
    """The answer of whoami-v2 for one of the tokens above."""
    name, org = _ACCOUNTS.get(token, ("maintainer", "acme"))
    orgs = [{"name": org, "roleInOrg": "admin"}] if org else []
    access: dict[str, Json] = {"displayName": "test", "role": TOKENS[token]}
    if token in _SCOPES:
        access["fineGrained"] = {"scoped": _SCOPES[token], "global": []}
    return {
        "type": "user",
        "name": name,
        "orgs": orgs,
        "auth": {"type": "access_token", "accessToken": access},
    }


@dataclass
class Fault:
    """What goes wrong on a route: an HTTP status, or silence, or bytes that are not the file's."""

    route: str
    status: int = 0
    retry_after: int | None = None
    """Seconds, for the header of that name."""
    message: str = ""
    seconds: float = 0.0
    """Wait so long, then answer as ever."""
    drop: bool = False
    """Do what was asked, then close the connection without an answer."""
    truncate: bool = False
    """Announce the whole file, send half. An upload: only half of it arrives."""
    garble: bool = False
    """As many bytes as the file has, but others."""
    after: int = 0
    """Requests of the route that pass first."""
    times: int = 10**6
    path: str = ""
    """Only requests whose path holds this."""


class Hub:
    """The server, and what a test asks of it."""

    def __enter__(self) -> Self:
        from .hub_server import Handler, State

        self.state = State()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"state": self.state}))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def environment(self, token: str | None, home: Path, *, xet: bool = False) -> dict[str, str]:
        """The environment of a client process: this hub, a cache of its own, no other network.

        `xet`: large files go through the real `hf_xet`, as they do by default; else they are classic LFS.
        """
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
        kept |= {
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_XET": "0" if xet else "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        }
        return kept | ({"HF_TOKEN": token} if token else {})

    def rbtc(self, *words: object, home: Path, token: str | None = None) -> subprocess.CompletedProcess[str]:
        """The command in a process of its own."""
        code = "from robustbench_tc.cli import main; main()"
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, words)],
            cwd=Path(__file__).resolve().parents[1],
            env=self.environment(token, home),
            capture_output=True,
            text=True,
            check=False,
        )

    def fault(self, route: str, **what: Json) -> None:
        """From now on `route` goes wrong: see `Fault`, and `ROUTES`."""
        self.state.faults.append(Fault(route, **what))

    def repair(self) -> None:
        """Ends all faults."""
        self.state.faults.clear()

    def repo(self, name: str) -> "Repo | None":
        """`datasets/org/name`."""
        kind, _, rest = name.partition("/")
        return self.state.repos.get((kind, rest))

    def there(self, name: str) -> "Repo":
        """The same, which has to be there."""
        found = self.repo(name)
        assert found is not None
        return found

    def change(self, repo: str, path: str, at: int = 0) -> None:
        """Flips a bit of a file at the head of a repository, as no commit could."""
        tree = self.there(repo).commits[self.there(repo).head]
        held = bytearray(tree[path].content)
        held[at] ^= 1
        tree[path] = type(tree[path])(bytes(held), tree[path].lfs)

    def copy(self, repo: str, name: str) -> None:
        """Makes `name` of a repository, with its history and pull requests."""
        self.state.repos[repo.partition("/")[0], name] = deepcopy(self.there(repo))

    def tree(self, repo: str) -> dict[str, str]:
        """Path → sha256 of the files at the head of a repository."""
        found = self.there(repo)
        return {path: blob.sha256 for path, blob in found.commits[found.head].items()}

    def tags(self, repo: str) -> dict[str, str]:
        """Tag → commit; empty where there is no such repository."""
        found = self.repo(repo)
        return {} if found is None else dict(found.tags)

    def pull(self, repo: str, number: int) -> str:
        """The newest commit of a pull request."""
        return self.there(repo).pulls[number].head

    def commits(self, repo: str) -> int:
        found = self.repo(repo)
        return 0 if found is None else len(found.commits)

    def log(self) -> list[list[Json]]:
        """`[method, route, path, status]` of the requests since the last call."""
        log, self.state.log = self.state.log, []
        return log


def by_hand() -> None:
    """`python -m tests.hub`: a hub until it is interrupted; prints what a client's shell has to export."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Hub() as hub, TemporaryDirectory() as home:
        environment = hub.environment(WRITER, Path(home))
        told = {name: value for name, value in environment.items() if name.startswith("HF_")}
        sys.stdout.write(f"export {' '.join(f'{name}={value}' for name, value in told.items())}\n")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    by_hand()
