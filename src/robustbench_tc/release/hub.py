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
from ..io.resolve import HUB_ID, Yank, yanked_of
from ..option import Tell, silent

TIMEOUT_S = 300.0
"""How long the Hub may be silent in the middle of a request."""

PATIENCE_S = 900.0
"""How long in all a step waits for a Hub that wants fewer requests (429)."""

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
        progress: Tell = silent,
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
        self.progress("asking the Hub who we are")
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
        head = next((branch.target_commit for branch in found.branches if branch.name == "main"), None)
        return head, {tag.name: tag.target_commit for tag in found.tags}

    def commit_of(self, revision: str) -> str:
        """The commit of a tag (`v1.0.0`, `1.0.0`), or a full hash. UserError naming the tags there are."""
        self.progress(f"asking for {revision}")
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

    def read_file(self, path: str, revision: str | None = None) -> bytes:
        """A small file at a revision, fetched now."""
        from huggingface_hub import hf_hub_download

        with tempfile.TemporaryDirectory() as cache:
            found = self.step(
                f"reading {path}",
                LATER,
                hf_hub_download,
                self.repo,
                path,
                repo_type=self.repo_type,
                revision=revision,
                token=self.token or False,
                cache_dir=cache,
            )
            return manifest.bounded(Path(found))

    def yanked(self, head: str = "main") -> tuple[Yank, ...]:
        """The versions that were withdrawn, as main lists them."""
        listed = manifest.YANKED in self.tree(head)
        return yanked_of(self.read_file(manifest.YANKED, head), self.repo) if listed else ()

    def snapshot(self, commit: str, *, again: bool = False) -> Path:
        """Every file at a commit: what the client's cache has not got is fetched; with `again` all is."""
        from huggingface_hub import snapshot_download

        found = self.step(
            *(("reading back", AGAIN) if again else ("downloading", LATER)),
            snapshot_download,
            self.repo,
            repo_type=self.repo_type,
            revision=commit,
            token=self.token or False,
            force_download=again,
        )
        return Path(str(found))

    def create(self, private: bool) -> str:
        """Creates the repository and returns the head of main."""
        self.progress(f"creating {self.repo}")
        make = partial(self.api.create_repo, repo_type=self.repo_type, private=private or None, exist_ok=True)
        self.step("creating the repository", self.again, make, self.repo)
        head, _ = self.refs()
        if head is None:
            raise UserError(f"{self.repo}: the Hub made no branch main; {AGAIN}")
        return head

    def commit(
        self,
        files: Mapping[str, Path | bytes],
        message: str,
        *,
        head: str | None = None,
        removed: Sequence[str] = (),
        fix: str = "",
    ) -> str:
        """One commit onto main, which has to be at `head` where one is given.

        Returns it; the head itself if nothing differs.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        operations = [*(CommitOperationAdd(path, held) for path, held in files.items())]
        made = self.step(
            "uploading",
            fix or self.again,
            self.api.create_commit,
            self.repo,
            [*operations, *map(CommitOperationDelete, removed)],
            commit_message=message,
            repo_type=self.repo_type,
            parent_commit=head,
        )
        return str(made.oid)

    def tag(self, name: str, commit: str) -> None:
        """Makes the tag; an answer that got lost is not a failure if the tag is there."""
        self.progress(f"tagging {name}")
        tag = partial(self.api.create_tag, tag=name, revision=commit, repo_type=self.repo_type)
        try:
            self.step(f"tagging {name}", AGAIN, tag, self.repo)
        except UserError:
            if self.refs()[1].get(name) != commit:
                raise

    def step(self, what: str, fix: str, call: Callable[..., T], *given: Any, **named: Any) -> T:
        """What `call` gives. A Hub that wants fewer requests is waited for; other failures are UserErrors."""
        from huggingface_hub import get_session

        left = PATIENCE_S
        while True:
            get_session().timeout = self.timeout_s
            try:
                return call(*given, **named)
            except UserError:
                raise
            except Exception as error:  # huggingface_hub's, datasets', their HTTP library's, the system's
                why, seconds = _reason(error)
                if seconds is None or seconds > left:
                    why = why.replace(self.token or "\0", "***")
                    raise UserError(f"{self.repo}: {what}: {why}; {fix}") from None
            left -= seconds
            self.progress(f"{what}: the Hub wants fewer requests, waiting {seconds:.0f} s")
            time.sleep(seconds)


def _reason(error: Exception) -> tuple[str, float | None]:
    """What went wrong, in one short line; and how long to wait where the Hub wants fewer requests."""
    from huggingface_hub.errors import HfHubHTTPError

    answer: BaseException | None = error
    while answer is not None and not isinstance(answer, HfHubHTTPError):
        answer = answer.__cause__ or answer.__context__
    if answer is None:
        return f"{type(error).__name__}: {printable(' '.join(str(error).split()), 200)}", None
    status, said = answer.response.status_code, " ".join((answer.server_message or "").split())
    why = f"the Hub answered {status}" + (f": {printable(said, 200)}" if said else "")
    if status != 429:
        return why, None
    wanted = answer.response.headers.get("Retry-After", "")
    return why, max(1.0, float(wanted)) if re.fullmatch(r"[0-9]{1,6}", wanted) else PAUSE_S


def git_blob(path: Path) -> str:
    """The git blob id of a file's bytes."""
    begun = partial(hashlib.sha1, b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, begun).hexdigest()


def differs(path: Path, listed: HubFile) -> str:
    """How a local file differs from the one that the Hub lists; "" where it does not."""
    if listed.sha256 is not None:
        return manifest.unlike(path, FileEntry(listed.bytes, listed.sha256))
    size, found = path.stat().st_size, git_blob(path)
    if size != listed.bytes:
        return f"{size:,} bytes instead of {listed.bytes:,}"
    return "" if found == listed.git else f"git blob {found[:12]}… instead of {listed.git[:12]}…"
