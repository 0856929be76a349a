"""200 visitors with 5 s think time and 20 submitters on loopback, for a minute: who waits, what is lost.

    .venv-leaderboard/bin/python -m benchmarks.leaderboard [--seconds 60] [--visitors 200] [--submitters 20]

The served app is the real one, over the paper-profile build where the sources are at hand, else the bundled
one. A visitor's first view is the board with its style sheet and icon over a new connection. A submitter
uploads, has the run checked and scored, asks how far it is, lists it (every third one clicks
twice at once), and begins again; what is under way after the minute is waited for. Visitors, submitters and
server share the machine's cores. Without gradio at hand the benchmark looks for `.venv-leaderboard`.
"""

import argparse
import asyncio
import importlib.util
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCES = Path(os.environ.get("RBTC_SHARED", ROOT.parent / "shared")) / "sources"
THINK_S = 5.0
VIEWS = 3
"""Of one visitor after the first view."""
POLL_S = 1.0
PATIENCE_S = 300.0
"""For what is still under way when the minute is over."""

PATHS = ("/?focus=CD", "/types", "/progress", "/?sort=clean", "/?version=paper", "/board.csv", "/board.json")


def serve(release: str, store: str, port: int) -> None:
    """The server's process."""
    from robustbench_tc.eval.leaderboard.limits import Limits
    from robustbench_tc.eval.leaderboard.serve import serve as run

    most = 100_000  # all submitters have one address here
    limits = Limits(
        per_day=most,
        address_checks=most,
        waiting_per_account=most,
        waiting_per_address=most,
        waiting=most,
        pending=1000,
    )
    run(release, store=store, limits=limits, port=port)


class Tally:
    """What was seen."""

    def __init__(self) -> None:
        self.first_s: list[float] = []
        self.view_s: list[float] = []
        self.failed: list[str] = []
        self.submission_s: list[float] = []
        self.listed: list[str] = []
        self.polls = 0


async def seat(url: str, stop: float, number: int, tally: Tally) -> None:
    """One of the visitors at a time: who leaves after some views makes room for somebody new."""
    draw = random.Random(number)
    await asyncio.sleep(draw.uniform(0, THINK_S))
    while time.monotonic() < stop:
        await visitor(url, stop, draw, tally)


async def visitor(url: str, stop: float, draw: random.Random, tally: Tally) -> None:
    import aiohttp

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as session:
        started = time.perf_counter()
        page = await _get(session, url + "/", tally)
        sheet = page.partition('href="/static/board.css')[2].partition('"')[0]
        await asyncio.gather(
            _get(session, f"{url}/static/board.css{sheet}", tally),
            _get(session, f"{url}/static/icon.svg", tally),
        )
        tally.first_s.append(time.perf_counter() - started)
        if "</html>" not in page:
            tally.failed.append("first view incomplete")
        for _ in range(VIEWS):
            await asyncio.sleep(THINK_S)
            if time.monotonic() > stop:
                return
            started = time.perf_counter()
            await _get(session, url + draw.choice(PATHS), tally)
            tally.view_s.append(time.perf_counter() - started)


async def _get(session: Any, address: str, tally: Tally) -> str:
    async with session.get(address) as reply:
        text: str = await reply.text()
        if reply.status != 200:
            tally.failed.append(f"{reply.status} {address}")
        return text


async def submitter(url: str, stop: float, number: int, run: Path, tally: Tally) -> None:
    """Submits until the time is over, at least once, each time another model."""
    import aiohttp

    api = f"{url}/submit/gradio_api"
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE_S)) as session:
        for attempt in itertools.count(1):
            if attempt > 1 and time.monotonic() > stop:
                return
            started = time.perf_counter()
            person = f"bench{number}x{attempt}"
            files = [await _upload(session, api, run / name) for name in ("predictions.parquet", "run.json")]
            model = f"Model{number}x{attempt}-{1 + number % 90}B"
            answer = await _event(session, api, person, "check", [*files, model, ""])
            while "verdict" not in answer:
                await asyncio.sleep(POLL_S)
                tally.polls += 1
                answer = await _event(session, api, person, "look", [None])
            if "Every check passed" not in answer:
                tally.failed.append(f"refused: {answer[:200]}")
                continue
            clicks = 2 if attempt % 3 == 0 else 1
            answers = await asyncio.gather(
                *(_event(session, api, person, "list", [None]) for _ in range(clicks))
            )
            if any("Listed as unverified" in answer for answer in answers):
                tally.listed.append(model)
                tally.submission_s.append(time.perf_counter() - started)
            else:
                tally.failed.append(f"not listed: {str(answers)[:200]}")


