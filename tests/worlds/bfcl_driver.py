"""Replays calls in BFCL's world, each job in a fork of its own: `PYTHON -I bfcl_driver.py WORLD_FILE < jobs`.

Standard library only, as the world's file. A job and its answer are a line of JSON each:
{"state", "turns": [[[name, arguments], …], …]} becomes {"results" and "states" by turn, "cwd", "private",
"generated"}.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

UNSEEN = ("_random", "_api_description", "_current_dir")


def replay(module: Any, job: dict[str, Any]) -> dict[str, Any]:
    """What came of a job's calls."""
    world = module.WORLD(job["state"])
    results, states = [], []
    for calls in job["turns"]:
        results.append([world.call(name, arguments) for name, arguments in calls])
        states.append(world.classes())
    private = {
        name: {k: v for k, v in vars(one).items() if k.startswith("_") and k not in UNSEEN}
        for name, one in world.instances.items()
    }
    cwd = world.state()["cwd"]
    return {
        "results": results,
        "states": states,
        "cwd": cwd,
        "private": private,
        "generated": world.generated(),
    }


def forked(module: Any, line: str) -> str:
    """The answer to a line, from a child that ends with it."""
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        with os.fdopen(writes, "w") as out:
            out.write(json.dumps(replay(module, json.loads(line))))
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


def main(file: Path) -> None:
    """Answers every line of standard input."""
    spec = importlib.util.spec_from_file_location("world", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for line in sys.stdin:
        sys.stdout.write(forked(module, line) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
