"""The shapes in which a JSON value describes calls, and native calls as a serving layer returns them."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from robustbench_tc.schema import Call, Json

from .context import Finding, ParseContext, bare_name, end_of, unfenced
from .json_values import MAX_RAW, arguments_at, decode, decode_object, value_at
from .names import declines, is_no_name
from .stored import clean, clean_text

NAME_KEYS = ("name", "function", "tool", "func_name", "tool_name", "action")
PARAMETER_KEYS = ("parameters", "arguments", "params", "args", "action_input")
"""The keys of scoring.md; `_NAMES` and `_PARAMETERS` hold all that are read, without case and underscores."""

_NAMES = (
    "name function tool funcname toolname action functionname api apiname recipientname func method"
).split()
_PARAMETERS = (
    "parameters arguments params args actioninput input toolinput toolargs kwargs toolarguments"
    " toolparameters "
    "functionargs functionarguments functionparameters apiparameters actionparameters argument inputs"
).split()
_WRAPPERS = frozenset(
    "toolcalls toolcall functioncall functioncalls calls tooluses tooluse function functions tools action"
    " actions "
    "invocations command commands call message".split()
)
_ABOUT = frozenset(
    "id type callid toolcallid index thought thoughts reasoning explanation reason status".split()
)
"""Keys of a call that say nothing of its parameters."""

_RESULTS = frozenset("content result results output response error data value returns".split())
"""Keys of what a tool returned."""

_OUTCOMES = ("error", "result", "output", "response", "observation")
_OPEN_STATUS = (None, "completed", "in_progress", "pending")
"""What `status` says of a call that has no outcome yet; `completed` is a call item's own word."""

_DESCRIBES = frozenset({"description", "desc", "doc", "docstring"})
_TYPE_WORDS = frozenset(
    "string str integer int number float double boolean bool array list object dict null any".split()
)
_PLAIN = re.compile(r"[\s_-]+")
_SHORT_KEY = 64
_MARKUP = re.compile(
    r"\A(?:<[^<>]{1,48}>|to=|call:|[\"'`\s])+|\s*+(?:<[|｜/]|\[ARGS\]|\().*\Z|[\"'`\s:]+\Z", re.DOTALL
)
_MAX_DEPTH = 8
_MAX_WRAPPINGS = 4


@lru_cache(maxsize=4_096)
def _plain_short(key: str) -> str:
    return _PLAIN.sub("", key).lower()


def _plain(key: str) -> str:
    """The key without case, white space, hyphens and underscores; short ones are remembered."""
    return _plain_short(key) if len(key) <= _SHORT_KEY else _PLAIN.sub("", key).lower()


def calls_of(
    found: Json, context: ParseContext, *, tagged: bool = False, depth: int = 0
) -> Iterator[Finding]:
    """The calls that a JSON value describes, in order: one object, a list of them, or a wrapper around them.

    `tagged`: call tags or tokens stand around it, so that names outside the registry are believed.
    """
    if depth > _MAX_DEPTH:
        return
    if isinstance(found, list):
        if not tagged and any(_is_record(item, context) for item in found):
            return
        for item in found:
            if isinstance(item, str) and item.lstrip()[:1] == "{":
                item = decode_object(item.strip(), context)
            if isinstance(item, dict | list):
                yield from calls_of(item, context, tagged=tagged, depth=depth + 1)
    if not isinstance(found, dict) or (not tagged and _is_record(found, context)):
        return
    if found.get("method") == "tools/call" and isinstance(found.get("params"), dict):  # MCP's own message
        found = found["params"]
    call = call_of(found, context, tagged=tagged)
    if call is not None:
        yield call
        return
    by_name = list(_keyed_by_name(found, context, tagged=tagged))
    yield from by_name
    for key, inner in found.items() if not by_name else ():
        if isinstance(inner, list | dict) and _plain(key) in _WRAPPERS:
            yield from calls_of(inner, context, tagged=tagged, depth=depth + 1)


def _is_record(found: Json, context: ParseContext) -> bool:
    """Whether an object tells what came of a call, or of one that lies in it."""
    if not isinstance(found, dict):
        return False
    name = next((found[key] for key in NAME_KEYS if isinstance(found.get(key), str)), "")
    is_flat = not any(isinstance(found.get(key), dict) for key in PARAMETER_KEYS)
    declared = context.schemas_of(name) if is_flat else {}
    if any(found.get(key) is not None and key not in declared for key in _OUTCOMES):
        return True
    if "status" in declared:
        return False
    status = found.get("status")
    return status not in _OPEN_STATUS or (
        status == "completed" and "call_id" in found and "type" not in found
    )


