"""Data of persons: telephone numbers, bank accounts, payment cards, e-mail addresses.

Numbers with check digits are looked for with them, so that an order number is not a card.
"""

import re
from collections.abc import Iterator

from robustbench_tc.own.logs.redact import luhn, mod97

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
            if sum(char.isdigit() for char in value) >= pattern.digits and _CHECKS.get(kind, bool)(value):
                yield Match(kind, value, match.start())


def _card(text: str) -> bool:
    """Luhn's check digit, over more than one digit again and again."""
    digits = re.sub(r"\D", "", text)
    return len(set(digits)) > 1 and luhn(digits) == 0


def _iban(text: str) -> bool:
    """ISO 13616: 15 to 34 characters, and 1 modulo 97."""
    plain = text.replace(" ", "")
    return 15 <= len(plain) <= 34 and mod97(plain) == 1


_CHECKS = {"phone": lambda text: sum(map(str.isdigit, text)) <= 15, "card": _card, "iban": _iban}
