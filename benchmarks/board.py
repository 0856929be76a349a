"""The site of 10,000 runs: how long a build takes, how large the first page is, when it is seen.

    .venv-leaderboard/bin/python -m benchmarks.board [--runs 10000]

The runs are made by rule, every second one vouched for. The first screen is that of Chromium over loopback
with an empty cache: the median of five. Bars: build 60 s, first page 150 kB compressed, first screen 1 s.
"""

import functools
import gzip
import json
import statistics
import sys
import tempfile
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import typer
from tests.browsing import chromium
from tests.eval.leaderboard.made import entries_of

from robustbench_tc.eval.leaderboard import site
from robustbench_tc.eval.leaderboard.entry import Status, Vouched

SAMPLES = 180
"""About as many as the paper's dataset has: 3,977 rows of 23 conditions."""

VOUCHED = Vouched(tier="reproduced", by="bench", day="2026-01-01", reason="made up")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *said: object) -> None:
        pass


def first_screens(folder: Path, times: int = 5) -> list[float]:
    """Milliseconds until the board is painted, each with an empty cache."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = []
    with chromium() as browser:
        for _ in range(times):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(f"http://127.0.0.1:{server.server_port}/", wait_until="load")
            page.wait_for_timeout(500)
            paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            found.append(float(page.evaluate(paint)))
            page.close()
    server.shutdown()
    return found


def main(runs: int = 10_000) -> None:
    """Print the figures."""
    entries = entries_of(runs, samples=SAMPLES)
    status = Status(dataset="robustbench-tc@1.0.0", tiers={one.run: VOUCHED for one in entries[::2]})
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "site"
        start, start_cpu = time.perf_counter(), time.process_time()
        site.build(entries, status, out, repository="lab/results")
        build_s, build_cpu_s = time.perf_counter() - start, time.process_time() - start_cpu
        sizes = [path.stat().st_size for path in out.rglob("*") if path.is_file()]
        figures = {
            "runs": runs,
            "build_s": round(build_s, 1),
            "build_cpu_s": round(build_cpu_s, 1),
            "files": len(sizes),
            "site_mb": round(sum(sizes) / 1e6, 1),
            "first_page_gzip_kb": round(len(gzip.compress((out / "index.html").read_bytes())) / 1e3, 1),
            "rows_gzip_kb": round(
                max(len(gzip.compress(path.read_bytes())) for path in out.glob("*-rows.js")) / 1e3, 1
            ),
            "first_screen_ms": round(statistics.median(first_screens(out)), 1),
        }
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
