"""The live dataset and its episodes: tasks in a world that calls change, and what goes wrong on the way.

A row is a conversation's user side, the registry, where the world starts, gold's calls and what the world is
then. A perturbed row is its clean row with one fault; nothing that is sent before the fault tells them apart.
Or it is its clean row with more tools in the registry, as one of the core's types puts them in.
"""

from typing import Literal, TypeAlias, get_args

import msgspec

from .json import Json, digest
from .parquet import Int32
from .rows import Call, Message, Tool
from .running import RunningKind

DATASET = "robustbench-tc-live"
TASKS = "tasks"
"""The config of the clean rows; the others are called `live_` and their fault's kind, or their type."""

CoreText = Literal[
    "transient_timeout", "transient_rate_limit", "transient_auth_error", "transient_server_error",
    "transient_malformed_response", "transient_schema_drift",
]  # fmt: skip
OwnText = Literal[
    "timeout_after_effect", "malformed_response_after_effect", "schema_drift_after_effect", "silent_no_op",
    "stale_read", "fabricated_leaf", "duplicate_effect", "prerequisite", "strict_types",
    "injected_instruction",
]  # fmt: skip
Kind: TypeAlias = CoreText | OwnText | RunningKind | Literal["forbidden"]
CORE_TEXTS: tuple[str, ...] = get_args(CoreText)
"""Kinds whose text is that of the core's type of the same name; the call is not executed."""

AFTER_EFFECT: dict[str, CoreText] = {
    "timeout_after_effect": "transient_timeout",
    "malformed_response_after_effect": "transient_malformed_response",
    "schema_drift_after_effect": "transient_schema_drift",
}
"""Kinds whose call is executed, and the kind whose text is answered, byte for byte."""

BUILT_KINDS: tuple[str, ...] = (*CORE_TEXTS, *get_args(OwnText))
"""Every kind of fault that a build makes where none is named."""

NAMED_KINDS: tuple[str, ...] = (*get_args(RunningKind), "forbidden")
"""Kinds that a build makes where they are named."""

KINDS: tuple[str, ...] = (*BUILT_KINDS, *NAMED_KINDS)
"""Every kind of fault that rows have, in the order of every table."""

EXPLICIT = (*CORE_TEXTS, *AFTER_EFFECT, "prerequisite", "strict_types")
"""Kinds that the agent is shown as a failure; the others look like success."""

Label = Literal["repair", "report"]
"""What is right: `repair` where an offered read shows what happened, `report` where none does."""

Position = Literal["first_write", "used_read", "last_write"]


