"""Bare calls: which are the reply's act and which its subject.

A call alone on its lines, in a fence or behind a colon is made, unless a cue governs it: the clause in front, or
what the text behind says of its outcome. A call inside a sentence is made only where the first person announces
it. Cues are words of `cues`; what they must stand next to is here.
"""

import re
from collections.abc import Sequence

from .around import NEAR, Group, Lead, Tail, groups_of, lead_of, sentences_of, tail_of
from .context import Found
from .cues import Compiled, cues_for

_MAX_GROUPS = 16
"""So many passages of calls are looked at in one reply; what comes after them is not made."""

_STATUS = (
    r"(?:(?:http|status|code|result|response|returned|got|gave|was|is|it|has|with|an?)\b[ :=]{0,2}|[:=|([{] ?"
    r"|-{1,2}(?!\w) ?|[—–] ?){0,5}(?:[45]\d\d\b|err(?:or|ored)?\b|time[ds]?[ -]?out|fail(?:ed|s|ure)|e(?:timedout|conn\w+)"
    r"|no (?:answer|response|reply|result|output|data)|un(?:available|answered|reachable)|denied|refused|rejected"
    r"|blocked|dropped|hung|skipped|\w*(?:exception|error)\b(?=:)|traceback|crashed|aborted|cancell?ed|offline|queued|scheduled|postponed"
    r"|[✗✘❌✓✔✅⏱⌛⏳⚠])"
)
_BEHIND = re.compile(rf"[ \t]*(?:#+|//|--(?!>)|/\*|<!--)?[ \t]*(?:→|->|=>|⇒|➜|➔|⟶|{_STATUS})")
"""What came of a call, right behind it: whatever an arrow points at, or a status."""

_COMMENT = re.compile(r"[ \t]*(?:#+|//|--|/\*|<!--)[ \t]*")
_NEXT_LINE = re.compile(
    rf"\s*(?:reply|answer|result|response|output)[:=] ?(?:none|null|nothing)\b|\s*(?:\w[\w ]{{0,20}}[:=][^\n]{{0,24}}\n){{0,3}}\s*(?:#+ ?)?(?:\w{{1,12}}[:=] ?)?(?:→|->|=>|⇒|➜|\w*error:|traceback|{_STATUS}(?=[^\n.]{{0,48}}$))",
    re.MULTILINE,
)
_STATUS_ABOVE = re.compile(
    rf"(?:^|\n)\W*(?:\w{{1,12}} )?(?:status|state|outcome)\W{{1,4}}{_STATUS}\W*\n[^\n]*\Z"
)
_LOGGED = re.compile(
    r"\s*(?:#(?!#)|//|<!--|/\*|~~|:\w{1,24}:)[\s\[]*\Z|\s*\[(?i:error|failed|timeout|skipped)\]|[\s>*•\-\d.)]{0,12}\[[ xX✓✔✗✘]\]|[\s>*•\-\d.)]{0,12}\[?(?:[A-Z][a-z]{2} [ \d]?\d )?(?:\d{4}-\d\d-\d\d|\d{1,2}:\d\d(?::\d\d)?[\]. ]"
    r"|(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL|FAIL(?:ED|URE)?|TIMEOUT|TIMED OUT|CANCELLED)\b|[45]\d\d\b"
    r"|[✗✘❌✓✔✅⏱⌛⏳⚠])"
)
"""The beginning of a line of a log: a time, a level, a status."""

_PROMPT = re.compile(r"\s*(?:>>>|\$|In \[\d+\]:)\s*")
_ITEM = re.compile(r"[ \t>]*(?:[-*•▪‣+–—|]|\(?(?:\d{1,3}|[a-z])[.):]|\w{1,12} #?\d{1,3}:)[^\n]{0,40}")
_SET_OFF = re.compile(r"[ \t]*+(?:[-–—]{1,3}(?!>)|#|//|\(|（|\[|【|<!--|/\*|--)")
_THOUGHT_LINE = re.compile(
    r"(?:\n|\A)(?P<line>[ \t*_]{0,4}(?i:thought)[ \t]?\d{0,3}[*_]{0,3}[:：][^\n]*)\n\s*\Z"
)
_FULL_STOP = re.compile(r"[ \t]*+[.。।!！؟…]+[\"'”’)*`]*+[ \t]*+")
_GOES_ON = re.compile(r"[`\]\s]*\n[ \t]*[a-z]{2,16} ")
"""A sentence that goes on below a call."""
_QUESTIONS = ("?", "？", "؟")
_SENTENCES = 3


