"""The defence `shield`: calls that a policy forbids are not carried out, and the model hears so.

The policy is what the system message says (`system`), or a user's rules: patterns over names and arguments,
which are compared and never evaluated. A run's record holds the rules, not the name of their file: whoever
reads it opens no file.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, unquote

import msgspec
from msgspec import Meta

from robustbench_tc.errors import UserError
from robustbench_tc.own import files, yaml
from robustbench_tc.schema import Call, Json, Message, dumps
from robustbench_tc.worlds.fit import error

from .. import wire
from .again import corrected
from .chain import Asking, Model, Scene

SYSTEM = "system"
"""The way of `shield` that reads the system message."""

POLICY_REFUSAL = error(
    "a policy forbids this call. It was not carried out: go on without it, or tell the user."
)

MOST = 10_000
"""Bytes of a policy."""

Pattern = Annotated[str, Meta(min_length=1)]


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Calls that are forbidden."""

    tool: Pattern
    """A pattern of the name (`fnmatch`)."""
    arguments: Mapping[str, Pattern | int | float | bool] = {}
    """Parameter → a pattern of its value, or the value itself; all of them have to fit."""

    def fits(self, call: Call) -> bool:
        """Whether a call is among them."""
        return fnmatchcase(call.name, self.tool) and all(
            name in call.parameters and _meets(call.parameters[name], wanted)
            for name, wanted in self.arguments.items()
        )


def _meets(value: Json, wanted: str | int | float | bool) -> bool:
    """Whether a value fits a pattern, or equals a number or boolean however it is written: 950.0 is 950."""
    if isinstance(wanted, str):
        return fnmatchcase(_text(value), wanted)
    equal = value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
    return equal or _text(value) == _text(wanted)


def _text(value: Json) -> str:
    """A value as patterns see it: a text as it is, another as JSON writes it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


Rules = Annotated[tuple[Rule, ...], Meta(min_length=1)]


def with_rules(words: Iterable[str]) -> Iterator[str]:
    """The names of defences as a run's record has them: with the rules of a policy in place of its file's
    name. Raises UserError."""
    for word in words:
        code, _, way = word.partition(":")
        if code == "shield" and way not in ("", SYSTEM) and not way.startswith("["):
            policy = dumps(yaml.load(files.read_bytes(Path(way), "a policy", MOST), way).data())
            policy = quote(policy, safe='[]{}":*?! ')  # no comma: commas stand between defences
            rules(policy, way)
            word = f"{code}:{policy}"
        yield word


@lru_cache(maxsize=64)
def rules(way: str, where: str = "--defend shield") -> tuple[Rule, ...]:
    """The rules that a run's record has; no file is read. `where` names them in errors. Raises UserError."""
    try:
        found: tuple[Rule, ...] = msgspec.json.decode(unquote(way), type=Rules)
    except msgspec.DecodeError as error:
        raise UserError(f"{where}: a policy is a list of rules, each with `tool`: {error}") from None
    return found


_NEVER = re.compile(
    r"\b(?i:never|do\s+not|don['’]t|must\s+not)\b((?:[^.!?;\n]|[.!?;](?=\w)|\n(?=[ \t]*[a-z]))*)"
)
"""And what follows in the sentence: it goes on after a dot within a word, and in a line that begins small."""
_WORD = re.compile(r"[A-Z]+s?(?![a-z0-9])|[A-Z]?[^\W_A-Z]+")
"""Parts of a camelCase name are words, as capitals are (`HTTP` of `HTTPLog`); other scripts have no parts."""


_SERVER = re.compile(r"^server\d+__")
"""What `namespace` puts before a name, where it stands in front of `shield`."""


def forbids(way: str, call: Call, messages: Sequence[Message]) -> bool:
    """Whether a call is forbidden: by the rules, or by a sentence of the system message that says "never" and
    has every word of the tool's name."""
    plain = msgspec.structs.replace(call, name=_SERVER.sub("", call.name))
    if way != SYSTEM:
        return any(rule.fits(call) or rule.fits(plain) for rule in rules(way))
    said = (found for one in messages if one.role == "system" for found in _NEVER.findall(one.content))
    name = _words(plain.name)
    return bool(name) and any(name <= _words(clause) for clause in said)


def _words(text: str) -> set[str]:
    """Its words in lower case, without the s of a plural."""
    return {word.lower().removesuffix("s") for word in _WORD.findall(text)}


def shielded(scene: Scene, model: Model, way: str) -> Asking:
    """The reply without calls that are forbidden; the model is asked once more before they are left out."""
    refused = partial(forbids, way, messages=scene.row.messages)
    said = yield from corrected(
        scene,
        model,
        lambda call: POLICY_REFUSAL if refused(call) else "",
        "Not carried out: a policy forbids another call of the same answer.",
    )
    calls = scene.read(scene.shown, said.answer) if said.answer.status == "ok" else ()
    allowed = [call for call in calls if not refused(call)]
    if len(allowed) == len(calls):
        return said.outer()
    # In the form of native calls: texts have no one form.
    return said.outer(
        msgspec.structs.replace(said.answer, text=None, tool_calls=wire.native(allowed) or None)
    )
