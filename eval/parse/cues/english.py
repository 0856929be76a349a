"""English."""

from .table import Cues

_VERB = (
    r"(?:re-?)?(?:call|runn?|send|issue?|execut|invok|submitt?|us|mak|perform|request|try|repeat|attempt|do|check"
    r"|query|fetch|proceed)"
)
_MAKE = rf"(?:{_VERB}(?:e|ing)?|tri|carry|complet(?:e|ing)|trigger|continue|go(?:ing)? ahead|write)"
_SENT = r"(?:run|sent|made|(?:call|execut|invok|submitt|issu|perform)ed)"
_DOING = rf"(?:{_VERB}|gett|look)ing"
_FIT = (
    r"(?:correct|fix|revis|updat|adjust|modif|amend|repair|prepar|generat|select|format|refin|simplif|valid|combin"
    r"|need|requir|request|ask|desir|want|expect|intend|suit|improv|repeat|retri|rework|renew|describ|propos|suggest|bas"
    r"|recommend|discuss|specif|stat|list|provid|attach|relat|detail|nam|translat|(?:proc|sp|f|ind)eed)"
)
"""Participles of a call that is made now."""
_PREPARED = (
    rf"(?:(?:re-?)?(?:{_FIT}|identif|construct|formulat|creat|draft|complet|verif|match|extract|fill|review|check"
    r"|determin|decid|conclud|notic|reali[sz]|figur|plann|chang|remov|replac|swapp|pick|dropp|add|convert"
    r"|shorten|merg|compos|form|mapp|design|produc|deriv|turn|spell|assembl|put together|switch|worked out))"
)
"""What one does to a call, or thinks, before one makes it."""
_PAST = r"(?:\w+ed|made|ran|(?:(?<=ve )|(?<=['’]d )|(?<=had )|(?<=as )|(?<=en ))run|spent|sent|did|done|got|gave|went|kept|began|took|taken|left|lost|saw|heard|hung)"
_NOT = (
    r"(?:\w{2,6}(?: ?not|n['’]t)"
    r"|['’]m not|better not|not(?: \w+)? to|un(?:able|willing) to|(?:refus|declin)(?:e|ing) to"
    r"|never|no longer|avoid|instead of|rather than|stop(?:ped)?|(?:re|ab)(?:frain|stain)(?:ing)? from|against"
    r"|failed to|no (?:permission|point|sense|use|way|reason|means)(?: in| to| of)?)"
)
_CALL = r"(?:(?:call|request|attempt|invocation|execution|tool|function|command)s?|quer(?:y|ies)|tries)"
_WENT = (
    r"(?:time[ds]?[ -]?out|fail(?:ed|s)|(?:did|has|does)(?:n['’]t| not) \w+"
    r"|(?<!be )(?<!is )(?<!are )(?<!get )returned|came back|never \w+|responded|gave|produced|resulted"
    r"|threw|raised|errored|was (?:\w+ed|(?:un)?successful)|(?:hit|got|received|ran into) (?:an?|no|the)|went \w+"
    r"|(?:is|was) (?:down|unavailable|not \w+)|broke|succeeded|crashed|has been (?:\w+ed|made)"
    r"|(?:is|was|got) stuck|hung up|stalled|exceeded|expired|keeps \w+ing)"
)
_BACK = (
    r"(?:back|up|available|online|again|work(?:s|ing)|responds?|answers?|recover(?:s|ed)|restored|resume[sd]?"
    r"|returns?|ready|reachable|resolved|over|ended|ends?|possible|stable|fixed|lifted|comes?)\b"
)
_WHILE = (
    r"(?:later|tomorrow|(?:an)?other time|next time|eventually|at \d+|in \w+ ?(?:few |short )?"
    r"(?:moment|while|min(?:ute)?|h(?:our)?|day|week)s?|after (?:a|some) (?:while|time|pause|break)|in (?:the )?future)"
)
_TROUBLE = r"(?:incident|error|time-?out|failure|exception|problem|issue|trouble|crash|outage)s?"
_NAMES = (
    r"^(?:(?:on|the|my|our|a|an|all|these|those|this|that|here|is|are|list|details?|status|of|and|any) )*"
)
_SERVICE = r"(?:service|server|endpoint|tool|api)"
_DO = r"(?:return|take|accept|retrieve|expect|provide|allow|support|receive|compute|calculate|send|list|show)"
"""What tools do."""
_THING = (
    r"(?:(?:(?:function|tool|api)[ -]?)?(?:calls?|use)|requests?|attempt|invocations?|execution|tools?|functions?|commands?"
    r"|quer(?:y|ies)|(?:re)?try|match|choice|actions?|answer|response|output|code|json|python|version|correction|(?:re)?submission|solution"
    r"|step|arguments|parameters|repeat|number|go|(?:re)?run|round|take|decision|fix|replacement|appel|aufruf|chamada|chiamata"
    r"|llamadas?(?: es)?|respuesta|mwito|solicitud|fun[ckz]\w+|herramienta|antwort|r[eé]pon\w+)"
)
"""Nouns for what a reply makes."""
_IDLE = (
    r"(?:a?wait|park|keep(?! \w+ing)|hold|stor(?:e|ing)|noted|noting|leav|skip|postpon|defer|queu|shelv|suspend|refrain"
    r"|stop|abandon|drop(?!ped)|declin|bookmark|spar|sav(?:e|ing) (?:this|it)|put(?:ting)? (?:\w+ ){0,2}(?:aside|off|away|on hold)"
    r"|forbid|rul(?:es|ing) out)"
)
"""Verbs of what is not done now."""
_ORDER = rf"{_VERB}e?(?= (?:the|this|it|these|them|an?|again|once|with|now|for|my)\b| ?$)"
"""A verb without a subject."""
_OF = r"(?:of|to|for|in|on|with|by|from|at|about|under|before|behind|while)"
_BEGINS = (
    rf"(?:again|now|next|then|first|second|third|finally|\d+$|so|yes|right|thus|hence|therefore|will do|and|or|for (?:your|this|the(?: \w+)?) (?:request|question|query|task|part|step)(?=[:.]?$)|(?:the )?same|ok(?:ay)?|sure|assistant|to \w+ (?:it|this|that|the)|with the (?:same|\w*correct\w*)"
    rf"|in (?:progress|order|json|python|code)|(?:this|one|another|second|third|next|last) (?:more )?(?:time|shot)"
    rf"|(?!{_IDLE}|pend|miss|hang|remain|outstand|regard|concern|fail|stall|upcom|com|expir)\w+ing|{_PREPARED}i?ed)"
)
"""How a phrase begins that has no subject and makes a call."""
_VERBAL = (
    r"(?:\b(?:is|are|be|was|were|am|will|would|shall|should|must|can|could|may|might|needs?|needed|have|has|had|do|does"
    r"|did|i|we|you|it|let|here|me|us|they|there|that|which|what)\b|['’](?:s|ll|re|ve|m|d)\b)"
)
_MORE = r"(?![^?]*\b(?:else|also|another|more|other|further)\b)"

