"""Scored live runs with drawn scores, for the marts."""

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec

from robustbench_tc.eval.live.score import LiveScore, write_scores
from robustbench_tc.eval.record import SCORES

KINDS = ("clean", "live_transient_timeout", "live_timeout_after_effect", "live_silent_no_op")


def live_scores(seed: int, tasks: int = 12) -> list[LiveScore]:
    """Every task clean and with three faults; some without an answer, some never met."""
    rng = random.Random(seed)
    return [_score(rng, f"t_{number}", code) for number in range(tasks) for code in KINDS]


def _score(rng: random.Random, clean_id: str, code: str) -> LiveScore:
    answered = rng.random() > 0.1
    met = rng.choice((0, 1, 2)) if code != "clean" else 0
    right = rng.random() < 0.6
    ended = rng.choice(("done", "too_many_steps")) if answered else "request_error"
    told = rng.choice(("done", "failed", "hedged", "unclear"))
    plain = LiveScore(
        id=f"{clean_id}::{code}",
        clean_id=clean_id,
        type_code=code,
        world="orders",
        model="m",
        mode="fc",
        repeat=0,
        position=None if code == "clean" else "first_write",
        label=None if code == "clean" else rng.choice(("repair", "report")),
        ended=ended,  # type: ignore[arg-type]
    )
    if not answered:
        return plain

    names = "steps retries blind_repeats verified loops followed used_false undone asked gave_up".split()
    counts = {name: rng.choice((0, 0, 1, 2)) for name in (*names, "downstream_errors", "omitted", "repeated")}
    return msgspec.structs.replace(
        plain,
        success=right,
        information=rng.random() < 0.5,
        state=right,
        told=told,
        false_failure=rng.random() < 0.3,
        false_claim=rng.random() < 0.3,
        silent_failure=not right and ended == "done" and told in ("done", "unclear"),
        met=met,
        recovered=right if met else None,
        extra_steps=None if code == "clean" else rng.choice((0, 3)),
        touched=None if code == "clean" else rng.choice((False, True)),
        turns=[],
        **counts,
    )


def live_run(folder: Path, scores: Sequence[LiveScore]) -> Path:
    """A folder with what the marts read of a live run."""
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    (folder / "episodes.parquet").touch()
    write_scores(scores, folder / SCORES)
    return folder
