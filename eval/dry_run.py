"""What a run would ask, before anything is asked or written: `rbtc eval --dry-run`."""

from collections.abc import Iterator, Sequence

import msgspec

from robustbench_tc import schema
from robustbench_tc.schema import MAX_STEPS, Json, LiveRow
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
        least, most = self.requests
        yield f"{self.rows:,} rows to ask, {least:,} to {most:,} requests"
        short, long = self.prompt_tokens
        yield f"about {short:,} to {long:,} prompt tokens (a token for every {CHARACTERS} characters)"
        if self.completion_tokens is not None:
            yield f"at most {self.completion_tokens:,} completion tokens"
        if self.cost is not None:
            yield f"cost {self.cost[0]:.4g} to {self.cost[1]:.4g}"
        yield "nothing was asked and nothing written; the first request:"
        yield msgspec.json.format(msgspec.json.encode(self.first), indent=1).decode()


def dry_run(
    dialogues: Sequence[Dialogue], settings: Settings, price: tuple[float, float] | None = None
) -> DryRun:
    """What asking these takes, none of which has begun."""
    bodies = [_body(one, settings) for one in dialogues]
    texts = [schema.dumps((one.repeat, body)) for one, body in zip(dialogues, bodies, strict=True)]
    turns = [len(one.env.row.turns) if isinstance(one.env.row, LiveRow) else 1 for one in dialogues]
    most = long = 0
    for one, text, asked in zip(dialogues, texts, turns, strict=True):
        row = one.env.row
        replies = asked * TURN if isinstance(row, LiveRow) else most_replies(row)
        requests = replies * chain.budget(one.env.chain)
        most += requests
        long += requests * len(text)
    least = list(zip(texts, turns, strict=True))
    if settings.shares:
        least = list(dict(least).items())
    short = sum(len(text) * asked for text, asked in least)
    limit = settings.decoding.get("max_tokens")
    completion = most * limit if isinstance(limit, int) else None
    cost = None
    if price is not None and completion is not None:
        asked_for, answered = price
        spent = long / CHARACTERS * asked_for + completion * answered
        cost = (short / CHARACTERS * asked_for / 1e6, spent / 1e6)
    return DryRun(
        rows=len(dialogues),
        requests=(sum(asked for _, asked in least), most),
        prompt_tokens=(short // CHARACTERS, long // CHARACTERS),
        completion_tokens=completion,
        cost=cost,
        first=bodies[0] if bodies else None,
    )


def _body(dialogue: Dialogue, settings: Settings) -> dict[str, Json]:
    ask = dialogue.ask()
    assert ask is not None  # nothing has been answered yet
    tools: dict[str, Json] = {} if ask.tools is None else {"tools": ask.tools}
    messages = with_system(ask.messages, settings.system)
    model = settings.checkpoint or settings.model
    return {"model": model, "messages": messages, **tools, **settings.decoding}
