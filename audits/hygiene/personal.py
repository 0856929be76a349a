"""Data of persons: telephone numbers, bank accounts, payment cards, e-mail addresses.

What they look like stands where logs are imported; here a number that only may be one is left alone.
"""

import re
from collections.abc import Iterator

from robustbench_tc.own.logs.redact import PERSONAL, is_one

from .secrets import Match

_NUMBERS = re.compile(r"\d(?:[\s().\-]{0,4}\d){8}|[A-Z]{2}\d\d ?[A-Z0-9]{4}")
"""What every number of a person has: nine digits with little between them, or an account's beginning."""


def personal(text: str) -> Iterator[Match]:
    """Every number or address of a person in the text as it stands."""
    numbers = _NUMBERS.search(text) is not None
    for kind, pattern in PERSONAL.items():
        if not ("@" in text if kind == "email" else numbers):
            continue
        for match in pattern.finditer(text):
            value = match.group()
            # A phone number of fewer than nine digits is more often something else.
            is_long = kind != "phone" or sum(map(str.isdigit, value)) >= 9
            if is_long and is_one(kind, value):
                yield Match(kind, value, match.start())
