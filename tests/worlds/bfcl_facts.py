"""What omission and repetition change in BFCL's golds: `make live-facts`, the tables of docs/live-data.md.

Gold is replayed once for every call without it, and once with it twice in a row, each time in a fresh world;
the hash of the end is compared with gold's in three kinds of state, and upstream's verdict is asked. Hashes
tell 10 from 10.0, upstream's verdict does not.
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from robustbench_tc.builders.live import bfcl
from robustbench_tc.eval.live.bfcl_check import PlayedTurn, upstream_error
from robustbench_tc.schema import Call, LiveRow
from robustbench_tc.worlds import find, same_state

from .bfcl_replays import Answer, Job, bfcl_data, gold, replays


class Counts(NamedTuple):
    """Of the calls of a category."""

    omitted: int
    """Calls without which the end differs."""
    both: int
    """Those of them with which twice the end differs, too."""
    repeated: int
    """Calls with which twice the end differs."""


def public(one: Answer) -> str:
    """What upstream compares."""
    return same_state.state_hash(one.states[-1])


def with_directory(one: Answer) -> str:
    """State, as everywhere in the live mode."""
    return same_state.state_hash([one.states[-1], one.cwd])


def with_private(one: Answer) -> str:
    """All that a later call could show."""
    return same_state.state_hash([one.states[-1], one.cwd, one.private])


STATES: dict[str, Callable[[Answer], str]] = {
    "public attributes": public,
    "+ working directory": with_directory,
    "+ private attributes": with_private,
}
VERDICT = "upstream's verdict"


def variants(row: LiveRow) -> list[Job]:
    """Gold; then for every call gold without it and gold with it twice."""
    state = row.initial_state["state"]
    made = [gold(row)]
    for turn, calls in enumerate(row.golden_calls):
        for k in range(len(calls)):
            for changed in ([*calls[:k], *calls[k + 1 :]], [*calls[: k + 1], *calls[k:]]):
                turns: list[Sequence[Call]] = list(row.golden_calls)
                turns[turn] = changed
                made.append(Job(state, turns))
    return made


def counted(python: str, rows: Sequence[LiveRow]) -> dict[str, Counts]:
    """The figures of some rows, by kind of state; `VERDICT` is upstream's."""
    differs: dict[str, list[tuple[bool, bool]]] = {name: [] for name in (*STATES, VERDICT)}
    jobs = [variants(row) for row in rows]
    answers = iter(replays(python, (job for made in jobs for job in made)))
    for made in jobs:
        whole, *others = (next(answers) for _ in made)
        wanted = [
            PlayedTurn([texts] if texts else [], state)
            for texts, state in zip(whole.results, whole.states, strict=True)
        ]
        for without, twice in zip(others[::2], others[1::2], strict=True):
            for name, state in STATES.items():
                end = state(whole)
                differs[name].append((state(without) != end, state(twice) != end))
            errors = [upstream_error(_steps(one), wanted) for one in (without, twice)]
            differs[VERDICT].append((errors[0] is not None, errors[1] is not None))
    return {
        name: Counts(
            sum(omitted for omitted, _ in pairs),
            sum(omitted and repeated for omitted, repeated in pairs),
            sum(repeated for _, repeated in pairs),
        )
        for name, pairs in differs.items()
    }


def _steps(one: Answer) -> list[PlayedTurn]:
    """A step for every call."""
    return [
        PlayedTurn([[text] for text in texts], state)
        for texts, state in zip(one.results, one.states, strict=True)
    ]


def lines(category: str, calls: int, found: dict[str, Counts]) -> list[str]:
    """A category's part of the page."""
    return [
        f"| {category} ({calls:,} calls) | {name} | {one.omitted:,} | {one.both:,} | {one.repeated:,} |"
        for name, one in found.items()
    ]


def main() -> None:
    """Prints the table over all four categories."""
    python = find.bfcl_python(os.environ.get("RBTC_WORLD_PYTHON"))
    rows = bfcl.tasks_in(bfcl_data(python))
    sys.stdout.write(
        "| gold of | state | omission changes it | and repetition too | repetition changes it |\n"
    )
    sys.stdout.write("|---|---|---|---|---|\n")
    for category in bfcl.CATEGORIES:
        some = [row for row in rows if row.category == category]
        calls = sum(len(turn) for row in some for turn in row.golden_calls)
        sys.stdout.write("\n".join(lines(category, calls, counted(python, some))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
