"""The row contract: what a tool, a call, a sample and a prediction are, and how they lie in Parquet.

This is the single home of the row types. Every room reads and writes these and nothing else.

Heterogeneous JSON (tool schemas, golden answers, diffs) is stored as canonical JSON *text* in plain
string columns. `datasets.Json` would decode on read, but its decoder refuses integers beyond 64 bits and
its encoder rounds floats (docs/data.md); text survives every reader byte for byte.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar, get_args

import msgspec

from . import column_types
from .column_types import ColumnTypes, Int32, in_struct, json_fields

if TYPE_CHECKING:
    import pyarrow as pa

Json: TypeAlias = Any
"""Anything JSON can hold; the scorers and the property tests narrow it."""

Component = Literal["observation", "action", "reward", "transition", "mixed"]
"""Which component of an agent's world is perturbed; `mixed`: several at once, which count under none."""

if TYPE_CHECKING:
    SOURCES: tuple[str, ...]
    """Names of the sources, in the order of every table (`robustbench_tc.sources` has their facts)."""

    OUTPUT_FORMATS: Mapping[str, str]
    """Source → how its samples ask for a call."""
else:

    def __getattr__(name: str) -> Any:
        # Read when first asked for: the registries that write these facts import this module too.
        if name in ("SOURCES", "OUTPUT_FORMATS"):
            from .sources import names, sources

            return names() if name == "SOURCES" else {one.name: one.output_format for one in sources()}
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
    part (`robustbench_tc.steps`).
    """

    path: str
    before: Json = None
    after: Json = None
    at: int | None = None


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One row of the benchmark. Perturbing makes another one (`msgspec.structs.replace`)."""

    id: str
    """`clean_id::type_code`, unique in a release. Never a file name."""
    clean_id: str
    type_code: str
    """`clean` or a code of the taxonomy."""
    source: str
    category: str
    """Upstream's own word (BFCL category, API-Bank level, scenario, API category)."""
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    golden_answers: tuple[GoldenAnswer, ...]
    output_format: str
    component: Component | None = None
    gold_tool_index: Int32 | None = None
    """Index in `tools` of the tool that the first answer's first call means."""
    changes: tuple[Change, ...] = ()
    generator: str = "rule"
    """Where new text came from: rule, recorded, hand-written, or `model@prompt-version`."""
    seed: int = 0
    injected_error: str | None = None
    """Transition types: the text the harness answers the first call with."""
    flags: tuple[str, ...] = ()


Status = Literal["ok", "too_long", "rejected", "request_error", "agent_error"]
"""What became of a request.

ok: there is a reply. too_long: the server refused the length. rejected: it refused the registry.
request_error: there is no reply, so nothing is scored. agent_error: an own agent raised, hung, or returned
something that is no reply. All but ok and request_error count as a wrong answer."""

ASKED_AGAIN: frozenset[Status] = frozenset({"request_error", "agent_error"})
"""The same command asks these rows again."""


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """One model's answer to one row, raw as received; the verdict is a `Verdict`, made by `rbtc score`."""

    id: str
    clean_id: str
    type_code: str
    component: Component | None
    source: str
    category: str
    model: str
    mode: Literal["prompt", "fc"]
    repeat: Int32 = 0
    sample_hash: str
    """`content_hash` of the row that was asked, so that an answer never meets another text."""
    status: Status
    raw_output: str | None = None
    """The scored reply's text: the second pass where an error was injected."""
    tool_calls: Json = None
    """The scored reply's native calls, `[{"id", "name", "arguments"}]` with arguments as the raw text."""
    injected: bool | None = None
    """Transition types only: whether the first reply had a call and was answered with the error."""
    first_output: str | None = None
    first_tool_calls: Json = None
    finish_reason: str | None = None
    error: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_s: float | None = None
    retries: Int32 = 0
    logprobs: Json = None
    attempts: Int32 | None = None
    """Repeated errors only: how many calls met the error. Files of before there were such lack it."""
    native_calls: Int32 | None = None
    """In fc mode, how many calls of the scored reply came in its native field; null in prompt mode."""
    undelivered: str | None = None
    """In fc mode, why a client did not get the calls of one of the replies (`eval.delivered.Reason`)."""
    reasoning_call: bool | None = None
    """In fc mode, whether the reasoning of one of the replies holds a call."""


ErrorMode = Literal[
    "empty",
    "omitted",
    "missing_call",
    "wrong_name",
    "ghost",
    "wrong_parameters",
    "name_bias",
    "wrong_language",
    "other",
]
"""Why a wrong prediction is wrong (`eval.score.error_modes`)."""

ERROR_MODES: tuple[ErrorMode, ...] = get_args(ErrorMode)

Stage = Literal["decide", "format", "select", "identify", "fill", "recover"]

