"""Where a text holds an e-mail address, a phone, card or account number, or a key.

What is found has a pattern, and a check digit where the kind has one. Names and addresses have none.
"""

import re
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["email", "phone", "card", "iban", "account", "key"]


class Find(msgspec.Struct, frozen=True):
    """One of them in a text."""

    kind: Kind
    begin: int
    end: int


_DATE = re.compile(r"[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}")
MOST_DIGITS = 15
"""Of a phone number."""
_LONGEST = 400
"""Characters around an `@` that are looked at: no address is longer."""
_LOCAL = re.compile(r"[^\W_][\w.+'-]{0,63}$")
_DOMAIN = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_]{2,24}(?![^\W_])")

_KEYS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|pk|rk)[-_](?:ant-|proj-|live_|test_|live-|test-)?[A-Za-z0-9_-]{12,400}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,40}|gh[pousr]_[A-Za-z0-9]{16,255}|github_pat_[A-Za-z0-9_]{20,255}"
    r"|glpat-[A-Za-z0-9_-]{16,100}|hf_[A-Za-z0-9]{16,100}|xox[abeoprs]-[A-Za-z0-9-]{10,250}"
    r"|AIza[A-Za-z0-9_-]{30,60}|ya29\.[A-Za-z0-9_-]{20,400}|npm_[A-Za-z0-9]{30,60}|SG\.[A-Za-z0-9_.-]{20,100}"
    r"|eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{4,8000}(?:\.[A-Za-z0-9_-]{0,4000})?)"
)
_PRIVATE = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----\s*([^-]{1,20000})")
_STATED = re.compile(
    r"(?i)\b(?:password|passwd|passphrase|api[_ -]?key|secret[_ -]?key|client[_ -]?secret|access[_ -]?token|"
    r"auth[_ -]?token)\b[\"']{0,2}(?:\s{0,3}[:=]\s{0,3}|\s{1,3}is\s{1,3}:?\s{0,3})[\"']{0,2}"
    r"([^\s\"',;]{6,400})"
)
_BEARER = re.compile(r"(?i)\bbearer\s{1,3}([A-Za-z0-9._~+/=-]{16,4000})")

_IBAN = re.compile(r"(?i)(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]){11,30}(?![A-Za-z0-9])")
_CARD = re.compile(r"(?<![\w.+-])[2-6](?:[ -]?[0-9]){12,18}(?![\w-]|\.[0-9])")
_ISBN = re.compile(r"(?i)(?<![\w-])(?:97[89][- ]?)?[0-9](?:[- ]?[0-9]){8}[- ]?[0-9X](?![\w-])")
_ISBN_CUE = re.compile(r"(?i)isbn[^0-9]{0,12}$")

_PHONES = (
    re.compile(
        r"(?<![\w+.])(?:\+|00)[ ]?\(?[1-9][0-9]{0,14}\)?(?:[ ]?\(0\)[ ]?[0-9]*)?"
        r"(?:[ ()./-]{1,3}[0-9]+)?(?:[ ()./-]{1,3}[0-9]{2,})*"
    ),
    re.compile(
        r"(?<![\w.-])(?:1[ .-])?(?:\([2-9][0-9]{2}\)[ ]?|[2-9][0-9]{2}[ .-])"
        r"[2-9][0-9]{2}[ .-][0-9]{4}(?![\w-])"
    ),
    re.compile(r"(?<![\w.+-])\(?0[1-9][0-9]{1,4}\)?(?:[ /-]{1,3}[0-9]{2,8}){1,4}(?![\w-])"),
    re.compile(r"(?<![\w.+-])0[1-9](?:[ .][0-9]{2}){4}(?![\w-])"),
)
_PHONE_CUE = re.compile(
    r"(?i)\b(?:phone|telephone|tel|mobile|cell|fax|whatsapp)\b[^0-9+\n]{0,24}"
    r"([+(]?[0-9]+(?:[ ()./-]{1,3}[0-9]{2,})*)"
)
_ACCOUNT_CUE = re.compile(
    r"(?i)\b(?:bank )?(?:account|acct|a/c) ?(?:number|no\.?|nr\.?|#)[^0-9\n]{0,12}"
    r"([0-9](?:[ -]?[0-9]){5,16})(?![\w-])"
)


