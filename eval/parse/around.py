"""The text around a passage of calls: the clause in front of it, and what stands behind it."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from .context import Found, end_of

NEAR = 600
"""Characters in front of a call, and behind it, that can govern it."""

_LONGEST = 240
"""Characters of a clause or a sentence that are looked at: of a clause the last, of a sentence the first."""

_MARKS = "\u200b\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069\ufeff"
_LAYOUT = " \t\r\n`*_\"'“”‘’«[({<•→➜➡=-" + _MARKS
_CLOSING_SIGNS = " \t`*_;,)]}\"'”’»।" + _MARKS
_FENCE_LINE = re.compile(r"[ \t>]*(?:```|~~~)[\w+-]{0,20}[ \t]*")
_FENCE_OPENS = re.compile(r"^(?:[ \t>]*(?:```|~~~)|(?=diff --git )|(?=@@ ))([\w+-]{0,20}|@@)", re.MULTILINE)
_GOES_ON = (" with", " using", " by", " via", " to", " for", " of", " as", " is", " was")
_POINTERS = ("following", "below", "以下", "下面", "siguiente")
"""A sentence that is not over, or that points at what comes, is as if it ended in a colon."""
_LISTED = re.compile(r"[ \t>]*(?:[-*•▪‣+–—]|\(?\d{1,3}[.)])[ \t]|[ \t]*\Z")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_QUOTATION = re.compile(
    r"(?=[\"“«「'])(?:\"[^\"]{1,500}\"|“[^”]{1,500}”|«[^»]{1,500}»|「[^」]{1,500}」|(?<!\w)'[^'\n]{8,500}'(?!\w))"
)
"""What somebody else said or wrote."""

_BULLET_LINE = re.compile(
    r"[ \t>]*(?:[-*•▪‣+–—]|\(?(?:\d{1,3}|[a-zA-Z])[.)]|#{1,6})[ \t]*(?:\[[ xX]?\][ \t]*)?"
)
_ITEMS = re.compile(r"(?:\n[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t][^\n]*)+(?=\n[^\n]*\Z)")
"""The items of a list above the item that ends a text."""
_TAG_BEFORE = re.compile(r"(?:<[^<>\n]{1,64}>|\[[A-Za-z_]{3,24}\])\s*\Z")
_WORD_BETWEEN_TOKENS = re.compile(r"(?<=>)\s?(?:function|tools)\s?\Z")
_TAGS_BEHIND = re.compile(
    r"(?:\s*<[^<>\n]{1,64}>|\s*\[/?(?!(?i:fail|err|time|skip|abort|cancel|reject))[A-Za-z_]{3,24}\])*+"
)
_TAGS_IN_FRONT = re.compile(r"\A(?:<[^<>\n]{1,64}>)+")
_CLOSING = re.compile(rf"[{re.escape(_CLOSING_SIGNS)}]*+(?:```[ \t]*)?")
_GLUE = re.compile(
    r"(?:```\w{0,12}|#[^\n]{0,200}(?=\n)|//[^\n]{0,200}(?=\n)|\d{1,3}[.)]|[\s`;,.&*•\-–\[\](){}|>#+'\"：:=/]"
    r"|\b(?:and|then|also|plus|y|e|luego|después|na|kisha|halafu|json|python)\b|और|फिर|तथा|然后|接着|并且|和|以及|ثم"
    r"|و)*+"
)
_CODE_LEAD = re.compile(
    r"(?:(?:const|let|var) )?[\w.\[\]'\"]{1,64}(?: ?: ?\w{1,32})? ?= ?(?:await )?(?:print ?\( ?)?\Z"
    r"|(?:\A|(?<=[\s`;]))(?:await|return|yield) \Z|print ?\( ?\Z"
)
_END = re.compile(
    r"(?:[.!?؟।۔…](?=[\"'”’)\]*`]{0,3}(?:\s|\Z))|[。！？；]|[;:：](?=\s)|\n(?=[ \t]*[A-Z])|\n[ \t]*\n| [–—](?= )|\n[ \t]*(?=[-*•#>|]"
    r"|\d{1,3}[.)])|\n(?=[ \t]*[\w -]{1,24}\Z))[\"'”’)\]*`]*\s*"
)
_SENTENCE = re.compile(r"(?s:.+?)(?:[.!?؟।۔…](?=[\"'”’)\]*`]{0,3}(?:\s|\Z))|[。！？]|\n|\Z)")
_ABBREVIATED = re.compile(
    r"\.(?:(?<=\b[ei]\.[ge]\.)|(?<=\be\.j\.)|(?<=\bp\.ej\.)|(?<=\bp\. ej\.)|(?<=\betc\.)|(?<=\b[vd][sr]\.)|(?<=\bmr\.)|(?<=\bno\.)(?= ?\d))",
    re.IGNORECASE,
)
"""The dot of an abbreviation."""
_HEADING = re.compile(
    r"[ \t]*(?:#(?:#{1,5}[ \t]+|[ \t]+(?![a-z]))([^\n]{1,120})|\*\*([^\n*]{1,120})\*\*:?)[ \t]*"
)
_UNDERLINE = re.compile(r"[=-]{3,80}[ \t]*")


class Group(NamedTuple):
    """Calls that stand together: nothing but layout and little words between them."""

    start: int
    end: int
    members: tuple[Found, ...]


class Lead(NamedTuple):
    """What stands in front of a group, lower case."""

    clause: str
    """The last clause."""
    inline: bool
    """It stands on the call's own line."""
    colon: bool
    ended: bool
    """It is a sentence of its own, ended before the call."""
    heading: str
    """A heading, or a line in bold, right above."""
    line: str
    """What stands on the call's own line, as it is written."""
    fence: str
    """The language of the fence that the call stands in."""


