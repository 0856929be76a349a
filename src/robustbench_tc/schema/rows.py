"""The rows of the benchmark: what a message, a tool, a call and a sample are, and the keys of a row.

Every room reads and writes these and nothing else.
"""

import hashlib
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import msgspec

from .json import Json, digest, dumps
from .parquet import Int32

Component = Literal["observation", "action", "reward", "transition", "mixed"]
"""Which component of an agent's world is perturbed; `mixed`: several at once, which count under none."""

CONTROL_TOOLS = frozenset({"ask_to_user", "finish"})
"""Tools that steer the dialogue (RoTBench, ToolEyes). Never a donor, never duplicated into a distractor."""

OMIT = ""
"""In a list of accepted values: the parameter may be left out."""

ANY: dict[str, bool] = {"any": True}
"""In a list of accepted values: the parameter must be there, its value is free."""

GOLD_NOT_STATED = "gold_not_stated"
"""Flag of the rows whose golden answers nobody could take from what is said, defined or known: no honest
model can be right on them. The rows without it are the subset `verified`."""


# What rows are made of is built by the million and cannot refer back to itself: `gc=False` spares the garbage
# collector the look at each.


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message of a conversation, text only; calls are text as the source writes them."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str


class Tool(msgspec.Struct, frozen=True, gc=False):
    """One entry of the registry. `parameters` is a JSON Schema object; a missing description is ""."""

    name: str
    description: str
    parameters: dict[str, Json]

    @property
    def properties(self) -> dict[str, Json]:
        """The declared parameters by name (a malformed schema declares none)."""
        found = self.parameters.get("properties")
        return found if isinstance(found, dict) else {}

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the parameters that the schema requires; () where it lists none."""
        found = self.parameters.get("required")
        return tuple(found) if isinstance(found, list) else ()


class Call(msgspec.Struct, frozen=True, gc=False):
    """A call. In a golden answer each parameter maps to the list of its accepted values (see OMIT, ANY)."""

    name: str
    parameters: dict[str, Json]


GoldenAnswer: TypeAlias = tuple[Call, ...]
"""The calls of one acceptable answer."""


class Change(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One entry of the machine-readable diff against the clean row.

    `path` is a JSON pointer into the row (`/messages/0/content`, `/tools/2`, `/golden_answers`); `before` is
    null for something added, `after` null for something removed. `/tools` with two lists of names is a
    reordering. `/messages/1` with a whole message (role and content) is one that was added (its place in the
    row) or removed (its place in the clean row). `/value_map` is no place: it says which words of the request
    stand for which golden value (`languages.value_map`). `at` is set where only a passage of a text changed:
    the offset in characters at which `before` stood in the clean text.
    In a mixed type's row `/type_code` begins a part: the changes after it are against the row before that
    part (`builders.steps`).
    """

    path: str
    before: Json = None
    after: Json = None
    at: int | None = None


class Sample(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One row of the benchmark. Perturbing makes another one (`msgspec.structs.replace`)."""

    id: str
    """`clean_id::type_code`, unique in a release. Never a file name."""
    clean_id: str
    type_code: str
    """`clean` or a code of the taxonomy."""
    component: Component | None = None
    source: str
    category: str
    """Upstream's own word (BFCL category, API-Bank level, scenario, API category)."""
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    golden_answers: tuple[GoldenAnswer, ...]
    gold_tool_index: Int32 | None = None
    """Index in `tools` of the tool that the first answer's first call means."""
    output_format: str
    changes: tuple[Change, ...] = ()
    generator: str = "rule"
    """Where new text came from: rule, recorded, hand-written, or `model@prompt-version`."""
    seed: int = 0
    injected_error: str | None = None
    """Transition types: the text the harness answers the first call with."""
    flags: tuple[str, ...] = ()


class PublishedSample(Sample, frozen=True, gc=False, kw_only=True):
    """A row as it is published: with two columns for readers, made of those before them (`builders.plain`).

    No command reads them, and earlier versions of the dataset lack them.
    """

    query: str
    """The user's request."""
    gold_call: str
    """The first accepted answer."""


def content_hash(sample: Sample) -> str:
    """16 hex digits over what a model is shown and judged by: a verdict is about this content alone."""
    shown = sample.id, sample.messages, sample.tools, sample.golden_answers
    return digest((*shown, sample.output_format, sample.injected_error))


def written_hash(row: dict[str, Any]) -> str:
    """`content_hash` of a row as it lies in Parquet, its JSON text not decoded.

    Equal where that text is canonical, as all is that `columns` makes; where it is not, another hash.
    """
    tools, answers = (msgspec.Raw(row[name].encode()) for name in ("tools", "golden_answers"))
    rest = row["output_format"], row["injected_error"]
    return digest((row["id"], row["messages"], tools, answers, *rest))


ASKED_COLUMNS = ("messages", "tools", "output_format", "injected_error")
"""Columns of a sample that a model is shown; other answers are right or wrong by the others."""


def asked_hash(sample: Sample) -> str:
    """16 hex digits over what a model is shown: answers are kept and reused under this key."""
    return digest((sample.id, *(getattr(sample, column) for column in ASKED_COLUMNS)))


def fingerprint(hashes: Iterable[tuple[str, str]]) -> str:
    """32 hex digits that say which rows a dataset has: runs are comparable if, and only if, theirs are equal.

    Of (id, `content_hash`) pairs in the order of the ids: a digest of their list as canonical JSON.
    """
    whole, comma = hashlib.sha256(b"["), b""
    for pair in hashes:
        whole.update(comma + dumps(pair).encode())
        comma = b","
    whole.update(b"]")
    return whole.hexdigest()[:32]


def dataset_label(version: str | None, fingerprint: str) -> str:
    """A dataset as it is printed: `1.3.0 (57b5f563)` for a release, `57b5f563` for a build."""
    return f"{version} ({fingerprint[:8]})" if version else fingerprint[:8]


def clean_id_hash(clean_id: str) -> str:
    """32 hex digits of a clean id, which can hold upstream's text: what is packed names samples by it."""
    return hashlib.sha256(clean_id.encode()).hexdigest()[:32]


def tool_hash(clean_id: str, name: str, description: str) -> str:
    """32 hex digits of a sample's id and what a tool written for it does: under which it was judged."""
    return digest((clean_id, name, description), 32)
