"""A repository on the Hub. A failure is a UserError that names the step."""

import hashlib
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ..errors import UserError
from ..io import manifest
from ..io.manifest import FileEntry, printable
from ..io.resolve import HUB_ID, Yank, read_yanked

TIMEOUT_S = 300.0
"""How long the Hub may be silent in the middle of a request."""

TRIES = 8
PATIENCE_S = 900.0
"""How often, and how long in all, a step waits for a Hub that wants fewer requests (429)."""

PAUSE_S = 10.0
"""How long to wait for a Hub that wants fewer requests and does not say how long."""

AGAIN = "no tag was made; the same command run again completes the upload"
LATER = "try again later"

T = TypeVar("T")


class HubFile(msgspec.Struct, frozen=True):
    """A file of a commit, as the Hub lists it."""

    bytes: int
    git: str
    """The git blob id: sha1 over a header and the file's bytes, or over those of its LFS pointer."""
    sha256: str | None = None
    """Of the file's bytes, where they lie in LFS or Xet."""


class Hub:
    """A repository. `token` None: that of HF_TOKEN or `hf auth login`, where there is one."""

    again = AGAIN
    """What to do where writing to it failed."""

    def __init__(
        self,
        repo: str,
        repo_type: str = "dataset",
        *,
        token: str | None = None,
        timeout_s: float = TIMEOUT_S,
        progress: Callable[[str], None] = lambda line: None,
    ) -> None:
        from huggingface_hub import HfApi, get_token

        if not HUB_ID.fullmatch(repo):
            raise UserError(f"{printable(repo)!r} is not a name on the Hub: give org/name")
        self.repo = repo
        self.repo_type = repo_type
        self.timeout_s = timeout_s
        self.progress = progress
        self.token = token or get_token()
        self.api = HfApi(token=self.token or False, library_name="robustbench-tc")

    def check_token(self) -> None:
        """Refuses none at all, and one that the Hub does not know; what it may do the Hub says."""
        if not self.token:
            raise UserError("no token for the Hub: run `hf auth login`, or set HF_TOKEN")
        self.step("asking who the token belongs to", "check HF_TOKEN or run `hf auth login`", self.api.whoami)

    def refs(self) -> tuple[str | None, dict[str, str]]:
        """The head of main (None: there is no such repository), and tag → commit."""
        from huggingface_hub.errors import RepositoryNotFoundError

        def ask() -> Any:
            try:
                return self.api.list_repo_refs(self.repo, repo_type=self.repo_type)
            except RepositoryNotFoundError as error:
                if error.response.status_code == 401:
                    raise
                return None

        found = self.step("asking for its versions", LATER, ask)
        if found is None:
            return None, {}
        heads = [branch.target_commit for branch in found.branches if branch.name == "main"]
        return (heads[0] if heads else None), {tag.name: tag.target_commit for tag in found.tags}

    def commit_of(self, revision: str) -> str:
        """The commit of a tag (`v1.0.0`, `1.0.0`), or a full hash. UserError naming the tags there are."""
        head, tags = self.refs()
        if head is None:
            raise UserError(f"no {self.repo_type} {self.repo} on the Hub that this machine may read")
        for tag in (revision, f"v{revision}"):
            if tag in tags:
                return tags[tag]
        if re.fullmatch(r"[0-9a-f]{40}", revision):
            return revision
        there = ", ".join(sorted(tags)[-10:]) or "none"
        raise UserError(f"{self.repo} has no version {printable(revision)!r}: it has {there}")

    def tree(self, commit: str) -> dict[str, HubFile]:
        """Path → file, of every file at a commit."""

        def ask() -> dict[str, HubFile]:
            from huggingface_hub.hf_api import RepoFile

            listed = self.api.list_repo_tree(
                self.repo, repo_type=self.repo_type, revision=commit, recursive=True
            )
            return {
                found.path: HubFile(found.size, found.blob_id, found.lfs.sha256 if found.lfs else None)
                for found in listed
                if isinstance(found, RepoFile)
            }

        return self.step("listing its files", LATER, ask)

    def yanked(self) -> tuple[Yank, ...]:
        """The versions that were withdrawn, as main lists them."""
        from huggingface_hub.errors import EntryNotFoundError

        def ask() -> tuple[Yank, ...]:
            with tempfile.TemporaryDirectory() as temporary:
                try:
                    found = self._fetch(manifest.YANKED, "main", temporary)
                except EntryNotFoundError:
                    return ()
                return read_yanked(found)

        return self.step(f"reading {manifest.YANKED}", LATER, ask)

    def create(self, private: bool) -> str:
        """Creates the repository and returns the head of main."""
        self.step(
            "creating the repository",
            self.again,
            self.api.create_repo,
            self.repo,
            repo_type=self.repo_type,
            private=private or None,
            exist_ok=True,
        )
        head, _ = self.refs()
        if head is None:
            raise UserError(f"{self.repo}: the Hub made no branch main; {self.again}")
        return head

    def commit(
        self,
        files: Mapping[str, Path | bytes],
        message: str,
        *,
        head: str | None = None,
        removed: Sequence[str] = (),
        fix: str | None = None,
    ) -> str:
        """One commit onto main, which has to be at `head`. Returns it; the head itself if nothing differs."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        operations: list[Any] = [
            CommitOperationAdd(
                path_in_repo=path, path_or_fileobj=held if isinstance(held, bytes) else str(held)
            )
            for path, held in files.items()
        ]
        operations += [CommitOperationDelete(path_in_repo=path) for path in removed]
        made = self.step(
            "uploading",
            fix or self.again,
            self.api.create_commit,
            self.repo,
            operations,
            commit_message=message,
            repo_type=self.repo_type,
            parent_commit=head,
        )
        return str(made.oid)

    def tag(self, name: str, commit: str) -> None:
        """Makes the tag; an answer that got lost is not a failure if the tag is there."""
        try:
            self.step(
                f"tagging {name}",
                AGAIN,
                lambda: self.api.create_tag(self.repo, tag=name, revision=commit, repo_type=self.repo_type),
            )
        except UserError:
            if self.refs()[1].get(name) != commit:
                raise
        if self.refs()[1].get(name) != commit:
            raise UserError(f"{self.repo}: the tag {name} does not point to the commit {commit[:12]}")

    def read(self, path: str, revision: str) -> bytes:
        """A small file at a revision, fetched now."""
        with tempfile.TemporaryDirectory() as temporary:
            return manifest.bounded(self.download(path, revision, temporary, fix=LATER))

    def download(self, path: str, revision: str, folder: str | None, *, fix: str) -> Path:
        """The file at `revision`, fetched now into `folder`; with None the copy that was just fetched."""
        return self.step(f"reading {path}", fix, lambda: self._fetch(path, revision, folder))

    def _fetch(self, path: str, revision: str, folder: str | None) -> Path:
        from huggingface_hub import hf_hub_download

        return Path(
            hf_hub_download(
                self.repo,
                path,
                repo_type=self.repo_type,
                revision=revision,
                token=self.token or False,
                cache_dir=folder,
                force_download=folder is not None,
                local_files_only=folder is None,
            )
        )

    def snapshot(self, commit: str) -> Path:
        """Every file at a commit: the copies in the client's cache, and what is not there yet."""
        from huggingface_hub import snapshot_download

        found = self.step(
            "downloading",
            LATER,
            lambda: snapshot_download(
                self.repo, repo_type=self.repo_type, revision=commit, token=self.token or False
            ),
        )
        return Path(found)

    def step(self, what: str, fix: str, call: Callable[..., T], *given: Any, **named: Any) -> T:
        """What `call` gives. A Hub that wants fewer requests is waited for; other failures are UserErrors."""
        from huggingface_hub import get_session

        waited = 0.0
        for attempt in range(TRIES):
            get_session().timeout = self.timeout_s
            try:
                return call(*given, **named)
            except UserError:
                raise
            except Exception as error:  # huggingface_hub's, datasets', their HTTP library's, the system's
                seconds = _pause(error)
                if seconds is None or waited + seconds > PATIENCE_S or attempt == TRIES - 1:
                    why = _reason(error).replace(self.token or "\0", "***")
                    raise UserError(f"{self.repo}: {what}: {why}; {fix}") from None
                waited += seconds
                self.progress(f"{what}: the Hub wants fewer requests, waiting {seconds:.0f} s")
                time.sleep(seconds)
        raise AssertionError("unreachable: the last attempt returns or raises")


