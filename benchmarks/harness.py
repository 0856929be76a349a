"""Requests per second of the harness against a loopback server whose every answer takes 20 ms.

    .venv/bin/python -m benchmarks.harness [--sources ../shared/sources] [--requests 2000]

Measured in turns, best of the rounds: a bare loop over the `openai` client on its aiohttp transport that
keeps nothing, and a session of the harness (prompts, journal with fsync, predictions), over rows of the paper
profile.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import typer
from aiohttp import web

from robustbench_tc.api.building import build_release
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.eval import inputs, prompts, record, session, wire
from robustbench_tc.eval.request_settings import RequestSettings
from robustbench_tc.eval.who import Effort, endpoint
from robustbench_tc.llm import Endpoint
from robustbench_tc.schema import Sample

from .doors import process, serve_forever

DELAY_S = 0.02
TEXT = "[no_such_function(value=1)]"
DECODING = {"temperature": 0.0, "max_tokens": 64}
BODY = msgspec.json.encode(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 500, "completion_tokens": 8, "total_tokens": 508},
    }
)


async def upstream(request: web.Request) -> web.Response:
    """What the server says."""
    await request.read()
    if request.method == "GET":
        return web.json_response({"object": "list", "data": [{"id": "tiny", "object": "model"}]})
    await asyncio.sleep(DELAY_S)
    return web.Response(body=BODY, content_type="application/json")


async def bare(url: str, rows: Sequence[Sample], concurrency: int) -> float:
    """Seconds for a plain loop over the openai client on aiohttp."""
    from openai import AsyncOpenAI, DefaultAioHttpClient

    asks = iter([wire.first(row, "prompt") for row in rows])
    async with AsyncOpenAI(api_key="none", base_url=url, http_client=DefaultAioHttpClient()) as client:
        create: Any = client.chat.completions.create

        async def work() -> None:
            for ask in asks:
                await create(model="tiny", messages=ask.messages, **DECODING)

        started = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(concurrency)))
        return time.perf_counter() - started


def harness(url: str, rows: Sequence[Sample], concurrency: int) -> float:
    """Seconds for a session on a new run folder, its files included."""
    dataset = inputs.Dataset(name="bench", rows=tuple(rows))
    assert dataset.hashes  # worked out before the clock runs
    settings = record.Settings(
        fingerprint=dataset.fingerprint(),
        model="tiny",
        mode="prompt",
        backend="openai",
        decoding=DECODING,
        prompt_version=prompts.prompt_version(),
        share=False,
    )
    with tempfile.TemporaryDirectory(dir=".") as folder:
        started = time.perf_counter()
        run = record.start(Path(folder) / "run", dataset, settings, len(rows))
        asked, effort = RequestSettings(decoding=DECODING), Effort(concurrency=concurrency)
        state = session.run(run, dataset, endpoint([Endpoint("tiny", url)], asked, effort))
        seconds = time.perf_counter() - started
    assert (state.done, state.request_errors) == (len(rows), 0)
    return seconds


def side_by_side(rows: Sequence[Sample], rounds: int) -> dict[str, Any]:
    """Best requests per second of each, at two concurrencies."""
    found: dict[str, Any] = {}
    with process("benchmarks.harness", "--serve") as url:
        for concurrency in (32, 128):
            asyncio.run(bare(url, rows[:200], concurrency))  # connections, imports, caches
            times: dict[str, list[float]] = {"bare": [], "harness": []}
            for _ in range(rounds):
                times["bare"].append(asyncio.run(bare(url, rows, concurrency)))
                times["harness"].append(harness(url, rows, concurrency))
            best = {name: round(len(rows) / min(seconds)) for name, seconds in times.items()}
            found[f"concurrency_{concurrency}"] = best | {"ratio": round(best["harness"] / best["bare"], 3)}
    return found


def many(rows: Sequence[Sample], count: int) -> list[Sample]:
    """So many static rows, in turns, with ids of their own."""
    static = [row for row in rows if row.injected_error is None]
    return [
        msgspec.structs.replace(static[n % len(static)], id=f"{static[n % len(static)].id}-{n}")
        for n in range(count)
    ]


def main(
    sources: Path = Path("../shared/sources"), requests: int = 2000, rounds: int = 3, serve: bool = False
) -> None:
    """Print the figures; serve: be the server."""
    if serve:
        serve_forever(upstream)
    with tempfile.TemporaryDirectory() as folder:
        release = Path(folder) / "robustbench-tc"
        build_release(BuildSpec(profile="paper", sources=sources), release)
        rows = many(inputs.load_samples(str(release)).rows, requests)
        found = {"requests": len(rows), "delay_s": DELAY_S, **side_by_side(rows, rounds)}
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    typer.run(main)
