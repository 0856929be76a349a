"""What is scored behind the open port: in order, with its progress, and whatever happens on the way."""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from robustbench_tc.errors import UserError
from robustbench_tc.eval.leaderboard import behind
from robustbench_tc.eval.leaderboard.behind import Behind
from robustbench_tc.eval.leaderboard.board import Board
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.hub import HubStore
from robustbench_tc.eval.leaderboard.records import Checked, Submission
from robustbench_tc.eval.leaderboard.site import Boards
from robustbench_tc.eval.leaderboard.store import Store
from robustbench_tc.eval.leaderboard.worker import Job, Pool, score_again

from .conftest import RunOf
from .test_rebuild import listed

AGENTS = {"silent": "Alpha-3B", "apology": "Beta-7B", "name-biased": "Gamma-8B", "rambler": "Delta-1B"}


class InThisProcess(Pool):
    """Scores without a process of its own; `before` sees each job."""

    def __init__(self, asked: Asked, size: int = 2, before: Callable[[int], None] = lambda n: None) -> None:
        super().__init__(["false"], size)
        self.asked, self.before = asked, before
        self.begun: list[str] = []
        self.ended = False
        self._counting = threading.Lock()

    def run(self, job: Job) -> Checked:
        assert job.again is not None
        with self._counting:
            self.begun.append(job.again[1].id)
            n = len(self.begun)
        self.before(n)
        return score_again(*job.again, self.asked)

    def close(self) -> None:
        self.ended = True


@pytest.fixture(scope="module")
def full(asked: Asked, run_of: RunOf, tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("behind") / "results")
    for agent, name in AGENTS.items():
        listed(store, asked, run_of(agent), name)
    return store


@pytest.fixture
def boards(full: Store, asked: Asked, tmp_path: Path) -> Boards:
    """The boards of a copy without entries."""
    store = Store(tmp_path / "results")
    for one in full.submissions()[0]:
        store.path(one.id).mkdir()
        for path in full.path(one.id).iterdir():
            os.link(path, store.path(one.id) / path.name)
    made = Boards(store, {}, (asked.label, asked.fingerprint()))
    made.all()
    return made


def shown(boards: Boards) -> Board:
    """The board of the served dataset."""
    return next(board for board in boards.all().values() if board.fingerprint)


def computed(store: Store) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.entries.glob("*.json")}


def test_entries_are_made_in_order_with_progress_and_are_those_of_the_desk(
    boards: Boards, full: Store, asked: Asked
) -> None:
    told: list[str] = []
    pool, missing = InThisProcess(asked, 1), boards.missing()
    assert [one.submitted_at for one in missing] == sorted(one.submitted_at for one in missing)
    assert shown(boards).notice.startswith("4 submissions are still being scored")
    Behind(boards, told.append)._score(pool, missing)
    assert pool.begun == [one.id for one in missing]
    assert told == [f"scored {n} of 4: {one.id}" for n, one in enumerate(missing, 1)]
    assert computed(boards.store) == computed(full)
    boards.refresh(always=True)
    assert boards.missing() == [] and not shown(boards).notice
    assert list((boards.store.folder / "incoming").iterdir()) == []


def test_one_that_cannot_be_scored_is_left_out_with_its_reason_and_the_others_follow(
    boards: Boards, asked: Asked
) -> None:
    told: list[str] = []
    first, second, *others = boards.missing()
    (boards.store.path(first.id) / "predictions.parquet").unlink()
    (boards.store.path(first.id) / "predictions.parquet").write_bytes(b"PAR1")

    def before(n: int) -> None:
        if n == 2:
            raise OSError(28, "No space left on device")

    Behind(boards, told.append)._score(InThisProcess(asked, 1, before), boards.missing())
    assert "is left out: " in told[0] and "is not what was submitted" in told[0]
    assert "is left out: " in told[1] and "No space left" in told[1]
    assert all("\n" not in line and "Traceback" not in line for line in told) and len(told) == 4
    boards.refresh(always=True)
    assert boards.missing() == []  # nobody waits for them, and they are not tried again and again
    board = shown(boards)
    assert {row.id for row in board.rows} == {one.id for one in others} and not board.notice
    again = Boards(boards.store, {}, boards.served)
    again.all()
    assert {one.id for one in again.missing()} == {first.id, second.id}  # the next start tries


