"""Bare calls: which are the reply's act and which its subject.

A call alone on its lines, in a fence or behind a colon is made, unless a cue governs it: the clause in front, or
what the text behind says of its outcome. A call inside a sentence is made only where the first person announces
it. Cues are words of `cues`; what they must stand next to is here.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from .cues import CUES
from .found import Found

_NEAR = 600
"""Characters in front of a call, and behind it, that can govern it."""

_MAX_GROUPS = 48
"""So many passages of calls are looked at in one reply; what comes after them is not made."""

_MARKS = "\u200b\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069\ufeff"
_LAYOUT_BEFORE = re.compile(
    rf"(?:[\s`*_\"'“”‘’«\[\](){{}}<•▪‣→➜➡✅🔧👉=~{_MARKS}-]|\A|(?<=\n)[ \t]*>|(?<=\n)[ \t]*\d{{1,3}}[.)]|(?<=\n)[ \t]*#+ )*"
    r"(?:(?:(?:const|let|var) )?[\w.\[\]'\"]{1,64}(?: ?: ?\w{1,32})? {0,4}= {0,4})?(?:(?:await|return|yield) )?(?:print ?\( ?)?\Z"
)
_FENCE_LINE = re.compile(r"(?:\n|\A)[ \t>]*(?:```|~~~)[\w+-]{0,20}[ \t]*\Z")
_TRAILING = re.compile(rf"[\s`*_\"'“”‘’«{_MARKS}\[({{<•→➜➡=-]+\Z")
_TAGS_BEFORE = re.compile(
    r"(?:(?:<[^<>\n]{1,64}>(?:function(?=<)|\s?tools\s?(?=<))?|\[[A-Za-z_]{3,24}\])\s*)+\Z"
)
_TAGS_BEHIND = re.compile(r"(?:\s*<[^<>\n]{1,64}>|\s*\[/?[A-Za-z_]{3,24}\])*+")
_BULLET = re.compile(r"(?:\n|\A)[ \t>]*(?:[-*•▪‣+–—]|\(?(?:\d{1,3}|[a-zA-Z])[.)]|#{1,6})[ \t]*\Z")
_GLUE = re.compile(
    r"(?:[\s`;,.&*•\-–\[\](){}|>#+'\"：:=]|\d{1,3}[.)]|```\w{0,12}|\b(?:and|then|also|plus|y|e|luego|después|और|फिर|तथा|na|kisha|halafu|json|python)\b"
    r"|然后|接着|并且|和|以及|و|ثم|#[^\n]{0,200}(?=\n)|//[^\n]{0,200}(?=\n))*"
)
_CODE_LEAD = re.compile(
    r"(?:(?:const|let|var) )?[\w.\[\]'\"]{1,64}(?: ?: ?\w{1,32})? ?= ?(?:await )?(?:print ?\( ?)?\Z"
    r"|(?:\A|(?<=[\s`;]))(?:await|return|yield) \Z|print ?\( ?\Z"
)
_END = re.compile(
    r"(?:[.!?؟।۔…](?=[\"'”’)\]*`]{0,3}(?:\s|\Z))|[。！？；]|[;:：](?=\s)|\n[ \t]*\n|\n[ \t]*(?=[-*•#>|]|\d{1,3}[.)]))[\"'”’)\]*`]*\s*"
)
_ABBREVIATED = re.compile(r"\b(e\.g|i\.e|p\. ?ej|etc|vs|no|mr|dr)\.", re.IGNORECASE)
_CLOSING = re.compile(rf"[ \t`*_;,)\]}}\"'”’»।{_MARKS}]*+(?:```[ \t]*)?")
_SET_OFF = re.compile(r"[ \t]*+(?:[-–—]{1,3}(?!>)|->|→|#|//|\(|（|\[|【|<!--|/\*|--)")
_THOUGHT_LINE = re.compile(r"(?:\n|\A)(?P<line>[ \t*_]{0,4}(?i:thought)[ \t]?\d{0,3}[*_]{0,3}[:：][^\n]*)\n\s*\Z")
_FULL_STOP = re.compile(r"[ \t]*+[.。।!！؟…]+[\"'”’)*`]*+[ \t]*+")
_COLON = (":", "：", "：**", ":**", "﹕")
_SENTENCES = 3


class Group(NamedTuple):
    """Calls that stand together: nothing but layout and little words between them."""

    start: int
    end: int
    members: tuple[Found, ...]


def made(text: str, found: Sequence[Found], marked: Sequence[Found]) -> tuple[list[Found], list[Found]]:
    """The bare calls that the reply makes, and those that it only speaks of. `marked` calls stand beside them."""
    if not found:
        return [], []
    groups = _groups(text, found)
    acts: list[Found] = []
    quoted: list[Found] = []
    spans = [(one.start, one.end) for one in (*groups, *marked)]
    for number, group in enumerate(groups):
        dropped = number >= _MAX_GROUPS or _is_corrected(text, group, spans)
        if dropped or cue(text, group, _next_start(group, spans, len(text))) is not None:
            quoted += group.members
        else:
            acts += group.members
    return acts, quoted


def beside_refusal(text: str, marked: Sequence[Found]) -> bool:
    """Whether the prose around marked calls refuses, reports, supposes or questions them."""
    groups = _groups(text, marked)
    spans = [(one.start, one.end) for one in groups]
    return any(
        _around(text, group, _next_start(group, spans, len(text))) for group in groups[:_MAX_GROUPS]
    )


def _groups(text: str, found: Sequence[Found]) -> list[Group]:
    groups: list[list[Found]] = []
    for one in sorted(found, key=lambda item: (item.start, item.end)):
        last = groups[-1][-1] if groups else None
        if last is not None and one.start < last.end:
            continue
        if last is not None and _is_glue(text, last.end, one.start):
            groups[-1].append(one)
        else:
            groups.append([one])
    return [Group(members[0].start, members[-1].end, tuple(members)) for members in groups]


def _is_glue(text: str, start: int, end: int) -> bool:
    """Whether only layout, little words, comments and the beginning of a line of code stand there."""
    if end - start > _NEAR:
        return not text[start:end].strip()
    between = text[start:end]
    code = _CODE_LEAD.search(between)
    return _GLUE.fullmatch(between[: code.start()] if code else between) is not None


def _next_start(group: Group, spans: Sequence[tuple[int, int]], end: int) -> int:
    return min((start for start, _ in spans if start >= group.end), default=end)


def _is_corrected(text: str, group: Group, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether the reply takes back what it wrote and writes a call again."""
    following = _next_start(group, spans, -1)
    if following < 0:
        return False
    between = text[group.end : following][:_NEAR]
    return CUES.correction.search(between) is not None


