"""Pseudonyms in place of what `finds` finds: equal for equal, of the same shape and type, keyed by a secret.

`learn` everything first, then `apply`: a number that is known from one place is replaced at every other, in
whatever form it stands there.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from robustbench_tc.schema import Json

from .escapes import decoded
from .finds import Kind, bare, finds, is_card, is_phone, luhn, mod97
from .permute import changed

KEPT_DOMAINS = frozenset(
    "gmail.com googlemail.com yahoo.com hotmail.com outlook.com live.com msn.com icloud.com me.com aol.com "
    "proton.me protonmail.com gmx.de gmx.net gmx.com web.de mail.ru yandex.ru qq.com 163.com 126.com "
    "example.com example.org example.net".split()
)
"""Domains that are nobody's own."""
_SECOND = frozenset("co com org net gov edu ac or ne go gob nhs".split())
"""Labels that belong to the suffix where a country's stands behind them."""
_NAMED: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("phone", re.compile(r"(?:^|_)(?:phone|telephone|tel|mobile|cell|fax|whatsapp)(?:_?(?:number|no))?$")),
    ("account", re.compile(r"(?:^|_)(?:bank_)?account_?(?:number|no)$|(?:^|_)(?:iban|bban)$")),
    ("card", re.compile(r"(?:^|_)card_?(?:number|no)$")),
    ("key", re.compile(
        r"(?:^|_)(?:password|passwd|passphrase|api_?key|secret_?key|client_?secret|access_?token|auth_?token|"
        r"private_?key)$"
    )),
)  # fmt: skip
"""Parameters whose name says what they hold."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_RUN = re.compile(r"\+?[0-9](?:[ ()./-]{0,3}[0-9]){5,22}")
_DIGITS = re.compile(r"[0-9]+")
_WORD = re.compile(r"[^\s\"'<>()\[\]{},;]{6,4000}")
REMEMBERED = 1_000
"""Texts that are kept in mind."""
_CALLING = frozenset(
    "20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 "
    "82 84 86 90 91 92 93 94 95 98".split()
)
"""Country codes of two digits; 1 and 7 have one, the rest three."""


class Pseudonyms:
    """Replaces; `counts` says how many different ones of each kind were found."""

    def __init__(self, key: bytes, keep: Iterable[str] = ()) -> None:
        """`keep`: texts, such as a tools file's, whose finds are public and stay as they are."""
        self._key = key
        self._known: dict[str, tuple[Kind, str]] = {}
        """By what it is, small and without what separates: its kind, and what takes its place."""
        self._kept: set[str] = set()
        self._learned: dict[str, None] = {}
        self._texts: dict[str, str] = {}
        """Texts that were seen and what became of them: a log says its system message on every line."""
        for text in keep:
            view, _ = decoded(text)
            self._kept |= {_form(find.kind, view[find.begin : find.end]) for find in finds(view)}

    @property
    def counts(self) -> Counter[str]:
        """Different originals by kind."""
        return Counter(kind for kind, _ in self._known.values())

    # Learning

    def learn(self, value: Json) -> None:
        """Takes note of everything in a value: texts, numbers and keys, however deep."""
        for name, leaf in _leaves(value):
            text = leaf if isinstance(leaf, str) else str(leaf)
            if not name:
                if text in self._learned:
                    continue
                _remember(self._learned, text, None)
            view, _ = decoded(text)
            if (kind := _kind_of(name, view)) is not None:
                self._note(kind, view)
                continue
            for find in finds(view) if isinstance(leaf, str) or is_card(text) else ():
                self._note(find.kind, view[find.begin : find.end])

    def _note(self, kind: Kind, text: str) -> str:
        """What takes the place of a text, in the form that `_known` is keyed by."""
        form = _form(kind, text)
        if form in self._kept:
            return form
        if form not in self._known:
            self._known[form] = (kind, self._made(kind, form))
        return self._known[form][1]

    # Replacing

    def apply(self, value: Json, name: str = "") -> Json:
        """The value with pseudonyms; types stay."""
        if isinstance(value, str):
            return self.text(value, name)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int):
            return self._number(value, name)
        if isinstance(value, float):
            return float(self._number(int(value), name)) if value.is_integer() else value
        if isinstance(value, list):
            return [self.apply(one, name) for one in value]
        return {self.text(key): self.apply(one, key) for key, one in value.items()}

    def text(self, text: str, name: str = "") -> str:
        """A text with pseudonyms."""
        if name:
            return self._replaced(text, name)
        new = self._texts.get(text)
        if new is None:
            known = len(self._known)
            new = self._replaced(text, "")
            if len(self._known) > known:  # what was made of earlier texts did not know of it
                self._texts.clear()
            _remember(self._texts, text, new)
        return new

    def _replaced(self, text: str, name: str) -> str:
        view, places = decoded(text)
        spans: list[tuple[int, int, str]] = []
        if (kind := _kind_of(name, view)) is not None:
            spans.append((0, len(view), self._note(kind, view)))
        else:
            for find in finds(view):
                form = self._note(find.kind, view[find.begin : find.end])
                spans.append((find.begin, find.end, form))
        spans += self._known_in(view, spans)
        out, at = [], 0
        for begin, end, form in sorted(spans):
            out.append(text[at : places[begin]])
            out.append(_shaped(view[begin:end], form, text, places[begin : end + 1]))
            at = places[end]
        return "".join([*out, text[at:]])

    def _known_in(self, view: str, spans: list[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
        """What is known from elsewhere and no pattern finds here."""
        if not self._known:
            return
        taken = bytearray(len(view))
        for begin, end, _ in spans:
            taken[begin:end] = b"\1" * (end - begin)
        for begin, end, known in (*self._known_runs(view), *self._known_words(view)):
            if taken.find(1, begin, end) < 0:
                taken[begin:end] = b"\1" * (end - begin)
                yield begin, end, known

    def _known_runs(self, view: str) -> Iterator[tuple[int, int, str]]:
        """Known numbers; one that stands right beside another number too."""
        for match in _RUN.finditer(view):
            groups = [(found.start(), found.end()) for found in _DIGITS.finditer(view, *match.span())]
            first = 0
            while first < len(groups):
                for last in range(len(groups) - 1, first - 1, -1):
                    begin, end = groups[first][0], groups[last][1]
                    if (known := self._known_digits(view[begin:end])) is not None:
                        yield begin, end, known
                        first = last
                        break
                first += 1

    def _known_words(self, view: str) -> Iterator[tuple[int, int, str]]:
        for match in _WORD.finditer(view):
            for found in dict.fromkeys((match[0], match[0].rstrip(".:!?"))):
                if (known := self._known_key(found)) is not None:
                    yield match.start(), match.start() + len(found), known
                    break

    def _known_key(self, text: str) -> str | None:
        known = self._known.get(text)
        if known is None or known[0] != "key" or (text.isalpha() and len(text) < 16):
            return None  # a password that is a word says nothing where it stands alone
        return known[1]

    def _known_digits(self, text: str) -> str | None:
        form = bare(text)
        known = self._known.get(form) or self._known.get(form.removeprefix("00"))
        return known[1] if known is not None and known[0] != "key" else None

    def _number(self, value: int, name: str) -> int:
        text = str(value)
        kind = _kind_of(name, text)
        if kind is None and is_card(text) and text[0] in "23456":
            kind = "card"
        form = self._note(kind, text) if kind is not None else self._known_digits(text)
        if form is None or not form.isdecimal() or len(form) != len(text):
            return value
        return int(form)

    # Making

    def _made(self, kind: Kind, form: str) -> str:
        if kind == "email":
            return self._email(form)
        if kind == "key":
            return self._secret(form)
        if kind == "iban":
            body = changed(self._key, "iban", form[4:])
            return f"{form[:2]}{98 - mod97(form[:2] + '00' + body):02d}{body}"
        if kind == "card":
            body = changed(self._key, "card", form[:-1], lambda at: at < 6)
            return body + str((10 - luhn(body + "0")) % 10)
        if kind == "phone":
            kept = _calling(form)
            return changed(self._key, "phone", form, lambda at: at < kept)
        return changed(self._key, "account", form, lambda at: at < 1)

    def _email(self, form: str) -> str:
        local, _, domain = form.rpartition("@")
        if domain not in KEPT_DOMAINS:
            labels = domain.split(".")
            suffix = 2 if len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND else 1
            head = ".".join(labels[:-suffix])
            domain = ".".join([changed(self._key, "domain", head), *labels[-suffix:]])
        return f"{changed(self._key, 'local ' + domain, local)}@{domain}"

    def _secret(self, form: str) -> str:
        """A key's prefix stays (`sk-`, `ghp_`): what it is of is no secret."""
        prefix = re.match(r"(?:AKIA|ASIA|ABIA|ACCA|AIza|eyJ|[A-Za-z]{2,6}[-_.])?", form)
        kept = prefix.end() if prefix and len(form) > 16 else 0
        small = changed(self._key, "key", _small(form), lambda at: at < kept)
        return form[:kept] + _capitals(small[kept:], form[kept:])


def _small(text: str) -> str:
    """In small letters, as long as it is."""
    if text.isascii():
        return text.lower()
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


def _capitals(text: str, like: str) -> str:
    return "".join(a.upper() if b.isupper() else a for a, b in zip(text, like, strict=True))


def _remember(found: dict[str, Any], text: str, value: Any) -> None:
    if len(found) >= REMEMBERED:
        found.clear()
    if len(text) <= 100_000:
        found[text] = value


def _form(kind: Kind, text: str) -> str:
    """The same for equal ones, whatever capitals, separators, `+` or `00` they are written with."""
    if kind == "key":
        return text
    if kind == "email":
        return _small(text)
    found = bare(text)
    if kind == "phone" and text.lstrip().startswith("00"):
        return found[2:]
    return found


def _shaped(view: str, form: str, text: str, places: list[int]) -> str:
    """`form` written as `view` is: its separators, a leading `00` and capitals, escapes of what stays."""
    whole = len(form) == len(view)
    skip = 0 if whole else len(bare(view)) - len(form)
    rest = iter(form)
    out = []
    for at, char in enumerate(view):
        raw = text[places[at] : places[at + 1]]
        if not whole and (not char.isalnum() or skip > 0):
            skip -= char.isalnum()
            out.append(raw)
            continue
        new = next(rest, char)
        new = new.upper() if char.isupper() else new
        out.append(raw if new == char else new)
    return "".join(out)


def _calling(number: str) -> int:
    """Digits that stay: the country code of a number that has one; it is decided by the digits alone."""
    if number[0] == "0":
        return 2
    if number[0] in "17" or len(number) < 9:
        return 1
    return 2 if number[:2] in _CALLING else 3


def _kind_of(name: str, text: str) -> Kind | None:
    """What a parameter of this name holds, where its value can be that."""
    if not name or not text.strip():
        return None
    words = re.sub(r"[^a-z0-9]+", "_", _CAMEL.sub("_", name).lower()).strip("_")
    for kind, pattern in _NAMED:
        if not pattern.search(words):
            continue
        digits = sum(map(str.isdecimal, text))
        if kind == "key":
            return "account" if text.isdecimal() else kind
        if kind == "phone" and is_phone(text) and not re.search(r"[A-Za-z@]", text):
            return kind
        if kind in ("account", "card") and digits >= 6 and re.fullmatch(r"[0-9 -]+", text):
            return "card" if is_card(text) else "account"
    return None


def _leaves(value: Json) -> Iterator[tuple[str, Any]]:
    """Every text and whole number with the key that it stands under, keys of objects too."""
    stack: list[tuple[str, Json]] = [("", value)]
    while stack:
        name, one = stack.pop()
        if isinstance(one, dict):
            stack += one.items()
            stack += [("", key) for key in one]
        elif isinstance(one, list):
            stack += [(name, inner) for inner in one]
        elif isinstance(one, str) or (isinstance(one, int) and not isinstance(one, bool)):
            yield name, one
        elif isinstance(one, float) and one.is_integer():
            yield name, int(one)
