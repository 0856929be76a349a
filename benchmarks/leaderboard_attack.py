"""How long an honest submission takes while others abuse the board: on loopback, bounded, ends by itself.

    .venv-leaderboard/bin/python -m benchmarks.leaderboard_attack

A board as in a Space (signing in, a proxy that names addresses) is served in a process of its own, over the
paper-profile build where the sources are at hand, else the bundled one. An honest submission is timed from
its upload to its listing: three times alone, then under each attack. Attackers have accounts and addresses of
their own. Everything shares the machine's cores.

    hostile   4 files whose replies are slow to parse, from 4 accounts
    joins     260 joins of gradio's queue, written by hand
    uploads   50 uploads of 40 MB of one account
    slow      400 connections that send a byte now and then
    all       all of these at once
"""

import argparse
import asyncio
import base64
import hashlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCES = Path(os.environ.get("RBTC_SHARED", ROOT.parent / "shared")) / "sources"
SECRET = "of-the-benchmark"
PATIENCE_S = 120.0
POLL_S = 0.5
WORDS = ("Amber", "Birch", "Cedar", "Dune", "Ember", "Fjord", "Grove", "Heath", "Inlet", "Jade", "Karst")
HOSTILE = ("Action Input: {", '{"a":', 'Action: x\nAction Input: {"a": [', "[x(a=")
"""Repeated to 4,000 characters in 2,500 replies of a file."""


class Person:
    """An account at an address, with a session of the submit page."""

    def __init__(self, url: str, name: str, number: int, session: Any) -> None:
        from itsdangerous import TimestampSigner

        said = {
            "oauth_info": {
                "userinfo": {"preferred_username": name, "name": name, "profile": "", "picture": ""}
            }
        }
        key = hashlib.sha256(f"{SECRET}-v4".encode()).hexdigest()
        cookie = TimestampSigner(key).sign(base64.b64encode(json.dumps(said).encode())).decode()
        self.api = f"{url}/submit/gradio_api"
        self.name = name
        self.headers = {
            "Cookie": f"session={cookie}",
            "X-Forwarded-For": f"8.8.{number // 250}.{number % 250}",
        }
        self._session = session
        self._url = url

    async def upload(self, content: bytes, name: str) -> tuple[int, str]:
        import aiohttp

        form = aiohttp.FormData()
        form.add_field("files", content, filename=name)
        async with self._session.post(f"{self.api}/upload", data=form, headers=self.headers) as reply:
            return reply.status, await reply.text()

    async def event(self, name: str, data: list[Any]) -> str:
        body = {"data": data, "session_hash": self.name}
        async with self._session.post(f"{self.api}/run/{name}", json=body, headers=self.headers) as reply:
            return str(await reply.text())

    async def submit(self, run: Path, predictions: bytes, model: str) -> str:
        """Uploads and has it checked; what the page says at the end."""
        async with self._session.get(f"{self._url}/submit/config", headers=self.headers) as reply:
            config = await reply.json()
        given: list[Any] = []
        for content, name in (
            (predictions, "predictions.parquet"),
            ((run / "run.json").read_bytes(), "run.json"),
        ):
            _, said = await self.upload(content, name)
            [place] = json.loads(said)
            given.append({"path": place, "orig_name": name, "meta": {"_type": "gradio.FileData"}})
        [check] = [one for one in config["dependencies"] if one["api_name"] == "check"]
        values = {one["id"]: one["props"].get("value") for one in config["components"]}
        rest = [values[one] for one in check["inputs"][3:]]
        answer = await self.event("check", [*given, model, *rest])
        while "verdict" not in answer:
            await asyncio.sleep(POLL_S)
            answer = await self.event("look", [None])
        return answer

    async def list(self) -> bool:
        return "Listed as" in await self.event("list", [None])


async def honest(url: str, run: Path, number: int, session: Any) -> float | None:
    """Seconds until an honest submission is listed; None where it is not."""
    started = time.perf_counter()
    person = Person(url, f"honest{number}", number, session)
    said = await person.submit(run, (run / "predictions.parquet").read_bytes(), f"{WORDS[number]}-3B")
    if "Every check passed" not in said or not await person.list():
        sys.stderr.write(f"not listed: {said[:300]}\n")
        return None
    return time.perf_counter() - started


async def hostile(url: str, run: Path, first: int, session: Any, files: list[bytes], seen: list[str]) -> None:
    people = [Person(url, f"hostile{first + n}", 500 + first + n, session) for n in range(len(files))]
    pairs = zip(people, files, strict=True)
    answers = await asyncio.gather(*(one.submit(run, file, f"Bad{first}-1B") for one, file in pairs))
    seen.extend("hostile: " + ("passed" if "Every check passed" in said else "refused") for said in answers)


async def joins(url: str, first: int, session: Any, seen: list[str]) -> None:
    async def join(number: int) -> None:
        body = {"data": [None], "fn_index": number % 9, "session_hash": f"join{number}"}
        headers = {"X-Forwarded-For": f"9.9.{first}.{number % 250}"}
        async with session.post(f"{url}/submit/gradio_api/queue/join", json=body, headers=headers) as reply:
            seen.append(f"join: {reply.status}")

    await asyncio.gather(*(join(number) for number in range(260)))