# --- the text in front and behind -----------------------------------------------------------------------


class _Lead(NamedTuple):
    clause: str
    """The last clause in front."""
    inline: bool
    """The clause stands on the call's own line."""
    colon: bool
    ended: bool
    """The clause is a sentence of its own, ended before the call."""
    block_quote: bool
    heading: str
    """A heading, or a line in bold, right above."""


def _lead(text: str, start: int) -> _Lead:
    base = max(0, start - _NEAR)
    line_start = text.rfind("\n", base, start) + 1 if "\n" in text[base:start] else base
    line = text[line_start:start]
    block_quote = line.lstrip().startswith(">")
    before = text[base:start]
    if (code := _CODE_LEAD.search(before[-128:])) is not None:
        before = before[: len(before) - (len(before[-128:]) - code.start())]
    own = _stripped(before[before.rfind("\n") + 1 :])
    inline = any(sign.isalnum() for sign in own)
    front = _stripped(before)
    colon = front.endswith(_COLON)
    body = _ABBREVIATED.sub(lambda m: m[0].replace(".", ""), front)
    body = body.rstrip("*_ ").removesuffix(":").removesuffix("：")
    ends = [match.end() for match in _END.finditer(body)]
    ended = bool(ends) and ends[-1] >= len(body)
    if ended:
        ends.pop()
    clause = body[ends[-1] :] if ends else body
    if ended and not colon and not clause.strip():
        clause = body
    return _Lead(clause, inline, colon, ended and not colon, block_quote, _heading(front))


