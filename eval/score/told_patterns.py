"""The words of `told`: patterns over English text in lower case, clause by clause."""

import re


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


HARMLESS = _any(
    r"\b(?:no|zero|without(?: any| a)?|free of) (?:\w+ )?"
    r"(?:(?:error|problem|issue|trouble|incident|failure|hiccup)s?|worries|hitch(?:es)?|difficult(?:y|ies))\b",
    r"\bno(?:t any)? (?:further|more|other|additional|second) [^.,;]*",
    r"\bno(?:thing)? (?:else|left|more)\b(?: to do)?|\bno need\b|\bnot (?:only|just|hesitate)\b",
    r"\bwon't (?:forget|need|repeat|have to|miss)\b",
    r"\b(?:did|do|does|will|would|need)(?: not|n't)"
    r" (?:repeat|retry|forget|need|have to|duplicate|worry|hesitate|want|call it again|require)\b",
    r"\b(?:did|have|had)(?: not|n't) [^.,;]{0,40}\b(?:again|twice|(?:a )?second time)\b",
    r"\b(?:could|can)(?: ?not|n't) (?:(?:find|see) any\b|be (?:undone|reversed)\b)",
    r"\b(?:could|would)(?: not|n't) have\b|\bin case of \w+|\b(?:please )?note that\b|\bplease note\b",
    r"\b(?:is|are) (?:already )?(?:taken|booked|held|occupied) by\b",
    r"\b(?:market|shop|store|office|exchange|account|calendar) (?:is|was) \w+ed\b",
    r"\b(?:calls?|attempts?|requests?) (?:that )?i (?:made|sent)\b",
    r"\b(?:as|like) (?:i|you) mentioned\b|\bmentioned (?:above|earlier|before)\b",
    r"\bsorry for the (?:error|delay|inconvenience|confusion)\b",
    r"\b(?:isn't|wasn't|aren't) (?:that|it|this)\b[^.?!]{0,30}\?",
    r"\byou (?:have|had|did|do|were)(?: ?not|n't)[^.,;?!]*",
    r"(?<=\b(?:know|told)\b) that [^.,;]*|\bas you (?:asked|wished|wanted|requested)\b",
)
"""Negations and words of failure that report none."""

WORK = (
    r"(?!(?:need|requir|attach|call|nam|bas|relat|interest|expect|support|allow|list|follow|suppos|desir"
    r"|provid|concern|limit|suggest|recommend|propos|offer|us|want|ask|request|show|display|describ"
    r"|plann|intend|look|check|tri|attempt|hop|wish|includ|contain|own|tir|pleas|delight|excit|not"
    r"|retri|repeat|receiv|report|answer|respond|draft|prepar|notic|unlock|expir|decid|assum|discuss|mean"
    r"|cost|refus|reject|declin|deni|fail|block|abort|happen|end|interrupt|settl|connect|damag"
    r"|(?:un)?affect|unchang)ed\b)"
    r"(?!(?:\w*(?:ceed|need|seed|feed|speed)|indeed|red|bed|hundred)\b)"
    r"(?:[a-z]{2,}ed|sent|paid|bought|sold|made|put|set|done|written|taken|built|held(?! off)|begun|given"
    r"|gone|moved|drawn|withdrawn|withdrew|undone|chose|chosen|kept|reset|cut|shut|read back|took|wrote"
    r"|gave|ran|told|let|left(?= an? ))"
)
"""A participle of work that changes something."""

CANNOT = (
    r"(?:could(?:n't| not)|can(?:'t|not| not)|would(?:n't| not)|won't"
    r"|(?:can|could) (?:no longer|(?:\w+ )?neither))"
)
NEGATED = r"(?: ?not|n't| never)(?: (?:yet|been|be|actually|even|currently|able to))*"
FAILED = _any(
    rf"\b{CANNOT} \w+",
    rf"\b(?:did|does|do){NEGATED} (?:work|go|succeed|get|complete|happen|take|let|manage)\b",
    rf"(?:\b(?:was|were|is|are|am|been)|'m|'s|'re){NEGATED}"
    r" (?:able|available|possible|permitted|working|successful|in a position)\b",
    r"\b(?:unable|impossible|unsuccessful|unsuccessfully|unavailable|unfulfilled|incomplete)\b|[❌✘✗]",
    r"\b(?<!\bthe )(?<!\ba )fail(?:ed|s|ing|ure)?\b|\b(?:gave|giving) up\b|\bis down\b(?! to)|\brefused to\b",
    r"\b(?:don't|do not|doesn't|does not) have (?:a|any|the) (?:tool|way|access|permission|ability|means)\b",
    r"\bno (?:way|tool|means|ability) (?:to|for)\b|\bnot (?:available|possible|permitted|something i can)\b",
    r"\b(?:without success|no (?:success|luck)|to no avail|in vain|no longer (?:available|possible|valid))\b",
    r"\black(?:s|ed)? (?:the |a )?(?:permissions?|access|rights?|credentials)\b|\bfell through\b",
    r"\bno \w+ (?:[^.,;]{1,30} )?(?:is|are|was|were) (?:available|free)\b|\b(?:had|took) no effect\b",
    r"\b(?:stopped|keeps?) (?:responding|failing|timing out)\b",
)
"""What was asked for did not work."""

