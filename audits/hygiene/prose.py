"""What prose may not hold: orders to whoever reads a row, markup, and what a generator says about its text.

A request is an order too, so what is looked for are orders about instructions, about the choice of a tool as
such, about scores, and texts that pretend to be a system's. Upstream's own are reviewed.
"""

import re
from collections.abc import Iterator

from .decoded import Patterns, pattern_matches, readings, views

_NOT = r"(?:never|do not|don'?t|must not|should not|cannot|can'?t|refuse to|stop|avoid)"
_TOOL = r"(?:tools?|functions?|apis?|endpoints?|calls?)"
_CALL = (
    r"(?:us(?:e|ing)|call(?:ing)?|choos(?:e|ing)|select(?:ing)?|pick(?:ing)?|invok(?:e|ing)|prefer(?:ring)?)"
)
_READER = r"(?:reader|reviewer|judge|grader|rater|evaluator|annotator|model|llm|ai|assistant|agent|chatbot)s?"
_TEXTS = (
    r"(?:instructions?|prompts?|rules?|directions?|directives?|guidelines?|messages?|contexts?|orders?|commands?"
    r"|constraints?|polic(?:y|ies)|tools?|functions?|text|conversations?|requests?|quer(?:y|ies)|questions?"
    r"|above|below)"
)
_ROLES = r"(?:system|user|assistant|human|developer|instructions?|prompt|think(?:ing)?|obs|response)"


def _patterns(*rows: tuple[str, str]) -> Patterns:
    """Each row: its needles, separated by `|`, and the pattern."""
    return tuple((tuple(needles.split("|")), re.compile(pattern)) for needles, pattern in rows)


_ORDERS = _patterns(
    (  # to set other texts aside
        "ignor|disregard|forget|overrid",
        r"\bdisregard\b|\b(?:ignor(?:e|ing)|forget(?:ting)?|overrid(?:e|ing)) "
        rf"(?:everything|anything|whatever|what|the user|this|that|it|(?:\w+ ){{0,5}}{_TEXTS})\b",
    ),
    (  # not to do what is asked
        "never|not |n't|dont|refuse|stop|avoid",
        rf"\b{_NOT} (?:do|follow|execute?|obey|perform|comply|process|answer|act|respond|reply|help)"
        r"(?:ing)? ?(?:to|with|on)? ?"
        r"(?:the (?:following|user|request|query|question|task|above|below|next|rest)"
        r"|what follows|any ?(?:thing|of|request|question|quer)|this|that|these|it\b)",
    ),
    (  # which tool to choose
        "us|call|choos|select|pick|invok|prefer|other",
        rf"\b(?:always|only|{_NOT}) {_CALL} (?:this|that|it|another"
        rf"|the (?:first|second|last|other|right|correct)|no|any other|any|a|the) ?(?:one|{_TOOL})\b"
        rf"|\b{_CALL} (?:this|it) (?:instead|first|always|only|rather)\b"
        rf"|\b(?:any|all|the) other {_TOOL} (?:are|is|will|must|should)\b",
    ),
    (  # which answer is right
        "correct|right|expected|gold|intended|truth|decoy|distractor|perturbed",
        rf"\b(?:correct|right|expected|gold(?:en)?|intended|true) (?:{_TOOL}|answers?)"
        r" (?:is|are|will|should)\b|\bground[ -]truth\b"
        rf"|\bis the (?:only |very )?(?:correct|right|gold|expected|intended) {_TOOL}\b"
        r"|\b(?:is|are|was) (?:an? |the )*(?:decoys?|distractors?|perturbed)\b",
    ),
    (  # who the reader is, and what it is to reveal
        "you |from now on|instruction|prompt|jailbr|pretend",
        r"\byou (?:are now|(?:must|will|shall|should|may) (?:now|only|always|never|ignore|obey|refuse|not))\b"
        r"|\bfrom now on\b|\b(?:new|hidden|secret) instructions?\b|\bsystem prompts?\b|\bjailbr(?:eak|oken)"
        r"|\bpretend (?:to be|you)\b",
    ),
    (  # notes to readers, and scores
        "note|dear |if you are|score",
        rf"\b(?:notes? (?:to|for) (?:the |any |all )?|dear |if you are (?:an?|the) ){_READER}\b"
        r"|\b(?:give|assign|award) (?:it|this|these|both|the (?:pair|text|answer|row))[^.]{0,20}\bscore\b",
    ),
    (  # the marks of a chat template, and a system's voice
        "<|[|:|##",
        rf"<\|[\w ]{{2,40}}\|>|\[/?inst\]|<<?/?sys>>|</?s>|</?{_ROLES}>"
        r"|</?(?:tool|function)(?: (?:call|response))?>"
        r"|(?:^|[.!?] |\n)\s*(?:\[|\()?(?:system|assistant|developer|instructions?|ai)"
        r"(?: (?:message|note|prompt))?(?:\]|\))? ?:"
        rf"|##+ ?{_ROLES}\b",
    ),
    (  # what to reply
        "reply|respond|answer|output|say",
        r"\b(?:reply|respond|answer) (?:(?:only|just|exactly) )?with (?:only|just|exactly|nothing|the word)\b"
        r"|\b(?:reply|respond|answer) (?:only|just|exactly) with\b"
        r"|\b(?:output|say|print) (?:only|nothing but|just|exactly) ",
    ),
)

