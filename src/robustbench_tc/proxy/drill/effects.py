"""What a trial changed, by what reads show before and after, to compare trials of two servers.

Clocks are masked, what changes by itself is left out, and ids that a server generated are renamed one to one.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import chain, zip_longest
from typing import NamedTuple, TypeAlias

from robustbench_tc.own import texts
from robustbench_tc.safe_text import shortened
from robustbench_tc.schema import Json
from robustbench_tc.worlds.handle import Snapshot
from robustbench_tc.worlds.same_state import id_pattern, same

from .inputs import ID_WORDS, NoAnswer

Fact: TypeAlias = tuple[str, str]
"""Where a value stands, beginning with the read's name, and the value as JSON. An item of a list stands under
its id, or under `[]`, whatever its position."""
Facts: TypeAlias = Counter[Fact]

NEAR_S = 2 * 86_400.0
"""A time that is so near to now was read from a clock."""
NEAR_MIN = 2
"""Minutes that a drill of one write takes, at most."""
MOST = 5_000
"""Changes of one trial that are compared."""

_TOKEN = re.compile(r"\w+(?:[-.:+]\w+)*")
_NUMBER = re.compile(r"(?<![\w.:-])-?\d+(?:\.\d+)?(?![\w.:-])")
_MINUTE = re.compile(r"\d:(\d\d)")
_CLOCK_TIME = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z?")
_NAMES = ID_WORDS | {"name", "path", "email"}
"""Last words of a key that tells one item of a list from the others."""


def facts(state: Mapping[str, Json]) -> Facts:
    """Everything that reads show, by their names."""
    return Counter(fact for read, value in state.items() for fact in _facts(value, read))


def _facts(value: Json, path: str) -> Iterator[Fact]:
    if isinstance(value, str) and "\n" in value:
        value = value.splitlines()
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _facts(inner, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for item in value:
            ids = [
                f"[{key}={inner}]"
                for key, inner in (item.items() if isinstance(item, dict) else ())
                if isinstance(inner, str | int) and _NAMES & {*texts.word_list(key)[-1:]}
            ]
            yield from _facts(item, f"{path}.{next(iter(ids), '[]')}")
    else:
        yield path, json.dumps(value, ensure_ascii=False)


def tokens(these: Iterable[Fact]) -> frozenset[str]:
    """The words, numbers and ids in facts, and in changes."""
    return frozenset(token for fact in these for text in fact for token in _TOKEN.findall(text))


def constant(brought: Facts, later: Facts) -> frozenset[str]:
    """Tokens of what a write brought that the same write brought a second later too: no clock shows those. A
    time near to the present minute, in whatever zone, may be of a clock without seconds."""
    shown = {token: _MINUTE.search(token) for token in tokens(brought) & tokens(later)}
    return frozenset(
        token
        for token, found in shown.items()
        if found is None or (int(found[1]) - time.gmtime().tm_min + NEAR_MIN) % 60 > 2 * NEAR_MIN
    )


class Change(NamedTuple):
    """A fact that is there no more, or newly there, or by how much its numbers are others."""

    path: str
    value: str

    def kind(self, stable: frozenset[str]) -> tuple[str, str]:
        """Changes that a server makes by itself are of one kind: the same place, and in a list the same form.
        `stable`: tokens that are the same in all servers."""
        place = _TOKEN.sub(lambda found: found[0] if found[0] in stable else "*", self.path)
        words = [word for word in _TOKEN.findall(self.value) if word in stable and not re.search(r"\d", word)]
        return place, " ".join(words) if place.endswith("[]") else ""


def changes(before: Facts, after: Facts, shared: frozenset[str]) -> Counter[Change]:
    """What is different, whatever the order of lists, and the time. `shared`: tokens that no clock shows,
    since another server has shown them too."""
    gone, new = (_masked(one, shared) for one in (before - after, after - before))
    gone, new = gone - new, new - gone
    forms = Counter((path, _NUMBER.sub("#", value)) for path, value in (*gone.elements(), *new.elements()))
    was = {(path, _NUMBER.sub("#", value)): value for path, value in gone}
    found = Counter[Change]()
    for (path, value), count in new.items():
        form = path, _NUMBER.sub("#", value)
        if form in was and forms[form] == 2:  # one gone, one new: only their numbers are others
            pairs = zip(_NUMBER.findall(was[form]), _NUMBER.findall(value), strict=True)
            steps = [f"{float(number) - float(before):+.10g}" for before, number in pairs]
            parts = zip_longest(_NUMBER.split(value), steps, fillvalue="")
            found[Change(path, "by " + "".join(chain.from_iterable(parts)))] = 1
            del gone[path, was[form]]
        else:
            found[Change(path, f"+ {value}")] += count
    return found + Counter({Change(path, f"- {value}"): count for (path, value), count in gone.items()})


def _masked(these: Facts, shared: frozenset[str]) -> Facts:
    now, found = time.time(), Facts()

    def told(token: re.Match[str]) -> str:
        return "<time>" if token[0] not in shared and _is_clock(token[0], now) else token[0]

    for fact, count in these.items():
        path, value = (_TOKEN.sub(told, text) for text in fact)
        found[path, value] += count
    return found


def _is_clock(token: str, now: float) -> bool:
    if _CLOCK_TIME.fullmatch(token):
        return True
    with suppress(ValueError):
        return any(abs(float(token) / scale - now) < NEAR_S for scale in (1, 1e3, 1e6, 1e9))
    with suppress(ValueError, OverflowError, OSError):
        return abs(datetime.fromisoformat(token).timestamp() - now) < NEAR_S
    return False


class Effect:
    """What one trial of a write changed."""

    def __init__(
        self,
        found: Counter[Change],
        stable: frozenset[str],
        by_itself: Collection[tuple[str, str]] = (),
    ) -> None:
        """`stable`: tokens that were not generated. `by_itself`: kinds of changes that are left out."""
        self.changes = {
            change: count for change, count in found.items() if change.kind(stable) not in by_itself
        }
        self._generated = tokens(self.changes) - stable - {"time", "by"}

    def equals(self, other: "Effect") -> bool:
        """Whether both are the same but for ids, one to one. Raises NoAnswer where that takes too long."""
        found = None
        if len(self.changes) + len(other.changes) <= MOST:
            found = same(*(Snapshot(one._tree(), tuple(sorted(one._generated))) for one in (self, other)))
        if found is None:
            raise NoAnswer("so much has changed that the trials could not be compared")
        return found

    def difference(self, other: "Effect") -> tuple[str, ...]:
        """Where another one differs, the shortest first, with `*` for what was generated."""
        mine, theirs = (one._tree(masked=True) for one in (self, other))
        told = [
            f"{shortened(place, 120)}: {_told(mine.get(place, {}))} → {_told(theirs.get(place, {}))}"
            for place in {**mine, **theirs}
            if mine.get(place) != theirs.get(place)
        ]
        return tuple(sorted(told, key=len))

    def _tree(self, *, masked: bool = False) -> dict[str, dict[str, int]]:
        """The changes as JSON: place, value and how often."""
        ids = id_pattern([token for token in self._generated if not token.isdigit()] or ["\0"])
        found = dict[str, dict[str, int]]()
        for change, count in self.changes.items():
            place, value = (ids.sub("*", text) if masked else text for text in change)
            values = found.setdefault(place, {})
            values[value] = values.get(value, 0) + count
        return found


def _told(values: Mapping[str, int]) -> str:
    told = ", ".join(f"{value} ×{count}" if count > 1 else value for value, count in values.items())
    return shortened(told, 160) or "nothing"