def call_of(found: dict[str, Json], context: ParseContext, *, tagged: bool = False) -> Finding | None:
    """The call that one object describes, or None.

    An object with nothing but a name is none, nor is an entry of a registry. Outside call tags an object
    without a key for its arguments is a call only if its name is in the registry: `{"name": "Ann", "age": 3}`
    is data.
    """
    plain = {_plain(key): key for key in reversed(list(found)) if isinstance(key, str)}
    name_key = _name_key(found, plain, context)
    if name_key is None:
        return None
    name = bare_name(found[name_key])
    if not name or (is_no_name(name) and context.resolve(name) is None):
        return None
    arguments = [plain[word] for word in _PARAMETERS if word in plain and plain[word] != name_key]
    declared = context.schemas_of(name)
    if (
        arguments
        and arguments[0] in declared
        and (
            not isinstance(found[arguments[0]], dict)
            or any(key in declared for key in found if key not in (name_key, arguments[0]))
        )
    ):
        return _flat(found, name, name_key, context, tagged=tagged)  # the tool has a parameter of that name
    if arguments:
        value = found[arguments[0]]
        described = any(_plain(key) in _DESCRIBES for key in found)
        if (
            tagged
            or _plain(arguments[0]) == "arguments"
            or not (described or is_schema(value, name, context))
        ):
            return called(name, value, context)
        return None  # an entry of a registry
    return _flat(found, name, name_key, context, tagged=tagged)


_NAMED = re.compile(
    r"""[\[\s]*+\{\s*+["'](?:name|tool|tool_name|function|function_name)["']\s*+:\s*+["']([^"'\n]{1,128})["']\s*+,\s*+"""
    r"""["'](?:arguments|parameters|args|params|input)["']\s*+:\s*+(?=\{)"""
)
_CLOSING = re.compile(r"[\s}]*+")


def broken_call_at(text: str, at: int, context: ParseContext) -> tuple[Finding, int] | None:
    """The call of an object between call marks that states its name and is unreadable behind it."""
    named = _NAMED.match(text, at)
    read = arguments_at(text, named.end(), context) if named is not None else None
    if named is None or read is None or not context.may_name(named[1]):
        return None
    return Finding(Call(named[1], read[0]), raw=read[1]), end_of(_CLOSING, text, read[2])


def _name_key(found: dict[str, Json], plain: dict[str, str], context: ParseContext) -> str | None:
    """The key that holds the tool's name: the first whose value the registry knows, else the first text."""
    keys = [plain[word] for word in _NAMES if word in plain]
    texts = [key for key in keys if isinstance(found[key], str) and found[key]]
    for key in texts:
        if context.tools and context.resolve(bare_name(found[key])) is not None:
            return key
    if keys and isinstance(found[keys[0]], dict):  # OpenAI's shape: the call lies under `function`
        return None
    return texts[0] if texts else None


def _flat(
    found: dict[str, Json], name: str, name_key: str, context: ParseContext, *, tagged: bool
) -> Finding | None:
    """A call whose arguments lie beside its name, or under a key of another name."""
    declared = context.schemas_of(name)
    rest = {
        key: value
        for key, value in found.items()
        if key != name_key and (key in declared or _plain(key) not in _ABOUT)
    }
    if not rest or any(_plain(key) in _DESCRIBES and key not in declared for key in rest):
        return None
    known = context.resolve(name) is not None
    if not known and not tagged:
        return None
    objects = [key for key, value in rest.items() if isinstance(value, dict) and key not in declared]
    if known and len(objects) == 1 and not any(key in declared for key in rest):
        return Finding(Call(name, rest[objects[0]]))
    if not any(key in declared for key in rest) and any(_plain(key) in _RESULTS for key in rest):
        return None
    return Finding(Call(name, rest))


def is_schema(value: Json, name: str, context: ParseContext) -> bool:
    """Whether a value declares the parameters of a tool where its arguments should stand."""
    if isinstance(value, dict):
        if value.get("type") == "object" and "properties" not in context.schemas_of(name):
            return "properties" in value or len(value) == 1
        specs = list(value.values())
        return bool(specs) and all(
            isinstance(spec, dict)
            and isinstance(spec.get("type"), str)
            and spec["type"].lower() in _TYPE_WORDS
            for spec in specs
        )
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(spec, dict) and "name" in spec and ("type" in spec or "description" in spec)
            for spec in value
        )
    )


