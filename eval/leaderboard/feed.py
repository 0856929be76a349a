"""The board's news as Atom: what was listed, verified, hidden or withdrawn, newest first."""

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

import msgspec

LATEST = 50
"""Entries of the feed."""

_TAG = "tag:robustbench-tc,2026:"
"""Ids stay the same wherever the board moves."""


class News(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened on the board."""

    at: str
    """UTC, ISO 8601 with its offset: Atom's own form."""
    what: str
    """listed, reproduced, endpoint-matched, hidden or withdrawn: part of the entry's id."""
    about: str
    """The submission's id."""
    title: str
    text: str
    page: str
    """The path of its page."""


def feed(news: Iterable[News], address: str) -> str:
    """The feed of a board at `address` (scheme and host): valid Atom, at most LATEST entries."""
    latest = sorted(news, key=lambda one: (one.at, one.about, one.what), reverse=True)[:LATEST]
    updated = latest[0].at if latest else "2026-01-01T00:00:00+00:00"
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        "<title>RobustBench-TC leaderboard</title>",
        f"<id>{_TAG}board</id>",
        f"<updated>{_text(updated)}</updated>",
        f'<link rel="self" type="application/atom+xml" href={_quoted(address + "/feed.xml")}/>',
        f'<link rel="alternate" type="text/html" href={_quoted(address + "/")}/>',
        "<author><name>RobustBench-TC leaderboard</name></author>",
    ]
    for one in latest:
        lines += [
            "<entry>",
            f"<id>{_TAG}{_text(one.about)}/{_text(one.what)}</id>",
            f"<title>{_text(one.title)}</title>",
            f"<updated>{_text(one.at)}</updated>",
            f'<link rel="alternate" type="text/html" href={_quoted(address + one.page)}/>',
            f"<summary>{_text(one.text)}</summary>",
            "</entry>",
        ]
    return "\n".join([*lines, "</feed>", ""])


def _text(text: str) -> str:
    return escape(_allowed(text))


def _quoted(text: str) -> str:
    return quoteattr(_allowed(text))


def _allowed(text: str) -> str:
    """Without the characters that XML 1.0 has not, even escaped."""
    return "".join(
        c
        for c in text
        if c in "\t\n" or (c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff")
    )
