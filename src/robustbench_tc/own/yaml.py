"""YAML 1.2 as data with line numbers: safe, bounded, read from the parser's events; and readers of a file's
fields, whose errors name the file, the line, and what to write.

The scalars are those of the 1.2 core schema: `yes`, `on`, `1:30` and `2026-11-21` are texts, `012` is 12,
`0o14` is 12. JSON is YAML. Refused, each with its line: keys given twice or that are no texts, a second
document, tags but `!!str`, more than `NODES` values or `DEPTH` levels.
"""

import math
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

import msgspec
import yaml

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

from .files import DEPTH, decoded

NODES = 5_000_000
"""Values in all, those that aliases repeat included."""

_CORE = "tag:yaml.org,2002:"
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class Node(msgspec.Struct, gc=True):
    """A value and where it stands. `value`: a scalar, a dict of text to Node, or a list of Nodes."""

    value: Any
    line: int
    keys: dict[str, int] = {}
    """Of a mapping: the line of each key."""
    size: int = 1
    """Values in it, itself included."""

    def data(self) -> Json:
        """The plain value, lines left out. Recursion ends at `DEPTH`."""
        if isinstance(self.value, dict):
            return {key: node.data() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.data() for node in self.value]
        return self.value


def node(value: Json, line: int = 1) -> Node:
    """A plain value as if it stood in one line of a file."""
    if isinstance(value, dict):
        inner = {key: node(one, line) for key, one in value.items()}
        return Node(inner, line, dict.fromkeys(inner, line))
    return Node([node(one, line) for one in value] if isinstance(value, list) else value, line)


class Fields:
    """Readers of one file's fields."""

    def __init__(self, where: str) -> None:
        """`where` names the file in errors."""
        self.where = where

    def fail(self, line: int, said: str) -> NoReturn:
        """Raises UserError, in one line: names may hold line ends."""
        raise UserError(f"{self.where}:{line}: {' '.join(said.split())}")

    def require(self, holds: object, line: int, said: str) -> None:
        """`fail` where something does not hold."""
        if not holds:
            self.fail(line, said)

    def mapping(self, node: Node, what: str, known: Sequence[str]) -> dict[str, Node]:
        """The entries of a mapping that has none but the known keys."""
        if not isinstance(node.value, dict):
            self.fail(node.line, f"{what} must be a mapping with the keys {', '.join(known)}")
        for key in node.value:
            if key not in known:
                near = get_close_matches(key, known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
                self.fail(node.keys[key], f"unknown key {key[:60]!r} of {what}: {hint}")
        return node.value

    def text(self, node: Node, what: str) -> str:
        """A text that is not empty."""
        if not isinstance(node.value, str) or not node.value.strip():
            self.fail(node.line, f"{what!r} must be a text that is not empty; put it into quotes")
        return node.value

    def flag(self, node: Node | None, what: str) -> bool:
        """True or false; false where there is none."""
        if node is not None and not isinstance(node.value, bool):
            self.fail(node.line, f"{what!r} must be true or false")
        return node is not None and bool(node.value)

    def version(self, top: dict[str, Node], line: int) -> None:
        """Refuses a file whose `version` is not 1."""
        self.require("version" in top, line, "'version' is missing; write version: 1")
        version = top["version"]
        self.require(
            version.value == 1 and not isinstance(version.value, bool),
            version.line,
            "this version is not known; write version: 1",
        )


def load(data: bytes, where: str) -> Node:
    """The one document of a YAML text. `where` names the file in errors."""
    text = decoded(data, where)
    try:
        return _Reader(where, text).read_document()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UserError(
            f"{where}:{line}: a character that YAML does not allow; write it as an escape"
        ) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        said = " ".join((error.problem or error.context or "cannot be read").split())
        raise UserError(f"{where}:{line}: not YAML: {said[:200]}") from None
    except (ValueError, OverflowError, RecursionError):  # an escape beyond Unicode
        raise UserError(f"{where}: not YAML: an escape or a number that cannot be read") from None


def line_of(event: Any) -> int:
    """Where an event begins, from 1."""
    return int(event.start_mark.line) + 1


class _Reader(Fields):
    """Puts events together, at most `DEPTH` levels of them."""

    def __init__(self, where: str, text: str) -> None:
        super().__init__(where)
        self.events: Any = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self.anchors: dict[str, Node | None] = {}
        """None: the anchor's value is not finished, so an alias to it would contain itself."""

    def read_document(self) -> Node:
        """The one document."""
        root: Node | None = None
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                self.require(root is None, line_of(event), "a second document begins; one file holds one")
            elif isinstance(event, yaml.NodeEvent):
                root = self.node(event, 1)
        if root is None:
            self.fail(1, "the file is empty")
        return root

    def node(self, event: Any, depth: int) -> Node:
        """The value that begins with an event."""
        line = line_of(event)
        if isinstance(event, yaml.AliasEvent):
            name = str(event.anchor)
            self.require(name in self.anchors, line, f"*{name[:60]} has no anchor &{name[:60]} before it")
            if (found := self.anchors[name]) is None:
                self.fail(line, f"*{name[:60]} stands within its own anchor")
            return found
        if event.anchor:
            self.anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            made = Node(self.scalar(event, line), line)
        else:
            self.require(depth <= DEPTH, line, f"nested deeper than {DEPTH} levels")
            made = Node({} if isinstance(event, yaml.MappingStartEvent) else [], line, {})
            self.check_tag(event.tag, "map" if isinstance(made.value, dict) else "seq", line)
            self.fill(made, depth)
        if event.anchor:
            self.anchors[event.anchor] = made
        return made

    def fill(self, into: Node, depth: int) -> None:
        """Reads the entries of a list or mapping."""
        for event in self.events:
            if isinstance(event, yaml.CollectionEndEvent):
                return
            one = self.node(event, depth + 1)
            if isinstance(into.value, list):
                into.value.append(one)
            else:
                key = one.value
                self.require(isinstance(key, str), one.line, "a key must be a text; put it into quotes")
                self.require(key != "<<", one.line, "'<<' is not YAML 1.2; write the keys out")
                first = f"first on line {into.keys.get(key)}"
                self.require(key not in into.value, one.line, f"the key {key[:60]!r} is given twice; {first}")
                into.keys[key] = one.line
                into.value[key] = one = self.node(next(self.events), depth + 1)
            into.size += one.size
            self.require(into.size <= NODES, one.line, f"aliases make more than {NODES:,} values of it")

    def check_tag(self, tag: str | None, wanted: str, line: int) -> None:
        self.require(
            tag in (None, "!", _CORE + wanted), line, f"the tag {str(tag)[:60]!r} is not read; leave it out"
        )

    def scalar(self, event: yaml.ScalarEvent, line: int) -> Json:
        """A scalar: by the core schema where it is plain, else a text."""
        text: str = event.value
        if any("\ud800" <= char <= "\udfff" for char in text):
            self.fail(line, "a text holds half a surrogate pair")
        self.check_tag(event.tag, "str", line)
        if event.tag is not None or event.style:
            return text
        if text in _NULL:
            return None
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        if len(text) > 1000:
            return text
        if _INT.fullmatch(text):
            return int(text)
        if _BASED.fullmatch(text):
            return int(text[2:], 8 if text[1] == "o" else 16)
        self.require(
            not _NOT_FINITE.fullmatch(text),
            line,
            f"{text} cannot be sent as JSON; write a number, or put it into quotes",
        )
        if not _FLOAT.fullmatch(text):
            return text
        value = float(text)
        self.require(not math.isinf(value), line, f"the number {text[:20]} is beyond what JSON readers hold")
        return value
