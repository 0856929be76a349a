"""Serves the board with limits that tests can reach, on a free port or the one that is named, with a live
dataset where one is named behind it; prints the port when it listens."""

import sys

import msgspec


def main() -> None:
    dataset, store, limits, *rest = sys.argv[1:6]
    port, live = rest[:1], rest[1:]
    from robustbench_tc.eval.leaderboard.limits import Limits
    from robustbench_tc.eval.leaderboard.serve import serve

    def started(url: str) -> None:
        sys.stdout.write(url.rpartition(":")[2] + "\n")
        sys.stdout.flush()

    bounds = msgspec.json.decode(limits, type=Limits)
    serve(
        dataset,
        live_dataset="".join(live) or None,
        store=store,
        limits=bounds,
        workers=1,
        port=int(*port),
        started=started,
    )


if __name__ == "__main__":
    main()
