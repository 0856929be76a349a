"""RoTBench (Ye et al., EMNLP 2024), slice clean of the first turn, and the noisy slices for `rot_*`.

The system text holds the output format and the tool list as a JSON array, closed by the two control tools;
the user's turn is the query and a `Begin!` tail; the assistant's turn is a list of accepted ReAct texts. In
those the string "None" means: the parameter must be there, with any value. Values of control tools are free.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from robustbench_tc.schema import ANY, CONTROL_TOOLS, Call, Json, Message, Sample
from robustbench_tc.taxonomy import Rows

from .base import Item, ReactTurn, Reader, clean_row, embedded_tools, item, json_list
from .upstream import must_be_pinned

SOURCE = "rotbench"
TAIL = "\nBegin!\n"

LEVELS = ("slight", "medium", "heavy", "union")
"""RoTBench's own levels of noise. Of every clean record the slices have two versions, the first with noisy
names of tools, the second with noisy parameters; `union` has one with both."""

NOISE = "rotbench_"
"""What the name of a loan of noisy samples begins with; the level follows."""


class Record(msgspec.Struct):
    """A dialogue of RoTBench: the system turn holds the tools, the assistant turn the golden texts."""

    id: str
    scenario: str
    conversations: list[ReactTurn]


def read_file(root: Path, file: str) -> Iterator[tuple[str, Item]]:
    """The records of one slice."""
    for index, record in json_list(root, file, Record):
        clean_id = f"{SOURCE}__{record.id}"
        yield str(index), item(SOURCE, file, str(index), clean_id, partial(_sample, record, clean_id))


def noisy(root: Path, level: str, *, pinned: bool) -> tuple[Sample, ...]:
    """The noisy versions of clean samples, each under its clean sample's id, in the file's order.

    Golden values are as written: which tool steers the dialogue is known from the clean sample only. Raises
    UserError (with `pinned`) for a file that is missing or not the pinned one.
    """
    file = f"rotbench/Data/First_Turn/{level}.json"
    if pinned:
        must_be_pinned(root, file)
    found: list[Sample] = []
    for index, record in json_list(root, file, Record):
        clean_id = f"{SOURCE}__{record.id}"
        make = partial(_sample, record, clean_id, noisy=True)
        made = item(SOURCE, file, str(index), clean_id, make)
        if isinstance(made, Sample):
            found.append(made)
    return tuple(found)


def _sample(record: Record, clean_id: str, *, noisy: bool = False) -> Sample:
    turns = {turn.role: turn.value for turn in record.conversations}
    golden = [(_call(text, noisy),) for text in turns["assistant"]]
    message = Message("user", str(turns["user"]).removesuffix(TAIL))
    return clean_row(SOURCE, clean_id, record.scenario, [message], embedded_tools(turns["system"]), golden)


def _call(react: str, noisy: bool = False) -> Call:
    """The call of a golden text `Thought: …, Action: name, Action Input: {…}`, each on a line of its own."""
    _, _, action = react.partition("\nAction: ")
    name, _, text = action.partition("\nAction Input: ")
    parameters = msgspec.json.decode(text, type=dict[str, Json])
    free = not noisy and name.strip() in CONTROL_TOOLS
    return Call(
        name.strip(),
        {key: [ANY if free or value == "None" else value] for key, value in parameters.items()},
    )


READER = Reader(
    name=SOURCE,
    order=3,
    files=("rotbench/Data/First_Turn/clean.json",),
    read_file=read_file,
    output_format="react",
    scorer="rotbench",
    one_call=True,
    single_gold_tool=True,
    rows=Rows(paper=21, bundled=14),
    paper=True,
)
