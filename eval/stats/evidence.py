"""What a run lets one say: `holds`, `loses` or `cannot tell` for each component and type, and one headline.

Every surface prints these words and sentences and none writes its own. The drop that summary, report,
gate, badge and board tell is Δ matched: right answers before minus right answers after over all pairs, with
its 95 % interval over whole cases (a clean id; of own cases with several turns all of them).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from robustbench_tc import taxonomy

from .caveats import Delivery, caveats, delivery
from .intervals import Interval, difference, of_estimate, shares
from .lattice import Ints
from .outcomes import Outcomes
from .runs import Run, within
from .significance import LEVEL, holm, holm_by, paired_p
from .values import HEADS, LIVE_HEADS, beyond_core, codes_of, leading, pack_of, scored

Word = Literal["holds", "loses", "cannot tell"]

WHOLE = {HEADS[1]: "perturbed rows", LIVE_HEADS[1]: "faulted rows"}
"""The line over every perturbed row → how a sentence names these rows."""

NO_PAIR = {
    HEADS[1]: "no perturbed row and its clean row are both answered",
    LIVE_HEADS[1]: "no episode met its fault beside a clean one with a verdict",
}
"""The same → what to say where there is no pair of such rows."""

HOLDS = 0.15
"""Share of the clean accuracy that the upper end of a drop may reach where a component `holds`."""
MISSING = 0.01
"""Share of missing pairs above which nothing `holds`."""
LOW = 0.3
"""Clean accuracy below which a drop is told as a share of the right answers."""
WIDE = 100
"""Characters of a headline on a terminal."""

HAPPENS = {
    "observation": "when requests or documentation are reworded",
    "action": "when similar tools are added",
    "reward": "when tool names or prices mislead",
    "transition": "when a tool fails",
    "explicit": "when calls fail with an error",
    "implicit": "when calls fail unseen",
}


RIGHT = 10
"""Right cases before below which no drop is ruled out."""


class Sides(msgspec.Struct, frozen=True):
    """Pairs of answers by case: [cases] right before, right after, pairs. Every case has a pair."""

    before: Ints
    after: Ints
    pairs: Ints
    right: int
    """Cases that are right before: on clean by the majority of repeats, else by the shares of their rows."""

    @property
    def accuracy_before(self) -> float:
        """Share of the pairs that are right before."""
        return int(self.before.sum()) / int(self.pairs.sum())

    @property
    def accuracy_after(self) -> float:
        """Share of the pairs that are right after."""
        return int(self.after.sum()) / int(self.pairs.sum())

    @property
    def lost(self) -> float:
        """The drop without its interval."""
        return int((self.before - self.after).sum()) / int(self.pairs.sum())

    @property
    def p_above(self) -> float:
        """Exact one-sided p of "no drop": each case's two sides could be swapped."""
        return paired_p(self.before - self.after, one_sided=True)

    def factor(self, drop: Interval, room: float) -> float:
        """How many times as many cases settle whether `drop` is at most `room`, if what was seen goes on.

        Infinite where nothing was right before.
        """
        if not self.right:
            return math.inf
        ways = [(drop.high - drop.value) / (room - drop.value)] if room > drop.value else []
        if drop.value > 0:
            ways.append((drop.value - drop.low) / drop.value)
        return max(RIGHT / self.right, min(ways) ** 2, 1.0)


def drops(sides: Sequence[Sides]) -> list[Interval]:
    """Of each before − after, with its 95 % interval and the exact two-sided p of "no drop"."""
    if not sides:
        return []
    most = max(len(one.pairs) for one in sides)
    before, after, pairs = (  # cases without a pair take no part
        np.stack([np.pad(getattr(one, name), (0, most - len(one.pairs))) for one in sides])
        for name in ("before", "after", "pairs")
    )
    found = difference(shares(before, pairs), shares(after, pairs))
    made = (
        of_estimate(found.at(at), int(one.pairs.sum()), "mover", paired_p(one.before - one.after))
        for at, one in enumerate(sides)
    )
    return [msgspec.structs.replace(made, value=one.lost) for made, one in zip(made, sides, strict=True)]


