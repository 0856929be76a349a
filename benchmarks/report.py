"""The report over two runs of the paper profile: how large its page is, and how quick its browser of rows.

    .venv-leaderboard/bin/python -m benchmarks.report [--sources ../shared/sources] [--times 9]

The runs are written down by rule (right, wrong, long thoughts, none): no model is asked. Times are those of
the page itself (performance.now around a filter and the layout of its list), the median and the slowest.
"""

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import typer
from tests.browsing import chromium
from tests.eval import answered

from robustbench_tc import api
from robustbench_tc.api.building import build_release
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.eval import verdicts

FILTERS = {
    "type": "CD_AB",
    "source": "apibank",
    "outcome": "A wrong",
    "mode": "wrong_parameters",
    "text": "weather",
}
"""Field → what is chosen or typed in it."""

TIMED = """([name, value]) => {
  const field = document.getElementById(`by-${name}`), found = document.getElementById("found");
  field.value = value;
  field.dispatchEvent(new Event(name === "text" ? "input" : "change"));
  return Number(found.dataset.ms);
}"""


def measured(sources: Path, times: int, folder: Path) -> dict[str, Any]:
    build_release(BuildSpec(profile="paper", sources=sources), folder / "release")
    runs = [answered.run(folder / name, folder / "release").path for name in ("first", "second")]
    for run in runs:
        verdicts.score(run)
    start = time.perf_counter()
    api.report(runs, folder / "page", allow_missing=True)
    made = time.perf_counter() - start
    page_file = folder / "page" / "report.html"
    with chromium() as browser:
        page = browser.new_page()
        start = time.perf_counter()
        page.goto(page_file.as_uri())
        page.wait_for_selector("#rowbrowser[data-ready]")
        opened = time.perf_counter() - start
        rows = page.evaluate("rows.length")
        found = {}
        for name, value in FILTERS.items():
            taken = []
            for _ in range(times):
                taken += [page.evaluate(TIMED, [name, value]), page.evaluate(TIMED, [name, ""])]
            found[name] = {"median": round(statistics.median(taken), 1), "slowest": round(max(taken), 1)}
    return {
        "profile": "paper",
        "rows": rows,
        "runs": len(runs),
        "page_mb": round(page_file.stat().st_size / 1e6, 2),
        "made_s": round(made, 1),
        "opened_s": round(opened, 2),
        "filter_ms": found,
    }


def main(sources: Path = Path("../shared/sources"), times: int = 9) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        found = measured(sources, times, Path(folder))
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    typer.run(main)