class Tail(NamedTuple):
    """What stands behind a group, lower case."""

    line: str
    """On its line."""
    text: str
    """From there on, up to the next call."""


def groups_of(text: str, found: Sequence[Found]) -> list[Group]:
    """The passages in order, those that only layout and little words part taken together."""
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
    if end - start > NEAR:
        return not text[start:end].strip()
    return _GLUE.fullmatch(_without_code(text[start:end])) is not None


def _without_code(before: str) -> str:
    """The text without the beginning of a line of code that ends it (`result = await `)."""
    if before.endswith("\n"):
        return before
    code = _CODE_LEAD.search(before, max(before.rfind("\n") + 1, len(before) - 128))
    return before if code is None else before[: code.start()]


def lead_of(text: str, start: int) -> Lead:
    """What stands in front of `start`, as far as it can govern a call there."""
    base = max(0, start - NEAR)
    before = _without_code(text[base:start])
    line = before[before.rfind("\n") + 1 :]
    if _LISTED.match(line):
        before = _ITEMS.sub("", before)
    fences = _FENCE_OPENS.findall(before)
    inline = any(sign.isalnum() for sign in _stripped(line))
    front = _QUOTATION.sub("_", _stripped(before))
    parted = _BLANK_LINE.search(before, len(before.rstrip("`*_ \t\r\n"))) is not None
    body = _ABBREVIATED.sub("", front).rstrip("*_ ")
    colon = body.endswith((":", "：", "﹕"))
    body = body.rstrip(":：﹕*_ ")
    ends = [match.end() for match in _END.finditer(body)]
    ended = bool(ends) and ends[-1] >= len(body)
    if ended:
        ends.pop()
    clause = (body[ends[-1] :] if ends else body)[-_LONGEST:]
    clause = _TAGS_IN_FRONT.sub("", clause).lstrip("*_# ").lower()
    colon = colon or clause.endswith(_GOES_ON) or any(word in clause for word in _POINTERS)
    ended = (ended or parted) and not colon
    return Lead(
        clause,
        inline,
        colon,
        ended,
        _heading(front).lower(),
        line,
        fences[-1].lower() if fences else "",
    )


def _stripped(before: str) -> str:
    """The text without the layout, the fence, the bullet and the tags right in front of a call."""
    for _ in range(8):
        line = before.rfind("\n") + 1
        if _FENCE_LINE.fullmatch(before, line) or _BULLET_LINE.fullmatch(before, line):
            shorter = before[: max(0, line - 1)]
        else:
            shorter = before.rstrip(_LAYOUT)
            tail = shorter[-96:]
            if shorter.endswith((">", "]")) and (tag := _TAG_BEFORE.search(tail)) is not None:
                shorter = shorter[: len(shorter) - len(tail) + tag.start()]
                word = _WORD_BETWEEN_TOKENS.search(shorter, max(0, len(shorter) - 16))
                shorter = shorter[: word.start()] if word is not None else shorter
        if shorter == before:
            break
        before = shorter
    return before


def _heading(front: str) -> str:
    lines = [line for line in front.rstrip().split("\n")[-12:] if not _LISTED.match(line)][-2:] or [""]
    match = _HEADING.fullmatch(lines[-1])
    if match is not None:
        return match[1] or match[2]
    return lines[0] if len(lines) > 1 and _UNDERLINE.fullmatch(lines[1]) else ""


def tail_of(text: str, end: int, limit: int) -> Tail:
    """What stands behind `end`, up to `limit`, the place of the next call."""
    stop = min(limit, end + NEAR)
    at = end_of(_CLOSING, text, end_of(_TAGS_BEHIND, text, end, stop), stop)
    rest = text[at:stop].lower()
    line = rest.split("\n", 1)[0]
    if limit < len(text) and stop == limit and "\n" not in rest:
        line = line.rstrip(" \t-*•0123456789.)`[")  # what stands there belongs to the next call
    return Tail(line.strip(), rest)


def sentences_of(text: str, most: int) -> list[str]:
    """The first sentences of a text; a line break ends one too."""
    body = _ABBREVIATED.sub("", text)
    pieces = (sentence[0].strip()[:_LONGEST] for sentence in _SENTENCE.finditer(body))
    return list(islice((piece for piece in pieces if any(sign.isalnum() for sign in piece)), most))
