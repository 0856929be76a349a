"""Errors on part of a group: which of a prompt's rollouts meet the row's error, and how many, epoch by epoch.

    rate     the share of each prompt's train rollouts that meet the error; 1 is all of them
    drawn    from (seed, step, prompt) alone, never from a global state: the same on a resumed run
    rule     with `adapt` the rate changes at the beginning of an epoch, by the last validation before it

The idea is NoisyAgent's (arXiv:2605.27209): noise on a part of the rollouts, more of it once the model copes,
advantages of each part for themselves. Rule and draws are ours. `verl_noisy` puts them into verl's trainer;
docs/training.md has what the advantages of such a group are.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import msgspec

from robustbench_tc import seeding
from robustbench_tc.errors import UserError

COLUMN = "noisy"
"""What a train batch has for each prompt: {"met": numbers of the rollouts that meet the error, "rate": …}."""
DRAWN = "error_drawn"
"""What the agent loop says of each rollout in turn: whether its world has the error."""


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Noise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`data.noisy` of a config."""

    rate: Share = 1.0
    adapt: bool = False
    least: Share = 0.25
    most: Share = 1.0
    step: Share = 0.25
    slack: Share = 0.05

    @property
    def on(self) -> bool:
        """Whether anything is asked for: a rate of 1 that stays is what the recipe does without all this."""
        return self.adapt or self.rate < 1


def noise(config: Mapping[str, Any] | None) -> Noise:
    """The settings of a config's `data.noisy`; nothing given: off. Raises UserError."""
    try:
        found = msgspec.convert(dict(config or {}), Noise)
    except (TypeError, ValueError) as error:
        raise UserError(f"data.noisy: {error}; set its keys, such as data.noisy.rate=0.5") from None
    if found.adapt and not found.least <= found.rate <= found.most:
        raise UserError(
            f"data.noisy.rate {found.rate} is not between least {found.least} and most {found.most}: "
            "it is where the first epoch begins"
        )
    if found.adapt and found.step == 0:
        raise UserError("data.noisy.step is 0: with adapt the rate would never change")
    return found


class Seen(NamedTuple):
    """Of one validation."""

    clean: float
    """Accuracy on the clean rows."""
    delta: float
    """Accuracy where the error is met, less that of the clean rows of the same clean ids."""


def next_rate(rate: float, first: Seen | None, last: Seen | None, settings: Noise) -> float:
    """The rate of the next epoch, from the run's first validation and the last one before it.

    - down by `step` where the clean rows have got worse than at first by more than `slack`: the errors take
      the place of the task itself;
    - up by `step` where the error costs at most `slack`: what is met is coped with;
    - else, and where nothing was validated since the last change, it stays.

    It never leaves [`least`, `most`].
    """
    values = [] if first is None or last is None else [*first, *last]
    if first is not None and last is not None and all(map(math.isfinite, values)):
        if last.clean < first.clean - settings.slack:
            rate -= settings.step
        elif last.delta >= -settings.slack:
            rate += settings.step
    return min(max(rate, settings.least), settings.most)


def met(rate: float, rollouts: int, seed: int, step: int, *prompt: str) -> tuple[int, ...]:
    """Which of a prompt's rollouts meet the error at a step: `rate * rollouts` of them in the mean.

    A rollout that is alone in its world has nothing to be compared with, so one and all but one are never
    drawn: of 4 rollouts 0, 2 or 4 meet the error, of 8 all numbers but 1 and 7.
    """
    sizes = [size for size in range(rollouts + 1) if size in (0, rollouts) or 1 < size < rollouts - 1]
    wanted = min(max(rate, 0.0), 1.0) * rollouts
    below = max(size for size in sizes if size <= wanted)
    above = min(size for size in sizes if size >= wanted)
    rng = seeding.rng(seed, "noisy", str(step), *prompt)
    more = above > below and rng.random() < (wanted - below) / (above - below)
    return tuple(sorted(rng.sample(range(rollouts), above if more else below)))


def prompt_of(info: Mapping[str, Any]) -> tuple[str, str]:
    """What tells a train row from every other, by its `extra_info`."""
    return str(info.get("clean_id")), str(info.get("index"))


class State(msgspec.Struct):
    """Where a schedule stands."""

    rate: Share
    epoch: int = 0
    first: Seen | None = None
    last: Seen | None = None
    validated: int = -1


class Schedule:
    """The rate over a run. `state` is JSON: it goes into a checkpoint and comes back exactly."""

    def __init__(self, settings: Noise) -> None:
        self.settings, self._now = settings, State(settings.rate)

    @property
    def rate(self) -> float:
        return self._now.rate

    def validated(self, step: int, seen: Seen) -> None:
        """Takes in the validation at a step, once: a resumed run may validate at its step again."""
        now = self._now
        if step > now.validated:
            now.validated, now.last, now.first = step, seen, now.first or seen

    def begin(self, epoch: int) -> float:
        """The rate in an epoch. Where it begins, the last validation counts, once."""
        now = self._now
        if epoch > now.epoch:
            now.epoch = epoch
            if self.settings.adapt:
                now.rate, now.last = next_rate(now.rate, now.first, now.last, self.settings), None
        return now.rate

    @property
    def state(self) -> dict[str, Any]:
        """For the checkpoint."""
        found: dict[str, Any] = msgspec.to_builtins(self._now)
        return found

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from a checkpoint. A rate that the config fixes is the config's. Raises UserError."""
        try:
            self._now = msgspec.convert(state, State)
        except msgspec.ValidationError as error:
            raise UserError(f"the state of data.noisy in the checkpoint cannot be read: {error}") from None
        bounds, rate = self.settings, self._now.rate
        self._now.rate = min(max(rate, bounds.least), bounds.most) if bounds.adapt else bounds.rate


def seen(metrics: Mapping[str, float]) -> Seen | None:
    """What the rule reads of a validation's metrics; None where no clean row stands beside an error."""
    names = ("val-core/clean/accuracy", "val-core/retry/delta")
    return Seen(*(float(metrics[name]) for name in names)) if all(n in metrics for n in names) else None
