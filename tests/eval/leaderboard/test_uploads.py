"""Uploads in parts: offsets, takeovers, bounds, and whose they are."""

import os
import shutil
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.problem import Problem
from robustbench_tc.eval.leaderboard.store import Store
from robustbench_tc.eval.leaderboard.submitting import Form, Submitter
from robustbench_tc.eval.leaderboard.uploads import Announced, Uploads

LIMITS = Limits(file_bytes=10_000, record_bytes=1_000, uploads_of_user=3, uploads_of_address=5, uploads=8)
ANN, BOB = Submitter("ann", "1.1.1.1"), Submitter("bob", "2.2.2.2")
PREDICTIONS, RUN = b"predictions" * 500, b"{}" * 30


def of(content: bytes) -> Announced:
    return Announced(len(content), sha256(content).hexdigest())


FILES = {"predictions": of(PREDICTIONS), "run": of(RUN)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


@pytest.fixture
def uploads(store: Store) -> Uploads:
    return Uploads(store, LIMITS)


def problem(act: Callable[..., Any], *given: Any) -> Problem:
    with pytest.raises(Problem) as found:
        act(*given)
    return found.value


def send(uploads: Uploads, upload_id: str, name: str, content: bytes, part: int = 1000) -> None:
    for offset in range(0, len(content), part):
        number = uploads.begin("ann", upload_id, name, offset, None)
        uploads.append(upload_id, name, number, content[offset : offset + part], len(content))


def arrived(uploads: Uploads, upload_id: str) -> None:
    send(uploads, upload_id, "predictions", PREDICTIONS)
    send(uploads, upload_id, "run", RUN)


def test_what_arrived_in_parts_is_what_the_desk_gets(uploads: Uploads) -> None:
    upload_id = uploads.create(ANN, FILES, Form(name="A"))
    arrived(uploads, upload_id)
    seen = []

    def place(upload: Path, run: Path) -> str:
        seen.append((upload.read_bytes(), run.read_bytes()))
        return "ticket"

    assert uploads.hand_over("ann", upload_id, place).ticket == "ticket"
    assert uploads.hand_over("ann", upload_id, place).ticket == "ticket"
    assert seen == [(PREDICTIONS, RUN)]
    assert problem(uploads.begin, "ann", upload_id, "run", 0, None).status == 409


def test_the_same_announcement_is_the_same_upload_also_after_a_restart(
    store: Store, uploads: Uploads
) -> None:
    first = uploads.create(ANN, FILES, Form(name="A"))
    number = uploads.begin("ann", first, "predictions", 0, None)
    uploads.append(first, "predictions", number, PREDICTIONS[:700], len(PREDICTIONS))
    again = Uploads(store, LIMITS)
    assert again.create(ANN, FILES, Form(name="A")) == first
    assert again.received(first) == {"predictions": 700, "run": 0}
    assert again.create(ANN, FILES, Form(name="B")) != first
    assert again.create(BOB, FILES, Form(name="A")) != first


def test_a_newer_request_takes_over_and_the_older_one_writes_no_more(uploads: Uploads) -> None:
    upload_id = uploads.create(ANN, FILES, Form())
    old = uploads.begin("ann", upload_id, "predictions", 0, None)
    uploads.append(upload_id, "predictions", old, PREDICTIONS[:100], len(PREDICTIONS))
    new = uploads.begin("ann", upload_id, "predictions", 100, None)
    assert problem(uploads.append, upload_id, "predictions", old, b"x" * 9, 10**6).extra == {"received": 100}
    assert uploads.append(upload_id, "predictions", new, PREDICTIONS[100:300], len(PREDICTIONS)) == 300


@pytest.mark.parametrize(("offset", "length", "status"), [(1, None, 409), (10**12, 5, 409), (0, 5501, 413)])
def test_offsets_and_lengths_are_those_of_what_was_announced(
    uploads: Uploads, offset: int, length: int | None, status: int
) -> None:
    upload_id = uploads.create(ANN, FILES, Form())
    found = problem(uploads.begin, "ann", upload_id, "predictions", offset, length)
    assert found.status == status and found.extra == {"received": 0}


def test_no_more_arrives_than_was_announced(uploads: Uploads) -> None:
    upload_id = uploads.create(ANN, FILES, Form())
    number = uploads.begin("ann", upload_id, "run", 0, None)
    assert problem(uploads.append, upload_id, "run", number, b"x" * 61, 60).status == 413
    assert uploads.received(upload_id)["run"] == 0


def test_incomplete_or_other_bytes_are_not_handed_over(uploads: Uploads) -> None:
    upload_id = uploads.create(ANN, FILES, Form())
    send(uploads, upload_id, "predictions", PREDICTIONS)
    never: Callable[[Path, Path], str] = lambda upload, run: pytest.fail("it was handed over")  # noqa: E731
    found = problem(uploads.hand_over, "ann", upload_id, never)
    assert found.status == 409 and found.extra["received"] == {"predictions": 5500, "run": 0}
    send(uploads, upload_id, "run", b"!" * 60)
    found = problem(uploads.hand_over, "ann", upload_id, never)
    assert found.status == 422 and "sha256" in str(found)
    assert uploads.received(upload_id) == {"predictions": 5500, "run": 0}
    send(uploads, upload_id, "run", RUN)
    assert uploads.hand_over("ann", upload_id, lambda upload, run: "ticket").ticket


@pytest.mark.parametrize(
    "made_up", ["", "x", "..", "../submissions", "a" * 24, "/etc/passwd", "a\0" * 12, "A" * 10**4]
)
def test_made_up_and_other_peoples_uploads_are_not_there(uploads: Uploads, made_up: str) -> None:
    mine = uploads.create(ANN, FILES, Form())
    said = {str(problem(uploads.find, "ann", made_up)), str(problem(uploads.find, "bob", mine))}
    said.add(str(problem(uploads.begin, "bob", mine, "predictions", 0, None)))
    said.add(str(problem(uploads.hand_over, "bob", mine, lambda upload, run: "ticket")))
    assert len(said) == 1 and "no such upload" in said.pop()


@pytest.mark.parametrize(
    ("files", "status"),
    [
        ({}, 422),
        ({"predictions": of(b"x")}, 422),
        ({**FILES, "../run": of(b"x")}, 422),
        ({**FILES, "run": Announced(0, "0" * 64)}, 413),
        ({**FILES, "run": Announced(-5, "0" * 64)}, 413),
        ({**FILES, "predictions": Announced(10_001, "0" * 64)}, 413),
        ({**FILES, "run": Announced(5, "0" * 63)}, 422),
        ({**FILES, "run": Announced(5, "../" + "0" * 61)}, 422),
    ],
)
def test_an_announcement_is_bounded(
    store: Store, uploads: Uploads, files: dict[str, Announced], status: int
) -> None:
    assert problem(uploads.create, ANN, files, Form()).status == status
    assert list((store.folder / "incoming").iterdir()) == []


def test_a_hundred_at_once_are_bounded_for_a_user_an_address_and_all(store: Store, uploads: Uploads) -> None:
    def announce(number: int) -> None:
        who = Submitter(f"u{number % 20}", f"1.1.1.{number % 4}")
        try:
            uploads.create(who, FILES, Form(name=str(number)))
        except Problem as refusal:
            said.append(refusal)

    said: list[Problem] = []
    threads = [threading.Thread(target=announce, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list((store.folder / "incoming").iterdir())) == LIMITS.uploads == 100 - len(said)
    assert {one.status for one in said} <= {429, 503} and all(one.wait_s for one in said)


def test_an_upload_that_stands_still_makes_room(store: Store) -> None:
    moment = [0.0]
    uploads = Uploads(store, LIMITS, lambda: moment[0])
    made = [uploads.create(ANN, FILES, Form(name=str(number))) for number in range(3)]
    for number, upload_id in enumerate(made):
        os.utime(store.folder / "incoming" / upload_id, (number, number))
    assert problem(uploads.create, ANN, FILES, Form(name="4")).status == 429
    moment[0] = LIMITS.upload_idle_s + 0.5
    uploads.create(ANN, FILES, Form(name="4"))
    assert problem(uploads.find, "ann", made[0]).status == 404
    assert uploads.find("ann", made[1])


def test_a_full_disk_is_a_line(store: Store, uploads: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 0))
    found = problem(uploads.create, ANN, FILES, Form())
    assert found.status == 507 and "no room" in str(found)


def test_a_forgotten_ticket_is_taken_back_and_bytes_are_let_go(uploads: Uploads) -> None:
    upload_id = uploads.create(ANN, FILES, Form())
    arrived(uploads, upload_id)
    sent = uploads.hand_over("ann", upload_id, lambda upload, run: "one")
    uploads.take_back(upload_id, sent)
    assert uploads.hand_over("ann", upload_id, lambda upload, run: "two").ticket == "two"
    uploads.settle(upload_id)
    assert uploads.received(upload_id) == {"predictions": 0, "run": 0}
    assert uploads.find("ann", upload_id).ticket == "two"


def test_a_damaged_note_is_no_upload(store: Store, uploads: Uploads) -> None:
    upload_id = uploads.create(ANN, FILES, Form())
    (store.folder / "incoming" / upload_id / "sent.json").write_text('{"user":')
    assert problem(uploads.find, "ann", upload_id).status == 404
    assert uploads.create(ANN, FILES, Form()) != upload_id
