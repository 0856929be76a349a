"""ToolEyes (Ye et al., COLING 2025): 382 queries over 95 tool libraries, 51 of them with labels of our own.

Upstream has no golden answers. The labels (`builders/data/tooleyes_gold.jsonl`, keyed by record index) were
made in two independent annotation passes by a language model and reconciled; `agreed` says whether the passes
agreed at first. A label is a sequence of steps, each with the accepted tool names and the parameters that the
query fixes. Scoring uses the names; the parameters are information.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Call, Json, Message, Sample
from robustbench_tc.taxonomy import Rows

from .base import Item, ReactTurn, Reader, Unusable, clean_row, embedded_tools, item, json_lines, json_list

SOURCE = "tooleyes"
LABELS = "tooleyes_gold.jsonl"
"""In the sources root (the bundled samples have their own there), else in the package's data."""


class Record(msgspec.Struct):
    """A query of ToolEyes: the system turn holds the tools, the user turn the query."""

    id: str
    scenario: str
    conversations: list[ReactTurn]


class Step(msgspec.Struct):
    """One golden call of our labels."""

    any_of: list[str]
    """Accepted tool names."""
    parameters: dict[str, list[Json]] = {}
    """Accepted values where the query fixes them; an empty list where they are long text that it quotes."""


class Label(msgspec.Struct):
    """Our golden answer to a query; `agreed`: both annotation passes gave it at first."""

    record: int
    """Index in the file of queries, from 0."""
    steps: list[Step]
    agreed: bool
    also: list[list[str]] = []
    """Other accepted sequences of tool names: one call for two things, or a call for each."""


def labels(root: Path) -> dict[int, Label]:
    """The labels by record index. Raises UserError."""
    folder = root if (root / LABELS).is_file() else Path(__file__).parents[1] / "data"
    found: dict[int, Label] = {}
    try:
        for _, label in json_lines(folder, LABELS, Label):
            if label.record in found:
                raise ValueError(f"record {label.record} has a label already")
            found[label.record] = label
    except ValueError as error:  # no pin has been compared with it
        raise UserError(f"{folder / LABELS}: {error}") from None
    return found


def read_file(root: Path, file: str) -> Iterator[tuple[str, Item]]:
    """The queries of the file; those without a label are known issues."""
    known = labels(root)
    for index, record in json_list(root, file, Record):
        clean_id = f"{SOURCE}__{record.id}"
        make = partial(_sample, record, clean_id, known.get(index))
        yield str(index), item(SOURCE, file, str(index), clean_id, make)


def _sample(record: Record, clean_id: str, label: Label | None) -> Sample:
    if label is None:
        raise Unusable("no_label", "Upstream has no golden answer and we have no label for this query.")
    turns = {turn.role: turn.value for turn in record.conversations}
    answers = [
        tuple(Call(name, {}) for name in names)
        for names in (*product(*(step.any_of for step in label.steps)), *label.also)
    ]
    return clean_row(
        SOURCE,
        clean_id,
        record.scenario,
        [Message("user", str(turns["user"]))],
        embedded_tools(turns["system"]),
        answers,
        gold_keys=label.steps[0].parameters if label.steps else None,
    )


READER = Reader(
    name=SOURCE,
    order=5,
    files=("tooleyes/Test_Data/scenario_data_zero_processed.json",),
    read_file=read_file,
    output_format="react",
    scorer="tooleyes",
    one_call=False,
    single_gold_tool=False,  # a label is a set of accepted names
    rows=Rows(paper=51, bundled=13),
    paper=True,
)
