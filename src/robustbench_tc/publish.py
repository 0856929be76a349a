"""`rbtc publish`: a release folder onto the Hub as one commit, read back, then tagged.

The tag is the last thing that happens. Whatever breaks before it leaves no version behind, and the same
command run again completes the upload: what the Hub has already is not sent twice.
"""

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from . import manifest
from .diff import configs_of
from .errors import UserError
from .manifest import Kind, Manifest

TIMEOUT_S = 300.0
"""How long the Hub may be silent in the middle of a request."""

AGAIN = "no tag was made; the same command run again completes the upload"

_REPO = re.compile(r"[\w.-]+/[\w.-]+")

Progress = Callable[[str], None]


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """What `publish` did, or with `dry_run` would do."""

    repo: str
    repo_type: str
    tag: str
    commit: str | None
    """None for a dry run."""
    files: dict[str, int]
    """Path → bytes of the release's files."""
    removed: tuple[str, ...]
    """Files of the repository's last version that this one does not have."""
    creates_repo: bool
    read_back: int
    """Files whose bytes were downloaded again and compared."""


def publish(
    folder: Path,
    repo: str,
    *,
    kind: Kind = "robustbench-tc",
    token: str | None = None,
    dry_run: bool = False,
    private: bool = False,
    timeout_s: float = TIMEOUT_S,
    progress: Progress = lambda line: None,
) -> Published:
    """Uploads the release `folder` to `repo` and tags it with its version.

    `token` None: the one of HF_TOKEN or `hf auth login`. `dry_run` asks the Hub but changes nothing. Raises
    UserError, one line without the token in it, for a folder that is no gated release of this kind, a token
    without write rights, a tag that exists, and for whatever breaks on the way.
    """
    release = check_folder(folder, kind)
    if not _REPO.fullmatch(repo):
        raise UserError(f"{repo!r} is no name on the Hub: give org/name")
    hub = _Hub(repo, "model" if kind == "checkpoint" else "dataset", token, timeout_s)
    progress("asking the Hub who we are")
    hub.check_rights()
    head, tags = hub.refs()
    if release.tag in tags:
        same = hub.has_manifest(release.tag, manifest.entry(folder / manifest.NAME).sha256)
        there = "these very bytes: nothing to do" if same else "other bytes: release under a new --version"
        raise UserError(f"{repo} has the tag {release.tag} already, with {there}")
    local = [*release.files, manifest.NAME]
    removed = tuple(path for path in hub.files(head) if path not in local and path not in manifest.NOT_OURS)
    done = Published(
        repo=repo,
        repo_type=hub.repo_type,
        tag=release.tag,
        commit=None,
        files={path: (folder / path).stat().st_size for path in local},
        removed=removed,
        creates_repo=head is None,
        read_back=0,
    )
    if dry_run:
        return done
    if head is None:
        progress(f"creating {repo}")
        head = hub.create(private)
    progress(f"uploading {len(local)} files")
    commit = hub.commit(folder, local, removed, head, f"Release {release.tag}")
    progress("reading back")
    hub.read_back(folder, release, commit, progress)
    progress(f"tagging {release.tag}")
    hub.tag(release.tag, commit)
    return msgspec.structs.replace(done, commit=commit, read_back=len(local))


def check_folder(folder: Path, kind: Kind) -> Manifest:
    """The manifest of a folder that may be published. UserError if it is unreleased, ungated or changed."""
    release = manifest.read(folder)
    if release.kind != kind:
        raise UserError(f"{folder} is a release of {release.kind}: publish it with --kind {release.kind}")
    if kind != "checkpoint" and (release.gate is None or not release.gate.passed):
        raise UserError(f"{folder} has no green gate: audit the build and release it again")
    found = manifest.problems(folder)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise UserError(f"{folder} is not as it was released: {found[0]}{more}; `rbtc verify` lists all")
    return release


