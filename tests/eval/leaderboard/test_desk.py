"""Who may submit, how often, and that a submission is listed once."""

import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.desk import Desk
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.refusal import Refused
from robustbench_tc.eval.leaderboard.store import Store, current
from robustbench_tc.eval.leaderboard.submitting import Form, Submitter

from .bad_files import BAD
from .conftest import RunOf
from .desks import ADDRESS, InProcess, checked, listed

LIMITS = Limits(file_bytes=4_000_000, per_day=3, pending=2, checks_per_listing=9)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 20, 23, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def desk(tmp_path: Path, asked: Asked, clock: Clock) -> Desk:
    return Desk(Store(tmp_path / "results"), InProcess(asked, LIMITS), LIMITS, clock)


def refusal(desk: Desk, run: Path, user: str = "ann", name: str | None = None) -> str:
    """Why a run is not taken, at once or after it was read."""
    try:
        found, ticket = checked(desk, run, user, name=name)
    except Refused as refused:
        return str(refused)
    assert found.refused is not None
    with pytest.raises(Refused):
        desk.list(user, ticket)
    return found.refused.text


def test_a_listed_submission_lies_in_the_store_with_its_raw_answers(desk: Desk, run_of: RunOf) -> None:
    found = listed(desk, run_of("oracle"), name="Alpha-3B")
    [one], damaged = desk.store.submissions()
    assert (one.id, one.user, one.model, one.params_b, one.family) == (found, "ann", "Alpha-3B", 3.0, "Alpha")
    assert not damaged and found.startswith("20261120-")
    folder = desk.store.path(found)
    assert sorted(path.name for path in folder.iterdir()) == [
        "predictions.parquet",
        "record.json",
        "run.json",
    ]


def test_the_same_ticket_and_the_same_run_are_listed_once(desk: Desk, run_of: RunOf, clock: Clock) -> None:
    run = run_of("oracle")
    _, ticket = checked(desk, run)
    assert desk.list("ann", ticket) == desk.list("ann", ticket)
    clock.now += timedelta(days=1)
    again = listed(desk, run)
    assert [one.id for one in desk.store.submissions()[0]] == [again]


def test_twenty_threads_with_one_ticket_list_it_once(desk: Desk, run_of: RunOf) -> None:
    run = run_of("oracle")
    _, ticket = checked(desk, run)
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(desk.list("ann", ticket).id)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20 and len(set(found)) == 1
    assert len(desk.store.submissions()[0]) == 1


def test_one_submission_per_model_and_day(desk: Desk, run_of: RunOf, clock: Clock) -> None:
    first = listed(desk, run_of("oracle"), name="Alpha-3B")
    assert "one submission per model and day" in refusal(desk, run_of("silent"), name="Alpha-3B")
    listed(desk, run_of("silent"), name="Beta-3B")
    listed(desk, run_of("silent"), user="bob", name="Alpha-3B")
    clock.now += timedelta(hours=1)  # past midnight, UTC
    second = listed(desk, run_of("silent"), name="Alpha-3B")
    newer = current(desk.store.submissions()[0])
    assert newer[first] == second and newer[second] is None
    assert sum(value is None for value in newer.values()) == 3


def test_a_day_takes_so_many_of_one_user(desk: Desk, run_of: RunOf) -> None:
    for name in ("A-1B", "B-1B", "C-1B"):
        listed(desk, run_of("oracle"), name=name)
    assert "all a day takes" in refusal(desk, run_of("oracle"), name="D-1B")
    listed(desk, run_of("oracle"), user="bob", name="D-1B")


def test_of_two_at_once_one_is_the_last_of_the_day(desk: Desk, run_of: RunOf) -> None:
    tickets = []
    for agent in ("oracle", "silent"):
        _, ticket = checked(desk, run_of(agent), name="Alpha-3B")
        tickets.append(ticket)
    desk.list("ann", tickets[0])
    with pytest.raises(Refused, match="one submission per model and day"):
        desk.list("ann", tickets[1])
    assert len(desk.store.submissions()[0]) == 1


def test_a_report_is_shown_even_where_the_quota_is_used_up(desk: Desk, run_of: RunOf) -> None:
    listed(desk, run_of("oracle"), name="Alpha-3B")
    found, _ = checked(desk, run_of("silent"), name="Alpha-3B")
    assert found.entry is not None and found.refused is not None and found.refused.code == "quota"


