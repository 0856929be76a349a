"""A results repository on the tests' Hub, and its people."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest

from robustbench_tc.eval.leaderboard import check, datasets, entry, repository, submit
from tests.hub import ADA, MALLORY, WRITER, Hub

SUBMISSION = entry.Submission(model="lab/Alpha-3B", weights="open", licence="apache-2.0")


@contextmanager
def asked_here(hub: Hub) -> Iterator[None]:
    """The client of this process, which has read its environment long ago, asks the tests' Hub."""
    from huggingface_hub import constants

    with pytest.MonkeyPatch.context() as patch:
        template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
        patch.setattr(constants, "ENDPOINT", hub.url)
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        yield


@contextmanager
def account(token: str) -> Iterator[None]:
    """Whoever asks in this block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_TOKEN", token)
        yield


class Results:
    """A repository of its own, `acme/NAME`, whose maintainer is the account `maintainer`."""

    def __init__(self, hub: Hub, name: str, data: datasets.Datasets) -> None:
        self.hub, self.name, self.data = hub, name, data

    def begin(self) -> Self:
        with account(WRITER):
            submit.init(self.name, self.data.core.name)
        return self

    def copy(self, name: str) -> "Results":
        """A repository that has come as far."""
        self.hub.copy(f"datasets/{self.name}", name)
        return Results(self.hub, name, self.data)

    def submit(self, run: Path, token: str = ADA, org: str = "lab", **more: Any) -> submit.Submitted:
        with account(token):
            return submit.submit(run, self.name, SUBMISSION, org=org, **more)

    def checker(self, **how: Any) -> check.Checker:
        """The maintainer's."""
        with account(WRITER):
            return check.Checker(self.name, **how)

    def check(self, pr: int | None = None, everything: bool = False, **how: Any) -> check.Report:
        return self.checker(**how).check(pr, everything)

    def merge(self, number: int) -> None:
        with account(WRITER):
            self.api.merge_pull_request(self.name, number, repo_type="dataset")

    def push(
        self,
        files: Mapping[str, bytes | None],
        *,
        onto: int | None = None,
        token: str = MALLORY,
        main: bool = False,
    ) -> int:
        """A pull request with these files (None: removed), or one more commit to one. Its number."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        operations = [
            CommitOperationDelete(path) if data is None else CommitOperationAdd(path, data)
            for path, data in files.items()
        ]
        with account(token):
            made = self.api.create_commit(
                self.name,
                operations,
                commit_message="Files",
                repo_type="dataset",
                create_pr=onto is None and not main,
                revision=None if onto is None else f"refs/pr/{onto}",
            )
        return onto or int(made.pr_num or 0)

    def head(self, number: int) -> str:
        """The newest commit of a pull request."""
        return self.hub.pull(f"datasets/{self.name}", number)

    def comment(self, number: int, text: str, token: str = MALLORY) -> None:
        with account(token):
            self.api.comment_discussion(self.name, number, text, repo_type="dataset")

    def comments(self, number: int) -> list[tuple[str, str]]:
        """Author and text, without the description."""
        found = self.api.get_discussion_details(self.name, number, repo_type="dataset")
        return [(event.author, event.content) for event in found.events if event.type == "comment"][1:]

    def read(self) -> tuple[list[entry.Entry], dict[str, str]]:
        _, found, dropped = repository.read_entries(repository.Hub(self.name))
        return found, dropped

    @property
    def files(self) -> dict[str, str]:
        """Path → sha256 on main."""
        return self.hub.tree(f"datasets/{self.name}")

    @property
    def api(self):  # type: ignore[no-untyped-def]
        from huggingface_hub import HfApi

        return HfApi()
