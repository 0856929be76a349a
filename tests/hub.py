"""A hub on the loopback interface for the real `huggingface_hub` and `datasets` clients.

    with Hub() as hub:
        hub.fault("commit", status=500)
        subprocess.run([...], env=hub.environment(WRITER, home))

The server (`hub_server.py`) runs in a process of its own and ends with the block, or with the test's process.
"""

import json
import os
import subprocess
import sys
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

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
    *("whoami", "create", "validate", "refs", "preupload", "batch", "upload", "complete", "commit", "tag"),
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
    """The server process, and what a test asks of it."""

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.hub_server"],
            cwd=Path(__file__).resolve().parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        return self

    def __exit__(self, *exc: object) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()  # the server ends with its standard input
        self.process.wait(60)
        self.process.stdout.close()

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

    def fault(self, route: str, **what: Json) -> None:
        """From now on `route` goes wrong: see `Fault`, and `ROUTES`."""
        self._ask("fault", asdict(Fault(route, **what)))

    def repair(self) -> None:
        """Ends all faults and settings."""
        self._ask("repair")

    def settings(self, **what: Json) -> None:
        """`page`: entries of a page of the tree. `chunk`: bytes from which LFS objects are sent in parts."""
        self._ask("settings", what)

    def change(self, repo: str, path: str, at: int = 0) -> None:
        """Flips a bit of a file at the head of `datasets/org/name`, as no commit could."""
        kind, _, name = repo.partition("/")
        self._ask("change", [kind, name, path, at])

    def copy(self, repo: str, name: str) -> None:
        """Makes `name` of `datasets/org/name`, with its history and pull requests."""
        kind, _, there = repo.partition("/")
        self._ask("copy", [kind, there, name])

    def tree(self, repo: str) -> dict[str, str]:
        """Path → sha256 of the files at the head of `datasets/org/name`."""
        found: dict[str, str] = self._ask("repos")[repo]["tree"]
        return found

    def tags(self, repo: str) -> dict[str, str]:
        """Tag → commit of `datasets/org/name`; empty where there is no such repository."""
        found: dict[str, str] = self._ask("repos").get(repo, {}).get("tags", {})
        return found

    def pull(self, repo: str, number: int) -> str:
        """The newest commit of a pull request."""
        return str(self._ask("repos")[repo]["pulls"][str(number)])

    def commits(self, repo: str) -> int:
        return int(self._ask("repos").get(repo, {}).get("commits", 0))

    def log(self) -> list[list[Json]]:
        """`[method, route, path, status]` of the requests since the last call."""
        found: list[list[Json]] = self._ask("log")
        return found

    def _ask(self, what: str, payload: Json = None) -> Json:
        request = urllib.request.Request(
            f"{self.url}/_hub/{what}", json.dumps(payload).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.loads(reply.read())
