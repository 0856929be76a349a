"""What must hold of what a row has beyond its clean row: a fault, given the tools and gold (nobody could
meet, or repair, another one), or more tools."""

from collections.abc import Callable
from functools import wraps

from msgspec.structs import replace

from robustbench_tc import taxonomy
from robustbench_tc.live_types import CASCADES, registry_types, type_code
from robustbench_tc.schema import AFTER_EFFECT, Fault, LiveRow, dumps

from ..checks import DoesNotApply, check
from .entries import Entry, GoldCall, each_fault, gold_calls, met
from .rows import TELLING, more_tools, with_policy

OF_AN_EFFECT = (*AFTER_EFFECT, "silent_no_op", "stale_read", "duplicate_effect")
"""Kinds that only a call that writes can meet."""

NEEDS: dict[str, frozenset[str]] = {
    "fabricated_leaf": frozenset(("path", "value")),
    "prerequisite": frozenset(("tool",)),
    "injected_instruction": frozenset(("tool", "text")),
    "forbidden": frozenset(("tool", "text")),
}
"""Kind → the fields of a fault that it needs; the other kinds need none."""

_UNTIL_DONE = ("prerequisite", "strict_types")
"""Kinds that end when the agent does what they ask for."""


def faulty(entry: Entry) -> bool:
    """For rows with a fault."""
    return entry.row is not None and entry.row.fault is not None


def _fault(row: LiveRow) -> Fault:
    if row.fault is None:
        raise DoesNotApply
    return row.fault


def of_each(holds: Callable[[LiveRow, Entry], None]) -> Callable[[LiveRow, Entry], None]:
    """Decorator: what must hold of every fault of a row."""

    @wraps(holds)
    def each(row: LiveRow, entry: Entry) -> None:
        for alone in each_fault(row):
            holds(alone, entry)

    return each


def _met(row: LiveRow) -> GoldCall:
    """Gold's call that meets the fault."""
    place = met(row)
    if place is None or gold_calls(row)[place].tool is None:
        raise DoesNotApply
    return gold_calls(row)[place]


@check("live_rows", for_=faulty)
def fault_is_its_types(row: LiveRow, entry: Entry) -> None:
    """The fault is of the kind that the type names; those of a cascade are as many and of the kinds that its
    letters say, one after the other and never before the same call."""
    letters = CASCADES.get(row.type_code.removeprefix("live_"))
    if letters is None:
        kind = _fault(row).kind
        assert type_code(kind) == row.type_code, f"a fault of kind {kind}"
    assert len(row.faults) == len(letters or "a"), f"there are {len(row.faults)} faults"
    assert not any(one.then for one in row.faults[1:]), "a further fault has further ones"
    a, b, c = map(dict(zip(letters or "", row.faults, strict=False)).get, "abc")
    assert a is None or a.kind in AFTER_EFFECT.values(), "a is not the text of a lost answer"
    assert b is None or b.kind in AFTER_EFFECT, "b does not come after the effect"
    if a is not None and b is not None:
        assert AFTER_EFFECT[b.kind] == a.kind, "a and b say different things"
        assert b.at == replace(a.at, nth=a.at.nth + 1), "b does not meet the retry of a's call"
    if a is not None and c is not None:
        assert c.at.tool not in (None, a.at.tool), "a retry of a's call counts as one of c's"


@check("live_rows", for_=faulty)
@of_each
def fault_says_what_its_kind_needs(row: LiveRow, entry: Entry) -> None:
    """A fault states what its kind needs, of the tools that there are, and nothing that another kind
    needs."""
    fault = _fault(row)
    needed = NEEDS.get(fault.kind, frozenset())
    for name in ("path", "value", "tool", "text"):
        stated = getattr(fault, name) not in (None, (), [])
        assert stated or name not in needed, f"it states no {name}"
        assert not stated or name in needed, f"it states {name}"
    if fault.tool is None:
        return
    place = met(row)
    turn = 0 if place is None else gold_calls(row)[place].turn
    tool = next((one for one in row.offered(turn) if one.name == fault.tool and not one.distractor), None)
    assert tool is not None, f"{fault.tool[:80]} is no tool that is offered then"
    own = [gold.call for gold in gold_calls(row)]
    if fault.text is None:
        before = [call.name for call in own[: place or 0]]
        assert fault.tool not in before, f"gold has called {fault.tool} before: nobody meets it"
        called = place is not None and own[place].name == fault.tool
        assert not called, "the tool to call first is the one that is called"
    else:
        assert tool.writes, f"{fault.tool} does not write: whoever obeys does no harm"
        assert fault.tool in fault.text, "the text does not name the tool that it asks for"
        golds = [dumps(call.parameters) for call in own if call.name == fault.tool]
        assert not any(one in fault.text for one in golds), "the text asks for what gold does"
        found = TELLING.search(fault.text)
        assert not found, f"the text says {found.group()!r}"


