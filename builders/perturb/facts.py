"""The facts of every type, as the other rooms read them, and what cannot be among them."""

from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.sources import Source
from robustbench_tc.taxonomy import Channel, PerturbationType

from .base import REGISTRY, Perturbation, broken

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


def facts(unit: Perturbation, sources: Iterable[Source]) -> PerturbationType:
    """The type's facts as the other rooms read them. Raises ValueError for one that cannot be."""
    chosen = unit.applies_to
    names = tuple(
        source.name
        for source in sources
        if chosen == "every source"
        or (source.single_gold_tool if chosen == "one gold tool" else source.name in chosen)
    )
    stated = {name: getattr(unit, name) for name in PerturbationType.__struct_fields__}
    stated |= {"sources": names, "traits": {name: getattr(unit, name) for name in unit.TRAITS}}
    try:
        return msgspec.convert(msgspec.to_builtins(stated), PerturbationType)
    except (msgspec.ValidationError, TypeError) as error:
        raise ValueError(f"{where(unit)}: {error}") from None


def where(unit: Perturbation) -> str:
    """The type and its module: `my_type (perturb/my_type.py)`."""
    return f"{unit.code} (perturb/{type(unit).__module__.rpartition('.')[2]}.py)"


def problems(unit: Perturbation, sources: Iterable[Source]) -> list[str]:
    """What is wrong with the facts of one type, one sentence each."""
    try:
        found = facts(unit, sources)
    except ValueError as error:
        return [str(error)]
    others = [one.code for one in REGISTRY.values() if one.order == found.order]
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
        "prior_art is stated for the types beyond the core, and for no other": (found.pack == "core")
        == bool(found.prior_art),
        "paper_rows is stated for the types of the core, and for no other": (found.pack == "core")
        != (found.paper_rows is not None),
        f"a model-written type has its prompt in {prompt}": written
        and not (PROMPTS / Path(prompt).name).is_file(),
    }
    return [f"{where(unit)}: {one}" for one in broken(rules)]


def all_facts(sources: Iterable[Source]) -> tuple[PerturbationType, ...]:
    """The facts of every type, in order. Raises ValueError with every problem, one a line."""
    known = tuple(sources)
    if wrong := [one for unit in REGISTRY.values() for one in problems(unit, known)]:
        raise ValueError("\n".join(wrong))
    return tuple(facts(unit, known) for unit in REGISTRY.values())