def test_a_ticket_is_its_users_and_names_no_path(desk: Desk, run_of: RunOf) -> None:
    run = run_of("oracle")
    _, ticket = checked(desk, run)
    with pytest.raises(Refused, match="another user"):
        desk.list("bob", ticket)
    for made_up in ("", "x", "../submissions", f"../../{ticket}x", "/etc/passwd", "a\0b"):
        with pytest.raises(Refused, match="no longer here"):
            desk.list("ann", made_up)


def test_names_that_look_like_listed_ones_are_refused(desk: Desk, run_of: RunOf) -> None:
    listed(desk, run_of("oracle"), name="Alpha-3B")
    assert "looks like 'Alpha-3B'" in refusal(desk, run_of("silent"), name="A1pha-3B")
    assert "looks like 'Alpha-3B'" in refusal(desk, run_of("silent"), user="bob", name="alpha_3b")


def test_files_beyond_the_bound_and_links_are_not_copied(desk: Desk, run_of: RunOf, tmp_path: Path) -> None:
    [large] = [bad for bad in BAD if bad.name == "too large"]
    upload = large.make(run_of("oracle"), tmp_path)
    (tmp_path / "link").symlink_to(run_of("oracle") / "predictions.parquet")
    ann = Submitter("ann", ADDRESS)
    for path, says in (
        (upload.predictions, large.says),
        (tmp_path / "link", "did not arrive"),
        (None, "choose"),
    ):
        with pytest.raises(Refused, match=says) as refused:
            desk.place(ann, path, upload.record, Form())
        assert refused.value.step == "size"
    assert list((desk.store.folder / "incoming").iterdir()) == []


@pytest.mark.parametrize("size", ["0", "-1", "nan", "inf", "1e9", "seven", "<b>"])
def test_parameters_are_a_sensible_number(desk: Desk, run_of: RunOf, size: str) -> None:
    with pytest.raises(Refused, match="in billions"):
        checked(desk, run_of("oracle"), params=size)


def test_parameters_count_where_the_name_is_silent(desk: Desk, run_of: RunOf) -> None:
    for name, typed, meant in (("Alpha", "7B", 7.0), ("Beta-3B", "70", 3.0), ("Gamma", " ", None)):
        found, _ = checked(desk, run_of("oracle"), name=name, params=typed)
        assert found.submission is not None and found.submission.params_b == meant


def test_what_is_stated_beside_an_upload_is_listed_with_it(desk: Desk, run_of: RunOf) -> None:
    said = {"card": "acme/alpha", "licence": "mit", "weights": "open", "price_in": "1", "price_out": "2.5"}
    found, ticket = checked(desk, run_of("oracle"), name="Alpha-3B", **said)
    assert found.refused is None
    one = desk.list("ann", ticket)
    assert (one.card, one.licence, one.weights) == ("https://huggingface.co/acme/alpha", "mit", "open")
    assert (one.price_in, one.price_out) == (1.0, 2.5)


def test_uploads_that_nobody_lists_make_room(desk: Desk, run_of: RunOf) -> None:
    for name in ("A-1B", "B-1B", "C-1B"):
        checked(desk, run_of("oracle"), name=name)
    assert len(list((desk.store.folder / "incoming").iterdir())) == LIMITS.pending
    desk.store.sweep(-1)
    assert list((desk.store.folder / "incoming").iterdir()) == []


def test_a_damaged_submission_is_left_out_and_named(desk: Desk, run_of: RunOf) -> None:
    found = listed(desk, run_of("oracle"))
    folder = desk.store.path(found)
    shutil.copytree(folder, folder.with_name("20261120-copied"))
    (folder.parent / "20261120-empty").mkdir()
    one = msgspec.json.decode((folder / "record.json").read_bytes())
    torn = folder.with_name("20261120-torn")
    torn.mkdir()
    (torn / "record.json").write_text(str(one)[:40])
    submissions, damaged = desk.store.submissions()
    assert [one.id for one in submissions] == [found]
    assert len(damaged) == 3 and all("is left out" in line for line in damaged)
