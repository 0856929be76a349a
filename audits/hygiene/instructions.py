"""Orders to whoever reads a row: a model, a judge, a reviewer.

A request is an order too, so what is looked for are orders about instructions, about other texts, about the
choice of a tool as such, about scores, and texts that pretend to be a system's. Upstream's own are reviewed.
"""

import re
from collections.abc import Iterator

from .decoded import found, readings

_WHOSE = (
    "(?:(?:all|any|each|every|the|your|our|my|these|those|this|that|of|previous|prior|above|earlier|preceding"
    "|former|foregoing|other|system|safety|given|original|following|next) )*"
)
_ORDERS = (
    "(?:instructions?|prompts?|rules?|directions?|directives?|guidelines?|messages?|contexts?|orders?"
    "|commands?|constraints?|polic(?:y|ies)|tools?|functions?|text|conversations?|requests?|quer(?:y|ies)"
    "|questions?|above|below|said before|came before|comes? (?:before|next|after))"
)
_NOT = "(?:never|do not|don'?t|must not|should not|shall not|may not|cannot|can'?t|refuse to|stop|avoid)"
_TOOL = "(?:tools?|functions?|apis?|endpoints?|calls?)"
_CALL = (
    "(?:us(?:e|ing)|call(?:ing)?|choos(?:e|ing)|select(?:ing)?|pick(?:ing)?|invok(?:e|ing)|prefer(?:ring)?)"
)
_READER = (
    "(?:reader|reviewer|judge|grader|rater|evaluator|annotator|scorer|model|llm|ai|assistant|agent|chatbot)"
)
_ASIDE = ("ignor", "disregard", "forget", "overrid", "bypass", "skip", "neglect")
_NEGATION = ("never", "not ", "n't", "dont", "refuse", "stop", "avoid")
_CHOICE = ("us", "call", "choos", "select", "pick", "invok", "prefer")

