"""The texts of a live row against the rules: what users say, tools, worlds, gold, and what a fault shows."""

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from robustbench_tc.schema import LiveRow

from ..checks import Verdict, given
from ..hygiene import lengths, schemas
from ..hygiene.rows import OF_A_ROW
from ..hygiene.texts import CREDENTIAL, RULES, Find, Flagged, Texts, finds_by_rule, flagged, in_short
from .entries import Entry
from .rows import of_a_task

LIVE_HYGIENE = {
    **{name: rule.protects for name, rule in RULES.items()},
    "length": OF_A_ROW["length"],
    "tools_are_schemas": OF_A_ROW["tools_are_schemas"],
    "credentials_reviewed": "Credentials, and persons' numbers and addresses, are made-up ones.",
}
given("live_rows", "hygiene", LIVE_HYGIENE)

TOOLS = 200
"""Tools of a registry; all eight classes of upstream's have 129."""

DESCRIPTION = 4_000
"""Characters of a tool's description: upstream's say what a call returns, which takes up to 2,477."""

_TEXTS = ("id", "category", "world", "flags", "turns", "tools", "initial_state", "golden_calls")
"""Fields of a row that an agent, or a reader of the row, may read."""

ORDERS = "instructions"
"""The rule that an injected instruction is meant to break."""


class LiveTexts(Texts):
    """Looks at the texts of live rows."""

    def verdicts(self, entry: Entry) -> dict[str, Verdict]:
        """By check. Of a row that repeats its clean row, tools included, only the fault is looked at."""
        row = entry.row
        if row is None:
            return {}
        whole = of_a_task(entry)
        found = finds_by_rule(self.to_review(row, whole=whole))
        shown = {name: in_short(found.get(name, ())) for name in RULES}
        of_tools: dict[str, Verdict] = {"length": None, "tools_are_schemas": None}
        if whole:
            of_tools = {
                "length": in_short(_too_long(row)),
                "tools_are_schemas": in_short(
                    f"{tool.name[:80]}: {wrong}"
                    for tool in row.tools
                    if (wrong := schemas.invalid(tool.parameters))
                ),
            }
        return {**shown, **of_tools, "credentials_reviewed": in_short(found.get(CREDENTIAL, ()))}

    def to_review(self, row: LiveRow, *, whole: bool = True) -> Iterator[tuple[Flagged, Find]]:
        """What nobody looked at yet."""
        if whole:
            for name in _TEXTS:
                yield from self.unreviewed(_column(name, msgspec.json.encode(getattr(row, name))))
        for one, find in self.unreviewed(flagged("fault", msgspec.to_builtins(row.fault))):
            if not (find.rule == ORDERS and row.fault is not None and one.text == row.fault.text):
                yield one, find


@lru_cache(maxsize=4_096)
def _column(name: str, text: bytes) -> list[Flagged]:
    return flagged(name, msgspec.json.decode(text))


def _too_long(row: LiveRow) -> Iterator[str]:
    for number, turn in enumerate(row.turns):
        for message in turn.messages:
            if len(message.content) > lengths.MESSAGE:
                yield f"turn {number} has {len(message.content)} characters"
    if len(row.tools) > TOOLS:
        yield f"{len(row.tools)} tools"
    for tool in row.tools:
        if len(tool.description) > DESCRIPTION:
            yield f"{tool.name[:80]}: a description of {len(tool.description)} characters"
        plain = msgspec.structs.replace(tool.plain, description=tool.description[: lengths.IN_A_TOOL])
        yield from (f"{tool.name[:80]}: {what}" for what in lengths.tool_too_long(plain))