def _stripped(before: str) -> str:
    """The text without the layout, the fence or the bullet right in front of a call."""
    for _ in range(6):
        shorter = _FENCE_LINE.sub("", _TAGS_BEFORE.sub("", before))
        shorter = _BULLET.sub("", shorter)
        shorter = _TRAILING.sub("", shorter)
        if shorter == before:
            break
        before = shorter
    return before


_HEADING = re.compile(r"(?:\n|\A)[ \t]*(?:#{1,6}[ \t]+([^\n]{1,120})|\*\*([^\n*]{1,120})\*\*:?|([^\n]{1,80})\n[=-]{3,})[ \t]*\Z")


def _heading(front: str) -> str:
    match = _HEADING.search(front.rstrip())
    return (match[1] or match[2] or match[3]) if match else ""


class _Tail(NamedTuple):
    line: str
    """What stands behind the call on its line."""
    text: str
    """The text from there on, up to the next call."""


def _tail(text: str, end: int, limit: int) -> _Tail:
    stop = min(limit, end + _NEAR)
    tags = _TAGS_BEHIND.match(text, end, stop)
    at = tags.end() if tags else end
    closing = _CLOSING.match(text, at, stop)
    at = closing.end() if closing else at
    rest = text[at:stop]
    line = rest.split("\n", 1)[0]
    if limit < len(text) and stop == limit and "\n" not in rest:
        line = line.rstrip(" \t-*•0123456789.)`[")  # what stands there belongs to the next call
    return _Tail(line.strip(), rest)


# --- the decision ---------------------------------------------------------------------------------------


def cue(text: str, group: Group, limit: int) -> str | None:
    """Why a group of bare calls is not made, in one word, or None."""
    lead = _lead(text, group.start)
    tail = _tail(text, group.end, limit)
    announced = _announces(lead.clause)
    if "|" in tail.line or text[text.rfind("\n", 0, group.start) + 1 : group.start].lstrip().startswith("|"):
        return "table"
    if tail.line and (reason := _text_behind(tail.line, announced, lead)) is not None:
        return reason
    if lead.inline and not lead.colon and not announced:
        return "inline"
    if lead.block_quote and not lead.colon:
        return "block quotation"
    names = [finding.call.name for one in group.members for finding in one.findings]
    question = tail.line[:1] in ("?", "？", "؟")
    return _governed(lead, names, question=question) or _told_after(tail)


def _text_behind(line: str, announced: bool, lead: _Lead) -> str | None:
    """Whether the text behind a call on its line makes the call a part of a sentence."""
    if not any(sign.isalnum() for sign in line):
        return None
    set_off = _SET_OFF.match(line)
    if set_off is not None:
        return "outcome" if CUES.outcome.search(line[set_off.end() :].strip()) else None
    stop = _FULL_STOP.match(line)
    if stop is not None:
        return None if announced else "text behind"
    soon = CUES.soon.match(line)
    if announced and soon is not None:
        rest = line[soon.end() :]
        again = CUES.soon.match(rest.strip())
        if again is not None:
            rest = rest.strip()[again.end() :]
        if not rest.strip(" .!。।…)*`\"'") or _FULL_STOP.match(rest):
            return None
    return "text behind"


def _announces(clause: str) -> bool:
    """Whether a clause says in the first person that the call is made, and nothing later in it takes it back."""
    announced = _last(CUES.announced, clause)
    return announced >= 0 and announced > max(
        _last(CUES.refused, clause), _last(CUES.supposed, clause), _last(CUES.asked, clause)
    )


def _last(pattern: re.Pattern[str], clause: str) -> int:
    found = -1
    for match in pattern.finditer(clause):
        found = match.end()
    return found


def _is_subject(name: str, clause: str) -> bool:
    at = clause.find(name)
    return at >= 0 and CUES.does.match(clause[at + len(name) :].lstrip("`*\"'()")) is not None


