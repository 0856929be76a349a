"""What an agent's message tells the user: that something failed, that it is done, that nobody knows, or
neither.

    told("I could not charge your card.", Turn(world_classes))     # failed: {"payment"}

By rule and for English only: a message in another language is unclear. A message is read clause by clause;
the class of tools that a clause is about is the first of the world's whose words stand in it. Phrases such
as "no errors" are taken out before, and a failure that the message says was overcome does not count.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from .base import ToolClass

Kind = Literal["failed", "done", "hedged", "unclear"]

_LONGEST = 4_000
"""So many characters at the end of a message are read."""

_HARMLESS = re.compile(
    r"\b(?:no|zero|without(?: any| a)?|free of) (?:\w+ )?(?:errors?|problems?|issues?|troubles?"
    r"|incidents?|worries"
    r"|failures?|difficult(?:y|ies)|hiccups?|hitch(?:es)?)\b"
    r"|\bnot? (?:further|more|other) \w+|\bno(?:thing)? (?:else|left|more)\b(?: to do)?"
    r"|\bwon't (?:forget|need|repeat|have to|miss)\b|\b(?:did|do|does|will|would|need)(?: not"
    r"|n't) (?:repeat|retry|forget|need|have to|duplicate"
    r"|worry|hesitate|want"
    r"|call it again|require)\b|\bno need\b|\bnot (?:only|just|hesitate)\b|\b(?:could|can)(?: ?not"
    r"|n't) (?:find|see) any\b"
    r"|\bin case of \w+|\b(?:please )?note that\b|\bplease note\b|\b(?:could|would)(?: not"
    r"|n't) have\b|\bsorry for the (?:error|delay|inconvenience|confusion)\b"
    r"|\b(?:isn't|wasn't|aren't) (?:that|it|this)\b[^.?!]{0,30}\?"
)
"""Negations and words of failure that report none."""

_PARTICIPLE = (
    r"(?:[a-z]{2,}ed|sent|paid|bought|sold|made|put|set|done|written|taken|built|held|begun|given|gone|moved|drawn"
    r"|withdrawn|undone|kept|reset|cut|shut|read back|took|wrote|gave|ran)"
)
_NO_EFFECT = (
    r"(?!(?:need|requir|attach|call|nam|bas|relat|interest|expect|support|allow|list|follow|suppos|desir|provid"
    r"|concern|limit|permitt|suggest|recommend|propos|offer|us|want|ask|request|show|display|describ|plann"
    r"|intend|look|check|tri|attempt|hop|wish|mention|includ|contain|own|tir|pleas|delight|excit|not|retri"
    r"|repeat|receiv|return|report|answer|respond|draft|prepar|notic|unlock|expir|decid|assum|discuss|mean|cost|refus|reject|declin|deni|fail|block|abort)ed\b)(?!(?:need|speed|indeed|exceed|red|bed|feed|seed|hundred)\b)"
)
_WORK = _NO_EFFECT + _PARTICIPLE

_CANNOT = r"(?:could(?:n't| not)|can(?:'t|not| not)|would(?:n't| not)|won't)"
_NEGATED = r"(?: ?not|n't)(?: (?:yet|been|be|actually|even|currently|able to))*"
_STATES = (
    r"(?!(?:settled|connected|listed|included|required|needed|damaged|allowed|based|related|supposed|sure|expected"
    r"|affected|free|in|on|a|an|the|your|my|from|enough|that|this|have)\b)"
)
_FAILED = re.compile(
    rf"\b{_CANNOT} \w+"
    rf"|\b(?:was|were|is|are|am|been|has|have|had){_NEGATED} {_STATES}{_PARTICIPLE}\b"
    rf"|\b(?:did|does|do){_NEGATED} {_STATES}(?:work|go|succeed|get|complete|send|book|place|add|move"
    rf"|make|happen|take)\b"
    rf"|\b(?:was|were|is|are|am|been){_NEGATED} (?:able|available|possible|working|successful|done"
    rf"|in a position)\b"
    r"|\b(?:unable|impossible|unsuccessful|unsuccessfully|unavailable|unfulfilled|incomplete)\b|[❌✘✗]"
    r"|\bfail(?:ed|s|ing|ure)?\b|\b(?:was|were|is|are|been|got) (?:rejected|refused|declined|denied"
    r"|aborted|blocked)\b"
    r"|\b(?:don't|do not|doesn't|does not) have (?:a|any|the) (?:tool|way|access|permission|ability|means)\b"
    r"|\bno (?:way|tool|means|ability) (?:to|for)\b|\bno \w+ (?:was|were|has been|have been) \w+"
    r"|\bnot (?:\w+ly )?(?:executed|sent|placed|booked|made|done|possible"
    r"|moved|added|changed|completed)\b"
    r"|\bneither (?:\w+ ){1,4}(?:was|were|has|have)\b|\bnothing (?:was|has been|got) \w+|\b(?:gave"
    r"|giving) up\b"
    r"|\b(?:stopped|keeps?) (?:responding|failing|timing out)\b|\bis down\b(?! to)|\brefused to\b"
    r"|\b(?:has|have|was|were|is|did)(?: not|n't)\W*$|\bnot available to\b"
)
"""What was asked for was not done."""

_TROUBLE = re.compile(
    r"\b(?:errors?|time[ds]?[- ]?outs?|timed[- ]out|timeouts?|malformed|garbled|rate limit(?:s|ed)?"
    r"|crashed|problem with"
    r"|issue with|(?:did|does)(?: not|n't) (?:respond|answer|reply|confirm|accept)|unreachable"
    r"|rejected|unreadable)\b"
)
"""Something went wrong on the way: a failure only of what the message says nothing else of."""

_DOUBTED = re.compile(
    r"(?<!you )\b(?:may|might)(?: or (?:may|might) not| not)? (?:have|be|exist|already)\b"
    r"|\bmay or may not\b|\bit may be that\b"
    rf"|\b(?:(?:do|did|am|is|are|was)(?: ?not|n't)|i'm not|{_CANNOT})(?: \w+){{0,5}}? (?:whether|if)\b"
    r"|\b(?:do|did)(?: not|n't) know (?:about|what|the outcome)\b|\b(?:can(?:'t|not| not)|could(?:n't"
    r"| not)) (?:be )?(?:confirm|verif\w+"
    r"|guarantee|tell|rule out|be sure|say for)\b|\bnot (?:entirely |really |quite )?(?:sure|certain"
    r"|clear|known)\b"
    r"|\b(?:unclear|unknown|uncertain|unconfirmed|unverified|no idea|possible that)\b"
    r"|\bno (?:way of knowing|confirmation)\b"
)
"""Nobody knows whether it was done."""

_DONE = re.compile(
    r"\b(?:done|all set|all good|good to go|complete(?:d)?|finished|success(?:ful(?:ly)?)?|succeeded"
    r"|worked|went through"
    r"|accomplished|payment received|taken care of|took care of|on (?:its|their) way)\b|[✅✔✓]"
    r"|\b(?:is|are|was|were|been|got|gets|'s|'re)(?: (?:now|just|also|already|then|successfully|both"
    r"|all|no longer))* "
    + _WORK
    + r"\b|\b(?:is|are) now\b|\bhas (?:the|a|your) \w+ now\b|\bnow (?:holds|reads|has|shows|contains)\b"
    r"|\byou now have\b"
    r"|\b(?:is|are) (?:in your|in the|running)\b|\bmanaged to\b"
    r"|^\W*(?:(?!(?:the|a|an|he|she|they|you|it|this|that|who|which|there)\b)[\w/#:'-]+ ){0,3}?"
    + _WORK
    + r"\b(?= *(?:$|[.,;:!(]|to\b|for\b|from\b|in\b|at\b|on\b|with\b|twice\b|once\b))|^\W*"
    + _WORK
    + r"\b(?! by\b| one\b)"
)
"""It is said to be done, whoever did it."""

_I_DID = re.compile(
    r"\b(?:i|we)(?:'ve| have)?(?: (?:now|just|also|already|then|successfully|gone ahead and"
    r"|went ahead and))* " + _WORK + r"\b|\b(?:i|we) (?:was|were) able to\b"
)
"""The agent says that it did it."""

_ASIDE = re.compile(
    r"\b(?:i|we|it|they|you|that)(?:'ll| will| shall|'m going to| am going to|'d)\b|\bwill be\b"
    r"|\blet me\b|\bif\b|\bonce you\b"
    r"|\bbefore\b|\bin order to\b|\bplease\b|\bkindly\b|\bwould you\b|\bshall i\b|\bshould\b"
    r"|\bdo you want\b|\busually\b"
    r"|\bcan be\b|\bcould be\b|\byou could\b|\bexample\b|\blast (?:week|month|year)\b|\byou (?:paid"
    r"|ordered|asked)\b"
)
"""A plan, a condition, a question or an aside: what stands behind it in a clause is no report."""

_OVERCOME = re.compile(
    r"\b(?:at first|first (?:try|attempt|time|call|one)|initial(?:ly)?|re-?tr(?:y|ied)|tried again"
    r"|instead|eventually"
    r"|second (?:try|attempt|time|call)|finally|in the end|after (?:a|one|two|three|some|another) \w+"
    r"|this time)\b"
)
"""A failure that work of the same class follows was overcome."""

_LOOKING = re.compile(r"\b(?:find|found|look(?:ed|ing)? up|locate|see|search(?:ed)?|read)\b")
_REASSURES = re.compile(
    r"\b(?:card|account|you)\b[^.]{0,20}\b(?:has|have|was|were)(?: ?not|n't) (?:been )?\w+ed\b"
)

_QUOTED = re.compile(r"\"[^\"\n]{0,300}\"|“[^”\n]{0,300}”|(?<!\w)'[^'\n]{1,120}'(?!\w)")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+|(?<=[✅✔✓❌✘✗])\s*")
_CLAUSE = re.compile(
    r",? (?:but|however|though|although|while|whereas)\b,?|, (?:and |so |then )?|\s[—–-]\s"
    r"| and (?=(?:i|we|it|he|she|they|the|your|my|that)\b)| so (?=(?:i|we|it|the|your)\b)|: (?=\S)"
    r"|,?(?: and)? (because)\b"
)
_QUESTION = re.compile(r"\?[\"')\s*]{0,9}(?:[(\[]y/n[)\]][\"')\s*]{0,9})?$")
_COURTESY = re.compile(
    r"\b(?:any ?thing|something) (?:else|more)\b|\bhow (?:can|may) i (?:help|assist)\b|\bis there anything\b"
    r"|\bisn't (?:that|it)\b|\bright\?|\bokay\?|\bany (?:other|more|further) (?:questions?|requests?)\b"
)
_REQUEST = re.compile(
    r"\b(?:please|kindly) (?:\w+ )?(?:confirm|provide|specify|tell|give|indicate|clarify|let me know"
    r"|share|state"
    r"|choose|select|send me|enter|name)\b(?! support| with| it yourself)"
    r"|\b(?:could|can|would) you (?:please )?(?:tell|confirm|provide|specify|give|clarify|share|let)\b"
    r"|(?<!no )\b(?!action|step)\w+ (?:is|are) (?:still )?(?:required|needed|missing)\b|^(?:need"
    r"|missing)\b|\bmissing[.:]|\bi(?:'ll| will)? need "
    r"(?:to know|the|your|a|an|some)\b|\blet me know (?:which|what|whether|if you(?:'d| would) like"
    r"|how|when)\b"
    r"|\bif you (?:tell|give|send|provide)\b|\bas soon as you (?:confirm|tell|give)\b|\bawait(?:ing)? your\b"
)

_ENGLISH = frozenset(
    "the a an and is was are were to of for in on at it i you your my we has have been be not no with this"
    " that by but so as from could now all".split()
)
_FOREIGN = frozenset(
    "der die das den dem ein eine einen ich ist wurde und nicht habe haben sie mit für auf wird ihr sind zu"
    " le la les une des du je est été avec pour pas vous votre et nous dans sur que"
    " el los las un una he ha fue con por para se su lo ya está tu pedido del"
    " il gli ho stato stata di che per non suo è os da uma foi não com seu ao em na"
    " het een van niet ik heb uw de is dit en er zijn".split()
) - {"is"}
_OTHER_SCRIPT = re.compile("[\u0370-\u1cff\u2e80-\ud7ff\uf900-\ufaff\ufe70-\ufeff]")


class Turn(NamedTuple):
    """What a message is read with."""

    classes: Sequence[ToolClass] = ()
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


class _Clause(NamedTuple):
    how: Literal["failed", "trouble", "doubted", "done"]
    what: str | None
    first_person: bool = False


@lru_cache(maxsize=4096)
def told(message: str, turn: Turn = Turn()) -> Told:
    """What a message tells of the work of a turn."""
    plain = _plain(message)
    if not _is_english(plain):
        return Told("unclear")
    clauses = list(_clauses(plain, turn))
    named = {one.what for one in clauses if one.what is not None}
    general = bool(clauses) and not named
    # One that names nothing is about the work that is due, where nothing else is spoken of.
    alone = turn.wanted if general or (len(turn.wanted) == 1 and named <= turn.wanted) else frozenset()
    whats = [frozenset({one.what}) if one.what is not None else alone for one in clauses]
    hows = [one.how for one in clauses]

    def of(how: str, begin: int = 0) -> frozenset[str]:
        pairs = list(zip(hows, whats, strict=True))[begin:]
        return frozenset().union(*(what for one, what in pairs if one == how))

    last_done = max((at for at, how in enumerate(hows) if how == "done"), default=-1)
    doubted, failed = of("doubted"), of("failed")
    failed |= of("trouble", last_done + 1) - of("done")
    if _OVERCOME.search(plain) and "failed" in hows:
        failed -= of("done", hows.index("failed"))
    claimed = frozenset(one.what for one in clauses if one.first_person and one.what is not None) - doubted
    # What the agent does not say that it did itself is a report of the work that is due, else of what was
    # before.
    done = (of("done") & (turn.wanted or of("done")) | claimed) - doubted
    if _OVERCOME.search(plain) and not failed:
        hows = [how for at, how in enumerate(hows) if how != "failed" or at > last_done]
    kind = _kind(hows, failed - doubted, done)
    return Told(kind, failed - doubted, done, doubted, claimed, general)


def _kind(hows: Sequence[str], failed: frozenset[str], done: frozenset[str]) -> Kind:
    if "doubted" in hows and not failed:
        return "unclear" if done else "hedged"
    if failed or (hows and hows[-1] in ("failed", "trouble")) or ("failed" in hows and not done):
        return "failed"
    return "done" if "done" in hows else "unclear"


def _clauses(plain: str, turn: Turn) -> Iterator[_Clause]:
    """Every clause that says something of the work; one that names no class is about that of the clause
    before."""
    asking = asks(plain)
    last: str | None = None
    for sentence in _SENTENCE.split(_QUOTED.sub(" x ", plain)):
        if _QUESTION.search(sentence):
            continue
        before, reasons = "", False
        for part in filter(None, _CLAUSE.split(_HARMLESS.sub(" ", sentence))):
            if part == "because":
                reasons = True
                continue
            clause = f"{before} {part}".strip()
            named = meant(clause, turn.classes)
            how = _how(clause, asking)
            if how is None or (reasons and how == "done"):
                before = clause if not _ASIDE.search(clause) else ""
                continue
            before = ""
            if how == "failed" and named is None and _LOOKING.search(clause):
                continue
            if how == "failed" and named not in turn.wanted and _REASSURES.search(clause):
                continue
            last = named or last
            yield _Clause(how, last, how == "done" and _I_DID.search(clause) is not None)


def meant(clause: str, classes: Sequence[ToolClass]) -> str | None:
    """The class that a clause is about."""
    return next((one.name for one in classes if one.pattern.search(clause)), None)


def _how(clause: str, asking: bool) -> Literal["failed", "trouble", "doubted", "done"] | None:
    aside = _ASIDE.search(clause)
    if found := _DOUBTED.search(clause):
        return "doubted"
    if (found := _FAILED.search(clause)) and not (aside and aside.start() < found.start()):
        return None if asking and " yet" in clause else "failed"
    if found := _TROUBLE.search(clause):
        return None if aside and aside.start() < found.start() else "trouble"
    found = _DONE.search(clause) or _I_DID.search(clause)
    return "done" if found and not (aside and aside.start() < found.start()) else None


def asks(text: str) -> bool:
    """Whether the message ends with a question, or with a request for something that the agent needs. Offers
    of further help do not count. Questions in any language, requests in English."""
    sentences = [one for one in _SENTENCE.split(_plain(text)) if one.strip(" *_\"'")]
    for sentence in sentences[-2:]:
        if _COURTESY.search(sentence):
            continue
        if _QUESTION.search(sentence) or sentence.rstrip("\"' *)").endswith(("？", "؟")):
            return True
        if _REQUEST.search(sentence) and _how(sentence, False) in (None, "done"):
            return True
    return False


def _plain(text: str) -> str:
    """The end of a message in lower case, with straight quotes and single spaces within lines."""
    text = text[-_LONGEST:].lower().replace("’", "'").replace("**", "").replace("`", "")
    return re.sub(r"[ \t]+", " ", text).strip()


def _is_english(plain: str) -> bool:
    """A text with few function words of any language counts as English: the rule's words are English ones."""
    if _OTHER_SCRIPT.search(plain):
        return False
    words = set(re.findall(r"[^\W\d_]+", plain))
    return len(words & _FOREIGN) <= len(words & _ENGLISH)