def test_killed_in_the_middle_the_next_start_makes_what_is_missing(
    boards: Boards, full: Store, asked: Asked
) -> None:
    assert asked.known and asked.by_id  # made before the fork
    for turn in (1, 2):
        child = os.fork()
        if child == 0:
            try:

                def before(n: int) -> None:
                    if n == 2:
                        os.kill(os.getpid(), signal.SIGKILL)

                Behind(boards, lambda line: None)._score(InThisProcess(asked, 1, before), boards.missing())
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status)
        there = computed(boards.store)
        assert len(there) == turn and there.items() <= computed(full).items()  # each is whole
        boards.refresh(always=True)
    pool = InThisProcess(asked, 2)
    missing = boards.missing()
    Behind(boards, lambda line: None)._score(pool, missing)
    assert sorted(pool.begun) == sorted(one.id for one in missing) and len(missing) == 2
    assert computed(boards.store) == computed(full)


def test_a_stop_ends_it_after_what_is_under_way(boards: Boards, asked: Asked) -> None:
    stop, told = threading.Event(), list[str]()
    pool = InThisProcess(asked, 1, lambda n: stop.set() if n == 2 else None)
    Behind(boards, told.append, stop)._score(pool, boards.missing())
    assert len(pool.begun) == 2 and len(computed(boards.store)) == 2


def test_the_pool_is_there_only_while_something_is_missing(
    boards: Boards, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(behind, "LOOK_S", 0.01)
    stop, pools = threading.Event(), list[InThisProcess]()

    def pool() -> Pool:
        pools.append(InThisProcess(asked))
        return pools[-1]

    made = Behind(boards, lambda line: None, stop)
    made.start()
    made.score_with(pool)
    try:
        _until(lambda: bool(pools) and pools[-1].ended and not boards.missing())
        assert len(computed(boards.store)) == len(AGENTS)
        n = len(pools)
        time.sleep(0.1)
        assert len(pools) == n
    finally:
        stop.set()


def test_a_hub_that_does_not_answer_is_asked_again_and_entries_go_there_together(
    boards: Boards, asked: Asked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(behind, "AGAIN_S", 0.01)
    monkeypatch.setattr(behind, "LOOK_S", 0.01)
    monkeypatch.setattr(behind, "TOGETHER", 3)
    tries, sent = list[int](), list[list[str]]()

    class Hub(HubStore):
        def sync(self) -> int:
            tries.append(1)
            if len(tries) < 3:
                raise UserError("acme/results: listing it: the Hub answered 500")
            self.synced = True
            return 4

        def publish_entries(self, ids: Sequence[str]) -> None:
            sent.append(list(ids))
            if len(sent) == 1:
                raise UserError("acme/results: storing it: the Hub answered 500")

    store = Hub(boards.store.folder, "acme/results")
    made = Boards(store, {}, boards.served)
    made.fetching = True
    made.all()
    told, stop = list[str](), threading.Event()
    work = Behind(made, told.append, stop)
    work.start()
    work.score_with(lambda: InThisProcess(asked, 1))
    try:
        _until(lambda: len(sent) == 2)
        assert len(tries) == 3 and [len(one) for one in sent] == [3, 1]
        monkeypatch.setattr(behind, "EVERY_S", 0.0)  # and from then on now and then
        _until(lambda: len(tries) >= 6)
        assert "fetched 4 more submissions from acme/results" in told
    finally:
        stop.set()
    assert sum("takes nothing until then" in line for line in told) == 2
    assert "fetched 4 submissions from acme/results" in told and "storing it" in " ".join(told)
    assert len(computed(store)) == 4


def _until(true: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_only_submissions_to_the_served_dataset_are_scored(boards: Boards) -> None:
    assert {type(one) for one in boards.missing()} == {Submission}
    other = Boards(boards.store, {}, ("9.9.9", "f" * 32))
    other.all()
    assert other.missing() == []
