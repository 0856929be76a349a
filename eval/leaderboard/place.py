"""A results repository: a dataset on the Hub, or a folder of the same files.

Both list their files with what identifies them, give files at a revision, and take one commit onto main. Of
pull requests only the Hub knows.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from robustbench_tc.errors import UserError
from robustbench_tc.io.files import atomic_file, is_ours, locked
from robustbench_tc.io.resolve import HUB_ID

from .entry import Digest

if TYPE_CHECKING:
    from huggingface_hub import Discussion

STATUS = "status.yaml"

_TOKEN = "the token may not do this: a role `write` may, of an account that may write discussions there"
_WHY = {
    401: "no token that the Hub knows: run `hf auth login`, or set HF_TOKEN",
    403: f"{_TOKEN} (403)",
    404: "it is not there, or this token may not see it (404)",
    412: "somebody else changed it meanwhile (412): the same command goes on",
}


_UNKNOWN = 1 << 62


class File(NamedTuple):
    """What a listing says of a file."""

    size: int
    sha256: str | None
    """Only of files in LFS."""
    git: str | None
    """Its id as a git blob; in LFS that is the pointer's."""


Files = dict[str, File]


class Pull(NamedTuple):
    """A pull request, as far as a checker believes it."""

    number: int
    author: str
    head: str
    """Its newest commit."""
    merged: str | None
    """The commit that it became on main."""
    commits: frozenset[str]
    """Its own."""
    remarks: tuple[str, ...]
    """Comments by the account that asks; what others write there says nothing."""


def run_path(run: str) -> str:
    """Where the run `org/model/id` lies."""
    return f"runs/{run}"


class Folder:
    """A folder on this machine. It has no history: every revision is what lies there."""

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._folder = folder

    def files(self, revision: str | None = None) -> Files:
        found = {}
        for path in sorted(self._folder.rglob("*")):
            if path.is_file() and not path.is_symlink() and not is_ours(path.name):
                data = path.read_bytes()
                found[path.relative_to(self._folder).as_posix()] = File(len(data), None, Digest.of(data).git)
        return found

    def read(self, path: str, revision: str | None = None) -> bytes:
        try:
            return (self._folder / path).read_bytes()
        except FileNotFoundError:
            raise UserError(f"{self.name} has no {path}: is it a results repository?") from None

    def fetch(self, paths: Iterable[str], into: Path, revision: str | None = None) -> None:
        for path in paths:
            (into / path).parent.mkdir(parents=True, exist_ok=True)
            (into / path).write_bytes(self.read(path))

    def commit(self, files: Mapping[str, bytes], message: str, *, onto: str | None = None) -> str:
        self._folder.mkdir(parents=True, exist_ok=True)
        with locked(self._folder / STATUS, wait=True):
            for path, data in files.items():
                with atomic_file(self._folder / path, replace=True) as beside:
                    beside.write_bytes(data)
        return ""


