"""What defences do to agents whose weaknesses are known: the tables of docs/defences.md.

    python -m benchmarks.defences DATASET     # of the benchmark, or a live one

A reference agent calls what it is shown: where a defence has left only another
tool of gold's name, its call has that tool's parameters; a tool that is no longer listed is not called.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import msgspec

from robustbench_tc import api, schema, taxonomy
from robustbench_tc.eval import agents, inputs, predictions, wire
from robustbench_tc.eval.agents import AgentContext
from robustbench_tc.eval.agents.base import JUNK
from robustbench_tc.eval.defend import names, parse
from robustbench_tc.eval.defend.chain import shown
from robustbench_tc.eval.dialogue import Dialogue
from robustbench_tc.eval.inputs import Dataset
from robustbench_tc.eval.live.score import read_scores
from robustbench_tc.eval.prompts.calls import DECLINED, render_calls
from robustbench_tc.eval.record import Answer, Settings
from robustbench_tc.eval.score import judge
from robustbench_tc.eval.scripted import Scripted
from robustbench_tc.live_types import type_code
from robustbench_tc.schema import KINDS, Call, Sample

PAIRS: Mapping[str, Sequence[str]] = {
    "oracle": ("dedupe", "namespace", "offers", "hint", "clarify", "spotlight", "shield", "schema", "vote:3"),
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
        prompt_version="", defend=names(chain),
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


# --- in worlds ----------------------------------------------------------------------------------------------


REFUSED, LOST = "transient_auth_error", "timeout_after_effect"
PASSING = tuple(kind for kind in KINDS if kind.startswith("transient_") and kind != REFUSED)
OTHER = tuple(kind for kind in KINDS if kind not in (*PASSING, REFUSED, LOST))
COLUMNS = {
    "clean": ("clean",),
    "errors that may pass": tuple(map(type_code, PASSING)),
    "refused": (type_code(REFUSED),),
    "lost answer": (type_code(LOST),),
    "other": tuple(map(type_code, OTHER)),
}
"""Column → types."""


def live_table(dataset: str) -> Iterator[str]:
    """What defences do to scripted agents in bundled worlds."""
    heads = ("agent", "defences", *COLUMNS, "effects repeated", "requests")
    yield f"| {' | '.join(heads)} |"
    yield "|---|---|" + "---:|" * (len(heads) - 2)
    for agent, words in product(("oracle", "gives-up", "blind-retrier"), ("", "hint", "retry")):
        with tempfile.TemporaryDirectory() as place:
            out = Path(place) / "run"
            played = api.evaluate(dataset, agent=agent, defend=words, out=out, concurrency=1)
            scores = read_scores(out)
        totals = played.folder.record.totals
        groups = [[one for one in scores if one.type_code in types] for types in COLUMNS.values()]
        cells = [f"{sum(bool(one.success) for one in group)} of {len(group)}" for group in groups]
        repeated = sum(one.repeated or 0 for one in scores if one.type_code == type_code(LOST))
        requests = f"{totals['requests'] / max(1, totals['episodes']):.2f}"
        yield f"| {' | '.join((agent, words or '–', *cells, str(repeated), requests))} |"


if __name__ == "__main__":
    name = sys.argv[1]
    live = (Path(name) / schema.TASKS).is_dir()
    print(*live_table(name) if live else [table(inputs.load_samples(name))], sep="\n")  # noqa: T201
