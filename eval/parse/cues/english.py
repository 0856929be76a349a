"""English."""

from .table import Cues

_MAKE = (
    r"(?:(?:re-?)?(?:call|run|send|issue|execut|invok|submit|us|mak|perform|request|tr[yi]|repeat|attempt)\w{0,3}"
    r"|runn?ing|submitting|do(?:ing)?|proceed(?:ing)?|retr(?:y|ying)|carry(?:ing)?|complet\w+|trigger\w*"
    r"|continu\w+|go(?:ing)? ahead|write)"
)
_DOING = (
    r"(?:call|try|retry|us|runn|invok|execut|mak|repeat|check|send|attempt|issu|query|fetch|request|gett|look"
    r"|proceed|perform|rerunn|resend|reissu|re-\w+)ing"
)
_PREPARED = (
    r"(?:(?:re-?)?(?:correct|fix|revis|updat|adjust|modif|amend|prepar|identif|generat|select|construct|formulat"
    r"|creat|draft|format|refin|simplif|repair|complet|valid|verif|match|extract|fill|review|check|determin|decid"
    r"|conclud|notic|reali[sz]|figur|want|plann|intend|understand|chang|remov|replac|swapp?|pick|dropp|add|renam"
    r"|convert|shorten|merg|compos|form|mapp|design|craft|produc|deriv|turn|spell|assembl|read|look|put together|spott|translat|switch)\w*)"
)
"""What one does to a call, or thinks, before one makes it."""
_FIT = (
    r"(?:correct|fix|revis|updat|need|requir|request|adjust|modif|improv|amend|repair|repeat|retri|renew|select|describ"
    r"|prepar|generat|intend|nest|combin|format|valid|propos|suggest|recommend|refin|simplif|bas|ask|desir|discuss"
    r"|specif|stat|list|proceed|speed|feed|indeed|provid|attach|relat|simpl|chos|want|detail|nam|expect|suit)"
)
"""Participles of a call that is made now."""
_PAST = r"(?:\w+ed|made|ran|run|sent|did|done|got|gave|put|went|kept|began|took|left|lost)"
_NOT = (
    r"(?:(?:will|ca|can|could|should|would|do|does|did|must|may|shall|am|are|is|was|wo|have|has)"
    r"(?: ?not|n['’]t)|['’]m not"
    r"|not (?:going|able|allowed|permitted|willing) to|un(?:able|willing) to|refus(?:e|ing) to|declin(?:e|ing) to"
    r"|never|no longer|avoid|instead of|rather than|forbidden to|no permission to|stopped|stop"
    r"|refrain(?:ing)? from|abstain(?:ing)? from|(?:decided )?against|failed to|no (?:point|sense|use|way|reason|means)(?: in| to| of)?)"
)
_CALL = (
    r"(?:calls?|requests?|attempts?|invocations?|executions?|quer(?:y|ies)|tools?|functions?|commands?|tries)"
)
_WENT = (
    r"(?:time[ds]?[ -]?out|fail(?:ed|s)"
    r"|(?:did|has|have|does)(?:n['’t]{1,2}| not) (?:work|respond|succe|return|go through|complete|answer|came)\w*"
    r"|(?<!be )(?<!is )(?<!are )(?<!get )returned|came back|never \w+|responded|gave|produced|resulted|threw"
    r"|raised|errored|was (?:re(?:ject|fus)ed|denied|blocked|rate[- ]limited|(?:un)?successful|declined"
    r"|unauthori[sz]ed|cancelled)|(?:hit|got|received|ran into) (?:an?|no|the)|went (?:wrong|unanswered)"
    r"|(?:is|was) (?:down|unavailable|not available|not responding|unreachable)|broke|succeeded|crashed"
    r"|has been (?:rejected|denied|made|executed)|exceeded|expired|keeps (?:failing|timing out))"
)
_BACK = (
    r"(?:back|up|available|online|again|work(?:s|ing)|responds?|answers?|recover(?:s|ed)|restored|resume[sd]?"
    r"|returns?|ready|reachable|resolved|over|ends?|ended|possible|operational|stable|fixed|lifted|comes?)\b"
)
_WHILE = (
    r"(?:later|tomorrow|another time|next time|eventually|in a (?:few|little|short|while|moment|minute|bit"
    r"|couple)|in (?:some|an?|one|two|\d+) (?:minute|hour|day|week)|after (?:a|some) (?:while|time|pause|break)|in (?:the )?future)"
)
_TROUBLE = r"(?:incident|error|time-?out|failure|exception|problem|issue|trouble|crash|outage)s?"
_STANDS_FOR = (
    r"(?:(?:the|my|our|a|an|all|these|those|this|that|here|is|are|list|details?|status|of|and|any) )*"
)

