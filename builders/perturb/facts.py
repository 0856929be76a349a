"""The facts of every type, as the other rooms read them, and what a type has left out."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, get_args

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.schema import Sample
from robustbench_tc.sources import Source
from robustbench_tc.taxonomy import Channel, PerturbationType

from . import cases
from .base import REGISTRY, Case, Perturbation, broken

OWN = ("code", "order", "display_name", "label", "what_is_modified", "golden")
"""Facts that a type states in its own class. The others may come from a base class that is not a type."""

STATED = (
    *OWN, "how_made", "component", "level", "pack", "channel", "method", "may_change", "ground_truth_changes",
    "train_augmentable", "applies_to", "rows", "caught_by",
)  # fmt: skip
"""Facts without a default."""

DOING = ("perturb", "check", "spoiled")
"""What every type does in its own way."""

BEYOND_CORE = ("prior_art", "otherwise_caught_by", "spoiled_otherwise")
"""What a type outside the core states and does beside that."""

TRAITS: dict[Channel, tuple[str, ...]] = {
    "namesake": ("description", "wrong_parameters"),
    "offers": ("quality", "suffix", "stated"),
    "result": ("instructed",),
}
"""What a type of the channel says beside the facts of every type: the audit's rules need it."""

PROMPTS = Path(__file__).parents[1] / "prompts"

RESERVED = {
    taxonomy.CLEAN, "taxonomy", "evidence", "known_issues", "perturbed",
    *taxonomy.COMPONENTS, *get_args(taxonomy.Level), *get_args(taxonomy.Pack),
}  # fmt: skip
"""Words that mean another folder of a release, or several types at once."""


def missing(unit: Perturbation) -> list[str]:
    """The facts and functions that the unit's type does not state, by name."""
    kind = type(unit)
    found = []
    for name in STATED:
        stated_by = next((base for base in kind.__mro__ if name in vars(base)), None)
        if stated_by is None or (stated_by is not kind and (name in OWN or "code" in vars(stated_by))):
            found.append(name)
    found += [name for name in kind.traits if not hasattr(kind, name)]
    if getattr(kind, "pack", "core") != "core":
        found += [name for name in BEYOND_CORE if getattr(kind, name) == getattr(Perturbation, name)]
    return found + [name for name in DOING if getattr(kind, name) is getattr(Perturbation, name)]


def facts(unit: Perturbation, sources: Iterable[Source]) -> PerturbationType:
    """The type's facts. Raises ValueError naming the type and what it does not state, or states wrongly."""
    if left_out := missing(unit):
        raise ValueError(f"{where(unit)} does not state {', '.join(left_out)}: see docs/extending.md")
    chosen = unit.applies_to
    names = tuple(
        source.name
        for source in sources
        if chosen == "every source"
        or (source.single_gold_tool if chosen == "one gold tool" else source.name in chosen)
    )
    plain: dict[str, Any] = {
        name: getattr(unit, name)
        for name in PerturbationType.__struct_fields__
        if name not in ("sources", "traits")
    }
    plain |= {
        "flags": dict(unit.flags),
        "sources": names,
        "traits": {name: getattr(unit, name) for name in unit.traits},
    }
    try:
        return msgspec.convert(msgspec.to_builtins(plain), PerturbationType)
    except (msgspec.ValidationError, TypeError) as error:
        raise ValueError(f"{where(unit)}: {error}") from None


def where(unit: Perturbation) -> str:
    """The type and its module: `my_type (perturb/my_type.py)`."""
    return f"{unit.code} (perturb/{type(unit).__module__.rpartition('.')[2]}.py)"