def finds(text: str) -> list[Find]:
    """What is found in a text, in its order; what overlaps an earlier kind is not found twice."""
    found: list[Find] = []
    taken = bytearray(len(text))
    for match in _ISBN.finditer(text) if any(map(str.isdecimal, text)) else ():
        if _is_isbn(match, text):
            taken[match.start() : match.end()] = b"\1" * len(match[0])
    for find in _all(text):
        if taken.find(1, find.begin, find.end) < 0:
            taken[find.begin : find.end] = b"\1" * (find.end - find.begin)
            found.append(find)
    return sorted(found, key=lambda find: find.begin)


def _all(text: str) -> Iterator[Find]:
    for pattern in (_PRIVATE, _STATED, _BEARER):
        for match in pattern.finditer(text):
            yield Find("key", match.start(1), match.start(1) + len(match[1].rstrip(".:?")))
    yield from (Find("key", match.start(), match.end()) for match in _KEYS.finditer(text))
    yield from _emails(text)
    if not any(map(str.isdecimal, text)):
        return
    for match in _IBAN.finditer(text):
        if end := _longest(match, is_iban):
            yield Find("iban", match.start(), end)
    yield from (Find("card", m.start(), m.end()) for m in _CARD.finditer(text) if is_card(m[0]))
    for pattern in _PHONES:
        yield from _phones(pattern, 0, text)
    yield from _phones(_PHONE_CUE, 1, text)
    yield from (Find("account", *match.span(1)) for match in _ACCOUNT_CUE.finditer(text))


def _phones(pattern: re.Pattern[str], group: int, text: str) -> Iterator[Find]:
    """Numbers, without what stands behind one and is none of its digits any more."""
    for match in pattern.finditer(text):
        found = match[group]
        most = 11 if re.match(r"(?:\+|00) ?\(?1", found) else MOST_DIGITS  # +1 and ten more
        while sum(map(str.isdecimal, found.removeprefix("00"))) > most and (
            cut := re.search(r"[^0-9]+[0-9]+$", found)
        ):
            found = found[: cut.start()]
        if is_phone(found):
            yield Find("phone", match.start(group), match.start(group) + len(found))


def _emails(text: str) -> Iterator[Find]:
    at = text.find("@")
    while at >= 0:
        if at and text[at + 1 : at + 2].isalnum() and not text[at - 1].isspace():
            domain = _DOMAIN.match(text, at + 1, at + _LONGEST)
            local = _LOCAL.search(text, max(0, at - 65), at) if domain else None
            if local and domain:
                yield Find("email", local.start(), domain.end())
        at = text.find("@", at + 1)


def _longest(match: re.Match[str], holds: Callable[[str], bool]) -> int:
    """Where the longest part from the match's beginning ends that holds; 0 where none does."""
    text = match[0]
    for end in range(len(text), 14, -1):
        if (end == len(text) or text[end] in " -") and holds(text[:end]):
            return match.start() + end
    return 0


def bare(text: str) -> str:
    """Its letters and digits, in small letters."""
    return "".join(char for char in text if char.isalnum()).lower()


def is_card(text: str) -> bool:
    """Whether the digits are those of a card: length, first digit, check digit (Luhn)."""
    found = bare(text)
    return found.isascii() and found.isdecimal() and 13 <= len(found) <= 19 and luhn(found) == 0


def luhn(number: str) -> int:
    """The sum of Luhn's rule, modulo 10: 0 for a whole number with its check digit."""
    total = 0
    for place, digit in enumerate(reversed(number)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 * (value > 9)
    return total % 10


def is_iban(text: str) -> bool:
    """Whether the letters and digits are an IBAN: length, and the check digits modulo 97."""
    found = bare(text)
    return 15 <= len(found) <= 34 and found[:2].isalpha() and found[2:4].isdecimal() and mod97(found) == 1


def mod97(iban: str) -> int:
    """The IBAN's number modulo 97."""
    return int("".join(str(int(char, 36)) for char in iban[4:] + iban[:4])) % 97


def is_phone(text: str) -> bool:
    """Whether the digits are as many as a phone number has, and it is no date."""
    return 7 <= sum(map(str.isdecimal, text)) <= 15 and not re.fullmatch(
        r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}", text
    )


def _is_isbn(match: re.Match[str], text: str) -> bool:
    found = bare(match[0])
    if len(found) == 13 and found.isdecimal():
        return sum(int(digit) * (1, 3)[n % 2] for n, digit in enumerate(found)) % 10 == 0
    if len(found) != 10 or not (
        "-" in match[0] or _ISBN_CUE.search(text, max(0, match.start() - 20), match.start())
    ):
        return False
    values = [10 if char == "x" else int(char) for char in found]
    return sum(value * (10 - n) for n, value in enumerate(values)) % 11 == 0