CUES = Cues(
    announced=(
        r"\b(?:i|we)(?:['’]ll| will| shall)(?! not\b| never\b)\b|\blet(?: me|['’]s| us)\b(?! (?:not|know|explain|tell you|quote|report|recall)\b)"
        r"|\b(?:i|we)(?:['’]m| am|['’]re| are) (?:(?:going|about) to\b|(?:now|also|simply)?\s?"
        r"(?!refus|declin|giv|report|escalat)\w+ing\b)"
        r"|\b(?:i|we)(?:['’]d| would)? (?:(?:need|want|have|decided?|like|love) to\b(?! not\b)"
        r"|(?:need|must|should|can)\b(?! ?not|['’]t))|\bmy (?:call|answer|response|next)\b"
        r"|\b(?:i|we) (?:(?:now|then|first|next|thus|again|also|simply|just|instead) )?"
        rf"(?:{_MAKE}|look|get|ask|apply|start|begin|go)\b"
        rf"|^(?:(?:now|then|again|please),? )?{_ORDER}"
        rf"|(?:^|[,.;:!—–-] ?|\b(?:so|and|now|then|but|okay) )(?:now |then |again )?{_DOING}\b"
        r"|\b(?:re)?try(?:ing)? (?:(?:it|this|that|the \w+) )?again\b"
        r"|\b(?:another|second|new|next|third) (?:try|attempt|call)\b|\bonce (?:more|again)\b|\bretry(?:ing)?\b(?! limit)"
    ),
    reported=(
        rf"\b(?:i|we|assistant|agent|model)(?:['’]ve| have| had)?(?: (?:already|just|once|first|then|also|now|have|even"
        rf"|\w+ly|twice))* (?:(?!{_PREPARED}){_PAST}|re(?:quest|peat|tri)ed)\b"
        rf"|\b(?:i|we) (?:(?!need|decid)\w+ed|(?:was|were) (?:about|going|supposed)) to\b|(?:\bha(?:s|ve|d)|['’](?:ve|d)) been \w+ing\b|\balready\b|\b{_CALL} (?:\w+ ){{0,4}}?{_WENT}"
    ),
    past=(
        rf"^(?!to )(?:.*\W)?(?<!\bbe )(?<!\bis )(?<!\bare )(?<!being )(?!{_PREPARED}|unchang)(?:{_PAST}|was|were|came|threw|had|broke)\b"
        r"(?!.*\b(?:is|are|will|would|needs?|must|should|can|requires?)\b)"
    ),
    refused=(
        rf"\b{_NOT}\b(?:(?! without\b)[ ]+[\w'’-]+){{0,6}}?[ ]+{_MAKE}\b"
        r"|\b(?:refuse|decline|forbidden|prohibited|not (?:allowed|permitted|possible)|impossible|pointless"
        r"|useless|futile|it (?:is|seems|would be) (?:un|ir|im)\w+ to|unable to|(?:wrong|unwise|premature|risky) to|g[ia]v(?:en?|ing) up)\b"
        rf"|\b{_NOT}(?: (?:yet|been|even|actually))* {_SENT}\b|\bexhausted\b|\b(?:hesitate|reluctant) to\b"
        r"|\black(?:ing)? the (?:tool|function|rights?)\b|\bfor (?:illustration|demonstration)\b"
        r"|\b(?:no|need|lack(?:ing)?)(?: the)? (?:permission|authori[sz]ation|access|consent|need)\b[^.;:]{0,40}"
        r"\b(?:to|for)\b|^\W*not (?!sure|only)\w"
    ),
    negated=(
        r"\b(?:(?:not|never(?! hurts)|nothing|nobody|none|without|cannot|no(?! (?:worr|problem|doubt|matter)\w*| ?\d))\b|\w{2,7}['’]t\b"
        rf"|{_IDLE}|against\b|rather than|instead of|out of\b(?! the)|(?:planned|scheduled|due) (?:for|at|on)\b"
        rf"|(?<!\w){_DOING} [^,;:]*\b(?:is|was|would be|makes|seems)\b(?! (?:the|worth|in order|best|needed|required))"
        r"|still (?!need|ha(?:ve|s) to|must|want|should|require))"
        r"(?:(?!\b(?<!think )(?<!believe )(?:i|we|let)\b)[^,;:—–])*"
    ),
    aside=r"[, ](?:that|which|who|whose|since|because|as|although|though|despite|where|so that)\b",
    supposed=(
        r"\b(?:could|might)\b|\b(?:would|i['’]d)(?:['’]ve| have)\b"
        r"|\bwould (?:only|make|violate|break|breach)\b|(?:would|['’]d) be \w+ing\b|\b(?:would|['’]d) need (?!to\b)"
    ),
    deferred=(
        r"\b(?:when(?:ever)?|after|if|in case|before|should(?! (?:have|try|retry|call)\b)|till|unless|the moment|provided|assuming)(?<!see if)(?<!check if)"
        r"(?<!know if)(?<!out if)(?<!test if)(?<!verify if) (?!(?:i|we|more|again)\b)"
        r"(?:(?!(?:was|were|did|had|fails|\w+ed)\b)[\w'’-]+ |has been ){0,6}?(?:(?:is|are|has|have|comes)\b|\w+['’]s\b"
        rf"|{_BACK})|\bif (?:you|needed|(?:i|we|it) (?:was|were|had|could))\b"
        rf"|\b(?:in an ideal world|hypothetical\w*|theoretically|manual (?:action|steps?|intervention)|user action|required from you)\b|\bbefore (?:i|we) (?:can|may|could) {_MAKE}\b|^then (?:i|we) (?:can|could)\b"
        rf"|^(?:suppose|imagine|pretend|let me know|confirm,? and)\b|\blet['’]s (?:say|pretend|imagine|suppose)\b|\bin your (?:terminal|console|shell|browser)\b"
        r"|^(?:tonight|next (?:week|month|year)),? (?:i|we)\b"
        rf"|^after [^,:]*, {_ORDER}"
        r"|\bat that (?:point|time)\b|\b(?:once|as soon as|until) (?!more|again)\w"
        rf"|^(?:at |some |a |on )*{_WHILE}\b|\b(?:again|it|this|that|them|these|{_CALL}|once|back|repeat|(?:re)?(?:try|run|send)|be|used|do|for(?= later)|one)"
        rf" (?:at |some |a |on )*{_WHILE}\b|^(?:at|from) (?!once|last|first|your)\w+ (?:on )?(?:i|we) (?:will|shall)\b"
        r"|\byou(?<!so you)(?<!that you)(?:['’]ll| (?:can|could|may|might|should|must|will|are (?:welcome|free)|(?:need|have) to))\b|\bplease (?!wait|hold|stand|bear|find|see|allow|let|give|be\b)\w"
        r"|\b(?:kindly|consider) \w|\b(?:yoursel(?:f|ves)|manually|by hand|feel free|for you to (?:run|send|execute|paste|copy)|to (?:paste|copy)|advice|recommendation|instructions)\b"
        r"|, (?:copy|paste|click|forward|contact|ask)\b"
        r"|^(?:contact|ping|ask|tell|give|have|show|send (?:this|it)|forward|copy|paste|keep|note"
        r"|come|go|to be|how to (?:reproduce|re\w+)|to (?:reproduce|replicate|document|record))\b"
        r"|\b(?:i|we)(?:['’]d| would)? (?:recommend|suggest|advise)\b"
        r"|\b(?:users?|people|developers|anyone|one|someone|somebody|operators?|admin\w*|support|your (?!question|request|query)\w+(?: \w+)?) (?:(?:often|usually|normally) )?(?:can|could|may|should|must|will need|runs?|execute)\b"
        r"|\bwhen(?:ever)? you (?:get|have|find|can)\b|\byou(?: would|['’]d) (?:\w+ly )?(?:write|call|run|use|send)\b"
    ),
    label=(
        rf"{_NAMES}(?!i |we )(?:\w+ )?(?:(?:fail|error|hang|stall|wait|offend)ing|future|un(?!chang)\w+|pending|recent|reference|(?:problem|fault)\w*|(?:in(?:correct|valid)|wrong)(?!.*(?:corrected|fixed|replaced))|mock|fictional|fake|dummy|initial|broken|stuck|dead|stale|open|original|last|latest"
        rf"|previous|prior|earlier|past|old|outstanding|(?!{_FIT}|unchang)\w+ed|made|timed[- ]out) (?:\w+ ){{0,2}}?(?:{_CALL}|actions?|steps?|lists?|items?|messages?|work|parameters|arguments)"
        rf"(?: \w+){{0,3}}$|{_NAMES}(?:\w+ )?(?:{_CALL}|actions?|steps?) (?:(?:that|which|i|we) )*(?!{_FIT})(?:{_PAST}|{_WENT})(?: \w+)*$"
        rf"|^(?:still |not |yet )*(?:pending|on hold|in the queue|un\w+ful|stuck|left|earlier|previously|(?!{_FIT})\w+ed)(?: out)?"
        r"(?: (?:for|until|till|by|because|due|at|on|with|as|in)\b[^,]*)?$"
        rf"|^(?:[\w-]+ ){{0,4}}{_THING} \(?(?:un\w+|not|after|until|when|without|since|in question|on hold|as (?:\w+ed|sent))\b"
        rf"|{_NAMES}(?:\w+ )?(?:history|logs?|(?:next )?steps)\b(?! is\b)"
        r"|\bfor (?:the|your|my|our) (?:record|reference|information|notes|files|log)s?\b"
        r"|\b(?:so far|to date|in mind|from before)$|^(?:this|that) is (?:wrong|incorrect|invalid)\b"
        rf"|^(?!.*\b(?:is|are|correct\w*|fixed|resolved)\b).*{_TROUBLE}\b"
    ),
    named=(
        rf"^(?!(?:with )?(?:(?!{_OF}\b)\W*[\w'’-]+[ ,]+){{0,4}}?{_THING}\b(?: (?:(?:no )?#?\d|two\b|three\b|\(|(?:with|for|to|of|from|using|again|now|chosen|selected|\w+s \w+)\b)[^:]*|\W*):?$)"
        rf"(?!(?:[\w'’-]+[ ,]+){{0,3}}?(?:this|it|these|following|below)\b)(?!.*{_VERBAL})(?!(?:{_BEGINS})\b|{_ORDER})(?=[\x00-\u024f]*$)(?:[\w().,/#'’-]+ ?){{1,6}}[:.]$"
        rf"|^(?=.*{_VERBAL}|(?:\S+ ){{0,8}}?{_OF} )(?!.*\b(?:i|we|let|here)\b)(?!(?:{_BEGINS})\b|{_ORDER})"
        rf"(?!(?:(?!{_OF}\b)[\w'’-]+[ ,]+){{0,4}}?(?:this|it|these|following|below|{_THING})\b)"
        rf"(?!.*\b(?:this|that|these|it|following|{_THING}) (?:must|should|needs?|requires?|has|is|are|will|would)\b).*:$"
        rf"|^(?:(?:here|this|that)(?:['’]s| is| are)|(?:i|we) have) (?:an?|the|my|our|your) (?!(?:(?!{_OF}\b)[\w'’-]+ ){{0,4}}?(?:{_THING}"
        r"|one|second|best|only|right|way)\b).*:$"
    ),
    example=(
        r"\b(?:e\.?g|for (?:example|instance))\b\.?$|^(?:(?:as|an?|the|some|usage|code|documentation) )*(?:example|sample)s?$"
        r"|\b(?:only|just|merely) an? (?:example|illustration|sketch|template|placeholder|draft)\b"
        rf"|\b(?:examples?|samples?|illustrations?|templates?|syntax|typical)(?: of)?(?: an?| the| such an?)?"
        rf" (?:\w+ )?(?:{_CALL}|usage)\b"
    ),
    asked=(
        rf"\bshall (?:i|we)\b[^.!]*\?|\b(?:should|may|must|can) (?:i|we) (?:\w+ly |now |also )?(?:{_MAKE}|start)(?: (?:it|this|that|these|the following|one"
        rf"|so|ahead|now|again|with|the (?:\w+ )?{_CALL}|following)\b[^.!]*)?\?"
        rf"|\b(?:want|like|prefer)(?: for)? (?:me|us) to\b{_MORE}[^.!]*\?"
        r"|\b(?:is|does|are|would) (?:(?:this|that|it|these)(?: call| one)?|(?:the|these) (?:call|arguments|parameters|values)) (?:be )?(?:okay|ok|fine|al(?:l )?right|correct|right|good"
        r"|look|sound|work for)\b[^.!]*\?|\b(?:(?<!to )proceed|go ahead|ok(?:ay)? (?:to|if|with)|approve (?:this|the|it))\b[^.!]*\?"
        r"|\bis (?:this|that|it) (?:what|the \w*(?:call|request|command|tool))\b[^.!]*\?|\bwould (?:(?:re)?(?:try|runn|call|send)|repeat)ing\b[^.!]*\?"
        r"|\bwhat (?:does|would|will) (?:this|that|it)(?: call)? do\?|\bwhich(?: one)? (?:would|do) you (?:like|prefer|want)\b"
        r"|\b(?:can|could|would|will) you (?:please )?(?:run|call|execute|send|invoke) (?:this|it|that|the following)\b[^.!]*\?"
        r"|^(?:who|why|how about|what about|are you|do(?:es)?|did|ready to|(?:re)?(?:try|run|send)|should)\b(?!.*\bhelp\b)[^.!?]{0,40}\bthis(?: (?:call|request|command|fail|time out|be \w+(?: again)?))?\?"
        r"|^\W*(?:(?:re)?(?:try|run|send)|execute|confirm)(?: (?:it|now|again))?\?"
        r"|\b(?:wait(?:ing)? for|needs?|requires?) (?:an? |your )?(?:approval|confirmation|permission|consent|sign-off)\b"
        r"|\b(?:confirm|let me know|tell me),? and i\b"
        r"|\b(?:say|type|reply|answer)(?: with)? [\"“'‘]?(?:yes|ok(?:ay)?|go|the word|confirm)\b"
        r"|\b(?:please|(?:do|would|if|once|when|after) you) (?:agree|approve|confirm|allow|mind|say so|want me|would like"
        rf" me)\b|\b(?:let me know|tell me) (?:if|whether|when) (?:i |you|this is|to )\b{_MORE}"
        r"|\byoursel(?:f|ves)\b[^.!]*\?|\b(?:your|the user['’]?s?) (?:confirmation|approval|permission|consent|go-ahead|ok)\b"
    ),
    described=(
        rf"^(?:the|this|that|it|which|`?[\w.-]+`?) (?:[\w.`-]+ )?(?:\w+ly )?(?:{_DO}s"
        r"|(?:is|can be) (?:used|defined|documented|invoked))\b(?! one| a call)"
        r"|\bi (?:have access to|can use)\b(?!.{0,60}\b(?:so|now|i['’]ll)\b)"
        r"|\bhow (?:to (?:use|call)|the (?:function|tool|api|call) (?:is|works|can))\b|^(?:this|the|that) (?:\w+ )?means\b|\bin general$"
        r"|\b(?:your message|the (?:tool )?(?:result|output|response)|somebody|someone) (?:contains|says|asks|wants|tells|put)\b"
        r"|\b(?:explain|let me (?:tell you|quote|report|recall))\b"
        r"|^(?:\w+ )?(?:usage|signature|documentation|docs|docstring|definition|declaration|specification)"
        rf"(?: (?:of|for) (?:the|this|a) (?:[\w.]+ )?{_CALL})?$"
    ),
    does=(
        rf"(?: (?:tool|function|api|method))?,? (?:\w+ly |always |will )?(?:{_DO}s?|(?:give|get|set|find|look)s?|can be used"
        r"|is (?:used|called|an?)|has)\b"
    ),
    outcome=(
        rf"^\W*(?:still (?:nothing|no)|same (?:error|result|timeout)|that {_WENT})\b"
        r"|\b(?:tried|attempted) (?:this|that|it) (?:\w+ times|already|twice|before)\b|"
        rf"\b(?<!for )(?:it|this|which|they|both|these|those|(?:\w+ ){{0,2}}(?:{_CALL}|{_SERVICE}|response|result|system"
        rf"|reply|output))\b(?: (?:has|have|had|just|also|then|again|already|only|simply|still|both|all|been|always"
        rf"|keeps?|\w+ly))*[ ]{_WENT}|(?:^|\b(?:and|but|which|yet|however) (?:it |this |that )?(?:has |had )?)\W*{_WENT}"
        r"|\b(?:there (?:was|is)|(?:i|we) (?:got|received)|i see|ended (?:with|in)|got back)\b[^.;]{0,40}"
        rf"\b(?:{_TROUBLE}|response|nothing|limit)\b|\bno (?:answer|response|reply|result|data)\b(?!.*\b(?:until|without|yet"
        rf"|unless)\b)|\babove (?:\w+ ){{0,2}}?(?:was|ha[sd] been|{_WENT})|(?:\bth(?:is|at) |^\W*)(?:is|was) (?:the last (?:try|attempt)\b|what {_WENT}|(?:the|what) (?:{_CALL} )?(?:(?:that|which|i|we) )+(?!{_FIT})(?:{_PAST}|{_WENT}))"
    ),
    gives_up=(
        rf"\b(?:(?:re)?try(?:ing)?|check|ask)(?: it| this| me| the \w+| back)?(?: once)?(?: again)? (?:at a )?{_WHILE}\b(?!, i)"
        r"|\bplease (?:try|retry) again\b|\bg[ia]v(?:e|ing) up\b|\bno luck\b|\b(?:come|check) back later\b"
        r"|\b(?:i|we) (?:(?:will|must|have to|had to|am going to|can only) )?(?:stop(?:ped)?|leave it|end)\b"
        r"|\b(?:(?:ca|could|can)(?: ?not|n['’]t)|not able to|unable to) (?:be )?(?:give|provide|get|complet|answer|help|retrieve|obtain|process)"
        r"\w*\b(?![^.]*\b(?:before|until|without|yet|unless)\b)|\b(?:won['’]t|will not|not going to) (?:re)?(?:try|peat|call)"
        rf"|(?:^\W*|, )(?:you can )?{_MAKE} (?:it|this|that|these|the)\b[^.;]*(?:{_WHILE}|\b(?:once|when|as soon as)\b)"
        r"|\bnothing (?:more|else|further)?\b[^.;]{0,24}\b(?:can|could|to (?:do|try)|left|came)\b"
        r"|\b(?:scratch that|never ?mind|(?:disregard|ignore) (?:it|this|that|the above)(?: (?:call|request))?(?=\W*$|[.,;]))"
        r"|\bno (?:(?:tool|function) )?(?:call|tool|function)s? (?:is|are|was) (?:needed|necessary|required|made)\b"
        rf"|\bnothing (?:was|is|has been) {_SENT}\b|\bdone trying\b|\bhold(?:ing)? off\b|\bnot go through with\b"
        rf"|\bwait (?:until|for) the (?:{_SERVICE}|system|outage)\b|(?:\bno|\bnot have|n['’]t have|\black) access to (?:it|th(?:is|at|e) (?:{_SERVICE}|function))\b"
        rf"|\b(?:{_SERVICE}|function) is(?: not|n['’]t) available\b"
        r"|\b(?:you (?:(?:will|can|should|must|need|have|to) )+|(?:someone|somebody|admin\w*|operator)\b[^.;?]{0,30}\b)(?:run|execute|send|issue|retry) (?:it|this|that)\b"
        rf"|^(?!.*(?:\b(?:any\w*|else|more|next|other|another|help\w*|clear|sense|questions?|más|otr[oa]|kingine|nyingine)\b|और|अन्य))\W*(?:[\w'’]+ ){{0,2}}[\w'’]+\?\W*$|\b(?:retried|repeated|run|sent) {_WHILE}"
        r"|\bescalat\w+|\bhand(?:ed|ing) (?:\w+ ){0,2}over\b|\btransferr\w+ (?:you|this|it|the)\b"
        r"|\bthis is where it\b|\bha(?:ve|s) to wait\b|\bcontact\b|\byourself\b"
        rf"|\b{_SERVICE} (?:(?:is|seems|appears|has)(?: to be| been)?(?: \w+ly)? (?:down|offline|unavailable|silent|unreachable|broken)"
        r"|(?:does(?:n['’]t| not)|never) (?:respond|answer|work))"
    ),
    conditional=(
        r"\b(?:if|when(?:ever)?|once|unless|until|in case|should (?:it|this|the)|as soon as|after|will be|so that|to see"
        r"|whether|hopefully)\b"
    ),
    earlier=r"\b(?:previous(?:ly)?|last|earlier|first|before|prior|original(?:ly)?|former|initial(?:ly)?|past|old)\b",
    correction=(
        r"\b(?:wrong|incorrect|mistakes?|mistaken|correct(?:ed|ion|ing)|oops|scratch that|not (?:right|correct)|disregard"
        r"|should have been|fixed|revised|ignore (?:that|the)|invalid|my bad|no wait|typo)\b"
    ),
    this_call=(
        r"\b(?:(?:this|that|these|such an?)(?: \w+){0,2}? (?:calls?|requests?|commands?|invocations?|function|tool"
        r"|ones?|line|code)|(?:the )?(?:following|above)|below|this is)\b"
    ),
    soon=(
        r"(?:right |just )?(?:now|next|first|again|then|immediately|away|once (?:more|again)|today|shortly|soon|at once"
        r"|please|too|as well)"
    ),
    so=r"\b(?:so|therefore|thus|hence|consequently)\b,? (?!far\b|that\b|you\b|it (?:failed|timed))",
    turn=(
        rf"(?:[,;–—] |\b)(?:but|and|then|yet),? (?=(?:i|we|let|here|now|again|another|retry|repeat|try|will|need|must|am"
        rf"|have to|{_DOING})\b)"
    ),
    cause=(
        r"^(?!(?:i|we|you|please|if|once)\b)[^:]*, (?=(?:i|we|let|here|an?|another|the|retry"
        rf"|repeat|{_DOING})\b)"
    ),
)
