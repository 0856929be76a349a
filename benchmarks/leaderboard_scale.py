"""The board with 1,000 and 10,000 submissions: start, pages, filters, an addition, memory, 200 visitors.

    .venv-leaderboard/bin/python -m benchmarks.leaderboard_scale [--sizes 1000,10000]

The stores are made by rule from a few scored runs of reference agents on the paper-profile build where the
sources are at hand, else on the bundled one: verdicts are flipped at random, names, users, dates and replies
drawn, and one in 8 has a verification, so that it is ranked. `rbtc leaderboard serve` runs in a process of
its own and is asked over loopback, as a browser asks (gzip). A filter's time is that of a page that nobody
asked for before. Bars: port open within 5 s, first page 200 ms and 150 KB, any filter 300 ms, an addition
visible within 2 s, below 1 GB, the visitors' p95, of pages that somebody saw before,
at most 1.5 times that of a static file in the same run.
"""

import argparse
import asyncio
import gzip
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .leaderboard import ROOT, SOURCES, THINK_S, in_leaderboard_environment, peak_mib, percentile

if TYPE_CHECKING:
    from robustbench_tc.eval.leaderboard.records import Entry, Submission
    from robustbench_tc.eval.leaderboard.store import Store

AGENTS = ("name-biased", "gives-up-on-error", "apology")
ADDITIONS = 5
VISITORS, SECONDS = 200, 30.0
FILTERS = (
    "/?q=model+7", "/?family=Family-3", "/?size=small", "/?mode=fc", "/?tier=unverified", "/?weights=open",
    "/?licence=mit", "/?since=2026-03-01&until=2026-06-30", "/?focus=CD", "/?focus=transition&unranked=on",
    "/?unranked=on", "/?sort=clean&unranked=on", "/?sort=delta_reward_low&unranked=on&dir=asc",
    "/?sort=model&unranked=on&page=40", "/?sort=price&unranked=on", "/?sort=date&unranked=on&size=large",
    "/?unranked=on&page=7&show=intervals", "/plots", "/plots?unranked=on", "/heatmap?unranked=on", "/matrix",
    "/types", "/progress", "/?focus=TD&unranked=on&mode=prompt&q=a&sort=perturbed_high",
)  # fmt: skip


# --- a store ----------------------------------------------------------------------------------------------


class Made(NamedTuple):
    """What submissions are made from."""

    release: Path
    runs: list[Path]
    entries: "list[Entry]"
    version: str
    fingerprint: str


def ground(folder: Path) -> Made:
    """A release, and a few scored runs of it."""
    from tests.eval.leaderboard.made import run_folder

    from robustbench_tc.api.building import build_release
    from robustbench_tc.builders.build import BuildSpec
    from robustbench_tc.eval.leaderboard.limits import Limits
    from robustbench_tc.eval.leaderboard.serve import load_asked
    from robustbench_tc.eval.leaderboard.worker import RECORD, UPLOAD, Job, examine

    spec = BuildSpec(profile="paper", sources=SOURCES) if SOURCES.is_dir() else BuildSpec(profile="bundled")
    build_release(spec, folder / "release")
    asked = load_asked(str(folder / "release"))
    runs, entries = [], []
    for agent in AGENTS:
        run = run_folder(folder / agent, agent, asked, model=f"Agent-{agent}")
        job = folder / f"job-{agent}"
        job.mkdir()
        for name, called in (("predictions.parquet", UPLOAD), ("run.json", RECORD)):
            (job / called).write_bytes((run / name).read_bytes())
        now = datetime.now(UTC).isoformat(timespec="seconds")
        checked = examine(Job(folder=str(job), user="bench", now=now), asked, Limits())
        if checked.entry is None:
            sys.exit(f"{agent} is refused: {checked.refused and checked.refused.text}")
        runs.append(run)
        entries.append(checked.entry)
    return Made(folder / "release", runs, entries, asked.label, asked.fingerprint())


def submission(made: Made, number: int, draw: random.Random, when: datetime) -> "Submission":
    from robustbench_tc.eval.leaderboard.records import Submission

    priced = draw.random() < 0.5
    return Submission(
        id=f"{when:%Y%m%d}-{sha256(str(number).encode()).hexdigest()[:12]}",
        user=f"user-{draw.randrange(2_000)}",
        model=f"Model {number}-{draw.choice((1, 3, 7, 14, 70))}B",
        mode=draw.choice(("prompt", "fc")),
        params_b=draw.choice((None, 1.0, 3.0, 7.0, 14.0, 70.0)),
        family=f"Family-{draw.randrange(40)}",
        submitted_at=when.isoformat(timespec="seconds"),
        dataset_version=made.version,
        fingerprint=made.fingerprint,
        repeats=1,
        predictions_sha256=sha256(f"p{number}".encode()).hexdigest(),
        package_version="0.1.0",
        licence=draw.choice((None, "mit", "apache-2.0", "other")),
        weights=draw.choice((None, "open", "closed")),
        price_in=draw.uniform(0.1, 5) if priced else None,
        price_out=draw.uniform(0.1, 20) if priced else None,
    )


