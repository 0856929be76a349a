"""The hub's server: one-commit uploads with LFS (whole or in parts) and Xet, refs, trees in pages, downloads
with ranges, whoami, pull requests with their comments.

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
from copy import deepcopy
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from .hub import FINE, TOKENS, WRITER, Fault, Json, identity
from .hub_store import NOW, Blob, Pull, Repo, Xet, listing


class State:
    """Everything the hub knows."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.repos: dict[tuple[str, str], Repo] = {}
        self.objects: dict[tuple[str, str], bytes] = {}
        """LFS objects by repository and sha256."""
        self.parts: dict[tuple[str, str], dict[int, bytes]] = {}
        """Parts of LFS objects that are on their way."""
        self.xet = Xet()
        self.page = 1_000
        """Entries of a page of the tree listing."""
        self.chunk: int | None = None
        """LFS objects larger than this are asked for in parts of this size."""
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
        route, act = self._route(self.command, url.path)
        fault = self.state.strike(route, path)
        if fault and fault.seconds:
            time.sleep(fault.seconds)
        if fault and fault.truncate and route == "upload":
            self.payload = self.payload[: len(self.payload) // 2]
        if fault and fault.status:
            answer = refusal(fault.status, fault.message)
            if fault.retry_after is not None:
                answer.headers["Retry-After"] = str(fault.retry_after)
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
        # The path as it came: `refs%2Fpr%2F1` is one part of it.
        if path.startswith("/_hub/"):
            return "control", lambda: self._control(path.removeprefix("/_hub/"))
        if path == "/api/whoami-v2":
            return "whoami", self._whoami
        if path == "/api/repos/create":
            return "create", self._create
        if path == "/api/validate-yaml":
            return "validate", lambda: Answer(body={"errors": [], "warnings": []})
        if match := re.fullmatch(r"/_lfs/(.+)/([0-9a-f]{64})", path):
            return "upload", lambda: self._upload(match[1], match[2])
        if match := re.fullmatch(r"/_lfs/(.+)/([0-9a-f]{64})/(\d+)", path):
            return "upload", lambda: self._part(match[1], match[2], int(match[3]))
        if match := re.fullmatch(r"/_lfs/(.+)/([0-9a-f]{64})/complete", path):
            return "complete", lambda: self._complete(match[1], match[2])
        if match := re.fullmatch(r"(?:/(datasets))?/([^/]+/[^/]+)\.git/info/lfs/objects/batch", path):
            return "batch", lambda: self._batch(f"{match[1] or 'models'}/{match[2]}")
        if match := re.fullmatch(r"(?:/(datasets))?/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            return "resolve", lambda: self._resolve(
                match[1] or "models", match[2], unquote(match[3]), unquote(match[4])
            )
        if match := re.fullmatch(r"/api/organizations/([^/]+)/members", path):
            return "members", lambda: self._members(match[1])
        if match := re.fullmatch(
            r"/api/(datasets|models)/([^/]+/[^/]+)(?:/([\w-]+)(?:/([^/]+)(?:/(.+))?)?)?", path
        ):
            what = match[3] or "info"
            return what, lambda: self._repository(
                match[1], match[2], what, unquote(match[4] or "main"), unquote(match[5] or "")
            )
        return "unknown", lambda: refusal(404, f"no route {method} {path}")

    def _token(self) -> str | None:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ").strip() or None

    def _may_write(self, owner: str) -> Answer | None:
        token = self._token()
        if token not in TOKENS:
            return refusal(401, "Invalid credentials in Authorization header")
        if token not in (WRITER, FINE) or owner != "acme":
            return refusal(403, "You don't have the rights to do this")
        return None

    def _may_propose(self, pull: Pull | None = None) -> Answer | None:
        """Whoever may write anywhere opens pull requests and comments; into one pushes its author."""
        token = self._token()
        if token not in TOKENS:
            return refusal(401, "Invalid credentials in Authorization header")
        if TOKENS[token] != "write" or (pull and pull.author != identity(token)["name"]):
            return refusal(403, "You don't have the rights to do this")
        return None

    def _whoami(self) -> Answer:
        token = self._token()
        if token not in TOKENS:
            return refusal(401, "Invalid credentials in Authorization header")
        return Answer(body=identity(token))

    def _members(self, organisation: str) -> Answer:
        known = [identity(token) for token in TOKENS]
        names = {one["name"] for one in known if organisation in [org["name"] for org in one["orgs"]]}
        return Answer(body=[{"user": name, "fullname": name} for name in sorted(names)])

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
        objects = []
        for found in json.loads(self.payload)["objects"]:
            asked = {"oid": found["oid"], "size": found["size"]}
            if (repo, found["oid"]) not in self.state.objects:
                asked["actions"] = {"upload": self._upload_action(repo, found["oid"], found["size"])}
            objects.append(asked)
        return Answer(body={"transfer": "basic", "objects": objects})

    def _upload_action(self, repo: str, oid: str, size: int) -> Json:
        href = f"{self._base()}/_lfs/{repo}/{oid}"
        chunk = self.state.chunk
        if chunk is None or size <= chunk:
            return {"href": href}
        parts = {str(number): f"{href}/{number}" for number in range(1, -(-size // chunk) + 1)}
        return {"href": f"{href}/complete", "header": {"chunk_size": str(chunk), **parts}}

    def _upload(self, repo: str, oid: str) -> Answer:
        return self._stored(repo, oid, self.payload)

    def _part(self, repo: str, oid: str, number: int) -> Answer:
        self.state.parts.setdefault((repo, oid), {})[number] = self.payload
        return Answer(body={}, headers={"ETag": f'"{hashlib.md5(self.payload).hexdigest()}"'})

    def _complete(self, repo: str, oid: str) -> Answer:
        parts = self.state.parts.pop((repo, oid), {})
        for named in json.loads(self.payload)["parts"]:
            held = parts.get(named["partNumber"], b"")
            if named["etag"].strip('"') != hashlib.md5(held).hexdigest():
                return refusal(400, f"part {named['partNumber']} is not the one that was sent")
        return self._stored(repo, oid, b"".join(parts[number] for number in sorted(parts)))

    def _stored(self, repo: str, oid: str, content: bytes) -> Answer:
        if hashlib.sha256(content).hexdigest() != oid:
            return refusal(400, "the bytes are not those of the object")
        self.state.objects[repo, oid] = content
        return Answer(body={})

    def _repository(self, kind: str, name: str, what: str, revision: str, rest: str) -> Answer:
        repo = self.state.repos.get((kind, name))
        if repo is None:
            return refusal(404, "Repository not found", "RepoNotFound")
        if what == "refs":
            return Answer(body=repo.refs())
        if what == "discussions":
            with self.state.lock:
                return self._discussions(repo, name, revision, rest)
        proposed = "create_pr" in self.query or repo.pull(revision) is not None
        refused = self._may_propose(repo.pull(revision)) if proposed else None
        if refused or not proposed:
            refused = self._may_write(name.split("/")[0])
        if what in ("xet-write-token", "xet-read-token"):
            if what == "xet-write-token" and refused:
                return refused
            return self._xet_token()
        if self.command == "POST" and what in ("preupload", "commit", "tag"):
            if refused:
                return refused
            with self.state.lock:
                act = {"preupload": self._preupload, "commit": self._commit, "tag": self._tag}[what]
                return act(repo, revision, f"{'datasets/' if kind == 'datasets' else ''}{name}")
        commit = repo.resolve(revision)
        if commit is None:
            return refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        if what in ("info", "revision"):
            return Answer(body=_info(name, commit, repo.commits[commit], blobs="blobs" in self.query))
        if what == "commits":
            listed = [
                {"id": one, "authors": [], "date": NOW, "title": "", "message": ""}
                for one in repo.history(commit)
            ]
            return Answer(body=listed)
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
        pull = repo.pull(revision)
        if revision != "main" and pull is None:
            return refusal(400, "only main and pull requests take commits here")
        head = pull.head if pull else repo.head
        tree, header = dict(repo.commits[head]), {"summary": "", "description": ""}
        store = address if address.startswith("datasets/") else f"models/{address}"
        for line in self.payload.splitlines():
            operation = json.loads(line)
            value = operation["value"]
            if operation["key"] == "header":
                header |= value
                if value.get("parentCommit") not in (None, head):
                    return refusal(412, "A commit has happened since. Please refresh and try again.")
            elif operation["key"] == "file":
                tree[value["path"]] = Blob(base64.b64decode(value["content"]), lfs=False)
            elif operation["key"] == "lfsFile":
                content = self.state.objects.get((store, value["oid"]))
                blob = self.state.xet.blob(value["oid"]) if content is None else Blob(content, lfs=True)
                if blob is None:
                    return refusal(400, f"LFS pointer pointed to a file that does not exist: {value['path']}")
                tree[value["path"]] = blob
            elif operation["key"] == "deletedFile":
                del tree[value["path"]]
        more = {}
        if "create_pr" in self.query:
            pull = repo.propose(self._name(), header["summary"], header["description"], tree)
            commit, more = (
                pull.head,
                {"pullRequestUrl": f"{self._base()}/{address}/discussions/{pull.number}"},
            )
        elif pull:
            commit = repo.add(tree, pull.head)
            pull.push(self._name(), commit, header["summary"])
        else:
            commit = repo.commit(tree)
        url = f"{self._base()}/{address}/commit/{commit}"
        return Answer(body={"commitUrl": url, "commitOid": commit, "success": True, **more})

    def _name(self) -> str:
        """The account that asks."""
        return str(identity(self._token() or "")["name"])

    def _discussions(self, repo: Repo, name: str, number: str, act: str) -> Answer:
        """The list of pull requests in pages, the page of one, and what is done to one."""
        if not number.isdecimal():
            kinds = {"open": ["open"], "closed": ["closed", "merged"], "all": ["open", "closed", "merged"]}
            wanted = kinds[self.query["status"][0]]
            there = [
                pull
                for pull in reversed(repo.pulls.values())
                if pull.status in wanted and pull.author in self.query.get("author", [pull.author])
            ]
            start = int(self.query.get("p", ["0"])[0]) * 10
            page = [pull.shown(name, []) for pull in there[start : start + 10]]
            return Answer(body={"discussions": page, "count": len(there), "start": start})
        pull = repo.pulls.get(int(number))
        if pull is None:
            return refusal(404, f"no discussion {number}")
        conflicts = repo.conflicts(pull) if pull.status == "open" else []
        if not act:
            return Answer(body=pull.shown(name, conflicts))
        theirs = act != "merge" and (act == "comment" or pull.author == self._name())
        if refused := self._may_propose() if theirs else self._may_write(name.split("/")[0]):
            return refused
        said = json.loads(self.payload or b"null") or {}
        if act == "merge":
            if conflicts or pull.status != "open":
                return refusal(409, f"conflicts in {', '.join(conflicts)}, or not open")
            repo.merge(pull)
        if act == "comment":
            return Answer(body={"newMessage": pull.comment(self._name(), said["comment"])})
        pull.status = said.get("status", "merged")
        return Answer(body={"newStatus": pull.tell("status-change", self._name(), {"status": pull.status})})

    def _tag(self, repo: Repo, revision: str, address: str) -> Answer:
        name, commit = json.loads(self.payload)["tag"], repo.resolve(revision)
        if commit is None:
            return refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        if name in repo.tags:
            return refusal(409, f"Tag {name} already exists")
        repo.tags[name] = commit
        return Answer(body={})

    # --- reading --------------------------------------------------------------------------------------

    def _tree(self, tree: dict[str, Blob], folder: str) -> Answer:
        recursive = self.query.get("recursive", [""])[0].lower() in ("true", "1")
        entries = listing(tree, folder, recursive)
        if folder and not entries:
            return refusal(404, f"{folder} does not exist", "EntryNotFound")
        start = int(self.query.get("cursor", ["0"])[0])
        page = Answer(body=entries[start : start + self.state.page])
        if start + self.state.page < len(entries):
            path, _, _ = self.path.partition("?")
            query = urlencode({"recursive": str(recursive).lower(), "cursor": start + self.state.page})
            page.headers["Link"] = f'<{self._base()}{path}?{query}>; rel="next"'
        return page

    def _xet_token(self) -> Answer:
        token = self.state.xet.token()
        headers = {
            "X-Xet-Cas-Url": token["casUrl"],
            "X-Xet-Access-Token": token["accessToken"],
            "X-Xet-Token-Expiration": str(token["exp"]),
        }
        return Answer(body=token, headers=headers)

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
        if blob.xet:
            headers["X-Xet-Hash"] = blob.xet
            route = f"/api/{kind}/{name}/xet-read-token/{commit}"
            headers["X-Xet-Refresh-Route"] = f"{self._base()}{route}"
        return Answer(headers=headers, content=blob.content)

    # --- the test's own door --------------------------------------------------------------------------

    def _control(self, what: str) -> Answer:
        with self.state.lock:
            if what == "fault":
                self.state.faults.append(Fault(**json.loads(self.payload)))
            elif what == "repair":
                self.state.faults.clear()
                self.state.page, self.state.chunk = 1_000, None
            elif what == "settings":
                for name, value in json.loads(self.payload).items():
                    setattr(self.state, name, value)
            elif what == "change":
                kind, name, path, at = json.loads(self.payload)
                repo = self.state.repos[kind, name]
                tree = repo.commits[repo.head]
                held = bytearray(tree[path].content)
                held[at] ^= 1
                tree[path] = Blob(bytes(held), tree[path].lfs)
            elif what == "copy":
                kind, name, copy = json.loads(self.payload)
                self.state.repos[kind, copy] = deepcopy(self.state.repos[kind, name])
            elif what == "repos":
                found = {
                    f"{kind}/{name}": {
                        "head": repo.head,
                        "tags": repo.tags,
                        "commits": len(repo.commits),
                        "pulls": {number: pull.head for number, pull in repo.pulls.items()},
                        "tree": {path: blob.sha256 for path, blob in repo.commits[repo.head].items()},
                    }
                    for (kind, name), repo in self.state.repos.items()
                }
                return Answer(body=found)
            elif what == "log":
                log, self.state.log = self.state.log, []
                return Answer(body=[line for line in log if line[1] != "control"])
        return Answer(body={})

    def _base(self) -> str:
        return f"http://{self.headers['Host']}"


def _info(name: str, commit: str, tree: dict[str, Blob], *, blobs: bool = False) -> Json:
    return {
        "id": name,
        "sha": commit,
        "siblings": [tree[path].sibling(path) if blobs else {"rfilename": path} for path in sorted(tree)],
        "lastModified": NOW,
        "private": False,
        "tags": [],
    }


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
