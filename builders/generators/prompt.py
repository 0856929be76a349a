"""The prompts of the model-written types: one versioned text file per type, rendered with a request.

`prompts/KIND.vN.txt` holds the system text, a line of `=====`, and the user text, both Jinja templates. The
text to rewrite stands between markers that hold the request's hash, so that nothing in it can close them.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import jinja2
import msgspec

from robustbench_tc.schema import Json

from ..perturb.base import REGISTRY, TextRequest

_FILE = re.compile(r"(.+)\.v(\d+)\.txt")
_ENVIRONMENT = jinja2.Environment(
    undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
)


class Prompt(msgspec.Struct, frozen=True):
    """A type's prompt in its newest version."""

    kind: str
    version: str
    """`v1`: part of the label of every text that it made."""
    system: str
    user: str
    words: Mapping[str, str]
    """What stands for placeholders that several types fill each in its own way."""

    def messages(self, request: TextRequest) -> list[dict[str, Json]]:
        """The conversation that asks for the text."""
        values = {
            "mark": marker(request),
            "input": request.input,
            "tool": request.tool,
            "parameter": request.parameter,
            "keep": request.keep,
            **self.words,
            **{name: _json(value) for name, value in request.context.items()},
        }
        return [
            {"role": role, "content": _ENVIRONMENT.from_string(text).render(values)}
            for role, text in (("system", self.system), ("user", self.user))
        ]


def marker(request: TextRequest) -> str:
    """The word that opens and closes the text to rewrite."""
    return f"TEXT-{request.key[:12]}"


@cache
def prompt(kind: str) -> Prompt:
    """The newest prompt of a type: types that share one name it."""
    name = REGISTRY[kind].prompt or kind
    found = {
        int(match.group(2)): entry
        for entry in files("robustbench_tc.builders").joinpath("prompts").iterdir()
        if (match := _FILE.fullmatch(entry.name)) and match.group(1) == name
    }
    version = max(found)
    system, user = found[version].read_text("utf-8").split("\n=====\n")
    return Prompt(kind, f"v{version}", system.strip(), user.strip(), REGISTRY[kind].prompt_words)


def _json(value: Json) -> Json:
    """Structured context as JSON text, one item per line where it is a list of objects."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        return "\n".join(msgspec.json.encode(item).decode() for item in value)
    return msgspec.json.encode(value).decode()
