"""Personal data of logs: numbered reserved values take its place, the same one for the same value.

Found are mail addresses, phone numbers, cards, IBANs and keys, by their form and check digits, and what the
user's own patterns find. Names of people have no form: they are not found.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

from robustbench_tc.schema import Json

PERSONAL = {
    "email": re.compile(
        r"[^\W_][\w.+'-]{0,63}(?:@|%40|\\u0040|&#64;)(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}"
    ),
    "phone": re.compile(
        r"(?<![\w.+\-/])(?:\+\d{1,3}[\s.\-]?(?:\(\d{1,4}\)[\s.\-]?)?(?:\d{1,5}[\s.\-]?){2,5}\d{2,4}"
        r"|(?:1[\s.\-])?(?:\(\d{3}\)\s?|\d{3}[\s.\-])\d{3}[\s.\-]\d{4})(?![\w\-/]|\.\d)"
    ),
    "iban": re.compile(
        r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?(?![A-Za-z0-9])"
    ),
    "card": re.compile(r"(?<![\w.+-])[2-6](?:[ -]?[0-9]){12,18}(?![\w-]|\.[0-9])"),
}
"""What looks like data of a person, as it is usually written: `is_one` says whether it is. For audits too."""
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("key", r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]{0,20000}(?:-----END [A-Z ]{0,30}-----)?)"),
        (
            "key",
            r"(?i)\b(?:password|passwd|passphrase|api[_ -]?key|secret[_ -]?key|client[_ -]?secret|"
            r"(?:access|auth)[_ -]?token)\b[\"']{0,2}(?:\s{0,3}[:=]\s{0,3}|\s{1,3}is\s{1,3}:?\s{0,3})"
            r"[\"']{0,2}([^\s\"',;]{5,400}[^\s\"',;.:?!])",
        ),
        ("key", r"(?i)\bbearer\s{1,3}([A-Za-z0-9._~+/=-]{16,4000})"),
        (
            "key",
            r"(?<![A-Za-z0-9])((?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,400}|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,40}"
            r"|gh[pousr]_[A-Za-z0-9]{16,255}|github_pat_[A-Za-z0-9_]{16,255}|glpat-[A-Za-z0-9_-]{10,100}"
            r"|hf_[A-Za-z0-9]{16,100}|xox[abeoprs]-[A-Za-z0-9-]{10,250}|AIza[A-Za-z0-9_-]{20,60}"
            r"|ya29\.[A-Za-z0-9_-]{20,400}|npm_[A-Za-z0-9]{20,60}|SG\.[A-Za-z0-9_.-]{20,100}"
            r"|eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{4,8000}(?:\.[A-Za-z0-9_-]{0,4000})?)",
        ),
        ("email", PERSONAL["email"].pattern),
        ("iban", r"(?i)(?<![A-Za-z0-9])([A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]){11,30})(?![A-Za-z0-9])"),
        ("card", PERSONAL["card"].pattern),
        (
            "phone",
            r"(?<![\w+.])((?:\+|00) ?\(?[1-9][0-9]{0,14}\)?(?: ?\(0\) ?[0-9]*)?(?:[ ()./-]{1,3}[0-9]+)?"
            r"(?:[ ()./-]{1,3}[0-9]{2,})*(?![0-9])"
            r"|(?<!-)(?:1[ .-])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[ .-])[2-9][0-9]{2}[ .-][0-9]{4}(?![\w-])"
            r"|(?<!-)\(?0[1-9][0-9]{1,4}\)?(?:[ /-]{1,3}[0-9]{2,8}){1,4}(?![\w-])"
            r"|(?<!-)0[1-9](?:[ .][0-9]{2}){4}(?![\w-]))",
        ),
        (
            "phone",
            r"(?i)\b(?:phone|telephone|tel|mobile|cell|fax|whatsapp)\b[^0-9+\n]{0,24}"
            r"([+(]?[0-9]+(?:[ ()./-]{1,3}[0-9]{2,})*)",
        ),
        ("phone", PERSONAL["phone"].pattern),
    )
)
"""What is found, in this order; group 1, where there is one, is the value."""
_NAMES = {
    "phone": re.compile(r"(?i)(?:phone|mobile|cell|fax|whatsapp|(?:^|_)tel)(?:[_ -]?(?:number|no))?$"),
    "key": re.compile(
        r"(?i)(?:password|passwd|passphrase|(?:api|secret|private)_?key|client_?secret|(?:access|auth)_?token)$"
    ),
}
"""Parameters whose name says what they hold."""
_WORD = re.compile(r"[0-9]{7,}|[^\s\"'<>()\[\]{},;]{5,400}[^\s\"'<>()\[\]{},;.:?!]")
_LAST_PART = re.compile(r"(?:[ ()./-]+|^\W*)\w*$")


class Redactor:
    """Replaces. A value is known from where it was found first: what is written before may still hold it in
    another form, so everything is applied twice, and what came out of the first time is dropped."""

    def __init__(self, own: Iterable[Any] = (), keep: Iterable[str] = ()) -> None:
        """`own`: patterns of the user's; `keep`: public texts, whose finds stay as they are."""
        self._patterns = (*_PATTERNS, *(("redacted", pattern) for pattern in own))
        self._known: dict[str, str | None] = {}
        """By its `_form` what takes the place of a value; None where it stays."""
        self.counts: Counter[str] = Counter()
        """Different values by kind."""
        for text in keep:
            self.text(text)
        self._known = dict.fromkeys(self._known)
        self.counts.clear()

    def apply(self, value: Json, name: str = "") -> Json:
        """The value with reserved ones in it, of the same JSON type; `name`: the key that it stands under."""
        if isinstance(value, dict):
            return {self.text(key): self.apply(one, key) for key, one in value.items()}
        if isinstance(value, list):
            return [self.apply(one, name) for one in value]
        if isinstance(value, bool) or not isinstance(value, str | int):
            return value
        text = self.text(str(value), name)
        return text if isinstance(value, str) else int("".join(re.findall(r"^-|\d", text)))

    def text(self, text: str, name: str = "") -> str:
        """A text with reserved values in it."""
        for kind, pattern in _NAMES.items() if name and text.strip() else ():
            if pattern.search(name) and is_one(kind, text):
                return self._replaced(kind, text)
        for kind, pattern in self._patterns:
            text = pattern.sub(partial(self._found, kind), text)
        return _WORD.sub(self._known_word, text)

    def _found(self, kind: str, match: re.Match[str]) -> str:
        """What a pattern found, its value replaced."""
        begin, value = match.start(match.lastindex or 0) - match.start(), match[match.lastindex or 0]
        while value and not is_one(kind, value):  # other numbers may stand behind it
            value = _LAST_PART.sub("", value)
        replaced = self._replaced(kind, value) if value else ""
        return match[0][:begin] + replaced + match[0][begin + len(value) :]

    def _known_word(self, match: re.Match[str]) -> str:
        """A word, or what takes its place where it is a number or a key that was found elsewhere."""
        word = match[0]
        says_nothing = word.isalpha() and len(word) < 16  # a password that is a word of the language
        return word if says_nothing else self._known.get(word.removeprefix("00")) or word

    def _replaced(self, kind: str, value: str) -> str:
        """What takes the place of a value."""
        form = _form(kind, value)
        if form not in self._known:
            number = self.counts[kind] = self.counts[kind] + 1
            card, bank = f"424242{424242423 + number}", f"WEST{12345698765431 + number}"
            reserved = {  # of example.com, of the numbers for films, of test cards, of no bank
                "email": f"user{number}@example.com",
                "phone": f"{'1' * (len(form) > 10)}{212 + number // 100 % 700}55501{number % 100:02}",
                "card": card + str(-luhn(card + "0") % 10),
                "iban": f"GB{98 - mod97('GB00' + bank):02}{bank}",
            }
            self._known[form] = value_of_nobody = reserved.get(kind, f"{kind}{number}")
            self._known.setdefault(_form(kind, value_of_nobody))  # it is found no more
        found = self._known[form]
        return value if found is None else f"+{found}" if value.startswith("+") else found


def is_one(kind: str, text: str) -> bool:
    """Whether what looks like a phone number, a card or an IBAN is one; what looks like a key always is."""
    form = _form(kind, text)
    if kind == "phone":
        return form.isdecimal() and 7 <= len(form) <= (11 if text.startswith("+1") else 15)
    if kind == "card":
        return 13 <= len(form) <= 19 and len(set(form)) > 1 and luhn(form) == 0
    return kind != "iban" or (15 <= len(form) <= 34 and mod97(form) == 1)


def _form(kind: str, text: str) -> str:
    """The same for equal values, whatever separates their parts."""
    if kind in ("phone", "card", "iban"):
        return re.sub(r"^\s*00|\W", "", text).upper()
    return re.sub(r"%40|\\u0040|&#64;", "@", text).lower() if kind == "email" else text.rstrip(".:?!")


def luhn(number: str) -> int:
    """The sum of Luhn's rule, modulo 10: 0 for a whole number with its check digit."""
    digits = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(number))]
    return sum(digit - 9 * (digit > 9) for digit in digits) % 10


def mod97(iban: str) -> int:
    """An IBAN's number modulo 97: 1 for one with its check digits."""
    return int("".join(str(int(char, 36)) for char in iban[4:] + iban[:4])) % 97
