"""What a maintainer decides about a submission, and why: records that are only ever added.

    moderation/ID-0001.json     one decision on the submission ID, numbered in its order

The last decision on whether it is shown counts, and the last one on each of its flags. A record that cannot
be read hides its submission, which its name says: it may have been the one that hides it.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from robustbench_tc.errors import UserError

from . import stored

Action = Literal["hide", "withdraw", "unhide", "clear-flag", "restore-flag"]

SAYS: dict[Action, str] = {
    "hide": "hidden by a maintainer",
    "withdraw": "withdrawn at the wish of its submitter",
    "unhide": "put back on the board",
    "clear-flag": "cleared of a flag",
    "restore-flag": "flagged again",
}

ON_FLAGS: tuple[Action, ...] = ("clear-flag", "restore-flag")
"""The others are on whether it is shown."""

LONGEST = 500
"""Characters of a reason."""

UNREADABLE = "a record on it cannot be read; a maintainer has to look"

_FLAG = re.compile(r"[a-z]+(-[a-z]+)*")
_FILE = re.compile(r"(?P<id>[0-9]{8}-[0-9a-f]{12})-(?P<number>[0-9]{4})\.json")


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One record."""

    format: int = 1
    submission: str
    action: Action
    reason: str
    """Public."""
    by: str
    at: str
    """UTC, ISO 8601."""
    flag: str = ""
    """Of ON_FLAGS: the code of the flag that counts no more, or again."""

    def says(self) -> str:
        """What was decided, in words."""
        return SAYS[self.action] + (f": {self.flag}" if self.flag else "")


def check_reason(text: str) -> str:
    """One line of a reason that may be shown. Raises UserError."""
    reason = " ".join(text.split())
    if not reason:
        raise UserError("--reason is empty: say in a few words why, it is shown on the submission's page")
    if len(reason) > LONGEST:
        raise UserError(f"--reason has {len(reason)} characters: at most {LONGEST} are taken")
    if not reason.isprintable():
        raise UserError("--reason holds characters that cannot be shown: leave them out")
    return reason


def file_name(submission: str, number: int) -> str:
    """The file of the n-th decision on a submission."""
    return f"{submission}-{number:04}.json"


def read(folder: Path) -> tuple[dict[str, tuple[Decision, ...]], list[str]]:
    """Every decision by submission, in order, and one line for each that cannot be read.

    In place of an unreadable one stands a decision to hide.
    """
    found: dict[str, tuple[Decision, ...]] = {}
    damaged: list[str] = []
    for path in sorted(folder.glob("*.json")):
        named = _FILE.fullmatch(path.name)
        if named is None:
            damaged.append(f"moderation {path.name} is left out: it is not named as a record is")
            continue
        one = named["id"]
        try:
            decision = stored.decode(path, Decision)
            _sound(decision, one)
        except (OSError, ValueError) as error:
            damaged.append(f"moderation {path.name} cannot be read, so {one} is hidden: {stored.said(error)}")
            decision = Decision(submission=one, action="hide", reason=UNREADABLE, by="", at="")
        found[one] = (*found.get(one, ()), decision)
    return found, damaged


def _sound(decision: Decision, submission: str) -> None:
    """Raises ValueError for a decision that is not on the submission, or that no page can show."""
    if decision.submission != submission:
        raise ValueError(f"it is about {decision.submission[:40]!r}")
    stored.date_of(decision.at)
    if len(decision.reason) > LONGEST or len(decision.by) > stored.TEXT:
        raise ValueError("a text of it is too long")
    if (decision.action in ON_FLAGS) != bool(_FLAG.fullmatch(decision.flag)):
        raise ValueError("it names a flag where there is none, or none where there should be one")


def hidden(decisions: Mapping[str, Iterable[Decision]]) -> dict[str, Decision]:
    """The submissions that are off the board, each with the decision that counts.

    An unreadable record cannot be overruled by the ones after it: nobody knows what was decided.
    """
    off = {}
    for one, made in decisions.items():
        made = tuple(made)
        unreadable = [decision for decision in made if not decision.at]
        last = next((decision for decision in reversed(made) if decision.action not in ON_FLAGS), None)
        last = unreadable[0] if unreadable else last
        if last is not None and last.action != "unhide":
            off[one] = last
    return off


def cleared(decisions: Mapping[str, Iterable[Decision]]) -> dict[str, dict[str, Decision]]:
    """The flags of each submission that count no more, each with the decision that says so."""
    found: dict[str, dict[str, Decision]] = {}
    for one, made in decisions.items():
        last = {decision.flag: decision for decision in made if decision.action in ON_FLAGS}
        if clear := {flag: by for flag, by in last.items() if by.action == "clear-flag"}:
            found[one] = clear
    return found


def page_says(decision: Decision) -> str:
    """What stands in the place of the submission's page."""
    when = f" on {decision.at[:10]}" if decision.at else ""
    return f"This submission is off the board ({SAYS[decision.action]}{when}). Reason: {decision.reason}"


def refuse_idle(action: Action, submission: str, now: Decision | None) -> None:
    """UserError where hiding, withdrawing or unhiding would change nothing. `now`: why it is off, if so."""
    if action == "unhide" and now is None:
        raise UserError(f"{submission} is not hidden")
    if action == "unhide" and now is not None and not now.at:
        raise UserError(f"{submission}: {UNREADABLE}: repair or remove that file of moderation/ first")
    if action == "hide" and now is not None:
        raise UserError(f"{submission} is off the board already ({SAYS[now.action]}: {now.reason})")
    if action == "withdraw" and now is not None and now.action == "withdraw":
        raise UserError(f"{submission} is withdrawn already: {now.reason}")


def refuse_idle_flag(decision: Decision, now: Decision | None) -> None:
    """UserError where a decision on a flag would change nothing. `now`: the one that clears it, if any."""
    if decision.action == "clear-flag" and now is not None:
        raise UserError(f"{decision.flag} of {decision.submission} is cleared already: {now.reason}")
    if decision.action == "restore-flag" and now is None:
        raise UserError(f"{decision.flag} of {decision.submission} has not been cleared")
