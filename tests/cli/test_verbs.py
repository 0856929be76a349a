"""Verbs are declared once: each option has one meaning wherever it stands, and one place."""

import inspect
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from robustbench_tc.cli import _derive, _launch
from robustbench_tc.cli.verbs import VERBS
from robustbench_tc.option import Option, Verb, listed

from ..conftest import ROOT


def option_places() -> Iterator[tuple[str, Option]]:
    for verb in VERBS:
        for one in _derive.declared(verb.function):
            if not one.is_argument:
                yield one.shown, one.option


def test_an_option_name_has_one_meaning_over_all_verbs() -> None:
    meanings: dict[str, set[str]] = defaultdict(set)
    for name, option in option_places():
        meanings[name].add(option.help)
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}


def test_there_are_at_most_48_commands() -> None:
    """`list` takes a word and counts once."""
    counted = {"list" if verb.name.startswith("list ") else verb.name for verb in VERBS}
    assert len(counted) <= 48


def test_what_several_verbs_share_is_declared_in_one_place() -> None:
    places: dict[str, set[int]] = defaultdict(set)
    for name, option in option_places():
        places[name].add(id(option))
    assert {name for name, found in places.items() if len(found) > 1} == set()


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_parameter_is_an_option_or_for_programs(verb: Verb) -> None:
    known = {one.name for one in _derive.declared(verb.function)}
    taken = inspect.signature(verb.function).parameters
    unsaid = {name for name, one in taken.items() if name not in known and one.default is one.empty}
    assert unsaid == set(), "a required parameter that the command line cannot give"
    assert {verb.rest, verb.behind_dashes} - {None} <= set(taken)
    assert (verb.function.__doc__ or "").strip()


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
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


@pytest.mark.parametrize("words", [(), ("--help",), ("--version",)])
def test_the_first_words_answer(rbtc: Callable[..., Any], words: tuple[str, ...]) -> None:
    done = rbtc(*words)
    assert done.code == 0 and done.out and done.err == ""


def test_wrong_words_exit_2_with_one_line_and_the_near_miss(rbtc: Callable[..., Any]) -> None:
    for words, hint in ((("gate", "x", "--max-drp", "1"), "--max-drop"), (("gat",), "gate")):
        done = rbtc(*words)
        assert done.code == 2 and done.err.count("\n") == 1 and hint in done.err


def test_of_an_option_given_twice_the_last_counts_and_lists_add_up() -> None:
    words = ["eval", "x", "--limit", "1", "--limit", "2", "--types", "CD", "--types", "TD,AB"]
    given = _launch.app()(words, print_error=False, exit_on_error=False)
    assert (given.values["limit"], given.values["types"]) == (2, ["CD", "TD", "AB"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_every_option(shell: Literal["bash", "zsh", "fish"]) -> None:
    script = _launch.app().generate_completion(shell=shell)
    assert {name for name, _ in option_places() if name.strip("-") not in script} == set()


def test_no_hand_written_command_is_left() -> None:
    found = [
        path.name for path in (ROOT / "src/robustbench_tc/cli").glob("*.py") if "typer" in path.read_text()
    ]
    assert found == []


HELP = """
import sys
from robustbench_tc.cli import main
sys.argv = ["rbtc", "--help"]
try:
    main()
finally:
    heavy = {"pyarrow", "datasets", "duckdb", "numpy", "openai", "great_expectations"}
    print(sorted(heavy & set(sys.modules)))
"""


def test_help_needs_no_heavy_room() -> None:
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