STAGES: dict[Stage, tuple[str, ...]] = {
    "decide": ("no_call", "control_only", "quoted", "only_thought", "called", "no_question"),
    "format": ("empty", "cut", "unread", "arguments", "refused"),
    "select": ("distractor", "sibling", "ghost", "other", "too_few", "too_many"),
    "identify": ("missing", "unexpected"),
    "fill": ("wrong_value", "wrong_language", "wrong_type", "typo_copied", "invented"),
    "recover": ("gave_up", "wrong_retry"),
}
"""The first stage at which a wrong answer fails, in order, each with what can be wrong there
(`eval.score.stages`)."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What parsing and scoring make of one prediction; one row per prediction, same order."""

    calls: tuple[Call, ...]
    variant: str | None
    """Which parser variant fired (`fc` for native calls, null when nothing parsed)."""
    score: float
    correct: bool
    reason: str | None
    error_mode: ErrorMode | None
    flags: tuple[str, ...] = ()
    stage: Stage | None = None
    """The first stage at which a wrong answer fails; null where it is right."""
    stage_detail: str | None = None
    """What is wrong there: one of the stage's words in STAGES."""
    delivered: bool | None = None
    """In fc mode, whether the answer is right and a client got every call on the way; null in prompt mode."""


TRAINING_SOURCE = "rlla"
"""`data_source` of every training row: what the reward dispatches on."""


class RewardModel(TypedDict):
    """How verl knows what is right."""

    style: str
    """Always `rule`."""
    ground_truth: str
    """The gold text."""


class TrainingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt for GRPO (configs `full`, `mixed`, `retry`): the columns that verl reads.

    verl wants `extra_info` as an object, so it is a `datasets.Json` column here; what could meet the limits
    of that decoder lies inside as text.
    """

    data_source: str = TRAINING_SOURCE
    prompt: tuple[Message, ...]
    ability: str = "tool_calling"
    """verl groups nothing by it; it is there because verl's examples have it."""
    reward_model: RewardModel
    extra_info: dict[str, Json]
    """index, split, clean_id, type_code, component, copy, generator, flags, `changes` as JSON text; for
    reward types `offers`, for the config `retry` the injected `error`."""


