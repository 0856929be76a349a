"""Lines of live scores, against figures worked out here."""

import msgspec
import pytest

from robustbench_tc.eval.live.score import LiveScore
from robustbench_tc.eval.stats.packs.live import groups, lines, side_effects
from robustbench_tc.schema import EXPLICIT, KINDS


def score(task: int, code: str = "clean", *, right: bool | None = True, **fields: object) -> LiveScore:
    """One score."""
    made = LiveScore(
        id=f"t{task}::{code}",
        clean_id=f"t{task}",
        type_code=code,
        world="purse",
        model="m",
        mode="fc",
        repeat=0,
        position=None,
        label=None if code == "clean" else "repair",
        ended="done",
        success=right,
    )
    return msgspec.structs.replace(made, **fields)


NO_OP, TIMEOUT = "live_silent_no_op", "live_transient_timeout"


def test_delta_is_taken_over_the_tasks_that_have_the_fault() -> None:
    clean = [score(task, right=task < 9) for task in range(10)]
    faulty = [score(task, NO_OP, right=task == 0, met=1, recovered=task == 0) for task in range(5)]
    (no_op, implicit, whole) = lines([*clean, *faulty])
    assert [one.name for one in (no_op, implicit, whole)] == ["silent_no_op", "implicit", "all"]
    assert no_op.n == 5 and no_op.delta.value == pytest.approx(0.8)
    assert no_op.delta.p == pytest.approx(2 / 2**4)  # four tasks lost, none won: an exact paired test
    assert no_op.recovery is not None and no_op.recovery.value == pytest.approx(0.2)
    assert no_op.success.low < 0.2 < no_op.success.high


def test_what_cannot_be_paired_is_counted() -> None:
    rows = [
        score(0, TIMEOUT, right=None, met=1),
        score(1, TIMEOUT, met=1),
        score(2, TIMEOUT, met=1),
        score(1),
        score(2, right=None),
    ]
    (line, *_) = lines(rows)
    assert (line.n, line.left_out, line.met, line.recovery) == (1, 2, 1, None)
    assert lines([score(1, TIMEOUT, met=1)]) == [] and lines([]) == []


def test_episodes_that_never_met_the_fault_are_in_no_column() -> None:
    clean = [score(task) for task in range(4)]
    met = score(0, NO_OP, right=False, silent_failure=True, told="done", met=1, recovered=False, omitted=1)
    rows = [met, *(score(task, NO_OP, met=0, silent_failure=True, followed=2) for task in range(1, 4))]
    (line, *_) = lines([*clean, *rows])
    assert (line.n, line.met, line.unmet, line.left_out, line.silent) == (1, 1, 3, 0, 1)
    assert line.success.value == 0 and line.delta.value == 1
    assert side_effects(rows)[NO_OP] == {"omitted": 1}  # nothing that an unmet one did


def test_failures_are_told_apart() -> None:
    wrong = {"right": False, "silent_failure": True, "met": 1, "recovered": False}
    rows = [
        score(0, NO_OP, **wrong, told="done", omitted=1, repeated=0),  # type: ignore[arg-type]
        score(1, NO_OP, **wrong, told="unclear", omitted=0, repeated=2),  # type: ignore[arg-type]
        score(2, NO_OP, **wrong, told="failed", omitted=1, repeated=1),  # type: ignore[arg-type]
        score(3, NO_OP, told="done", omitted=0, repeated=1, met=1, recovered=True),
    ]
    (line, *_) = lines([*rows, *(score(task) for task in range(4))])
    assert line.silent == 3 and line.false_success == (1, 2)
    assert (line.omission, line.repetition) == (2, 2)


def test_every_kind_is_in_one_family() -> None:
    families = groups()
    assert set(families["explicit"]) | set(families["implicit"]) == set(KINDS)
    assert not set(families["explicit"]) & set(families["implicit"])
    assert families["explicit"] == EXPLICIT
