"""From words to a verb that has run: cyclopts parses, the verb works under a spinner, its result is shown."""

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from cyclopts import App, CycloptsError, Parameter

from .. import __version__
from ..option import Verb
from . import _console, _derive
from ._derive import Given, WrongWords
from .verbs import VERBS

TITLE = "RobustBench-TC: does my tool-calling model survive deployment?"
FIRST = """\
Try it                 rbtc quickstart
Evaluate a model       rbtc eval robustbench-tc --model MODEL --base-url URL
Test your own agent    rbtc init
Every command          rbtc --help"""


@cache
def app() -> App:
    """The commands, made of the table of verbs."""
    panels = list(dict.fromkeys(verb.panel for verb in VERBS))
    whole = App(
        name="rbtc",
        help=TITLE,
        help_format="plaintext",
        version=f"rbtc {__version__}",
        result_action="return_value",
        group_commands=_derive.group("Shell", len(panels)),
        default_parameter=Parameter(
            negative_iterable=(),
            allow_repeating=True,  # the last counts, so that a script can be overridden
            show_default=lambda value: None if isinstance(value, bool) or value in (None, (), "") else value,
        ),
    )
    groups: dict[str, App] = {}
    for verb in VERBS:
        first, _, second = verb.name.partition(" ")
        panel = _derive.group(verb.panel, panels.index(verb.panel))
        if first not in groups:
            words = ", ".join(
                one.name.removeprefix(f"{first} ") for one in VERBS if one.name.startswith(f"{first} ")
            )
            groups[first] = App(
                name=first, help=words, group=panel, group_commands="Commands", sort_key=len(groups)
            )
            whole.command(groups[first])
        if second:
            groups[first].command(_derive.command(verb), name=second)
        else:
            groups[first].help = _derive.help_of(verb.function)
            groups[first].default(_derive.command(verb))
    whole.register_install_completion_command(help="Install completion for this shell.")
    return whole


def at_home(word: str) -> str:
    """`--out=~/a`, or a quoted `~/a`, with the user's home: no shell puts it in there."""
    return re.sub(r"^(--[\w-]+=)?~(?=/|$)", lambda found: (found[1] or "") + str(Path.home()), word)


def launch(words: list[str]) -> int:
    """Runs what the words say; its exit code. Raises WrongWords, and UserError of the verb."""
    if not words:
        _console.out.print(_console.styled(FIRST))
        return 0
    at = words.index("--") if "--" in words else len(words)
    try:
        given = app()(
            [*map(at_home, words[:at])], print_error=False, exit_on_error=False, console=_console.out
        )
    except CycloptsError as error:
        chain = " ".join(("rbtc", *(error.command_chain or ())))
        said, _, others = " ".join(str(error).split()).partition(" Available commands: ")
        if others and "Did you mean" not in said:
            said += f" Commands: {others}"
        raise WrongWords(f"{said} (see {chain} --help)") from None
    if not isinstance(given, Given):  # help or version, which cyclopts has printed
        return 0
    if theirs := tuple(words[at + 1 :]):  # another program's
        if given.verb.behind_dashes is None:
            raise WrongWords(f"rbtc {given.verb.name} takes no arguments after --")
        given.values[given.verb.behind_dashes] = theirs
    return run(given)


def run(given: Given) -> int:
    """Calls the verb and shows its result; the exit code."""
    for note in given.notes:
        _console.note(note)
    around, taken = given.verb.around or _working, inspect.signature(given.verb.function).parameters
    with around(given.verb, given.values) as offered:
        further = {name: one for name, one in offered.items() if name in taken}
        result = given.verb.function(**given.values, **further)
    if given.as_json:
        _console.json(result.json() if hasattr(result, "json") else result)
    else:
        _console.show(result)
    return int(getattr(result, "exit_code", 0))


@contextmanager
def _working(verb: Verb, values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A spinner while the verb works, if it tells of its progress; yields what the console offers a verb."""
    taken = inspect.signature(verb.function).parameters
    kept = verb.kept.format_map({name: one.default for name, one in taken.items()} | values)
    offered = {"say": _console.note, "ask": _console.ask}
    if "progress" not in taken:
        with _console.keeping(kept):
            yield offered
        return
    with _console.status(verb.doing or verb.name, kept) as tell:
        yield offered | {"progress": tell}
