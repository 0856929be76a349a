"""Results in a dataset on the Hub: every addition is one commit; the folder on this machine is a copy.

A commit comes first and the copy after it, so what the board shows is on the Hub. After a crash between the
two the next start brings the copy up to date.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from robustbench_tc.errors import UserError
from robustbench_tc.io.files import atomic_file

from .live_records import LIVE_VERSION, LiveEntry
from .records import ENTRY_VERSION, Entry, Submission
from .store import CARD, FILES, Store


class HubStore(Store):
    """A store whose additions go to the dataset `repo` as well. The token is the environment's."""

    def __init__(self, folder: Path, repo: str) -> None:
        super().__init__(folder)
        self.repo = repo
        self.synced = False
        """Whether the folder has what the Hub has: before, nothing can be added."""

    def sync(self) -> int:
        """Makes the repository if need be and fetches what this machine lacks; how many submissions."""
        from huggingface_hub import CommitOperationAdd, HfApi, snapshot_download

        api = HfApi()
        self._ask("creating it", lambda: api.create_repo(self.repo, repo_type="dataset", exist_ok=True))
        files = set(self._ask("listing it", lambda: api.list_repo_files(self.repo, repo_type="dataset")))
        if "README.md" not in files:
            card = CommitOperationAdd("README.md", CARD.encode())
            self._ask(
                "writing its card",
                lambda: api.create_commit(self.repo, [card], commit_message="Card", repo_type="dataset"),
            )
        parts = [path.split("/") for path in files]
        there = {part[1] for part in parts if part[0] == "submissions" and len(part) == 3}
        wanted = [one for one in sorted(there) if not self.path(one).is_dir()]
        entries = [
            name
            for one in sorted(there)
            for version in (ENTRY_VERSION, LIVE_VERSION)
            if (name := f"entries/{version}/{one}.json") in files and not (self.folder / name).exists()
        ]
        patterns = [f"submissions/{one}/*" for one in wanted] + entries
        if len(wanted) == len(there):  # a new machine: thousands of patterns take their time
            patterns = ["submissions/*", f"entries/{ENTRY_VERSION}/*", f"entries/{LIVE_VERSION}/*"]
        patterns += ["verifications/*.json", "moderation/*.json"]
        copy = Path(
            self._ask(
                "fetching it",
                lambda: snapshot_download(self.repo, repo_type="dataset", allow_patterns=patterns),
            )
        )
        with self.locked():
            for name in entries:  # first, so that nothing is scored that need not be
                self._take_entry(copy / name, self.folder / name)
            self._take(copy / "submissions" / one for one in wanted)
            for part in ("verifications", "moderation"):
                for path in sorted((copy / part).glob("*.json")):
                    self._copy(path, self.folder / part / path.name)
        self.synced = True
        return len(wanted)

    def _copy(self, source: Path, target: Path) -> None:
        if not source.is_file() or (target.is_file() and target.read_bytes() == source.read_bytes()):
            return
        with atomic_file(target, replace=True) as beside:
            shutil.copyfile(source, beside)

    def add(self, submission: Submission, run: Path, entry: Entry | LiveEntry) -> None:
        if not self.synced:
            raise UserError(f"the results in {self.repo} are still being fetched: try again in a moment")
        super().add(submission, run, entry)

    def _take(self, sources: Iterable[Path]) -> None:
        """Submissions of the Hub into the folder. Their names are folders', so nothing else can be written.

        The disk is waited for once, before the first one has its name, not five times for each.
        """
        staged: dict[str, Path] = {}
        for source in sources:
            files = next((f for f in FILES.values() if all((source / name).is_file() for name in f)), None)
            if files is None or self.path(source.name).exists():
                continue
            staged[source.name] = self.incoming()
            for name in files:
                shutil.copyfile(source / name, staged[source.name] / name)
        if staged:
            os.sync()
        for submission_id, folder in staged.items():
            self._place(folder, submission_id)

    def _publish(self, files: Mapping[str, Path], message: str) -> None:
        from huggingface_hub import CommitOperationAdd, HfApi

        api = HfApi()
        adds = [CommitOperationAdd(name, str(path)) for name, path in files.items()]
        commit = lambda: api.create_commit(  # noqa: E731
            self.repo, adds, commit_message=message, repo_type="dataset"
        )
        try:
            self._ask("storing the submission", commit)
        except UserError:
            # The answer may have been lost on its way back: then the files are there.
            there = self._ask("looking for it", lambda: api.list_repo_files(self.repo, repo_type="dataset"))
            if not set(files) <= set(there):
                raise

    def _ask(self, what: str, call: Callable[[], Any]) -> Any:
        """The call's answer. Whatever the clients raise becomes one line without a token in it."""
        try:
            return call()
        except UserError:
            raise
        except Exception as error:  # huggingface_hub's, its HTTP library's, the system's
            status = getattr(getattr(error, "response", None), "status_code", None)
            said = f"answered {status}" if status else f"did not answer ({type(error).__name__})"
            raise UserError(
                f"{self.repo}: {what}: the Hub {said}; nothing was stored, try again in a moment"
            ) from None
