"""Edited datasets and episodes: one line each, nothing is begun, no figure of what no journal says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from robustbench_tc import schema
from robustbench_tc.api import evaluate, report, score, show
from robustbench_tc.eval import inputs, record
from robustbench_tc.eval.live.episodes import read_episodes
from robustbench_tc.eval.live.show import show_episode
from robustbench_tc.schema import (
    At,
    Episode,
    Fault,
    LiveRow,
    Message,
    Reply,
    Step,
    Turn,
)
from robustbench_tc.sql.query import Inputs, marts, query
from robustbench_tc.worlds.handle import load_file

from ...conftest import Done
from ...refusals import refuses
from . import purses

WORLDS = [str(purses.FILE)]

TASK: dict[str, tuple[dict[str, Any], str]] = {
    "state is a text": ({"initial_state": "x"}, "opens no world"),
    "state is null": ({"initial_state": None}, "opens no world"),
    "a fault": ({"fault": Fault(At(write=1), "silent_no_op")}, "a clean row has no fault"),
    "no turns": ({"turns": ()}, "no turns"),
    "no gold": ({"golden_calls": ()}, "golden_calls for 0"),
    "silent user": ({"turns": (Turn(()),), "golden_calls": ((),)}, "needs messages of the user"),
    "another speaker": (
        {"turns": (Turn((Message("assistant", "Hi"),)),), "golden_calls": ((),)},
        "needs messages of the user",
    ),
    "unknown tool added": (
        {"turns": (Turn((Message("user", "Hi"),), ("nope\n",)),), "golden_calls": ((),)},
        r"adds tools that the row has not: \['nope\\n'\]",
    ),
}


def _pair() -> tuple[LiveRow, LiveRow]:
    clean = next(row for row in purses.rows() if row.clean)
    return clean, purses.faulted(clean, Fault(At(write=1), "silent_no_op"))


def lacking(kind: Any, repeat: Any = "once") -> dict[str, Any]:
    """A fault that lacks what its kind needs, in a row of its own kind."""
    fault = Fault(At(write=1), kind, repeat)
    return {"fault": fault, "type_code": f"live_{kind}", "id": f"{_pair()[0].clean_id}::live_{kind}"}


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "no such tool": ({"fault": Fault(At(tool="nope"), "silent_no_op")}, "stands at a tool"),
    "another kind": ({"fault": Fault(At(write=1), "stale_read")}, "not of type live_silent_no_op"),
    "never": ({"fault": Fault(At(write=1), "silent_no_op", repeat=-5)}, "repeats -5 times"),
    "no leaf": (lacking("fabricated_leaf"), "needs 'path'"),
    "no tool": (lacking("prerequisite"), "needs 'tool'"),
    "no text": (lacking("injected_instruction"), "needs 'text'"),
    "old for ever": (lacking("stale_read", "always"), "shows an old state for ever"),
    "names no tool": ({"fault": Fault(At(write=1), "silent_no_op", tool="nope")}, "names a tool"),
    "another registry": ({"tools": ()}, "differs from its clean row"),
    "another id": ({"id": "../../x"}, "its id is not"),
}


def test_a_pair_as_it_is_built_is_taken(tmp_path: Path) -> None:
    assert inputs.load_live(str(purses.write(tmp_path / "data", _pair()))).rows == _pair()


@pytest.mark.parametrize("edit", [*TASK, *FAULTS])
def test_rows_that_cannot_be_played_are_refused(tmp_path: Path, edit: str) -> None:
    """A task itself, and a faulted row that does not fit its task."""
    changes, why = {**TASK, **FAULTS}[edit]
    clean, faulted = (msgspec.structs.replace(row, **changes) for row in _pair())
    rows = [clean if edit in TASK else _pair()[0], faulted]
    refuses(why, inputs.load_live, str(purses.write(tmp_path / "data", rows)))


def test_what_takes_no_live_run_says_so(tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    """Commands of the benchmark; and every mart without rows for it, which says which have them."""
    data, run = purses.write(tmp_path / "data", _pair()), tmp_path / "run"
    evaluate(data, agent="oracle", worlds=WORLDS, out=run)
    assert rbtc("score", run, "--worlds", purses.FILE).code == 0
    for file in ("scores.parquet", "episodes.parquet"):
        assert "is a live run" in rbtc("audit", run / file, "--dataset", data).refusal
    inputs_of = Inputs(runs=[str(run)])
    for name, mart in marts().items():
        if mart.needs == "live":
            query(name, inputs_of)
            continue
        refuses(r"live runs; live_recovery, live_side_effects have them", query, name, inputs_of)


def test_a_world_that_exits_when_it_is_imported_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "bye.py"
    file.write_text("raise SystemExit('bye')\n")
    refuses("cannot be imported: SystemExit: bye", load_file, file)


# --- Every field of an episode edited in turn: no figure is made of what the journal does not say


OTHER: dict[str, Any] = {
    "id": "purse_2::clean",
    "clean_id": "purse_2",
    "type_code": "live_stale_read",
    "world": "orders",
    "model": "other",
    "mode": "prompt",
    "repeat": 1,
    "row_hash": "0" * 16,
    "ended": "request_error",
    "error": "x",
    "noticed": ("retry",),
}
REPLY: dict[str, Any] = {
    "turn": 1,
    "text": "I could not do it.",
    "tool_calls": [{"id": "c", "name": "x", "arguments": "{}"}],
    "answered": True,
    "prompt_tokens": 10**6,
    "completion_tokens": 10**6,
    "latency_s": 77.0,
    "finish_reason": "other",
    "requests": 2,
}
STEP: dict[str, Any] = {
    "name": "other",
    "arguments": {"other": 1},
    "text": "other",
    "executed": 2,
    "met": True,
    "fault": 1,
    "true_text": "other",
    "problem": "timeout",
    "tool": 1,
    "defence": "look",
    "told": "other",
}


def _reply(one: Episode, **changes: Any) -> Episode:
    first = msgspec.structs.replace(one.replies[0], **changes)
    return msgspec.structs.replace(one, replies=(first, *one.replies[1:]))


def _step(one: Episode, **changes: Any) -> Episode:
    steps = one.replies[0].steps
    return _reply(one, steps=(msgspec.structs.replace(steps[0], **changes), *steps[1:]))


def _edit(
    change: Callable[..., Episode], name: str, value: object
) -> tuple[str, Callable[[Episode], Episode]]:
    return f"{change.__name__} {name}", lambda one: change(one, **{name: value})


EDITS: dict[str, Callable[[Episode], Episode]] = {
    **dict(_edit(msgspec.structs.replace, name, value) for name, value in OTHER.items()),
    **dict(_edit(_reply, name, value) for name, value in REPLY.items()),
    **dict(_edit(_step, name, value) for name, value in STEP.items()),
    "no steps": lambda one: _reply(one, steps=()),
    "no replies": lambda one: msgspec.structs.replace(one, replies=()),
    "a reply less": lambda one: msgspec.structs.replace(one, replies=one.replies[:-1]),
}


def test_every_field_is_edited() -> None:
    assert {*OTHER, "replies"} == set(Episode.__struct_fields__)
    assert {*REPLY, "steps"} == set(Reply.__struct_fields__) and set(STEP) == set(Step.__struct_fields__)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("live")
    data = purses.write(root / "data", [next(row for row in purses.rows() if row.clean)])
    evaluate(data, agent="oracle", worlds=WORLDS, out=root / "run")
    score(root / "run", worlds=WORLDS)
    return root / "run"


def _leave(run: Path, episodes: list[Episode]) -> None:
    """The file as anybody can write it."""
    table = schema.arrow_table(episodes, Episode)
    pq.write_table(table, run / record.EPISODES)


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_refused_in_a_line(run: Path, tmp_path: Path, edit: str) -> None:
    whole = (run / record.EPISODES).read_bytes()
    (one,) = read_episodes(run)
    changed = EDITS[edit](one)
    assert changed != one
    try:
        _leave(run, [changed])
        for look in (
            lambda: score(run, worlds=WORLDS),
            lambda: show(run, changed.id, repeat_number=changed.repeat, worlds=WORLDS),
            lambda: report([run], tmp_path / "out", worlds=WORLDS),
        ):
            raised = refuses(".", look)
            assert "\n" not in raised and len(raised) < 700
    finally:
        (run / record.EPISODES).write_bytes(whole)
    assert show_episode(run, one.id, worlds=WORLDS).scores.success


@pytest.mark.parametrize("times", [0, 2])
def test_an_episode_twice_or_left_out_is_refused(run: Path, tmp_path: Path, times: int) -> None:
    whole = (run / record.EPISODES).read_bytes()
    episodes = read_episodes(run)
    try:
        _leave(run, episodes * times)
        refuses(
            "occurs twice" if times else "has 0 episodes, and run",
            report,
            [run],
            tmp_path / "out",
            worlds=WORLDS,
        )
        refuses("occurs twice" if times else "has 0 episodes", score, run, worlds=WORLDS)
    finally:
        (run / record.EPISODES).write_bytes(whole)
