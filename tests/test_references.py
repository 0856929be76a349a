"""Every page and section that a docstring, a comment or a printed text names is one that a clone holds."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import ROOT
from .test_layout import ROOMS

PRODUCT = (*ROOMS, "src", "docs", "scripts", "benchmarks", ".ci")
TEXTS = {".md", ".j2", ".jinja", ".sql", ".yaml", ".yml", ".toml", ".sh", ".txt", ".css", ".html", ""}

GENERATED = {"README.md", "build_report.md", "report.md", "results.md", "audit_report.md"}
"""Pages that commands write: a text may name them, no clone has to hold them."""

PAGE = re.compile(r"[\w./-]*\w\.md\b(?!\.)")
SECTION = re.compile(
    r"(?:(?P<page>[\w./-]*\w\.md)\)?,?\s+)?(?P<word>§+ ?|[Ss]ections? )"
    r"(?P<numbers>\d[\d.]*(?:(?:, | and | to |–)\d[\d.]*)*)"
)
ISSUE = re.compile(r"\b[Ii]ssue \d+\b|\bscope \d+\b|\(#\d+\)")


def texts() -> Iterator[tuple[Path, str]]:
    """What people read of the product: whole pages and queries, of Python files comments and strings."""
    seen = set()
    for place in PRODUCT:
        for path in sorted((ROOT / place).rglob("*")):
            real = path.resolve()
            if not path.is_file() or real in seen or "__pycache__" in path.parts or "bundled" in path.parts:
                continue
            seen.add(real)
            if path.suffix == ".py":
                yield path, "\n".join(said(path.read_text()))
            elif path.suffix in TEXTS:
                yield path, path.read_text()
    for name in ("README.md", "CHANGELOG.md", "Makefile", "pyproject.toml", "CITATION.cff", "NOTICE"):
        yield ROOT / name, (ROOT / name).read_text()


def said(source: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            yield token.string


def page_of(name: str, page: Path) -> Path | None:
    """The page that a name means: beside the text, in docs/ or docs/spec/, or from the root."""
    for base in (page.parent, ROOT / "docs", ROOT / "docs" / "spec", ROOT):
        if (base / name).is_file():
            return base / name
    return None


def sections(page: Path) -> set[str]:
    """The numbers of its headings."""
    return set(re.findall(r"^#+ (\d+(?:\.\d+)*)\.? ", page.read_text(), re.MULTILINE))


def problems(path: Path, text: str) -> Iterator[str]:
    ours = re.sub(r"https://\S+", "", text)  # a page of others is not looked for
    for name in PAGE.findall(ours):
        if page_of(name, path) is None and Path(name).name not in GENERATED:
            yield f"names the page {name}"
    for found in SECTION.finditer(text):
        before = text[max(0, found.start() - 60) : found.start()]
        # The paper's own sections have the word in front; the page of deviations speaks of no others.
        if not found["page"] and (re.search(r"[Pp]aper[^.]*$", before) or path.name == "deviations.md"):
            continue
        page = page_of(found["page"], path) if found["page"] else path if path.suffix == ".md" else None
        for number in re.findall(r"\d+(?:\.\d+)*", found["numbers"]):
            if page is None or number not in sections(page):
                yield f"refers to {found[0]!r}"
    for found in ISSUE.finditer(text):
        yield f"refers to {found[0]!r}"


def test_what_is_referred_to_is_there() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} {problem}" for path, text in texts() for problem in problems(path, text)
    ]
    assert wrong == []


def test_links_of_the_pages_lead_somewhere() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", *(ROOT / "train_recipes").rglob("*.md")]
    assert len(pages) >= 15
    for page in pages:
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


GENERATED_BLOCK = re.compile(r"(?s)<!-- ([^:>]+?)(?:: written by [^>]*)? -->.*?<!-- (?:end of |/)\1 -->")
"""A part of a page that a program writes between two marks."""

MOST_WORDS_A_PAGE, MOST_WORDS = 2_500, 35_000


def written_by_hand(page: str) -> int:
    """The words of a page, as `wc -w` counts them, without what a program writes."""
    if re.search(r"\A# .*\n\nWritten by `make", page):
        return 0
    return len(GENERATED_BLOCK.sub("", page).split())


def test_the_pages_are_short() -> None:
    docs = ROOT / "docs"
    words = {
        page.relative_to(docs).as_posix(): written_by_hand(page.read_text("utf-8"))
        for page in docs.rglob("*.md")
    }
    assert words["types.md"] == words["levels.md"] == 0 < words["audits.md"]
    assert {name: count for name, count in words.items() if count > MOST_WORDS_A_PAGE} == {}
    assert sum(words.values()) <= MOST_WORDS, sorted(words.items(), key=lambda pair: pair[1])


@pytest.mark.parametrize(
    "text",
    [
        "see benchmark.md §99",
        "see benchmark.md, section 6.1",
        "(scoring.md sections 1.2 and 99)",
        "see section 3",
        "as §6 says",
        "see nowhere.md",
        "left out (issue 4, scope 2)",
    ],
)
def test_the_check_sees_what_is_wrong(text: str) -> None:
    assert list(problems(ROOT / "eval" / "run.py", text))


@pytest.mark.parametrize(
    "text",
    [
        "benchmark.md §6",
        "scoring.md sections 1.2 and 9",
        "docs/data.md",
        "the paper, §6.2",
        "the paper's section 4",
    ],
)
def test_the_check_leaves_the_rest_alone(text: str) -> None:
    assert not list(problems(ROOT / "eval" / "run.py", text))


def test_the_specification_is_ours(shared: Path) -> None:
    """Facts carry over, sentences do not: no run of ten words is also one of the founders' pages."""

    def runs(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"[a-zà-ü]{2,}", re.sub(r"`[^`]*`|\|.*\|", " ", text).lower())
        return {tuple(words[at : at + 10]) for at in range(len(words) - 9)}

    theirs: set[tuple[str, ...]] = set()
    for page in (shared / "spec").glob("*.md"):
        theirs |= runs(page.read_text())
    for page in (ROOT / "docs" / "spec").glob("*.md"):
        assert not runs(page.read_text()) & theirs, page
