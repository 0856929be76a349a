"""What a run lets one say: `holds`, `loses` or `cannot tell` for each component and type, and one headline.

Every surface prints these words and sentences and none writes its own. The drop is that of `sides`.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from robustbench_tc import taxonomy

from .caveats import Delivery, caveats, delivery
from .intervals import Interval
from .runs import Outcomes, Run, within
from .sides import RIGHT, Sides, at_worst, drops, own_clean
from .significance import LEVEL, holm, holm_by
from .values import HEADS, LIVE_HEADS, beyond_core, codes_of, heads_of, leading, pack_of

Word = Literal["holds", "loses", "cannot tell"]

WHOLE = {HEADS[1]: "perturbed rows", LIVE_HEADS[1]: "faulted rows"}
"""The line over every perturbed row → how a sentence names these rows."""

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


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What a run says of its perturbed rows, of one component or of one type."""

    name: str
    """A line of `heads_of`, or a type code."""
    word: Word
    cases: int
    """Distinct cases with a pair."""
    right: int
    """Of these, right on clean (by the majority of repeats)."""
    clean: float
    """Accuracy of the clean rows of these pairs."""
    after: float
    drop: Interval
    """Δ matched with its 95 % interval; the clusters are the cases."""
    keeps: float | None
    """At least this share of the right answers is kept, a whole percent; None where no clean row is right."""
    p_holm: float
    """Exact two-sided p, corrected over the components, or over the types of a pack."""
    why: str
    """Reason and cure where the word is `cannot tell`, else empty."""


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
    whole, *components = heads_of(outcomes.types)[1:]
    heads = {name: codes_of(name) for name in (whole, *components)}
    sides = {
        name: one
        for name, codes in (*heads.items(), *((code, (code,)) for code in outcomes.types[1:]))
        if (one := own_clean(outcomes, _scored(codes))) is not None
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
        name: _judged(name, one, found[name], corrected[name], run, outcomes) for name, one in sides.items()
    }
    lines = {name: one for name, one in made.items() if name in heads}
    of_types = {name: one for name, one in made.items() if name not in heads}
    losing = [code for code in leading(of_types) if of_types[code].word == "loses"]
    worst = tuple(sorted(losing, key=lambda code: -of_types[code].drop.value))
    run = within(run, outcomes)
    alarms, warnings = caveats(run, outcomes)
    # the most detailed of the sentences that fits; a caveat that changes how to read it leads
    said = [f"{alarms} {one}".lstrip() for one in _sentences(lines, of_types, worst)]
    return Answer(
        sentence=next((one for one in said if len(one) <= WIDE), said[-1]),
        lines=lines,
        types=of_types,
        worst=worst,
        warnings=warnings,
        delivery=delivery(run),
    )


def _scored(codes: Iterable[str]) -> tuple[str, ...]:
    """Those of which an accuracy says anything."""
    return tuple(code for code in codes if not taxonomy.known(code) or taxonomy.get(code).scored)


def word(sides: Sides, drop: Interval, p_holm: float) -> Word:
    """What pairs without a gap let one say."""
    if sides.right >= RIGHT and drop.high <= HOLDS * sides.accuracy_before:
        return "holds"
    return "loses" if _is_lost(drop, p_holm) else "cannot tell"


def _is_lost(drop: Interval, p_holm: float) -> bool:
    return p_holm <= LEVEL and drop.low > 0


def _judged(
    name: str,
    sides: Sides,
    drop: Interval,
    p_holm: float,
    run: Run,
    outcomes: Outcomes,
) -> Evidence:
    clean, cases = sides.accuracy_before, len(sides.pairs)
    worst = at_worst(outcomes, _scored(codes_of(name))) or sides
    absent = int(worst.pairs.sum()) - int(sides.pairs.sum())
    missing = absent > MISSING * int(worst.pairs.sum()) or outcomes.unaccounted > 0
    highest = drops([worst])[0] if absent else drop
    said = word(sides, drop, p_holm)
    if said == "holds" and (missing or highest.high > HOLDS * worst.accuracy_before):
        said = "loses" if _is_lost(drop, p_holm) else "cannot tell"
    seen = f"a drop of {_points(drop.low)} to {_points(drop.high)} points fits this run"
    ask = cure(run, outcomes, cases, sides.factor(drop, HOLDS * clean))
    if said != "cannot tell":
        why = []
    elif missing:
        count = absent or outcomes.unaccounted
        why = [f"{count} pairs of rows have no verdict", "run the same rbtc eval again"]
    elif not clean:
        why = ["no clean row was correct", ask]
    elif drop.low > 0:
        why = ["loss likely, not proven", seen, ask]
    elif sides.right < RIGHT:
        why = [f"{sides.right} of {cases} clean answers are right", seen, ask]
    else:
        why = [seen, ask]
    return Evidence(
        name=name,
        word=said,
        cases=cases,
        right=sides.right,
        clean=clean,
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
        return "ask more, --repeat 3"
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
    lines: Mapping[str, Evidence], types: Mapping[str, Evidence], worst: tuple[str, ...]
) -> list[str]:
    """One thing said in fewer and fewer words."""
    whole = next((name for name in WHOLE if name in lines), "")
    heads = [one for name, one in lines.items() if name != whole] or list(types.values())
    if not heads:
        return ["Cannot tell: no perturbed row and its clean row are both answered."]
    losing = sorted((one for one in heads if one.word == "loses"), key=lambda one: -one.drop.value)
    unsure = [one for one in heads if one.word == "cannot tell"]
    named = losing or [types[code] for code in worst]
    if not named and whole and lines[whole].word == "loses":
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
    if not others:
        return ""
    if unsure := [one.name for one in others if one.word == "cannot tell"]:
        return f" Cannot tell {'elsewhere' if len(unsure) == len(others) else 'for ' + ', '.join(unsure)}."
    kept = min(one.keeps or 0.0 for one in others)
    return f" Keeps at least {100 * kept:.0f} % {where}."


def _amount(one: Evidence, *, short: bool = False) -> str:
    """A loss: points, or at a low clean accuracy the share of the right answers."""
    if one.clean < LOW:
        return f"{100 * one.drop.value / one.clean:.0f} %" + ("" if short else " of its right answers")
    value = 100 * one.drop.value
    return (
        f"{value:.0f}" if short and value >= 1 else f"{value:.0f} points" if value >= 1 else "under 1 point"
    )
