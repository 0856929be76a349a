"""The core's registry types in live rows: more tools, put in by the types' own units, and nothing else.

What comes in is no tool of the world: it answers with an error (`worlds.faults`). A type sees a task as a
sample whose gold is the task's first gold call; what comes in may take no gold call of any turn.
"""

from collections.abc import Sequence

import msgspec

from robustbench_tc import schema, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.live_types import BY_NAME, PACKS, registry_types, type_code
from robustbench_tc.schema import Call, LiveRow, LiveTool, Sample
from robustbench_tc.seeding import rng
from robustbench_tc.worlds.faults import meant

from ..perturb import REGISTRY, Context, NotApplicable
from ..perturb.registry import donor_pools
from .trace import gold

TAKES_GOLD = "takes_gold_call"
"""Why a task has no row: a call of gold's would go to a tool that comes in."""


def named_faults(names: Sequence[str]) -> set[str]:
    """Those of `live_types.BY_NAME` among names of types; a pack's name stands for all of it."""
    plain = [name.removeprefix("live_") for name in names]
    return {one for name in plain for one in PACKS.get(name, (name,))} & set(BY_NAME)


def checked(names: Sequence[str]) -> tuple[str, ...]:
    """The registry types that were named, in the order of every table. Raises UserError for another name that
    is not of `live_types.BY_NAME`."""
    wanted = {taxonomy.code_of(name.removeprefix("live_")) for name in names}
    usable, others = registry_types(), (*schema.NAMED_KINDS, *PACKS)
    for name in sorted(wanted.difference(usable, BY_NAME, PACKS)):
        what = "does not exist"
        if name == "latency":
            what = "is a fault of doors (docs/proxy-llm.md): time does not pass in an episode"
        elif name in schema.KINDS:
            what = "is a kind of fault (--kinds)"
        elif taxonomy.known(name):
            what = "does more than add tools to the registry, or needs written texts"
        raise UserError(
            f"type {name[:80]!r} {what}: the types of live rows are {', '.join((*usable, *others))}"
        )
    return tuple(name for name in usable if name in wanted)


def registered(clean: Sequence[LiveRow], code: str, seed: int) -> dict[str, LiveRow | str]:
    """Clean id → the task's row of a registry type, or the reason why it has none.

    Donors are the tools of all tasks, of other worlds too.
    """
    samples = tuple(map(_sample, clean))
    context = Context(donors=donor_pools(samples), samples=samples)
    return {
        row.clean_id: _row(row, sample, code, seed, context)
        for row, sample in zip(clean, samples, strict=True)
    }


def _row(row: LiveRow, sample: Sample, code: str, seed: int, context: Context) -> LiveRow | str:
    unit = REGISTRY[code]
    draw = rng(seed, f"live_{unit.draws_as or code}", row.clean_id)
    try:
        made = unit.perturb(sample, draw, context)
    except NotApplicable as skip:
        return skip.reason
    own = {id(plain): tool for plain, tool in zip(sample.tools, row.tools, strict=True)}
    tools = tuple(
        own.get(id(tool))
        or LiveTool(tool.name, tool.description, tool.parameters, writes=False, distractor=True)
        for tool in made.tools
    )
    if any(to is None or to.distractor for to in (meant(tools, c.name, c.parameters) for c in gold(row))):
        return TAKES_GOLD
    name = type_code(code)
    return msgspec.structs.replace(row, id=f"{row.clean_id}::{name}", type_code=name, tools=tools)


def _sample(row: LiveRow) -> Sample:
    """A task as the core's types see one: its registry, its first turn, its first gold call."""
    first = next((call for calls in row.golden_calls for call in calls), None)
    names = [tool.name for tool in row.tools]
    golden = () if first is None else ((Call(first.name, {k: [v] for k, v in first.parameters.items()}),),)
    return Sample(
        id=row.id,
        clean_id=row.clean_id,
        type_code=taxonomy.CLEAN,
        source=schema.DATASET,
        category=row.category,
        messages=row.turns[0].messages if row.turns else (),
        tools=tuple(tool.plain for tool in row.tools),
        golden_answers=golden,
        output_format="",
        gold_tool_index=names.index(first.name) if first is not None and first.name in names else None,
        seed=row.seed,
    )