def _governed(lead: _Lead, names: Sequence[str] = (), *, question: bool = False) -> str | None:
    """The cue of the clause in front that has the call as its object. `names` are those of the called tools;
    `question`: a question mark stands right behind the call."""
    clause = lead.clause
    if lead.heading and (CUES.example.search(lead.heading) or CUES.described.search(lead.heading)):
        return "heading"
    if not clause.strip():
        return None
    announced = _last(CUES.announced, clause)
    if CUES.asked.search(clause) or (
        (announced < 0 or question) and not lead.ended and CUES.asked.search(clause + "?")
    ):
        return "asked"
    if announced < 0 and any(_is_subject(name, clause) for name in names):
        return "described"
    if lead.ended and not CUES.this_call.search(clause):
        if announced >= 0:
            return None
        return "described" if CUES.described.search(clause) or CUES.example.search(clause) else None
    for name, pattern in (("refused", CUES.refused), ("supposed", CUES.supposed), ("example", CUES.example)):
        last = _last(pattern, clause)
        if last >= 0 and last >= announced:
            return name
    if announced < 0:
        if CUES.reported.search(clause):
            return "reported"
        if CUES.described.search(clause):
            return "described"
    return None


def _told_after(tail: _Tail) -> str | None:
    """What the sentences behind a call say of it: its outcome, that it is not made, or a question."""
    for number, sentence in enumerate(_sentences(tail.text)):
        if number >= _SENTENCES:
            break
        if CUES.asked.search(sentence):
            return "asked"
        if CUES.later.search(sentence) and not CUES.conditional.search(sentence):
            return "outcome"
        conditional = CUES.conditional.search(sentence)
        if conditional is not None and conditional.start() < 24:
            continue
        outcome = CUES.outcome.search(sentence)
        if outcome is not None and conditional is None and not CUES.earlier.search(sentence):
            return "outcome"
        if _refuses_it(sentence, number):
            return "refused"
        if number == 0 and CUES.example.search(sentence) and CUES.this_call.search(sentence):
            return "example"
    return None


_IT = re.compile(
    r"\b(?:it|this|that|them|these|so|the (?:call|request|tool|function))\b|(?:它|这个|此|该|调用|执行)|(?:lo|la|esta|esto|llamada)\b|(?:इसे|यह|इस|कॉल|ऐसा)"
    r"|(?:هذا|ذلك|الاستدعاء|بذلك|به|ه)\b|\b(?:huu|hii|hilo|hivyo|mwito)\b",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r"^\W*(?:but|however|though|yet|although|because|since|here\b|但|然而|不过|可是|因为|लेकिन|मगर|पर |किंतु|परंतु|क्योंकि|pero|sin embargo|aunque|porque|"
    r"لكن|ولكن|غير|إلا|لأن|lakini|hata hivyo|ila|kwa sababu)",
    re.IGNORECASE,
)


def _refuses_it(sentence: str, number: int) -> bool:
    refused = CUES.refused.search(sentence)
    if refused is None:
        return False
    announced = _last(CUES.announced, sentence)
    if announced > refused.start():
        return False
    if number == 0 and _CONTRAST.match(sentence):
        return True
    return _IT.search(sentence, refused.start()) is not None


def _sentences(text: str) -> list[str]:
    body = _ABBREVIATED.sub(lambda m: m[0].replace(".", ""), text)
    found: list[str] = []
    at = 0
    for end in re.finditer(r"[.!?؟।۔…](?=[\"'”’)\]*`]{0,3}(?:\s|\Z))|[。！？]|\n", body):
        piece = body[at : end.end()].strip()
        if any(sign.isalnum() for sign in piece):
            found.append(piece)
        at = end.end()
        if len(found) > _SENTENCES:
            return found
    if any(sign.isalnum() for sign in body[at:]):
        found.append(body[at:].strip())
    return found


def _around(text: str, group: Group, limit: int) -> bool:
    """For marked calls: whether any cue stands in the sentences around them."""
    thought = _THOUGHT_LINE.search(text, max(0, group.start - _NEAR), group.start)
    if thought is not None and _governed(_lead(text, thought.start("line"))._replace(ended=False)) is not None:
        return True
    lead = _lead(text, group.start)
    if _governed(lead._replace(ended=False)) is not None:
        return True
    if lead.inline and not lead.colon and CUES.outcome.search(_tail(text, group.end, limit).line):
        return True
    return _told_after(_tail(text, group.end, limit)) is not None