def problems(
    unit: Perturbation, sources: Iterable[Source], checks: Collection[str] | None = None
) -> list[str]:
    """What is wrong with the facts of one type, one sentence each. `checks`: the gate's; None: unknown."""
    try:
        found = facts(unit, sources)
    except ValueError as error:
        return [str(error)]
    others = [one.code for one in REGISTRY.values() if getattr(one, "order", 0) == found.order]
    taken = ", ".join(code for code in others if code != unit.code)
    named = set(unit.applies_to) if isinstance(unit.applies_to, tuple) else set[str]()
    lost = ", ".join(sorted(named - set(found.sources)))
    unstated = ", ".join(name for name in TRAITS.get(found.channel, ()) if name not in found.traits)
    prompt = f"builders/prompts/{unit.prompt or found.code}.v1.txt"
    written = found.method == "llm" and not taxonomy.parts(found.code)
    rewritten = found.channel in ("query", "descriptions") and found.method == "llm"
    on_result = found.channel == "tool_result"
    rules = {
        f"{found.code!r} means something else in --types or in a release: choose another code": found.code
        in RESERVED,
        f"order {found.order} is taken by {taken}": bool(taken),
        "label has more than four words": len(found.label.split()) > 4,
        "applies_to names no source": not found.sources,
        f"applies_to names a source that there is not: {lost}": bool(lost),
        f"traits of the channel {found.channel} are not stated: {unstated}": bool(unstated),
        "ground_truth_changes, but may_change does not hold the golden answers": found.ground_truth_changes
        and "golden answers" not in found.may_change,
        "may_change is empty: a row in which nothing changes is not a perturbed row": found.static
        and not found.may_change,
        "injected_error belongs to the channel tool_result, and to no other": found.channel != "mixed"
        and (found.injected_error is None) == on_result,
        "judged_as is not stated: what a judge of rewritten texts takes them for": rewritten
        and not found.judged_as,
        "a type of a series states its dose, and no other type does": bool(found.series)
        != (found.dose is not None),
        "control is stated where calling nothing is right or accepted, and nowhere else": bool(found.control)
        == (found.no_call == "wrong"),
        "paper_rows is stated for the types of the core, and for no other": (found.pack == "core")
        != (found.paper_rows is not None),
        f"a model-written type has its prompt in {prompt}": written
        and not (PROMPTS / Path(prompt).name).is_file(),
        "the class has no docstring": not vars(type(unit)).get("__doc__"),
    }
    wrong = broken(rules)
    for name in ("caught_by", "otherwise_caught_by"):
        check = getattr(unit, name)
        due = name == "caught_by" or check
        if checks is not None and due and check not in checks:
            wrong.append(f"{name} names {check!r}, and the gate has no such check of rows")
    return [f"{where(unit)}: {one}" for one in wrong] + _problems_of_cases(unit)


def _problems_of_cases(unit: Perturbation) -> list[str]:
    if not unit.golden or not all(isinstance(case, Case) for case in unit.golden):
        return [f"{where(unit)}: golden holds no Case"]
    wrong = []
    for case in unit.golden:
        if case.clean not in cases.CLEAN:
            wrong.append(f"no sample {case.clean!r} in cases.CLEAN ({', '.join(cases.CLEAN)})")
            continue
        try:
            row = cases.row_of(unit, case)
        except ValueError as error:
            wrong.append(str(error))
            continue
        if odd := _not_as_declared(row):
            wrong.append(f"the row of its golden case: {odd}")
            continue
        clean = cases.CLEAN[case.clean]
        found = cases.difference(clean, row)
        if found != cases.reads(case):
            wrong.append(f"the golden case on {case.clean!r} reads otherwise:\n{found}")
        wrong += [f"check on its own golden case: {one}" for one in unit.problems(clean, row)]
    return [f"{where(unit)}: {one}" for one in wrong]


def _not_as_declared(row: Sample) -> str:
    """Which fields do not hold what `Sample` declares (a list where it says tuple); "" where all do."""
    try:
        declared = msgspec.convert(msgspec.to_builtins(row), Sample)
    except (msgspec.ValidationError, TypeError) as error:
        return str(error)
    odd = [name for name in Sample.__struct_fields__ if getattr(row, name) != getattr(declared, name)]
    return f"not the type that schema.Sample declares (a list for a tuple?): {', '.join(odd)}" if odd else ""


def all_facts(sources: Iterable[Source], checks: Collection[str]) -> tuple[PerturbationType, ...]:
    """The facts of every type, in order. Raises ValueError with every problem, one a line.

    `checks`: the names of the gate's checks of rows, of which `caught_by` is one.
    """
    known = tuple(sources)
    if wrong := [one for unit in REGISTRY.values() for one in problems(unit, known, checks)]:
        raise ValueError("\n".join(wrong))
    return tuple(facts(unit, known) for unit in REGISTRY.values())
