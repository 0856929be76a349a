"""Whether two states are the same, to the byte or but for the ids that were generated in them, one to one.

Generated ids may be whole values, keys, parts of texts, or numbers. The search is exact; where it would take
too long the answer is None, never a guess.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from robustbench_tc.schema import Json
from robustbench_tc.worlds.handle import Snapshot

STEPS = 200_000
"""So many pairs of values are compared before the search is given up."""


def state_hash(state: Json) -> str:
    """sha256 of a state as JSON with sorted keys: the form of vectors/bfcl_multi_turn.jsonl."""
    text = json.dumps(state, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def same(a: Snapshot, b: Snapshot) -> bool | None:
    """Whether one renaming of a's generated ids, one to one onto b's, turns a's state into b's. None where
    that could not be found out in `STEPS` comparisons."""
    if equal(a.state, b.state):
        return True
    if not a.generated or not b.generated:
        return False
    try:
        mine, theirs = (list(_facts(one.state, _splitting(one.generated))) for one in (a, b))
        return len(mine) == len(theirs) and _Search(theirs).holds(mine, {})
    except (_TooLong, RecursionError):
        return None


def equal(a: Json, b: Json) -> bool:
    """Equality of JSON: 1 and 1.0 are one number, as upstream's checker has it; true is none."""
    return bool(a == b) and _same_truths(a, b)


def _same_truths(a: Json, b: Json) -> bool:
    """Whether two values that Python holds equal have true and false at the same places."""
    if isinstance(a, dict):
        return all(_same_truths(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return all(map(_same_truths, a, b))
    return isinstance(a, bool) == isinstance(b, bool)


class _TooLong(Exception):
    """The search is given up."""


class _Value(NamedTuple):
    """What is fixed of a text or number, and the ids in it; of an object or list its size is fixed."""

    fixed: Json
    ids: tuple[str, ...]


class _Fact(NamedTuple):
    """A value at its place: the keys and positions that lead there, and the ids in these."""

    path: tuple[Json, ...]
    ids: tuple[str, ...]
    value: _Value


def _splitting(generated: Sequence[str]) -> Callable[[Json], _Value]:
    pattern, numbers = id_pattern(generated), set(generated)

    def split(value: Json) -> _Value:
        if isinstance(value, str):
            ids = tuple(pattern.findall(value))
            return _Value((pattern.sub("\x00", value), len(ids)), ids)
        return _Value(value, (str(value),) if type(value) is int and str(value) in numbers else ())

    return split


def _facts(
    state: Json, split: Callable[[Json], _Value], path: tuple[Json, ...] = (), ids: tuple[str, ...] = ()
) -> Iterator[_Fact]:
    """Everything that a state says."""
    if not isinstance(state, dict | list):
        yield _Fact(path, ids, split(state))
        return
    yield _Fact(path, ids, _Value((type(state), len(state)), ()))
    for key, value in state.items() if isinstance(state, dict) else enumerate(state):
        step = split(key) if isinstance(key, str) else _Value(key, ())
        yield from _facts(value, split, (*path, step.fixed), (*ids, *step.ids))


class _Search:
    """The facts of a state, with which those of another one are compared."""

    def __init__(self, theirs: Sequence[_Fact]) -> None:
        self._left = STEPS
        self._values = defaultdict[Any, dict[tuple[str, ...], _Value]](dict)
        for one in theirs:
            self._values[one.path][one.ids] = one.value

    def holds(self, facts: Sequence[_Fact], renaming: dict[str, str]) -> bool:
        """Whether all these facts hold here too, under one renaming that begins like this. Those whose place
        is known are looked at first; for one that is not, each place that it could have is tried."""
        waiting: list[_Fact] = []
        while len(waiting) != len(facts):
            facts, waiting = waiting or facts, []
            for fact in facts:
                self._left -= 1
                if self._left < 0:
                    raise _TooLong
                if any(one not in renaming for one in fact.ids):
                    waiting.append(fact)
                    continue
                theirs = self._values[fact.path].get(tuple(renaming[one] for one in fact.ids))
                if theirs is None or not _agree(fact.value, theirs, renaming):
                    return False
            if not waiting:
                return True
        for ids in self._values[facts[0].path]:
            tried = dict(renaming)
            if _rename(facts[0].ids, ids, tried) and self.holds(facts, tried):
                return True
        return False


def _agree(mine: _Value, theirs: _Value, renaming: dict[str, str]) -> bool:
    """Whether two values are the same; the renaming grows by their ids. A number that is an id in one state
    only is itself in the other."""
    both_ids = type(mine.fixed) is type(theirs.fixed) is int and mine.ids and theirs.ids
    if both_ids or equal(mine.fixed, theirs.fixed):
        return _rename(mine.ids, theirs.ids, renaming)
    return False


def _rename(mine: Sequence[str], theirs: Sequence[str], renaming: dict[str, str]) -> bool:
    """Whether these ids may stand for those; the renaming grows by them."""
    right = all(renaming.setdefault(a, b) == b for a, b in zip(mine, theirs, strict=False))
    return right and len(set(renaming.values())) == len(renaming)


def id_pattern(ids: Sequence[str]) -> re.Pattern[str]:
    """Any of the ids, standing alone."""
    parts = "|".join(re.escape(one) for one in sorted(set(ids), key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{parts})(?![A-Za-z0-9])")