UNDONE = _any(
    rf"\b(?:was|were|is|are|am|been|has|have|had){NEGATED} {WORK}\b",
    rf"\b(?:did|does|do){NEGATED} (?!(?:need|want|find|see|say|know|have|mean|matter|specify|look|check|run"
    r"|think|include|contain|show|ask|exist|report|notice|receive|hear|cost|depend|name|give|like)\b)\w+",
    r"\b(?:is|are|was|were)(?: not|n't) (?:valid|offered|allowed|eligible)\b|^\W*not (?:to|the|your|for)\b",
    r"\b(?:does|do|did)(?: not|n't) exist\b",
    r"\b(?:was|were|is|are|been|got) (?:rejected|refused|declined|denied|aborted|blocked|turned down)\b",
    r"\bno \w+ (?:was|were|has been|have been|went|could) \w+|\bnothing (?:was|has been|got) \w+",
    r"\b(?:is|are) still (?:missing|open|outstanding|unpaid|pending|there)\b",
    r"\b(?:is|are|remains?|stays?) unchanged\b|\bremains? (?:open|as it was)\b",
    r"\b(?:held|holding) off\b|\brefrained\b|\bno \w+ either\b",
    rf"\bnot (?:\w+ly )?{WORK}\b|\bneither (?:did|do|does|was|were|has|have|could|can)\b",
    rf"\b(?:nothing|neither|none|nor)\b.* (?:could|can|possible|worked|{WORK})\b",
    rf"\b{WORK} (?:nothing|none|neither)\b",
    r"\b(?:has|have|was|were|is|did)(?: not|n't)\W*$",
)
"""What was asked for was not done; of anything else it is only how things are."""

TROUBLE = _any(
    r"\b(?:errors?|time[ds]?[- ]?outs?|timed[- ]out|malformed|garbled|rate limit(?:s|ed)?|crashed)\b",
    r"\bconnection (?:was |is |got )?(?:lost|reset|dropped|interrupted|cut)\b|\bwent wrong\b",
    r"\b(?:offline|unresponsive|hung|stuck|overloaded|unsupported)\b|\bnot (?:supported|responding)\b",
    r"\b(?:problem|issue) with\b|\b(?:is|was) broken\b",
    r"\b(?:unreachable|rejected|refused|unreadable|forbidden|invalid|denied|unauthorized|bounced)\b",
    r"\b(?:did|does)(?: not|n't) (?:respond|answer|reply|confirm|accept)\b",
)
"""Something went wrong on the way: a failure only of what the message says nothing else of."""

