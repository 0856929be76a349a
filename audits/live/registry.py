"""What must hold of a row whose registry has more tools, given its clean row."""

from robustbench_tc import taxonomy
from robustbench_tc.live_types import registry_types, type_code
from robustbench_tc.schema import LiveRow

from ..checks import DoesNotApply, check
from .entries import Entry
from .met import gold_calls
from .rows import more_tools


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
