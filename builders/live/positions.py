"""Where in a task a fault can stand: first visible decisive write, first used read, last write."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from robustbench_tc.schema import Call, Json, Position, dumps

from .pool import Leaf, leaves, parsed
from .probing import Prober
from .trace import Trace, Traced


class Site(NamedTuple):
    """A gold call in front of which faults can stand."""

    position: Position
    at: Traced
    seen: Call | None = None
    """Of a write: a read that shows whether it happened, to an agent that has not seen its result."""
    seen_with_result: Call | None = None
    """The same, to an agent that has."""
    used: Leaf | None = None
    """Of a read: the leaf of its result that a later gold call uses; without a path where the result is no
    JSON."""


async def sites(trace: Trace, prober: Prober) -> list[Site]:
    """The positions of a task, at most one of each name; a last write that is the first is that only."""
    writes = [one for one in trace.calls if one.decisive and not one.failed]
    found: list[Site] = []
    for one in writes:
        site = await _write("first_write", one, prober)
        if site.seen_with_result is not None:
            found.append(site)
            break
    used = first_used(trace)
    if used is not None:
        found.append(Site("used_read", used[0], used=used[1]))
    if writes and (not found or found[0].at.number != writes[-1].number):
        found.append(await _write("last_write", writes[-1], prober))
    return found


async def _write(position: Position, one: Traced, prober: Prober) -> Site:
    seen = await prober.shown(one, own=False)
    return Site(position, one, seen, seen or await prober.shown(one, own=True))


def first_used(trace: Trace) -> tuple[Traced, Leaf] | None:
    """The first read whose value a later gold call uses and that stands in no earlier text."""
    reads = (one for one in trace.calls if not one.tool.writes and not one.failed)
    return next(((one, leaf) for one in reads for leaf in _used(trace, one)), None)


async def read_back(trace: Trace, prober: Prober) -> list[Site]:
    """The first and the last write whose effect gold itself reads, where its next step depends on that: it
    uses a value that the world before the write does not show, or its turn ends with what it has read."""
    shown: dict[int, tuple[Traced, str]] = {}
    for write in (one for one in trace.calls if one.decisive and not one.failed):
        if (stale := await prober.shown_stale(write)) is not None:
            read, text = stale
            shown[read.number] = write, text  # of several writes the read is about the latest
    found = [write for number, (write, text) in shown.items() if _depends(trace, trace.calls[number], text)]
    sites = [Site("first_write", one) for one in found[:1]]
    return sites + [Site("last_write", one) for one in found[1:][-1:]]


def _depends(trace: Trace, read: Traced, stale: str) -> bool:
    if all(later.turn != read.turn for later in trace.calls[read.number + 1 :]):
        return True
    return any(_leaf_of(leaf.value, stale) is None for leaf in _used(trace, read))


def _used(trace: Trace, read: Traced) -> Iterator[Leaf]:
    """The leaves of a read that later gold calls use and that stand in no earlier text."""
    for later in trace.calls[read.number + 1 :]:
        for wanted in leaves(later.call.parameters):
            leaf = _leaf_of(wanted.value, read.text)
            if leaf is not None and not _stated(wanted.value, trace, read, later):
                yield leaf


def _leaf_of(value: Json, text: str) -> Leaf | None:
    """The leaf of a result that has a value; within a result that is no JSON, the value alone."""
    if isinstance(value, bool) or value == "":
        return None
    result = parsed(text)
    if result is None:
        return Leaf("", value) if _stands_in(value, text) else None
    same = (leaf for leaf in leaves(result) if type(leaf.value) is type(value) and leaf.value == value)
    return next(same, None)


def _stated(value: Json, trace: Trace, read: Traced, use: Traced) -> bool:
    """Whether a value stands in what the user says before its use, or in a call or result before the read."""
    texts = [message.content for turn in trace.row.turns[: use.turn + 1] for message in turn.messages]
    for one in trace.calls[: read.number]:
        texts += [one.text, dumps(one.call.parameters)]
    texts.append(dumps(read.call.parameters))
    return any(_stands_in(value, text) for text in texts)


def _stands_in(value: Json, text: str) -> bool:
    said = value if isinstance(value, str) else dumps(value)
    if said.casefold() not in text.casefold():
        return False
    return re.search(rf"(?<![\w.]){re.escape(said)}(?!\w)", text, re.IGNORECASE) is not None
