"""Leaves so many mutants in a new session of Cosmic Ray and names it: the same code has the same ones.

    python scripts/draw_mutants.py new.sqlite 200 mutants.sqlite

Left out before the draw: what was filtered, and what no run could show (docs/extending.md, "Mutation
testing").
"""

import sys
from linecache import getline
from pathlib import Path
from random import Random

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, WorkItem

SEED = 44

PROMISES = ("slots=", "frozen=", "kw_only=", "strict=")
"""What is said of a class, or of the sides of a `zip`, and shows only where the code around it is wrong."""


def main(session: str, count: int, name: str) -> None:
    with use_db(session, WorkDB.Mode.open) as db:
        items = sorted((item for item in db.pending_work_items if shows(item.mutations[0])), key=place)
        drawn = Random(SEED).sample(items, min(count, len(items)))
        db.clear()
        db.add_work_items(drawn)
    Path(session).rename(name)


def shows(mutation: MutationSpec) -> bool:
    row, column = mutation.start_pos
    line = getline(str(mutation.module_path), row)
    if line.lstrip().startswith(("@cache\n", "@cache ", "@lru_cache", "@functools.lru_cache")):
        return False
    if line[column:].startswith(("*,", "/,")):  # of a signature: another operator there is no Python
        return False
    return not (line[column:].startswith("True") and line[:column].endswith(PROMISES))


def place(item: WorkItem) -> tuple[str, str, int]:
    mutation = item.mutations[0]
    return str(mutation.module_path), mutation.operator_name, mutation.occurrence


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
