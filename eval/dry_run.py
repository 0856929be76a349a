"""What a run would ask, before anything is asked or written: `rbtc eval --dry-run`."""

from collections.abc import Iterator, Sequence

import msgspec

from robustbench_tc import schema
from robustbench_tc.schema import MAX_STEPS, Json, LiveRow, Sample
from robustbench_tc.shown import Part

from .defend import chain
from .dialogue import Dialogue
from .record import Settings
from .scripted import most_replies
from .speakers import with_system

CHARACTERS = 4
"""Of a request, taken for one token."""

TURN = MAX_STEPS + 2
"""Replies in a turn of a live row at most: with calls, one that asks the user, and the last."""


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a session takes; of bounds the first is the least."""

    rows: int
    """Times repeats, without those that are answered."""
    requests: tuple[int, int]
    """The least where no call is made and equal requests are asked once."""
    prompt_tokens: tuple[int, int]
    """The most: as if every request was as long as a row's first one."""
    completion_tokens: int | None
    """At most; None where replies have no limit."""
    cost: tuple[float, float] | None
    """From the least prompts alone to the most of everything; None without prices, or a limit of replies."""
    first: Json
    """The body of the first request; None where nothing is left to ask."""

    def shown(self) -> Iterator[Part]:
        """The bounds, then the first request."""
        yield f"{self.rows:,} rows to ask, {_between(self.requests)} requests"
        tokens = _between(self.prompt_tokens)
        yield f"about {tokens} prompt tokens (a token for every {CHARACTERS} characters)"
        if self.completion_tokens is not None:
            yield f"at most {self.completion_tokens:,} completion tokens"
        if self.cost is not None:
            yield f"cost {self.cost[0]:.4g} to {self.cost[1]:.4g}"
        yield "nothing was asked and nothing written; the first request:"
        yield from msgspec.json.format(msgspec.json.encode(self.first), indent=1).decode().splitlines()


def _between(bounds: tuple[int, int]) -> str:
    return " to ".join(f"{one:,}" for one in dict.fromkeys(bounds))


def dry_run(
    dialogues: Sequence[Dialogue], settings: Settings, price: tuple[float, float] | None = None
) -> DryRun:
    """What asking these takes, none of which has begun."""
    bodies = [_body(one, settings) for one in dialogues]
    least: dict[str, tuple[int, int]] = {}
    most = long = 0
    for number, (one, body) in enumerate(zip(dialogues, bodies, strict=True)):
        text = schema.dumps((one.repeat, body))
        fewest, replies = _replies(one.env.row)
        requests = replies * chain.budget(one.env.chain)
        most, long = most + requests, long + requests * len(text)
        least[text if settings.shares else str(number)] = fewest, fewest * len(text)
    short = sum(characters for _, characters in least.values())
    limit = settings.decoding.get("max_tokens")
    completion = most * limit if isinstance(limit, int) else None
    cost = None
    if price is not None and completion is not None:
        asked_for, answered = price
        spent = long / CHARACTERS * asked_for + completion * answered
        cost = (short / CHARACTERS * asked_for / 1e6, spent / 1e6)
    return DryRun(
        rows=len(dialogues),
        requests=(sum(requests for requests, _ in least.values()), most),
        prompt_tokens=(short // CHARACTERS, long // CHARACTERS),
        completion_tokens=completion,
        cost=cost,
        first=next(iter(bodies), None),
    )


def _replies(row: Sample | LiveRow) -> tuple[int, int]:
    """How many count for a row, at least and at most."""
    if isinstance(row, LiveRow):
        return len(row.turns), len(row.turns) * TURN
    return 1, most_replies(row)


def _body(dialogue: Dialogue, settings: Settings) -> dict[str, Json]:
    ask = dialogue.ask()
    assert ask is not None  # nothing has been answered yet
    body: dict[str, Json] = {"model": settings.checkpoint or settings.model, **settings.decoding}
    body["messages"] = with_system(ask.messages, settings.system)
    if ask.tools is not None:
        body["tools"] = ask.tools
    return body
