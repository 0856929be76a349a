"""Runs commands of `rbtc` one after another, in the copy of the repository that `test_extending.py` made.

    python trial.py COMMAND…

Each command is one argument, its words parted by blanks. Prints a JSON list of (command, exit code, output).
"""

import contextlib
import io
import json
import sys


def main() -> None:
    from robustbench_tc.cli import main as rbtc

    done = []
    for command in sys.argv[1:]:
        out, code = io.StringIO(), 0
        sys.argv = ["rbtc", *command.split(" ")]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                rbtc()
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
        done.append((command, code, out.getvalue()))
    print(json.dumps(done))  # noqa: T201


if __name__ == "__main__":
    main()