def varied(base: "Entry", draw: random.Random) -> "Entry":
    """The entry with other verdicts, of which counts and values follow, other replies and other costs."""
    import base64

    import msgspec

    from robustbench_tc import taxonomy
    from robustbench_tc.eval.leaderboard.records import Metric, Usage

    level = draw.uniform(0.1, 0.9)
    verdicts = {
        code: "".join(
            one if one == "-" or draw.random() < 0.3 else "01"[draw.random() < level] for one in text
        )
        for code, text in (base.verdicts or {}).items()
    }
    counts = dict(base.counts)
    for code, text in verdicts.items():
        counts[code] = text.count("1"), len(text) - text.count("-")
    pooled = {"perturbed": taxonomy.codes()} | {
        name: tuple(one.code for one in taxonomy.types() if one.component == name)
        for name in taxonomy.COMPONENTS
    }
    for name, codes in pooled.items():
        there = [counts[code] for code in codes if code in verdicts]
        counts[name] = sum(right for right, _ in there), sum(n for _, n in there)
    share = {name: correct / n for name, (correct, n) in counts.items() if n}

    def moved(one: Metric, value: float) -> Metric:
        low, high = (None if end is None else end + value - (one.value or 0.0) for end in (one.low, one.high))
        return Metric(value, low, high, one.n)

    metrics = dict(base.metrics)
    for name in ("clean", "perturbed"):
        metrics[name] = moved(metrics[name], share[name])
    for name in taxonomy.COMPONENTS:
        metrics[f"accuracy_{name}"] = moved(metrics[f"accuracy_{name}"], share[name])
        for delta in (f"delta_{name}", f"delta_matched_{name}"):
            metrics[delta] = moved(metrics[delta], share["clean"] - share[name])
    types = {
        code: msgspec.structs.replace(
            line,
            accuracy=moved(line.accuracy, share[code]),
            delta=moved(line.delta, share["clean"] - share[code]),
        )
        for code, line in base.types.items()
        if code in share
    }
    return msgspec.structs.replace(
        base,
        counts=counts,
        metrics=metrics,
        types=types,
        verdicts=verdicts,
        flags=(),
        replies=base64.b64encode(draw.randbytes(len(base64.b64decode(base.replies)))).decode(),
        usage=Usage(draw.uniform(500, 4000), draw.uniform(50, 900), draw.uniform(0.2, 9)),
    )


