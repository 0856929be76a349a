"""Answers: what a model said to a row, and what reading and scoring make of it."""

from typing import Literal, get_args

import msgspec

from .json import Json
from .parquet import Int32
from .rows import Call, Component

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
    """In fc mode, why a client did not get the calls of one of the replies (`eval.delivered.MEANING`)."""
    reasoning_call: bool | None = None
    """In fc mode, whether the reasoning of one of the replies holds a call."""
    noticed: tuple[str, ...] | None = None
    """Defences that said that something is wrong; null where nobody looked (a door, older files)."""


ErrorMode = Literal[
    "empty", "omitted", "missing_call", "wrong_name", "ghost", "wrong_parameters", "name_bias",
    "wrong_language", "other",
]  # fmt: skip
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
