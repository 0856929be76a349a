"""What a drill calls with which arguments: by its inputs file, by the schema, or by what reads returned."""

import json
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from robustbench_tc.errors import unknown
from robustbench_tc.eval.score.matchers import subschemas
from robustbench_tc.own import advice, texts
from robustbench_tc.own.drafting import DEPTH, stated_value
from robustbench_tc.own.files import read_bytes
from robustbench_tc.own.gold import declared
from robustbench_tc.own.tools import Entry
from robustbench_tc.schema import Json

from ..plan import read_struct

ID_WORDS = frozenset("id uuid guid number key uri sku slug code ref".split())
"""Last words of a parameter's name that refers to something which is there already."""

WRAPPERS = frozenset("result item data".split())
"""Names that say nothing of what lies below them."""

_TYPES: dict[str, type] = {"string": str, "integer": int, "number": float}


class NoAnswer(Exception):
    """Why a tool, or a server, could not be tried, in one line."""


class Missing(Exception):
    """Parameters of a tool for which there is no value."""


class ToolInputs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file says of a tool."""

    kind: Literal["read", "write", "skip"] | None = None
    """In place of what hints, name and schema suggest. `skip`: it is never called."""
    arguments: dict[str, Json] = {}


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """An inputs file."""

    reset: tuple[str, ...] = ()
    """The argument vector of a command that puts the server's state back; it runs before each trial."""
    tools: dict[str, ToolInputs] = {}

    def kind_of(self, tool: Entry) -> Literal["read", "write", "skip"]:
        """By the file's word, else by the tool's name, hints and schema; what is unknown is a write."""
        verb, hints = texts.verb_of(tool.name), tool.raw.get("annotations")
        destroys = isinstance(hints, dict) and hints.get("destructiveHint") is True
        by_name = verb in texts.READS and not destroys and not advice.keys(tool)
        by_hint = tool.read_only and verb not in texts.WRITES
        stated = self.tools.get(tool.name, ToolInputs()).kind
        return stated or ("read" if by_name or by_hint else "write")

    def arguments(
        self, tool: Entry, results: Mapping[str, Json], keys: Mapping[str, Json]
    ) -> dict[str, Json]:
        """Arguments of a call. `results`: of reads so far. `keys`: for its key parameters. Raises Missing."""
        schema = tool.tool.parameters
        examples = subschemas.stated(schema, "examples", schema)
        whole = [one for one in examples if isinstance(one, dict)] if isinstance(examples, list) else []
        found = {**next(iter(whole), {}), **self.tools.get(tool.name, ToolInputs()).arguments, **keys}
        properties, required, _ = declared(schema, schema)
        missing = []
        for name in required:
            try:
                if name not in found:
                    found[name] = _value(tool, properties.get(name), name, results)
            except Missing:
                missing.append(name)
        if missing:
            raise Missing(*missing)
        return found

    def lacking(self, tool: Entry, results: Mapping[str, Json]) -> str | None:
        """Which values a tool lacks, and the line of the inputs file that gives them; None for none."""
        try:
            self.arguments(tool, results, new_keys(tool, results))
        except Missing as error:
            values = ", ".join(f"{json.dumps(name)}: …" for name in error.args)
            return (
                f"no value for {', '.join(error.args)}; write under tools of the inputs file: "
                f"{json.dumps(tool.name)}: {{arguments: {{{values}}}}}"
            )
        return None


def read_inputs(path: Path, tools: list[Entry]) -> Inputs:
    """The inputs of a YAML file. Raises UserError, also for a tool that the server does not list."""
    inputs, _, _ = read_struct(Inputs, read_bytes(path, "an inputs file"), str(path), "the inputs file")
    names = {tool.name for tool in tools}
    if strays := inputs.tools.keys() - names:
        raise unknown("tool", min(strays)[:80], names)
    return inputs


def new_keys(tool: Entry, results: Mapping[str, Json]) -> dict[str, Json]:
    """A new value for each key parameter. One that names what a read returned is an id, and no key."""
    return {
        name: str(uuid.uuid4()) for name, _ in advice.keys(tool) if _returned(tool, {}, name, results) is None
    }


def _value(tool: Entry, schema: Json, name: str, results: Mapping[str, Json], depth: int = 0) -> Json:
    root = tool.tool.parameters
    if (stated := stated_value(schema, root)) is not None:
        return stated
    properties, required, _ = declared(schema, root)
    if properties and depth < DEPTH:
        return {one: _value(tool, properties.get(one), one, results, depth + 1) for one in required}
    if "array" in subschemas.types(schema, root) and depth < DEPTH:
        return [_value(tool, subschemas.item_of(schema, 0, root), name, results, depth + 1)]
    if (found := _returned(tool, schema, name, results)) is None:
        raise Missing(name)
    return found


def _returned(tool: Entry, schema: Json, name: str, results: Mapping[str, Json]) -> Json:
    """The first id in results that the parameter can mean; None where there is none."""
    named = _singular(name) or [""]
    about = {*(named[:-1] or texts.things_of(tool.name))}
    types = subschemas.types(schema, tool.tool.parameters)
    kinds = [kind for word, kind in _TYPES.items() if word in types or not types]
    for owner, key, value in _scalars(results, []) if named[-1] in ID_WORDS else ():
        of_owner = key == named[-1:] and about <= {*owner}
        if type(value) in kinds and (of_owner or (key == named and named != ["id"])):
            return value
    return None


def _scalars(value: Json, owner: list[str]) -> Iterator[tuple[list[str], list[str], Json]]:
    """Every value with the words of its key and of what it belongs to; outer ones come first."""
    if isinstance(value, list):
        for item in value:
            yield from _scalars(item, owner)
    elif isinstance(value, Mapping):
        inner = [(_singular(key), one) for key, one in value.items()]
        yield from ((owner, key, one) for key, one in inner)
        for key, one in inner:
            yield from _scalars(one, owner if WRAPPERS & {*key} else key)


def _singular(name: str) -> list[str]:
    return [word.removesuffix("s") for word in texts.word_list(name)]
