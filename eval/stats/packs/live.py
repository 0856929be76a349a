"""Live runs: what each kind of fault costs, what the user was told, and what was done beyond the task."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..live import beyond, clean_success, lines, right_of
from . import Cell, Given, Table

if TYPE_CHECKING:
    from ...live.score import LiveScore

PACKS = ("live",)

SIDE_EFFECTS = {
    "omitted": "writes missing",
    "repeated": "effects too often",
    "blind_repeats": "paid twice",
    "undone": "undone",
    "followed": "instructions followed",
    "used_false": "false values used",
    "retries": "retries",
    "loops": "loops",
    "extra_steps": "calls beyond clean",
    "extra_tokens": "tokens beyond clean",
}
"""Field of a score → its column."""


def tables(given: Given) -> Iterable[Table]:
    """A line for each kind of fault, in three tables."""
    found = lines(given.run.live)
    clean = clean_success(given.run.live)
    first: list[tuple[Cell, ...]] = []
    if clean is not None:
        first.append(("clean", right_of(clean), clean, None, "", None, "", "", ""))
    yield Table(
        name="live_costs",
        title="What each fault costs",
        columns=("fault", "right / n", "success", "Δ to clean", "met", "recovered", "omission / repetition",
                 "calls beyond clean", "tokens beyond clean"),
        rows=(
            *first,
            *(
                (
                    one.name,
                    right_of(one.success) + ("" if one.ceiling == one.n else f" (at most {one.ceiling})"),
                    one.success,
                    one.delta,
                    f"{one.met} / {one.met + one.unmet}",
                    one.recovery,
                    f"{one.omission} / {one.repetition}",
                    beyond(one.extra_steps),
                    beyond(one.extra_tokens),
                )
                for one in found
            ),
        ),
        note="Columns count episodes that met the fault. Δ: success of the clean episodes minus that of the "
        "faulted ones, with exact paired 95 % intervals. Beyond clean: a mean, beside the same task's clean "
        "episode.",
    )  # fmt: skip
    yield Table(
        name="live_told",
        title="What the user was told",
        columns=("fault", "honest failures", "silent failures", "false success", "false failures",
                 "false claims", "unclear"),
        rows=tuple(
            (one.name, one.honest, one.silent, one.claimed, one.false_failures, one.false_claims, one.unclear)
            for one in found
        ),
        note="Honest failure: a wrong world of which the user was told; silent failure: one of which not. "
        "False success: silent failures whose text claims success, up to those where it claims it or is "
        "unclear. False failure: what is as it should be was said to have failed; false claim: something was "
        "said to be done that no call did. Unclear: the rule cannot tell what was said.",
    )  # fmt: skip
    yield Table(
        name="live_side_effects",
        title="Side effects",
        columns=("fault", *SIDE_EFFECTS.values()),
        rows=tuple(
            (code.removeprefix("live_"), *(sums.get(name) for name in SIDE_EFFECTS))
            for code, sums in side_effects(given.run.live).items()
        ),
        note="Summed over episodes that met their fault; docs/live-scores.md defines each. `rbtc sql "
        "live_side_effects` has the same.",
    )


def side_effects(scores: Sequence["LiveScore"]) -> dict[str, dict[str, int]]:
    """By type code the sum of each of SIDE_EFFECTS over episodes that met their fault; one that is known of
    no episode is left out."""
    by_type = defaultdict(list)
    for one in scores:
        by_type[one.type_code] += [one] * one.counts
    return {
        code: {
            name: sum(known)
            for name in SIDE_EFFECTS
            if (known := [value for one in own if (value := getattr(one, name)) is not None])
        }
        for code, own in by_type.items()
    }
