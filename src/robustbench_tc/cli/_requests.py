"""The options of `rbtc eval` about requests, from the command line and from a file (`--config`)."""

import dataclasses
import functools
import inspect
import tomllib
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ..errors import UserError
from ..schema import Json
from . import _console

_ONLY_TYPED = ("config", "fresh", "discard_changes", "help")
"""What a file may not say: which file it is, and to throw something away."""

_ALIASES = {"headers": "header", "chat_template_args": "chat_template_arg"}
"""As in Python: taken for the option, or a header's value would go into the request and the run record."""

_EXTRA = "robustbench_tc.extra_body"
"""Under which the context keeps what a file has for the request's body."""

Seed = Annotated[int | None, typer.Option(help="Sent to the endpoint; repeat n gets seed + n.")]
Temperature = Annotated[float | None, typer.Option(min=0.0, help="Default: the models' table, else 0.")]
MaxTokens = Annotated[int | None, typer.Option(min=1, help="Default: the models' table, else 1024.")]
LogProbs = Annotated[bool, typer.Option("--logprobs", help="Ask for and keep log probabilities.")]
Concurrency = Annotated[
    int, typer.Option(min=1, help="Requests under way, per address; or the largest batch.")
]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds for one attempt.")]
MaxRetries = Annotated[
    int, typer.Option(min=0, help="More attempts after 429, 5xx, a time-out or no completion.")
]
TopP = Annotated[float | None, typer.Option("--top-p", help="Above 0, at most 1.")]
TopK = Annotated[int | None, typer.Option("--top-k", help="1 or more; 0 or -1: all.")]
Stop = Annotated[list[str] | None, typer.Option(help="Text that ends a reply. Repeatable.")]
ReasoningEffort = Annotated[str | None, typer.Option(help="As the endpoint calls it: low, medium, high, …")]
System = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Text in front of every system message, or as one.")
]
SystemAsUser = Annotated[
    bool,
    typer.Option("--system-as-user", help="Put the system text before the first user message instead."),
]
ExtraBody = Annotated[
    str | None, typer.Option(metavar="JSON", help="Further fields of every request; null: none of that name.")
]
Header = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Sent along; the value is written nowhere. Repeatable."),
]
ChatTemplateArg = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="For the chat template; a value may be JSON. Repeatable."),
]
MaxCost = Annotated[
    float | None, typer.Option(help="Of the whole run, in the currency of --price; it stops there.")
]
Price = Annotated[
    str | None, typer.Option(metavar="IN,OUT", help="Per million prompt and completion tokens.")
]


def _config(ctx: typer.Context, file: Path | None) -> Path | None:
    if file is not None:
        ctx.default_map, ctx.meta[_EXTRA] = read_config(file, ctx.command.params)
    return file


Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        is_eager=True,
        callback=_config,
        help="These options in TOML (top_p = 0.9); other names go into the request. The command line wins.",
    ),
]


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class RequestWords:
    """The options as they were typed, each with its default."""

    seed: Seed = None
    temperature: Temperature = None
    max_tokens: MaxTokens = None
    logprobs: LogProbs = False
    top_p: TopP = None
    top_k: TopK = None
    stop: Stop = None
    reasoning_effort: ReasoningEffort = None
    system: System = None
    system_as_user: SystemAsUser = False
    extra_body: ExtraBody = None
    header: Header = None
    chat_template_arg: ChatTemplateArg = None
    max_cost: MaxCost = None
    price: Price = None
    config: Config = None
    concurrency: Concurrency = 32
    timeout: Timeout = 300.0
    max_retries: MaxRetries = 6

    def options(self, ctx: typer.Context) -> dict[str, Any]:
        """As `evaluate` takes them. Raises UserError."""
        typed = _object(self.extra_body)
        kept = {
            name: value
            for name, value in ctx.meta.get(_EXTRA, {}).items()
            if getattr(ctx.get_parameter_source(name), "name", None) != "COMMANDLINE"  # which wins
        }
        return {
            "seed": self.seed,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "logprobs": self.logprobs,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "stop": self.stop or (),
            "reasoning_effort": self.reasoning_effort,
            "system": None if self.system is None else _text(self.system),
            "system_as_user": self.system_as_user,
            "extra_body": {**kept, **typed},
            "headers": _pairs("header", self.header or ()),
            "chat_template_args": {
                name: _json_or_text(value)
                for name, value in _pairs("chat-template-arg", self.chat_template_arg or ()).items()
            },
            "max_cost": self.max_cost,
            "price": None if self.price is None else price_of(self.price),
            "concurrency": self.concurrency,
            "timeout_s": self.timeout,
            "max_retries": self.max_retries,
        }