class _Hub:
    """One repository, and the steps of a release in it. Every failure is a UserError that names the step."""

    def __init__(self, repo: str, repo_type: str, token: str | None, timeout_s: float) -> None:
        from huggingface_hub import HfApi, get_token

        self.repo = repo
        self.repo_type = repo_type
        self.timeout_s = timeout_s
        self.token = token or get_token()
        if not self.token:
            raise UserError("no token for the Hub: run `hf auth login`, or set HF_TOKEN")
        self.api = HfApi(token=self.token, library_name="robustbench-tc")

    def check_rights(self) -> None:
        """Refuses a token that may not write to the repository's namespace."""
        with self._step("asking who the token belongs to", mend="check HF_TOKEN or run `hf auth login`"):
            identity = self.api.whoami()
        reason = why_not(identity, self.repo)
        if reason:
            raise UserError(f"{self.repo}: {reason}: make a token with write access to it")

    def refs(self) -> tuple[str | None, set[str]]:
        """The head of main (None: there is no such repository) and the names of the tags."""
        from huggingface_hub.errors import RepositoryNotFoundError

        with self._step("asking for its versions", mend="try again later"):
            try:
                found = self.api.list_repo_refs(self.repo, repo_type=self.repo_type)
            except RepositoryNotFoundError as error:
                if error.response.status_code == 401:
                    raise
                return None, set()
        heads = [branch.target_commit for branch in found.branches if branch.name == "main"]
        return (heads[0] if heads else None), {tag.name for tag in found.tags}

    def has_manifest(self, revision: str, sha256: str) -> bool:
        """Whether the manifest at `revision` has this hash."""
        with tempfile.TemporaryDirectory() as temporary, self._step(f"reading {revision}", mend="try again"):
            return manifest.entry(self._download(manifest.NAME, revision, temporary)).sha256 == sha256

    def files(self, head: str | None) -> list[str]:
        if head is None:
            return []
        with self._step("listing its files", mend="try again later"):
            return self.api.list_repo_files(self.repo, repo_type=self.repo_type, revision=head)

    def create(self, private: bool) -> str:
        """Creates the repository and returns the head of main."""
        with self._step("creating the repository", mend=AGAIN):
            self.api.create_repo(self.repo, repo_type=self.repo_type, private=private or None, exist_ok=True)
        head, _ = self.refs()
        if head is None:
            raise UserError(f"{self.repo}: the Hub made no branch main; {AGAIN}")
        return head

    def commit(
        self, folder: Path, paths: list[str], removed: tuple[str, ...], head: str, message: str
    ) -> str:
        """One commit with every file, on top of `head`; returns it (the head itself if nothing differs)."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        operations: list[Any] = [
            CommitOperationAdd(path_in_repo=path, path_or_fileobj=str(folder / path)) for path in paths
        ]
        operations += [CommitOperationDelete(path_in_repo=path) for path in removed]
        with self._step("uploading", mend=AGAIN):
            return self.api.create_commit(
                self.repo,
                operations,
                commit_message=message,
                repo_type=self.repo_type,
                parent_commit=head,
            ).oid

    def read_back(self, folder: Path, release: Manifest, commit: str, progress: Progress) -> None:
        """Downloads every file at `commit` anew and compares it with the folder.

        Data goes through `load_dataset`, as users will load it: its rows, and the bytes that it fetched.
        UserError naming the first file or config that differs.
        """
        with tempfile.TemporaryDirectory() as temporary:
            loaded: set[str] = set()
            if self.repo_type == "dataset":
                for config, paths in configs_of(folder).items():
                    progress(f"reading back {config}")
                    with self._step(f"reading back the config {config}", mend=AGAIN):
                        same = self._same_rows(config, paths, commit, Path(temporary) / "arrow" / config)
                    if not same:
                        raise UserError(f"{self.repo}: {config} reads back with other rows; {AGAIN}")
                    loaded |= {path.relative_to(folder).as_posix() for path in paths}
            expected = {**release.files, manifest.NAME: manifest.entry(folder / manifest.NAME)}
            for path, entry in expected.items():
                with self._step(f"reading back {path}", mend=AGAIN):
                    place = None if path in loaded else temporary
                    found = manifest.entry(self._download(path, commit, place))
                if found != entry:
                    raise UserError(f"{self.repo}: {path} reads back with other bytes; {AGAIN}")

    def tag(self, name: str, commit: str) -> None:
        """Makes the tag; an answer that got lost is no failure if the tag is there."""
        try:
            with self._step(f"tagging {name}", mend=AGAIN):
                self.api.create_tag(self.repo, tag=name, revision=commit, repo_type=self.repo_type)
        except UserError:
            if self._target(name) != commit:
                raise
        if self._target(name) != commit:
            raise UserError(f"{self.repo}: the tag {name} does not point to the commit {commit[:12]}")

    def _target(self, tag: str) -> str | None:
        with self._step(
            f"looking for the tag {tag}", mend="run `rbtc publish --dry-run` to see if it is there"
        ):
            found = self.api.list_repo_refs(self.repo, repo_type=self.repo_type)
        return next((ref.target_commit for ref in found.tags if ref.name == tag), None)

    def _same_rows(self, config: str, paths: list[Path], commit: str, cache: Path) -> bool:
        import datasets
        import pyarrow as pa

        from . import parquet

        datasets.disable_progress_bars()
        found = datasets.load_dataset(
            self.repo,
            config,
            revision=commit,
            token=self.token,
            cache_dir=str(cache),
            download_mode=datasets.DownloadMode.FORCE_REDOWNLOAD,
        )
        splits: dict[str, list[Path]] = {}
        for path in paths:
            splits.setdefault(path.name.split("-")[0], []).append(path)
        if set(found) != set(splits):
            return False
        for split, parts in splits.items():
            theirs, at = found[split].data.table, 0  # on disk: only the slice at hand is in memory
            for part in parts:
                with parquet.opened(part) as file:
                    for batch in file.iter_batches(use_threads=False):
                        ours = pa.Table.from_batches([batch])
                        if not theirs.slice(at, ours.num_rows).cast(ours.schema).equals(ours):
                            return False
                        at += ours.num_rows
            if at != theirs.num_rows:
                return False
        return True

    def _download(self, path: str, revision: str, folder: str | None) -> Path:
        """The file at `revision`, fetched anew into `folder`; with None the copy that was just fetched."""
        from huggingface_hub import hf_hub_download

        return Path(
            hf_hub_download(
                self.repo,
                path,
                repo_type=self.repo_type,
                revision=revision,
                token=self.token,
                cache_dir=folder,
                force_download=folder is not None,
                local_files_only=folder is None,
            )
        )

    @contextmanager
    def _step(self, what: str, *, mend: str) -> Iterator[None]:
        """Turns whatever the clients raise inside the block into a UserError that names the step."""
        from huggingface_hub import get_session

        get_session().timeout = self.timeout_s
        try:
            yield
        except UserError:
            raise
        except Exception as error:  # huggingface_hub's, datasets', their HTTP library's, the system's
            reason = self._scrub(_reason(error, self.timeout_s))
            raise UserError(f"{self.repo}: {what}: {reason}; {mend}") from None

    def _scrub(self, text: str) -> str:
        return text.replace(self.token or "\0", "***")


def why_not(identity: dict[str, Any], repo: str) -> str | None:
    """Why the owner of a token may not write to `repo`, by the answer of whoami-v2; None: nothing says so."""
    owner = repo.split("/")[0]
    name = identity.get("name")
    orgs = {org.get("name"): org for org in identity.get("orgs", [])}
    if owner != name and owner not in orgs:
        return f"the token belongs to {name}, who is not a member of {owner}"
    if owner in orgs and orgs[owner].get("roleInOrg") == "read":
        return f"the token belongs to {name}, who may only read in {owner}"
    access = identity.get("auth", {}).get("accessToken", {})
    if access.get("role") == "read":
        return "the token may only read"
    if access.get("role") == "fineGrained":
        for scope in access.get("fineGrained", {}).get("scoped", []):
            if scope.get("entity", {}).get("name") in (owner, repo) and "repo.write" in scope["permissions"]:
                return None
        return f"the token has no right repo.write for {owner}"
    return None


def _reason(error: Exception, timeout_s: float) -> str:
    """What went wrong, in one short line."""
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    chain: list[BaseException] = [error]
    while (below := chain[-1].__cause__ or chain[-1].__context__) is not None and below not in chain:
        chain.append(below)
    for found in chain:
        if isinstance(found, HfHubHTTPError):
            return _status(found.response.status_code, found.server_message)
        if isinstance(found, OfflineModeIsEnabled):
            return "HF_HUB_OFFLINE is set"
        if "Timeout" in type(found).__name__:
            return f"the Hub did not answer in time (--timeout {timeout_s:g} s for an upload)"
    names = {type(found).__name__ for found in chain}
    if names & {"ConnectError", "ConnectionRefusedError", "gaierror"}:
        return "the Hub cannot be reached"
    if names & {"RemoteProtocolError", "ReadError", "WriteError", "ConnectionResetError"}:
        return "the connection broke off"
    line = " ".join(str(error).split())
    return f"{type(error).__name__}: {line[:200]}"


def _status(status: int, said: str | None) -> str:
    meaning = {
        401: "the token is not accepted (401)",
        403: "the token has no right to do this (403)",
        412: "somebody else changed the repository meanwhile (412)",
        413: "the Hub finds the upload too large (413)",
        429: "the Hub wants fewer requests (429)",
    }.get(status, f"the Hub answered {status}")
    line = " ".join((said or "").split())[:200]
    return f"{meaning}: {line}" if line else meaning
