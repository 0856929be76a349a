"""BFCL's classes as a world, in the other Python: skipped where `make env-live` was not run."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.builders.live import bfcl
from robustbench_tc.schema import Call, LiveRow
from robustbench_tc.worlds import find, host
from robustbench_tc.worlds.handle import Start

from ..conftest import nightly
from ..refusals import refuses
from .bfcl_facts import VERDICT, Counts, counted, lines
from .bfcl_replays import WORLD, Answer, Job, gold, replays

FILES = {"root": {"w": {"type": "directory", "contents": {"a.txt": {"type": "file", "content": "x"}}}}}


def start(name: str, config: dict[str, Any], long_context: bool = False) -> dict[str, Any]:
    return {"involved_classes": [name], "initial_config": {name: config}, "long_context": long_context}


def ran(python: str, state: dict[str, Any], *calls: tuple[str, dict[str, Any]]) -> Answer:
    return replays(python, [Job(state, [[Call(*call) for call in calls]])])[0]


@pytest.fixture(scope="module")
def rows(shared: Path) -> tuple[LiveRow, ...]:
    return bfcl.tasks(shared / "sources")


def test_results_are_worded_as_upstream_words_them(bfcl_python: str) -> None:
    found = ran(
        bfcl_python,
        start("GorillaFileSystem", FILES),
        ("ls", {}),
        ("touch", {"file_name": "b.txt"}),
        ("cat", {"file_name": "none"}),
        ("mkdir", {}),
        ("fly", {"to": "moon"}),
        ("_load_scenario", {"scenario": {}}),
        ("__init__", {}),
        ("pwd", {"self": 1}),
    )
    assert found.results[0][:3] == [
        '{"current_directory_content": ["a.txt"]}',
        "None",
        '{"error": "cat: \'none\': No such file or directory"}',
    ]
    assert "missing 1 required positional argument: 'dir_name'" in found.results[0][3]
    assert found.results[0][4] == "Error during execution: name 'fly' is not defined"
    assert all(text.startswith("Error during execution: ") for text in found.results[0][5:])
    assert list(found.states[0]["GorillaFileSystem"]["root"]["contents"]) == ["a.txt", "b.txt"]


def test_numbers_that_json_does_not_have_are_python_text(bfcl_python: str) -> None:
    found = ran(bfcl_python, start("MathAPI", {}), ("logarithm", {"value": 8, "base": 2, "precision": 5}))
    assert "mpf" in found.results[0][0] or "Decimal" in found.results[0][0]


def test_the_working_directory_is_state_beside_the_classes(bfcl_python: str) -> None:
    config = {"root": {"w": {"type": "directory", "contents": {"d": {"type": "directory", "contents": {}}}}}}
    stayed = ran(bfcl_python, start("GorillaFileSystem", config), ("pwd", {}))
    went = ran(bfcl_python, start("GorillaFileSystem", config), ("cd", {"folder": "d"}))
    assert (stayed.cwd, went.cwd) == ("/w", "/w/d")
    assert stayed.states == went.states


def test_a_directory_in_itself_has_a_state(bfcl_python: str) -> None:
    """`cp` of a directory into itself is an endless tree upstream: nothing may hang or die."""
    doubling = [("cp", {"source": "d", "destination": "d"}), ("cd", {"folder": "d"})] * 20
    found = ran(
        bfcl_python,
        start("GorillaFileSystem", FILES),
        ("mkdir", {"dir_name": "d"}),
        *doubling,
        ("find", {}),
        ("du", {}),
    )
    assert len(json.dumps(found.states)) < 10_000_000
    assert len(found.results[0]) == 43


def test_infinite_and_huge_numbers_have_a_state(bfcl_python: str) -> None:
    account = {"account_info": {"account_id": 1, "balance": 1.0, "binding_card": 2}, "authenticated": True}
    huge = ("fund_account", {"amount": 1e308})
    found = ran(bfcl_python, start("TradingBot", account), huge, huge, ("fund_account", {"amount": 10**4000}))
    json.dumps(found.states, allow_nan=False)
    assert found.states[0]["TradingBot"]["account_info"]["balance"] == "inf"


def test_what_upstream_draws_is_listed_in_order(bfcl_python: str) -> None:
    users = {"user_map": {"A": "USR1", "B": "USR2"}, "current_user": "USR1"}
    found = ran(
        bfcl_python,
        start("MessageAPI", users),
        ("send_message", {"receiver_id": "USR2", "message": "one"}),
        ("send_message", {"receiver_id": "USR9", "message": "nobody"}),
        ("send_message", {"receiver_id": "USR2", "message": "two"}),
    )
    ids = [json.loads(text)["message_id"]["new_id"] for text in found.results[0][::2]]
    assert found.generated == [str(one) for one in ids]
    assert found.states[0]["MessageAPI"]["generated_ids"] == sorted(ids)
    account = {"account_info": {"account_id": 1, "balance": 1.0, "binding_card": 2}, "authenticated": True}
    traded = ran(bfcl_python, start("TradingBot", account), ("fund_account", {"amount": 5}))
    (transaction,) = traded.states[0]["TradingBot"]["transaction_history"]
    assert traded.generated == [transaction["timestamp"]]


def test_what_upstream_words_as_a_set_has_one_order(bfcl_python: str) -> None:
    """Python orders sets by a seed of the process; replays run in another one."""
    calls = [
        Call("create_ticket", {"title": "t"}),
        Call("edit_ticket", {"ticket_id": 1, "updates": {"zeta": 1, "alpha": 2, "mid": 3}}),
    ]
    job = Job(start("TicketAPI", {"current_user": "u", "ticket_queue": [], "ticket_counter": 1}), [calls])
    texts = {replays(bfcl_python, [job])[0].results[0][1] for _ in range(6)}
    assert texts == {'{"error": "Invalid fields for update: alpha, mid, zeta"}'}


def test_worlds_share_nothing(bfcl_python: str) -> None:
    """Upstream's default lists and long-context tables are changed in place by these calls."""
    user = {"username": "u", "password": "p", "authenticated": True, "tweets": {}, "tweet_counter": 0}
    tweet = [Call("post_tweet", {"content": "hello"})]
    mention = [*tweet, Call("mention", {"tweet_id": 0, "mentioned_usernames": ["@x"]})]
    job = Job(start("TwitterAPI", user), [tweet])
    first, _, again = replays(bfcl_python, [job, Job(job.state, [mention]), job])
    assert first == again


