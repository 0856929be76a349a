"""Serves the board on a free port with limits that tests can reach; prints the port when it listens."""

import socket
import sys

import msgspec


def main() -> None:
    dataset, store, limits = sys.argv[1:4]
    from robustbench_tc.cli.leaderboard import site
    from robustbench_tc.eval.leaderboard.app import run
    from robustbench_tc.eval.leaderboard.limits import Limits

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    bounds = msgspec.json.decode(limits, type=Limits)
    made = site(dataset, store=store, limits=bounds, workers=1)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    run(made, "127.0.0.1", port)


if __name__ == "__main__":
    main()
