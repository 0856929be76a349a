"""Lines of live scores, against figures worked out here, and what a live run says with them."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from robustbench_tc import api, schema, shown
from robustbench_tc.errors import UserError
from robustbench_tc.eval.live.score import LiveScore, write_scores
from robustbench_tc.eval.parse import READER_VERSION
from robustbench_tc.eval.record import RunRecord, Settings
from robustbench_tc.eval.stats.packs.live import groups, lines, side_effects
from robustbench_tc.eval.stats.screen import Screen
from robustbench_tc.io.numbers import counted


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


def screen_of(run: Path, **options: bool) -> Screen:
    """What a run says."""
    found = api.summary(run, **options)  # type: ignore[arg-type]
    assert isinstance(found, Screen)
    return found


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
    assert set(families["explicit"]) | set(families["implicit"]) == set(schema.BUILT_KINDS)
    assert not set(families["explicit"]) & set(families["implicit"])
    assert families["explicit"] == schema.EXPLICIT


# --- A live run says with them what a run of rows does


def live(folder: Path, scores: Sequence[LiveScore], model: str = "m", repeat: int = 1) -> Path:
    """A scored live run with these scores."""
    settings = Settings(
        fingerprint="f" * 32, model=model, mode="fc", backend="openai", decoding={}, prompt_version="1",
        repeat=repeat,
    )  # fmt: skip
    record = RunRecord(
        dataset="live", dataset_version=None, dataset_revision=None, settings=settings, live=True,
        expected=len(scores), reader=READER_VERSION,
    )  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "run.json").write_bytes(msgspec.json.encode(record))
    write_scores(scores, folder / "scores.parquet")
    return folder


def played(right: int, *, tasks: int = 30, met: int = 1) -> list[LiveScore]:
    """Tasks that all end well clean, and the first `right` of them with each of two faults."""
    faults = [
        score(task, code, right=task < right, met=met, recovered=task < right)
        for task in range(tasks)
        for code in (NO_OP, TIMEOUT)
    ]
    return [*(score(task) for task in range(tasks)), *faults]


def test_a_verdict_is_said_only_where_the_evidence_carries_it(tmp_path: Path) -> None:
    lost = screen_of(live(tmp_path / "lost", played(12)))
    assert lost.overview.answer.sentence.startswith("Loses 60 points in explicit, 60 in implicit")
    assert {one.word for one in lost.overview.answer.lines.values()} == {"loses"}
    kept = screen_of(live(tmp_path / "kept", played(30))).overview.answer
    assert [one.word for one in kept.lines.values()] == ["holds"] * 3 and "Keeps at least" in kept.sentence
    few = screen_of(live(tmp_path / "few", played(3, tasks=4))).overview.answer
    assert few.sentence.startswith("Cannot tell") and {one.word for one in few.lines.values()} == {
        "cannot tell"
    }
    assert few.sentence.endswith("ask more tasks.")  # repeats of four tasks are never ten
    first = shown.plain(lost.shown()).splitlines()
    assert len(first) <= 16 and "30 tasks, 90 episodes, all answered" in first[0]
    assert [line.split()[0] for line in first[5:9]] == ["clean", "all", "explicit", "implicit"]


@pytest.mark.parametrize("scores", [[score(task) for task in range(4)], played(0, tasks=4, met=0)])
def test_a_run_in_which_no_fault_was_met_is_a_live_run_all_the_same(
    tmp_path: Path, scores: list[LiveScore]
) -> None:
    run = live(tmp_path / "run", scores)
    found = screen_of(run, full=True)
    text = shown.plain(found.shown())
    assert f"4 tasks, {counted(len(scores), 'episode')}" in text and found.overview.live
    assert [table.name for table in found.overview.packs] == ["live_costs", "live_told", "live_side_effects"]
    assert found.overview.packs[0].rows[0][:2] == ("clean", "4 / 4")
    assert "observation" not in text and "realistic_typos" not in text
    api.report([run], tmp_path / "out", browser=False)
    assert "Cost of each fault" in (tmp_path / "out" / "report.html").read_text()


def test_its_drop_is_the_delta_of_its_table(tmp_path: Path) -> None:
    found = screen_of(live(tmp_path / "run", played(12))).overview
    of_table = {line.name: line for line in found.faults}
    for name, one in found.answer.lines.items():
        assert one.drop.value == pytest.approx(of_table[name].delta.value)
        assert (one.drop.low, one.drop.high) == pytest.approx(
            (of_table[name].delta.low, of_table[name].delta.high)
        )
        assert one.after == pytest.approx(of_table[name].success.value)


def test_who_never_met_a_fault_is_in_no_pair_with_the_clean_episode_but_beside_another_run(
    tmp_path: Path,
) -> None:
    unmet = live(tmp_path / "unmet", played(0, met=0))
    answer = screen_of(unmet).overview.answer
    assert answer.lines == {} and answer.sentence.startswith("Cannot tell: no episode met its fault")
    half = [one for one in played(12) if one.type_code != TIMEOUT]
    half += [one for one in played(0, met=0) if one.type_code == TIMEOUT]
    lines = screen_of(live(tmp_path / "half", half)).overview.answer.lines
    assert lines.keys() == {"all", "implicit"} and lines["implicit"].word == "loses"
    found = api.compare(unmet, live(tmp_path / "other", played(30), model="n"))
    assert found.overall["all"].n == 60 and "n is better than m on faulted rows" in found.verdict


def test_gate_and_failures_take_it(tmp_path: Path) -> None:
    lost, kept = live(tmp_path / "lost", played(12)), live(tmp_path / "kept", played(30))
    assert (api.gate(lost).outcome, api.gate(kept).outcome) == ("fail", "pass")
    assert {line.name for line in api.gate(lost, against=kept).lines} == {"clean", "explicit", "implicit"}
    found = api.failures(lost, type_code=NO_OP)
    assert len(found.found) == 18 and "18 wrong episodes" in shown.plain(found.shown())
    assert not api.failures(kept).found


def test_an_episode_without_an_answer_is_missing(tmp_path: Path) -> None:
    scores = played(12)
    scores[0] = msgspec.structs.replace(scores[0], success=None, ended="request_error")
    run = live(tmp_path / "run", scores)
    with pytest.raises(UserError, match="1 of 90 rows have no answer"):
        screen_of(run)
    assert screen_of(run, allow_missing=True).overview.missing == 1
