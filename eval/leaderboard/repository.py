"""A results repository, a dataset on the Hub or a folder of the same files: its runs and their entries.

Both list their files with what identifies them, give a file at a revision, and take one commit onto main. Of
pull requests only the Hub knows. All entries lie in one file too, and a short index of them for scripts.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc.errors import UserError
from robustbench_tc.io.files import atomic_file, is_ours, locked
from robustbench_tc.io.resolve import HUB_ID
from robustbench_tc.release import hub
from robustbench_tc.release.hub import LATER, HubFile

from .checker import (
    BYTES,
    CHECKER,
    ENTRY,
    EPISODES,
    PREDICTIONS,
    RECORD,
    SUBMISSION,
    complete,
    decode,
    encode,
)
from .entry import Digest, Entry, Refused, Status, of_run, parse_status

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

    def read_file(self, path: str, revision: str | None = None) -> bytes:
        try:
            return (self.folder / path).read_bytes()
        except FileNotFoundError:
            raise UserError(f"{self.repo} has no {path}; is it a results repository?") from None

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


# --- runs and entries -------------------------------------------------------------------------------------

ALL, INDEX = "entries.parquet", "entries.json"

_KEYS = ("run", "kind", "fingerprint", "checker")
_SCHEMA = pa.schema([(name, pa.string()) for name in _KEYS] + [("entry", pa.binary())])


def read_entries(place: Place) -> tuple[Status, list[Entry], dict[str, str]]:
    """What a board is made of, in few requests: the maintainers' word, the entries that fit the files they
    were made of, and why others are left out, by run. Raises UserError."""
    listed = place.files()
    found = read_status(place)
    fitting, dropped = fits(stored(place, listed), listed)
    return found, fitting, dropped


def read_status(place: Place, revision: str | None = None, dataset: str | None = None) -> Status:
    """The maintainers' word, with another dataset where one is named. Raises UserError."""
    found = parse_status(place.read_file(STATUS, revision), f"{place.repo}/{STATUS}")
    return msgspec.structs.replace(found, dataset=dataset or found.dataset)


def stored(place: Place, listed: Files, revision: str | None = None) -> list[Entry]:
    """What `entries.parquet` holds; nothing, where there is none yet."""
    if ALL not in listed:
        return []
    try:
        table = pq.read_table(io.BytesIO(place.read_file(ALL, revision)), schema=_SCHEMA)
        return [decode(data or b"") for data in table["entry"].to_pylist()]
    except (pa.ArrowException, ValueError) as error:
        why = str(error).splitlines()[0]
        raise UserError(f"{place.repo}/{ALL}: {why}: put it back from the history") from None


def fits(entries: Sequence[Entry], listed: Files) -> tuple[list[Entry], dict[str, str]]:
    """The entries whose runs are there as they were scored, and why the others are not shown."""
    there = runs(listed)
    fitting = [entry for entry in entries if scored(entry, there.get(entry.run, {}))]
    dropped = {
        run: "it has no entry yet" if complete(files) else "it lacks files, or has others"
        for run, files in there.items()
    }
    dropped |= {entry.run: "its files are not those that were scored" for entry in entries}
    for entry in fitting:
        del dropped[entry.run]
    return fitting, dict(sorted(dropped.items()))


def scored(entry: Entry, files: Files) -> bool:
    """Whether an entry was made of just these files."""
    return entry.inputs.keys() == files.keys() - {ENTRY} and all(
        same(digest, files[name]) for name, digest in entry.inputs.items()
    )


def same(digest: Digest, file: HubFile) -> bool:
    """Whether a listed file is the one that was read."""
    equal = file.sha256 == digest.sha256 if file.sha256 else file.git == digest.git
    return equal and file.bytes == digest.size


def write_entries(entries: Iterable[Entry]) -> dict[str, bytes]:
    """Both files, as bytes: the same for the same entries."""
    ordered = sorted(entries, key=lambda entry: entry.run)
    columns = {name: [getattr(entry, name) for entry in ordered] for name in _KEYS}
    table = pa.table(columns | {"entry": [encode(entry) for entry in ordered]}, schema=_SCHEMA)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    lines = [
        {
            "run": entry.run,
            "model": entry.submission.model,
            "kind": entry.kind,
            "fingerprint": entry.fingerprint,
            "version": entry.version,
            "flags": [flag.code for flag in entry.flags],
            "metrics": entry.core and entry.core.metrics,
            "clean": entry.live and entry.live.clean,
        }
        for entry in ordered
    ]
    index = {"format": 1, "checker": CHECKER, "entries": lines}
    text = msgspec.json.format(msgspec.json.encode(index), indent=1)
    return {INDEX: text + b"\n", ALL: buffer.getvalue()}


def runs(files: Files) -> dict[str, Files]:
    """Run → its files by name, of every folder in a listing where a run would lie."""
    found: dict[str, Files] = {}
    for path, file in files.items():
        top, _, rest = path.partition("/")
        run, _, name = rest.rpartition("/")
        if top == "runs":
            found.setdefault(run, {})[name] = file
    return dict(sorted(found.items()))


def check_run_files(run: str, files: Files) -> None:
    """Raises Refused for what no run is called, has other files, or would be too large to fetch."""
    of_run(run)
    if not complete(files):
        raise Refused(
            "pull", f"a run is {RECORD}, {PREDICTIONS} or {EPISODES}, and {SUBMISSION}: {run} is not"
        )
    for name, most in BYTES.items():
        if name in files and files[name].bytes > most:
            raise Refused("pull", f"{name} has {files[name].bytes:,} bytes, at most {most:,}")


def fetch(place: Place, run: str, files: Files, into: Path, revision: str | None = None) -> Path:
    """The folder of a run under `into`. Raises Refused for what is not fetched, UserError."""
    check_run_files(run, files)
    folder = into / run_path(run)
    folder.mkdir(parents=True)
    for name in sorted(files.keys() - {ENTRY}):
        (folder / name).write_bytes(place.read_file(f"{run_path(run)}/{name}", revision))
    return folder
