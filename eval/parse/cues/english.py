"""English."""

from .table import Cues

_MAKE = (
    r"(?:call(?:ing)?|mak(?:e|ing)|run(?:ning)?|execut(?:e|ing)|us(?:e|ing)|invok(?:e|ing)|issu(?:e|ing)"
    r"|send(?:ing)?"
    r"|perform(?:ing)?|submit(?:ting)?|do(?:ing)?|proceed(?:ing)?|retry(?:ing)?|try(?:ing)?|repeat(?:ing)?"
    r"|carry(?:ing)?"
    r"|complete|completing|attempt(?:ing)?|trigger(?:ing)?|request(?:ing)?|continu(?:e|ing)|go(?:ing)?"
    r" ahead|write)"
)
_DOING = (
    r"(?:calling|trying|retrying|re-trying|using|running|invoking|executing|making|repeating|checking"
    r"|sending|re-?sending"
    r"|re-?running|attempting|issuing|querying|fetching|requesting|re-?issuing|getting|looking)"
)
_MADE = (
    r"(?:called|made|tried|ran|executed|invoked|issued|sent|attempted|used|performed|submitted|placed|done"
    r"|did|run"
    r"|requested|queried|retried|completed)"
)
_NOT = (
    r"(?:will not|won['’]t|can ?not|can['’]t|could not|couldn['’]t|should not|shouldn['’]t|would not"
    r"|wouldn['’]t|do not|don['’]t"
    r"|did not|didn['’]t|must not|mustn['’]t|may not|shall not|am not|are not|aren['’]t|['’]m not|is not"
    r"|isn['’]t|was not|wasn['’]t"
    r"|not going to|not able to|unable to|refuse to|refusing to|decline to|declining to|not allowed to|not"
    r" permitted to"
    r"|never|no longer|avoid|instead of|rather than|forbidden to|not willing to|no permission to|have no"
    r" permission"
    r"|lack (?:the )?(?:permission|authori[sz]ation)|stopped|stop)"
)
_CALL = r"(?:calls?|requests?|attempts?|invocations?|quer(?:y|ies)|tools?|functions?|commands?)"
_WENT = (
    r"(?:timed[ -]?out|time[ds]? out|fail(?:ed|s)|did(?:n['’]t| not) (?:work|respond|succeed|return|go"
    r" through|complete)"
    r"|(?<!be )(?<!is )(?<!are )(?<!get )returned|came back|responded|gave|produced|resulted|threw|raised"
    r"|errored"
    r"|was (?:rejected|refused|denied|blocked|rate[- ]limited|unsuccessful|successful|declined"
    r"|unauthori[sz]ed)"
    r"|hit (?:a|the|an) |is (?:down|unavailable|not available|not responding|unreachable)|was (?:down"
    r"|unavailable)|went wrong|broke"
    r"|got (?:an?|no|the) |received (?:an?|no) |ran into|has been (?:rejected|denied|made|executed)"
    r"|succeeded|crashed"
    r"|exceeded|expired|does(?:n['’]t| not) (?:work|respond)|keeps (?:failing|timing out))"
)