async def uploads(url: str, first: int, session: Any, seen: list[str]) -> None:
    person = Person(url, f"filler{first}", 700 + first, session)
    content = bytes(40_000_000)

    async def one() -> None:
        try:
            status, _ = await person.upload(content, "x.parquet")
            seen.append(f"upload: {status}")
        except OSError:  # the server has answered and closed before all was sent
            seen.append("upload: closed")

    await asyncio.gather(*(one() for _ in range(50)))


async def slow(port: int, seen: list[str]) -> None:
    async def one() -> None:
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                for byte in b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: " + b"a" * 60:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(1)
            finally:
                writer.close()
        seen.append("slow: closed")

    await asyncio.gather(*(one() for _ in range(400)))


async def attacked(url: str, port: int, run: Path, files: list[bytes]) -> dict[str, Any]:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(PATIENCE_S)
    found: dict[str, Any] = {}
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        await honest(url, run, 0, session)  # everything has been used once
        quiet = [await honest(url, run, 1 + n, session) for n in range(3)]
        usual = statistics.median(one for one in quiet if one is not None)
        found["quiet_s"] = round(usual, 2)
        for number, kind in enumerate(("hostile", "joins", "uploads", "slow", "all")):
            seen: list[str] = []
            attacks = {
                "hostile": partial(hostile, url, run, 10 * number, session, files, seen),
                "joins": partial(joins, url, number, session, seen),
                "uploads": partial(uploads, url, number, session, seen),
                "slow": partial(slow, port, seen),
            }
            tasks = [asyncio.create_task(make()) for name, make in attacks.items() if kind in (name, "all")]
            await asyncio.sleep(1)
            took = await honest(url, run, 4 + number, session)
            counted = {one: seen.count(one) for one in sorted(set(seen))}
            if kind != "slow":
                await asyncio.wait(tasks, timeout=PATIENCE_S)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            found[kind] = {
                "listed_s": None if took is None else round(took, 2),
                "times_quiet": None if took is None else round(took / usual, 2),
                "answers_meanwhile": ", ".join(f"{n} × {one}" for one, n in counted.items()) or "none yet",
            }
    return found


def hostile_files(run: Path, folder: Path) -> list[bytes]:
    import msgspec

    from robustbench_tc.eval import predictions

    rows, made = predictions.read(run / "predictions.parquet"), []
    for number, unit in enumerate(HOSTILE):
        text = (unit * 4_000)[:4_000]
        bad = [
            msgspec.structs.replace(one, raw_output=text) if place < 2_500 and one.injected is None else one
            for place, one in enumerate(rows)
        ]
        predictions.write(folder / f"hostile{number}.parquet", bad)
        made.append((folder / f"hostile{number}.parquet").read_bytes())
    return made


def measured(folder: Path) -> dict[str, Any]:
    """Builds what is needed, serves it as a Space does, and lets everybody in."""
    import socket
    import urllib.request

    from tests.eval.leaderboard.made import run_folder

    from robustbench_tc.api.building import build_release
    from robustbench_tc.builders.build import BuildSpec
    from robustbench_tc.eval import inputs

    spec = BuildSpec(profile="paper", sources=SOURCES) if SOURCES.is_dir() else BuildSpec(profile="bundled")
    build_release(spec, folder / "release")
    dataset = inputs.load(str(folder / "release"))
    run = run_folder(folder / "run", "name-biased", dataset)
    files = hostile_files(run, folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "benchmarks.leaderboard_attack", "--serve", str(folder / "release")]
    space = {
        "SPACE_ID": "acme/board",
        "SYSTEM": "spaces",
        "OAUTH_CLIENT_ID": "of-the-benchmark",
        "OAUTH_CLIENT_SECRET": SECRET,
        "OAUTH_SCOPES": "openid profile",
        "OPENID_PROVIDER_URL": url,
        "HF_HUB_OFFLINE": "1",
    }
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [*command, str(folder / "results"), str(port)], cwd=ROOT, env=os.environ | space, stderr=log
        )
        try:
            ends = time.monotonic() + 120
            while True:
                try:
                    urllib.request.urlopen(url, timeout=5).read()
                    break
                except OSError:
                    if time.monotonic() > ends or server.poll() is not None:
                        sys.exit(f"no server: {(folder / 'log').read_text()[-300:]}")
                    time.sleep(0.2)
            found = asyncio.run(attacked(url, port, run, files))
        finally:
            server.terminate()
            server.wait(20)
    said = (folder / "log").read_text(errors="replace")
    return {"rows": len(dataset.rows), **found, "tracebacks_in_the_log": said.count("Traceback")}


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        from robustbench_tc.eval.leaderboard.serve import serve

        serve(sys.argv[2], store=sys.argv[3], port=int(sys.argv[4]))
        return
    if importlib.util.find_spec("gradio") is None:
        other = ROOT / ".venv-leaderboard" / "bin" / "python"
        if not other.is_file() or Path(sys.prefix) == other.parents[1]:
            sys.exit("gradio is not installed here and there is no .venv-leaderboard: make env-leaderboard")
        os.execv(other, [str(other), "-m", "benchmarks.leaderboard_attack", *sys.argv[1:]])
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder))
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