def made_and_quoted(
    text: str, found: Sequence[Found], marked: Sequence[Found]
) -> tuple[list[Found], list[Found]]:
    """The bare calls that the reply makes, and those that it only speaks of. `marked` calls stand beside them."""
    groups = groups_of(text, found)
    spans = sorted([*((one.start, one.end) for one in groups), *((one.start, one.end) for one in marked)])
    spoken: list[bool] = []
    for number, group in enumerate(groups):
        following = next((start for start, _ in spans if start >= group.end), -1)
        between = text[group.end : max(following, group.end)][:NEAR].lower()
        taken_back = following >= 0 and cues_for(between).correction.search(between) is not None
        dropped = number >= _MAX_GROUPS or taken_back
        spoken.append(dropped or cue(text, group, following if following >= 0 else len(text)) is not None)
    below = range(1, len(groups))
    for number in (*below, *reversed(below)):  # what one item of a list is, all are
        one, two = groups[number - 1], groups[number]
        lines = text[one.end : two.start].split("\n")
        if two.start - one.end <= NEAR and len(lines) == 2 and _ITEM.fullmatch(lines[1]) is not None:
            spoken[number - 1] = spoken[number] = spoken[number - 1] or spoken[number]
    acts: list[Found] = []
    quoted: list[Found] = []
    for group, is_spoken in zip(groups, spoken, strict=True):
        (quoted if is_spoken else acts).extend(group.members)
    return acts, quoted


def beside_refusal(text: str, marked: Sequence[Found]) -> bool:
    """Whether the prose around marked calls has them as what it refuses, reports, puts off or questions."""
    groups = groups_of(text, marked)[:_MAX_GROUPS]
    limits = [*(group.start for group in groups[1:]), len(text)]
    return any(
        (text[: group.start].strip() or text[group.end :].strip()) and _around(text, group, limit)
        for group, limit in zip(groups, limits, strict=False)
    )


def _around(text: str, group: Group, limit: int) -> bool:
    """For marked calls: whether the sentences around them have the call as what they refuse or report."""
    thought = _THOUGHT_LINE.search(text, max(0, group.start - NEAR), group.start)
    starts = [group.start] if thought is None else [thought.start("line"), group.start]
    tail = tail_of(text, group.end, limit)
    for start in starts:
        lead = lead_of(text, start)
        cues = cues_for(lead.clause + tail.text)
        if _governed(lead, cues) is not None or (
            lead.inline and not lead.colon and cues.outcome.search(tail.line)
        ):
            return True
    return _said_after(tail, cues) is not None


def cue(text: str, group: Group, limit: int) -> str | None:
    """Why a group of bare calls is not made, in one word, or None."""
    lead = lead_of(text, group.start)
    tail = tail_of(text, group.end, limit)
    if not (lead.clause or lead.heading or tail.text or lead.line.strip()):
        return None
    if lead.line.lstrip().startswith("|") or "|" in tail.line:
        return "table"
    if lead.fence in ("diff", "patch", "@@"):
        return "diff"
    cues = cues_for(lead.clause + lead.heading + tail.text)
    if _has_outcome(text, group, lead, tail, cues):
        return "outcome"
    inline = lead.inline or (not (lead.colon or lead.ended) and _GOES_ON.match(text, group.end) is not None)
    announced = bool(inline or tail.line) and _last(cues.announced, lead.clause) > max(
        _last(cues.negated, lead.clause), _last(cues.asked, lead.clause)
    )
    if tail.line and (reason := _text_behind(tail.line, announced)) is not None:
        return reason
    if lead.clause and inline and not lead.colon and not announced:
        return "inline"
    if lead.line.lstrip().startswith(">") and not lead.colon:
        return "block quotation"
    names = [finding.call.name.lower() for one in group.members for finding in one.findings]
    call = text[group.start : group.end].lower()
    question = tail.line.startswith(_QUESTIONS)
    return _governed(lead, cues, names, call, question=question) or _said_after(tail, cues)


def _has_outcome(text: str, group: Group, lead: Lead, tail: Tail, cues: Compiled) -> bool:
    """Whether the lines of a group say what came of its calls, outside their brackets: a status in front of one
    or behind it, whatever an arrow points at, a line of a log, or what a console printed."""
    if (
        _LOGGED.match(lead.line)
        or (_PROMPT.fullmatch(lead.line) and tail.text.partition("\n")[2].strip("` \t\n"))
        or (lead.colon and _STATUS_ABOVE.search(text[max(0, group.start - 120) : group.start].lower()))
    ):
        return True
    rest = tail.text.partition("\n")[2] if tail.line else tail.text
    if len(lead.line) > 3 and rest.lstrip("\n").startswith(lead.line.lower()):  # lines of a log
        return True
    for member in group.members:
        line = text[member.end : member.end + NEAR].partition("\n")[0].lstrip("`*_;,)]}\"'").lower()
        if _BEHIND.match(line) is not None:
            return True
        comment = _COMMENT.match(line) or _SET_OFF.match(line)
        if comment is not None and cues.outcome.match(line, comment.end()) is not None:
            return True
    return _NEXT_LINE.match(rest) is not None