class At(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which call meets a fault: exactly one of the four is given. Numbers count from 1 over the episode."""

    call: int | None = None
    """The n-th call of any tool."""
    write: int | None = None
    """The n-th call of a tool that writes."""
    read: int | None = None
    """The n-th call of a tool that reads."""
    tool: str | None = None
    """The first call of a tool whose name fits this pattern (`fnmatch`), or the `nth`."""
    nth: int = 1

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.call, self.write, self.read, self.tool)) != 1:
            raise ValueError("a fault needs exactly one of call, write, read and tool")
        if any(n is not None and n < 1 for n in (self.call, self.write, self.read, self.nth)):
            raise ValueError("calls are counted from 1")


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fault of an episode."""

    at: At
    kind: Kind
    repeat: int | Literal["once", "always"] = "once"
    """How many calls meet it, from the first that `at` names on, of calls to the same tool."""
    path: tuple[str | int, ...] = ()
    """`fabricated_leaf`: where in the result the leaf lies."""
    value: Json = None
    """`fabricated_leaf`: what stands there instead."""
    tool: str | None = None
    """`prerequisite`: the tool to call first. `injected_instruction`, `forbidden`: the tool that the text
    asks for."""
    text: str | None = None
    """`injected_instruction`: what is added to the result. `forbidden`: what the call is answered with."""
    then: tuple["Fault", ...] = ()
    """Further faults of the same episode, each with its own `at`; they have none themselves."""

    def __post_init__(self) -> None:
        # A default is left out of the JSON only where it is the very object: equal faults, equal bytes.
        if self.repeat == "once":
            msgspec.structs.force_setattr(self, "repeat", "once")


class LiveTool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool of a world."""

    name: str
    description: str
    parameters: dict[str, Json]
    """A JSON Schema object."""
    writes: bool
    """Whether a call can change the world: a fixed property of the tool, not of the call."""
    idempotent: bool = False
    """Whether a second equal call changes nothing more. Reads are."""
    undo: str | None = None
    """The tool that takes a call's effect back, where there is one."""
    distractor: bool = False
    """Not of the world: it answers with an error and has no effect."""

    @property
    def plain(self) -> Tool:
        """What an agent is shown of it."""
        return Tool(self.name, self.description, self.parameters)


class Turn(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the user says in one turn."""

    messages: tuple[Message, ...]
    adds: tuple[str, ...] = ()
    """Names of tools that are offered from this turn on, and were not before."""
    answers: tuple[dict[str, tuple[Json, ...]], ...] = ()
    """What the reply has to hold where the user asks (`score.answers`); empty where nothing is asked."""


class LiveRow(msgspec.Struct, frozen=True, kw_only=True):
    """One episode to come."""

    id: str
    """`clean_id::type_code`."""
    clean_id: str
    """The task's id: `orders_3`, `multi_turn_base_17`."""
    type_code: str
    """`clean`, or `live_` and the fault's kind or the registry type (`live_types`)."""
    world: str
    category: str
    turns: tuple[Turn, ...]
    tools: tuple[LiveTool, ...]
    """The registry with all that later turns add, in the order in which it is offered."""
    initial_state: Json
    """What the world is started with (`worlds.Start`)."""
    golden_calls: tuple[tuple[Call, ...], ...]
    """Gold's calls of each turn, with plain values as parameters."""
    gold_state_sha256: str
    """`state_hash` of the world after gold's calls."""
    fault: Fault | None = None
    position: Position | None = None
    label: Label | None = None
    seed: int = 0
    flags: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether it is a task's own row, which the others are compared with."""
        return self.type_code == "clean"

    @property
    def faults(self) -> tuple[Fault, ...]:
        """All faults of the episode."""
        return () if self.fault is None else (self.fault, *self.fault.then)

    def with_policy(self, policy: str) -> "LiveRow":
        """The row with a system message in front of what the user says."""
        messages = (Message("system", policy), *self.turns[0].messages)
        first = msgspec.structs.replace(self.turns[0], messages=messages)
        return msgspec.structs.replace(self, turns=(first, *self.turns[1:]))

    def offered(self, turn: int) -> tuple[LiveTool, ...]:
        """The tools that an agent is shown in a turn, counted from 0."""
        later = {name for one in self.turns[turn + 1 :] for name in one.adds}
        return tuple(tool for tool in self.tools if tool.name not in later)


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of an agent and what came of it."""

    name: str
    arguments: Json
    """As the agent gave them; an object, or what it wrote instead."""
    text: str
    """What the agent was answered."""
    executed: int = 1
    """How often the world carried the call out: 0, 1, or 2 for a duplicated effect."""
    met: bool = False
    """Whether a fault stood in front of it."""
    fault: int = 0
    """Which of the row's faults that was, counted from 0."""
    true_text: str | None = None
    """What the world answered, where the agent was answered something else."""
    problem: Literal["timeout", "died", "not_offered", "arguments"] | None = None
    """Why the world was not asked, or had no answer: cut off, dead, no such tool, arguments that are no
    object."""
    tool: int | None = None
    """The place in the registry of the tool that was called, where a defence decided which of several of one
    name it is."""
    defence: Literal["look", "repeat"] | None = None
    """Made by a defence on behalf of the agent's call before or behind it: a read that shows whether a write
    happened, or that call once more. The agent is shown nothing of it but what `told` says."""
    told: str | None = None
    """What the agent was answered in the end, where a defence put it in the place of `text`."""

    @property
    def shown(self) -> str:
        """What the agent was answered."""
        return self.text if self.told is None else self.told


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer of the agent, with the steps that its calls led to."""

    turn: int
    """Of the user, from 0."""
    text: str | None = None
    tool_calls: Json = None
    """Native calls as received, names mapped back."""
    steps: tuple[Step, ...] = ()
    """None of them: the turn ended, or was answered with `PLEASE_DECIDE`."""
    answered: bool = False
    """The reply asked something, and `PLEASE_DECIDE` was said to it."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_s: float | None = None
    finish_reason: str | None = None
    requests: int = 1
    """How many requests it took: defences may ask further ones."""

    @property
    def own_steps(self) -> tuple[Step, ...]:
        """The agent's own calls, without those that a defence made."""
        return tuple(step for step in self.steps if step.defence is None)


PLEASE_DECIDE = "Please decide yourself with what you have."
"""The scripted user's answer to a question, once in a turn."""

MAX_STEPS = 20
"""A turn with more executed replies than this ends the episode (BFCL: after the 21st)."""

Ended = Literal["done", "too_many_steps", "too_long", "rejected", "request_error", "agent_error"]
"""How an episode ended. `done`: all turns ran. The last four: there was no reply (`answers.Status`)."""


class Episode(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in one row with one model: all that scores are made from, with the worlds replayed."""

    id: str
    clean_id: str
    type_code: str
    world: str
    model: str
    mode: Literal["prompt", "fc"]
    repeat: Int32 = 0
    row_hash: str
    ended: Ended
    replies: tuple[Reply, ...]
    error: str | None = None
    noticed: tuple[str, ...] = ()
    """Defences that said that something is wrong."""


def row_hash(row: LiveRow) -> str:
    """16 hex digits over all that an episode depends on: answers are kept and reused under this key."""
    return digest(row)
