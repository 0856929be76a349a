"""Training rows per second and memory of `rbtc build toolrl-dr`, on synthetic rows of rlla's shape.

    .venv/bin/python benchmarks/training_rows.py --rows 4000 --rewriter
    .venv/bin/python benchmarks/training_rows.py --rows 1000000

Every row is made up here: names, descriptions, queries and golds by rule, one to six tools, one to three
calls, now and then a dialogue with earlier calls. With `--rewriter` a stand-in that rewrites by rule (upper
case for lower case words, numbered tools) writes the texts of the five model-written types, so that the
model path runs too; its rows are labelled `rewriter-by-rule`. Peak memory is printed beside that of a tenth
of the rows: flat means that they are near each other.
"""

import argparse
import json
import multiprocessing as mp
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc.builders.generators.base import Refuse, check
from robustbench_tc.builders.perturb import Text, TextRequest
from robustbench_tc.builders.toolrl_dr import Checks, TrainingSpec, build
from robustbench_tc.train_recipes.toolrl_dr.reward import earns_maximum

NOUNS = (
    "harbour orchard ledger glacier parcel museum turbine recipe satellite passport reservoir bakery".split()
)
VERBS = "find list book cancel estimate translate compare schedule measure archive renew inspect".split()
TYPES = ["string", "int", "float", "str, optional", "bool, optional", "List[int]"]
THOUGHT = (
    "<think> I should use the appropriate tool with proper parameters to respond to the user's need. </think>"
)
HEAD = (
    "You answer with tool calls.\n\n**Available Tools**\nIn your response, you can use the following tools:\n"
)
TAIL = "\n\n**Steps for Each Turn**\n1. **Think:** What is wanted.\n" + "Keep to the format. " * 70


def row(index: int) -> tuple[str, str, str]:
    """(system, user, gold) of one made-up row."""
    rng = random.Random(index)
    tools = rng.sample([(v, n) for v in VERBS for n in NOUNS], rng.randint(1, 6))
    entries, golds = [], []
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
    user = f"**Dialogue Records History**\n<user> Could you please {wishes} for me today? </user>"
    if index % 12 == 0:
        past = json.dumps(calls[0])
        user = f"{user}\n\n{THOUGHT}\n<tool_call>\n{past}\n</tool_call>\n<obs> [{{}}] </obs>\n\n" + user[33:]
    block = "\n".join(json.dumps(call) for call in calls)
    return HEAD + "\n".join(entries) + TAIL, user, f"{THOUGHT}\n<tool_call>\n{block}\n</tool_call>"


def write_source(folder: Path, rows: int, validation: int = 80) -> None:
    """`train.parquet` and `test.parquet` in the form of rlla_4k."""
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


class Rewriter:
    """Writes texts by rule: no model, labelled so."""

    label = "rewriter-by-rule"

    def __init__(self) -> None:
        self._asked = 0

    async def generate(self, requests: Sequence[TextRequest], refuse: Refuse) -> dict[str, Text | str]:
        self._asked += len(requests)
        answers: dict[str, Text | str] = {}
        for request in requests:
            answer: Any = f"In other words: {request.input}"
            if request.kind == "redundant":
                schema = {
                    "type": "object",
                    "properties": {"note": {"type": "string", "description": "A note."}},
                }
                answer = [
                    {
                        "name": f"{request.tool}_{word}",
                        "description": f"Keeps a {word}.",
                        "parameters": schema,
                    }
                    for word in ("diary", "digest")
                ]
            reason = check(request, answer, refuse)
            answers[request.key] = reason or Text(answer, self.label)
        return answers

    def statistics(self) -> dict[str, Any]:
        return {"generator": self.label, "asked": self._asked}


def measured(source: Path, out: Path, configs: tuple[str, ...], rewriter: bool, pipe: Any) -> None:
    """One build in a process of its own; sends seconds, peak MB and the report's rows."""
    kinds = "realistic_typos query_paraphrase paraphrase_tool_description".split()
    kinds += "paraphrase_parameter_description redundant".split()
    generators = {kind: Rewriter() for kind in kinds} if rewriter else {}
    started = time.perf_counter()
    report = build(
        TrainingSpec(rlla=source, configs=configs),
        out,
        checks=Checks(earns_maximum=earns_maximum),
        generators=generators,
        force=True,
    )
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    pipe.send(
        {"seconds": round(seconds, 1), "peak_mb": round(peak), "rows": report.rows, "uniform": report.uniform}
    )


def runs(sizes: Sequence[int], configs: tuple[str, ...], rewriter: bool) -> Iterator[dict[str, Any]]:
    folder = Path(tempfile.mkdtemp(prefix="training-rows-"))
    try:
        for size in sizes:
            source = folder / f"source-{size}"
            source.mkdir()
            write_source(source, size)
            here, there = mp.Pipe()
            process = mp.get_context("spawn").Process(
                target=measured, args=(source, folder / "out", configs, rewriter, there)
            )
            process.start()
            there.close()
            result = here.recv()
            process.join()
            yield {"source_rows": size, "rows_per_s": round(size / result["seconds"])} | result
            shutil.rmtree(source)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--configs", default="full")
    parser.add_argument("--rewriter", action="store_true")
    arguments = parser.parse_args()
    sizes = [max(arguments.rows // 10, 100), arguments.rows]
    for result in runs(sizes, tuple(arguments.configs.split(",")), arguments.rewriter):
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
