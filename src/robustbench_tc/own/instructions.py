"""Texts of a tool that speak to the model instead of describing the tool: what an attacker would plant.

Deliberately narrow: `docs/own-lint.md` says what is looked for, and what it finds in public registries.
"""

import re

_SAID: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (what, re.compile(pattern, re.IGNORECASE))
    for what, pattern in (
        (
            "tells the model to disregard what it was told",
            r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|other|all)"
            r"\b.{0,20}\b(?:instructions?|prompts?|messages?|rules|tools)\b",
        ),
        (
            "tells the model to hide something from the user",
            r"\b(?:do not|don't|never|without)\b.{0,20}\b(?:tell|inform|mention|reveal|notify|alert)"
            r"\w*\b.{0,40}\b(?:user|customer|human|person)\b",
        ),
        (
            "tells the model when to call it",
            r"\balways (?:call|use|invoke|prefer|choose|select|run) (?:this|it)\b|"
            r"\b(?:before|instead of) (?:using|calling|any use of) (?:any|all|every|the) other tools?\b|"
            r"\byou (?:must|have to|are required to|should always) (?:first |always )?"
            r"(?:call|use|invoke|run) (?:this|it)\b",
        ),
        (
            "asks for secrets or the conversation",
            r"\b(?:send|include|pass|append|upload|forward|provide)\b.{0,60}\b(?:system prompt|chat history|"
            r"conversation history|entire conversation|private key|ssh key|\.ssh|\.env\b)",
        ),
        ("imitates a system message", r"<\|?(?:im_start|system|important)\|?>|\[/?(?:INST|SYSTEM)\]|<<SYS>>"),
    )
)
_HIDDEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
"""Characters that no reader sees, or that turn the order in which he reads."""

LONGEST = 20_000
"""Characters of a text that are looked at."""


def found(text: str) -> str | None:
    """What a text does that a description should not; None where it only describes."""
    text = text[:LONGEST]
    if _HIDDEN.search(text):
        return "holds characters that nobody sees"
    plain = " ".join(text.split())
    return next((what for what, pattern in _SAID if pattern.search(plain)), None)