def test_a_class_that_does_not_exist_is_an_error(bfcl_python: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        ran(bfcl_python, {"involved_classes": ["WebSearchAPI"], "initial_config": {}, "long_context": False})


def nested(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


HOSTILE: dict[str, tuple[str, dict[str, Any], str]] = {
    "it hangs": ("square_root", {"number": 2, "precision": 10**7}, host.TIMED_OUT),
    "it is huge": ("square_root", {"number": 2, "precision": 10**13}, "Error during execution: "),
    "a number of 4,000 digits": ("add", {"a": 10**4000, "b": 1}, "0001"),
    "a number of 5,000 digits": ("add", {"a": 10**5000, "b": 1}, host.NOT_JSON),
    "two megabytes": ("mean", {"numbers": [1] * 10**6}, host.TOO_LARGE),
    "it is nested": ("mean", {"numbers": nested(900)}, "Error during execution: "),
    "it is nested deeper": ("mean", {"numbers": nested(50_000)}, host.NOT_JSON),
    "a dunder": ("__init__", {}, "is not defined"),
}
"""What a call does, the call, and a part of the result."""


def test_hostile_calls_cost_their_episode_an_error_and_others_nothing(bfcl_python: str) -> None:
    world = find.find(find.BFCL, python=bfcl_python)
    begin = Start(start("MathAPI", {}))

    async def told(worlds: host.Worlds, name: str, arguments: dict[str, Any]) -> str:
        handle = await worlds.open(world, begin)
        answered = await handle.call(name, arguments)
        assert (await handle.call("add", {"a": 1, "b": 2})).text == '{"result": 3}'
        await handle.aclose()
        return answered.text

    async def all_at_once() -> None:
        async with host.Worlds(seconds=1.0) as worlds:
            found = await asyncio.gather(
                *(told(worlds, name, arguments) for name, arguments, _ in HOSTILE.values())
            )
        for (what, (_, _, said)), text in zip(HOSTILE.items(), found, strict=True):
            assert said in text, (what, text[:200])

    begun = time.monotonic()
    asyncio.run(all_at_once())
    assert time.monotonic() - begun < 60


@nightly  # thousands of worlds
def test_gold_replays_with_the_same_bytes_in_any_order(bfcl_python: str, rows: tuple[LiveRow, ...]) -> None:
    """In two processes, the second with the tasks in reverse; no call of gold fails."""
    forward = replays(bfcl_python, map(gold, rows))
    assert forward == replays(bfcl_python, map(gold, reversed(rows)))[::-1]
    for row, found in zip(rows, forward, strict=True):
        texts = [text for turn in found.results for text in turn]
        assert not [text for text in texts if text.startswith(("Error during", '{"error"'))], row.clean_id
    assert len(forward) == 800


def test_a_python_without_the_classes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "python"
    refuses(r"does not run .*make env-live", find.bfcl_python, str(broken))
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    refuses(r"does not run BFCL's world \(Command '", find.bfcl_python, str(broken))
    broken.write_text("#!/bin/sh\necho 2025.1.1\n")
    refuses(r"needs bfcl-eval==2026\.3\.23 and mpmath; .* has bfcl-eval 2025", find.bfcl_python, str(broken))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(find, "__file__", str(tmp_path / "a" / "b" / "c" / "find.py"))
    refuses(r"make env-live.* or name one with --world-python", find.bfcl_python)
    made = tmp_path / ".venv-live" / "bin" / "python"
    made.parent.mkdir(parents=True)
    made.write_text("#!/bin/sh\necho 2026.3.23\n")
    made.chmod(0o755)
    assert find.bfcl_python() == str(made)


def test_the_environment_holds_the_version_that_is_asked_for() -> None:
    wanted = WORLD.with_name("bfcl_requirements.txt").read_text()
    assert f"\nbfcl-eval=={find.BFCL_VERSION} --hash=sha256:" in wanted


# --- The table of docs/live-data.md is what replays give ----------------------------------------------


PAGE = Path(__file__).resolve().parents[2] / "docs" / "live-data.md"


@nightly  # thousands of worlds
@pytest.mark.parametrize("category", bfcl.CATEGORIES)
def test_what_omission_and_repetition_change(category: str, shared: Path, bfcl_python: str) -> None:
    rows = bfcl.tasks(shared / "sources", [category])
    found = counted(bfcl_python, rows)
    calls = sum(len(turn) for row in rows for turn in row.golden_calls)
    assert set(lines(category, calls, found)) <= set(PAGE.read_text("utf-8").splitlines())
    if category == "multi_turn_base":
        assert found == {
            "public attributes": Counts(593, 176, 190),
            "+ working directory": Counts(604, 176, 190),
            "+ private attributes": Counts(612, 178, 190),
            VERDICT: Counts(1141, 190, 190),
        }
