"""Live runs for the board's tests: a small bundled dataset, and scripted agents who play it."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from robustbench_tc import api, schema
from robustbench_tc.eval import session
from robustbench_tc.eval.inputs import load_live
from robustbench_tc.eval.live import inputs, prompts
from robustbench_tc.eval.live.inputs import LiveData
from robustbench_tc.eval.record import Settings, start
from robustbench_tc.eval.speakers import ScriptedAgent
from robustbench_tc.eval.who import Opened
from robustbench_tc.llm import Stats

from ..live import purses

KINDS = ("timeout_after_effect", "silent_no_op", "transient_timeout", "duplicate_effect")
TASKS = 6


def dataset(folder: Path) -> Path:
    """Six of the orders' tasks, each with four kinds of faults where it has them."""
    whole = folder / "whole"
    api.build_live(whole, worlds=("orders",), kinds=KINDS)
    rows = load_live(str(whole)).rows
    tasks = list(dict.fromkeys(row.clean_id for row in rows))[:TASKS]
    return purses.write(folder / "robustbench-tc-live", [row for row in rows if row.clean_id in tasks])


def played(
    folder: Path,
    asked: LiveData,
    agent: str,
    *,
    model: str = "Alpha-3B",
    mode: str = "fc",
    repeat: int = 1,
    defend: tuple[str, ...] = (),
) -> Path:
    """A finished run of a scripted agent, which says of itself that it is a model."""
    settings = Settings(
        fingerprint=asked.fingerprint(),
        model=model,
        mode=mode,  # type: ignore[arg-type]
        backend="openai",
        decoding={"temperature": 0.0},
        prompt_version=prompts.version(),
        repeat=repeat,
        defend=defend,
    )
    made = start(folder, asked, settings, len(asked.rows) * repeat)
    speaker = nullcontext(Opened(ScriptedAgent(agent, asked.clean()), 4, Stats()))
    worlds = inputs.world_types(asked.rows)
    session.run(made, asked, speaker, worlds=worlds)
    return folder


def mixed(folder: Path, asked: LiveData, **options: Any) -> Path:
    """A run that is no scripted agent's: two of them, a task each in turns."""
    first = played(folder / "a", asked, "blind-retrier", **options)
    second = played(folder / "b", asked, "liar", **options)
    lines: list[bytes] = []
    tasks = list(asked.clean())
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
