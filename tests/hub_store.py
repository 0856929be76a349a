"""What the test hub keeps: repositories with their commits, and the folder that Xet uploads into."""

import hashlib
import json
import shutil
import struct
import tempfile
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .hub import Json

NOW = "2026-11-20T00:00:00.000Z"
"""When everything was done here."""


@dataclass(frozen=True)
class Blob:
    """A file of a commit."""

    content: bytes
    lfs: bool
    xet: str | None = None
    """Its hash in the Xet store, for a file that was uploaded through it."""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def git(self) -> str:
        """The git blob id: of the bytes, or for a large file of the pointer that git holds."""
        held = self.content
        if self.lfs:
            spec, size = "https://git-lfs.github.com/spec/v1", len(self.content)
            held = f"version {spec}\noid sha256:{self.sha256}\nsize {size}\n".encode()
        return hashlib.sha1(b"blob %d\0" % len(held) + held).hexdigest()

    @property
    def oid(self) -> str:
        """What the client compares before it uploads."""
        return self.sha256 if self.lfs else self.git

    def sibling(self, path: str) -> Json:
        """A line of a repository's description with the files' metadata."""
        line = {"rfilename": path, "size": len(self.content), "blobId": self.git}
        if self.lfs:
            line["lfs"] = {"sha256": self.sha256, "size": len(self.content), "pointerSize": 134}
        return line

    def entry(self, path: str) -> Json:
        """A line of the tree listing."""
        entry = {"type": "file", "oid": self.git, "size": len(self.content), "path": path}
        if self.lfs:
            entry["lfs"] = {"oid": self.sha256, "size": len(self.content), "pointerSize": 134}
        if self.xet:
            entry["xetHash"] = self.xet
        return entry


Tree = dict[str, Blob]


@dataclass
class Pull:
    """A pull request."""

    number: int
    author: str
    title: str
    base: str
    """The commit of main that it came from."""
    head: str
    status: str = "open"
    merged_as: str | None = None
    events: list[Json] = field(default_factory=list)

    def tell(self, kind: str, author: str, data: Json) -> Json:
        """Adds an event to its page."""
        event = {"id": f"{len(self.events):040x}", "type": kind, "createdAt": NOW, "data": data}
        self.events.append(event | {"author": {"name": author}})
        return self.events[-1]

    def comment(self, author: str, text: str) -> Json:
        return self.tell("comment", author, {"edited": False, "hidden": False, "latest": {"raw": text}})

    def push(self, author: str, commit: str, title: str) -> None:
        self.head = commit
        self.tell("commit", author, {"subject": title, "oid": commit})

    def shown(self, name: str, kind: str, conflicts: list[str]) -> Json:
        """Its page, and its line in the list."""
        return {
            "title": self.title,
            "num": self.number,
            "author": {"name": self.author},
            "createdAt": NOW,
            "status": self.status,
            "repo": {"name": name, "type": kind.removesuffix("s")},
            "isPullRequest": True,
            "changes": {"base": "refs/heads/main", "mergeCommitId": self.merged_as},
            "filesWithConflicts": conflicts,
            "events": self.events,
            "diff": "",
        }


