"""Every field of an episode edited in turn: no figure is made of what the journal does not say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from robustbench_tc import schema
from robustbench_tc.column_types import arrow_schema, in_struct
from robustbench_tc.errors import UserError
from robustbench_tc.eval.live import record
from robustbench_tc.eval.live.after import score_live, show_episode
from robustbench_tc.eval.live.evaluate import run_live
from robustbench_tc.eval.live.report import report_live
from robustbench_tc.io import parquet
from robustbench_tc.live import Episode, Reply, Step

from ...refusals import refuses
from . import purses

WORLD = [str(purses.FILE)]

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


def _episode(one: Episode, **changes: Any) -> Episode:
    return msgspec.structs.replace(one, **changes)


EDITS: dict[str, Callable[[Episode], Episode]] = {
    **dict(_edit(_episode, name, value) for name, value in OTHER.items()),
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
    run_live(data, agent="oracle", worlds=WORLD, out=root / "run")
    score_live(root / "run", worlds=WORLD)
    return root / "run"


def _leave(run: Path, episodes: list[Episode]) -> None:
    """The file as anybody can write it."""
    table = parquet.table(schema.columns(episodes, Episode), arrow_schema(in_struct(Episode)))
    pq.write_table(table, run / record.EPISODES)


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_refused_in_a_line(run: Path, tmp_path: Path, edit: str) -> None:
    whole = (run / record.EPISODES).read_bytes()
    (one,) = record.open_run(run).episodes()
    changed = EDITS[edit](one)
    assert changed != one
    try:
        _leave(run, [changed])
        for look in (
            lambda: score_live(run, worlds=WORLD),
            lambda: show_episode(run, changed.id, repeat=changed.repeat, worlds=WORLD),
            lambda: report_live(run, tmp_path / "out", worlds=WORLD),
        ):
            with pytest.raises(UserError) as raised:
                look()
            assert "\n" not in str(raised.value) and len(str(raised.value)) < 700
    finally:
        (run / record.EPISODES).write_bytes(whole)
    assert show_episode(run, one.id, worlds=WORLD).scores.success


@pytest.mark.parametrize("times", [0, 2])
def test_an_episode_twice_or_left_out_is_refused(run: Path, tmp_path: Path, times: int) -> None:
    whole = (run / record.EPISODES).read_bytes()
    episodes = record.open_run(run).episodes()
    try:
        _leave(run, episodes * times)
        refuses(
            "occurs twice" if times else "has 0 episodes, and live_run",
            report_live,
            run,
            tmp_path / "out",
            worlds=WORLD,
        )
        refuses("was changed since rbtc wrote it", score_live, run, worlds=WORLD)
    finally:
        (run / record.EPISODES).write_bytes(whole)
