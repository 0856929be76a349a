"""What upstream itself has and a person looked at: `reviewed.json`, hashes with a reason, no text.

A rule's find is reviewed together with the whole text that it stands in, so an edit of the text is a find
again; a credential is reviewed by its own string, which many dialogues share.
"""

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

SHIPPED = Path(__file__).with_name("reviewed.json")


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Finds of one rule that were let pass for one reason."""

    rule: str
    """A rule of `hygiene`, or a kind of credential."""
    source: str
    """Where they were met: a source of the benchmark, or `rlla`."""
    reason: str
    hashes: tuple[str, ...]


def fingerprint(rule: str, text: str) -> str:
    """16 hex digits of a find: over the rule and the text (for a credential the string itself)."""
    return hashlib.sha256(f"{rule}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


@cache
def groups(path: Path = SHIPPED) -> tuple[Group, ...]:
    """The reviewed finds as they are kept on disk, by rule, source and reason."""
    return msgspec.json.decode(path.read_bytes(), type=tuple[Group, ...])


@cache
def reviewed(path: Path = SHIPPED) -> frozenset[str]:
    """The fingerprints of everything that was reviewed."""
    return frozenset(one for group in groups(path) for one in group.hashes)


class Candidate(NamedTuple):
    """A find that nobody reviewed yet, for the eyes of whoever does."""

    rule: str
    """The rule, for a credential its kind."""
    source: str
    hash: str
    row: str
    found: str
    text: str


def unreviewed_groups(candidates: Iterable[Candidate]) -> bytes:
    """The finds as groups without a reason: who looked at them writes it and adds them to `reviewed.json`."""
    hashes: dict[tuple[str, str], set[str]] = {}
    for one in candidates:
        hashes.setdefault((one.rule, one.source), set()).add(one.hash)
    made = [
        Group(rule=rule, source=source, reason="", hashes=tuple(sorted(found)))
        for (rule, source), found in sorted(hashes.items())
    ]
    return msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"
