"""The production evidence behind the types: is it all there, and does it still stand?"""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import msgspec

from robustbench_tc import taxonomy

from .checks import verdict
from .report import Check, Failure, TypeEvidence, check

VERDICTS = ("supports", "partly", "does_not", "not_found")
ROLES = ("cited", "alternative", "linked", "rehomed", "demoted")

FITTING = ("direct", "close")
"""How closely a supporting case must fit the type to count: an adjacent one supports another claim."""

Fetch = Callable[[str], tuple[int, str]]
"""Status and text of a page. Raises OSError where there is no connection."""


class Refetched(msgspec.Struct, frozen=True):
    """What a second look at a case found."""

    url: str
    type_codes: tuple[str, ...]
    outcome: str
    """`same title`, `other title`, `gone`, `status 429`, or `no connection: …`."""
    title: str


def audit(
    rows: Iterable[dict[str, Any]], codes: Iterable[str]
) -> tuple[list[Check], tuple[TypeEvidence, ...]]:
    """Checks over the published evidence table, and per type of `codes` how far it is supported."""
    cases = list(rows)
    of_type = {code: [case for case in cases if case.get("type_code") == code] for code in codes}
    broken = [
        Failure(f"{case.get('type_code')}: {case.get('repo')}#{case.get('number')}", what)
        for case in cases
        if (what := verdict(is_complete, case))
    ]
    bare = [
        Failure(code, "the table holds no case of this type") for code, found in of_type.items() if not found
    ]
    checks = [
        check(
            "evidence.every_type",
            "Every type says what in production it stands for, and what an audit of that claim found.",
            len(of_type),
            bare,
        ),
        check(
            "evidence.cases_are_complete",
            "Every case has its address, claim, verdict and role, so that anybody can look for himself.",
            len(cases),
            broken,
        ),
    ]
    return checks, tuple(summary(code, found) for code, found in of_type.items())


def summary(code: str, cases: list[dict[str, Any]]) -> TypeEvidence:
    """The cases of one type, counted."""
    good = [c for c in cases if c.get("verdict") == "supports" and c.get("construct_fit") in FITTING]
    return TypeEvidence(
        type_code=code,
        display_name=taxonomy.get(code).display_name,
        verdicts=_counted(VERDICTS, (str(case.get("verdict")) for case in cases)),
        roles=_counted(ROLES, (str(case.get("role")) for case in cases)),
        supporting=len(good),
        urls=tuple(dict.fromkeys(str(case.get("url")) for case in good)),
    )


def _counted(order: tuple[str, ...], found: Iterable[str]) -> dict[str, int]:
    counts = Counter(found)
    return {name: counts[name] for name in order if counts[name]}


def is_complete(case: dict[str, Any]) -> None:
    """Verdict, role, type, claim, note and day are there; a thread stands under its repository and number, a
    paper where it is published.

    A case that nobody found again has no address; it can support nothing.
    """
    known = case.get("verdict") in VERDICTS and case.get("role") in ROLES
    assert known, "its verdict or role is none of the known ones"
    assert case.get("type_code"), "it names no type"
    said = [str(case.get(name) or "").strip() for name in ("claim", "note")]
    assert all(said), "its claim or note is missing"
    dated = re.fullmatch(r"\d{4}-\d{2}-\d{2}", str(case.get("checked_on")))
    assert dated, "it does not say when it was looked at"
    url = case.get("url")
    if url is None:
        assert case["verdict"] == "not_found", "it has no address"
    elif case.get("kind") == "paper":
        paper = re.fullmatch(r"https://arxiv\.org/abs/\d{4}\.\d{4,5}", str(url))
        assert paper, "its address is not a paper's"
    else:
        thread = rf"/(?:issues|pull|discussions)/{case.get('number')}"
        place = rf"https://github\.com/{re.escape(str(case.get('repo')))}{thread}"
        assert re.fullmatch(place, str(url)), "its address is not that of its repository and number"


def refetch(
    cases: Iterable[dict[str, Any]], fetch: Fetch, progress: Callable[[str], None]
) -> list[Refetched]:
    """Looks at every distinct address again and compares the page's title with the recorded one.

    Three addresses in a row without a connection end it: then there is no network, and the rest says so.
    """
    by_url: dict[str, list[dict[str, Any]]] = {}
    for case in cases:
        if case.get("url"):
            by_url.setdefault(str(case["url"]), []).append(case)
    found: list[Refetched] = []
    lost = 0
    for url, same in by_url.items():
        codes = tuple(dict.fromkeys(str(case["type_code"]) for case in same))
        title = str(same[0].get("title") or "")
        if lost >= 3:
            outcome = "not tried: no connection"
        else:
            progress(url)
            outcome = _look(url, title, fetch)
            lost = lost + 1 if outcome.startswith("no connection") else 0
        found.append(Refetched(url, codes, outcome, title))
    return found


def _look(url: str, title: str, fetch: Fetch) -> str:
    try:
        status, page = fetch(url)
    except OSError as error:
        return f"no connection: {error}"[:120]
    if status in (404, 410):
        return "gone"
    if status != 200:
        return f"status {status}"
    there = re.search(r"<title[^>]*>(.*?)</title>", page[:200_000], re.DOTALL | re.IGNORECASE)
    found = _words(html.unescape(there.group(1))) if there else ""
    return "same title" if _words(title) and _words(title) in found else "other title"


def fetch_page(url: str) -> tuple[int, str]:
    """Status and text of a page. Raises OSError where there is no connection."""
    try:
        with urlopen(Request(url, headers={"User-Agent": "robustbench-tc"}), timeout=20) as reply:
            return reply.status, reply.read(2_000_000).decode("utf-8", "replace")
    except HTTPError as error:
        return error.code, ""


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