_TAGS = (
    "a abbr applet area article aside audio b base big blink blockquote body br button canvas center code "
    "col dd del details dialog div dl dt em embed fieldset font footer form frame frameset h1 h2 h3 h4 h5 h6 "
    "head header hr html i iframe img input ins kbd label legend li link main map mark marquee math meta "
    "meter nav noscript object ol optgroup option output p param picture pre progress q s samp script "
    "section select small source span strike strong style sub summary sup svg table tbody td template "
    "textarea tfoot th thead title tr track tt u ul var video wbr xml xmp"
)
_MARKUP = _patterns(
    (
        "<|script:|data:",
        rf"</?(?:{'|'.join(_TAGS.split())})(?=[\s/>])[^<>]{{0,200}}>?|<!--|<!\[cdata\[|<!doctype|<\?(?:php|xml)"
        r"|\b(?:java|vb)script:|\bdata:(?:text/html|image/svg|application/)",
    ),
    ("](", r"!\[[^\]]{0,80}\]\(|\]\(\s{0,3}(?:https?|javascript|data|file):"),
    ("{%|%}|${", r"\{%|%\}|\$\{jndi:|\$\{\{"),
)

_REMARKS = _patterns(
    (
        "i can|i'm|i am|i wo|i will|i must|as a",
        r"\bi(?: can ?not| can'?t|'?m (?:unable|not able) to| am (?:unable|not able) to| won'?t| will not"
        r"| must decline to) (?:help|assist|comply|fulfil|do (?:that|this|so)|provide|answer|rewrite)"
        r"|\bi(?:'?m| am) (?:sorry|afraid)\b[^.!?]{0,30}\b(?:i (?:can ?not|can'?t)|unable|not able)"
        r"|\bi must (?:respectfully )?decline\b"
        r"|\b(?:as|i'm|i am) an? (?:ai|artificial intelligence|(?:large )?language model|chatbot)\b",
    ),
    (
        "paraphras|rewrit|rewrote|reword|rephras",
        r"\b(?:here(?:'?s| is| are)|below is|sure[,!.:]|certainly[,!.:]|of course[,!.:]) [^\n]{0,40}"
        r"\b(?:paraphras|rewrit|rewrote|reword|rephras)"
        r"|\b(?:paraphrased?|rewritten|reworded|rephrased)(?: (?:query|text|version|request)\b|\s?:)",
    ),
)

PATTERNS = (*_ORDERS, *_MARKUP, *_REMARKS)


def instructions(text: str) -> Iterator[str]:
    """Yields orders to the reader, also those that stand encoded in the text (see `readings`)."""
    yield from pattern_matches(_ORDERS, readings(text))


def markup(text: str) -> Iterator[str]:
    """Yields HTML, links and template commands (see `views` for the spellings that are tried)."""
    yield from pattern_matches(_MARKUP, views(text))


def remarks(text: str) -> Iterator[str]:
    """Yields a generator's refusals and its remarks about the text, also encoded ones (see `readings`)."""
    yield from pattern_matches(_REMARKS, readings(text))
