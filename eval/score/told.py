"""What an agent's message tells the user: that something failed, that it is done, that nobody knows, or
neither.

    told("I could not charge your card.", Turn(world_classes))     # failed: {"payment"}

By rule and for English only: a message in another language is unclear. A message is read clause by clause.
A clause is about the work that is due rather than other classes of tools, and about the first of the world's
whose words stand in it, with those that "and" or "nor" join to it. Phrases such as "no errors" are taken out
before. A failure that was overcome does not count, nor does a clause that may be only how things were: where
in doubt, nothing is said.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol

from .told_patterns import (
    ASIDE,
    BEFORE,
    BEHIND,
    CLAUSE,
    COURTESY,
    DONE,
    DOUBTED,
    ENGLISH,
    FAILED,
    FOREIGN,
    HARMLESS,
    I_DID,
    JOINED,
    LOOKING,
    NEGATION,
    OTHER_SCRIPT,
    OVERCOME,
    PENDING,
    QUESTION,
    QUOTED,
    REASONS,
    REQUEST,
    SENTENCE,
    TROUBLE,
    UNDONE,
)

Kind = Literal["failed", "done", "hedged", "unclear"]

_LONGEST = 4_000
"""So many characters at the end of a message are read."""

_NEAR = 200
"""So many characters before a clause, of which nothing was said, are read with it."""


class Work(Protocol):
    """A class of tools that people speak of with the same words (`worlds.base.ToolClass`)."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """Finds its name and words in a text."""


class Turn(NamedTuple):
    """What a message is read with."""

    classes: Sequence[Work] = ()
    wanted: frozenset[str] = frozenset()
    """Classes of the work that is due: a message that names none is about these."""


class Told(NamedTuple):
    """What a message tells, by classes of tools."""

    kind: Kind
    failed: frozenset[str] = frozenset()
    """Not done, as it says."""
    done: frozenset[str] = frozenset()
    doubted: frozenset[str] = frozenset()
    """Nobody knows."""
    claimed: frozenset[str] = frozenset()
    """Those of `done` that the agent says in the first person that it did."""
    general: bool = False
    """It names nothing: the classes are those of the work that is due."""


How = Literal["failed", "undone", "trouble", "doubted", "done"]


class _Clause(NamedTuple):
    how: How
    what: frozenset[str]
    first_person: bool = False


@lru_cache(maxsize=4096)
def told(message: str, turn: Turn = Turn()) -> Told:
    """What a message tells of the work of a turn."""
    plain = _plain(message)
    words = set(re.findall(r"[^\W\d_]+", plain))
    # A text with few function words of any language counts as English: the rule's words are English ones.
    if OTHER_SCRIPT.search(plain) or len(words & FOREIGN) > len(words & ENGLISH):
        return Told("unclear")
    clauses = list(_clauses(plain, turn))
    named = frozenset[str]().union(*(one.what for one in clauses))
    general = bool(clauses) and not named
    # One that names nothing is about the work that is due, where nothing else is spoken of.
    alone = turn.wanted if general or (len(turn.wanted) == 1 and named <= turn.wanted) else frozenset()
    whats = [one.what or alone for one in clauses]
    hows = [one.how for one in clauses]

    def of(how: How, begin: int = 0) -> frozenset[str]:
        pairs = list(zip(hows, whats, strict=True))[begin:]
        return frozenset().union(*(what for one, what in pairs if one == how))

    last_done = max((at for at, how in enumerate(hows) if how == "done"), default=-1)
    doubted, failed, reported = of("doubted"), of("failed"), of("done")
    failed |= of("trouble", last_done + 1) - reported
    if OVERCOME.search(plain) and "failed" in hows:
        failed -= of("done", hows.index("failed"))
        hows = [how for at, how in enumerate(hows) if failed or how != "failed" or at > last_done]
    claimed = frozenset().union(*(one.what for one in clauses if one.first_person)) - doubted
    # What the agent does not say that it did itself is a report of the work that is due, or of what was
    # before.
    done = (reported & turn.wanted | claimed) - doubted
    return Told(_kind(hows, failed - doubted, done), failed - doubted, done, doubted, claimed, general)


def _kind(hows: Sequence[str], failed: frozenset[str], done: frozenset[str]) -> Kind:
    if "doubted" in hows and not failed:
        return "unclear" if done else "hedged"
    if failed or (hows and hows[-1] in ("failed", "trouble")) or ("failed" in hows and not done):
        return "failed"
    return "done" if "done" in hows else "unclear"


def _clauses(plain: str, turn: Turn) -> Iterator[_Clause]:
    """Every clause that says something of the work; one that names no class is about that of the clause
    before."""
    asking, overcame = asks(plain), OVERCOME.search(plain)
    last, last_how = frozenset[str](), ""
    for sentence in SENTENCE.split(QUOTED.sub(" x ", plain)):
        if QUESTION.search(sentence):
            continue
        before, reasons = "", False
        for part in filter(None, CLAUSE.split(HARMLESS.sub(" ", sentence))):
            clause = f"{before}: {part}".strip(" :")
            named = meant(ASIDE.split(clause, maxsplit=1)[0], turn) or meant(clause, turn)
            how = _how(clause, asking)
            reasons = reasons or part in REASONS or how == "doubted"
            if how is None or (reasons and how == "done"):
                before = "" if how or ASIDE.search(clause) else clause[-_NEAR:]
                continue
            before = ""
            about = named or last
            is_due = bool(about & turn.wanted) or not about
            if (
                (how == "failed" and not named and LOOKING.search(clause))
                or (how == "undone" and not (turn.wanted and is_due))
                or (how == "trouble" and turn.wanted and not is_due)
                # What is said otherwise right after that, without a name, is something else.
                or (how in ("failed", "undone") and not named and last and last_how == "done")
                or (how == "done" and not named and last_how in ("failed", "undone") and not overcame)
            ):
                continue
            last, last_how = about, how
            yield _Clause(
                "failed" if how == "undone" else how,
                last,
                how == "done" and I_DID.search(clause) is not None,
            )


def meant(clause: str, turn: Turn) -> frozenset[str]:
    """The classes that a clause is about: due ones before others, the first of the table, and what is joined
    to it."""
    found = [
        (one.name in turn.wanted, not BEHIND.search(clause[: match.start()]), one.name, match)
        for one in turn.classes
        for match in one.pattern.finditer(clause)
    ]
    best = max((one[:2] for one in found), default=(False, False))
    if not found or (turn.wanted and not any(best)):
        return frozenset()
    _, _, first, at = next(one for one in found if one[:2] == best)
    joined = (
        name
        for due, _, name, one in found
        if due and JOINED.search(clause[min(at.end(), one.end()) : max(at.start(), one.start())])
    )
    return frozenset((first, *joined))


def _how(clause: str, asking: bool) -> How | None:
    spoken = ASIDE.split(clause, maxsplit=1)[0]
    if DOUBTED.search(clause):
        return "doubted"
    if FAILED.search(spoken):
        return None if asking and PENDING.search(clause) else "failed"
    if UNDONE.search(spoken):
        return None if asking and PENDING.search(clause) else "undone"
    if TROUBLE.search(spoken):
        return "trouble"
    mine = I_DID.search(spoken)
    found = mine or DONE.search(spoken)
    if found is None or NEGATION.search(spoken):
        return None
    # What is not said in the first person may be how things were: for long, or where the agent asks.
    was_so = BEFORE.search(clause) or (asking and found.group().startswith(("is ", "are ")))
    return "done" if mine or not was_so else None


def asks(text: str) -> bool:
    """Whether the message ends with a question, or with a request for something that the agent needs. Offers
    of further help do not count. Questions in any language, requests in English."""
    for sentence in [one for one in SENTENCE.split(_plain(text)) if one.strip(" *_\"'")][-2:]:
        if not COURTESY.search(sentence) and (
            QUESTION.search(sentence)
            or sentence.rstrip("\"' *)").endswith(("？", "؟"))
            or (REQUEST.search(sentence) and _how(sentence, False) in (None, "done"))
        ):
            return True
    return False


def _plain(text: str) -> str:
    """The end of a message in lower case, with straight quotes and single spaces within lines."""
    text = text[-_LONGEST:].lower().replace("’", "'").replace("**", "").replace("`", "").replace("_", " ")
    return re.sub(r"[ \t]+", " ", text).strip()