@check("live_rows", for_=with_policy)
def policy_is_in_front(row: LiveRow, entry: Entry) -> None:
    """What the system says stands in front of the clean row's turns, and gold obeys it: so nobody has to
    call the tool that must not be called."""
    if entry.clean is None or not entry.clean.turns:
        raise DoesNotApply
    policy = "".join(one.content for turn in row.turns[:1] for one in turn.messages[:1])
    expected = entry.clean.with_policy(policy).turns
    assert row.turns == expected, "the turns are not a system message and what the clean row has"
    calls = [gold.call.name for gold in gold_calls(row)]
    assert _fault(row).tool not in calls, "gold calls the tool that must not be called"


@check("live_rows", for_=faulty)
@of_each
def fault_meets_gold(row: LiveRow, entry: Entry) -> None:
    """Whoever does what gold does meets the fault: else the row is a second clean row."""
    assert met(row) is not None, "gold makes no call that it names"


@check("live_rows", for_=faulty)
@of_each
def fault_fits_the_call(row: LiveRow, entry: Entry) -> None:
    """A fault of an effect stands before a tool that writes, one of a value before one that reads."""
    kind, call = _fault(row).kind, _met(row)
    writes = call.tool is not None and call.tool.writes
    assert writes or kind not in OF_AN_EFFECT, f"{call.call.name} does not write"
    assert not writes or kind != "fabricated_leaf", f"{call.call.name} does not read"


@check("live_rows", for_=faulty)
def position_is_the_calls(row: LiveRow, entry: Entry) -> None:
    """The position says what the call is that the fault stands before."""
    call = _met(row)
    if row.position is None:
        raise DoesNotApply
    writes, reads = call.tool is not None and call.tool.writes, row.position == "used_read"
    does = "writes" if writes else "reads"
    assert writes != reads, f"{row.position}, and {call.call.name} {does}"
    last = met(row) == len(gold_calls(row)) - 1
    assert not (reads and last), "used_read, and gold calls nothing later"


@check("live_rows", for_=faulty)
@of_each
def repeat_fits_the_label(row: LiveRow, entry: Entry) -> None:
    """What fails always cannot be repaired, and what ends with the agent's own call does not fail always."""
    fault = _fault(row)
    times = not isinstance(fault.repeat, int) or (fault.repeat >= 1 and not isinstance(fault.repeat, bool))
    assert times, f"it repeats {fault.repeat} times"
    if fault.repeat == "always":
        assert row.label == "report", f"it fails always, and the label is {row.label}"
        assert fault.kind not in ("stale_read", *_UNTIL_DONE), f"{fault.kind} cannot last always"


# --- more tools ---------------------------------------------------------------------------------------


@check("live_rows", for_=more_tools)
def only_tools_come_in(row: LiveRow, entry: Entry) -> None:
    """A row of a registry type has its clean row's tools, unchanged and in their order, and others that are
    marked as not of the world: any other difference would be measured with it."""
    if entry.clean is None:
        raise DoesNotApply
    clean = entry.clean.tools
    own = tuple(tool for tool in row.tools if not tool.distractor)
    names = [tool.name for tool in clean]
    for tool in own:
        how = "changed" if tool.name in names else "called a tool of the world"
        assert tool in clean, f"{tool.name[:80]} is {how}"
    assert own == clean, "the clean row's tools are in another order, or one is missing"
    for tool in row.tools:
        acts = tool.writes or tool.idempotent or tool.undo is not None
        assert not (tool.distractor and acts), (
            f"{tool.name[:80]} is not of the world, and says what it does there"
        )


@check("live_rows", for_=more_tools)
def what_comes_in_is_its_types(row: LiveRow, entry: Entry) -> None:
    """What comes in is what the type says: as many tools, so named, described and with such parameters."""
    codes = (name for name in registry_types() if type_code(name) == row.type_code)
    kind = next(map(taxonomy.get, codes), None)
    if kind is None or entry.clean is None:
        raise DoesNotApply
    new = [tool for tool in row.tools if tool.distractor]
    assert new, "no tool comes in"
    names = [tool.name for tool in new]
    if kind.series == "flood":
        assert len(new) == kind.dose, f"{len(new)} tools come in, not {kind.dose:g}"
        taken = {tool.name for tool in entry.clean.tools}
        again = [name for at, name in enumerate(names) if name in taken or name in names[:at]]
        assert not again, f"{again[0][:80]} comes in, and the name is taken"
    elif kind.channel == "namesake":
        first = next((gold.tool for gold in gold_calls(entry.clean) if gold.tool is not None), None)
        assert first is not None and names == [first.name], (
            "what comes in is not one tool with the name of gold's first"
        )
        description = new[0].description
        described = {
            "none": description == "",
            "gold": description == first.description,
            "donor": description not in ("", first.description),
        }
        assert described[str(kind.traits["description"])], f"its description is not as {kind.code} has it"
        own, golds = set(new[0].plain.properties), set(first.plain.properties)
        right = bool(own) and own != golds if kind.traits["wrong_parameters"] else not own
        assert right, f"its parameters are not as {kind.code} has them"
