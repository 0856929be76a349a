"""A plan with the dataset that it names: what a door carries out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from robustbench_tc.eval import inputs
from robustbench_tc.eval.inputs import Dataset
from robustbench_tc.llm.wire_names import safe_name
from robustbench_tc.own import book
from robustbench_tc.schema import Json, Sample

from .plan import Plan, read_plan


class Planned(NamedTuple):
    """A plan, and what is known of its dataset."""

    plan: Plan
    rows: tuple[Sample, ...] = ()
    fingerprint: str | None = None
    results: Mapping[str, Mapping[str, Sequence[Json]]] = {}
    """What the tools of own cases answer, in turn: by clean id and tool."""


def planned(path: Path, *, allow_writes: bool) -> Planned:
    """The plan of a file. Raises UserError."""
    plan = read_plan(path)
    plan = replace(plan, allow_writes=plan.allow_writes or allow_writes)
    return Planned(plan) if plan.bench is None else of_dataset(plan, inputs.load_samples(plan.bench))


def of_dataset(plan: Plan, data: Dataset) -> Planned:
    """The plan with what the dataset says of own tools: by their names, and as an agent registers them."""
    found = book.read(Path(data.name))
    plan = replace(plan, bench=data.name)
    if found is None:
        return Planned(plan, data.rows, data.fingerprint())
    plan = replace(
        plan,
        read_only=(*plan.read_only, *found.read_only, *map(safe_name, found.read_only)),
        idempotent=(*plan.idempotent, *found.idempotent, *map(safe_name, found.idempotent)),
    )
    return Planned(plan, data.rows, data.fingerprint(), found.results)
