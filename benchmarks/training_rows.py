"""Training rows per second and memory of `rbtc build toolrl-dr`, on synthetic rows of rlla's shape.

    .venv/bin/python -m benchmarks.training_rows                    # 1,000,000 rows, and 4,000 rewritten ones
    .venv/bin/python -m benchmarks.training_rows --rows 100000 --rewritten 0

Every row is made up here: names, descriptions, queries and golds by rule, one to six tools, one to three
calls, now and then a dialogue with earlier calls. `rewritten` builds all four configs with all sixteen types,
their texts from an OpenAI-compatible endpoint on the loopback interface that rewrites by rule, so labelled:
no model is behind it. `tenth` and `all` build `full` from a parquet with the rule types; memory is flat if
their peaks are near each other.
"""

import argparse
import asyncio
import json
import multiprocessing as mp
import random
import re
import resource
import shutil
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from aiohttp import web

from robustbench_tc.builders.generate import Settings, parse_generators
from robustbench_tc.builders.toolrl_configs import CONFIGS
from robustbench_tc.builders.toolrl_dr import TrainingSpec, build
from robustbench_tc.builders.toolrl_versions import Checks
from robustbench_tc.dataset_cards.training import training_card
from robustbench_tc.train_recipes.toolrl_dr.reward import earns_maximum

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


class ByRule:
    """An OpenAI-compatible endpoint that rewrites by rule, in a thread; the block gets its generator spec."""

    def __enter__(self) -> str:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        self._runner = web.AppRunner(app, access_log=None)
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._runner.setup())
        self._loop.run_until_complete(web.TCPSite(self._runner, "127.0.0.1", 0).start())
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return f"openai:by-rule@http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _chat(self, request: web.Request) -> web.Response:
        asked = json.loads(await request.read())["messages"][-1]["content"]
        message = {"role": "assistant", "content": rewrite(asked)}
        return web.json_response(
            {
                "id": "by-rule",
                "object": "chat.completion",
                "created": 1,
                "model": "by-rule",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        )


def rewrite(asked: str) -> str:
    """The marked text in other words; two tools where the prompt shows a conversation to keep away from."""
    if "-CONVERSATION>" in asked:
        number = zlib.crc32(asked.encode()) % 1_000_000
        schema: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        names = (f"keep_{word}_{number}" for word in ("diary", "digest"))
        tools = [{"name": name, "description": f"Runs {name}.", "parameters": schema} for name in names]
        return json.dumps({"tools": tools})
    found = re.search(r"<(TEXT-\w+)>\n(.*?)\n</\1>", asked, re.DOTALL)
    return f"In other words: {found.group(2) if found else asked}"


def measured(source: Path, out: Path, configs: tuple[str, ...], spec: str | None, pipe: Any) -> None:
    """One build, in a process of its own; sends its figures."""
    settings = Settings(store=out.with_name("generations.jsonl"), concurrency=64)
    generators = parse_generators([spec], settings=settings) if spec else {}
    wall, cpu = time.perf_counter(), time.process_time()
    report = build(
        TrainingSpec(rlla=source, configs=configs),
        out,
        checks=Checks(earns_maximum=earns_maximum),
        card=training_card,
        generators=generators,
        force=True,
    )
    seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
    train = sum(rows["train"] for rows in report.rows.values())
    pipe.send(
        {
            "written_train_rows": train,
            "seconds": round(seconds, 1),
            "cpu_seconds": round(cpu_seconds, 1),
            "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            "types": len(report.types),
            "uniform_p": report.uniform["p"],
            "asked": sum(made.get("asked", 0) for made in report.generators.values()),
        }
    )


def run(folder: Path, rows: int, configs: tuple[str, ...], spec: str | None = None) -> dict[str, Any]:
    """The figures of one build from `rows` source rows."""
    source = folder / f"source-{rows}"
    write_source(source, rows)
    here, there = mp.Pipe()
    arguments = (source, folder / "out", configs, spec, there)
    process = mp.get_context("spawn").Process(target=measured, args=arguments)
    process.start()
    there.close()
    try:
        figures: dict[str, Any] = here.recv()
    except EOFError:
        sys.exit(f"the build of {rows} rows ended with code {process.exitcode}")
    process.join()
    shutil.rmtree(source)
    rate = {"source_rows": rows, "source_rows_per_s": round(rows / figures["seconds"])}
    return rate | figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rewritten", type=int, default=4_000, help="rows of the build with all types")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="training-rows-"))
    found: dict[str, Any] = {}
    try:
        if options.rewritten:
            with ByRule() as spec:
                found["rewritten by rule over loopback"] = run(folder, options.rewritten, CONFIGS, spec)
        if options.rows:
            found["tenth"] = run(folder, max(options.rows // 10, 100), ("full",))
            found["all"] = run(folder, options.rows, ("full",))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
