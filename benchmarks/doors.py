# ruff: noqa: T201 - a report for the terminal
"""What the LLM door costs: requests through it against a relay that does nothing but pass bytes on.

    python -m benchmarks.doors

Server, bare relay and door each run in a process of their own on loopback; the same requests go through one
and the other in turn. `relay`: no plan. `clean`: a plan that changes nothing, journal written. `perturbed`: a
distractor comes in. Requests whole and streamed, one at a time and 16 at once.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import aiohttp
import typer
from aiohttp import web

HERE = "benchmarks.doors"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": f"tool_{number}",
            "description": "Looks something up in the registry of the town. " * 3,
            "parameters": {
                "type": "object",
                "properties": {
                    name: {"type": "string", "description": name} for name in ("id", "day", "place")
                },
                "required": ["id"],
            },
        },
    }
    for number in range(20)
]
MESSAGES = [
    {"role": "system", "content": "Be brief. " * 200},
    {"role": "user", "content": "When is it open?"},
]
CALL = {"id": "call_0", "type": "function", "function": {"name": "tool_3", "arguments": '{"id": "7"}'}}
WHOLE = {"role": "assistant", "content": "Let me see. " * 20, "tool_calls": [CALL]}
REPLY = json.dumps(
    {"id": "x", "object": "chat.completion", "created": 1, "model": "m",
     "choices": [{"index": 0, "message": WHOLE, "finish_reason": "tool_calls"}]}
).encode()  # fmt: skip


def events() -> list[bytes]:
    """The same reply in 62 pieces."""

    def event(delta: Any, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {
            "id": "x",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }
        return b"data: " + json.dumps(chunk).encode() + b"\n\n"

    words = [event({"content": word}) for _ in range(20) for word in ("Let ", "me ", "see. ")]
    return [
        *words,
        event({"tool_calls": [{"index": 0, **CALL}]}),
        event({}, "tool_calls") + b"data: [DONE]\n\n",
    ]


EVENTS = events()


async def upstream(request: web.Request) -> web.StreamResponse:
    body = json.loads(await request.read())
    if not body.get("stream"):
        return web.Response(body=REPLY, content_type="application/json")
    reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await reply.prepare(request)
    for piece in EVENTS:
        await reply.write(piece)
    await reply.write_eof()
    return reply


@cache
def client() -> aiohttp.ClientSession:
    """The one of this process, made when the loop runs."""
    return aiohttp.ClientSession(auto_decompress=False, connector=aiohttp.TCPConnector(limit=0))


async def relay(address: str, request: web.Request) -> web.StreamResponse:
    """The least that a relay can do."""
    body = await request.read()
    kind = {"Content-Type": request.headers["Content-Type"]}
    async with client().post(f"{address}/chat/completions", data=body, headers=kind) as found:
        headers = {"Content-Type": found.headers["Content-Type"]}
        reply = web.StreamResponse(status=found.status, headers=headers)
        await reply.prepare(request)
        async for piece in found.content.iter_any():
            await reply.write(piece)
        await reply.write_eof()
        return reply


def serve_forever(handler: Any) -> None:
    """Serves on a free port, whose address is printed."""

    async def run() -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{rest:.*}", handler)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
        await asyncio.Event().wait()

    asyncio.run(run())


def door(address: str, plan: str, journal: str) -> None:
    from robustbench_tc import api

    with api.proxied(plan, upstream=address, journal=journal or None) as url:
        print(url, flush=True)
        time.sleep(10_000)


@contextlib.contextmanager
def process(*words: str) -> Iterator[str]:
    """One role in a process of its own; its address."""
    command = [sys.executable, "-m", *words]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        yield running.stdout.readline().strip()
    finally:
        running.kill()
        running.wait()


async def timed(url: str, count: int, stream: bool, at_once: int) -> float:
    """Seconds for so many requests."""
    body = json.dumps({"model": "m", "messages": MESSAGES, "tools": TOOLS, "stream": stream}).encode()
    place = url.replace("/v1", "/s/case.0/v1") + "/chat/completions"
    async with aiohttp.ClientSession() as client:
        gate = asyncio.Semaphore(at_once)

        async def one() -> None:
            async with (
                gate,
                client.post(place, data=body, headers={"Content-Type": "application/json"}) as got,
            ):
                assert got.status == 200
                await got.read()

        await one()
        began = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(count)))
        return time.perf_counter() - began


def measured(count: int, rounds: int) -> dict[str, Any]:
    """The median ratio over rounds in which bare relay and door take turns."""
    found: dict[str, Any] = {"requests": count, "rounds": rounds}
    with tempfile.TemporaryDirectory() as folder, process(HERE, "upstream") as server:
        plans = {"relay": "version: 1\n", "clean": "version: 1\ntypes: [clean]\n",
                 "perturbed": "version: 1\ntypes: [CD_NT]\n"}  # fmt: skip
        with process(HERE, "bare", server) as bare:
            for name, text in plans.items():
                path = Path(folder, f"{name}.yaml")
                path.write_text(text)
                journal = "" if name == "relay" else str(path.with_suffix(".jsonl"))
                with process(HERE, "door", server, str(path), journal) as ours:
                    for stream, at_once in product((False, True), (1, 16)):
                        turns = [
                            [asyncio.run(timed(url, count, stream, at_once)) for url in (bare, ours)]
                            for _ in range(rounds)
                        ]
                        key = f"{'streamed' if stream else 'whole'}_{at_once}_at_once"
                        found.setdefault(name, {})[key] = {
                            "ratio_to_bare": round(median(mine / base for base, mine in turns), 3),
                            "ms_a_request": round(1000 * median(mine / count for _, mine in turns), 3),
                        }
    return found


def main(
    role: Annotated[list[str] | None, typer.Argument()] = None, requests: int = 300, rounds: int = 5
) -> None:
    """Print the figures; ROLE: be one of the processes."""
    match role:
        case ["upstream"]:
            serve_forever(upstream)
        case ["bare", address]:
            serve_forever(partial(relay, address))
        case ["door", address, plan, journal]:
            door(address, plan, journal)
        case _:
            print(json.dumps(measured(requests, rounds)))


if __name__ == "__main__":
    typer.run(main)
