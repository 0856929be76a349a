"""Every `rbtc …` that a page, a card or a help text shows is a command with such options."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from robustbench_tc.cli import _launch
from robustbench_tc.cli.verbs import VERBS
from robustbench_tc.option import Verb

from ..conftest import ROOT

SHOWN = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "Makefile",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "train_recipes").rglob("*.md")),
    *sorted((ROOT / "dataset_cards").glob("*.j2")),
]


def commands(text: str) -> Iterator[str]:
    """Lines of a block that begin with rbtc (a `\\` joins two), and `rbtc …` inside a line."""
    text = re.sub(r"\\\n\s*", " ", text)
    for line in re.findall(r"^\s*(?:\$\(BIN\)/)?(rbtc [^\n]*)", text, re.MULTILINE):
        yield from (part for part in re.split(r"\s+(?:#|&&|\||;)\s*", line) if part.startswith("rbtc "))
    yield from re.findall(r"`(rbtc [^`\n]+)`", text)


def problem(words: list[str]) -> str | None:
    """What is wrong with the words behind `rbtc`, or None."""
    command, rest = _launch.app(), words
    while rest and not rest[0].startswith("-") and rest[0] in command:
        command, rest = command[rest[0]], rest[1:]
    if command.default_command is None and rest and not rest[0].startswith("-"):
        return f"there is no {rest[0]}"
    arguments = [] if command.default_command is None else command.assemble_argument_collection()
    options = {name for one in arguments for name in one.names} | {
        "--help",
        "-h",
        "--version",
        "--install-completion",
    }
    for word in rest[: rest.index("--")] if "--" in rest else rest:
        name = word.partition("=")[0].strip(".,;:()")
        if re.fullmatch(r"--?[a-z][\w-]*", name) and name not in options:
            return f"{' '.join(words[: len(words) - len(rest)])} has no {name}"
    return None


@pytest.mark.parametrize("page", SHOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_shows_can_be_typed(page: Path) -> None:
    wrong = {
        command: found
        for command in commands(page.read_text())
        if (found := problem(command.split()[1:])) is not None
    }
    assert wrong == {}


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_examples_of_the_help_texts_can_be_typed(verb: Verb) -> None:
    for example in re.findall(r"Example: rbtc ([^\n]+)", verb.function.__doc__ or ""):
        assert problem(example.split()) is None, example


@pytest.mark.parametrize("words", ["evla x", "gate x --modle x", "gate x --max-drp 1"])
def test_the_check_sees_what_is_wrong(words: str) -> None:
    assert problem(words.split()) is not None
