"""What defences are worth in live episodes: of each kind of fault the success with and without, the harm on
clean episodes, effects that were repeated, requests and tokens.

Episodes are paired with those of the same row and repeat; tasks are the units of every interval.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from robustbench_tc.errors import UserError
from robustbench_tc.live_types import type_code

from ..live.after import PlayedRun
from .confidence import difference, shares
from .intervals import Interval, of_estimate
from .live import groups
from .significance import paired_p

if TYPE_CHECKING:
    from ..live.score import LiveScore


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault, several, or `clean`."""

    name: str
    n: int
    """Episodes with a verdict in both runs."""
    plain: int
    """Successes without the defences."""
    defended: int
    change: Interval
    """Success with them minus success without; its p-value is of the exact paired test."""


class LiveDefenceLine(msgspec.Struct, frozen=True, kw_only=True):
    """A defended run beside the one without."""

    run: str
    defences: tuple[str, ...]
    kinds: tuple[Change, ...]
    harm: Change | None
    """On clean episodes: below 0 is harm. None without common ones."""
    repeated: tuple[int, int]
    """Effects of writes that are not idempotent beyond gold's, without and with the defences."""
    requests_per_episode: float | None
    tokens_per_right: float | None


class LiveDefenceTable(msgspec.Struct, frozen=True, kw_only=True):
    """Defended runs beside their plain run."""

    base: str
    base_requests_per_episode: float | None
    base_tokens_per_right: float | None
    lines: tuple[LiveDefenceLine, ...]


def table(base: PlayedRun, runs: Sequence[PlayedRun]) -> LiveDefenceTable:
    """Raises UserError for runs of other rows or another model, and for a run without defences."""
    if base.defences:
        raise UserError(f"{base.path} is itself defended ({', '.join(base.defences)}): name the plain run")
    for run in runs:
        if not run.defences:
            raise UserError(f"{run.path} has no defences: `rbtc live run --defend NAME` makes such a run")
        if run.who != base.who:
            raise UserError(
                f"{run.path} is of another dataset, model or mode than {base.path}: a defence is compared "
                "with the same model without it"
            )
    return LiveDefenceTable(
        base=base.path,
        base_requests_per_episode=_requests(base),
        base_tokens_per_right=_tokens(base),
        lines=tuple(_line(base, run) for run in runs),
    )


def _line(base: PlayedRun, run: PlayedRun) -> LiveDefenceLine:
    plain = {(one.id, one.repeat): one for one in base.scores}
    pairs = [
        (plain[key], one)
        for one in run.scores
        if (key := (one.id, one.repeat)) in plain
        and one.success is not None
        and plain[key].success is not None
    ]
    if not pairs:
        raise UserError(f"{run.path} and {base.path} have no episode in common that was judged in both")
    found = (_change(name, kinds, pairs) for name, kinds in groups().items())
    return LiveDefenceLine(
        run=run.path,
        defences=run.defences,
        kinds=tuple(one for one in found if one is not None),
        harm=_of("clean", [pair for pair in pairs if pair[0].type_code == "clean"]),
        repeated=(
            sum(one.repeated or 0 for one, _ in pairs),
            sum(two.repeated or 0 for _, two in pairs),
        ),
        requests_per_episode=_requests(run),
        tokens_per_right=_tokens(run),
    )


_Pairs = Sequence[tuple["LiveScore", "LiveScore"]]


def _change(name: str, kinds: Iterable[str], pairs: _Pairs) -> Change | None:
    codes = set(map(type_code, kinds))
    return _of(name, [pair for pair in pairs if pair[0].type_code in codes])


def _of(name: str, pairs: _Pairs) -> Change | None:
    if not pairs:
        return None
    tasks = sorted({one.clean_id for one, _ in pairs})
    at = {clean_id: number for number, clean_id in enumerate(tasks)}
    n, without, with_ = (np.zeros(len(tasks), np.int64) for _ in range(3))
    for one, two in pairs:
        n[at[one.clean_id]] += 1
        without[at[one.clean_id]] += bool(one.success)
        with_[at[one.clean_id]] += bool(two.success)
    made = difference(shares(with_, n), shares(without, n))
    return Change(
        name=name,
        n=len(pairs),
        plain=int(without.sum()),
        defended=int(with_.sum()),
        change=of_estimate(made, len(pairs), "mover", paired_p(with_ - without)),
    )


def _requests(run: PlayedRun) -> float | None:
    asked, episodes = (_number(run.totals, name) for name in ("requests", "episodes"))
    return asked / episodes if asked and episodes else None


def _tokens(run: PlayedRun) -> float | None:
    tokens = _number(run.totals, "prompt_tokens") + _number(run.totals, "completion_tokens")
    right = sum(bool(one.success) for one in run.scores)
    return tokens / right if tokens and right else None


def _number(found: Mapping[str, Any], name: str) -> float:
    value = found.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0