def own_clean(outcomes: Outcomes, codes: Sequence[str]) -> Sides | None:
    """Rows of `codes` beside the run's own clean rows, repeat by repeat; None where there is no pair."""
    before, pairs = outcomes.anchors(codes)
    right = int((2 * before > pairs).sum())
    return _sides(before, outcomes.anchored(codes)[0], pairs, right)


def at_worst(outcomes: Outcomes, codes: Sequence[str]) -> Sides | None:
    """The same with every missing pair as right on its clean row and wrong on its perturbed one."""
    if outcomes.types[0] != taxonomy.CLEAN:
        return None
    at = [outcomes.types.index(code) for code in codes if code in outcomes.types]
    asked = outcomes.n + outcomes.missing
    wanted = np.where(asked[:, :1] > 0, asked[:, at], 0)
    there = outcomes.pairs[:, at] + outcomes.unmet[:, at]
    absent = outcomes.by_unit(np.maximum(wanted - there, 0).sum(axis=1))
    before, pairs = outcomes.anchors(codes)
    return _sides(before + absent, outcomes.anchored(codes)[0], pairs + absent, 0)


def other_run(base: Outcomes, new: Outcomes, codes: Sequence[str]) -> Sides | None:
    """Rows of `codes` in both runs, those that both answered as often as they were asked.

    Repeats of different numbers are put over their common multiple.
    """
    at = [new.types.index(code) for code in codes if code in new.types]
    both = ((base.n == base.answers) & (new.n == new.answers))[:, at] * (new.answers // new.repeats)[at]
    unit = math.lcm(base.repeats, new.repeats)
    before = np.where(both, base.correct[:, at] * (unit // base.repeats), 0)
    after = np.where(both, new.correct[:, at] * (unit // new.repeats), 0)
    first, second, pairs = (new.by_unit(one.sum(axis=1)) for one in (before, after, both * unit))
    right = int((first / np.maximum(pairs, 1)).sum() + 1e-9)
    return _sides(first, second, pairs, right)


def _sides(before: Ints, after: Ints, pairs: Ints, right: int) -> Sides | None:
    there = pairs > 0
    return Sides(before[there], after[there], pairs[there], right) if there.any() else None


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs of answers of all perturbed rows, of a component or a type: what was right before and after."""

    name: str
    """A line of `Outcomes.heads`, or a type code."""
    cases: int
    """Distinct cases with a pair."""
    right: int
    """Of these, right before (on clean by the majority of repeats)."""
    before: float
    """Accuracy of the clean rows of these pairs, or of the run that another one is held against."""
    after: float
    drop: Interval
    """before − after, with its 95 % interval; the clusters are the cases. On clean rows that is Δ matched."""
    p_holm: float
    """Exact p of "no drop", corrected over the components, or over the types of a pack."""
    why: str
    """Reason and cure where nothing can be said, else empty."""


class Evidence(Held, frozen=True, kw_only=True):
    """What a run says of its perturbed rows beside their clean ones; its p is two-sided."""

    word: Word
    keeps: float | None
    """At least this share of the right answers is kept, a whole percent; None where no clean row is right."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a run says, on every surface."""

    sentence: str
    lines: dict[str, Evidence]
    """All perturbed rows, then the components (of live runs: families of faults) that have a pair."""
    types: dict[str, Evidence]
    worst: tuple[str, ...]
    """Type codes that lose, the largest drop first."""
    warnings: tuple[str, ...]
    """The worst first, each one line."""
    delivery: Delivery | None = None
    """Of a server in fc mode: what a client got of the calls that were meant."""


def answer(run: Run, outcomes: Outcomes) -> Answer:
    """What the run says over the rows of `outcomes`."""
    whole, *components = outcomes.heads[1:]
    heads = {name: codes_of(name) for name in (whole, *components)}
    sides = {
        name: one
        for name, codes in (*heads.items(), *((code, (code,)) for code in outcomes.types[1:]))
        if (one := own_clean(outcomes, scored(codes))) is not None
    }
    # The core apart from the rest: the last digit of a sum depends on what is summed beside it.
    parts = [[name for name in sides if beyond_core(codes_of(name)) is beyond] for beyond in (False, True)]
    found = {
        name: drop for part in parts for name, drop in zip(part, drops([sides[n] for n in part]), strict=True)
    }
    p_values = {name: drop.p for name, drop in found.items() if drop.p is not None}
    types = {name: p for name, p in p_values.items() if name not in heads}
    of_components = {name: p_values[name] for name in components if name in p_values}
    corrected = p_values | holm(of_components) | holm_by(pack_of, types)
    made = {
        name: judged(name, one, found[name], corrected[name], run, outcomes) for name, one in sides.items()
    }
    lines = {name: one for name, one in made.items() if name in heads}
    of_types = {name: one for name, one in made.items() if name not in heads}
    losing = [code for code in leading(of_types) if of_types[code].word == "loses"]
    worst = tuple(sorted(losing, key=lambda code: -of_types[code].drop.value))
    run = within(run, outcomes)
    alarms, warnings = caveats(run, outcomes)
    # the most detailed of the sentences that fits; a caveat that changes how to read it leads
    said = [f"{alarms} {one}".lstrip() for one in _sentences(lines, of_types, worst, whole)]
    return Answer(
        sentence=next((one for one in said if len(one) <= WIDE), said[-1]),
        lines=lines,
        types=of_types,
        worst=worst,
        warnings=warnings,
        delivery=delivery(run),
    )


def judged(
    name: str,
    sides: Sides,
    drop: Interval,
    p_holm: float,
    run: Run,
    outcomes: Outcomes,
) -> Evidence:
    """What the pairs of a line of `Outcomes.heads`, or of a type, let one say."""
    clean, cases = sides.accuracy_before, len(sides.pairs)
    worst = at_worst(outcomes, scored(codes_of(name))) or sides
    absent = int(worst.pairs.sum()) - int(sides.pairs.sum())
    missing = absent > MISSING * int(worst.pairs.sum()) or outcomes.unaccounted > 0
    highest = drops([worst])[0] if absent else drop
    said: Word = "loses" if p_holm <= LEVEL and drop.low > 0 else "cannot tell"
    holding = drop.high <= HOLDS * clean and highest.high <= HOLDS * worst.accuracy_before
    if sides.right >= RIGHT and holding and not missing:
        said = "holds"
    seen = f"a drop of {_points(drop.low)} to {_points(drop.high)} points fits this run"
    ask = cure(run, outcomes, cases, sides.factor(drop, HOLDS * clean))
    count = absent or outcomes.unaccounted
    reasons = [
        (said != "cannot tell", []),
        (missing, [f"{count} pairs of rows have no verdict", "run the same rbtc eval again"]),
        (not clean, ["no clean row was correct", ask]),
        (drop.low > 0, ["loss likely, not proven", seen, ask]),
        (sides.right < RIGHT, [f"{sides.right} of {cases} clean answers are right", seen, ask]),
        (True, [seen, ask]),
    ]
    why = next(words for holds, words in reasons if holds)
    return Evidence(
        name=name,
        word=said,
        cases=cases,
        right=sides.right,
        before=clean,
        after=sides.accuracy_after,
        drop=drop,
        keeps=keeps(drop.high, clean),
        p_holm=p_holm,
        why="; ".join(why),
    )


def keeps(high: float, clean: float) -> float | None:
    """At least this share of the right answers is kept, by the upper end of the drop; a whole percent."""
    if not clean:
        return None
    return max(0, math.floor(100 * (1 - high / clean) + 1e-9)) / 100


def cure(run: Run, outcomes: Outcomes, cases: int, factor: float) -> str:
    """What to do about too few cases, where `factor` times as many would settle it."""
    if run.own_tools:
        return f"{max(math.ceil(cases * min(factor, RIGHT)) - cases, 1)} more cases"
    if run.live:
        return "ask more tasks" if cases < RIGHT else "ask more, --repeat 3"
    samples = int((outcomes.n[:, 0] > 0).sum())
    rows = {one.type_code: one.rows for one in run.record.needs_no_reading}
    exist = rows.get(taxonomy.CLEAN, samples)
    if samples >= exist:
        return "ask more, --repeat, profile full, or another component"
    wanted = min(factor * samples, exist)
    more = "" if wanted < exist else " --repeat 3"
    return f"ask more, --samples {min(exist, 10 * math.ceil(wanted / 10 + 0.1))}{more}"


def _points(share: float) -> str:
    return f"{100 * share:.0f}".replace("-", "−") if abs(share) >= 0.005 else "0"


def _sentences(
    lines: Mapping[str, Evidence], types: Mapping[str, Evidence], worst: tuple[str, ...], whole: str
) -> list[str]:
    """One thing said in fewer and fewer words. `whole`: the line over every perturbed row."""
    heads = [one for name, one in lines.items() if name != whole] or list(types.values())
    if not heads:
        return [f"Cannot tell: {NO_PAIR[whole]}."]
    losing = sorted((one for one in heads if one.word == "loses"), key=lambda one: -one.drop.value)
    unsure = [one for one in heads if one.word == "cannot tell"]
    named = losing or [types[code] for code in worst]
    if not named and whole in lines and lines[whole].word == "loses":
        return [f"Loses {_amount(lines[whole])} over all {WHOLE[whole]}; no component stands out."]
    everywhere = len(heads) >= len(LIVE_HEADS if whole == LIVE_HEADS[1] else HEADS) - 2
    place = "everywhere" if everywhere else f"in {', '.join(one.name for one in heads)}"
    where = "elsewhere" if named else f"of its right answers {place}"
    rest = _rest([one for one in heads if one not in named], where)
    if not named:
        return _unlosing(heads, unsure, rest)
    listed = ", ".join(f"{_amount(one, short=at > 0)} in {one.name}" for at, one in enumerate(named[:4]))
    first, more = named[0], len(named) - 1
    phrase = f" {HAPPENS[first.name]} ({first.name})" if first.name in HAPPENS else f" under {first.name}"
    most = f"Loses {_amount(first)}{phrase}"
    tries = [f"Loses {listed}.{rest}"] if more else [f"{most}.{rest}"]
    tries += [f"Loses {listed}.", f"Loses {_amount(first)} in {first.name}, and in {more} more."]
    return tries if more else [*tries[:1], f"Loses {_amount(first)} in {first.name}.{rest}", f"{most}."]


def _unlosing(heads: list[Evidence], unsure: list[Evidence], rest: str) -> list[str]:
    """Sentences where no loss is proven."""
    if not unsure:
        none = "No loss was found." if all(one.drop.low <= 0 for one in heads) else ""
        return [f"{none}{rest}".strip(), rest.strip()]
    first = max(unsure, key=lambda one: one.drop.value)
    names = ", ".join(one.name for one in unsure)
    which = "" if len(unsure) == len(heads) else f" for {names}"
    reason, *_, cure = first.why.split("; ")
    parts = (first.why, f"{reason}; {cure}", reason)
    return [*(f"Cannot tell{which}: {part}." for part in parts), f"Cannot tell{which}."]


def _rest(others: list[Evidence], where: str) -> str:
    """What is said of components beside those that lose."""
    if unsure := [one.name for one in others if one.word == "cannot tell"]:
        return f" Cannot tell {'elsewhere' if len(unsure) == len(others) else 'for ' + ', '.join(unsure)}."
    kept = [one.keeps or 0.0 for one in others]
    return f" Keeps at least {100 * min(kept):.0f} % {where}." if kept else ""


def _amount(one: Evidence, *, short: bool = False) -> str:
    """A loss: points, or at a low clean accuracy the share of the right answers."""
    if one.before < LOW:
        return f"{100 * one.drop.value / one.before:.0f} %" + ("" if short else " of its right answers")
    value = 100 * one.drop.value
    if value < 1:
        return "under 1 point"
    return f"{value:.0f}{'' if short else ' points'}"
