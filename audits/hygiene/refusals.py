"""What a generator says instead of the text that it was asked for."""

import re
from collections.abc import Iterator

from .decoded import found, readings

_CANNOT = (
    "(?:can ?not|can'?t|am (?:not able|unable)|won'?t|will not|could ?n[o']t|must decline|have to decline)"
)
_PATTERNS = (
    (
        ("sorry", "afraid"),
        rf"\b(?:i(?:'?m| am) )?(?:very |so |really |truly )?(?:sorry|afraid)\b[^.!?]{{0,30}}"
        rf"\b(?:i {_CANNOT}|unable|not able)",
    ),
    (
        ("as a",),
        r"\bas an? (?:ai|artificial intelligence|(?:large )?language model|virtual assistant|chatbot)\b",
    ),
    (("i am", "i'm"), r"\bi(?:'?m| am) (?:just |only )?an? (?:ai|(?:large )?language model|chatbot)\b"),
    (
        ("i can", "i am", "i'm", "i wo", "i will", "i must"),
        r"\bi(?: can ?not| can'?t| ?a?'?m unable to| ?a?'?m not able to| won'?t| will not| must decline to) "
        r"(?:help|assist|comply|fulfil+|do (?:that|this|so)|provide|answer|rewrite|paraphrase|rephrase"
        r"|generate|create|complete|continue|process)",
    ),
    (
        ("decline", "apolog", "guidelines", "programming", "policy", "training data", "cutoff"),
        r"\bi must (?:respectfully )?decline\b|\bi apologi[sz]e,? (?:but|for)\b"
        r"|\bagainst my (?:guidelines|programming|policy)\b|\bmy (?:training data|knowledge cutoff)\b",
    ),
    (
        ("here", "below is", "sure", "certainly", "of course"),
        r"\b(?:here(?:'?s| is| are)|below is|sure[,!.:]|certainly[,!.:]|of course[,!.:]) [^.\n]{0,40}"
        r"\b(?:paraphras|rewrit|rewrote|reword|rephras|version of (?:the|your)|typos?\b)",
    ),
    (
        ("paraphras", "rewritten", "reworded", "rephrased"),
        r"\b(?:paraphrased?|rewritten|reworded|rephrased)(?: (?:query|text|version|sentence|description"
        r"|request)\b|\s?:)",
    ),
)
_REFUSALS = tuple((needles, re.compile(pattern)) for needles, pattern in _PATTERNS)


def refusals(text: str) -> Iterator[str]:
    """Yields a generator's refusals and its remarks about the text, also encoded ones (see `readings`)."""
    yield from found(_REFUSALS, readings(text))