_PATTERNS = (
    (
        _ASIDE,
        rf"\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?|overrid(?:e|ing)|bypass(?:ing)?|skip(?:ping)?"
        rf"|neglect(?:ing)?) {_WHOSE}{_ORDERS}\b",
    ),
    (
        _ASIDE,
        r"\bdisregard\b|\b(?:ignore|forget) (?:everything|anything|whatever|what|the user|this|that|it)\b",
    ),
    (
        _NEGATION,
        rf"\b{_NOT} (?:do|doing|follow|execut|obey|perform|carry out|comply with|fulfil|process|answer|act on"
        r"|respond|reply|help|complet)(?:e|l|ing|ting)? ?(?:to|with|the following|what follows|any of"
        r"|any ?thing"
        r"|this|that|these|it\b|any (?:request|question|quer)|the (?:user|request|query|question|task|above"
        r"|below|next|rest))",
    ),
    (_NEGATION, rf"\b{_NOT} {_CALL} (?:any|a|the|this|that|these|those|its?|their)(?: \w+)? {_TOOL}\b"),
    (
        ("opposite", "reverse", "instead"),
        r"\bdo (?:exactly )?(?:the (?:opposite|reverse)|the following instead)"
        r"|\binstead of (?:answering|calling|doing|following|the (?:user|request|above))",
    ),
    (
        ("you ",),
        r"\byou (?:are now|(?:must|will|shall|should|may) (?:now|only|always|never|ignore|obey|refuse|not"
        r"|pretend|disregard)|have been (?:hacked|reprogrammed|instructed|told))\b",
    ),
    (
        (
            "from now on",
            "instruction",
            "system prompt",
            "developer mode",
            "jailbr",
            "injection",
            "admin mode",
        ),
        r"\bfrom now on\b|\b(?:new|hidden|secret|updated?|additional|important) instructions?\b"
        r"|\bsystem prompts?\b|\b(?:developer|admin|debug|god) mode\b|\bjailbr(?:eak|oken)"
        r"|\bprompt injection\b",
    ),
    (
        ("pretend", "roleplay", "role-play"),
        r"\b(?:pretend|role-?play) (?:to be|you are|you're|that you|as)\b",
    ),
    (
        ("prompt", "instruction", "message", "rules"),
        r"\b(?:reveal|print|show|output|repeat|leak|tell) (?:me )?(?:your|the) (?:system|hidden|initial"
        r"|secret|original|full)? ?(?:prompt|instructions?|system message|rules)\b",
    ),
    (
        ("note", "dear ", "attention", "hey", "if you are", "as the ", "as a "),
        rf"\bnotes? (?:to|for) (?:the |any |all |every )?(?:\w+ )?{_READER}s?\b"
        rf"|\b(?:dear|attention,?|hey,?) (?:all |any )?{_READER}s?\b"
        rf"|\bif you are (?:an?|the) (?:\w+ )?{_READER}\b"
        r"|\bas (?:the|an?) (?:judge|grader|reviewer|evaluator)\b",
    ),
    (
        ("score", "rating", "marks", "5"),
        r"\b(?:full|perfect|maximum) (?:score|rating|marks)\b"
        r"|\b(?:give|assign|award|rate|score)\b[^.]{0,40}\b[1-5] ?(?:out of|/) ?5\b"
        r"|\b(?:give|assign|award) (?:it|this|these|them|both|the (?:pair|text|answer|response|row))"
        r"[^.]{0,20}\b(?:score|rating|5)\b",
    ),
    (("verified",), r"\bboth texts (?:were|are|have been) verified\b"),
    (
        _CHOICE,
        rf"\b(?:always|only|never|do not|don'?t|must(?: not)?|should(?: not)?|please) {_CALL} (?:this|the"
        r" (?:first|second|third|fourth|fifth|last|next|other|following|right|correct)|another|no|any other"
        rf"|any) ?(?:one|{_TOOL})\b",
    ),
    (
        _CHOICE,
        rf"\b{_CALL} (?:this|it)(?: one)?(?: {_TOOL})? (?:instead|first|always|only|rather)\b"
        rf"|\b(?:instead of|over|before) (?:any|all|every|the) others? ?{_TOOL}?\b"
        rf"|\b(?:all|any|the) other {_TOOL} (?:are|is|will|must|should)\b",
    ),
    (
        ("answer", "truth", "correct", "right", "expected", "gold", "intended", "desired"),
        rf"\b(?:correct|right|expected|gold(?:en)?|intended|desired|true) (?:{_TOOL}|answers?) (?:is|are|here"
        r"|to|will|would|should)\b|\bground[ -]truth\b|\bthe (?:gold|golden|expected|reference) answers?\b"
        rf"|\b(?:this|it) is the (?:only |very )?(?:correct|right|best|gold|expected|intended) {_TOOL}\b",
    ),
    (
        ("decoy", "distractor", "honeypot", "perturbed", "benchmark"),
        r"\b(?:is|are|was|as) (?:an? |the |only )*(?:decoys?|distractors?|honeypots?|perturbed"
        rf"|benchmark (?:rows?|items?|samples?))\b|\b(?:decoy|distractor|honeypot|perturbed) {_TOOL}\b",
    ),
    (
        ("<|", "|>", "[inst", "[/inst", "<<", "<s>", "</s>", "_of_turn>"),
        r"<\|[\w ]{2,40}\|>|\[/?inst\]|<<?/?sys>>|</?s>|<(?:start|end) of turn>",
    ),
    (
        ("<",),
        r"</?(?:system|user|assistant|human|developer|instructions?|prompt|think|thinking|response|obs|tool"
        r"|tool call|tool response|function|function call|tool_call|tool_response|function_call)>",
    ),
    (
        (":",),
        r"(?:^|[.!?] |\n)\s*(?:#{1,6} ?)?(?:\[|\()?(?:system|assistant|developer|instructions?|ai|human)"
        r"(?: (?:message|note|prompt|override|instructions?))?(?:\]|\))? ?:",
    ),
    (
        ("##", "begin", "end", "start"),
        r"##+ ?(?:instructions?|system|response|input|assistant)\b"
        r"|\b(?:begin|end|start)(?:ing)? (?:of )?(?:the )?(?:system|hidden|user)? ?"
        r"(?:prompt|instructions?)\b",
    ),
    (
        ("reply", "respond", "answer", "output", "say"),
        r"\b(?:reply|respond|answer) (?:only|just|exactly) with\b"
        r"|\b(?:reply|respond|answer) with (?:only |just |exactly |nothing|the (?:word|text|string|single)"
        r"|[\"'`])|\b(?:output|say|print|write) (?:only|nothing but|just|exactly) ",
    ),
)
_INSTRUCTIONS = tuple((needles, re.compile(pattern)) for needles, pattern in _PATTERNS)


def instructions(text: str) -> Iterator[str]:
    """Yields orders to the reader, also those that stand encoded in the text (see `readings`)."""
    yield from found(_INSTRUCTIONS, readings(text))
