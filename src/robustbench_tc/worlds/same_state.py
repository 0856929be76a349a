"""Whether two states are the same, to the byte or but for the ids that were generated in them, one to one.

Generated ids may be whole values, keys, parts of texts, or numbers. The search is exact; where it would take
too long the answer is None, never a guess.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json
from robustbench_tc.worlds.handle import Snapshot

STEPS = 200_000
"""So many pairs of values are compared before the search is given up."""


def state_hash(state: Json) -> str:
    """sha256 of a state as JSON with sorted keys: the form of vectors/bfcl_multi_turn.jsonl."""
    try:
        text = json.dumps(state, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UserError(f"the world's state is not JSON: {error}") from None
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class _TooLong(Exception):
    pass


class _Text(NamedTuple):
    """A text with holes where ids stand."""

    frame: str
    ids: tuple[str, ...]


class _Number(NamedTuple):
    value: Json
    ids: tuple[str, ...]


class _Object(NamedTuple):
    plain: dict[str, Any]
    keyed: list[tuple[_Text, Any]]
    """Entries whose key has an id."""


def same(a: Snapshot, b: Snapshot) -> bool | None:
    """Whether one renaming of a's generated ids, one to one onto b's, turns a's state into b's. None where
    that could not be found out in `STEPS` comparisons."""
    if equal(a.state, b.state):
        return True
    if not a.generated or not b.generated:
        return False
    try:
        pair = _framed(a.state, a.generated), _framed(b.state, b.generated)
        return _Search().work([pair], [], {}, {})
    except (_TooLong, RecursionError):
        return None


def equal(a: Json, b: Json) -> bool:
    """Equality of JSON: 1 and 1.0 are one number, as upstream's checker has it; true is none."""
    if a != b:
        return False
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True) or _same_truths(a, b)


def _same_truths(a: Json, b: Json) -> bool:
    """Whether two values that Python holds equal have true and false at the same places."""
    if isinstance(a, dict):
        return all(_same_truths(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return all(map(_same_truths, a, b))
    return isinstance(a, bool) == isinstance(b, bool)


def _framed(state: Json, generated: Sequence[str]) -> Any:
    """The state with every text, number and key split into what is fixed and the ids in it."""
    pattern, numbers = id_pattern(generated), set(generated)

    def text(value: str) -> _Text:
        return _Text(pattern.sub("\x00", value), tuple(match[0] for match in pattern.finditer(value)))

    def walk(value: Json) -> Any:
        if isinstance(value, dict):
            keys = [(text(key), key) for key in value]
            plain = {key: walk(value[key]) for framed, key in keys if not framed.ids}
            return _Object(plain, [(framed, walk(value[key])) for framed, key in keys if framed.ids])
        if isinstance(value, list):
            return [walk(one) for one in value]
        if isinstance(value, str):
            return text(value)
        return _Number(value, (str(value),) if type(value) is int and str(value) in numbers else ())

    return walk(state)


class _Search:
    """Pairs that must be equal are worked off; where entries with ids as keys can be paired in several ways,
    each is tried."""

    def __init__(self) -> None:
        self._left = STEPS

    def work(
        self, pairs: list[tuple[Any, Any]], choices: list[Any], there: dict[str, str], back: dict[str, str]
    ) -> bool:
        while pairs:
            self._left -= 1
            if self._left < 0:
                raise _TooLong
            a, b = pairs.pop()
            if type(a) is not type(b):
                return False
            if isinstance(a, _Object):
                if a.plain.keys() != b.plain.keys() or len(a.keyed) != len(b.keyed):
                    return False
                pairs += [(a.plain[key], b.plain[key]) for key in a.plain]
                if a.keyed:
                    choices.append((a.keyed, b.keyed))
            elif isinstance(a, list):
                if len(a) != len(b):
                    return False
                pairs += list(zip(a, b, strict=True))
            elif not _leaf(a, b, there, back):
                return False
        return self._choose(choices, there, back)

    def _choose(self, choices: list[Any], there: dict[str, str], back: dict[str, str]) -> bool:
        if not choices:
            return True
        (mine, theirs), rest = choices[-1], choices[:-1]
        key, value = mine[0]
        for at, (other, their_value) in enumerate(theirs):
            forth, again = dict(there), dict(back)
            self._left -= 1 + len(forth)
            if self._left < 0:
                raise _TooLong
            if not _leaf(key, other, forth, again):
                continue
            left = [*rest, (mine[1:], theirs[:at] + theirs[at + 1 :])] if len(mine) > 1 else list(rest)
            if self.work([(value, their_value)], left, forth, again):
                return True
        return False


def _leaf(a: Any, b: Any, there: dict[str, str], back: dict[str, str]) -> bool:
    """Two values that are no containers; the renaming grows by their ids."""
    if isinstance(a, _Number):
        if not (a.ids and b.ids):
            return equal(a.value, b.value)
    elif a.frame != b.frame or len(a.ids) != len(b.ids):
        return False
    for mine, theirs in zip(a.ids, b.ids, strict=True):
        if there.setdefault(mine, theirs) != theirs or back.setdefault(theirs, mine) != mine:
            return False
    return True


def id_pattern(ids: Sequence[str]) -> re.Pattern[str]:
    """Any of the ids, standing alone."""
    parts = "|".join(re.escape(one) for one in sorted(set(ids), key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{parts})(?![A-Za-z0-9])")
