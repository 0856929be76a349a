"""`make live-table`: the tables of docs/live-scores.md, from scripted agents on the bundled live dataset."""

import sys
from collections.abc import Sequence
from pathlib import Path

from robustbench_tc import live_types, schema
from robustbench_tc.builders.live.build import LiveSpec, prepared, rows_of
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.packs.live import Line, groups, lines

from .playing import scores

PAGE = Path(__file__).parents[3] / "docs" / "live-scores.md"
BEGIN, END = "<!-- live-table -->", "<!-- /live-table -->"
SHOWN = (
    "gives-up",
    "blind-retrier",
    "verifying-retrier",
    "trusts-stale",
    "repairs-duplicate",
    "obeys-injection",
)
"""Agents with a column each in the first table; in the second all of `ALL` have a line."""
ALL = (*SHOWN, "liar", "claims-in-german")


def rows(kinds: Sequence[str] = ()) -> list[schema.LiveRow]:
    """The bundled dataset, or its clean rows and those of some kinds."""
    made = prepared(LiveSpec(kinds=tuple(kinds)))
    codes = ("clean", *(live_types.type_code(kind) for kind in kinds or schema.BUILT_KINDS))
    return [row for code in codes for row in rows_of(code, made)]


def cell(one: Interval | None) -> str:
    """A share in percent with its interval."""
    return "–" if one is None else f"{100 * one.value:.0f} [{100 * one.low:.0f}, {100 * one.high:.0f}]"


def cost_lines(found: dict[str, list[Line]]) -> list[str]:
    """The first table: what each kind costs each agent."""
    by_agent = {agent: {line.name: line for line in made} for agent, made in found.items()}
    names = [name for name in groups() if any(name in made for made in by_agent.values())]
    table = [
        "| fault | rows | " + " | ".join(found) + " |",
        "|---|--:|" + "--:|" * len(found),
    ]
    for name in names:
        n = max(made[name].n for made in by_agent.values() if name in made)
        cells = " | ".join(cell(by_agent[agent][name].delta) for agent in found)
        table.append(f"| {name} | {n} | {cells} |")
    return table


def agent_lines(found: dict[str, list[Line]]) -> list[str]:
    """The second table: all kinds together, a line for each agent."""
    table = [
        "| agent | success | recovered | silent failures | false success | omission | repetition |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for agent, made in found.items():
        (line,) = [one for one in made if one.name == "all"]
        low, high = line.false_success
        table.append(
            f"| {agent} | {cell(line.success)} | {cell(line.recovery)} | {line.silent} | {low} to {high} "
            f"| {line.omission} | {line.repetition} |"
        )
    return table


def tables(whole: Sequence[schema.LiveRow], agents: Sequence[str] = ALL) -> str:
    """Both tables."""
    found = {agent: lines(scores(whole, agent)) for agent in agents}
    shown = {agent: made for agent, made in found.items() if agent in SHOWN}
    return "\n".join([*cost_lines(shown), "", *agent_lines(found)])


def main() -> None:
    """Writes the tables between their markers."""
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{tables(rows())}\n\n{END}{after}", "utf-8")
    sys.stdout.write(f"wrote the tables of {PAGE.name}\n")


if __name__ == "__main__":
    main()
