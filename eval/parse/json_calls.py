"""The shapes in which a JSON value describes calls, and native calls as a serving layer returns them."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from robustbench_tc.schema import Call, Json

from .context import ParseContext, bare_name
from .found import Finding
from .json_values import clean, clean_text, decode, decode_object
from .names import declines, is_no_name

__all__ = ["NAME_KEYS", "PARAMETER_KEYS", "call_of", "calls_of", "clean", "decode", "native"]

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
_MAX_DEPTH = 8
_MAX_RAW = 4_096


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
        return
    if not isinstance(found, dict) or (not tagged and _is_record(found, context)):
        return
    if found.get("method") == "tools/call" and isinstance(found.get("params"), dict):  # MCP's own message
        found = found["params"]
    call = call_of(found, context, tagged=tagged)
    if call is not None:
        yield call
        return
    by_name = list(_keyed_by_name(found, context, tagged=tagged))
    if by_name:
        yield from by_name
        return
    for key, inner in found.items():
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
    return status not in _OPEN_STATUS or (status == "completed" and "call_id" in found and "type" not in found)


def call_of(found: dict[str, Json], context: ParseContext, *, tagged: bool = False) -> Finding | None:
    """The call that one object describes, or None.

    An object with nothing but a name is none, nor is an entry of a registry. Outside call tags an object
    without a key for its arguments is a call only if its name is in the registry: `{"name": "Ann", "age": 3}`
    is data.
    """
    if len(found) > 64:
        return None
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
        return _with_arguments(found, name, arguments[0], context)
    return _flat(found, name, name_key, context, tagged=tagged)


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


def _with_arguments(found: dict[str, Json], name: str, key: str, context: ParseContext) -> Finding | None:
    value = found[key]
    if _is_registry_entry(found, value, name, context):
        return None
    parameters, raw = arguments_of(value, context)
    return Finding(Call(name, parameters), raw=raw)


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


def _is_registry_entry(found: dict[str, Json], value: Json, name: str, context: ParseContext) -> bool:
    """An object with a description, or with a schema where the arguments should stand."""
    if any(_plain(key) in _DESCRIBES for key in found if isinstance(key, str)):
        return True
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
    if isinstance(value, list) and value:
        return all(
            isinstance(spec, dict) and "name" in spec and ("type" in spec or "description" in spec)
            for spec in value
        )
    return False


def _keyed_by_name(found: dict[str, Json], context: ParseContext, *, tagged: bool) -> Iterator[Finding]:
    """`{"f": {…}, "g": {…}}`: all keys are tools of the registry; between call tokens one key is believed."""
    if not found or len(found) > 64:
        return
    if (
        context.tools
        and all(
            isinstance(value, dict) and context.resolve(bare_name(key)) is not None
            for key, value in found.items()
        )
    ) or (
        tagged
        and len(found) == 1
        and all(isinstance(value, dict) and _plain(key) not in _WRAPPERS for key, value in found.items())
    ):
        names = found
    else:
        return
    for key, value in names.items():
        if not _is_registry_entry({}, value, key, context) and "description" not in value:
            yield Finding(Call(bare_name(key), value))


def arguments_of(value: Json, context: ParseContext) -> tuple[dict[str, Json], str | None]:
    """The parameters that a value stands for, and the raw text where it stands for none.

    An object, the text of one, or a list of name and value pairs.
    """
    if isinstance(value, dict):
        return value, None
    if isinstance(value, str) and value.strip()[:1] == "{":
        found = decode_object(value.strip(), context)
        if found is not None:
            return found, None
    if isinstance(value, list) and value and all(_is_pair(item) for item in value):
        return {str(item["name"]): item["value"] for item in value}, None
    return {}, _raw(value)


def _is_pair(item: Json) -> bool:
    return isinstance(item, dict) and item.keys() == {"name", "value"} and isinstance(item["name"], str)


def _raw(value: Json) -> str:
    import msgspec

    text = value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8", "replace")
    return clean_text(text[:_MAX_RAW])


def native(tool_calls: Json, context: ParseContext) -> list[Finding]:
    """Calls as a serving layer returns them, flat or in OpenAI's shape.

    One without a name is skipped, and one whose name declines (`None`, as some serving layers write a null).
    """
    calls: list[Finding] = []
    for entry in tool_calls if isinstance(tool_calls, list | tuple) else ():
        inner = entry.get("function", entry) if isinstance(entry, dict) else None
        if not isinstance(inner, dict):
            continue
        name = inner.get("name")
        if not isinstance(name, str) or not name.strip():
            continue
        if declines(name) and context.resolve(name.strip()) is None:
            continue
        arguments = inner.get("arguments", inner.get("parameters"))
        try:
            if isinstance(arguments, str):
                text = arguments.strip()
                found = decode(text) if context.balanced(text, 0) == len(text) else None
            else:
                found = clean(arguments)
        except ValueError:
            found = None
        raw = None
        if not isinstance(found, dict):
            raw = _raw(arguments)
            found = {}
        calls.append(Finding(Call(clean_text(name.strip()), found), raw=raw))
    return calls


def raw_texts(findings: Iterable[Finding]) -> tuple[tuple[int, str], ...]:
    """The raw arguments of the calls that have no readable ones, by index."""
    return tuple((index, one.raw) for index, one in enumerate(findings) if one.raw is not None)
