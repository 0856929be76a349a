"""Credential-like strings and e-mail addresses in rows, and which of them were reviewed.

Upstream dialogues hold made-up passwords, tokens and addresses that golden answers copy. Those are listed
once in `credential_allowlist.json` by hashes of (clean id, field, string): the list holds no text. In text
that a perturbation brought in, any find is a failure.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from robustbench_tc.schema import Sample, dumps

ALLOWLIST = Path(__file__).with_name("credential_allowlist.json")


class Pattern(NamedTuple):
    """A kind of credential-like string. Texts without any of the needles are not searched."""

    needles: tuple[str, ...]
    """In lower case; for `random` in the text's shape, where every letter and digit is an `a`."""
    regex: re.Pattern[str]
    """The group `value`, where there is one, is the string itself."""
    digits: int = 0
    """The string holds at least so many."""


_SECRETS = (
    r"pass(?:word|wd|code)?|secret|token|api[_ -]?key|access[_ -]?(?:key|token)|client[_ -]?secret|appid"
)

PATTERNS: dict[str, Pattern] = {
    "email": Pattern(
        ("@",),
        re.compile(
            r"[A-Za-z0-9._%+\-]{1,64}@[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{1,63}){0,4}\.[A-Za-z]{2,24}"
        ),
    ),
    "private_key": Pattern(("private key",), re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----")),
    "vendor_key": Pattern(
        ("sk-", "sk_", "pk-", "pk_", "rk_", "gh", "hf_", "akia", "xox", "aiza"),
        re.compile(
            r"\b(?:[sprk]k[-_][A-Za-z0-9_\-]{12,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}"
            r"|hf_[A-Za-z0-9]{16,}|AKIA[0-9A-Z]{12,}|xox[abprs]-[A-Za-z0-9\-]{10,}|AIza[\w\-]{20,})"
        ),
    ),
    "web_token": Pattern(("eyj",), re.compile(r"\beyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]+")),
    "bearer": Pattern(("bearer",), re.compile(r"(?i:\bbearer)\s{1,3}(?P<value>[\w\-.=]{8,})"), digits=1),
    "url_login": Pattern(("://",), re.compile(r"https?://[^/\s:@\"]{1,80}:[^/\s@\"]{1,80}@")),
    "assigned_text": Pattern(
        ("pass", "secret", "token", "key", "appid"),
        re.compile(
            rf"(?i:\b(?:{_SECRETS}))\b[\"'\\]{{0,3}}\s{{0,3}}[:=]\s{{0,3}}[\"'\\]{{1,3}}"
            r"(?P<value>[^\s\"'\\,}<{\]\[]{4,100})[\"'\\]"
        ),
    ),
    "assigned": Pattern(
        ("pass", "secret", "token", "key", "appid"),
        re.compile(
            rf"(?i:\b(?:{_SECRETS}))\b[\"'\\]{{0,3}}\s{{0,3}}(?:\bis\b|[:=]|\bas\b|\bto be\b)\s{{0,3}}"
            r"[\"'\\]{0,3}(?P<value>[^\s\"'\\,}<{\]\[]{4,100})"
        ),
        digits=1,
    ),
    "random": Pattern(("a" * 16,), re.compile(r"(?<![\w\-])[A-Za-z0-9]{16,}(?![\w\-])"), digits=3),
}
"""Kind → what it looks like."""

_SHAPE = bytes(ord("a") if chr(code).isalnum() and code < 128 else ord(" ") for code in range(256))

CONTEXT = 40
"""Characters around a changed passage that are searched with it: `password is` may stand before it."""


class Find(msgspec.Struct, frozen=True):
    """A credential-like string at its place. The string itself is never kept."""

    kind: str
    field: str
    """`messages/0`, `tools/2`, `golden_answers`."""
    hash: str


def finds(text: str, field: str) -> Iterator[Find]:
    """Every credential-like string of a text."""
    for kind, value, _ in _matches(text):
        yield Find(kind, field, _hash(value))


def shown(sample: Sample) -> Iterator[tuple[str, str, str]]:
    """Field, kind and string of every find of a clean row: for the eyes of whoever reviews them."""
    for field, text in _fields(sample):
        for kind, value, _ in _matches(text):
            yield field, kind, value


def redact(text: str) -> str:
    """The text with every credential-like string replaced: reports quote rows."""
    for kind, _, (start, end) in sorted(_matches(text), key=lambda match: match[2], reverse=True):
        text = f"{text[:start]}[{kind}]{text[end:]}"
    return text


def _matches(text: str) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Kind, string, and where it stands."""
    lowered = text.lower()
    shape = text.encode("ascii", "replace").translate(_SHAPE).decode()
    for kind, pattern in PATTERNS.items():
        looked_at = shape if kind == "random" else lowered
        for needle in pattern.needles:
            if needle in looked_at:
                break
        else:
            continue
        named = "value" in pattern.regex.groupindex
        for match in pattern.regex.finditer(text):
            value = match.group("value" if named else 0).rstrip(".,;:!?)")
            digits = sum(char.isdigit() for char in value) if pattern.digits else 0
            if digits >= pattern.digits and not (kind == "random" and value.isdigit()):
                start = match.start("value" if named else 0)
                yield kind, value, (start, start + len(value))


def in_clean(sample: Sample) -> Iterator[Find]:
    """The finds of a clean row, all fields."""
    for field, text in _fields(sample):
        yield from finds(text, field)


def _fields(sample: Sample) -> Iterator[tuple[str, str]]:
    for index, message in enumerate(sample.messages):
        yield f"messages/{index}", message.content
    for index, tool in enumerate(sample.tools):
        yield f"tools/{index}", dumps(tool)
    yield "golden_answers", dumps(sample.golden_answers)


def in_new_text(clean: Sample, row: Sample) -> Iterator[Find]:
    """The finds of a perturbed row in what differs from its clean row, if clean lacks the string."""
    new: list[Find] = []
    for index, message in enumerate(row.messages):
        before = clean.messages[index].content if index < len(clean.messages) else ""
        if message.content != before:
            new += finds(changed_passage(before, message.content), f"messages/{index}")
    if row.tools != clean.tools:
        for index, tool in enumerate(row.tools):
            if tool not in clean.tools:
                new += finds(dumps(tool), f"tools/{index}")
    if row.golden_answers != clean.golden_answers:
        new += finds(dumps(row.golden_answers), "golden_answers")
    if new:
        known = {find.hash for find in in_clean(clean)}
        yield from (find for find in new if find.hash not in known)


def changed_passage(before: str, after: str) -> str:
    """The part of `after` beyond the beginning and end that it shares with `before`, with some context."""
    head = _shared(before, after)
    tail = _shared(before[head:][::-1], after[head:][::-1])
    start = after.rfind(" ", 0, max(0, head - CONTEXT)) + 1  # whole words: half a string is another string
    end = after.find(" ", len(after) - max(0, tail - CONTEXT))
    return after[start : end if end >= 0 else len(after)]


def _shared(left: str, right: str) -> int:
    """Length of the common beginning, by halving: slices compare faster than characters."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def key(clean_id: str, find: Find) -> str:
    """The allow-list's entry for a find: hashes of the clean id and of the string, the field between them."""
    return f"{_hash(clean_id)}:{find.field}:{find.hash}"


@cache
def allowlist(path: Path = ALLOWLIST) -> frozenset[str]:
    """The reviewed entries."""
    return frozenset(msgspec.json.decode(path.read_bytes(), type=dict[str, tuple[str, ...]])["entries"])


def make_allowlist(samples: Iterable[Sample]) -> bytes:
    """The allow-list of these clean rows, to be reviewed and committed."""
    entries = sorted({key(sample.clean_id, find) for sample in samples for find in in_clean(sample)})
    return msgspec.json.format(msgspec.json.encode({"entries": entries}), indent=1) + b"\n"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
