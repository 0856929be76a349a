"""The faults that a plan can name: of the core, whose texts are the taxonomy's, of running systems
(`schema.running`), and those that only a door can cause."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from . import seeding, taxonomy
from .errors import unknown
from .schema import Json
from .schema.running import RESULT_FAULTS, UNMADE

EFFECTS = ("timeout_after_effect", "silent_no_op", "stale_read", "injected_instruction")
"""Kinds that only the door in front of a server has: whether a call is carried out, and what stands beside
its result."""
FAULT_KINDS = tuple(
    kind.code for kind in taxonomy.types() if kind.channel == "tool_result" and kind.injected_error
)
"""The transition types of the core."""
BEFORE_EFFECT = (*FAULT_KINDS, *UNMADE)
"""Kinds whose text takes the place of the call itself, where a door can do that."""
KINDS = (*BEFORE_EFFECT, *EFFECTS, *RESULT_FAULTS, "latency")
MOST_TEXT = 4_000
"""Characters of a fault's own text."""
MOST_CALLS = 100_000

Word = Annotated[str, Meta(min_length=1)]
Words = Annotated[tuple[Word, ...], Meta(min_length=1)]
"""A list that is left out where it is empty."""
MOST_SECONDS = 600
Seconds = Annotated[float, Meta(ge=0, le=MOST_SECONDS)]


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault that results meet while an agent works."""

    kind: str
    """One of KINDS."""
    rate: Annotated[float, Meta(gt=0, le=1)] | None = None
    """The share of calls, each drawn for itself."""
    at: Annotated[tuple[Annotated[int, Meta(ge=1, le=MOST_CALLS)], ...], Meta(min_length=1)] = ()
    """Or: the calls of a conversation that are the agent's own, from 1."""
    calls: Annotated[int, Meta(ge=1, le=1_000)] | None = None
    """How many calls it lasts, from each of these on: by default one, of a dropped tool all."""
    tools: Words = ()
    """Only these; () for all."""
    arguments: dict[str, Json] = {}
    """Only calls with these values."""
    text: Annotated[str, Meta(min_length=1, max_length=MOST_TEXT)] | None = None
    """Words of the plan's own instead of the kind's."""
    # msgspec 0.22 crashes on `tuple[Seconds, Seconds]` here.
    seconds: Seconds | Annotated[tuple[Seconds, ...], Meta(min_length=2, max_length=2)] | None = None
    """`latency`: how much later the result comes, or the bounds between which that is drawn."""

    def answer(self, result: str) -> str:
        """What the agent gets in place of a result; of an injected instruction, what is added to it."""
        if self.kind == "latency":
            return result
        if self.kind in RESULT_FAULTS:
            return RESULT_FAULTS[self.kind](result)
        kind = {"timeout_after_effect": "transient_timeout"}.get(self.kind, self.kind)
        return self.text or UNMADE.get(kind) or taxonomy.injected_error(kind) or ""

    def about(self, tool: str, arguments: Mapping[str, Json]) -> bool:
        """Whether it is one of such a call."""
        named = not self.tools or tool in self.tools
        return named and self.arguments.items() <= arguments.items()

    def stands(self, number: int, seed: int = 0, *key: str) -> bool:
        """Whether it is there at the call of that number. `seed` and `key`: what is drawn depends on."""
        calls = MOST_CALLS if self.kind == "dropped_tool" else 1
        firsts = range(max(1, number - (self.calls or calls) + 1), number + 1)
        if self.rate is None:
            return any(first in firsts for first in self.at)
        return any(seeding.rng(seed, *key, str(first)).random() < self.rate for first in firsts)

    def drawn(self, number: int, seed: int, *key: str) -> "Fault":
        """The same with seconds that are drawn."""
        if not isinstance(self.seconds, tuple):
            return self
        low, high = self.seconds
        seconds = seeding.rng(seed, *key, str(number), "seconds").uniform(low, high)
        return msgspec.structs.replace(self, seconds=seconds)

    @property
    def waits(self) -> float:
        """How much later the result comes, in seconds."""
        return 0.0 if self.seconds is None else msgspec.convert(self.seconds, float)

    @property
    def mistake(self) -> str | None:
        """What is wrong with it in a plan; None for nothing."""
        if self.kind not in KINDS:
            return str(unknown("kind of fault", self.kind, KINDS))
        if (self.rate is None) == (not self.at):
            return f"the fault {self.kind} needs either 'rate' or 'at'"
        if self.kind == "injected_instruction" and self.text is None:
            return "the fault injected_instruction needs 'text': what is added to the result"
        if self.kind in ("stale_read", "latency", *RESULT_FAULTS) and self.text is not None:
            return f"{self.kind} shows what the tool says and takes no 'text'"
        if self.kind == "dropped_tool" and (not self.at or not self.tools or self.arguments):
            return "the fault dropped_tool needs 'at' and 'tools', and takes no 'arguments'"
        if (self.kind == "latency") == (self.seconds is None):
            return "'seconds' is what the fault latency needs, and no other one takes"
        return None
