"""The long fuzz of the parser: 100,000 texts, each read as every source.

    python scripts/fuzz_parser.py [--texts 100000]

No text may raise, nor take 50 ms of processor time, nor yield calls that cannot be stored. Hypothesis draws
and shrinks the texts; exit code 1 with the smallest failing one.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, given, settings, strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.eval.texts import TOOLS, replies

from robustbench_tc import sources
from robustbench_tc.eval.parse import parse
from robustbench_tc.schema import dumps

LIMIT_S = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=100_000)
    count = parser.parse_args().texts
    variants: Counter[str] = Counter()
    slowest = 0.0

    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(replies | st.text())
    def fuzz(text: str) -> None:
        nonlocal slowest
        for source in sources.names():
            seconds = LIMIT_S
            for _ in range(3):  # a pause of the machine is not the parser's
                started = time.thread_time()
                parsed = parse(text, source=source, tools=TOOLS)
                seconds = min(seconds, time.thread_time() - started)
                if seconds < LIMIT_S:
                    break
            assert seconds < LIMIT_S, f"{source}: {LIMIT_S} s or more"
            dumps(parsed.calls)
            variants[parsed.variant or "none"] += 1
            slowest = max(slowest, seconds)

    fuzz()
    found = {"texts": count, "slowest_ms": round(slowest * 1_000, 1), "readings_by_variant": dict(variants)}
    print(json.dumps(found, indent=2))  # noqa: T201 - it is the output


if __name__ == "__main__":
    main()