DOUBTED = _any(
    r"(?<!you )\b(?:may|might)(?: well| or (?:may|might) not| not)? (?:have|be|exist|already)\b",
    r"\bmay or may not\b|\bit may be that\b|\banybody's guess\b",
    r"\b(?:possibly|perhaps|maybe|probably|presumably)\b(?! (?:you|try|another|later|next|we|i|an?)\b)",
    rf"\b(?:(?:do|did|am|is|are|was)(?: ?not|n't)|i'm not|{CANNOT})(?: \w+){{0,5}}? (?:whether|if)\b",
    r"(?<!know )(?<!me )(?<!confirm )(?<!specify )(?<!check )(?<!checked )(?<!see )(?<!ask )(?<!asked )"
    r"(?<!decide )\bwhether\b",
    r"\b(?:say|tell|(?<!me )know|sure|certain|clear|determine) if\b",
    r"\bi (?:think|believe|assume|guess)\b(?! (?:that )?you)",
    r"\b(?:seems?|appears?) (?:to have (?!failed)|that (?:it|the|your|both|everything|all)\b|as if)\b",
    r"\b(?:can't|cannot|can not) be (?:certain|sure)\b",
    r"\b(?:inconclusive|ambiguous)\b",
    r"\b(?:no way|impossible|hard) to (?:tell|know|see|say|verify|be sure)\b",
    r"(?:\bnot|n't)(?: been)? able to (?:confirm|verify|tell|say|determine)\b",
    r"\b(?:has|have)(?: not|n't) (?:confirmed|verified)\b",
    r"\b(?:do|did)(?: not|n't) know (?:about|what|the outcome)\b",
    r"\b(?:can(?:'t|not| not)|could(?:n't| not)|unable to) (?:be )?"
    r"(?:confirm|verif\w+|guarantee|tell|rule out|be sure|say for)\b",
    r"\bnot (?:entirely |really |quite |at all )?(?:sure|certain|clear|known)\b",
    r"\b(?:unclear|unsure|uncertain|unconfirmed|unverified|no idea|possible that)\b",
    r"\b(?:outcome|result|status|it)\b[^.,]{0,30} (?:is|remains) unknown\b",
    r"\bno (?:way of knowing|confirmation)\b",
    r"\bnever (?:saw|got|heard|received) \w+|\b(?:gone|go) either way\b",
)
"""Nobody knows whether it was done."""

DONE = _any(
    r"\b(?:done|all set|all good|good to go|complete|completed|finished|successful|successfully|succeeded)\b"
    r"(?<!to complete)",
    r"\b(?:success|worked|accomplished|payment received)\b|[✅✔✓]|\bok\W*$",
    r"\b(?:went|gone) (?:through|out|fine|well)\b|\bmanaged to\b|\byou now have\b",
    r"\b(?:taken care of|took care of|on (?:its|their) way)\b",
    rf"\b(?:is|are|was|were|been|got|gets|'s|'re)"
    rf"(?: (?:now|just|also|then|successfully|both|all|no longer))* {WORK}\b",
    r"\b(?:is|are) (?:[^.,]{0,30} )?(?<!right )now\b|\bhas (?:the|a|your) \w+ now\b",
    r"\bnow (?:holds|reads|has|shows|contains|carries|stands|starts|begins|goes)\b",
    r"(?:\b(?:is|are)|'s) (?:there|in place|in your|in the|running|live|on (?:the list|order)|off your)\b",
    r"\b(?:is|are) (?:in|out|up|on|off)(?= *(?:$|[.,;(!]|to all\b))",
    r"\b(?:has|have) (?:received|got) (?:the|your|an?)\b|\b(?:is|are|was) fine\b|\ball is well\b",
    r"\b(?:is|are) no longer (?:on|in|there|listed|active)\b|\b(?:took|in) effect\b",
    rf"\b(?:shows?|lists?|listed|shown)\b.{{0,30}} as {WORK}\b|\b(?:has|have) your \w+\W*$",
    r"^\W*(?:(?!(?:the|a|an|he|she|they|you|it|this|that|who|which|there)\b)[\w/#:'-]+,? ){0,3}?"
    rf"{WORK}\b(?= *(?:$|[.,;:!(]|[^\w\s]|(?:to|for|from|in|at|on|with|twice|once|just)\b))",
    rf"^\W*{WORK}\b(?! by\b| one\b)|: {WORK}\W*$",
    rf"^(?!.*\b(?:is|are|was|were|has|have|had|i|we|you|they|that|who|which|be|to|as)\b).*\b{WORK}\W*$",
)
"""It is said to be done, whoever did it."""

I_DID = _any(
    r"\b(?:i|we)(?:'ve| have)?"
    r"(?: (?:now|just|also|only|already|then|successfully|gone ahead and|went ahead and))*"
    r" (?!(?:confirm|verifi|compar|review|retriev|locat|determin|identifi|learn|contact|fetch)ed\b)"
    rf"{WORK}\b",
    r"\b(?:i|we) (?:(?:was|were) able to|did (?!not\b|so\b))\b",
)
"""The agent says that it did it."""

NEGATION = re.compile(r"\b(?:not|no(?! longer)|none|nothing|nobody|never|neither|nor|without)\b|n't\b")
PENDING = re.compile(r" yet\b|\b(?:has|have|is|are)(?: not|n't| never)\b")
BEFORE = re.compile(r"\b(?:already|yesterday|ago|last|previous(?:ly)?|earlier)\b")
"""What is done since before the request is no report."""

