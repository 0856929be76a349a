"""Made-up training rows of rlla's shape, for `scale`.

Names, descriptions, queries and golds by rule, one to six tools, one to three calls, now and then a dialogue
with earlier calls.
"""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

NOUNS = (
    "harbour orchard ledger glacier parcel museum turbine recipe satellite passport reservoir bakery".split()
)
VERBS = "find list book cancel estimate translate compare schedule measure archive renew inspect".split()
TYPES = ["string", "int", "float", "str, optional", "bool, optional", "List[int]"]
THOUGHT = "<think> A tool answers this. </think>"
HEAD = (
    "You answer with tool calls.\n\n**Available Tools**\nIn your response, you can use the following tools:\n"
)
TAIL = "\n\n**Steps for Each Turn**\n1. **Think:** What is wanted.\n" + "Keep to the format. " * 70


def row(index: int) -> tuple[str, str, str]:
    """(system, user, gold) of one made-up row."""
    rng = random.Random(index)
    tools = rng.sample([(v, n) for v in VERBS for n in NOUNS], rng.randint(1, 6))
    entries: list[str] = []
    golds: list[dict[str, Any]] = []
    for number, (verb, noun) in enumerate(tools, start=1):
        parameters = {
            f"{noun}_{key}": {"description": f"The {key} of the {noun}.", "type": kind, "default": ""}
            for key, kind in zip(
                ("name", "count", "place"), rng.sample(TYPES, rng.randint(0, 3)), strict=False
            )
        }
        entries.append(
            f"{number}. Name: {verb}_{noun}\nDescription: Tells how to {verb} a {noun} and what it takes.\n"
            f"Parameters: {json.dumps(parameters)}"
        )
        values = {key: rng.choice([rng.randint(1, 999), f"{noun} {index}"]) for key in parameters}
        golds.append({"name": f"{verb}_{noun}", "parameters": values})
    calls = golds[: rng.randint(1, min(3, len(golds)))]
    wishes = " and then ".join(
        f"{c['name'].replace('_', ' a ')} with {', '.join(map(str, c['parameters'].values())) or 'no limits'}"
        for c in calls
    )
    turn = f"<user> Could you please {wishes} for me today? </user>"
    past = f"{turn}\n\n{THOUGHT}\n<tool_call>\n{json.dumps(calls[0])}\n</tool_call>\n<obs> [{{}}] </obs>\n\n"
    user = f"**Dialogue Records History**\n{past if index % 12 == 0 else ''}{turn}"
    block = "\n".join(json.dumps(call) for call in calls)
    return HEAD + "\n".join(entries) + TAIL, user, f"{THOUGHT}\n<tool_call>\n{block}\n</tool_call>"


def write_source(folder: Path, rows: int, validation: int = 80) -> None:
    """`train.parquet` and `test.parquet` in the form of rlla_4k."""
    folder.mkdir()
    for name, start, count in (("test", 10**9, validation), ("train", 0, rows)):
        writer: pq.ParquetWriter | None = None
        for at in range(start, start + count, 5_000):
            made = [row(index) for index in range(at, min(at + 5_000, start + count))]
            prompts = [[{"role": "system", "content": s}, {"role": "user", "content": u}] for s, u, _ in made]
            models = [{"style": "rule", "ground_truth": gold} for _, _, gold in made]
            table = pa.table({"prompt": prompts, "reward_model": models})
            writer = writer or pq.ParquetWriter(folder / f"{name}.parquet", table.schema)
            writer.write_table(table)
        assert writer is not None
        writer.close()
