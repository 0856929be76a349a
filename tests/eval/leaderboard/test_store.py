"""The results folder: a submission is wholly there or not at all, whatever is killed when."""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.errors import UserError
from robustbench_tc.eval.leaderboard.rebuild import load, write_boards
from robustbench_tc.eval.leaderboard.records import Entry, Submission, Verification
from robustbench_tc.eval.leaderboard.store import FILES, Store

from .conftest import RunOf
from .few import entry, submission

GOOD: Entry = entry({"CD": [1, 1, 0]})


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def added(store: Store, number: int, run: Path, model: str = "one") -> Submission:
    one = submission(number, model)
    with store.locked():
        store.add(one, run, GOOD)
    return one


def test_what_is_added_comes_back(tmp_path: Path, run_of: RunOf) -> None:
    store = Store(tmp_path / "results")
    before = store.revision()
    one = added(store, 1, run_of("oracle"))
    assert store.submissions() == ([one], [])
    assert store.entry(one.id) == GOOD and store.submission(one.id) == one
    assert store.revision() != before
    assert list((store.folder / "incoming").iterdir()) == []
    with pytest.raises(UserError, match="no submission"):
        store.submission("x")


def test_nothing_is_overwritten(tmp_path: Path, run_of: RunOf) -> None:
    store = Store(tmp_path / "results")
    one = added(store, 1, run_of("oracle"))
    before = files(store.path(one.id))
    with pytest.raises(OSError):
        added(store, 1, run_of("silent"), model="two")
    assert files(store.path(one.id)) == before


def test_verifications_and_boards_are_beside_the_submissions(tmp_path: Path, run_of: RunOf) -> None:
    store = Store(tmp_path / "results")
    one = added(store, 1, run_of("oracle"))
    verification = Verification(
        submission=one.id,
        verified_at="2026-11-21",
        by="maintainer",
        rows=3,
        agree=3,
        submitted=0.5,
        repeated=0.5,
        p=1.0,
        predictions_sha256="0" * 64,
        package_version="0.1.0",
    )
    with store.locked():
        store.verify(verification)
    assert store.verifications() == ({one.id: verification}, [])
    (store.folder / "verifications" / "torn.json").write_text("{")
    found, [damaged] = store.verifications()
    assert found == {one.id: verification} and damaged.startswith("verification torn is left out")
    assert write_boards(store, load(store, {})) == ("1.0.0-ffffffff", "paper")
    assert write_boards(store, load(store, {})) == ()


class _Dies:
    """Lets a call through `after` times in all, counting every wrapped function, then ends the process."""

    def __init__(self, after: int) -> None:
        self.left = after

    def wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self.left -= 1
            return call(*arguments, **options)

        return wrapped


def _add_and_die(folder: Path, run: Path, after: int) -> bool:
    """Adds a submission in a process that is killed before its `after`-th file operation; if it finished."""
    child = os.fork()
    if child == 0:
        try:
            dies = _Dies(after)
            shutil.copyfile = dies.wrap(shutil.copyfile)
            os.fsync = dies.wrap(os.fsync)
            for name in ("rename", "replace", "write_bytes", "mkdir"):
                setattr(Path, name, dies.wrap(getattr(Path, name)))
            store = Store(folder)
            with store.locked():
                store.add(submission(1, "one"), run, GOOD)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return not os.WIFSIGNALED(status)


def test_killed_at_any_file_operation_a_submission_is_wholly_there_or_absent(
    tmp_path: Path, run_of: RunOf
) -> None:
    run, outcomes = run_of("oracle"), []
    for after in range(100):
        folder = tmp_path / f"results-{after}"
        finished = _add_and_die(folder, run, after)
        store = Store(folder)
        found, damaged = store.submissions()
        assert damaged == []
        outcomes.append(len(found))
        for one in found:
            there = files(store.path(one.id))
            assert set(there) == set(FILES["core"])
            assert there["predictions.parquet"] == (run / "predictions.parquet").read_bytes()
            assert msgspec.json.decode(there["record.json"], type=Submission) == submission(1, "one")
        board = load(store, {})  # the board opens
        assert len(board) == 1 + len(found)
        if not found:  # and the submission can be made again
            added(store, 1, run)
            assert len(store.submissions()[0]) == 1
        store.sweep(-1)
        assert list((folder / "incoming").iterdir()) == []
        if finished:
            break
    assert finished and len(outcomes) > 12
    assert outcomes == sorted(outcomes) and {0, 1} == set(outcomes)
