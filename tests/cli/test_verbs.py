"""Verbs are declared once: each option has one meaning wherever it stands, and one place."""

import inspect
import io
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from rich.table import Table

from robustbench_tc.cli import _console, _derive, _launch, _tables, verbs
from robustbench_tc.option import Option, Verb, listed

from ..conftest import ROOT


def option_places() -> Iterator[tuple[str, Option]]:
    for verb in verbs.VERBS:
        for one in _derive.declared(verb.function):
            if not one.is_argument:
                yield one.shown, one.option


def test_there_are_at_most_48_commands() -> None:
    """`list` takes a word and counts once."""
    counted = {"list" if verb.name.startswith("list ") else verb.name for verb in verbs.VERBS}
    assert len(counted) <= 48


def test_what_several_verbs_share_is_declared_in_one_place() -> None:
    places: dict[str, set[int]] = defaultdict(set)
    for name, option in option_places():
        places[name].add(id(option))
    assert {name for name, found in places.items() if len(found) > 1} == set()


@pytest.mark.parametrize("verb", verbs.VERBS, ids=lambda verb: verb.name)
def test_every_parameter_is_an_option_or_for_programs(verb: Verb) -> None:
    known = {one.name for one in _derive.declared(verb.function)}
    taken = inspect.signature(verb.function).parameters
    unsaid = {name for name, one in taken.items() if name not in known and one.default is one.empty}
    assert unsaid == set(), "a required parameter that the command line cannot give"
    assert {verb.rest, verb.behind_dashes} - {None} <= set(taken)
    assert (verb.function.__doc__ or "").strip()


@pytest.mark.parametrize("verb", verbs.VERBS, ids=lambda verb: verb.name)
def test_the_command_has_what_its_function_declares(verb: Verb) -> None:
    command = _launch.app()
    for word in verb.name.split():
        command = command[word]
    found = {one.names[0]: one.parameter.help for one in command.assemble_argument_collection()}
    own = {"--config": verb.rest is not None, "--json": verb.as_json}
    assert {name for name in own if name in found} == {name for name, there in own.items() if there}
    declared = {one.shown: one.option.help for one in _derive.declared(verb.function)}
    assert {name: said for name, said in found.items() if name not in own} == declared


def body(words: Sequence[str]) -> dict[str, Any]:
    return dict.fromkeys(words, 1)


def one(
    word: Annotated[str, Option(help="A word.")] = "",
    /,
    *,
    top_p: Annotated[float, Option(help="P.")] = 1.0,
    types: Annotated[tuple[str, ...], Option(help="Types.", read=listed)] = (),
    system: Annotated[Path | None, Option(help="A file.", is_file=True)] = None,
    headers: Annotated[tuple[str, ...], Option(name="header", help="NAME=VALUE.", read=listed)] = (),
    fresh: Annotated[bool, Option(help="Anew.", typed_only=True)] = False,
    extra_body: Annotated[dict[str, Any] | None, Option(help="JSON.", read=body)] = None,
) -> dict[str, Any]:
    """Do it.

    Raises UserError.
    """
    return {"word": word, "top_p": top_p, "types": types, "system": system, "extra_body": extra_body}


def given(*words: str) -> dict[str, Any]:
    from cyclopts import App

    app = App(result_action="return_value")
    app.default(_derive.command(Verb(name="one", function=one, rest="extra_body")))
    values: dict[str, Any] = app(list(words), print_error=False, exit_on_error=False).values
    return values


@pytest.mark.parametrize("word", ["header", "headers"])
def test_no_value_of_a_header_goes_into_the_requests(tmp_path: Path, word: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f'min_p = 0.1\n[{word}]\nX-Key = "secret"\n')
    found = given("--config", str(file), "--extra-body", "seed")
    assert found == {"headers": ("X-Key=secret",), "extra_body": {"min_p": 0.1, "seed": 1}}