class FineTuningRow(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation for supervised fine-tuning (config `paft`).

    There is no column `tools`: the system message holds the registry, as it does in the benchmark's prompts.
    """

    messages: tuple[Message, ...]
    extra_info: dict[str, Json]


_encode = msgspec.json.Encoder().encode


# --- canonical JSON -----------------------------------------------------------------------------------


def dumps(value: Json) -> str:
    """Canonical JSON text: compact, UTF-8, insertion order kept (order and duplicates mean something here).

    Floats keep their shortest round-trip form, integers any length. Raises ValueError for what JSON cannot
    hold (NaN, infinities, lone surrogates).
    """
    try:
        text = _encode(value).decode()
    except UnicodeEncodeError as error:
        raise ValueError(f"text holds a lone surrogate: {error}") from None
    # msgspec writes a non-finite float as null: look closer only where a null may have come out.
    if "null" in text and (":null" in text or ",null" in text or "[null" in text or text == "null"):
        try:
            finite = _NON_FINITE.search(_pack(value)) is None
        except OverflowError:  # integers beyond 64 bits have no place in MessagePack
            finite = False
        if not finite:
            json.dumps(msgspec.to_builtins(value), allow_nan=False)
    return text


_pack = msgspec.msgpack.Encoder().encode
_NON_FINITE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
"""A MessagePack float whose exponent is all ones: no finite number. Other bytes may look the same."""


def loads(text: str | bytes) -> Json:
    """The value of a JSON text, integers exact. Raises ValueError with the position."""
    return msgspec.json.decode(text)


def content_hash(sample: Sample) -> str:
    """16 hex digits over what a model is shown and judged by: a verdict is about this content alone."""
    shown = (
        sample.id,
        sample.messages,
        sample.tools,
        sample.golden_answers,
        sample.output_format,
        sample.injected_error,
    )
    # Not through dumps: the missing error is a null and would have it look closer every time; a row with a
    # non-finite float cannot be written anyway.
    return hashlib.sha256(_encode(shown)).hexdigest()[:16]


ASKED_COLUMNS = ("messages", "tools", "output_format", "injected_error")
"""Columns of a sample that a model is shown; other answers are right or wrong by the others."""


def asked_hash(sample: Sample) -> str:
    """16 hex digits over what a model is shown: answers are kept and reused under this key."""
    shown = (sample.id, *(getattr(sample, column) for column in ASKED_COLUMNS))
    return hashlib.sha256(_encode(shown)).hexdigest()[:16]


def fingerprint(hashes: Iterable[tuple[str, str]]) -> str:
    """32 hex digits that say which rows a dataset has: runs are comparable if, and only if, theirs are equal.

    Of (id, `content_hash`) pairs in the order of the ids: a digest of their list as canonical JSON.
    """
    digest, comma = hashlib.sha256(b"["), b""
    for pair in hashes:
        digest.update(comma + dumps(pair).encode())
        comma = b","
    digest.update(b"]")
    return digest.hexdigest()[:32]


def dataset_label(version: str | None, fingerprint: str) -> str:
    """A dataset as it is printed: `1.3.0 (57b5f563)` for a release, `57b5f563` for a build."""
    if not version:
        return fingerprint[:8]
    return f"{version} ({fingerprint[:8]})"


def clean_id_hash(clean_id: str) -> str:
    """32 hex digits of a clean id, which can hold upstream's text: what is packed names samples by it."""
    return hashlib.sha256(clean_id.encode()).hexdigest()[:32]


def tool_hash(clean_id: str, name: str, description: str) -> str:
    """32 hex digits of a sample's id and what a tool written for it does: under which it was judged."""
    return hashlib.sha256(_encode((clean_id, name, description))).hexdigest()[:32]


def written_hash(row: dict[str, Any]) -> str:
    """`content_hash` of a row as it lies in Parquet, its JSON text not decoded.

    Equal where that text is canonical, as all is that `columns` makes; where it is not, another hash.
    """
    shown = (
        row["id"],
        row["messages"],
        msgspec.Raw(row["tools"].encode()),
        msgspec.Raw(row["golden_answers"].encode()),
        row["output_format"],
        row["injected_error"],
    )
    return hashlib.sha256(_encode(shown)).hexdigest()[:16]


# --- rows ---------------------------------------------------------------------------------------------

T = TypeVar("T", bound=msgspec.Struct)

PLAIN_COLUMNS = ("query", "gold_call")
"""What `robustbench_tc.plain` makes of the columns before them: for readers, read by no command."""

COLUMN_ORDER = (
    "id clean_id type_code component source category messages tools golden_answers gold_tool_index "
    "output_format changes generator seed injected_error flags query gold_call"
).split()
"""Columns of every sample config."""

NEEDED_COLUMNS = tuple(name for name in COLUMN_ORDER if name not in PLAIN_COLUMNS)
"""Those that make a row: earlier versions of the dataset have no others."""


def sample_columns() -> ColumnTypes:
    """The columns of every sample config, in `COLUMN_ORDER`."""
    given = in_struct(Sample)
    return {name: given.get(name, "string") for name in COLUMN_ORDER}


def prediction_columns(scored: bool = False) -> ColumnTypes:
    """The columns of a predictions file; with `scored`, the verdict's follow."""
    return in_struct(Prediction) | (in_struct(Verdict) if scored else {})


def training_columns() -> ColumnTypes:
    """The columns of the configs `full`, `mixed` and `retry`."""
    return in_struct(TrainingRow) | {"extra_info": "json"}


def fine_tuning_columns() -> ColumnTypes:
    """The columns of the config `paft`."""
    return in_struct(FineTuningRow) | {"extra_info": "json"}


def columns(records: Iterable[T], kind: type[T]) -> dict[str, list[Any]]:
    """Records as columns ready for Arrow: JSON-valued fields as canonical text, nulls kept; those of samples
    with the plain columns."""
    records = list(records)
    given = {name: list(map(attrgetter(name), records)) for name in kind.__struct_fields__}
    out: dict[str, list[Any]] = {}
    for name, values in given.items():
        if name in json_fields(kind):
            out[name] = [None if value is None else dumps(value) for value in values]
        elif any(isinstance(value, tuple) for value in values[:1]):
            out[name] = msgspec.to_builtins(values)
        else:
            out[name] = values
    if kind is Sample:
        from . import plain  # it reads the contract's types

        out["query"] = list(map(plain.query, given["messages"], given["golden_answers"]))
        out["gold_call"] = list(map(plain.gold_call, given["golden_answers"]))
    return out


def record(row: dict[str, Any], kind: type[T]) -> T:
    """A Parquet or `datasets` row back as its struct; the inverse of `columns`. Unknown columns are ignored.

    Raises ValueError (msgspec.ValidationError) with the path of what does not fit.
    """
    plain = {name: row[name] for name in kind.__struct_fields__ if name in row}
    for name in json_fields(kind):
        if isinstance(plain.get(name), str):
            plain[name] = loads(plain[name])
    return msgspec.convert(plain, kind)


def arrow_table(records: Iterable[Sample]) -> "pa.Table":
    """Samples as an Arrow table whose schema carries the `datasets` features."""
    import pyarrow as pa

    return pa.table(columns(records, Sample), schema=column_types.arrow_schema(sample_columns()))
