"""A live dataset as verl's rows: the registry and the first turn as a prompt, the row itself beside it.

    python -m robustbench_tc.train_recipes.retry_live.rows robustbench-tc-live --out live-training

writes live-training/retry_live/{train,validation}-….parquet. A task is in one split with all its rows: one
in five, by its id, is for validation. Only bundled worlds: BFCL's tasks are for measuring.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from robustbench_tc import schema, seeding
from robustbench_tc.builders.training_rows import TrainingRow
from robustbench_tc.errors import UserError
from robustbench_tc.eval.inputs import load_live
from robustbench_tc.io import folders, parquet
from robustbench_tc.schema import DATASET, LiveRow, LiveTool, Message, dumps
from robustbench_tc.worlds.find import BFCL

from ..dataset import written

CONFIG = "retry_live"

SYSTEM = """You help a user with the tools below. Each of your answers begins with what you think:

<think> your thought </think>

then come either calls, one JSON object a line,

<tool_call>
{"name": "tool", "parameters": {"parameter": "value"}}
</tool_call>

whose results you get between <obs> and </obs>, or, once nothing is left to call, your answer to the user:

<response> your answer </response>

**Available Tools**
"""
"""Ours, in the form of rlla's system texts: thought, calls, response, and the list of tools."""


def prompt(row: LiveRow) -> tuple[Message, ...]:
    """What the model is shown first. Every tool is listed at once: the bundled tasks add none later."""
    listed = [
        f"{number}. Name: {tool.name}\nDescription: {tool.description}\nParameters: {_parameters(tool)}"
        for number, tool in enumerate(row.tools, 1)
    ]
    return (Message("system", SYSTEM + "\n".join(listed)), *row.turns[0].messages)


def _parameters(tool: LiveTool) -> str:
    declared = {}
    for name, about in tool.plain.properties.items():
        optional = "" if name in tool.plain.required else ", optional"
        declared[name] = about | {"type": f"{about.get('type', 'string')}{optional}"}
    return json.dumps(declared, ensure_ascii=False)


def split_of(clean_id: str) -> str:
    """`train` or `validation`, by the task."""
    return "validation" if seeding.rng(0, "split", clean_id).random() < 0.2 else "train"


def training_row(row: LiveRow) -> TrainingRow:
    """One prompt for GRPO; `extra_info.live_row` is the row as JSON text."""
    gold = [call for turn in row.golden_calls for call in turn]
    lines = [dumps({"name": call.name, "parameters": call.parameters}) for call in gold]
    return TrainingRow(
        data_source=DATASET,
        prompt=prompt(row),
        reward_model={"style": "rule", "ground_truth": "\n".join(lines)},
        extra_info={
            "clean_id": row.clean_id,
            "type_code": row.type_code,
            "split": split_of(row.clean_id),
            "live_row": dumps(schema.plain_row(row)),
        },
    )


def write(dataset: str, out: Path) -> dict[str, int]:
    """Writes both splits to `out`; rows by split, and those left out by reason."""
    there = load_live(dataset).rows
    own = [row for row in there if row.world != BFCL]
    counts = Counter({"left out: of BFCL": len(there) - len(own)})
    rows: dict[str, list[TrainingRow]] = {"train": [], "validation": []}
    for row in own:
        rows[split_of(row.clean_id)].append(training_row(row))
    with folders.atomic_dir(out, kind="training-rows", hint="take another --out") as folder:
        for split, found in rows.items():
            if not found:
                raise UserError(f"{dataset} gives no row for {split}: it has too few tasks of its own")
            table = schema.arrow_table(found, TrainingRow)
            parquet.write_shards([table], folder / CONFIG, split, table.schema)
            counts[split] = len(found)
    return +counts


def main(given: Sequence[str] | None = None) -> int:
    """The command line: prints the counts."""
    options = argparse.ArgumentParser(prog="python -m robustbench_tc.train_recipes.retry_live.rows")
    options.add_argument("dataset", help="what `rbtc build live` wrote, or a name on the Hub")
    options.add_argument("--out", type=Path, default=Path("live-training"))
    return written(write, options, given)


if __name__ == "__main__":
    sys.exit(main())
