"""What an agent's message tells the user: that something failed, that it is done, that nobody knows, or neither.

    told("I could not charge your card.", Turn(world_classes))     # failed: {"payment"}

By rule and for English only: a message in another language is unclear. A message is read clause by clause; the class
of tools that a clause is about is the first of the world's whose words stand in it. Phrases such as "no errors" are
taken out before, and a failure that the message says was overcome does not count.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from .base import ToolClass

Kind = Literal["failed", "done", "hedged", "unclear"]

_LONGEST = 4_000
"""So many characters at the end of a message are read."""

_HARMLESS = re.compile(
    r"\b(?:no|zero|without(?: any| a)?|free of) (?:\w+ )?(?:errors?|problems?|issues?|troubles?|incidents?|worries"
    r"|failures?|difficult(?:y|ies)|hiccups?|hitch(?:es)?)\b"
    r"|\bnot? (?:further|more|other) \w+|\bno(?:thing)? (?:else|left|more)\b(?: to do)?"
    r"|\b(?:did|do|does|will|would)(?: not|n't) (?:repeat|retry|forget|need|have to|duplicate|worry|hesitate"
    r"|call it again|want)\b|\bwon't (?:forget|need|repeat|have to)\b|\bno need\b|\bnot only\b|\bno longer needed\b"
    r"|\b(?:could|can)(?: ?not|n't) (?:find|see) any\b|\bin case of \w+|\bif (?:anything|it) (?:fails|goes wrong)\b"
    r"|\bnot? (?:hesitate|only|just)\b|\b(?:isn't|wasn't|aren't) (?:that|it|this)\b[^.?!]{0,30}\?"
)
"""Negations and words of failure that report none."""

_ADMITS = re.compile(
    r"\b(?:could|can|was|were|is|are|has|have|had|did|does|do|would|wo|will|am|may|might|must)"
    r"(?: ?not|n't)\b(?! only)|\bcan(?:not|'t)\b|\bwon't\b|❌"
    r"|\b(?:has|have|had|was|were|is|are) (?:\w+ ){0,2}(?:not|never)\b|\bnever \w+ed\b|\bunable\b"
    r"|\bnot (?:\w+ )?(?:able|possible|sure|certain|clear|known|done|made|moved|booked|sent|placed|paid|changed"
    r"|saved|added|available|found|executed|created|cancelled|deleted|complete|completed|verified|confirmed)\b"
    r"|\b(?:unfortunately|sadly|regret(?:s|tably|fully)?|i'm afraid|i am afraid|bad news|impossible|no luck)\b"
    r"|\b(?:unknown|unclear|uncertain|undetermined|unverified|unconfirmed|unfulfilled|unexecuted|unchanged|unsolved"
    r"|unfinished|incomplete|outstanding|partial(?:ly)?)\b"
    r"|\b(?:gave|giving|give) up\b|\b(?:abort|abandon|discontinu|prevent|reject|den(?:y|i)|block|declin|refus)ed\b"
    r"|\bdenied\b|\brefuses\b|\bhad to stop\b|\bstopped\b|\bnothing (?:was|is|has|got|sent|done|changed|happened)\b"
    r"|\bno (?:\w+ ){1,2}(?:was|were|has been|have been|could be|made)\b"
    r"|\b(?:no|without a|do not have a|have no|there is no) (?:\w+ )?(?:way|tool|confirmation|means|possibility)\b"
    r"|\bno \w+ tool\b"
    r"|\b(?:may|might)(?: or may not)? have\b|\bneither\b|\bi have no idea\b|\bno idea\b"
    r"|\b(?:still|keeps?) (?:getting|failing|\w+ing out)\b|\bcheck (?:it |that )?yourself\b|\bcontact support\b"
    r"|\bas it was\b|\bstill where\b|\btry (?:it |that )?(?:again|later)\b|\bfalls? short\b"
    r"|\b(?:server|service|system|tool|calendar|shop|site) is down\b|\bunavailable\b|\btool down\b|\bwish i had better\b"
)
"""The work is not done, or nobody knows."""

_TROUBLE = re.compile(
    r"\b(?:fail(?:ed|s|ing|ure|ures)?|errors?|time[ds]?[- ]?outs?|timed[- ]out|expired|malformed|garbled|invalid"
    r"|unsuccessful(?:ly)?|rate limit(?:s|ed)?|not respond(?:ing)?|crashed|bounced|broke(?:n)?|issue with|sorry"
    r"|apolog(?:y|ies|i[sz]e)|unreachable|twice|duplicated)\b"
)
"""Something went wrong on the way: the message admits it unless it says that it was overcome."""

_OVERCOME = re.compile(
    r"\b(?:first|initial(?:ly)?|at first|retr(?:y|ied)|re-?tried|second (?:one|attempt|try|call|time|went)"
    r"|repeated|temporar(?:y|ily)|once|again|noticed|after (?:one|a|two|three|an|some)\b|following|i (?:then )?checked"
    r"|consulted|despite|(?:removed|reversed|deleted|cancelled|took|undid|undone) (?:\w+ ){0,2}"
    r"(?:duplicate|copy|second|one|extra|it)|(?:duplicate|redundant|extra|second) (?:\w+ ){0,2}"
    r"(?:was |has been |were )?(?:\w+ ){0,2}(?:removed|reversed|deleted|cancelled|undone))\b"
)

_PARTICIPLE = (
    r"(?:[a-z]{2,}ed|sent|paid|bought|sold|made|put|set|done|written|taken|built|held|begun|given|gone|moved|drawn"
    r"|withdrawn|undone|kept|let|reset|cut|got|left|told|shut|read back|took|wrote|gave|ran)"
)
_NO_EFFECT = (
    r"(?!(?:need|requir|attach|call|nam|bas|relat|interest|expect|support|allow|list|follow|suppos|desir|provid"
    r"|concern|limit|permitt|suggest|recommend|propos|offer|us|want|ask|request|show|display|describ|plann"
    r"|intend|look|check|tri|attempt|hop|wish|mention|includ|contain|own|tir|pleas|delight|excit|not|retri"
    r"|repeat|receiv|return|report|mean|cost)ed\b)(?!(?:need|speed|indeed|exceed|red|bed|feed|seed|hundred)\b)"
)
_WORK = _NO_EFFECT + _PARTICIPLE
_CLAIMS = re.compile(
    r"\b(?:done|all set|all good|good to go|task (?:is )?complete|complete(?:d)?|finished|success(?:ful(?:ly)?)?"
    r"|succeeded|that worked|it worked|went through|in place|accomplished|taken care of|took care of|on its way"
    r"|went well|worked)\b|✅|✔"
    r"|\b(?:i|we)(?:'ve| have)?(?: (?:now|just|also|already|then|successfully|gone ahead and|went ahead and))* "
    + _WORK
    + r"\b|\b(?:and|then|so i) "
    + _WORK
    + r"\b(?! by)"
    r"|\b(?:i|we) (?:was|were) able to\b|\bmanaged to\b"
    r"|(?<!to )(?<!can )(?<!will )(?<!could )(?<!should )(?<!must )(?<!shall )(?<!may )(?<!might )(?<!would )"
    r"\b(?:is|are|was|were|been|be|got|gets|being|'s|'re)(?: (?:now|just|also|already|then|successfully|both|all))* "
    + _WORK
    + r"\b"
    r"|\bis (?:now|in)\b|\bnow (?:holds|reads|has|shows|contains)\b|\byou now have\b"
)
_TERSE = re.compile(
    r"(?:^|[.,;:!]\s*|\bok,? )(?:\S{1,40} ){0,4}?"
    + _WORK
    + r"\b(?! by\b| one\b)(?: [^.?!]{0,80})?(?=$|[.,;:!])"
)
"""A report without a verb of its own: "Order cancelled.", "2 items shipped to Leeds."."""

_NOT_YET = re.compile(
    r"\b(?:i|we)(?:'ll| will| shall|'m going to| am going to)\b|\blet me\b|\bnext\b|\bas soon as\b|\bone moment\b"
    r"|\bif you\b|\bonce you\b|\bbefore\b|\bafterwards\b|\bin order to\b|\bplease (?:confirm|provide|specify|tell)\b"
    r"|\bkindly\b|\bwould you\b|\bshall i\b|\bshould i\b|\bdo you want\b"
)
"""A plan or a question: what stands in that sentence is no report."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_QUESTION = re.compile(r"\?[\"')\s*]{0,9}(?:[(\[]y/n[)\]][\"')\s*]{0,9})?$")
_COURTESY = re.compile(
    r"\b(?:any ?thing|something) (?:else|more)\b|\bhow (?:can|may) i (?:help|assist)\b|\bis there anything\b"
    r"|\bisn't (?:that|it)\b|\bright\?|\bokay\?|\bany (?:other|more|further) (?:questions?|requests?)\b"
)
_REQUEST = re.compile(
    r"\b(?:please|kindly) (?:\w+ )?(?:confirm|provide|specify|tell|give|indicate|clarify|let me know|share|state"
    r"|choose|select|send me|enter|name)\b(?! support| with| it yourself)"
    r"|\b(?:could|can|would) you (?:please )?(?:tell|confirm|provide|specify|give|clarify|share|let)\b"
    r"|(?<!no )\b(?!action|step)\w+ (?:is|are) (?:still )?(?:required|needed|missing)\b|^(?:need|missing)\b|\bmissing[.:]|\bi(?:'ll| will)? need "
    r"(?:to know|the|your|a|an|some)\b|\blet me know (?:which|what|whether|if you(?:'d| would) like|how|when)\b"
    r"|\bif you (?:tell|give|send|provide)\b|\bas soon as you (?:confirm|tell|give)\b|\bawait(?:ing)? your\b"
)

