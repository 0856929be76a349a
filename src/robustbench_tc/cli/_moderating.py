"""`rbtc leaderboard hide`, `withdraw`, `unhide`: what a maintainer takes off the board, and why."""

from typing import TYPE_CHECKING, Annotated

import typer

from . import _console

if TYPE_CHECKING:
    from ..eval.leaderboard.moderation import Action

Id = Annotated[str, typer.Argument(metavar="ID", help="The submission's id; its page names it.")]
Reason = Annotated[str, typer.Option(help="Why, in one line. It is public.")]
By = Annotated[str, typer.Option("--by", help="Who decided it. It is public.")]
StoreOption = Annotated[str, typer.Option("--store", help="Results folder on this machine.")]
RepoOption = Annotated[
    str | None, typer.Option("--results-repo", help="Dataset org/name on the Hub that results go to as well.")
]

STORE = "leaderboard-results"


def hide(
    submission: Id,
    reason: Reason,
    store: StoreOption = STORE,
    results_repo: RepoOption = None,
    by: By = "maintainer",
) -> None:
    """Take a submission off the board. Its page says why; nothing of it is deleted.

    Example: rbtc leaderboard hide 20261120-96a2067ff4c1 --reason "its answers are the golden ones"
    """
    _decide("hide", submission, reason, store, results_repo, by)


def withdraw(
    submission: Id,
    reason: Reason,
    store: StoreOption = STORE,
    results_repo: RepoOption = None,
    by: By = "maintainer",
) -> None:
    """Take a submission off the board because its submitter asks for it.

    Example: rbtc leaderboard withdraw 20261120-96a2067ff4c1 --reason "run with the wrong chat template"
    """
    _decide("withdraw", submission, reason, store, results_repo, by)


def unhide(
    submission: Id,
    reason: Reason,
    store: StoreOption = STORE,
    results_repo: RepoOption = None,
    by: By = "maintainer",
) -> None:
    """Put a hidden or withdrawn submission back.

    Example: rbtc leaderboard unhide 20261120-96a2067ff4c1 --reason "hidden by mistake"
    """
    _decide("unhide", submission, reason, store, results_repo, by)


def _decide(action: "Action", submission: str, reason: str, store: str, repo: str | None, by: str) -> None:
    from datetime import UTC, datetime

    from ..eval.leaderboard import moderation, names
    from ..eval.leaderboard.serve import open_store

    said, who = moderation.check_reason(reason), names.check_user(by)
    results = open_store(store, repo)
    results.submission(submission)
    decision = moderation.Decision(
        submission=submission,
        action=action,
        reason=said,
        by=who,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with results.locked():
        results.decide(decision)
    _console.out.print(f"{submission}: {moderation.SAYS[action]}", markup=False)