DEFAULTS = RequestWords()


def with_requests(function: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter `requests` is a `RequestWords`: its fields become options of the command."""
    own = get_type_hints(RequestWords, include_extras=True)
    defaults = {one.name: one.default for one in dataclasses.fields(RequestWords)}

    @functools.wraps(function)
    def command(**given: Any) -> None:
        words = {name: given.pop(name) for name in own}
        function(**given, requests=RequestWords(**words))

    kinds = get_type_hints(function, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for one in inspect.signature(function).parameters.values():
        if one.name == "requests":
            parameters += [
                inspect.Parameter(name, one.kind, default=defaults[name], annotation=kind)
                for name, kind in own.items()
            ]
        else:
            parameters.append(one.replace(annotation=kinds[one.name]))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def read_config(file: Path, params: Iterable[Any]) -> tuple[dict[str, Any], dict[str, Json]]:
    """What a TOML file says of a command's options (`params`), and what it has for the request's body.

    Raises UserError, which never shows the value of a header.
    """
    from ..eval.request_settings import json_object

    try:
        said = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"--config {file}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"--config {file}: not TOML: {error}") from None
    known = {param.name: param for param in params if param.name not in _ONLY_TYPED}
    extra = json_object(f"--config {file}: extra_body", said.pop("extra_body", {}))
    found: dict[str, Any] = {}
    through: dict[str, Json] = {}
    for word, value in said.items():
        name = _ALIASES.get(word.replace("-", "_"), word.replace("-", "_"))
        if name in _ONLY_TYPED:
            raise UserError(f"--config {file}: {word} can only be said on the command line")
        if name in extra:
            raise UserError(f"--config {file}: {name} stands in extra_body and beside it: give it once")
        if name in found:
            raise UserError(f"--config {file}: {name} stands there twice: give it once")
        if name in known:
            found[name] = _option(f"--config {file}: {word}", known[name], value)
        else:
            through |= json_object(f"--config {file}: {word}", {word: value})
    if "system" in found:
        found["system"] = str(file.parent / found["system"])
    if through:
        near = [(name, get_close_matches(name, known, n=1, cutoff=0.8)) for name in through]
        shown = (f"{name} (did you mean {hint[0]}?)" if hint else name for name, hint in near)
        _console.note(f"{file}: goes into every request as it is: {', '.join(shown)}")
    return found, {**extra, **through}


def _option(what: str, param: Any, value: Any) -> Any:
    """A value of a file as the command line would have it: texts, which the option itself reads."""
    if param.name in ("header", "chat_template_arg"):
        if not isinstance(value, dict):
            raise UserError(f"{what}: expected a table of names with values")
        return [f"{name}={_typed(what, one)}" for name, one in value.items()]
    if param.name == "price" and isinstance(value, list):
        return ",".join(_typed(what, one) for one in value)
    if getattr(param, "is_flag", False):
        if not isinstance(value, bool):
            raise UserError(f"{what}: expected true or false")
        return value
    if getattr(param, "multiple", False):
        return [_typed(what, one) for one in (value if isinstance(value, list) else [value])]
    if isinstance(value, bool):
        raise UserError(f"{what}: expected a number or a text")
    return _typed(what, value)


def _typed(what: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise UserError(f"{what}: {type(value).__name__} is not what this option takes")
    return str(value)


def _object(text: str | None) -> dict[str, Json]:
    import msgspec

    from ..eval.request_settings import json_object

    if text is None:
        return {}
    try:
        return json_object("--extra-body", msgspec.json.decode(text))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise UserError(f"--extra-body: not JSON: {error}") from None


def _pairs(option: str, words: Iterable[str]) -> dict[str, str]:
    """`NAME=VALUE` each. No message shows a value."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not name.isprintable() or " " in name:
            curl = " (not NAME: VALUE, as for curl)" if ":" in name else ""
            raise UserError(f"--{option}: write NAME=VALUE{curl}")
        if name in found:
            raise UserError(f"--{option} {name} is given twice")
        found[name] = value
    return found


def _json_or_text(value: str) -> Json:
    import msgspec

    if value in ("True", "False"):  # as Python writes them: a text "False" would be true in a template
        return value == "True"
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return value


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise UserError(f"--system {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"--system {file}: not a text in UTF-8") from None


def price_of(text: str) -> tuple[float, float]:
    """`--price IN,OUT`. Raises UserError."""
    try:
        asked, answered = map(float, text.split(","))
    except ValueError:
        raise UserError(
            f"--price {text}: write IN,OUT, two numbers per million tokens, as in 0.15,0.6"
        ) from None
    return asked, answered