def _text_behind(line: str, announced: bool) -> str | None:
    """Whether the text behind a call on its line makes the call a part of a sentence."""
    if not any(sign.isalnum() for sign in line) or _SET_OFF.match(line) is not None:
        return None
    if not announced:
        return "text behind"
    cues = cues_for(line)
    rest = line
    for _ in range(2):
        soon = cues.soon.match(rest)
        rest = rest[soon.end() :].strip() if soon is not None else rest
    return None if not rest.strip(" .!。।…)*`\"'") or _FULL_STOP.match(rest) else "text behind"


def _last(pattern: re.Pattern[str], clause: str) -> int:
    """Where the last match ends; -1 without one."""
    found = -1
    for match in pattern.finditer(clause):
        found = match.end()
    return found


def _governed(
    lead: Lead, cues: Compiled, names: Sequence[str] = (), call: str = "", *, question: bool = False
) -> str | None:
    """The cue of the last clause in front, or of its heading, that has the call as its object. `names` are those
    of the called tools, `call` what is written; `question`: a question mark stands right behind it."""
    if lead.heading and cues.announced.search(lead.heading) is None:
        of_headings = (cues.example, cues.described, cues.deferred)
        if any(one.search(lead.heading) for one in of_headings) or _is_label(lead.heading + ":", call, cues):
            return "heading"
    if not lead.clause:
        return "asked" if question else None
    so, turn = _last(cues.so, lead.clause), _last(cues.turn, lead.clause)
    clause = lead.clause[max(so, turn, 0) :].strip()
    announced = _last(cues.announced, clause)
    if cues.asked.search(clause + "?" * (question or (announced < 0 and not lead.ended))):
        return "asked"
    # A sentence that ended before the call must point at it, or end in a verb that has no other object.
    if (
        not lead.ended
        or cues.this_call.search(clause)
        or len(clause) in (_last(cues.refused, clause), _last(cues.reported, clause))
    ):
        if cues.deferred.search(clause) or (turn > so and cues.deferred.match(lead.clause, max(so, 0))):
            return "deferred"
        if (caused := _last(cues.cause, clause)) > 0:
            clause = clause[caused:]
            announced = _last(cues.announced, clause)
        if announced >= 0 and (aside := cues.aside.search(clause, announced)) is not None:
            clause = clause[: aside.start()]
        if announced <= _last(cues.negated, clause) >= 0:
            return "refused"
        # "This request timed out." speaks of the call before.
        told = cues.reported.search(clause) or (lead.colon and cues.past.search(clause))
        if announced < 0 and so <= turn and told and not (lead.ended and cues.outcome.search(clause)):
            return "reported"
    if announced >= 0:
        return "example" * (not lead.ended and _last(cues.example, clause) >= announced) or None
    if _FULL_STOP.search(clause) is None and (
        cues.example.search(clause) or _is_label(clause + (":" * lead.colon or "." * lead.ended), call, cues)
    ):
        return "label"
    if cues.described.search(clause) or any(
        cues.does.match(clause.partition(name)[2].lstrip("`*\"'()")) for name in names if name in clause
    ):
        return "described"
    return None


def _is_label(clause: str, call: str, cues: Compiled) -> bool:
    """Whether a clause without a verb names a call of the past, or something that is no call and not in this one."""
    label = clause.replace("_", " ")
    if cues.label.search(label.rstrip(":.")) is not None:
        return True
    return cues.named.search(label) is not None and not any(
        len(word) > 3 and word in call for word in label.rstrip(":.").split()
    )


def _said_after(tail: Tail, cues: Compiled) -> str | None:
    """What the sentences behind a call say of it: its outcome, that it is not made, a question; or that the reply
    gives up."""
    for number, sentence in enumerate(sentences_of(tail.text, _SENTENCES) if tail.text else ()):
        if cues.asked.search(sentence):
            return "asked"
        conditional = cues.conditional.search(sentence)
        gives_up = cues.gives_up.search(sentence)
        if gives_up is not None and (conditional is None or conditional.start() > gives_up.start()):
            return "gives up"
        if conditional is not None and conditional.start() < 24:
            continue
        if (
            conditional is None
            and cues.outcome.search(sentence)
            and not (cues.earlier.search(sentence) or cues.announced.match(sentence))
        ):
            return "outcome"
        refused = cues.refused.search(sentence)
        if refused is not None and _last(cues.announced, sentence) <= refused.end():
            return "refused"
        if number == 0 and cues.example.search(sentence) and cues.this_call.search(sentence):
            return "example"
    return None