def test_the_command_line_wins_over_a_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('top-p = 0.5\ntypes = ["CD", "TD,AB"]\nsystem = "s.txt"\nmin_p = 0.1\n')
    found = given("w", "--top-p", "0.9", "--config", str(file))
    assert found == {
        "word": "w",
        "top_p": 0.9,
        "types": ("CD", "TD", "AB"),
        "system": tmp_path / "s.txt",
        "extra_body": {"min_p": 0.1},
    }
    assert given("--types", "CD,TD", "--types", "AB") == {"types": ("CD", "TD", "AB")}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fresh = true", "can only be given on the command line"),
        ('top_p = "much"', "top_p"),
        ("top_p = 1\ntop-p = 1", "twice"),
        ("top_p =", "--config"),
    ],
)
def test_a_settings_file_is_held_to_the_same_words(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    with pytest.raises(_derive.WrongWords, match=said):
        given("--config", str(file))


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_the_first_words_answer(rbtc: Callable[..., Any], words: tuple[str, ...]) -> None:
    done = rbtc(*words)
    assert done.code == 0 and done.out and done.err == ""


def test_of_an_option_given_twice_the_last_counts_and_lists_add_up() -> None:
    words = ["eval", "x", "--limit", "1", "--limit", "2", "--types", "CD", "--types", "TD,AB"]
    given = _launch.app()(words, print_error=False, exit_on_error=False)
    assert (given.values["limit"], given.values["types"]) == (2, ["CD", "TD", "AB"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_every_option(shell: Literal["bash", "zsh", "fish"]) -> None:
    script = _launch.app().generate_completion(shell=shell)
    assert {name for name, _ in option_places() if name.strip("-") not in script} == set()


HELP = """
import sys
from robustbench_tc.cli import main
sys.argv = ["rbtc", "--help"]
try:
    main()
finally:
    heavy = {"pyarrow", "datasets", "duckdb", "numpy", "openai", "pandas", "great_expectations"}
    print(sorted(heavy & set(sys.modules)))
"""


def test_help_needs_no_heavy_room() -> None:
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


# --- Every `rbtc …` that a page, a card or a help text shows is a command with such options -----------


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


@cache
def options_of(*words: str) -> set[str]:
    """What the command of these words takes; cyclopts needs a while to say it."""
    command = _launch.app()
    for word in words:
        command = command[word]
    arguments = [] if command.default_command is None else command.assemble_argument_collection()
    own = {"--help", "-h", "--version", "--install-completion"}
    return own | {name for one in arguments for name in one.names}


def problem(words: list[str]) -> str | None:
    """What is wrong with the words behind `rbtc`, or None."""
    command, rest = _launch.app(), words
    while rest and not rest[0].startswith("-") and rest[0] in command:
        command, rest = command[rest[0]], rest[1:]
    if command.default_command is None and rest and not rest[0].startswith("-"):
        return f"there is no {rest[0]}"
    options = options_of(*words[: len(words) - len(rest)])
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


@pytest.mark.parametrize("verb", verbs.VERBS, ids=lambda verb: verb.name)
def test_examples_of_the_help_texts_can_be_typed(verb: Verb) -> None:
    for example in re.findall(r"Example: rbtc ([^\n]+)", verb.function.__doc__ or ""):
        assert problem(example.split()) is None, example


@pytest.mark.parametrize("words", ["evla x", "gate x --modle x", "gate x --max-drp 1"])
def test_the_check_sees_what_is_wrong(words: str) -> None:
    assert problem(words.split()) is not None


# --- Tables on consoles of any width: no number loses digits, no id is broken, a pipe has a line per row


ID = "bfcl_v3__BFCL_v3_live_multiple__live_multiple_110-43-0::paraphrase_parameter_description"
ROWS = [
    ("CD_AB", "0.812", "+0.123", "[+0.010, +0.236]", "two words", ""),
    (ID, "1.000", "-1.000", "[-1.000, -1.000]", "", "5e-21"),
]
NAMES = ("type", "A", "B − A", "95 %", "why", "p (Holm)")


def shown(width: int, rows: Sequence[tuple[str, ...]] = ROWS) -> list[str]:
    console = (
        _console.SafeConsole(pipe=True) if width == _tables.UNBOUNDED else _console.SafeConsole(width=width)
    )
    file = console.file = io.StringIO()
    table = Table(title="a table", title_justify="left")
    table.add_column(NAMES[0], no_wrap=True)
    for name in NAMES[1:]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [20, 40, 60, 79, 80, 100, 120, 140, 200, _tables.UNBOUNDED])
def test_every_word_of_every_cell_is_there_whole(width: int) -> None:
    lines = shown(width)
    words = " ".join(lines).split()
    for row in ROWS:
        for cell in row:
            if cell != ID or width > len(ID):
                assert all(word in words for word in cell.split()), cell
    assert "…" not in "".join(lines)
    assert max(map(len, lines)) <= width
    assert ID in "".join(line.strip() for line in lines)  # a longer one goes on in the next line


def test_a_pipe_has_a_line_for_each_row() -> None:
    lines = shown(_tables.UNBOUNDED)
    for row in ROWS:
        assert sum(all(cell in line for cell in row) for line in lines) == 1
    assert max(map(len, lines)) < 250


def test_a_narrow_console_breaks_between_words_first_and_drops_the_rules_then() -> None:
    short = ROWS[:1]
    whole = max(map(len, shown(_tables.UNBOUNDED, short)))
    assert any("[+0.010, │" in line for line in shown(whole - 1, short))
    without_rules = shown(48, short)
    assert not any("│" in line for line in without_rules)
    assert any(line.split()[:4] == ["CD_AB", "0.812", "+0.123", "[+0.010,"] for line in without_rules)
    stacked = shown(36, short)
    assert stacked[1:] == [
        "CD_AB",
        "  A 0.812   B − A +0.123",
        "  95 % [+0.010, +0.236]",
        "  why two words",
    ]


def test_an_empty_table_and_one_of_hostile_cells_are_shown() -> None:
    assert shown(20, [])
    text = "\n".join(shown(30, [("[bold]x[/bold]\x1b[31m", "a\nb", "", "", "", "")]))
    assert "[bold]x[/bold]" in text and "\x1b" not in text
