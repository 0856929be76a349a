"""Commands made of functions: the options, help, panels and settings of a verb come from its declaration."""

import inspect
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
from cyclopts import Group, Parameter, validators

from ..errors import UserError, unknown
from ..option import Option, Verb, options

_OUTPUT = Group("Output", sort_key=99)
_CONFIG = Parameter(
    help="Options from a TOML file (top_p = 0.9); the command line wins.", group=_OUTPUT, negative=()
)
_JSON = Parameter(name="--json", negative=(), help="Print the result as JSON.", group=_OUTPUT)


@cache  # cyclopts refuses two groups of one name, also where they are equal
def group(name: str, place: int) -> Group:
    """The heading of that name."""
    return Group(name, sort_key=place)


class WrongWords(UserError):
    """An option's words that cannot be read: exit code 2."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """A verb with the values that it was given, ready to be called."""

    verb: Verb
    values: dict[str, Any]
    as_json: bool
    notes: list[str] = field(default_factory=list)
    """What to say before it begins."""


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A parameter of a verb that the command line has as an option, or as an argument."""

    name: str
    hint: Any
    default: Any
    is_argument: bool
    option: Option

    @property
    def shown(self) -> str:
        """Its name on the command line."""
        word = self.option.name or self.name.replace("_", "-")
        return word.upper() if self.is_argument else f"--{word}"

    def parameter(self, panels: list[str]) -> inspect.Parameter:
        """The command's parameter."""
        option = self.option
        facts = Parameter(
            name=self.shown,
            help=option.help,
            validator=() if option.at_least is None else (validators.Number(gte=option.at_least),),
            negative=None if self.default is True else (),
        )
        hint, default = self.hint, self.default
        if option.read is not None:  # pydantic, where it is imported, holds the default against the hint
            hint, default = tuple[str, ...], default if default is inspect.Parameter.empty else ()
        kind: Any = inspect.Parameter.KEYWORD_ONLY
        if self.is_argument:
            kind, heading = inspect.Parameter.POSITIONAL_ONLY, Parameter()
        else:
            heading = Parameter(group=group(option.panel or "Options", panels.index(option.panel)))
        return inspect.Parameter(self.name, kind, default=default, annotation=Annotated[hint, facts, heading])

    def parse_words(self, words: Any, where: str = "") -> Any:
        """The value for the words. Raises WrongWords, which names the option."""
        if self.option.read is None:
            return words
        try:
            return self.option.read(words)
        except UserError as error:
            raise WrongWords(f"{where}{self.shown}: {error}") from None

    def of_file(self, value: Any, file: Path) -> Any:
        """The value for what a TOML file says. Raises WrongWords."""
        where = f"--config {file}: "
        if self.option.is_file:
            value = str(file.parent / str(value))
        if self.option.read is not None:
            pairs = value.items() if isinstance(value, dict) else ()
            listed = value if isinstance(value, list) else [value]
            words = [f"{key}={_word(one)}" for key, one in pairs] or [_word(one) for one in listed]
            return self.parse_words(words, where)
        try:
            return msgspec.convert(value, self.hint, dec_hook=lambda kind, text: kind(text))
        except (msgspec.ValidationError, TypeError) as error:
            raise WrongWords(f"{where}{self.name}: {error}") from None


def _word(value: Any) -> str:
    """A value of a file as it would be typed."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def declared(verb: Callable[..., Any]) -> Iterator[Declared]:
    """The parameters of a verb but for those that a program alone gives."""
    for one, option in options(verb):
        yield Declared(
            name=one.name,
            hint=get_args(one.annotation)[0] if option.typed is None else option.typed,
            default=one.default,
            is_argument=not (one.kind is one.KEYWORD_ONLY or option.dashed),
            option=option,
        )


def help_of(function: Callable[..., Any]) -> str:
    """The docstring but for what is for programs: what it raises, and examples in Python."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    return "\n\n".join(one for one in paragraphs if not one.startswith(("Raises ", ">>>")))


def command(verb: Verb) -> Callable[..., Given]:
    """The function that cyclopts is given for a verb: options in, the verb with its values out."""
    known = {one.name: one for one in declared(verb.function)}
    arguments = [one for one in known.values() if one.is_argument]
    panels = list(dict.fromkeys(one.option.panel for one in known.values() if not one.is_argument))

    def given(*typed: Any, config: Path | None = None, as_json: bool = False, **named: Any) -> Given:
        named |= {one.name: word for one, word in zip(arguments, typed, strict=False)}
        made = Given(verb=verb, values={}, as_json=as_json)
        if config is not None:
            made.values.update(_of_file(config, known, made))
        rest = made.values.get(verb.rest or "")
        made.values.update({name: known[name].parse_words(word) for name, word in named.items()})
        if rest and verb.rest in named:
            made.values[verb.rest] = {**rest, **made.values[verb.rest]}
        return made

    parameters = [one.parameter(panels) for one in known.values()]
    keyword = inspect.Parameter.KEYWORD_ONLY
    if verb.rest is not None:
        kind = Annotated[Path | None, _CONFIG]
        parameters.append(inspect.Parameter("config", keyword, default=None, annotation=kind))
    if verb.as_json:
        parameters.append(
            inspect.Parameter("as_json", keyword, default=False, annotation=Annotated[bool, _JSON])
        )
    # cyclopts reads the signature for order and defaults, and the annotations for everything else.
    given.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    given.__annotations__ = {one.name: one.annotation for one in parameters}
    given.__doc__, given.__name__ = help_of(verb.function), verb.function.__name__
    return given


def _of_file(file: Path, known: Mapping[str, Declared], made: Given) -> dict[str, Any]:
    """The values of a settings file. Names that are no option go into the parameter `verb.rest`, with a note.

    Raises WrongWords, which shows no value.
    """
    where = f"--config {file}: "
    try:
        said = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise WrongWords(f"{where}{error}") from None
    spelled = {one.option.name.replace("-", "_"): one for one in known.values() if one.option.name}
    known = {**known, **spelled}
    values: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    inside: dict[str, Any] = {}
    for word, value in said.items():
        option = known.get(word.replace("-", "_"))
        if option is None:
            rest[word] = value
        elif option.name == made.verb.rest:
            if not isinstance(value, dict):
                raise WrongWords(f"{where}{word}: expected a table of names with values")
            inside = value
        elif option.name in values:
            raise WrongWords(f"{where}{word} occurs twice: give it once")
        elif option.option.typed_only:
            raise WrongWords(f"{where}{word} can only be given on the command line")
        else:
            values[option.name] = option.of_file(value, file)
    if rest and not made.verb.rest:
        raise WrongWords(where + str(unknown("option", next(iter(rest)), known)))
    if rest and made.verb.rest:
        near = [(word, get_close_matches(word, known, n=1, cutoff=0.8)) for word in rest]
        shown = (f"{word} (did you mean {hint[0]}?)" if hint else word for word, hint in near)
        made.notes.append(f"{file}: is sent unchanged in every request: {', '.join(shown)}")
    if rest or inside:
        values[str(made.verb.rest)] = rest | inside
    return values
