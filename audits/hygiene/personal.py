"""Data of persons: telephone numbers, bank accounts, payment cards, e-mail addresses.

Numbers with check digits are looked for with them, so that an order number is not a card.
"""

import re
from collections.abc import Iterator

from robustbench_tc.own.logs.redact import is_one

from .secrets import Match, Pattern

PATTERNS: dict[str, Pattern] = {
    "email": Pattern(
        ("@",),
        re.compile(
            r"[A-Za-z0-9._%+\-]{1,64}@[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{1,63}){0,4}\.[A-Za-z]{2,24}"
        ),
    ),
    "phone": Pattern(
        (),
        re.compile(
            r"(?<![\w.+\-/])(?:\+\d{1,3}[\s.\-]?(?:\(\d{1,4}\)[\s.\-]?)?(?:\d{1,5}[\s.\-]?){2,5}\d{2,4}"
            r"|(?:1[\s.\-])?(?:\(\d{3}\)\s?|\d{3}[\s.\-])\d{3}[\s.\-]\d{4})(?![\w\-/]|\.\d)"
        ),
        digits=9,
    ),
    "iban": Pattern(
        (),
        re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?(?![A-Za-z0-9])"),
    ),
    "card": Pattern((), re.compile(r"(?<![\w.+\-])[2-6](?:[ \-]?\d){12,18}(?![\w\-]|\.\d)")),
}

_NUMBERS = re.compile(r"\d(?:[\s().\-]{0,4}\d){8}|[A-Z]{2}\d\d ?[A-Z0-9]{4}")
"""What every number of a person has: nine digits with little between them, or an account's beginning."""


def personal(text: str) -> Iterator[Match]:
    """Every number or address of a person in the text as it stands."""
    numbers = _NUMBERS.search(text) is not None
    for kind, pattern in PATTERNS.items():
        if not ("@" in text if pattern.needles else numbers):
            continue
        for match in pattern.regex.finditer(text):
            value = match.group()
            if sum(char.isdigit() for char in value) >= pattern.digits and is_one(kind, value):
                yield Match(kind, value, match.start())