def _answer(error: BaseException | None) -> Any:
    """The Hub's answer that lies below an error of a client."""
    from huggingface_hub.errors import HfHubHTTPError

    while error is not None and not isinstance(error, HfHubHTTPError):
        error = error.__cause__ or error.__context__
    return error


def _pause(error: Exception) -> float | None:
    """How long a Hub that wants fewer requests wants to be left alone; None where it is something else."""
    found = _answer(error)
    if found is None or found.response.status_code != 429:
        return None
    said = found.response.headers.get("Retry-After", "")
    return max(1.0, float(said)) if re.fullmatch(r"[0-9]{1,6}", said) else PAUSE_S


def _reason(error: Exception) -> str:
    """What went wrong, in one short line."""
    found = _answer(error)
    if found is None:
        return f"{type(error).__name__}: {printable(' '.join(str(error).split()), 200)}"
    said = printable(" ".join((found.server_message or "").split()), 200)
    return f"the Hub answered {found.response.status_code}" + (f": {said}" if said else "")


def git_blob(path: Path) -> str:
    """The git blob id of a file's bytes."""
    begun = partial(hashlib.sha1, b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, begun).hexdigest()


def differs(path: Path, listed: HubFile) -> str | None:
    """How a local file differs from the one that the Hub lists; None where it does not."""
    size = path.stat().st_size
    if size != listed.bytes:
        return f"{size:,} bytes instead of {listed.bytes:,}"
    if listed.sha256 is None:
        found = git_blob(path)
        return None if found == listed.git else f"git blob {found[:12]}… instead of {listed.git[:12]}…"
    held: FileEntry = manifest.entry(path)
    same = held.sha256 == listed.sha256
    return None if same else f"sha256 {held.sha256[:12]}… instead of {listed.sha256[:12]}…"