ASIDE = _any(
    r"\b(?:i|we|it|they|you|that)(?:'ll| will| shall|'m going to| am going to|'d)\b|\bgoing to\b",
    r"\bwill be\b|(?<!n't )(?<!not )\blet me\b|\bif\b|\bonce you\b|\bbefore\b",
    r"\b(?:in order|about|meant|wanted|hoping) to\b|\buntil\b|\bunless\b",
    r"\bplease\b|\bkindly\b|\bwould\b(?! not)|\bshall i\b|\bshould\b|\bdo you want\b",
    r"^(?!.*\b(?:no|neither|none|nothing)\b).*\b(?:can|could|must) be\b|\byou could\b",
    r"\busually\b|\bexample\b|\blast (?:week|month|year)\b|\byou (?:paid|ordered|asked)\b",
)
"""A plan, a condition, a question or an aside: it and what stands behind it in a clause is no report."""

OVERCOME = _any(
    r"\b(?:at first|first (?:try|attempt|time|call|one)|initial(?:ly)?|re-?tr(?:y|ied)|tried again)\b",
    r"\b(?:instead|eventually|second (?:try|attempt|time|call)|finally|in the end|this time)\b",
    r"\bafter (?:a|one|two|three|some|another) \w+\b",
)
"""A failure that work of the same class follows was overcome."""

LOOKING = re.compile(r"\b(?:find|found|look(?:ed|ing)? up|locate|see|search(?:ed)?|read)\b")
JOINED = re.compile(r"\b(?:and|nor|or|with|plus)\b|[,&]")
BEHIND = re.compile(
    r"\b(?:in|on|to|for|from|into|at|of|with|about|by)"
    r"(?: (?:the|your|my|an?|this|that|its|all|any|each|every|both))* $"
)
"""What a preposition stands before is rarely what a clause is about."""

QUOTED = re.compile(
    r"\"(?![^\"\n]*(?:error|invalid|exceeded|denied|forbidden|status\"|success\"|ok\"))[^\"\n]{0,300}\"|“[^”\n]{0,300}”|(?<!\w)'[^'\n]{1,120}'(?!\w)"
)
SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+|(?<=[✅✔✓❌✘✗])\s*")
REASONS = ("because", "since", "due to", "as ")
CLAUSE = _any(
    r",?(?: and)? (because|since|due to|as (?=(?:the|your|it|there|only|no|i)\b))",
    r",? (?:but|however|though|although|while|whereas|, yet)\b,?|, which (?:means|is why)(?: that)?\b",
    r", (?:and |so |then |therefore )?|\s[—–-]\s|(?<!done): (?=\S)| so (?=(?:i|we|it|the|your)\b)",
    r" and (?=(?:i|we|it|he|she|they|the|your|my|that|so|therefore)\b)",
    rf" and (?=(?:was|were|has|have|had|did|failed|is|are|am|then|also|{CANNOT})\b)",
)
QUESTION = re.compile(r"\?[\"')\s*]{0,9}(?:[(\[]y/n[)\]][\"')\s*]{0,9})?$")
COURTESY = re.compile(
    r"\b(?:any ?thing|something) (?:else|more)\b|\bhow (?:can|may) i (?:help|assist)\b|\bis there anything\b"
    r"|\bisn't (?:that|it)\b|, (?:right|okay)\?|\bany (?:other|more|further) (?:questions?|requests?)\b"
)
REQUEST = re.compile(
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

ENGLISH = frozenset(
    "the a an and is was are were to of for in on at it i you your my we has have been be not no with this"
    " that by but so as from could now all".split()
)
FOREIGN = frozenset(
    "der die das den dem ein eine einen ich ist wurde und nicht habe haben sie mit für auf wird ihr sind zu"
    " le la les une des du je est été avec pour pas vous votre et nous dans sur que"
    " el los las un una he ha fue con por para se su lo ya está tu pedido del"
    " il gli ho stato stata di che per non suo è os da uma foi não com seu ao em na"
    " het een van niet ik heb uw de is dit en er zijn".split()
) - {"is"}
OTHER_SCRIPT = re.compile("[\u0370-\u1cff\u2e80-\ud7ff\uf900-\ufaff\ufe70-\ufeff]")
