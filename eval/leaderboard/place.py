"""A results repository: a dataset on the Hub, or a folder of the same files.

Both list their files with what identifies them, give a file at a revision, and take one commit onto main. Of
pull requests only the Hub knows.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from robustbench_tc.errors import UserError
from robustbench_tc.io.files import atomic_file, is_ours, locked
from robustbench_tc.io.resolve import HUB_ID
from robustbench_tc.release import hub
from robustbench_tc.release.hub import LATER, HubFile

if TYPE_CHECKING:
    from huggingface_hub import Discussion

STATUS = "status.yaml"

Files = dict[str, HubFile]


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
    comments: tuple[str, ...]
    """By the account that asks; what others write there says nothing."""


def run_path(run: str) -> str:
    """Where the run `org/model/id` lies."""
    return f"runs/{run}"


class Folder:
    """A folder on this machine. It has no history: every revision is what lies there."""

    account = "local"

    def __init__(self, folder: Path) -> None:
        self.repo = str(folder)
        self.folder = folder

    def files(self, revision: str | None = None) -> Files:
        return {
            path.relative_to(self.folder).as_posix(): HubFile(path.stat().st_size, hub.git_blob(path))
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and not path.is_symlink() and not is_ours(path.name)
        }

    def read(self, path: str, revision: str | None = None) -> bytes:
        try:
            return (self.folder / path).read_bytes()
        except FileNotFoundError:
            raise UserError(f"{self.repo} has no {path}: is it a results repository?") from None

    def commit(self, files: Mapping[str, bytes], message: str, *, head: str | None = None) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder / STATUS, wait=True):
            for path, data in files.items():
                with atomic_file(self.folder / path, replace=True) as beside:
                    beside.write_bytes(data)


class Hub(hub.Hub):
    """A dataset repository on the Hub."""

    folder = None
    again = "a token with the role `write` may, of an account that may write discussions there"

    @cached_property
    def account(self) -> str:
        """Whose token it is."""
        return str(self.step("asking who the token belongs to", self.again, self.api.whoami)["name"])

    def files(self, revision: str | None = None) -> Files:
        """In one request."""
        found = self.step(
            "listing its files",
            LATER,
            self.api.dataset_info,
            self.repo,
            revision=revision,
            files_metadata=True,
        )
        return {
            # A file of no known size is one that is too large.
            one.rfilename: HubFile(
                1 << 62 if one.size is None else one.size,
                one.blob_id or "",
                one.lfs.sha256 if one.lfs else None,
            )
            for one in found.siblings or ()
        }

    def propose(self, files: Mapping[str, bytes], title: str, text: str) -> tuple[int, str]:
        """A pull request with new files: its number and address."""
        from huggingface_hub import CommitOperationAdd

        made = self.step(
            "opening a pull request",
            self.again,
            self.api.create_commit,
            self.repo,
            [CommitOperationAdd(path, data) for path, data in files.items()],
            repo_type=self.repo_type,
            commit_message=title,
            commit_description=text,
            create_pr=True,
        )
        return made.pr_num or 0, made.pr_url or ""

    def heads(self) -> tuple[str, dict[int, str]]:
        """The newest commit of main, and of every pull request there ever was."""
        refs = self.step(
            "listing its branches",
            LATER,
            self.api.list_repo_refs,
            self.repo,
            repo_type=self.repo_type,
            include_pull_requests=True,
        )
        main = next(branch.target_commit for branch in refs.branches if branch.name == "main")
        return main, {int(ref.name): ref.target_commit for ref in refs.pull_requests or ()}

    def history(self, revision: str) -> list[str]:
        """Commits, the newest first."""
        listed = self.step(
            "reading its history",
            LATER,
            self.api.list_repo_commits,
            self.repo,
            repo_type=self.repo_type,
            revision=revision,
        )
        return [commit.commit_id for commit in listed]

    def pulls(self, author: str | None = None) -> dict[int, "Discussion"]:
        """The pull requests, of one account or all, by number."""
        found = self.step(
            "listing its pull requests",
            LATER,
            lambda: list(
                self.api.get_repo_discussions(
                    self.repo,
                    author=author,
                    repo_type=self.repo_type,
                    discussion_type="pull_request",
                    discussion_status="all",
                )
            ),
        )
        return {one.num: one for one in sorted(found, key=lambda one: one.num)}

    def pull(self, number: int, head: str | None) -> Pull:
        """What is known of one. `head` None: the newest commit that its page names."""
        from huggingface_hub import DiscussionComment, DiscussionCommit

        found = self.step(
            f"reading pull request {number}",
            LATER,
            self.api.get_discussion_details,
            self.repo,
            number,
            repo_type=self.repo_type,
        )
        commits = [event.oid for event in found.events if isinstance(event, DiscussionCommit)]
        comments = (
            event.content
            for event in found.events
            if isinstance(event, DiscussionComment) and event.author == self.account
        )
        merged = found.merge_commit_oid if found.status == "merged" else None
        return Pull(number, found.author, head or commits[-1], merged, frozenset(commits), tuple(comments))

    def comment(self, number: int, text: str) -> None:
        """Below a pull request."""
        self.step(
            f"commenting pull request {number}",
            self.again,
            self.api.comment_discussion,
            self.repo,
            number,
            text,
            repo_type=self.repo_type,
        )

    def is_member(self, account: str, organisation: str) -> bool:
        """Whether the Hub lists the account among the organisation's; no, where it does not say."""
        from huggingface_hub.errors import HfHubHTTPError

        try:
            return any(user.username == account for user in self.api.list_organization_members(organisation))
        except HfHubHTTPError:
            return False


Place = Hub | Folder
"""Where runs and entries lie."""


def open_place(name: str) -> Place:
    """`ORG/NAME` on the Hub, unless there is such a folder."""
    return Hub(name) if HUB_ID.fullmatch(name) and not Path(name).is_dir() else Folder(Path(name))
