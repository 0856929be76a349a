"""Whose token it is: asked of the Hub once, kept as a digest, and wrong ones cost their sender."""

import gc
from collections.abc import Iterator

import pytest
from huggingface_hub import constants

from robustbench_tc.eval.leaderboard import account
from robustbench_tc.eval.leaderboard.account import KEPT_S, WRONG, Accounts
from robustbench_tc.eval.leaderboard.problem import Problem
from robustbench_tc.eval.leaderboard.submitting import Submitter

from ...hub import STRANGER, WRITER, Hub

MAINTAINER = Submitter("maintainer", "a", ("acme",))


@pytest.fixture
def there(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    hub.log()
    yield hub


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def refusal(accounts: Accounts, authorization: str | None, address: str = "a") -> Problem:
    with pytest.raises(Problem) as found:
        accounts.of(authorization, address)
    return found.value


def test_on_a_laptop_everybody_is_local() -> None:
    assert (
        Accounts("local").of(None, "a")
        == Accounts("local").of("Bearer anything", "a")
        == Submitter("local", "a")
    )


def test_a_token_is_its_account_and_the_hub_is_asked_once(there: Hub) -> None:
    clock = Clock()
    accounts = Accounts("hf", clock)
    assert [accounts.of(f"Bearer {WRITER}", "a") for _ in range(3)] == [MAINTAINER] * 3
    assert accounts.of(f"bearer  {STRANGER} ", "b") == Submitter("stranger", "b")
    assert len(there.log()) == 2
    clock.now += KEPT_S + 1
    assert accounts.of(f"Bearer {WRITER}", "a") == MAINTAINER
    assert len(there.log()) == 1


def test_the_token_is_not_kept(there: Hub) -> None:
    accounts = Accounts("hf")
    accounts.of(f"Bearer {WRITER}", "a")
    gc.collect()
    assert WRITER not in repr(vars(accounts)) and WRITER.encode() not in b"".join(accounts._known)


@pytest.mark.parametrize(
    "said", [None, "", "Basic abc", WRITER, "Bearer ", "Bearer a b", "Bearer x\0y", "Bearer " + "x" * 2000]
)
def test_what_is_no_token_never_reaches_the_hub(there: Hub, said: str | None) -> None:
    found = refusal(Accounts("hf"), said)
    assert found.status == 401 and "Authorization: Bearer" in str(found)
    assert there.log() == []


def test_wrong_tokens_of_an_address_are_shown_to_the_hub_so_often(there: Hub) -> None:
    clock = Clock()
    accounts = Accounts("hf", clock)
    said = [refusal(accounts, f"Bearer hf_wrong_{number:08}") for number in range(WRONG + 5)]
    assert [one.status for one in said] == [401] * WRONG + [429] * 5
    assert len(there.log()) == WRONG
    assert accounts.of(f"Bearer {WRITER}", "b").user == "maintainer"  # others are not held up
    clock.now += account.WRONG_S + 1
    assert accounts.of(f"Bearer {WRITER}", "a") == MAINTAINER


def test_a_hub_that_fails_is_a_line_without_the_token(there: Hub) -> None:
    for fault in ({"status": 500}, {"drop": True}, {"status": 302}):
        there.fault("whoami", **fault)
        found = refusal(Accounts("hf"), f"Bearer {WRITER}")
        assert found.status == 503 and found.wait_s and WRITER not in str(found)
        there.repair()


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({"type": "org", "name": "acme"}, "an organisation's"),
        ({"type": "user", "name": "<b>"}, "cannot be listed"),
        ([], "an organisation's"),
    ],
)
def test_an_account_is_a_persons(monkeypatch: pytest.MonkeyPatch, said: object, line: str) -> None:
    monkeypatch.setattr(account, "_whoami", lambda token: said)
    assert line in str(refusal(Accounts("hf"), f"Bearer {WRITER}"))
