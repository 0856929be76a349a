"""Every `rbtc …` that a page, a card or a help text shows is a command with such options."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from robustbench_tc.cli import _app

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


def problem(command: Any, words: list[str]) -> str | None:
    """What is wrong with the words, or None."""
    while words and hasattr(command, "commands"):
        if words[0] in command.commands:
            command, words = command.commands[words[0]], words[1:]
        elif command.name == "audit":  # `rbtc audit BUILD` is `rbtc audit build BUILD`
            command = command.commands["build"]
        elif command.invoke_without_command or words[0].startswith("-"):
            break
        else:
            return f"there is no {words[0]}"
    options = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    for word in words:
        name = word.partition("=")[0].strip(".,;:()")
        if re.fullmatch(r"--?[a-z][\w-]*", name) and name not in options | {"--help", "-h"}:
            return f"{command.name} has no {name}"
    return None


@pytest.mark.parametrize("page", SHOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_shows_can_be_typed(page: Path) -> None:
    app = get_command(_app())
    wrong = {
        command: found
        for command in commands(page.read_text())
        if (found := problem(app, command.split()[1:])) is not None
    }
    assert wrong == {}


def test_examples_of_the_help_texts_can_be_typed() -> None:
    app, seen = get_command(_app()), 0

    def walk(command: Any) -> None:
        nonlocal seen
        for example in re.findall(r"Example: (rbtc [^\n]+)", command.help or ""):
            seen += 1
            assert problem(app, example.split()[1:]) is None, example
        for inner in getattr(command, "commands", {}).values():
            walk(inner)

    walk(app)
    assert seen >= 25


@pytest.mark.parametrize(
    "words", ["evla x", "eval --modle x", "build --sede 1", "list typs", "leaderboard sreve"]
)
def test_the_check_sees_what_is_wrong(words: str) -> None:
    assert problem(get_command(_app()), words.split()) is not None
