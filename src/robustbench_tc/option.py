"""Verbs and their options, declared once: marks on a function that make a command of it (`cli._derive`)."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin

from .errors import UserError, unknown

Struct = TypeVar("Struct")

Tell = Callable[[str], None]
"""Is given lines of progress."""


def silent(line: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """What the command line needs to know of a parameter beside its name, type and default."""

    help: str
    """One sentence or two: the same in every verb that has the option."""
    panel: str = ""
    """The heading that it stands under."""
    name: str = ""
    """On the command line, where Python cannot have the word: `type` for `--type`."""
    typed: Any = None
    """Its type on the command line, where Python takes more (`Path` for `str | Path | Run`)."""
    dashed: bool = False
    """Whether it is an option on the command line although Python takes it by its place too."""
    at_least: float | None = None
    read: Callable[[Sequence[str]], Any] | None = None
    """Makes the value of the words, one for each time that the option is given. Raises UserError."""
    typed_only: bool = False
    """Whether a settings file may not have it."""
    is_file: bool = False
    """Whether a settings file names it relative to its own folder."""


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A function that is a command of `rbtc`.

    Its keyword parameters that are `Annotated` with an `Option` are options, those before them arguments. A
    parameter without an `Option` is for programs alone; the command line gives those that it knows by name:
    `progress` (lines of progress), `say` (a line that stays) and `ask` (a question).
    """

    name: str
    """The words behind `rbtc`: `eval`, `cases import`."""
    function: Callable[..., Any]
    """Returns what is printed: see `shown.Result`."""
    panel: str = ""
    """The heading of `rbtc --help` that it stands under."""
    doing: str = ""
    """What is said while it works: `auditing`."""
    kept: str = "what is on disk is whole, run the same command again"
    """What is said after Ctrl-C: what stays and how to go on. `{out}` is the option's value."""
    as_json: bool = True
    """Whether its command has `--json`."""
    rest: str | None = None
    """The parameter that takes the names of a settings file (`--config`) which are no option; a verb without
    one has no such file."""
    behind_dashes: str | None = None
    """The parameter that takes the words behind `--`."""
    around: Callable[..., Any] | None = None
    """In the place of the spinner: a context manager over the verb's values, which yields further ones."""


def listed(words: Sequence[str]) -> tuple[str, ...]:
    """Names, comma-separated or given several times."""
    return tuple(part for word in words for part in word.split(",") if part)


def options(verb: Callable[..., Any]) -> Iterator[tuple[inspect.Parameter, Option]]:
    """The parameters of a verb that the command line can give."""
    for parameter in inspect.signature(verb).parameters.values():
        for note in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(note, Option):
                yield parameter, note


def check(verb: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Holds a call from Python to the numbers and words that the command line takes. Raises UserError."""
    for parameter, option in options(verb):
        value, least, hint = values[parameter.name], option.at_least, get_args(parameter.annotation)[0]
        if value is None:
            continue
        if least is not None and not value >= least:  # so that nan is refused too
            raise UserError(f"{parameter.name} {value}: give {least:g} or more")
        kinds = [kind for kind in (hint, *get_args(hint)) if get_origin(kind) is Literal]
        if kinds and value not in get_args(kinds[0]):
            raise unknown(parameter.name, value, get_args(kinds[0]))


def struct_of(kind: type[Struct], values: Mapping[str, Any]) -> Struct:
    """The struct, or typed dict, of those of a verb's values whose names it has."""
    return kind(**{name: values[name] for name in inspect.get_annotations(kind)})
