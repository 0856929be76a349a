"""Who is read next, who has to wait, and who is told to come again."""

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_tc.eval.leaderboard.desk import Desk
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.records import Checked, Step
from robustbench_tc.eval.leaderboard.refusal import Refused
from robustbench_tc.eval.leaderboard.store import Store
from robustbench_tc.eval.leaderboard.submitting import LOCAL, Form, Progress, Submitter, stated
from robustbench_tc.eval.leaderboard.turns import Turns
from robustbench_tc.eval.leaderboard.worker import Job

LIMITS = Limits(waiting_per_account=3, waiting_per_address=5, waiting=9)


def who(user: str, address: int = 0) -> Submitter:
    return Submitter(user, f"192.0.2.{address}")


def joined(turns: Turns, *tickets: tuple[str, Submitter], now: float = 0) -> None:
    for ticket, one in tickets:
        turns.join(ticket, one, now)
        turns.ready(ticket)


def test_somebody_new_passes_what_another_has_piled_up() -> None:
    turns = Turns(LIMITS, 2)
    joined(turns, ("a1", who("ann", 1)), ("a2", who("ann", 1)), ("a3", who("ann", 1)), ("b1", who("bob", 2)))
    assert [turns.take(0), turns.take(0), turns.take(0)] == ["a1", "b1", None]
    joined(turns, ("c1", who("cy", 3)))
    turns.ended("a1", 5, scored=True)
    assert turns.take(5) == "c1"
    turns.ended("c1", 6, scored=False)
    joined(turns, ("d1", who("dan", 4)), now=6)
    assert [turns.take(6), turns.take(6)] == ["d1", None], "ann has had a turn, b1 is read"
    turns.ended("d1", 7, scored=True)
    assert [turns.take(7), turns.take(7)] == ["a2", None]


def test_an_account_is_read_one_at_a_time_and_an_address_leaves_a_worker_to_others() -> None:
    turns = Turns(LIMITS, 3)
    joined(turns, ("a1", who("ann", 1)), ("a2", who("ann", 2)), ("b1", who("bob", 1)), ("c1", who("cy", 1)))
    assert [turns.take(0), turns.take(0), turns.take(0)] == ["a1", "b1", None]
    joined(turns, ("d1", who("dan", 9)))
    assert turns.take(0) == "d1"


def test_what_has_not_arrived_is_not_read_and_gives_its_place_back() -> None:
    turns = Turns(LIMITS, 2)
    turns.join("a1", who("ann"), 0)
    assert turns.take(0) is None
    turns.leave("a1")
    turns.leave("a1")
    joined(turns, ("b1", who("bob")))
    assert turns.take(0) == "b1"


def test_shares_of_the_queue_and_who_goes_when_it_is_full() -> None:
    turns = Turns(LIMITS, 1)
    joined(turns, *((f"a{number}", who("ann", 1)) for number in range(3)))
    with pytest.raises(Refused, match="ann has 3 uploads waiting"):
        turns.join("a3", who("ann", 2), 0)
    joined(turns, ("b0", who("bob", 1)), ("b1", who("bob", 1)))
    with pytest.raises(Refused, match="your address has 5 uploads waiting"):
        turns.join("c0", who("cy", 1), 0)
    joined(turns, *((f"{name}0", who(name, 10 + number)) for number, name in enumerate("defg")))
    assert turns.join("h0", who("hal", 30), 0) == "b1", "the last of the address with the most turns"
    for number, name in enumerate("klm"):
        turns.join(f"{name}0", who(name, 40 + number), 0)
    with pytest.raises(Refused, match="9 uploads are waiting"):
        turns.join("z0", who("zoe", 60), 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30))
def test_nobody_is_forgotten_and_places_are_in_order(arrivals: list[tuple[int, int]]) -> None:
    limits = Limits(waiting_per_account=99, waiting_per_address=99, waiting=99)
    turns, left = Turns(limits, 2), set()
    for number, (user, address) in enumerate(arrivals):
        joined(turns, (str(number), who(f"u{user}", address)))
        left.add(str(number))
    assert sorted(turns.place(ticket, 0)[0] or 0 for ticket in left) == [*range(1, len(left) + 1)]
    now = 0.0
    while left:
        reading = []
        while (ticket := turns.take(now)) is not None:
            assert turns.place(ticket, now)[0] is None
            reading.append(ticket)
        assert reading, "workers stand idle while uploads wait"
        for ticket in reading:
            now += 1
            turns.ended(ticket, now, scored=True)
            left.remove(ticket)


def test_the_estimate_comes_from_what_checks_took() -> None:
    turns = Turns(LIMITS, 1)
    joined(turns, ("a1", who("ann", 1)), ("b1", who("bob", 2)), ("c1", who("cy", 3)))
    assert turns.place("c1", 0) == (3, None)
    turns.take(0)
    turns.ended("a1", 8, scored=True)
    assert turns.place("c1", 8) == (2, 16)
    turns.take(8)
    assert turns.place("b1", 11) == (None, 5)
    assert turns.place("c1", 11) == (1, 13)
    assert turns.place("c1", 99) == (1, 10), "b1 takes longer than usual"