class Hub:
    """A dataset repository on the Hub. The token is that of HF_TOKEN or `hf auth login`."""

    def __init__(self, name: str) -> None:
        from huggingface_hub import HfApi

        self.name = name
        self._api = HfApi(library_name="robustbench-tc")

    @cached_property
    def account(self) -> str:
        """Whose token it is."""
        with self._asking("asking who the token belongs to"):
            return str(self._api.whoami()["name"])

    def files(self, revision: str | None = None) -> Files:
        with self._asking("listing its files"):
            found = self._api.dataset_info(self.name, revision=revision, files_metadata=True)
        return {
            # A file of no known size is one that is too large.
            one.rfilename: File(
                _UNKNOWN if one.size is None else one.size, one.lfs.sha256 if one.lfs else None, one.blob_id
            )
            for one in found.siblings or ()
        }

    def read(self, path: str, revision: str | None = None) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            self.fetch([path], Path(folder), revision)
            return (Path(folder) / path).read_bytes()

    def fetch(self, paths: Iterable[str], into: Path, revision: str | None = None) -> None:
        for path in paths:
            with self._asking(f"reading {path}"):
                self._api.hf_hub_download(
                    self.name, path, repo_type="dataset", revision=revision, local_dir=into
                )

    def commit(self, files: Mapping[str, bytes], message: str, *, onto: str | None = None) -> str:
        """Onto main, which still has to be `onto`."""
        made = self._commit("writing to it", files, commit_message=message, parent_commit=onto)
        return str(made.oid)

    def propose(self, files: Mapping[str, bytes], title: str, text: str) -> tuple[int, str]:
        """A pull request with new files: its number and address."""
        how = {"commit_message": title, "commit_description": text, "create_pr": True}
        made = self._commit("opening a pull request", files, **how)
        return int(made.pr_num), str(made.pr_url)

    def _commit(self, what: str, files: Mapping[str, bytes], **how: Any) -> Any:
        from huggingface_hub import CommitOperationAdd

        adds = [CommitOperationAdd(path, data) for path, data in files.items()]
        with self._asking(what):
            return self._api.create_commit(self.name, adds, repo_type="dataset", **how)

    def create(self) -> None:
        """Makes the repository, unless it is there."""
        with self._asking("creating it"):
            self._api.create_repo(self.name, repo_type="dataset", exist_ok=True)

    def heads(self) -> tuple[str, dict[int, str]]:
        """The newest commit of main, and of every pull request there ever was."""
        with self._asking("listing its branches"):
            refs = self._api.list_repo_refs(self.name, repo_type="dataset", include_pull_requests=True)
        main = next(branch.target_commit for branch in refs.branches if branch.name == "main")
        return main, {int(ref.name): ref.target_commit for ref in refs.pull_requests or ()}

    def history(self, revision: str) -> list[str]:
        """Commits, the newest first."""
        with self._asking("reading its history"):
            listed = self._api.list_repo_commits(self.name, repo_type="dataset", revision=revision)
        return [commit.commit_id for commit in listed]

    def pulls(self, status: str, author: str | None = None) -> dict[int, "Discussion"]:
        """The pull requests that are `open` or `merged`, by number."""
        with self._asking("listing its pull requests"):
            found = list(
                self._api.get_repo_discussions(
                    self.name,
                    author=author,
                    repo_type="dataset",
                    discussion_type="pull_request",
                    discussion_status="open" if status == "open" else "closed",
                )
            )
        return {one.num: one for one in sorted(found, key=lambda one: one.num) if one.status == status}

    def pull(self, number: int, head: str | None) -> Pull:
        """What is known of one. `head` None: the newest commit that its page names."""
        with self._asking(f"reading pull request {number}"):
            found = self._api.get_discussion_details(self.name, number, repo_type="dataset")
        commits = [str(getattr(event, "oid", "")) for event in found.events if event.type == "commit"]
        remarks = tuple(
            str(getattr(event, "content", ""))
            for event in found.events
            if event.type == "comment" and event.author == self.account
        )
        merged = found.merge_commit_oid if found.status == "merged" else None
        return Pull(number, found.author, head or commits[-1], merged, frozenset(commits), remarks)

    def comment(self, number: int, text: str) -> None:
        """Below a pull request."""
        with self._asking(f"commenting pull request {number}"):
            self._api.comment_discussion(self.name, number, text, repo_type="dataset")

    def is_member(self, account: str, organisation: str) -> bool:
        """Whether the Hub lists the account among the organisation's; no, where it does not say."""
        from huggingface_hub.errors import HfHubHTTPError

        try:
            return any(user.username == account for user in self._api.list_organization_members(organisation))
        except HfHubHTTPError:
            return False

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """Whatever the clients raise becomes one line without a token in it."""
        try:
            yield
        except Exception as error:  # huggingface_hub's, its HTTP library's, the system's
            status = getattr(getattr(error, "response", None), "status_code", 0)
            why = _WHY.get(status, f"the Hub answered {status}" if status else type(error).__name__)
            raise UserError(f"{self.name}: {what}: {why}") from None


Place = Hub | Folder
"""Where runs and entries lie."""


def open_place(name: str) -> Place:
    """`ORG/NAME` on the Hub, unless there is such a folder."""
    return Hub(name) if HUB_ID.fullmatch(name) and not Path(name).is_dir() else Folder(Path(name))