def called(name: str, value: Json, context: ParseContext) -> Finding:
    """The call of a name and what stands for its arguments: nothing will do where the tool requires nothing."""
    if value in (None, "", "null") and context.resolve(name) is not None and not context.required_of(name):
        return Finding(Call(name, {}))
    parameters, raw = arguments_of(value, context)
    return without_schema(Finding(Call(name, parameters), raw=raw), context)


def without_schema(finding: Finding, context: ParseContext) -> Finding:
    """The call; where its parameters only repeat the tool's schema, without any."""
    call = finding.call
    if not is_schema(call.parameters, call.name, context):
        return finding
    return Finding(Call(call.name, {}), raw=_raw(call.parameters))


def _keyed_by_name(found: dict[str, Json], context: ParseContext, *, tagged: bool) -> Iterator[Finding]:
    """`{"f": {…}, "g": {…}}`: all keys are tools of the registry; between call tokens one key is believed."""
    if (
        found
        and context.tools
        and all(
            isinstance(value, dict) and context.resolve(bare_name(key)) is not None
            for key, value in found.items()
        )
    ) or (
        tagged
        and len(found) == 1
        and all(isinstance(value, dict) and _plain(key) not in _WRAPPERS for key, value in found.items())
    ):
        for key, value in found.items():
            name = bare_name(key)
            if tagged or not (is_schema(value, name, context) or "description" in value):
                yield called(name, value, context)


def arguments_of(value: Json, context: ParseContext) -> tuple[dict[str, Json], str | None]:
    """The parameters that a value stands for, and the raw text where it stands for none.

    An object, the text of one in any spelling that is read (once more inside a text or a list, too), or a list of
    name and value pairs.
    """
    found = value
    for _ in range(_MAX_WRAPPINGS):
        if isinstance(found, dict):
            return found, None
        if isinstance(found, str):
            found = _value_of(found, context)
        elif isinstance(found, list) and found and all(map(_is_pair, found)):
            return {item["name"]: item["value"] for item in found}, None
        elif isinstance(found, list) and len(found) == 1 and isinstance(found[0], dict):
            return found[0], None
    return {}, _raw(value)


def _value_of(text: str, context: ParseContext) -> Json:
    """The object, list or text that a text writes; None for any other text, and for one with more behind it."""
    body = unfenced(text.strip().strip("\ufeff"))
    if body[:1] == '"':
        try:
            return decode(body)
        except ValueError:
            return None
    read = value_at(body, 0, context)
    return None if read is None or body[read[1] :].strip("]} \t\r\n;`") else read[0]


def _is_pair(item: Json) -> bool:
    return isinstance(item, dict) and item.keys() == {"name", "value"} and isinstance(item["name"], str)


def _raw(value: Json) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8", "replace")
    return clean_text(text[:MAX_RAW])


def native(tool_calls: Json, context: ParseContext) -> list[Finding]:
    """Calls as a serving layer returns them, flat or in OpenAI's shape; names and arguments are read as in text.

    One without a name is skipped, and one whose name declines (`None`, as some serving layers write a null). What
    had to be repaired sets the flag `repaired`.
    """
    calls: list[Finding] = []
    for entry in tool_calls if isinstance(tool_calls, list | tuple) else ():
        inner = entry.get("function", entry) if isinstance(entry, dict) else None
        name = inner.get("name") if isinstance(inner, dict) else None
        if not isinstance(inner, dict) or not isinstance(name, str) or not name.strip():
            continue
        meant = name.strip()
        if not context.knows(meant) and (tool := _tool_in(meant, context)) is not None:
            context.flag("repaired")
            meant = tool
        if declines(meant) and context.resolve(meant) is None:
            continue
        arguments = inner.get("arguments", inner.get("parameters"))
        found = _strict(arguments)
        if found is not None:
            finding = without_schema(Finding(Call(clean_text(meant), found)), context)
        else:
            finding = called(clean_text(meant), arguments, context)
            if finding.raw is None and arguments:
                context.flag("repaired")
        calls.append(finding)
    return calls


def _strict(arguments: Json) -> dict[str, Json] | None:
    """Arguments that are an object, or the JSON of one."""
    try:
        found = decode(arguments) if isinstance(arguments, str) else clean(arguments)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _tool_in(name: str, context: ParseContext) -> str | None:
    """The tool that a native name means once a format's own marks around it are taken off."""
    plain = _MARKUP.sub("", name)
    if plain.startswith("functions") or ":" in plain:
        plain = context.tool_of_id(plain)
    return context.resolve(plain)


def raw_texts(findings: Iterable[Finding]) -> tuple[tuple[int, str], ...]:
    """The raw arguments of the calls that have no readable ones, by index."""
    return tuple((index, one.raw) for index, one in enumerate(findings) if one.raw is not None)
