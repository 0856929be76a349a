"""Counts of a run over clean ids × types: what every statistic over our own rows is computed from."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from robustbench_tc import taxonomy

from .lattice import Ints
from .values import HEADS, LIVE_HEADS, Counts


class Outcomes(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one run over clean_ids × types. Runs aligned together share `clean_ids` and `types`."""

    clean_ids: tuple[str, ...]
    units: tuple[str, ...] = ()
    """For each clean id what counts as one in intervals and tests: the case that it is a turn of. Empty where
    every clean id counts by itself."""
    types: tuple[str, ...]
    """`clean` first, then the taxonomy's order."""
    correct: Ints
    """[clean_ids, types]: right answers, over all repeats."""
    n: Ints
    """Rows with a verdict, over all repeats."""
    missing: Ints
    """Rows that should have a verdict and have none."""
    pairs: Ints
    """Anchored pairs (`values.Counts`), and those of them that are right on both rows, on the clean row only,
    on the perturbed row only."""
    kept: Ints
    lost: Ints
    gained: Ints
    unmet: Ints
    """Rows with a verdict that never met their fault: beside their clean row they say nothing of it."""
    repeats: int
    live: bool = False
    balanced: tuple[str, ...] = ()
    """Types in which calling nothing is right or accepted: each of their rows counts with its control
    (`with_controls`), as two rows."""
    unaccounted: int = 0
    """Predictions that the run record expects and the file does not hold, of rows nobody names."""

    @property
    def answers(self) -> Ints:
        """[types]: how many verdicts a clean id has that was asked and answered completely."""
        return self.repeats * np.array([1 + (code in self.balanced) for code in self.types], np.int64)

    @property
    def heads(self) -> tuple[str, ...]:
        """The lines above those of single types: clean, all perturbed rows, then what they are made of."""
        return LIVE_HEADS if self.live else HEADS

    def without(self, clean_ids: Collection[str]) -> "Outcomes":
        """The counts over the other clean ids."""
        kept = np.array([one not in clean_ids for one in self.clean_ids], bool)
        counts = ("correct", "n", "missing", "pairs", "kept", "lost", "gained", "unmet")
        return msgspec.structs.replace(
            self,
            clean_ids=tuple(one for one in self.clean_ids if one not in clean_ids),
            units=tuple(itertools.compress(self.units, kept)),
            **{name: getattr(self, name)[kept] for name in counts},
        )

    def by_group(self, group_of: Mapping[str, str]) -> "Iterator[tuple[str, Outcomes]]":
        """The counts of each group of clean ids, groups by name. `group_of`: clean id → group, such as its
        source; of an id that is not there the prefix is the group."""
        groups = [group_of.get(one) or one.partition("__")[0] for one in self.clean_ids]
        for group in sorted(set(groups)):
            others = {one for one, its in zip(self.clean_ids, groups, strict=True) if its != group}
            yield group, self.without(others)

    def by_unit(self, counts: NDArray[Any], there: NDArray[np.bool_] | None = None) -> NDArray[Any]:
        """[clean ids, …] counts, summed over the clean ids of each unit. `there`: the clean ids that `counts`
        is of, all by default."""
        if not self.units:
            return counts
        units = self.units if there is None else tuple(itertools.compress(self.units, there))
        names, place = np.unique(np.array(units, dtype=object), return_inverse=True)
        made = np.zeros((len(names), *counts.shape[1:]), counts.dtype)
        np.add.at(made, place, counts)
        return made

    def whole(self, codes: Iterable[str]) -> tuple[NDArray[np.bool_], Ints]:
        """[clean ids]: those with a verdict on the row of every type in every repeat; [these, types]: how
        often they are right. A type that the run has not leaves none."""
        named = list(codes)
        if not set(named) <= set(self.types):
            return np.zeros(len(self.clean_ids), bool), np.zeros((0, len(named)), np.int64)
        at = [self.types.index(code) for code in named]
        there: NDArray[np.bool_] = (self.n[:, at] == self.repeats).all(axis=1)
        return there, self.correct[there][:, at]

    def unit_of(self) -> Mapping[str, str]:
        """Clean id → what it counts as."""
        return dict(zip(self.clean_ids, self.units or self.clean_ids, strict=True))

    def columns(self, codes: Iterable[str]) -> tuple[Ints, Ints]:
        """(correct, n) per unit, summed over types."""
        return self._sums(codes, self.correct, self.n)

    def matched(self, codes: Iterable[str]) -> tuple[Ints, Ints]:
        """(lost − gained, pairs) per unit, summed over types."""
        return self._sums(codes, self.lost - self.gained, self.pairs)

    def anchors(self, codes: Iterable[str]) -> tuple[Ints, Ints]:
        """(right clean rows, pairs) of the anchored pairs per unit, summed over types."""
        return self._sums(codes, self.kept + self.lost, self.pairs)

    def anchored(self, codes: Iterable[str]) -> tuple[Ints, Ints]:
        """(right perturbed rows, pairs), the same."""
        return self._sums(codes, self.kept + self.gained, self.pairs)

    def _sums(self, codes: Iterable[str], first: Ints, second: Ints) -> tuple[Ints, Ints]:
        at = [self.types.index(code) for code in codes if code in self.types]
        return self.by_unit(first[:, at].sum(axis=1)), self.by_unit(second[:, at].sum(axis=1))

    def usable(self, allow_missing: bool = False) -> tuple[str, ...]:
        """The types whose values may be shown: no row is missing, or that is allowed and some are there."""
        if self.unaccounted and not allow_missing:
            return ()
        return tuple(
            code for code, found in self.counts().items() if found.n and (allow_missing or not found.missing)
        )

    def counts(self) -> dict[str, Counts]:
        """type code (and `clean`) → its counts over all clean_ids"""
        columns = (self.correct, self.n, self.missing, self.pairs, self.kept, self.lost, self.gained)
        sums = np.stack([column.sum(axis=0) for column in columns], axis=1).tolist()
        return {code: Counts(*found) for code, found in zip(self.types, sums, strict=True)}


def with_controls(one: Outcomes, wanted: NDArray[np.bool_]) -> Outcomes:
    """The counts in which every type that lets a reply call nothing holds its control too.

    So whoever always declines has one half. A row without the control of its sample says nothing and counts
    as missing, as the control does. `wanted`: [clean ids, types] the rows that there should be.
    """
    controls = {code: taxonomy.get(code).control for code in one.types if taxonomy.known(code)}
    balanced = tuple(code for code in one.types if controls.get(code))
    counted = ("correct", "n", "pairs", "kept", "lost", "gained")
    made = {name: getattr(one, name).copy() for name in (*counted, "missing")}
    for code in balanced:
        at = one.types.index(code)
        due = [place for place, name in enumerate(one.types) if name == controls[code]]
        both = one.n[:, due].sum(axis=1) * (one.n[:, at] > 0) == np.maximum(one.n[:, at], 1)
        for name in counted:
            column = getattr(one, name)
            made[name][:, at] = np.where(both, column[:, at] + column[:, due].sum(axis=1), 0)
        made["missing"][:, at] = np.where(wanted[:, at], 2 * one.repeats - made["n"][:, at], 0)
    return msgspec.structs.replace(one, balanced=balanced, **made)
