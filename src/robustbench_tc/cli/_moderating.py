"""`rbtc leaderboard hide`, `withdraw`, `unhide`, `clear-flag`, `restore-flag`: what a maintainer decides."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError, unknown
from . import _console

if TYPE_CHECKING:
    from ..eval.leaderboard.moderation import Action
    from ..eval.leaderboard.store import Store

Id = Annotated[str, typer.Argument(metavar="ID", help="The submission's id; its page names it.")]
Flag = Annotated[str, typer.Argument(metavar="FLAG", help="Its code, as on the page: copy, near-gold, …")]
Reason = Annotated[str, typer.Option(help="Why, in one line. It is public.")]
By = Annotated[str, typer.Option("--by", help="Who decided it. It is public.")]
StoreOption = Annotated[str, typer.Option("--store", help="Results folder on this machine.")]
RepoOption = Annotated[
    str | None, typer.Option("--results-repo", help="Dataset org/name on the Hub that results go to as well.")
]

STORE = "leaderboard-results"


def _verb(action: "Action", says: str) -> Callable[..., None]:
    """A command that decides whether a submission is shown."""

    def decide(
        submission: Id,
        reason: Reason,
        store: StoreOption = STORE,
        results_repo: RepoOption = None,
        by: By = "maintainer",
    ) -> None:
        _decide(action, submission, reason, store, results_repo, by)

    decide.__doc__ = says
    return decide


def _verb_on_flag(action: "Action", says: str) -> Callable[..., None]:
    """A command that decides whether one of its flags counts."""

    def decide(
        submission: Id,
        flag: Flag,
        reason: Reason,
        store: StoreOption = STORE,
        results_repo: RepoOption = None,
        by: By = "maintainer",
    ) -> None:
        _decide(action, submission, reason, store, results_repo, by, flag)

    decide.__doc__ = says
    return decide


VERBS: dict[str, Callable[..., None]] = {
    "hide": _verb(
        "hide",
        """Take a submission off the board. Its page says why; nothing of it is deleted.

    Example: rbtc leaderboard hide 20261120-96a2067ff4c1 --reason "its answers are the golden ones"
    """,
    ),
    "withdraw": _verb(
        "withdraw",
        """Take a submission off the board because its submitter asks for it.

    Example: rbtc leaderboard withdraw 20261120-96a2067ff4c1 --reason "run with the wrong chat template"
    """,
    ),
    "unhide": _verb(
        "unhide",
        """Put a hidden or withdrawn submission back.

    Example: rbtc leaderboard unhide 20261120-96a2067ff4c1 --reason "hidden by mistake"
    """,
    ),
    "clear-flag": _verb_on_flag(
        "clear-flag",
        """Let a flag of a submission count no more. Its page shows it struck through, with who and why.

    Example: rbtc leaderboard clear-flag 20261120-96a2067ff4c1 copy --reason "one model, listed by two teams"
    """,
    ),
    "restore-flag": _verb_on_flag(
        "restore-flag",
        """Let a flag that was cleared count again.

    Example: rbtc leaderboard restore-flag 20261120-96a2067ff4c1 copy --reason "the second team has no model"
    """,
    ),
}
"""Command → what it does."""


def _decide(
    action: "Action", submission: str, reason: str, store: str, repo: str | None, by: str, flag: str = ""
) -> None:
    from datetime import UTC, datetime

    from ..eval.leaderboard import moderation, names
    from ..eval.leaderboard.serve import open_store

    said, who = moderation.check_reason(reason), names.check_user(by)
    if flag:
        _known_flag(flag)
    results = open_store(store, repo)
    results.submission(submission)
    if action == "clear-flag":
        _carried(results, submission, flag)
    decision = moderation.Decision(
        submission=submission,
        action=action,
        reason=said,
        by=who,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        flag=flag,
    )
    with results.locked():
        results.decide(decision)
    _console.out.print(f"{submission}: {decision.says()}", markup=False)


def _known_flag(flag: str) -> None:
    from ..eval.leaderboard import flags

    if flag not in flags.MEANING:
        raise unknown("flag", flag, flags.MEANING)


def _carried(results: "Store", submission: str, flag: str) -> None:
    """UserError for a flag that the submission has not."""
    from ..eval.leaderboard.rebuild import flags_of

    there = [one.code for one in flags_of(results, submission)]
    if flag not in there:
        raise UserError(f"{submission} has no flag {flag}: it has {', '.join(there) or 'none'}")