CUES = Cues(
    announced=(
        r"\b(?:i|we)(?:['’]ll| will| shall)(?! not\b| never\b)\b"
        r"|\b(?:i|we)(?:['’]m| am|['’]re| are) (?:going to|about to|now|also|then|therefore|simply"
        r"|just)?\s?\w*ing\b(?<!refusing)(?<!declining)"
        r"|\b(?:i|we)(?:['’]m| am|['’]re| are) (?:going|about) to\b|\blet me\b(?! (?:not|know)\b)"
        r"|\blet['’]s\b(?! not\b)|\blet us\b(?! not\b)"
        r"|\b(?:i|we) (?:need|want|have|must|should|ought|plan|intend|choose|decide)(?:d)? to\b(?! not\b)"
        r"|\b(?:i|we) (?:need|must(?! not)|should(?! not)|can(?! ?not|['’]t))\b"
        r"|\b(?:i|we)(?:['’]d| would) (?:like|love|want) to\b|\bmy (?:call|answer|response|next|tool"
        r"|function|second|new)\b"
        r"|\b(?:i|we) (?:(?:now|then|first|next|therefore|thus|again|also|simply|just|hereby|therefore"
        r"|instead|so) )?"
        r"(?:call|use|run|make|invoke|execute|retry|re-?try|try|send|request|check|issue|repeat|query|fetch"
        r"|look|do|get|ask|re-?send|submit|perform|apply|start|begin|proceed|go)\b"
        rf"|(?:^|[,.;:!—–-] ?)(?:now |so |then |next |therefore |thus |again )?{_DOING}\b"
        rf"|\b(?:so|and|now|then|but|ok|okay) (?:now |so |then |next |therefore |thus |again )?{_DOING}\b"
        r"|\bhere(?:['’]s| is| are| goes| you go| we go| it is)\b|\b(?:try|retry)(?:ing)? (?:(?:it|this"
        r"|that|the call|once|the request) )?again\b|\b(?:another|second|new|next|one more|third) (?:try"
        r"|attempt|call|retry)\b"
        r"|\bonce (?:more|again)\b|\bone more time\b|\btake two\b|\bretry\b|\bre-?try(?:ing)?\b"
    ),
    reported=(
        rf"\b(?:i|we)(?:['’]ve| have| had)? (?:(?:already|previously|just|earlier|before|once|first|then"
        rf"|also|now|recently|have) ){{0,2}}{_MADE}\b"
        rf"|\balready (?:been )?{_MADE}\b|\b(?:failed|unsuccessful|timed[- ]out|previous|earlier|last"
        rf"|original|prior|past|first) {_CALL}\b"
        rf"|\b{_CALL} (?:\w+ ){{0,4}}?{_WENT}|\b{_CALL} (?:was|were) (?:already )?(?:made|sent|executed"
        rf"|tried|issued|rejected)\b"
        rf"|\b(?:was|were|has been|have been|had been) (?:already |previously )?(?:called|executed|invoked"
        rf"|tried|attempted)\b"
    ),
    refused=(
        rf"\b{_NOT}\b(?:(?! without\b)[ ]+[\w'’-]+){{0,6}}?[ ]+{_MAKE}\b|\b(?:do not|don['’]t|never|must"
        rf" not|should not|avoid|please don['’]t) {_MAKE}\b"
        rf"|\b(?:refuse|decline|forbidden|prohibited|not allowed|not permitted|not possible|impossible"
        rf"|disallowed)\b"
        rf"|\bno (?:permission|authori[sz]ation|access|consent|need)\b[^.;:]{{0,40}}\b(?:to|for)\b"
        rf"|\bwithout (?:ever )?(?:making|calling|executing|running)\b"
        rf"|\b(?:but|however|though|yet)\b[^.;:]{{0,40}}(?:\b{_NOT}\b|\bservice is\b|\bis (?:down"
        rf"|unavailable|broken|out of)\b)"
        rf"|\bgiv(?:e|ing) up\b|\bgave up\b|\binstead of (?:making|calling|running)\b|\bnot to (?:call|make"
        rf"|run|use|execute)\b"
    ),
    supposed=(
        r"\b(?:could|would|might)(?:['’]ve| have)?\b(?! like to\b| love to\b| want to\b| you like\b)|\b(?:i"
        r"|we|it|that)['’]d (?!like|love|better)\w|\b(?:hypothetical(?:ly)?|suppose|supposing|imagine"
        r"|assuming)\b.*"
        r"|\bif (?:i|we|one|the user) (?:could|were|had|were to|was)\b|\bin theory\b|\bmay be\b"
        r"|\bpossibl[ey]\b|\bpotential(?:ly)?\b|\bnormally\b"
    ),
    example=(
        r"\be\.?g\b\.?|\bfor (?:example|instance)\b|\bexamples?\b|\bsuch as\b|\bsample (?:call|request"
        r"|usage)\b|\billustrat\w+|\bsomething like\b"
        r"|\btemplate\b|\bplaceholder\b|\bsyntax\b|\bdemonstrat\w+|\bsample:|\bas an illustration\b"
    ),
    asked=(
        r"\b(?:should|shall|may|must) (?:i|we)\b[^.!]*\?|\b(?:do|would) you (?:want|like|prefer)(?: for)?"
        r" (?:me|us) to\b(?![^?]*\b(?:else|also|another|more)\b)[^.!]*\?"
        r"|\b(?:is|does|are|would) (?:this|that|it|these|they)(?: call| one)? (?:ok|okay|fine|alright|all"
        r" right|correct|right|what you|look|sound|work for)\b[^.!]*\?"
        r"|\bcan (?:i|we) (?:go|proceed|run|execute|make|call|do|continue|start|use)\b[^.!]*\?"
        r"|\bproceed\b[^.!]*\?|\bgo ahead\b[^.!]*\?|\b(?:do|would) you (?:agree|approve|confirm|allow"
        r"|mind)\b[^.!]*\?"
        r"|\bok(?:ay)? (?:to|if|with)\b[^.!]*\?|\bwant me to\b(?![^?]*\b(?:else|also|another"
        r"|more)\b)[^.!]*\?|\bshould (?:this|that|it) be\b[^.!]*\?"
        r"|\bplease (?:confirm|approve)\b|\b(?:let me know|tell me) (?:if|whether|when) (?:i (?:should|may"
        r"|can)|you(?:['’]d| would)? (?:want|like|agree|approve|wish|prefer)|this is (?:ok|okay|correct"
        r"|fine)|to (?:proceed|go ahead|continue))\b(?![^.]*\b(?:else|more|other|another|further)\b)"
        r"|\b(?:await|wait)(?:ing)? (?:for )?(?:your|the user['’]?s?) (?:confirmation|approval|permission"
        r"|consent|go-ahead|ok|answer|reply)\b|\bwith your (?:permission|approval|consent|ok)\b"
        r"|\b(?:if|once|when|after) you (?:confirm|approve|agree|say so|allow|give|tell|provide|['’]d like"
        r" me|want me|would like me)\b|\bready when you are\b"
    ),
    described=(
        r"\b(?:tool|function|api|method|command|endpoint|it|which)\b[ ](?:\w+ly )?(?:returns|takes|accepts"
        r"|retrieves|expects|requires|provides|allows|lets|supports|receives|describes|fetches|gives|gets"
        r"|computes|calculates|sends|sets|can be used|is used|is called|is defined|is documented|has the"
        r"|have the|is invoked)\b"
        r"|\b(?:available|following|supported|provided|listed|these|your|my) (?:\w+ )?(?:tools|functions"
        r"|apis|methods|commands)(?: are| include)?\s?[:：]?$|\bi (?:have access to|can use|can"
        r" call)\b(?!.{0,60}\b(?:so|now|i['’]ll)\b)|\b(?:tools?|functions?) (?:i have|that i have"
        r"|available)\b"
        r"|\b(?:usage|signature|documentation|docs|docstring|api reference|reference|definition"
        r"|specification|how to use|how to call)\b"
    ),
    does=(
        r"(?: (?:tool|function|api|method|command|endpoint))?,? (?:\w+ly |always |will )?(?:returns?|takes?"
        r"|accepts?|retrieves?|expects?|requires?|provides?|allows?"
        r"|lets?|supports?|receives?|fetch(?:es)?|gives?|gets?|computes?|calculates?|sends?|sets?|can be"
        r" used|is used|is called|is a|is the (?:tool|function|api) (?:that|for|which)|finds?|searche?s?"
        r"|checks?|looks?|creates?|books?|lists?|shows?|has)\b"
    ),
    outcome=(
        rf"\b(?:it|this|that|which|they|both|these|those|(?:the |this |that |my |your )?(?:\w+"
        rf" ){{0,2}}(?:calls?|requests?|tools?|service|server|api|function|attempts?|response|result"
        rf"|endpoint|system|query|reply|output))\b"
        rf"(?: (?:has|have|had|just|also|then|again|already|unfortunately|however|sadly|only|simply|still"
        rf"|both|all|never|been|always|immediately|keeps?))*[ ]{_WENT}"
        rf"|^[^\w]*(?:and|but|however|yet|unfortunately|sadly|which|alas|then)\b[^.;]{{0,48}}?\b{_WENT}"
        rf"|^[^\w]*{_WENT}|\b(?:and|but|which) (?:it |this |that )?(?:has |had )?{_WENT}"
        r"|\b(?:there was|there is|i got|i received|we got|we received|i see|ended (?:with|in)|got back|i"
        r" was told)\b[^.;]{0,40}\b(?:error|timeout|time-out|failure|response|nothing|exception|limit)\b"
        r"|^[^\w]*(?:result|error|timeout|status|failed|outcome)\b\s?[:=-]"
    ),
    later=(
        r"\b(?:please )?(?:try|retry|check|ask)(?: it| this| me| the call| the request| back)?(?: once)?(?:"
        r" again)? (?:later|in a (?:few|moment|while|minute)|after (?:some|a) |another time|tomorrow|at a"
        r" later time|shortly)\b(?!, i)"
        r"|\bi (?:give|gave) up\b|\bgiving up\b|\bplease (?:try|retry) again\b"
    ),
    conditional=(
        r"\b(?:if|when|whenever|once|unless|until|in case|should (?:it|this|the)|as soon as|after it|after"
        r" the|provided|assuming|will be|so that|to see|whether)\b"
    ),
    earlier=(
        r"\b(?:previous(?:ly)?|last|earlier|first|before|prior|original(?:ly)?|former|the other"
        r"|initial(?:ly)?|past|so far|old)\b"
    ),
    correction=(
        r"\b(?:wrong|incorrect|mistakes?|mistaken|corrected|correction|correcting|oops|scratch that|not"
        r" (?:right|correct)|disregard|should have been|let me (?:fix|correct)|fixed|revised|ignore (?:that"
        r"|the)|invalid|my bad|no wait|typo)\b"
    ),
    this_call=(
        r"\b(?:this|that|the following|following|below|these|the above|above|said|such an?)\b(?: \w+){0,2}?"
        r" ?(?:calls?|requests?|commands?|invocations?|below|following|above|function|tool|ones?|line"
        r"|code)?\b"
    ),
    soon=(
        r"(?:right |just |straight )?(?:now|next|first|again|then|immediately|away|once more|once again"
        r"|today|shortly|soon|at once|please|for now|too|right away|as well)"
    ),
    it=r"\b(?:it|this|that|them|these|so|the (?:call|request|tool|function))\b",
    contrast=r"^\W*(?:but|however|though|yet|although|because|since|here\b)",
)
