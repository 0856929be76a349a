"""What defences do to reference agents, whose weaknesses are known: the table of docs/defences.md.

    python scripts/defence_table.py robustbench-tc

In this process, without a server. An agent calls what it is shown: where a defence has left only another
tool of gold's name, its call has that tool's parameters; a tool that is no longer listed is not called.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.schema import Call, Sample

from .. import agents, predictions, wire
from ..agents import AgentContext
from ..agents.base import JUNK
from ..dialogue import Dialogue
from ..inputs import Dataset, Selection
from ..prompts.calls import DECLINED, render_calls
from ..record import Answer, Settings
from ..score import judge
from ..scripted import Scripted
from . import names, parse
from .chain import shown

PAIRS: Mapping[str, Sequence[str]] = {
    "oracle": ("dedupe", "namespace", "offers", "hint", "clarify", "spotlight", "schema", "vote:3"),
    "first-of-duplicates": ("dedupe", "namespace", "namespace:first", "namespace:error", "schema"),
    "picks-longest-definition": ("dedupe",),
    "picks-shortest-twin": ("offers",),
    "gives-up-on-error": ("retry", "hint"),
    "first-tool": ("dedupe,offers,retry", "schema"),
}
"""Agent → what is put between it and the rows, beside nothing."""


class Line(NamedTuple):
    """Right answers of an agent behind some defences."""

    agent: str
    defences: str
    right: Mapping[str, int]
    """By component, and `clean`."""
    rows: Mapping[str, int]
    requests: float
    """An answer: a row without an injected error takes one."""

    @property
    def markdown(self) -> str:
        """One line of the table."""
        cells = [f"{self.right[name]} of {self.rows[name]}" for name in _columns()]
        return f"| {self.agent} | {self.defences or '–'} | {' | '.join(cells)} | {self.requests:.2f} |"


def _columns() -> tuple[str, ...]:
    return (taxonomy.CLEAN, *taxonomy.COMPONENTS)


def line(data: Dataset, agent: str, words: str) -> Line:
    """One agent behind one chain, over all core rows of a dataset."""
    chain = parse([word for word in words.split(",") if word])
    settings = Settings(
        fingerprint="", model=f"agent-{agent}", mode="prompt", backend="reference", decoding={},
        prompt_version="", selection=Selection(), repeat=1, defend=names(chain),
    )  # fmt: skip
    anchors = data.anchors()
    right, rows, requests = Counter[str](), Counter[str](), 0
    core = {kind.code for kind in taxonomy.types()} | {taxonomy.CLEAN}
    for row in data.rows:
        if row.type_code not in core:
            continue
        answers, asked = _answers(row, shown(chain, anchors[row.id]), agent, settings)
        verdict = judge(predictions.combine(row, "", settings, *answers), row, anchors[row.id])
        column = row.component if row.component is not None else taxonomy.CLEAN
        rows[column] += 1
        right[column] += verdict.correct
        requests += asked
    return Line(agent, words, right, rows, requests / max(rows.total(), 1))


def _answers(row: Sample, anchor: Sample, agent: str, settings: Settings) -> tuple[list[Answer], int]:
    """The replies to a row that count, and how many requests they took."""
    env, requests = Scripted(row, settings), 0
    dialogue = Dialogue(env, settings)
    while (ask := dialogue.ask()) is not None:
        assert ask.row is not None
        text = _text(row, ask.row, anchor, agent, min(dialogue.number - 1, wire.answered(row)))
        dialogue.reply(dialogue.noted(msgspec.structs.replace(dialogue.base(), text=text)))
        requests += 1
    return env.answers, requests


def _text(whole: Sample, row: Sample, anchor: Sample, agent: str, errors: int) -> str:
    said = agents.reply(agent, AgentContext(row, anchor, errors > 0, errors))
    calls = () if isinstance(said, str) else [_possible(call, whole, row, anchor) for call in said]
    listed = [call for call in calls if any(tool.name == call.name for tool in row.tools)]
    return said if isinstance(said, str) else render_calls(listed, row.output_format) if listed else DECLINED


def _possible(call: Call, whole: Sample, row: Sample, anchor: Sample) -> Call:
    """The call, with the parameters of the tool that is left where that is not gold's."""
    before = [tool for tool in whole.tools if tool.name == call.name]
    left = [tool for tool in row.tools if tool.name == call.name]
    if len(before) > 1 and len(left) == 1 and left[0] not in anchor.tools:
        return Call(call.name, dict.fromkeys(left[0].properties, JUNK))
    return call


def table(data: Dataset, pairs: Mapping[str, Sequence[str]] = PAIRS) -> str:
    """Every agent without and behind its defences, as Markdown."""
    heads = ("agent", "defences", *_columns(), "requests")
    lines = [f"| {' | '.join(heads)} |", "|---|---|" + "---:|" * (len(heads) - 2)]
    for agent, chains in pairs.items():
        lines += [line(data, agent, words).markdown for words in ("", *chains)]
    return "\n".join(lines)
