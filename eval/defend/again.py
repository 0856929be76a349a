"""Defences that act on the reply: `retry`, `schema`, `vote`; and `strict`, which the endpoint enforces."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from robustbench_tc.schema import Call, Json, Tool, dumps, loads

from .chain import Asking, Chain, Model, Said, Scene, Turn

_LASTING = re.compile(
    r"(?i)\b(?:401|403|404|410)\b|unauthori[sz]ed|forbidden|credential|permission|denied|not found|revoked"
    r"|\b(?:do not|don't|never) (?:retry|try again)"
)
_PASSING = re.compile(
    r"(?i)\b(?:408|425|429|5\d\d)\b|time[ds]?[ -]?out|too many requests|rate limit|temporar|unavailable"
    r"|try again|overloaded|connection (?:reset|closed|refused)|malformed response|internal (?:server )?error"
    r"|the response did not match"
)


def transient(error: str) -> bool:
    """Whether an error text tells of a failure that may pass by itself. No type is looked at."""
    return bool(_PASSING.search(error[:20_000])) and not _LASTING.search(error[:20_000])


def retried(scene: Scene, model: Model, way: str) -> Asking:
    """The reply before the error, where the error is the row's and may pass: the harness repeats the call
    and the model is asked nothing. Else the model's."""
    passes = transient(scene.row.injected_error or "")
    if passes and len(scene.turns) == 1 and scene.turns[0].results is None:
        repeated = scene.turns[0].said
        return Said(msgspec.structs.replace(repeated.answer, number=2, has_call=None), repeated.inner)
    said = yield from model(scene.turns)
    return said.outer()


def voted(scene: Scene, model: Model, samples: str) -> Asking:
    """Self-consistency over calls: the reply whose calls are the most frequent. A request that failed is what
    the pass ends with."""
    said: list[Said] = []
    for draw in range(int(samples)):
        one = yield from model(scene.turns, draw)
        if one.answer.status != "ok":
            return one.outer()
        said.append(one)
    calls = (scene.read(scene.shown, one.answer) for one in said)
    # The order of parameters does not count, that of calls does.
    made = [json.dumps([[call.name, call.parameters] for call in one], sort_keys=True) for one in calls]
    best, _ = Counter(made).most_common(1)[0]  # of equals the first
    return said[made.index(best)].outer()


INVALID = "Invalid call"
"""In every message of the validator."""


def validated(scene: Scene, model: Model, way: str) -> Asking:
    """The validator of many agent frameworks: an invalid call is not carried out, and the model hears why.
    The reply, or the one after the validator's message where that is made of a reply with calls."""
    also = f"Not carried out. {INVALID} in the same answer."
    said = yield from corrected(scene, model, lambda call: invalid(call, scene.shown.tools), also)
    return said.outer()


def corrected(scene: Scene, model: Model, problem: Callable[[Call], str], also: str) -> Asking:
    """The model's reply, or the one after it has heard the `problem` of its calls: nothing of such a reply is
    carried out, and its other calls are answered `also`."""
    said = yield from model(scene.turns)
    calls = scene.read(scene.shown, said.answer) if said.answer.status == "ok" else ()
    wrong = [problem(call) for call in calls]
    if any(wrong):
        results = tuple(one or also for one in wrong)
        said = yield from model([*scene.turns, Turn(said.outer(), results)])
    return said


def invalid(call: Call, tools: Sequence[Tool]) -> str:
    """Why a call cannot be carried out; "" where it names a tool and fits a schema of that name."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError, UnknownType

    named = [tool for tool in tools if tool.name == call.name]
    if not named:
        known = ", ".join(tool.name for tool in tools)
        return f"{INVALID}: there is no tool {call.name[:200]!r}. The tools are: {known[:2000]}"
    said = []
    for tool in named:
        try:
            validator = Draft202012Validator(closed(tool.parameters))
            problem = next(iter(validator.iter_errors(loads(dumps(call.parameters)))), None)
        except (
            SchemaError,
            UnknownType,
            RecursionError,
            re.error,
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
        ):
            return ""  # a schema that is none says nothing of the call
        if problem is None:
            return ""
        where = "/".join(map(str, problem.absolute_path))
        said.append(f"{where + ': ' if where else ''}{problem.message[:300]}")
    return f"{INVALID} of {call.name[:200]}: {said[0]}"


_NOT_CHECKED = ("pattern", "patternProperties", "uniqueItems", "$ref", "$dynamicRef")
"""What may be slow, and references, for which there is nowhere to look."""


def closed(schema: dict[str, Json]) -> dict[str, Json]:
    """A registry's schema that takes no parameter it does not declare, without `_NOT_CHECKED`."""

    def plain(value: Json, depth: int = 0, names: bool = False) -> Json:
        """`names`: the keys are those of parameters, not the schema's own."""
        if depth > 32 or not isinstance(value, dict | list):
            return value
        if isinstance(value, list):
            return [plain(one, depth + 1) for one in value]
        return {
            key: plain(inner, depth + 1, names=not names and key == "properties")
            for key, inner in value.items()
            if names or key not in _NOT_CHECKED
        }

    found = plain(schema or {"type": "object", "properties": {}})
    assert isinstance(found, dict)
    return {"additionalProperties": False, **found}


def is_strict(chain: Chain) -> bool:
    """Whether tools are sent as strict ones: the endpoint's constrained decoding."""
    return any(one.code == "strict" for one in chain)


def strict(tools: Sequence[dict[str, Json]]) -> list[dict[str, Json]]:
    """Native tools with `strict`, where every parameter is required: an optional one would have to become
    required, and the tool another one."""
    made = []
    for tool in tools:
        function = tool["function"]
        parameters = function["parameters"]
        if parameters.get("type") == "object" and (fits := _strict(parameters)) is not None:
            tool = {**tool, "function": {**function, "parameters": fits, "strict": True}}
        made.append(tool)
    return made


def _strict(schema: Json, depth: int = 0) -> Json:
    """A schema as strict decoding wants it; None where a parameter is optional or anything goes."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind == "array":
        items = _strict(schema.get("items"), depth + 1)
        return None if items is None else {**schema, "items": items}
    if kind != "object" or depth > 8:
        return schema if kind in ("string", "integer", "number", "boolean") else None
    properties = schema.get("properties")
    if not isinstance(properties, dict) or set(schema.get("required") or ()) != set(properties):
        return None
    found = {name: _strict(inner, depth + 1) for name, inner in properties.items()}
    return None if None in found.values() else {**schema, "properties": found, "additionalProperties": False}
