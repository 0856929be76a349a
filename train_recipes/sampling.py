"""Which perturbation type the next training row is of: weights that follow what the model gets wrong.

    uniform     every row as often as every other: what the recipes do unless they are asked for another
    adaptive    a type's share follows its loss, a running mean: what is still wrong is seen more often
    minimax     multiplicative weights: against the worst type, not the mean

The loss of a type is 1 - accuracy on the validation rows under it. `minimax` is Hedge with the types as
experts and their losses as gains: over T updates the average loss under its weights is within sqrt(ln K / 2T)
of that of the worst of K types, where the step is sqrt(8 ln K / T) (Freund and Schapire, JCSS 55, 1997, for
losses in [0, 1]); the model that learns against it is the other player. Here the step is fixed and half of
the draws stay even, so the bound is where the rule comes from and no promise. A type that cannot be learnt
takes what it can of the rows in both: the even half is what the others keep.
docs/training.md shows it on simulated learners.
"""

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from robustbench_tc.errors import UserError

from .validation import Row, Scored

Mode = Literal["uniform", "adaptive", "minimax"]
MODES: tuple[Mode, ...] = ("uniform", "adaptive", "minimax")

FLOOR = 0.5
"""The share of all draws that is spread evenly, whatever the losses are."""
MEMORY = 0.5
"""Of the running mean in `adaptive`: how much of the old one stays at each update."""
STEP = 1.0
"""Of the multiplicative weights: exp(STEP * loss) at each update."""


class Weights:
    """The share of each type. `state` is JSON: it goes into a checkpoint and comes back exactly."""

    def __init__(self, shares: Mapping[str, float], mode: Mode, *, floor: float = FLOOR) -> None:
        """`shares`: of each type where nothing is known yet, its rows; they need not sum to 1."""
        if mode not in MODES:
            raise UserError(f"unknown sampling {mode!r}: {', '.join(MODES)}")
        if not 0 <= floor <= 1:
            raise UserError(f"the floor {floor} is not a share: give a number from 0 to 1")
        if not shares or min(shares.values()) <= 0:
            raise UserError("no rows to draw from")
        self.mode, self.floor = mode, floor
        total = math.fsum(shares.values())
        self._base = {name: shares[name] / total for name in sorted(shares)}
        self._seen: dict[str, float] = {}
        """adaptive: the running mean of a type's loss; minimax: the sum of its losses."""

    def update(self, losses: Mapping[str, float]) -> None:
        """Takes in the losses of one validation; a type that it does not have keeps what it had.

        A loss that is no number, or not in [0, 1], is brought there: 1 for what is not a number.
        """
        for name in self._base.keys() & losses.keys():
            loss = losses[name]
            loss = 1.0 if math.isnan(loss) else min(max(loss, 0.0), 1.0)
            if self.mode == "minimax":
                self._seen[name] = self._seen.get(name, 0.0) + loss
            else:
                self._seen[name] = MEMORY * self._seen.get(name, loss) + (1 - MEMORY) * loss

    @property
    def shares(self) -> dict[str, float]:
        """Type → the share of draws that it gets; they sum to 1."""
        if self.mode == "uniform" or not self._seen:
            return dict(self._base)
        mean = math.fsum(self._seen.values()) / len(self._seen)
        found = {name: self._seen.get(name, mean) for name in self._base}
        if self.mode == "minimax":
            top = max(found.values())
            found = {name: math.exp(STEP * (value - top)) for name, value in found.items()}
        pulled = {name: self._base[name] * value for name, value in found.items()}
        total = math.fsum(pulled.values())
        if total <= 0:  # nothing is wrong any more
            return dict(self._base)
        return {
            name: self.floor * self._base[name] + (1 - self.floor) * value / total
            for name, value in pulled.items()
        }

    @property
    def state(self) -> dict[str, float]:
        """What was seen: JSON."""
        return dict(self._seen)

    def restore(self, state: Mapping[str, float]) -> None:
        """Goes on from a `state`; types that are not drawn from any more leave."""
        self._seen = {name: float(value) for name, value in state.items() if name in self._base}


class Place(NamedTuple):
    """Where a sampler stands; JSON."""

    epoch: int
    draw: int
    taken: dict[str, int]
    """Type → rows of it that were drawn, over all epochs: each row of a type comes before any comes again."""


class Drawing:
    """Indices of rows, one draw at a time: a type by its share now, then the next row of that type.

    The draws depend on the seed, their number and the weights at that moment alone, so a sampler that is put
    back to a `Place` goes on as the other would have.
    """

    def __init__(self, types: Sequence[str], weights: Weights, seed: int) -> None:
        """`types`: of each row, by its index."""
        self.weights, self.seed, self.rows = weights, seed, len(types)
        self._of: dict[str, list[int]] = {}
        for index, name in enumerate(types):
            self._of.setdefault(name, []).append(index)
        self.place = Place(0, 0, {})

    @property
    def state(self) -> dict[str, Any]:
        """Place and weights, for a checkpoint: JSON."""
        return {"place": list(self.place), "weights": self.weights.state}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from a `state`."""
        self.place = Place(*state["place"])
        self.weights.restore(state["weights"])

    def epoch(self) -> Iterator[int]:
        """As many draws as there are rows, from where the place is."""
        epoch, draw, taken = self.place
        while draw < self.rows:
            shares = self.weights.shares
            rng = random.Random(f"{self.seed} {epoch} {draw}")
            name = rng.choices(list(shares), list(shares.values()))[0]
            number = taken.get(name, 0)
            taken, draw = {**taken, name: number + 1}, draw + 1
            self.place = Place(epoch, draw, taken)
            yield self._row(name, number)
        self.place = Place(epoch + 1, 0, taken)

    def _row(self, name: str, number: int) -> int:
        """The `number`-th row of a type: rounds through all of them, each in an order of its own."""
        rows = self._of[name]
        round_, at = divmod(number, len(rows))
        order = list(rows)
        random.Random(f"{self.seed} {name} {round_}").shuffle(order)
        return order[at]


def drawing(types: Sequence[str], mode: Mode, seed: int) -> Drawing:
    """The draws from rows of these types. Raises UserError where there is nothing to choose between."""
    counts = Counter(types)
    if len(counts) < 2:
        there = next(iter(counts), "no row")
        raise UserError(f"sampling {mode} chooses between types: {there} is all there is")
    return Drawing(types, Weights(counts, mode), seed)


def losses(rows: Iterable[Row], answers: Iterable[Scored]) -> dict[str, float]:
    """Type → 1 - accuracy on the validation rows under it."""
    found: dict[str, list[bool]] = {}
    for about, one in zip(rows, answers, strict=True):
        found.setdefault(about.type_code, []).append(one.correct)
    return {name: 1 - sum(right) / len(right) for name, right in found.items()}