async def _upload(session: Any, api: str, path: Path) -> dict[str, Any]:
    import aiohttp

    form = aiohttp.FormData()
    form.add_field("files", path.read_bytes(), filename=path.name)
    async with session.post(f"{api}/upload", data=form) as reply:
        [place] = await reply.json()
    return {"path": place, "orig_name": path.name, "meta": {"_type": "gradio.FileData"}}


async def _event(session: Any, api: str, person: str, name: str, data: list[Any]) -> str:
    """One event of the submit page, as its browser sends it; the answer as text."""
    async with session.post(f"{api}/run/{name}", json={"data": data, "session_hash": person}) as reply:
        text: str = await reply.text()
        if reply.status != 200:
            raise RuntimeError(f"{name}: {reply.status} {text[:200]}")
        return text


async def minute(
    url: str, run: Path, seconds: float, visitors: int, submitters: int, first: int = 0
) -> Tally:
    tally, stop = Tally(), time.monotonic() + seconds
    async with asyncio.timeout(seconds + PATIENCE_S), asyncio.TaskGroup() as group:
        for number in range(visitors):
            group.create_task(seat(url, stop, number, tally))
        for number in range(submitters):
            group.create_task(submitter(url, stop, first + number, run, tally))
    return tally


def percentile(found: list[float], share: float, digits: int = 3) -> float | None:
    return round(sorted(found)[min(len(found) - 1, int(share * len(found)))], digits) if found else None


def measured(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Builds what is needed, serves it in a process of its own, and lets everybody in."""
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
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url, store = f"http://127.0.0.1:{port}", folder / "results"
    command = [sys.executable, "-m", "benchmarks.leaderboard", "--serve", str(folder / "release"), str(store)]
    server = subprocess.Popen([*command, str(port)], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        ends = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(url, timeout=5).read()
                break
            except OSError:
                if time.monotonic() > ends or server.poll() is not None:
                    raise
                time.sleep(0.2)
        warm = asyncio.run(minute(url, run, 0, 0, 1, 900))  # both processes have scored once
        tally = asyncio.run(minute(url, run, arguments.seconds, arguments.visitors, arguments.submitters))
        memory = peak_mib(server.pid)
    finally:
        server.terminate()
        server.wait(20)
    stored = [
        json.loads((path / "record.json").read_bytes())["model"] for path in (store / "submissions").iterdir()
    ]
    return {
        "rows": len(dataset.rows),
        "seconds": arguments.seconds,
        "visitors": arguments.visitors,
        "submitters": arguments.submitters,
        "first_view_p50_s": percentile(tally.first_s, 0.5),
        "first_view_p95_s": percentile(tally.first_s, 0.95),
        "view_p50_s": percentile(tally.view_s, 0.5),
        "view_p95_s": percentile(tally.view_s, 0.95),
        "views": len(tally.first_s) + len(tally.view_s),
        "submission_p50_s": percentile(tally.submission_s, 0.5),
        "submission_p95_s": percentile(tally.submission_s, 0.95),
        "polls": tally.polls,
        "listed_in_warm_up": len(warm.listed),
        "listed": len(tally.listed),
        "stored": len(stored),
        "lost": len({*warm.listed, *tally.listed} - set(stored)),
        "doubled": len(stored) - len(set(stored)),
        "failures": len(tally.failed),
        "first_failures": tally.failed[:3],
        "serverpeak_mib": memory,
    }


def peak_mib(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), None)


def in_leaderboard_environment(module: str) -> None:
    """Goes on in .venv-leaderboard where gradio is not at hand here."""
    if importlib.util.find_spec("gradio") is None:
        other = ROOT / ".venv-leaderboard" / "bin" / "python"
        if not other.is_file() or Path(sys.prefix) == other.parents[1]:
            sys.exit("gradio is not installed here and there is no .venv-leaderboard: make env-leaderboard")
        os.execv(other, [str(other), "-m", module, *sys.argv[1:]])


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    in_leaderboard_environment("benchmarks.leaderboard")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--visitors", type=int, default=200)
    parser.add_argument("--submitters", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measured(arguments, Path(folder))
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