@dataclass
class Repo:
    """A repository with one branch, `main`, and pull requests onto it."""

    commits: dict[str, Tree] = field(default_factory=dict)
    head: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    pulls: dict[int, Pull] = field(default_factory=dict)

    def add(self, tree: Tree, parent: str) -> str:
        """A commit that no branch has yet."""
        text = json.dumps([parent, {path: blob.oid for path, blob in sorted(tree.items())}])
        commit = hashlib.sha1(text.encode()).hexdigest()
        self.commits[commit] = tree
        self.parents[commit] = parent
        return commit

    def commit(self, tree: Tree) -> str:
        self.head = self.add(tree, self.head)
        return self.head

    def history(self, commit: str) -> list[str]:
        """The commit and those before it."""
        found = [commit]
        while parent := self.parents[found[-1]]:
            found.append(parent)
        return found

    def pull(self, revision: str) -> Pull | None:
        """The pull request whose branch `revision` is."""
        number = revision.removeprefix("refs/pr/")
        return self.pulls.get(int(number)) if number.isdecimal() else None

    def propose(self, author: str, title: str, text: str, tree: Tree) -> Pull:
        number = 1 + len(self.pulls)
        pull = self.pulls[number] = Pull(number, author, title, self.head, "")
        pull.comment(author, text)
        pull.push(author, self.add(tree, self.head), title)
        return pull

    def conflicts(self, pull: Pull) -> list[str]:
        """Files that main and the pull request have both changed, and not alike."""
        base, theirs, ours = (self.commits[commit] for commit in (pull.base, pull.head, self.head))
        return [
            path
            for path in sorted(base.keys() | theirs.keys() | ours.keys())
            if theirs.get(path) != base.get(path) != ours.get(path) != theirs.get(path)
        ]

    def merge(self, pull: Pull) -> None:
        """What the pull request changed, as one commit onto main."""
        base, theirs, ours = (self.commits[commit] for commit in (pull.base, pull.head, self.head))
        both = {
            path: ours.get(path) if theirs.get(path) == base.get(path) else theirs.get(path)
            for path in theirs.keys() | ours.keys()
        }
        pull.merged_as = self.commit({path: blob for path, blob in both.items() if blob is not None})

    def resolve(self, revision: str) -> str | None:
        if pull := self.pull(revision):
            return pull.head
        revision = self.head if revision == "main" else self.tags.get(revision, revision)
        return revision if revision in self.commits else None

    def refs(self) -> Json:
        def ref(kind: str, name: str, commit: str) -> Json:
            return {"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": commit}

        return {
            "branches": [ref("heads", "main", self.head)],
            "tags": [ref("tags", name, commit) for name, commit in self.tags.items()],
            "converts": [],
            "pullRequests": [
                {"name": str(number), "ref": f"refs/pr/{number}", "targetCommit": pull.head}
                for number, pull in self.pulls.items()
            ],
        }


def listing(tree: Tree, folder: str, recursive: bool) -> list[Json]:
    """The entries under a folder, folders first met before their files."""
    prefix = f"{folder.rstrip('/')}/" if folder else ""
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
            entries[path] = blob.entry(path)
    return list(entries.values())


class Xet:
    """A folder that the real `hf_xet` uploads into and downloads from, by its address `local://…`."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="hub-xet-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self.address = f"local://{self._folder}"

    def token(self) -> Json:
        return {"accessToken": "a-xet-token", "exp": int(time.time()) + 3600, "casUrl": self.address}

    def blob(self, sha256: str) -> Blob | None:
        """The uploaded file of this hash, put together again from its chunks."""
        import hf_xet

        for known, hash_, size in self._files():
            if known == sha256:
                with tempfile.TemporaryDirectory() as temporary:
                    path = Path(temporary) / "file"
                    with hf_xet.XetSession().new_file_download_group(
                        endpoint=self.address, token="t", token_expiry_unix_secs=int(time.time()) + 3600
                    ) as group:
                        group.start_download_file(hf_xet.XetFileInfo(hash_, size), str(path))
                    return Blob(path.read_bytes(), lfs=True, xet=hash_)
        return None

    def _files(self) -> Iterator[tuple[str, str, int]]:
        """sha256, Xet hash and size of every file that was uploaded, read from the store's shards."""
        for shard in self._folder.glob("xet/xorbs/shards/*.mdb"):
            data, at = shard.read_bytes(), 48  # after the shard's header
            while (name := data[at : at + 32]) != b"\xff" * 32:
                flags, segments = struct.unpack_from("<II", data, at + 32)
                at += 48
                size = sum(struct.unpack_from("<I", data, at + 48 * n + 36)[0] for n in range(segments))
                at += 48 * segments * (2 if flags & 0x80000000 else 1)  # with a verification of each
                assert flags & 0x40000000, "the client sends the sha256 along"
                yield _hex(data[at : at + 32]), _hex(name), size
                at += 48


def _hex(hash_: bytes) -> str:
    """A hash as Xet writes it: four little-endian numbers."""
    return "".join(f"{part:016x}" for part in struct.unpack("<4Q", hash_))
