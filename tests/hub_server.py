"""The hub's server: repositories, one-commit uploads with LFS, refs, trees, downloads with ranges, whoami.

`python -m tests.hub_server` prints its address and serves until its standard input ends. State is in memory.
"""

import base64
import hashlib
import json
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from .hub import NARROW, READER, STRANGER, TOKENS, Fault, Json, identity


@dataclass(frozen=True)
class Blob:
    content: bytes
    lfs: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def git(self) -> str:
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content).hexdigest()

    @property
    def oid(self) -> str:
        """What the client compares before it uploads."""
        return self.sha256 if self.lfs else self.git


Tree = dict[str, Blob]


@dataclass
class Repo:
    commits: dict[str, Tree] = field(default_factory=dict)
    head: str = ""
    tags: dict[str, str] = field(default_factory=dict)

    def commit(self, tree: Tree) -> str:
        text = json.dumps([self.head, {path: blob.oid for path, blob in sorted(tree.items())}])
        self.head = hashlib.sha1(text.encode()).hexdigest()
        self.commits[self.head] = tree
        return self.head

    def resolve(self, revision: str) -> str | None:
        revision = self.head if revision == "main" else self.tags.get(revision, revision)
        return revision if revision in self.commits else None


class State:
    """Everything the hub knows."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.repos: dict[tuple[str, str], Repo] = {}
        self.objects: dict[tuple[str, str], bytes] = {}
        """LFS objects by repository and sha256."""
        self.faults: list[Fault] = []
        self.log: list[Json] = []

    def strike(self, route: str, path: str) -> Fault | None:
        """The fault that this request meets, if any."""
        with self.lock:
            for fault in self.faults:
                if fault.route == route and fault.path in path and fault.times:
                    if fault.after:
                        fault.after -= 1
                        return None
                    fault.times -= 1
                    return fault
        return None


@dataclass
class Answer:
    status: int = 200
    body: Json = None
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None


def refusal(status: int, message: str, code: str = "") -> Answer:
    headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
    return Answer(status, {"error": message}, headers)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet: apart, each answer waits 40 ms for an acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True
    state: State

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _handle(self) -> None:
        url = urlsplit(self.path)
        self.query = parse_qs(url.query)
        self.payload = self._read()
        path = unquote(url.path)
        route, act = self._route(self.command, path)
        fault = self.state.strike(route, path)
        if fault and fault.seconds:
            time.sleep(fault.seconds)
        if fault and fault.truncate and route == "upload":
            self.payload = self.payload[: len(self.payload) // 2]
        if fault and fault.status:
            answer = refusal(fault.status, fault.message)
        else:
            answer = act()
        self.state.log.append([self.command, route, path, answer.status])
        if fault and fault.drop:
            self.close_connection = True
            self.connection.close()
            return
        self._send(answer, fault)

    do_GET = do_HEAD = do_POST = do_PUT = _handle

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _send(self, answer: Answer, fault: Fault | None) -> None:
        content = answer.content
        if content is None:
            content = json.dumps(answer.body).encode()
            answer.headers.setdefault("Content-Type", "application/json")
        start, end = 0, len(content)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if wanted and answer.content is not None and answer.status == 200:
            start, end = int(wanted[1]), min(int(wanted[2]) + 1 if wanted[2] else end, end)
            answer.status = 206
            answer.headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        part = content[start:end]
        if fault and fault.garble:
            part = bytes(byte ^ 1 for byte in part)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault and fault.truncate and self.command == "GET":
            self.wfile.write(part[: len(part) // 2])
            self.close_connection = True
            return
        self.wfile.write(part)

    # --- who asks for what ----------------------------------------------------------------------------

    def _route(self, method: str, path: str) -> tuple[str, Callable[[], Answer]]:
        if path.startswith("/_hub/"):
            return "control", lambda: self._control(path.removeprefix("/_hub/"))
        if path == "/api/whoami-v2":
            return "whoami", self._whoami
        if path == "/api/repos/create":
            return "create", self._create
        if path == "/api/validate-yaml":
            return "validate", lambda: Answer(body={"errors": [], "warnings": []})
        if match := re.fullmatch(r"/_lfs/(.+)/(\w+)", path):
            return "upload", lambda: self._upload(match[1], match[2])
        if match := re.fullmatch(r"(?:/(datasets))?/([^/]+/[^/]+)\.git/info/lfs/objects/batch", path):
            return "batch", lambda: self._batch(f"{match[1] or 'models'}/{match[2]}")
        if match := re.fullmatch(r"(?:/(datasets))?/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            return "resolve", lambda: self._resolve(match[1] or "models", match[2], match[3], match[4])
        if match := re.fullmatch(
            r"/api/(datasets|models)/([^/]+/[^/]+)(?:/([\w-]+)(?:/([^/]+)(?:/(.+))?)?)?", path
        ):
            what = match[3] or "info"
            return what, lambda: self._repository(
                match[1], match[2], what, match[4] or "main", match[5] or ""
            )
        return "unknown", lambda: refusal(404, f"no route {method} {path}")

    def _token(self) -> str | None:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ").strip() or None

    def _may_write(self, owner: str) -> Answer | None:
        token = self._token()
        if token not in TOKENS:
            return refusal(401, "Invalid credentials in Authorization header")
        if token in (READER, NARROW, STRANGER) or owner != "acme":
            return refusal(403, "You don't have the rights to do this")
        return None

    def _whoami(self) -> Answer:
        token = self._token()
        if token not in TOKENS:
            return refusal(401, "Invalid credentials in Authorization header")
        return Answer(body=identity(token))

    # --- writing --------------------------------------------------------------------------------------

    def _create(self) -> Answer:
        asked = json.loads(self.payload)
        owner, kind = asked.get("organization") or "maintainer", f"{asked.get('type') or 'model'}s"
        if refused := self._may_write(owner):
            return refused
        name = f"{owner}/{asked['name']}"
        url = f"{self._base()}/{'datasets/' if kind == 'datasets' else ''}{name}"
        with self.state.lock:
            if (kind, name) in self.state.repos:
                return Answer(409, {"error": "You already created this repo", "url": url})
            repo = self.state.repos[kind, name] = Repo()
            repo.commit({".gitattributes": Blob(b"*.parquet filter=lfs\n", lfs=False)})
        return Answer(body={"url": url, "name": name})

    def _batch(self, repo: str) -> Answer:
        objects = [
            {"oid": found["oid"], "size": found["size"]}
            | (
                {}
                if (repo, found["oid"]) in self.state.objects
                else {"actions": {"upload": {"href": f"{self._base()}/_lfs/{repo}/{found['oid']}"}}}
            )
            for found in json.loads(self.payload)["objects"]
        ]
        return Answer(body={"transfer": "basic", "objects": objects})

    def _upload(self, repo: str, oid: str) -> Answer:
        if hashlib.sha256(self.payload).hexdigest() != oid:
            return refusal(400, "the bytes are not those of the object")
        self.state.objects[repo, oid] = self.payload
        return Answer(body={})

    def _repository(self, kind: str, name: str, what: str, revision: str, rest: str) -> Answer:
        repo = self.state.repos.get((kind, name))
        if repo is None:
            return refusal(404, "Repository not found", "RepoNotFound")
        if what == "refs":
            return Answer(body=_refs(repo))
        if self.command == "POST" and what in ("preupload", "commit", "tag"):
            if refused := self._may_write(name.split("/")[0]):
                return refused
            with self.state.lock:
                act = {"preupload": self._preupload, "commit": self._commit, "tag": self._tag}[what]
                return act(repo, revision, f"{'datasets/' if kind == 'datasets' else ''}{name}")
        commit = repo.resolve(revision)
        if commit is None:
            return refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        if what in ("info", "revision"):
            return Answer(body=_info(name, commit, repo.commits[commit]))
        if what == "tree":
            return self._tree(repo.commits[commit], rest)
        return refusal(404, f"no route {what}")

    def _preupload(self, repo: Repo, revision: str, address: str) -> Answer:
        tree = repo.commits[repo.head]
        files = []
        for found in json.loads(self.payload)["files"]:
            path = found["path"]
            lfs = path.endswith((".parquet", ".safetensors")) or found["size"] > 10 * 2**20
            here = tree.get(path)
            files.append(
                {
                    "path": path,
                    "uploadMode": "lfs" if lfs else "regular",
                    "shouldIgnore": False,
                    "oid": here.oid if here else None,
                }
            )
        return Answer(body={"files": files})

    def _commit(self, repo: Repo, revision: str, address: str) -> Answer:
        if revision != "main":
            return refusal(400, "only main takes commits here")
        tree = dict(repo.commits[repo.head])
        store = address if address.startswith("datasets/") else f"models/{address}"
        for line in self.payload.splitlines():
            operation = json.loads(line)
            value = operation["value"]
            if operation["key"] == "header":
                if value.get("parentCommit") not in (None, repo.head):
                    return refusal(412, "A commit has happened since. Please refresh and try again.")
            elif operation["key"] == "file":
                tree[value["path"]] = Blob(base64.b64decode(value["content"]), lfs=False)
            elif operation["key"] == "lfsFile":
                content = self.state.objects.get((store, value["oid"]))
                if content is None:
                    return refusal(400, f"LFS pointer pointed to a file that does not exist: {value['path']}")
                tree[value["path"]] = Blob(content, lfs=True)
            elif operation["key"] == "deletedFile":
                del tree[value["path"]]
        commit = repo.commit(tree)
        url = f"{self._base()}/{address}/commit/{commit}"
        return Answer(body={"commitUrl": url, "commitOid": commit, "success": True})

    def _tag(self, repo: Repo, revision: str, address: str) -> Answer:
        name, commit = json.loads(self.payload)["tag"], repo.resolve(revision)
        if commit is None:
            return refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        if name in repo.tags:
            return refusal(409, f"Tag {name} already exists")
        repo.tags[name] = commit
        return Answer(body={})

    # --- reading --------------------------------------------------------------------------------------

    def _tree(self, tree: Tree, folder: str) -> Answer:
        prefix = f"{folder.rstrip('/')}/" if folder else ""
        recursive = self.query.get("recursive", [""])[0].lower() in ("true", "1")
        entries: dict[str, Json] = {}
        for path, blob in sorted(tree.items()):
            if not path.startswith(prefix):
                continue
            parts = path.removeprefix(prefix).split("/")
            for depth in range(1, len(parts) if recursive else min(len(parts), 2)):
                above = prefix + "/".join(parts[:depth])
                oid = hashlib.sha1(above.encode()).hexdigest()
                entries.setdefault(above, {"type": "directory", "oid": oid, "size": 0, "path": above})
            if recursive or len(parts) == 1:
                entries[path] = _file_entry(path, blob)
        if folder and not entries:
            return refusal(404, f"{folder} does not exist", "EntryNotFound")
        return Answer(body=list(entries.values()))

    def _resolve(self, kind: str, name: str, revision: str, path: str) -> Answer:
        repo = self.state.repos.get((kind, name))
        if repo is None:
            return refusal(404, "Repository not found", "RepoNotFound")
        commit = repo.resolve(revision)
        if commit is None:
            return refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        blob = repo.commits[commit].get(path)
        if blob is None:
            return refusal(404, "Entry not found", "EntryNotFound")
        headers = {
            "X-Repo-Commit": commit,
            "ETag": f'"{blob.oid}"',
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
        }
        if blob.lfs:
            headers |= {"X-Linked-Etag": f'"{blob.oid}"', "X-Linked-Size": str(len(blob.content))}
        return Answer(headers=headers, content=blob.content)

    # --- the test's own door --------------------------------------------------------------------------

    def _control(self, what: str) -> Answer:
        with self.state.lock:
            if what == "fault":
                self.state.faults.append(Fault(**json.loads(self.payload)))
            elif what == "mend":
                self.state.faults.clear()
            elif what == "repos":
                found = {
                    f"{kind}/{name}": {"head": repo.head, "tags": repo.tags, "commits": len(repo.commits)}
                    for (kind, name), repo in self.state.repos.items()
                }
                return Answer(body=found)
            elif what == "log":
                log, self.state.log = self.state.log, []
                return Answer(body=[line for line in log if line[1] != "control"])
        return Answer(body={})

    def _base(self) -> str:
        return f"http://{self.headers['Host']}"


def _refs(repo: Repo) -> Json:
    def ref(kind: str, name: str, commit: str) -> Json:
        return {"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": commit}

    return {
        "branches": [ref("heads", "main", repo.head)],
        "tags": [ref("tags", name, commit) for name, commit in repo.tags.items()],
        "converts": [],
    }


def _info(name: str, commit: str, tree: Tree) -> Json:
    return {
        "id": name,
        "sha": commit,
        "siblings": [{"rfilename": path} for path in sorted(tree)],
        "lastModified": "2026-11-20T00:00:00.000Z",
        "private": False,
        "tags": [],
    }


def _file_entry(path: str, blob: Blob) -> Json:
    entry = {"type": "file", "oid": blob.git, "size": len(blob.content), "path": path}
    if blob.lfs:
        entry["lfs"] = {"oid": blob.sha256, "size": len(blob.content), "pointerSize": 134}
    return entry


def serve() -> None:
    """Serves until standard input ends, so that no hub outlives its test."""
    state = State()
    handler = type("BoundHandler", (Handler,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    serve()
