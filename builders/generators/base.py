"""What a generator is, and what it can tell about its work."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.schema import Json, dumps

from ..perturb.base import NOT_GENERATED, Text, TextRequest, normalise_text

MAX_TOOLS = 2
MAX_BYTES = 8192
"""A longer definition is not a tool but an attack on the context window."""

_NAME = r"^[A-Za-z_](?:[A-Za-z0-9_.\- ]{0,98}[A-Za-z0-9_.\-])?\Z"
"""Names of several words, as rlla's tools have them, only beside a tool that is named so."""

_Type: TypeAlias = Literal["string", "number", "integer", "boolean", "array", "object", "null"]

ANSWER_SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "tools": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_TOOLS,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "description": {"type": "string"},
                    "parameters": {
                        "type": "object",
                        "properties": {
                            "type": {"type": "string", "enum": ["object"]},
                            "properties": {"type": "object"},
                            "required": {"type": "array", "items": {"type": "string"}},
                        },
                        "required": ["type", "properties", "required"],
                    },
                },
                "required": ["name", "description", "parameters"],
            },
        }
    },
    "required": ["tools"],
}
"""What a model is asked to answer, for endpoints with structured output."""


class _Schema(msgspec.Struct):
    """A schema as far as a registry shows one: a type by name, and nested schemas where they belong."""

    type: _Type | list[_Type] = "string"
    properties: "dict[str, _Schema]" = {}
    items: "_Schema | msgspec.UnsetType" = msgspec.UNSET


class _Parameters(msgspec.Struct):
    """The parameters of a new tool."""

    type: Literal["object"]
    properties: dict[str, _Schema]
    required: list[str] = []


class _NewTool(msgspec.Struct, forbid_unknown_fields=True):
    """A new tool as a model may write it."""

    name: Annotated[str, msgspec.Meta(pattern=_NAME)]
    description: Annotated[str, msgspec.Meta(pattern=r"\S")]
    parameters: _Parameters


def refuse_tools(request: TextRequest, answer: Json) -> str | None:
    """Why `answer` is not a list of new tools for the one that the request names, or None.

    One or two well-formed tools whose names differ from the imitated one and from each other, each with a
    description of its own. Names that a registry already has are the unit's business: registries differ.
    """
    if not isinstance(answer, list) or not 0 < len(answer) <= MAX_TOOLS:
        return f"not a list of tools, at most {MAX_TOOLS} of them"
    if any(len(dumps(tool).encode()) > MAX_BYTES for tool in answer):
        return f"a definition is longer than {MAX_BYTES} bytes"
    try:
        tools = msgspec.convert(answer, list[_NewTool])
    except (msgspec.ValidationError, RecursionError) as error:
        return str(error)
    imitated = request.tool or ""
    taken = {imitated.casefold()}
    for tool in tools:
        if " " in tool.name and " " not in imitated:
            return f"{tool.name!r} is a name of several words"
        if not tool.parameters.properties.keys() >= set(tool.parameters.required):
            return f"{tool.name!r} requires a parameter that it does not declare"
        if tool.name.casefold() in taken:
            return f"the name {tool.name!r} is taken"
        taken.add(tool.name.casefold())
        if normalise_text(tool.description) == normalise_text(request.input):
            return f"{tool.name!r} repeats the description of the tool it stands beside"
    return None


def read_tools(text: str) -> Json:
    """The list of tools in a model's answer: JSON as asked, or JSON somewhere in the text; None without any.

    A tool keeps only its three fields; a missing `required` becomes an empty list.
    """
    for value in _json_values(text[: 64 * 1024]):
        if isinstance(value, dict):
            value = value.get("tools", [value])
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            return [_tidy(item) for item in value]
    return None


def read_object(text: str) -> Json:
    """The first JSON object in a model's answer; None without any."""
    return next((value for value in _json_values(text[: 64 * 1024]) if isinstance(value, dict)), None)


def _tidy(tool: dict[str, Json]) -> dict[str, Json]:
    if isinstance(tool.get("function"), dict):  # the wire format of the tools parameter
        tool = tool["function"]
    found: dict[str, Json] = {
        name: tool[name] for name in ("name", "description", "parameters") if name in tool
    }
    parameters = found.get("parameters")
    if isinstance(parameters, dict):
        found["parameters"] = {"type": "object", "properties": {}, "required": [], **parameters}
    return found


def _json_values(text: str) -> list[Json]:
    """The outermost JSON objects and lists in a text, a bounded number of them, in order."""
    decoder = json.JSONDecoder()
    found: list[Json] = []
    place = 0
    for _ in range(32):
        start = re.compile(r"[\[{]").search(text, place)
        if start is None:
            break
        try:
            value, place = decoder.raw_decode(text, start.start())
            found.append(value)
        except (ValueError, RecursionError):
            place = start.start() + 1
    return found


Refuse: TypeAlias = Callable[[TextRequest, Json], str | None]
"""The acceptance check: why an answer is refused, or None."""

SILENT = "none"
"""The label of who writes nothing."""

