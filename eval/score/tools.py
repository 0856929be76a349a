"""The tools that a perturbed row is judged against: those of its clean row."""

from robustbench_tc.schema import Sample, Tool


def scoring_tools(row: Sample, clean: Sample) -> tuple[Tool, ...]:
    """The clean registry, in which a renamed gold tool stands first, under its new name.

    The row's own registry would not do: where two tools share a name the first may be the distractor. A
    golden name that the clean registry lacks was made by renaming, and only one tool of the row has it.
    """
    if row is clean or row.tools == clean.tools:
        return clean.tools
    known = {tool.name for tool in clean.tools}
    renamed = {call.name for golden in row.golden_answers for call in golden} - known
    if not renamed:
        return clean.tools
    gone = {call.name for golden in clean.golden_answers for call in golden} - {
        call.name for golden in row.golden_answers for call in golden
    }
    new = tuple(tool for tool in row.tools if tool.name in renamed)
    return new + tuple(tool for tool in clean.tools if tool.name not in gone)
