"""Requests per second of the harness against a loopback server whose every answer takes 20 ms.

    .venv/bin/python -m benchmarks.harness [RELEASE] [--requests 2000]

Measured in turns, best of the rounds: a bare loop over the `openai` client on its aiohttp transport that
keeps nothing, and a session of the harness (prompts, journal with fsync, predictions). Without RELEASE the
paper profile is built where the upstream files are at hand, else the bundled.
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.eval import inputs, prompts, record, session, wire
from robustbench_tc.eval.request_settings import RequestSettings
from robustbench_tc.eval.who import Effort, endpoint
from robustbench_tc.llm import Endpoint
from robustbench_tc.schema import Sample

DELAY_S = 0.02
TEXT = "[no_such_function(value=1)]"
DECODING = {"temperature": 0.0, "max_tokens": 64}


# --- the server, a process of its own -------------------------------------------------------------------


def serve() -> None:
    """Prints its port, answers until its standard input closes."""
    from aiohttp import web

    body = msgspec.json.encode(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "tiny",
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}
            ],
            "usage": {"prompt_tokens": 500, "completion_tokens": 8, "total_tokens": 508},
        }
    )

    async def chat(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(DELAY_S)
        return web.Response(body=body, content_type="application/json")

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "tiny", "object": "model"}]})

    async def main() -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/chat/completions", chat)
        app.router.add_get("/v1/models", models)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(runner.addresses[0][1], flush=True)  # noqa: T201
        await asyncio.to_thread(sys.stdin.read)

    asyncio.run(main())


@contextlib.contextmanager
def serving() -> Iterator[str]:
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.stdin.close()


# --- the two sides --------------------------------------------------------------------------------------


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
    with serving() as url:
        for concurrency in (32, 128):
            asyncio.run(bare(url, rows[:200], concurrency))  # connections, imports, caches
            times: dict[str, list[float]] = {"bare": [], "harness": []}
            for _ in range(rounds):
                times["bare"].append(asyncio.run(bare(url, rows, concurrency)))
                times["harness"].append(harness(url, rows, concurrency))
            best = {name: round(len(rows) / min(seconds)) for name, seconds in times.items()}
            found[f"concurrency_{concurrency}"] = best | {"ratio": round(best["harness"] / best["bare"], 3)}
    return found


def build(folder: Path) -> Path:
    """A release to ask: its texts and registries are of real size."""
    from robustbench_tc.api.building import build_release
    from robustbench_tc.builders.build import BuildSpec

    shared = Path(os.environ.get("RBTC_SHARED", "../shared")) / "sources"
    spec = BuildSpec(profile="paper", sources=shared) if shared.is_dir() else BuildSpec(profile="bundled")
    build_release(spec, folder)
    return folder


def many(rows: Sequence[Sample], count: int) -> list[Sample]:
    """So many static rows, in turns, with ids of their own."""
    static = [row for row in rows if row.injected_error is None]
    return [
        msgspec.structs.replace(static[n % len(static)], id=f"{static[n % len(static)].id}-{n}")
        for n in range(count)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("release", nargs="?", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
        return
    with tempfile.TemporaryDirectory() as folder:
        release = arguments.release or build(Path(folder) / "robustbench-tc")
        rows = many(inputs.load_samples(str(release)).rows, arguments.requests)
        found = {"requests": len(rows), "delay_s": DELAY_S, **side_by_side(rows, arguments.rounds)}
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