NO_ANSWER = "no_answer"
"""Nobody has written this text: ends a build unless it allows missing texts."""


def kinds() -> tuple[str, ...]:
    """Codes of the model-written types, in the taxonomy's order."""
    return tuple(t.code for t in taxonomy.types("all") if t.method == "llm" and t.channel != "mixed")


def is_written(code: str) -> bool:
    """Whether a model writes the texts of the type; also of one that no module states (`language_de`)."""
    return taxonomy.known(code) and not taxonomy.parts(code) and taxonomy.get(code).method == "llm"


class Refusal(NamedTuple):
    """An answer that was not taken."""

    key: str
    """The request's."""
    answer: Json
    reason: str


def writes_tools(kind: str) -> bool:
    """Whether the type asks for new tools instead of a text."""
    return taxonomy.get(kind).channel == "siblings"


def writes_translations(kind: str) -> bool:
    """Whether the type asks for a text with a map of its translated values."""
    return taxonomy.get(kind).traits.get("values") == "translated"


class Statistics(msgspec.Struct):
    """What a generator did for one type."""

    generator: str
    """The label that its texts carry; several, joined by `+`, where texts come from several files."""
    asked: int = 0
    """Texts that were asked for."""
    answered: int = 0
    """Texts that were accepted."""
    missing: Counter[str] = msgspec.field(default_factory=Counter)
    """Texts that there are not, by reason."""
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    """Answers that failed the acceptance check, by reason; a text can have several."""
    retried: int = 0
    """Times that a model was asked again because its answer was refused."""
    replayed: int = 0
    """Answers that came from the store instead of the endpoint."""
    requests: int = 0
    """Requests sent to the endpoint, its retries included."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    refusals: list[Refusal] = []
    """Every refused answer, in order: for `generations.jsonl`, not for the report."""

    def refuse(self, request: TextRequest, answer: Json, reason: str) -> None:
        """Counts and keeps an answer that is not taken."""
        self.refused[category(reason)] += 1
        try:
            dumps(answer)
        except ValueError:  # as text what JSON cannot hold
            answer = json.dumps(answer)
        self.refusals.append(Refusal(request.key, answer, reason))

    def settle(self, answers: Mapping[str, Text | str]) -> None:
        """Counts what became of the texts."""
        texts = [answer for answer in answers.values() if isinstance(answer, Text)]
        self.asked += len(answers)
        self.answered += len(texts)
        self.missing.update(category(why) for why in answers.values() if isinstance(why, str))
        self.generator = "+".join(sorted({text.generator for text in texts})) or self.generator

    def report(self) -> dict[str, Any]:
        """For the build report: plain values, what did not happen left out."""
        plain: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(self, refusals=[]))
        return {name: value for name, value in plain.items() if value or name in ("asked", "answered")}


def category(reason: str) -> str:
    """A reason without the value it names, so that it can be counted: `refused: lost value 'Oslo'`."""
    return re.sub(r"\s*(?:['\"].*|\d.*)$", "", reason, flags=re.DOTALL)


class Generator:
    """Writes the texts of one model-written type; counts what it does, keeps the answers it does not take."""

    def __init__(self, label: str) -> None:
        """`label`: where its texts come from: `recorded`, `hand-written`, `model@prompt-version`, `none`."""
        self.label = label
        self._statistics = Statistics(generator=label)

    async def generate(self, requests: Sequence[TextRequest], refuse: Refuse) -> dict[str, Text | str]:
        """By request key the accepted text, or the reason why there is none.

        Raises UserError when the work as a whole cannot go on: no endpoint, a limit reached.
        """
        raise NotImplementedError

    def statistics(self) -> dict[str, Any]:
        """What was asked, answered, refused and retried so far, as plain values."""
        return self._statistics.report()

    def refusals(self) -> Sequence[Refusal]:
        """Every answer that was refused so far, in the order of each text's tries."""
        return self._statistics.refusals


class Answering(Generator):
    """A generator that answers each request by itself."""

    def answer(self, request: TextRequest, refuse: Refuse) -> Text | str:
        """The accepted text, or the reason why there is none."""
        raise NotImplementedError

    async def generate(self, requests: Sequence[TextRequest], refuse: Refuse) -> dict[str, Text | str]:
        """As `Generator.generate`."""
        answers = {request.key: self.answer(request, refuse) for request in requests}
        self._statistics.settle(answers)
        return answers


def check(request: TextRequest, answer: Json, refuse: Refuse) -> str | None:
    """Why the answer is refused: new tools have a check of their own, texts the caller's."""
    try:
        dumps(answer)
    except ValueError:  # NaN, a lone surrogate: no row can hold it
        return "it cannot be written as JSON"
    return refuse_tools(request, answer) if writes_tools(request.kind) else refuse(request, answer)


class Silent(Answering):
    """`none`: writes nothing, and that is not an error."""

    def __init__(self) -> None:
        super().__init__(SILENT)

    def answer(self, request: TextRequest, refuse: Refuse) -> Text | str:
        """`not_generated`."""
        return NOT_GENERATED
