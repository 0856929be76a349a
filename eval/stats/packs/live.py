"""Live runs: what each kind of fault costs, what the user was told, and what was done beyond the task."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from robustbench_tc.io import numbers
from robustbench_tc.live_types import CASCADES, FAMILIES, registry_types, type_code
from robustbench_tc.schema import KINDS

from ..intervals import Interval, difference, of_estimate, per_unit, share_of, shares
from ..significance import paired_p
from . import Given, Table

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
    "touched": "forbidden tool called",
    "retries": "retries",
    "loops": "loops",
    "extra_steps": "calls beyond clean",
    "extra_tokens": "tokens beyond clean",
}
"""Field of a score → its column."""

VIOLATIONS = ("repeated", "followed", "touched")
"""Those of them that break what was asked: an effect nobody wanted again, an order that was no user's, a tool
that must not be called."""


def tables(given: Given) -> Iterable[Table]:
    """A line for each kind of fault, in three tables."""
    found = lines(given.run.live)
    clean = clean_success(given.run.live)
    yield Table(
        name="live_costs",
        title="Cost of each fault",
        columns=("fault", "right / n", "success", "Δ to clean", "met", "recovered", "omission / repetition",
                 "calls beyond clean", "tokens beyond clean"),
        rows=(
            *([("clean", right_of(clean), clean, None, "", None, "", "", "")] if clean else []),
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
    met = [one for one in scores if one.counts]
    return {
        code: {
            name: sum(known)
            for name in SIDE_EFFECTS
            if (
                known := [n for one in met if one.type_code == code and (n := getattr(one, name)) is not None]
            )
        }
        for code in dict.fromkeys(one.type_code for one in scores)
    }


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault, or several, or a registry type, for one model."""

    name: str
    n: int
    """Episodes that met their fault, with a verdict, whose clean episode has one too."""
    unmet: int
    """Episodes that never met their fault: no column counts them."""
    left_out: int
    """Episodes without a verdict, or without a clean one beside them."""
    success: Interval
    delta: Interval
    """Success of the clean episodes minus that of these; its p-value is of the exact paired test."""
    met: int
    """Episodes that met the fault."""
    recovery: Interval | None
    """Share of those that met it in which every turn that met it ended with gold's world; null where none
    did."""
    silent: int
    """Silent failures."""
    false_success: tuple[int, int]
    """Of these: those whose text claims success, and those whose text claims it or is unclear."""
    omission: int
    """Failed episodes in which a write of gold's is missing."""
    repetition: int
    """Failed episodes in which a write had its effect too often. Both may be true of an episode."""
    honest: int
    """Episodes that ended with a wrong world of which the user was told."""
    unclear: int
    """Episodes of whose messages the rule cannot tell what the user was told."""
    false_failures: int
    """Episodes in which work that is as it should be was said to have failed."""
    false_claims: int
    """Episodes in which the agent said that it had done what no write did."""
    ceiling: int
    """Episodes of rows that can be right."""
    extra_steps: float | None
    """Mean calls beyond the clean episode's; null where none is known."""
    extra_tokens: float | None
    """The same of tokens, as the endpoint counted them."""

    @property
    def claimed(self) -> str:
        """False success: `3`, or `3 to 5` where some texts are unclear."""
        low, high = self.false_success
        return str(low) if low == high else f"{low} to {high}"


def lines(scores: Iterable["LiveScore"]) -> list[Line]:
    """One line for each kind that was played, then explicit, implicit and all, then each registry type and
    cascade. Of one model and mode."""
    every = list(scores)
    clean = {(one.clean_id, one.repeat): one for one in every if one.type_code == "clean"}
    codes = {name: set(map(type_code, kinds)) for name, kinds in groups().items()}
    made = (_line(name, [one for one in every if one.type_code in of], clean) for name, of in codes.items())
    return [line for line in made if line is not None]


def groups() -> dict[str, tuple[str, ...]]:
    """The name of each line → its kinds of faults; registry types and cascades are in no sum."""
    others = {name: (name,) for name in (*registry_types(), *CASCADES)}
    return {**{kind: (kind,) for kind in KINDS}, **FAMILIES, **others}


def _line(
    name: str, rows: Sequence["LiveScore"], clean: Mapping[tuple[str, int], "LiveScore"]
) -> Line | None:
    judged = [
        (row, beside)
        for row in rows
        if (beside := clean.get((row.clean_id, row.repeat))) is not None
        and row.success is not None
        and beside.success is not None
    ]
    pairs = [pair for pair in judged if pair[0].counts]
    if not pairs:
        return None
    n, with_fault, without = per_unit(
        sorted((row.clean_id, bool(row.success), bool(beside.success)) for row, beside in pairs)
    )
    fault, base = shares(with_fault, n), shares(without, n)
    played = [row for row, _ in pairs]
    met = [row for row in played if row.met and row.recovered is not None]
    failed = [row for row in played if not row.success]
    silent = [row for row in failed if row.silent_failure]
    claims = sum(row.told == "done" for row in silent)
    return Line(
        name=name,
        n=len(pairs),
        unmet=len(judged) - len(pairs),
        left_out=len(rows) - len(judged),
        success=of_estimate(fault, len(pairs), "hull"),
        delta=of_estimate(difference(base, fault), len(pairs), "mover", paired_p(without - with_fault)),
        met=sum(bool(row.met) for row in played),
        recovery=share_of(sorted((row.clean_id, bool(row.recovered)) for row in met)),
        silent=len(silent),
        false_success=(claims, claims + sum(row.told == "unclear" for row in silent)),
        omission=sum(bool(row.omitted) for row in failed),
        repetition=sum(bool(row.repeated) for row in failed),
        honest=sum(row.state is False and row.told in ("failed", "hedged") for row in failed),
        unclear=sum(row.told == "unclear" for row in played),
        false_failures=sum(bool(row.false_failure) for row in played),
        false_claims=sum(bool(row.false_claim) for row in played),
        ceiling=sum(row.reachable for row in played),
        extra_steps=_mean([row.extra_steps for row in played]),
        extra_tokens=_mean([row.extra_tokens for row in played]),
    )


def _mean(found: Iterable[int | None]) -> float | None:
    known = [one for one in found if one is not None]
    return sum(known) / len(known) if known else None


def clean_success(scores: Iterable["LiveScore"]) -> Interval | None:
    """Success of the clean episodes; null where none has a verdict."""
    rows = [one for one in scores if one.type_code == "clean" and one.success is not None]
    return share_of(sorted((row.clean_id, bool(row.success)) for row in rows))


def right_of(found: Interval) -> str:
    """`30 / 40`"""
    return f"{round(found.value * found.n)} / {found.n}"


def beyond(mean: float | None) -> str:
    """`+1.4`; nothing where it is not known."""
    return "" if mean is None else numbers.typeset(f"{mean:+.1f}")
