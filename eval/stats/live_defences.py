"""What defences are worth in live episodes: of each kind of fault the success with and without, the harm on
clean episodes, effects that were repeated, requests and tokens.

Episodes are paired with those of the same row and repeat; tasks are the units of every interval.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.eval.live.score import LiveScore, read_scores
from robustbench_tc.eval.record import open_run
from robustbench_tc.io.numbers import interval, number, signed
from robustbench_tc.live_types import type_code
from robustbench_tc.shown import Part, Table

from .confidence import difference, shares
from .defences import Ran, check, per
from .intervals import Interval, of_estimate, per_unit
from .live import groups
from .significance import paired_p


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

    def shown(self) -> Iterator[Part]:
        """A table for each run, and what it cost."""
        for line in self.lines:
            columns = ("", "without", "with", "n", "change")
            changes = (*([line.harm] if line.harm else []), *line.kinds)
            yield Table(columns, [_cells(one) for one in changes], ", ".join(line.defences))
            costs = {
                "effects repeated": line.repeated,
                "requests an episode": (self.base_requests_per_episode, line.requests_per_episode),
                "tokens a right episode": (self.base_tokens_per_right, line.tokens_per_right),
            }
            yield "; ".join(
                f"{name}: {number(without, 1)} without, {number(with_, 1)} with"
                for name, (without, with_) in costs.items()
            )
        yield (
            "without, with: episodes that ended as they should, of n that both runs have; change: of the "
            "share [95 %, tasks as units]. clean: below 0 is harm."
        )


def _cells(one: Change) -> tuple[str, ...]:
    change = f"{signed(one.change.value)} {interval(one.change, sign=True)}"
    return one.name, str(one.plain), str(one.defended), str(one.n), change


class _Played(NamedTuple):
    """A scored live run."""

    ran: Ran
    scores: Sequence[LiveScore]
    requests: float | None
    """An episode."""
    tokens: float | None
    """A right episode."""


def _played(run: str) -> _Played:
    folder = open_run(Path(run))
    settings, totals, scores = folder.record.settings, folder.record.totals, read_scores(folder.path)
    tokens = totals.get("prompt_tokens", 0) + totals.get("completion_tokens", 0)
    return _Played(
        Ran(run, settings.defend, (settings.model, settings.mode, f"dataset {settings.fingerprint[:8]}")),
        scores,
        per(totals.get("requests", 0), totals.get("episodes", 0)),
        per(tokens, sum(bool(one.success) for one in scores)),
    )


def table(base: str, runs: Sequence[str]) -> LiveDefenceTable:
    """Run folders beside that of their plain run.

    Raises UserError for runs of other rows or another model, and for a run without defences.
    """
    plain, *defended = map(_played, (base, *runs))
    check(plain.ran, [one.ran for one in defended])
    return LiveDefenceTable(
        base=base,
        base_requests_per_episode=plain.requests,
        base_tokens_per_right=plain.tokens,
        lines=tuple(_line(plain, run) for run in defended),
    )


def _line(base: _Played, run: _Played) -> LiveDefenceLine:
    plain = {(one.id, one.repeat): one for one in base.scores if one.success is not None}
    pairs = [
        (plain[key], one)
        for one in run.scores
        if (key := (one.id, one.repeat)) in plain and one.success is not None
    ]
    if not pairs:
        raise UserError(f"{run.ran.path} and {base.ran.path} have no judged episode in common")
    found = {name: [*map(type_code, kinds)] for name, kinds in groups().items()} | {"clean": ["clean"]}
    changes = {
        name: _change(name, of)
        for name, codes in found.items()
        if (of := [pair for pair in pairs if pair[0].type_code in codes])
    }
    return LiveDefenceLine(
        run=run.ran.path,
        defences=tuple(run.ran.defences),
        harm=changes.pop("clean", None),
        kinds=tuple(changes.values()),
        repeated=(
            sum(one.repeated or 0 for one, _ in pairs),
            sum(two.repeated or 0 for _, two in pairs),
        ),
        requests_per_episode=run.requests,
        tokens_per_right=run.tokens,
    )


def _change(name: str, pairs: Sequence[tuple[LiveScore, LiveScore]]) -> Change:
    n, without, with_ = per_unit(
        sorted((one.clean_id, bool(one.success), bool(two.success)) for one, two in pairs)
    )
    made = difference(shares(with_, n), shares(without, n))
    return Change(
        name=name,
        n=len(pairs),
        plain=int(without.sum()),
        defended=int(with_.sum()),
        change=of_estimate(made, len(pairs), "mover", paired_p(with_ - without)),
    )