class Slow:
    """A scorer whose checks end when the test says so; every one is refused."""

    size = 2

    def __init__(self) -> None:
        self.go = threading.Semaphore(0)
        self.began: list[str] = []

    def run(self, job: Job) -> Checked:
        self.began.append(job.user)
        assert self.go.acquire(timeout=30)
        return Checked(steps=(Step("format", False, "no prediction"),))


@pytest.fixture
def upload(tmp_path: Path) -> Path:
    path = tmp_path / "upload"
    path.write_bytes(b"{}")
    return path


def test_placing_never_waits_and_failed_checks_count(tmp_path: Path, upload: Path) -> None:
    slow, limits = Slow(), Limits(per_day=1, checks_per_listing=2, quotas={"lab": 2})
    desk = Desk(Store(tmp_path / "results"), slow, limits)
    ann, eve, mia = who("ann", 1), who("eve", 2), Submitter("mia", "192.0.2.3", ("lab",))
    first, second = desk.place(ann, upload, None, Form()), desk.place(ann, upload, None, Form())
    assert desk.progress(ann, first) == Progress("checking")
    assert desk.progress(ann, second) == Progress("waiting", 1)
    with pytest.raises(Refused, match="ann has had 2 uploads checked today, failed ones included"):
        desk.place(ann, upload, None, Form())
    for look in (desk.progress, desk.result):
        with pytest.raises(Refused, match="another user"):
            look(eve, first)
        with pytest.raises(Refused, match="no longer here"):
            look(ann, "../submissions")
    with pytest.raises(TimeoutError):
        desk.result(ann, second, 0)
    tickets = [desk.place(mia, upload, None, Form()) for _ in range(2)]
    slow.go.release(4)
    answers = [desk.result(ann, one, 30) for one in (first, second)]
    answers += [desk.result(mia, one, 30) for one in tickets]
    assert {answer.refused.text for answer in answers if answer.refused} == {"no prediction"}
    assert desk.progress(ann, first) == Progress("done")
    assert slow.began.count("ann") == 2 and list((desk.store.folder / "incoming").iterdir()) == []
    slow.go.release(2)
    for _ in range(2):
        desk.result(mia, desk.place(mia, upload, None, Form()), 30)
    with pytest.raises(Refused, match="mia has had 4"):
        desk.place(mia, upload, None, Form())


def test_a_scorer_that_breaks_is_one_line(tmp_path: Path, upload: Path) -> None:
    class Broken(Slow):
        def run(self, job: Job) -> Checked:
            raise RuntimeError("secret")

    desk = Desk(Store(tmp_path / "results"), Broken(), Limits())
    refused = desk.result(who("ann"), desk.place(who("ann"), upload, None, Form()), 30).refused
    assert refused is not None and "try again" in refused.text and "secret" not in refused.text


def test_addresses_that_are_one_person_and_accounts_that_are_none() -> None:
    assert Submitter("ann", "2001:db8::1").network == Submitter("ann", "2001:db8::9:1").network
    assert Submitter("ann", "2001:db8::1").network != Submitter("ann", "2001:db8:0:1::1").network
    assert Submitter("ann", "::ffff:192.0.2.1").network == "192.0.2.1"
    assert Submitter("ann", "testclient").network == "testclient"
    assert Submitter(LOCAL, "192.0.2.1").account != Submitter(LOCAL, "192.0.2.2").account
    assert Submitter("ann", "192.0.2.1").account == Submitter("ann", "192.0.2.2").account


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("card", "javascript:alert(1)"),
        ("card", "http://example.org/card"),
        ("card", "https://example.org/<script>"),
        ("card", "https://localhost/card"),
        ("card", "https://a@example.org"),
        ("card", "acme/.."),
        ("card", "https://example.org/" + "a" * 300),
        ("licence", "<b>mit</b>"),
        ("licence", "x" * 61),
        ("weights", "ajar"),
        ("price_in", "-1"),
        ("price_out", "nan"),
    ],
)
def test_a_form_that_cannot_be_listed_is_refused(field: str, typed: str) -> None:
    with pytest.raises(Refused) as refused:
        stated(Form(**{field: typed}))
    assert refused.value.step == "form"


def test_a_form_as_it_is_listed() -> None:
    found = stated(
        Form(card="acme/model-1", licence="apache-2.0", weights="open", price_in="$0.5", price_out="0")
    )
    assert (found.card, found.licence) == ("https://huggingface.co/acme/model-1", "apache-2.0")
    assert (found.weights, found.price_in, found.price_out) == ("open", 0.5, 0.0)
    address = "https://example.org/a/b_c?x=1&y=2#z"
    assert stated(Form(card=address)).card == address
    assert stated(Form(name=" ", card="", price_in=None)) == stated(Form())
