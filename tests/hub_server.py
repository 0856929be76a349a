"""The hub's server: one-commit uploads with LFS and Xet, refs, trees, downloads with ranges, whoami, pull
requests with their comments. State is in memory."""

import base64
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from .hub import FINE, TOKENS, WRITER, Fault, Json, identity
from .hub_store import NOW, Blob, Pull, Repo, Xet, listing

PATHS = {
    "whoami": "/api/whoami-v2",
    "create": "/api/repos/create",
    "validate": "/api/validate-yaml",
    "upload": "/_lfs/(.+)/([0-9a-f]{64})",
    "batch": r"(?:/(datasets))?/([^/]+/[^/]+)\.git/info/lfs/objects/batch",
    "resolve": "(?:/(datasets))?/([^/]+/[^/]+)/resolve/([^/]+)/(.+)",
    "members": "/api/organizations/([^/]+)/members",
    "repository": r"/api/(datasets|models)/([^/]+/[^/]+)(?:/([\w-]+)(?:/([^/]+)(?:/(.+))?)?)?",
}
"""Route → its paths; of a repository it is what is asked about it."""


class State:
    """Everything the hub knows."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.repos: dict[tuple[str, str], Repo] = {}
        self.objects: dict[tuple[str, str], bytes] = {}
        """LFS objects by repository and sha256."""
        self.xet = Xet()
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


class Refused(Exception):
    """Ends a request with an error."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        self.answer = Answer(status, {"error": message}, headers)


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
        route, act = self._route(url.path)
        fault = self.state.strike(route, path)
        if fault and fault.seconds:
            time.sleep(fault.seconds)
        if fault and fault.truncate and route == "upload":
            self.payload = self.payload[: len(self.payload) // 2]
        try:
            if fault and fault.status:
                raise Refused(fault.status, fault.message)
            answer = act()
        except Refused as refused:
            answer = refused.answer
        if fault and fault.retry_after is not None:
            answer.headers["Retry-After"] = str(fault.retry_after)
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

    def _route(self, path: str) -> tuple[str, Callable[[], Answer]]:
        # The path as it came: `refs%2Fpr%2F1` is one part of it.
        for name, pattern in PATHS.items():
            if match := re.fullmatch(pattern, path):
                parts = [None if part is None else unquote(part) for part in match.groups()]
                what = parts[2] or "info" if name == "repository" else name
                return what, partial(getattr(self, f"_{name}"), *parts)
        return "unknown", partial(self._no_route, path)

    def _no_route(self, path: str) -> Answer:
        raise Refused(404, f"no route {self.command} {path}")

    def _validate(self) -> Answer:
        return Answer(body={"errors": [], "warnings": []})

    def _token(self) -> str:
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ").strip()
        if token not in TOKENS:
            raise Refused(401, "Invalid credentials in Authorization header")
        return token

    def _may_write(self, owner: str) -> bool:
        return self._token() in (WRITER, FINE) and owner == "acme"

    def _may_propose(self, pull: Pull | None = None) -> bool:
        """Whoever may write anywhere opens pull requests and comments; into one pushes its author."""
        return TOKENS[self._token()] == "write" and (pull is None or pull.author == self._name())

    def _require(self, allowed: bool) -> None:
        if not allowed:
            raise Refused(403, "You don't have the rights to do this")

    def _whoami(self) -> Answer:
        return Answer(body=identity(self._token()))

    def _members(self, organisation: str) -> Answer:
        known = [identity(token) for token in TOKENS]
        names = {one["name"] for one in known if organisation in [org["name"] for org in one["orgs"]]}
        return Answer(body=[{"user": name, "fullname": name} for name in sorted(names)])

    # --- writing --------------------------------------------------------------------------------------

    def _create(self) -> Answer:
        asked = json.loads(self.payload)
        owner, kind = asked.get("organization") or "maintainer", f"{asked.get('type') or 'model'}s"
        self._require(self._may_write(owner))
        name = f"{owner}/{asked['name']}"
        url = f"{self._base()}/{'datasets/' if kind == 'datasets' else ''}{name}"
        with self.state.lock:
            if (kind, name) in self.state.repos:
                return Answer(409, {"error": "You already created this repo", "url": url})
            repo = self.state.repos[kind, name] = Repo()
            repo.commit({".gitattributes": Blob(b"*.parquet filter=lfs\n", lfs=False)})
        return Answer(body={"url": url, "name": name})

    def _batch(self, kind: str | None, name: str) -> Answer:
        repo = f"{kind or 'models'}/{name}"
        objects = []
        for found in json.loads(self.payload)["objects"]:
            asked = {"oid": found["oid"], "size": found["size"]}
            if (repo, found["oid"]) not in self.state.objects:
                asked["actions"] = {"upload": {"href": f"{self._base()}/_lfs/{repo}/{found['oid']}"}}
            objects.append(asked)
        return Answer(body={"transfer": "basic", "objects": objects})

    def _upload(self, repo: str, oid: str) -> Answer:
        if hashlib.sha256(self.payload).hexdigest() != oid:
            raise Refused(400, "the bytes are not those of the object")
        self.state.objects[repo, oid] = self.payload
        return Answer(body={})

    def _repository(
        self, kind: str, name: str, what: str | None, named: str | None, below: str | None
    ) -> Answer:
        what, revision, rest = what or "info", named or "main", below or ""
        repo = self._repo(kind, name)
        if what == "refs":
            return Answer(body=repo.refs())
        if what == "discussions":
            with self.state.lock:
                return self._discussions(repo, kind, name, revision, rest)
        if what == "xet-read-token":
            return self._xet_token()
        writes = self.command == "POST" and what in ("preupload", "commit", "tag")
        if writes or what == "xet-write-token":
            pull = repo.pull(revision)
            proposed = ("create_pr" in self.query or pull is not None) and self._may_propose(pull)
            self._require(proposed or self._may_write(name.split("/")[0]))
        if what == "xet-write-token":
            return self._xet_token()
        if writes:
            with self.state.lock:
                act = {"preupload": self._preupload, "commit": self._commit, "tag": self._tag}[what]
                return act(repo, revision, f"{'datasets/' if kind == 'datasets' else ''}{name}")
        commit = self._resolved(repo, revision)
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
        raise Refused(404, f"no route {what}")

    def _repo(self, kind: str, name: str) -> Repo:
        if (kind, name) not in self.state.repos:
            raise Refused(404, "Repository not found", "RepoNotFound")
        return self.state.repos[kind, name]

    def _resolved(self, repo: Repo, revision: str) -> str:
        commit = repo.resolve(revision)
        if commit is None:
            raise Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return commit

    def _preupload(self, repo: Repo, revision: str, address: str) -> Answer:
        tree = repo.commits[repo.head]
        files = [
            {
                "path": path,
                "uploadMode": "lfs" if path.endswith((".parquet", ".safetensors")) else "regular",
                "shouldIgnore": False,
                "oid": tree[path].oid if path in tree else None,
            }
            for path in (found["path"] for found in json.loads(self.payload)["files"])
        ]
        return Answer(body={"files": files})

    def _commit(self, repo: Repo, revision: str, address: str) -> Answer:
        pull = repo.pull(revision)
        if revision != "main" and pull is None:
            raise Refused(400, "only main and pull requests take commits here")
        head = pull.head if pull else repo.head
        tree, header = dict(repo.commits[head]), {"summary": "", "description": ""}
        store = address if address.startswith("datasets/") else f"models/{address}"
        for line in self.payload.splitlines():
            operation = json.loads(line)
            value = operation["value"]
            if operation["key"] == "header":
                header |= value
                if value.get("parentCommit") not in (None, head):
                    raise Refused(412, "A commit has happened since. Please refresh and try again.")
            elif operation["key"] == "file":
                tree[value["path"]] = Blob(base64.b64decode(value["content"]), lfs=False)
            elif operation["key"] == "lfsFile":
                content = self.state.objects.get((store, value["oid"]))
                blob = self.state.xet.blob(value["oid"]) if content is None else Blob(content, lfs=True)
                if blob is None:
                    raise Refused(400, f"LFS pointer pointed to a file that does not exist: {value['path']}")
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
        return str(identity(self._token())["name"])

    def _discussions(self, repo: Repo, kind: str, name: str, number: str, act: str) -> Answer:
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
            page = [pull.shown(name, kind, []) for pull in there[start : start + 10]]
            return Answer(body={"discussions": page, "count": len(there), "start": start})
        pull = repo.pulls.get(int(number))
        if pull is None:
            raise Refused(404, f"no discussion {number}")
        conflicts = repo.conflicts(pull) if pull.status == "open" else []
        if not act:
            return Answer(body=pull.shown(name, kind, conflicts))
        theirs = act != "merge" and (act == "comment" or pull.author == self._name())
        self._require(self._may_propose() if theirs else self._may_write(name.split("/")[0]))
        said = json.loads(self.payload or b"null") or {}
        if act == "merge":
            if conflicts or pull.status != "open":
                raise Refused(409, f"conflicts in {', '.join(conflicts)}, or not open")
            repo.merge(pull)
        if act == "comment":
            return Answer(body={"newMessage": pull.comment(self._name(), said["comment"])})
        pull.status = said.get("status", "merged")
        return Answer(body={"newStatus": pull.tell("status-change", self._name(), {"status": pull.status})})

    def _tag(self, repo: Repo, revision: str, address: str) -> Answer:
        name, commit = json.loads(self.payload)["tag"], self._resolved(repo, revision)
        if name in repo.tags:
            raise Refused(409, f"Tag {name} already exists")
        repo.tags[name] = commit
        return Answer(body={})

    # --- reading --------------------------------------------------------------------------------------

    def _tree(self, tree: dict[str, Blob], folder: str) -> Answer:
        recursive = self.query.get("recursive", [""])[0].lower() in ("true", "1")
        entries = listing(tree, folder, recursive)
        if folder and not entries:
            raise Refused(404, f"{folder} does not exist", "EntryNotFound")
        return Answer(body=entries)

    def _xet_token(self) -> Answer:
        token = self.state.xet.token()
        headers = {
            "X-Xet-Cas-Url": token["casUrl"],
            "X-Xet-Access-Token": token["accessToken"],
            "X-Xet-Token-Expiration": str(token["exp"]),
        }
        return Answer(body=token, headers=headers)

    def _resolve(self, named: str | None, name: str, revision: str, path: str) -> Answer:
        kind = named or "models"
        repo = self._repo(kind, name)
        commit = self._resolved(repo, revision)
        blob = repo.commits[commit].get(path)
        if blob is None:
            raise Refused(404, "Entry not found", "EntryNotFound")
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