def fill(folder: Path, made: Made, size: int) -> "Store":
    """A store of so many submissions: its files as `Store.add` leaves them, without waiting for the disk."""
    from robustbench_tc.eval.leaderboard.records import Verification, encode
    from robustbench_tc.eval.leaderboard.store import Store

    store, draw = Store(folder), random.Random(size)
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(size):
        when = begin + timedelta(minutes=number * 300 * 1440 // size)
        one, at = submission(made, number, draw, when), number % len(made.runs)
        path = store.path(one.id)
        path.mkdir()
        (path / "record.json").write_bytes(encode(one))
        for name in ("predictions.parquet", "run.json"):
            os.link(made.runs[at] / name, path / name)
        (store.entries / f"{one.id}.json").write_bytes(encode(varied(made.entries[at], draw)))
        if number % 8 == 0:
            verified = Verification(
                submission=one.id, verified_at=one.submitted_at, by="bench", rows=300, agree=300,
                submitted=0.5, repeated=0.5, p=1.0, predictions_sha256=one.predictions_sha256,
                package_version="0.1.0",
            )  # fmt: skip
            (folder / "verifications" / f"{one.id}.json").write_bytes(encode(verified))
    return store


# --- a server ---------------------------------------------------------------------------------------------


class Server:
    """`rbtc leaderboard serve` on a free port of loopback."""

    def __init__(self, store: Path, release: Path, log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        command = [sys.executable, "-m", "robustbench_tc", "leaderboard", "serve", "--dataset", str(release)]
        with log.open("wb") as into:
            self._started = time.monotonic()
            self.process = subprocess.Popen(
                [*command, "--store", str(store), "--port", str(self.port)],
                cwd=ROOT,
                stderr=into,
                stdout=into,
            )

    def opened(self) -> float:
        """Seconds from the command to the open port."""
        while self.process.poll() is None:
            with socket.socket() as asks:
                if asks.connect_ex(("127.0.0.1", self.port)) == 0:
                    return round(time.monotonic() - self._started, 2)
            time.sleep(0.02)
        sys.exit("the server has ended")

    def answered(self) -> float:
        """Seconds from the command to the first page."""
        self.get("/", timeout=600)
        return round(time.monotonic() - self._started, 2)

    def get(self, path: str, timeout: float = 120) -> tuple[float, int, bytes]:
        """Seconds, bytes of the body as sent, and the body."""
        asks = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        started = time.perf_counter()
        asks.request("GET", path, headers={"Accept-Encoding": "gzip"})
        reply = asks.getresponse()
        sent = reply.read()
        took = time.perf_counter() - started
        asks.close()
        if reply.status != 200:
            sys.exit(f"{path}: {reply.status} {sent[:200]!r}")
        return took, len(sent), gzip.decompress(sent) if reply.headers["Content-Encoding"] == "gzip" else sent


@contextmanager
def served(store: Path, release: Path, log: Path) -> Iterator[Server]:
    server = Server(store, release, log)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait(60)


# --- what is measured -------------------------------------------------------------------------------------


def measured(folder: Path, made: Made, size: int) -> dict[str, Any]:
    store = fill(folder / "results", made, size)
    with served(store.folder, made.release, folder / "log") as server:
        found: dict[str, Any] = {
            "submissions": size,
            "port_open_s": server.opened(),
            "first_page_without_index_s": server.answered(),
        }
        server.get("/submit/", timeout=300)  # everything is loaded
    with served(store.folder, made.release, folder / "log") as server:
        found["port_open_again_s"] = server.opened()
        found["first_page_again_s"] = server.answered()
        server.get("/submit/", timeout=300)
        times = {path: server.get(path)[0] for path in FILTERS}
        slowest = max(times, key=lambda path: times[path])
        found["filters_ms"] = {path: _ms(took) for path, took in times.items()}
        found["filter_median_ms"] = _ms(sorted(times.values())[len(times) // 2])
        found |= {"filter_slowest_ms": _ms(times[slowest]), "filter_slowest": slowest}
        rows = [path.name for path in sorted((store.folder / "submissions").iterdir())]
        pages = [f"/model/{one}" for one in rows[:: max(1, size // 20)]]
        of_models = [server.get(path) for path in pages]
        found["model_page_slowest_ms"] = _ms(max(one[0] for one in of_models))
        found["model_page_bytes"] = max(one[1] for one in of_models)
        found |= additions(server, store, made, size)
        for path in (
            *FILTERS,
            *pages,
        ):  # visitors mostly see what somebody saw before; filters are timed above
            server.get(path)
        found |= asyncio.run(visitors(server.port, [*FILTERS, *pages]))
        found["server_peak_mib"] = peak_mib(server.process.pid)
    return found


def additions(server: Server, store: "Store", made: Made, size: int) -> dict[str, Any]:
    """Submissions that come in, and the first page after each, which nobody has made yet."""
    draw, shown, first = random.Random(1), [], []
    for number in range(size, size + ADDITIONS):
        one = submission(made, number, draw, datetime(2026, 11, 20, number % 24, tzinfo=UTC))
        entry = varied(made.entries[0], draw)
        with store.locked():
            store.add(one, made.runs[0], entry)
        started = time.monotonic()
        wanted = f"/model/{one.id}".encode()
        while wanted not in server.get(f"/?unranked=on&q={number}-")[2]:
            time.sleep(0.05)
            if time.monotonic() - started > 120:
                sys.exit("an addition does not appear")
        shown.append(time.monotonic() - started)
        first.append(server.get("/"))
        time.sleep(1)
    return {
        "addition_visible_slowest_s": round(max(shown), 2),
        "first_page_uncached_slowest_ms": _ms(max(one[0] for one in first)),
        "first_page_cached_ms": _ms(server.get("/")[0]),
        "first_page_bytes": first[-1][1],
        "first_page_bytes_unpacked": len(first[-1][2]),
    }


async def visitors(port: int, pages: Sequence[str]) -> dict[str, Any]:
    """Visitors who look at a page or at the style sheet, half the time each, with time to think between."""
    import aiohttp

    of_page: list[float] = []
    of_file: list[float] = []
    ends = time.monotonic() + SECONDS

    async def visitor(number: int) -> None:
        draw = random.Random(number)
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(120)) as session:
            await asyncio.sleep(draw.uniform(0, THINK_S))
            while time.monotonic() < ends:
                for path, into in ((draw.choice(pages), of_page), ("/static/board.css", of_file)):
                    started = time.perf_counter()
                    async with session.get(f"http://127.0.0.1:{port}{path}") as reply:
                        await reply.read()
                        reply.raise_for_status()
                    into.append(time.perf_counter() - started)
                    await asyncio.sleep(draw.uniform(0.5, 1.5) * THINK_S)

    await asyncio.gather(*map(visitor, range(VISITORS)))
    page, file = (percentile(one, 0.95, 5) or 0.0 for one in (of_page, of_file))
    return {
        "visitors": VISITORS,
        "views": len(of_page),
        "view_p95_ms": _ms(page),
        "static_p95_ms": _ms(file),
        "view_to_static_p95": round(page / file, 2),
    }


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)


def main() -> None:
    in_leaderboard_environment("benchmarks.leaderboard_scale")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", default="1000,10000")
    options = parser.parse_args()
    found: dict[str, Any] = {"load_before": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory() as folder:
        made = ground(Path(folder))
        for size in map(int, options.sizes.split(",")):
            part = Path(folder) / str(size)
            part.mkdir()
            found[f"of_{size}"] = measured(part, made, size)
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
