"""Live runs for the board's tests: a small bundled dataset, and scripted agents who play it."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc import api, schema
from robustbench_tc.eval.board.datasets import LiveRows
from robustbench_tc.eval.inputs import Selection
from robustbench_tc.eval.live import inputs, prompts, record, run
from robustbench_tc.eval.live.speakers import ScriptedSpeaker
from robustbench_tc.eval.record import Settings

from ..live import purses

KINDS = ("timeout_after_effect", "silent_no_op", "transient_timeout", "duplicate_effect")
TASKS = 6


def dataset(folder: Path) -> Path:
    """Six of the orders' tasks, each with four kinds of faults where it has them."""
    whole = folder / "whole"
    api.build_live(whole, worlds=("orders",), kinds=KINDS)
    rows = inputs.load(str(whole)).rows
    tasks = list(dict.fromkeys(row.clean_id for row in rows))[:TASKS]
    return purses.write(folder / "robustbench-tc-live", [row for row in rows if row.clean_id in tasks])


def played(
    folder: Path, asked: LiveRows, agent: str, *, model: str = "Alpha-3B", mode: str = "fc", repeat: int = 1
) -> Path:
    """A finished run of a scripted agent, which says of itself that it is a model."""
    settings = Settings(
        fingerprint=asked.digest,
        model=model,
        mode=mode,  # type: ignore[arg-type]
        backend="openai",
        decoding={"temperature": 0.0},
        prompt_version=prompts.version(),
        selection=Selection(),
        repeat=repeat,
    )
    made = record.start(folder, asked.data, settings, len(asked.data.rows) * repeat)
    cast = run.scripted(ScriptedSpeaker(agent, asked.clean))
    run.run(made, asked.data.rows, cast, asked.worlds, concurrency=4)
    return folder


def mixed(folder: Path, asked: LiveRows, **options: Any) -> Path:
    """A run that is no scripted agent's: two of them, a task each in turns."""
    first = played(folder / "a", asked, "blind-retrier", **options)
    second = played(folder / "b", asked, "liar", **options)
    lines: list[bytes] = []
    tasks = list(asked.clean)
    for at, source in enumerate((first, second)):
        lines += [
            line
            for line in (source / "journal.jsonl").read_bytes().splitlines(keepends=True)
            if tasks.index(schema.loads(line)["id"].partition("::")[0]) % 2 == at
        ]
    # Episodes run side by side; what a test edits is the same line every time.
    lines.sort(key=lambda line: str(schema.loads(line)["id"]))
    (first / "journal.jsonl").write_bytes(b"".join(lines))
    return played(folder / "a", asked, "oracle", **options)  # asks nothing, and writes the episodes again


def copied(run_folder: Path, to: Path) -> Path:
    """The two files that are uploaded, to be changed."""
    to.mkdir(parents=True)
    for name in ("journal.jsonl", "live_run.json"):
        shutil.copyfile(run_folder / name, to / name)
    return to


def edited(
    run_folder: Path, to: Path, change: Callable[[list[dict[str, Any]]], Iterable[dict[str, Any]]]
) -> Path:
    """A copy whose journal's lines were changed."""
    made = copied(run_folder, to)
    lines = [schema.loads(line) for line in (made / "journal.jsonl").read_bytes().splitlines()]
    (made / "journal.jsonl").write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in change(lines)))
    return made


def said(run_folder: Path, to: Path, **changes: Any) -> Path:
    """A copy whose record says something else; `settings` are changed one by one."""
    made = copied(run_folder, to)
    found = schema.loads((made / "live_run.json").read_bytes())
    found["settings"] |= changes.pop("settings", {})
    (made / "live_run.json").write_bytes(msgspec.json.encode(found | changes))
    return made