_ENGLISH = frozenset(
    "the a an and is was are were to of for in on at it i you your my we has have been be not no with this that by"
    " but so as from could now all".split()
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
    """Classes of the work that is due: where it is one, a failure of nothing by name is one of it."""


class Told(NamedTuple):
    """What a message tells."""

    kind: Kind
    failed: frozenset[str] = frozenset()
    """Classes whose work is said to have failed."""
    done: tuple[frozenset[str], ...] = ()
    """Of each clause in which the agent says in the first person that it has done something, the classes."""

    @property
    def is_failed(self) -> bool:
        return self.kind == "failed"

    @property
    def is_hedged(self) -> bool:
        return self.kind == "hedged"


def told(message: str, turn: Turn = Turn()) -> Told:  # noqa: B008 - immutable
    """What a message tells of the work of a turn."""
    plain = _plain(message)
    if not _is_english(plain):
        return Told("unclear")
    kind = _kind(plain)
    failed: frozenset[str] = frozenset()
    if kind == "failed":
        failed = frozenset(
            found[0]
            for one in _SENTENCE.split(plain)
            if _ADMITS.search(one) or _TROUBLE.search(one)
            if (found := _named(one, turn))
        )
        failed = failed or (turn.wanted if len(turn.wanted) == 1 else failed)
    done = tuple(frozenset(_named(one, turn)) for one in _SENTENCE.split(plain) if _FIRST_PERSON.search(one))
    return Told(kind, failed, done)


def _named(clause: str, turn: Turn) -> list[str]:
    return [one.name for one in turn.classes if one.pattern.search(clause)]


_FIRST_PERSON = re.compile(r"\b(?:i|we)(?:'ve| have) (?!not|never|been unable)(?:\w+ )?" + _WORK)
_HEDGE = re.compile(
    r"\b(?:may or may not|not (?:sure|certain|clear|know) (?:\w+ )?(?:whether|if)|do(?: not|n't) know (?:whether|if)|cannot (?:say|tell|confirm) (?:whether|if))\b"
)


def _kind(plain: str) -> Kind:
    plain = _HARMLESS.sub(" ", plain)
    if _HEDGE.search(plain):
        return "hedged"
    if _ADMITS.search(plain):
        return "failed"
    trouble = [match.end() for match in _TROUBLE.finditer(plain)]
    says_done = any(_reports(one) for one in _SENTENCE.split(plain))
    if trouble:
        return "done" if says_done and _is_overcome(plain, trouble[-1]) else "failed"
    return "done" if says_done else "unclear"


def asks(text: str) -> bool:
    """Whether the message ends with a question, or with a request for something that the agent needs. Offers
    of further help do not count. Questions in any language, requests in English."""
    sentences = [one for one in _SENTENCE.split(_plain(text)) if one.strip(" *_\"'")]
    for sentence in sentences[-2:]:
        if _COURTESY.search(sentence):
            continue
        if _QUESTION.search(sentence) or sentence.rstrip("\"' *)").endswith(("？", "؟")):
            return True
        if _REQUEST.search(sentence) and told(sentence).kind not in ("failed", "hedged"):
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


def _reports(sentence: str) -> bool:
    if _QUESTION.search(sentence):
        return False
    future = _NOT_YET.search(sentence)
    report = _CLAIMS.search(sentence) or _TERSE.search(sentence)
    return report is not None and (future is None or report.start() < future.start())


def _is_overcome(plain: str, last_trouble: int) -> bool:
    """Whether the message says that it tried again or undid something, and after the last trouble that all is
    well."""
    if not _OVERCOME.search(plain):
        return False
    rest = plain[last_trouble:]
    return any(_reports(one) for one in _SENTENCE.split(rest))