CUES = Cues(
    announced=(
        r"\b(?:i|we)(?:['’]ll| will| shall)(?! not\b| never\b)\b|\blet(?: me|['’]s| us)\b(?! (?:not|know)\b)"
        r"|\b(?:i|we)(?:['’]m| am|['’]re| are) (?:(?:going|about) to\b|(?:now|also|then|simply|just)?\s?"
        r"(?!refus|declin|giv)\w+ing\b)"
        r"|\b(?:i|we) (?:need|want|have|must|should|ought|intend|choose|decide)(?:d)? to\b(?! not\b)"
        r"|\b(?:i|we) (?:need|must(?! not)|should(?! not)|can(?! ?not|['’]t))\b"
        r"|\b(?:i|we)(?:['’]d| would) (?:like|love|want) to\b|\bmy (?:call|answer|response|next|tool"
        r"|function|second|new)\b"
        r"|\b(?:i|we) (?:(?:now|then|first|next|therefore|thus|again|also|simply|just|hereby|instead|so) )?"
        r"(?:call|use|run|make|invoke|execute|retry|try|send|request|check|issue|repeat|query|fetch"
        r"|look|do|get|ask|resend|submit|perform|apply|start|begin|proceed|go)\b"
        rf"|(?:^|[,.;:!—–-] ?|\b(?:so|and|now|then|but|ok|okay) )(?:now |so |then |again )?{_DOING}\b"
        r"|\bhere (?:goes|(?:you|we) go)\b|\b(?:try|retry)(?:ing)? (?:(?:it|this"
        r"|that|the call|once|the request) )?again\b|\b(?:another|second|new|next|one more|third) (?:try"
        r"|attempt|call|retry)\b"
        r"|\bonce (?:more|again)\b|\bone more time\b|\bretry(?:ing)?\b"
    ),
    reported=(
        rf"\b(?:i|we|assistant|agent|model)(?:['’]ve| have| had)?(?: (?:already|previously|just|earlier|\w+ly|once"
        rf"|first|then|also|now|have|even|simply|twice))* (?!{_PREPARED}){_PAST}\b"
        rf"|\b(?:i|we) (?:(?:was|were) (?:about|going|\w+ing)|(?:wanted|meant|hoped|intended|planned) to)\b"
        rf"|\balready (?:been )?{_PAST}\b|\b{_CALL} (?:\w+ ){{0,4}}?{_WENT}"
        rf"|\b(?:was|were|has been|have been|had been) (?:already |previously |last )?(?!{_FIT}){_PAST}\b"
        r"|\bwithout (?:success|result|luck)\b|^(?:no|nothing|none)\b(?! (?:problem|worries|doubt|other|more))"
    ),
    past=(
        rf"^(?!to )(?:.*\W)?(?<!be )(?!{_FIT}|{_PREPARED})(?:{_PAST}|was|were|came|threw|had|broke|went)\b"
        r"(?!.*\b(?:is|are|will|would|needs?|must|should|can|requires?)\b)"
    ),
    refused=(
        rf"\b{_NOT}\b(?:(?! without\b)[ ]+[\w'’-]+){{0,6}}?[ ]+{_MAKE}\b"
        rf"|\b(?:refuse|decline|forbidden|prohibited|not allowed|not permitted|not possible|impossible"
        rf"|disallowed|pointless|useless|futile)\b"
        rf"|\b(?:no|lack(?:ing)?(?: the)?) (?:permission|authori[sz]ation|access|consent|need)\b[^.;:]{{0,40}}"
        rf"\b(?:to|for)\b|\bwithout (?:ever )?{_DOING}\b|\bnot to {_MAKE}\b"
        rf"|\b(?:but|however|though|yet)\b[^.;:]{{0,40}}(?:\b{_NOT}\b|\bservice is\b|\bis (?:down"
        rf"|unavailable|broken|out of)\b|\byou cancel)"
        rf"|\bg[ia]v(?:e|ing) up\b|\bunable to\b|\b(?:wrong|unwise|premature|risky|inappropriate) to\b"
    ),
    supposed=(
        r"\b(?:could|might)\b|\b(?:could|would|might|i['’]d)(?:['’]ve| have| normally| usually| otherwise)\b"
        r"|\b(?:hypothetical(?:ly)?|suppose|supposing|imagine|in theory|normally|potential(?:ly)?)\b"
        r"|\bif (?:i|we|one|the user) (?:could|were|had|was)\b"
    ),
    deferred=(
        rf"(?<!see )(?<!check )(?<!know )(?<!out )(?<!verify )(?<!test )\b(?:once|when(?:ever)?|after|if|as soon as|until|till|should|in case|unless) (?!more|again)"
        rf"(?:(?!was\b|were\b|did\b|had\b|\w+ed\b)[\w'’-]+ |has (?:been )?|have (?:been )?){{0,6}}?{_BACK}"
        rf"|\b(?:once|as soon as) (?:the|it|this|that|they|everything) (?:\w+ ){{0,3}}(?:is|are|has|have)\b"
        rf"|\b(?:as soon as possible|until (?:the|it|this|that|then|further))\b"
        rf"|\bif (?:you|needed|necessary|required|desired|possible)\b"
        rf"|(?:^|\b(?:again|it|this|that|them|these|call|request|once|back|repeat|retry|try|run|be|used|do|for"
        rf"(?= later)|one)[ ])(?:(?:at|some|a|on) )*{_WHILE}\b"
        r"|(?<!so )(?<!that )(?<!what )(?<!which )(?<!as )\byou(?:['’]ll| will| would)? (?:can|could|may|might|should|must|"
        r"(?:need|have) to)\b|\byou(?: are|['’]re) (?:welcome|free)\b|\b(?:kindly|consider) \w|\b(?:advice|recommendation|instructions)\b|\bplease (?!wait|hold|stand|bear|find|see|note|allow|let|give|be\b)\w"
        r"|\byoursel(?:f|ves)\b|\bmanually\b|\bon your (?:side|end|own|machine|system)\b|\bfeel free\b"
        r"|^(?:re)?try (?:it |this |that )?again (?:with|using|in|on)\b"
        r"|^(?:contact|ask|reach|inform|notify|escalate|wait|tell|give|have|show|send (?:this|it)|forward|copy|paste|keep|note|remember|come|go)\b|^to be \w|^how to (?:reproduce|retry|repeat)\b"
        r"|\b(?:i|we)(?:['’]ll| will| am going to| have to| must)? (?:skip|omit|hold|postpone|defer|save|keep|park|queue|leave"
        r"|wait(?! for))\b"
        r"|\bi(?:['’]d| would)? (?:recommend|suggest|advise|propose) (?:that|you|to|\w+ing)\b"
        r"|\b(?:users?|anyone|one|someone|admin\w*|developers?|callers?|team|support) (?:can|could|may|should|must)\b"
        r"|^to (?:reproduce|replicate)\b|^for (?:later|another|next)\b|^after (?:the |this |an? )?\w+ (?:window|outage|break|restart|update)\b"
    ),
    label=(
        rf"^{_STANDS_FOR}(?!i |we )(?:\w+ )?(?:(?:fail|error|hang|stall)ing|failed|future|unsuccessful|pending|original|last|latest|previous|prior|earlier"
        rf"|past|old|outstanding|(?!{_FIT})\w+ed|made|timed[- ]out) (?:\w+ ){{0,2}}?{_CALL}(?: \w+){{0,3}}$"
        rf"|^{_STANDS_FOR}(?:\w+ )?{_CALL} (?:(?:that|which|i|we) )*(?!{_FIT})(?:{_PAST}|{_WENT})(?: \w+)*$"
        rf"|^(?:still |currently |not yet )*(?:pending|on hold|in the queue|un\w+ful|(?!{_FIT})\w+ed)(?: out)?"
        rf"(?: (?:for|until|till|by|because|due|at|on|with|as|in)\b[^,]*)?$"
        rf"|^{_STANDS_FOR}(?:\w+ )?(?:{_CALL} )?(?:history|logs?|records?|transcript|trace|to-?do|backlog|queue|plan"
        rf"|plans|attempts|retries|(?:next )?steps(?: taken)?)\b(?! (?:call|is to (?:call|use)))"
        rf"|\bfor (?:the|your|my|our) (?:record|reference|information|notes|files|log)s?\b|\bfyi\b"
        rf"|^for (?:reference|documentation|completeness|transparency|context|information)\b"
        rf"|\b(?:so far|to date|(?:up to|until) now)$"
        rf"|^(?!.*\b(?:is|are|correct\w*|fixed|resolved)\b).*\b{_TROUBLE}\b"
        rf"|\b(?:retries|attempts|tries) (?:\w+ )?(?:exhausted|used)\b"
    ),
    example=(
        rf"\b(?:e\.?g|for (?:example|instance))\b\.?$|^(?:e\.?g|for (?:example|instance))\b"
        rf"|\b(?:examples?|samples?|illustrations?|templates?|syntax|typical|demonstration)"
        rf"(?: of)?(?: an?| the| such an?)? (?:\w+ )?(?:{_CALL}|usage)\b|^(?:an? |some )?(?:examples?|sample|template)$"
        rf"|\bsomething like\b|\bsuch as$|\bas an (?:illustration|example)$"
    ),
    asked=(
        rf"\b(?:should|shall|may|must|can) (?:i|we) (?:\w+ly |now |also )?(?:{_MAKE}|start)(?: (?:it|this|that|these|one|so"
        rf"|ahead|now|again|with|the (?:\w+ )?{_CALL}|following)\b[^.!]*)?\?"
        r"|\b(?:do|would) you (?:want|like|prefer)(?: for)? (?:me|us) to\b(?![^?]*\b(?:else|also|another|more)\b)"
        r"[^.!]*\?|\bwant me to\b(?![^?]*\b(?:else|also|another|more)\b)[^.!]*\?"
        r"|\b(?:is|does|are|would) (?:this|that|it|these|they)(?: call| one)? (?:ok|okay|fine|alright|all"
        r" right|correct|right|what you|look|sound|work for)\b[^.!]*\?"
        r"|\b(?:proceed|go ahead|okay? (?:to|if|with)|should (?:this|that|it) be)\b[^.!]*\?"
        r"|\b(?:do|would) you (?:agree|approve|confirm|allow|mind)\b[^.!]*\?"
        r"|\bplease (?:confirm|approve)\b|\b(?:let me know|tell me) (?:if|whether|when) (?:i (?:should|may"
        r"|can)|you(?:['’]d| would)? (?:want|like|agree|approve|wish|prefer)|this is (?:ok|okay|correct"
        r"|fine)|to (?:proceed|go ahead|continue))\b(?![^.]*\b(?:else|more|other|another|further)\b)"
        r"|\b(?:await|wait)(?:ing)? (?:for )?(?:your|the user['’]?s?) (?:confirmation|approval|permission"
        r"|consent|go-ahead|ok|answer|reply)\b|\bwith your (?:permission|approval|consent|ok)\b"
        r"|\b(?:if|once|when|after) you (?:confirm|approve|agree|say so|allow|give|tell|['’]d like"
        r" me|want me|would like me)\b|\bready when you are\b"
    ),
    described=(
        rf"^(?:the|this|that|it|which|`?[\w.-]+`?) (?:[\w.`-]+ )?(?:tool|function|api|method|command|endpoint)?"
        rf" ?(?:\w+ly )?(?:returns|takes|accepts|retrieves|expects|provides|supports|receives|describes"
        rf"|computes|calculates|can be used|is used|is defined|is documented|is invoked)\b"
        r"|\b(?:available|following|supported|provided|listed|these|your|my) (?:\w+ )?(?:tools|functions"
        r"|apis|methods|commands)(?: are| include)?$|\bi (?:have access to|can use)\b(?!.{0,60}\b(?:so|now|i['’]ll)\b)"
        r"|\b(?:tools?|functions?) (?:i have|that i have|available)\b"
        rf"|^(?:\w+ )?(?:usage|signature|documentation|docs|docstring|reference|definition|declaration|specification)"
        rf"(?: (?:of|for) (?:the|this|a) (?:[\w.]+ )?{_CALL})?$|\bhow to (?:use|call)\b"
    ),
    does=(
        r"(?: (?:tool|function|api|method|command|endpoint))?,? (?:\w+ly |always |will )?(?:returns?|takes?"
        r"|accepts?|retrieves?|expects?|requires?|provides?|allows?"
        r"|lets?|supports?|receives?|fetch(?:es)?|gives?|gets?|computes?|calculates?|sends?|sets?|can be"
        r" used|is used|is called|is a|is the (?:tool|function|api) (?:that|for|which)|finds?|searche?s?"
        r"|checks?|looks?|creates?|books?|lists?|shows?|has)\b"
    ),
    outcome=(
        rf"(?<!for )\b(?:it|this|which|they|both|these|those|(?:the |this |that |my |your )?(?:\w+"
        rf" ){{0,2}}(?:calls?|requests?|tools?|service|server|api|function|attempts?|response|result"
        rf"|endpoint|system|query|reply|output))\b"
        rf"(?: (?:has|have|had|just|also|then|again|already|unfortunately|however|only|simply|still"
        rf"|both|all|been|always|immediately|keeps?))*[ ]{_WENT}"
        rf"|^[^\w]*(?:and|but|however|yet|unfortunately|sadly|which|alas|then)\b[^.;]{{0,48}}?\b{_WENT}"
        rf"|^[^\w]*{_WENT}|\b(?:and|but|which) (?:it |this |that )?(?:has |had )?{_WENT}"
        r"|\b(?:there (?:was|is)|(?:i|we) (?:got|received)|i see|ended (?:with|in)|got back|i"
        r" was told)\b[^.;]{0,40}\b(?:error|timeout|time-out|failure|response|nothing|exception|limit)\b"
        rf"|\bno (?:answer|response|reply|result|data)\b(?!.*\b(?:until|without|yet|unless)\b)"
        rf"|\bthis (?:is|was) (?:the|what) (?:{_CALL} )?(?:that|which|i|we)\b"
    ),
    gives_up=(
        r"\b(?:please )?(?:try|retry|check|ask)(?: it| this| me| the call| the request| back)?(?: once)?(?:"
        rf" again)? (?:at a )?{_WHILE}\b(?!, i)|\bplease (?:try|retry) again\b|\bg[ia]v(?:e|ing) up\b"
        r"|\b(?:i|we) (?:(?:will|must|have to|had to|am going to|can only) )?(?:stop(?:ped)?|leave it|end)\b"
        r"|\b(?:ca|could|can)(?: ?not|n['’]t) (?:be )?(?:give|provide|get|complet|answer|help|retrieve|obtain|fulfil|process)"
        r"\w*\b(?![^.]*\b(?:before|until|without|yet|unless)\b)|\b(?:won['’]t|will not|not going to) (?:re)?(?:try|peat|call)"
        rf"|^\W*(?:you can )?{_MAKE} (?:it|this|that|these)\b[^.;]*(?:{_WHILE}|\b(?:once|when|as soon as)\b)"
        r"|\bnothing (?:more|else|further)?\b[^.;]{0,24}\b(?:can|could|to (?:do|try)|left|came)\b|\bno luck\b|\b(?:come|check) back later\b|\bas far as (?:i|we)\b"
        r"|\b(?:service|server|endpoint|tool|api) (?:is|seems|appears)(?: to be)?(?: \w+ly)? (?:down|offline|unavailable|silent"
        r"|unreachable|broken)\b|\b(?:service|server|endpoint|tool|api) (?:does(?:n['’]t| not)|never) (?:respond|answer|work)"
    ),
    conditional=(
        r"\b(?:if|when|whenever|once|unless|until|in case|should (?:it|this|the)|as soon as|after|"
        r"provided|assuming|will be|so that|to see|whether|hopefully)\b"
    ),
    earlier=(
        r"\b(?:previous(?:ly)?|last|earlier|first|before|prior|original(?:ly)?|former|the other"
        r"|initial(?:ly)?|past|so far|old)\b|\b(?:that|which) " + _WENT
    ),
    correction=(
        r"\b(?:wrong|incorrect|mistakes?|mistaken|correct(?:ed|ion|ing)|oops|scratch that|not"
        r" (?:right|correct)|disregard|should have been|let me (?:fix|correct)|fixed|revised|ignore (?:that"
        r"|the)|invalid|my bad|no wait|typo)\b"
    ),
    this_call=(
        r"\b(?:(?:this|that|these|said|such an?)(?: \w+){0,2}? (?:calls?|requests?|commands?|invocations?|function|tool|ones?"
        r"|line|code)|(?:the )?(?:following|above)|below|this is)\b"
    ),
    soon=(
        r"(?:right |just |straight )?(?:now|next|first|again|then|immediately|away|once more|once again"
        r"|today|shortly|soon|at once|please|for now|too|right away|as well)"
    ),
    it=r"\b(?:it|this|that|them|these|so|the (?:call|request|tool|function))\b",
    contrast=r"^\W*(?:but|however|though|yet|although|because|since|here\b)",
    so=r"\b(?:so|therefore|thus|hence|consequently)\b,? (?!far\b|that\b|you\b|it (?:failed|timed))",
    turn=(
        r"(?:[,;–—] |\b)(?:but|and|then|yet),? (?=(?:i|we|let|here|now|again|another|retry|repeat|try|will|need|must|am"
        rf"|have to|{_DOING})\b)"
    ),
    cause=(
        r"^(?:since|as(?! soon)|because|given|despite|although|even though|though|after|due to|following|seeing"
        r"|considering|now that|while|no|the|it|that|this|there|timed)\b[^:]*, (?=(?:i|we|let|here|a|another|the|retry|repeat"
        rf"|{_DOING})\b)"
    ),
)
