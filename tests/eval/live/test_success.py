"""States that agree up to generated ids, and the three verdicts."""

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given, strategies as st

from robustbench_tc.eval.live.replay import Replay, replayed
from robustbench_tc.eval.live.stage import without_ids
from robustbench_tc.eval.live.success import end_state, information
from robustbench_tc.schema import At, Call, Episode, LiveRow, Reply, Step, row_hash
from robustbench_tc.worlds import faults, host
from robustbench_tc.worlds.find import find, tasks
from robustbench_tc.worlds.handle import Snapshot, Start
from robustbench_tc.worlds.same_state import STEPS, equal, same

from ...refusals import refuses
from .playing import PURSE, faulted, row_of

IDS = ("R-1", "R-2", "R-3", "77")
OTHERS = ("R-8", "R-9", "R-10", "502")

texts = st.sampled_from([*IDS, "R-11", "note on R-1", "R-2 and R-1", "plain", ""])
states = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.just(77) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """Another implementation of renaming: by words."""
    if isinstance(value, dict):
        return {_renamed(key, names): _renamed(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, names) for one in value]
    if isinstance(value, str):
        return " ".join(names.get(word, word) for word in value.split(" "))
    return int(names["77"]) if type(value) is int and value == 77 and "77" in names else value


@given(states, st.permutations(OTHERS[:3]))
def test_a_state_is_the_same_under_every_renaming_of_its_ids(state: Any, order: list[str]) -> None:
    other = _renamed(state, dict(zip(IDS, [*order, "502"], strict=True)))
    assert same(Snapshot(state, IDS), Snapshot(other, OTHERS)) is True
    assert same(Snapshot(other, OTHERS), Snapshot(state, IDS)) is True


@given(states, states)
def test_it_agrees_with_trying_every_renaming(a: Any, b: Any) -> None:
    letters = IDS[:3]
    orders = itertools.permutations(letters)
    tried = any(equal(_renamed(a, dict(zip(letters, order, strict=True))), b) for order in orders)
    assert same(Snapshot(a, letters), Snapshot(b, letters)) is (tried or equal(a, b))


def test_two_ids_cannot_become_one_nor_one_two() -> None:
    two, one = Snapshot(["a1", "b2"], ("a1", "b2")), Snapshot(["c3", "c3"], ("c3", "d4"))
    assert same(two, one) is False and same(one, two) is False


def test_a_number_is_the_same_with_a_point() -> None:
    assert equal({"balance": [5000, 1]}, {"balance": [5000.0, 1]})
    assert same(Snapshot({"a": 5000.0, "id": "a1"}, ("a1",)), Snapshot({"a": 5000, "id": "b2"}, ("b2",)))
    assert not equal({"balance": [5000, 1]}, {"balance": [5000.0, True]})


@pytest.mark.parametrize(("a", "b"), [(1.0, True), (1, True), (0, False), ("1", 1), (None, 0)])
def test_values_of_two_types_differ(a: Any, b: Any) -> None:
    assert not equal([a], [b])
    assert same(Snapshot([a]), Snapshot([b])) is False


def test_a_search_that_takes_too_long_is_undecided_and_ends() -> None:
    ids = tuple(f"k{n}x" for n in range(40))
    cycle = {one: ids[(at + 1) % 40] for at, one in enumerate(ids)}
    cycles = {one: ids[at - at % 20 + (at + 1) % 20] for at, one in enumerate(ids)}
    assert same(Snapshot(cycle, ids), Snapshot(cycles, ids)) in (False, None)
    assert STEPS <= 1_000_000


def test_ids_in_texts_are_numbered_as_they_occur() -> None:
    assert without_ids("R-1 R-2 R-1", ["R-1", "R-2"]) == without_ids("R-9 R-8 R-9", ["R-8", "R-9"])
    assert without_ids("R-1 R-1", ["R-1", "R-2"]) != without_ids("R-1 R-2", ["R-1", "R-2"])
    assert without_ids("R-12", ["R-1"]) == "R-12"


def purse(number: int) -> LiveRow:
    """A row of the purse."""
    world = find(str(PURSE))
    return row_of(world, tasks(world)[number - 1])


def played(row: LiveRow, *calls: Call) -> Replay:
    """The replay of an episode with these calls in its first turn."""

    async def run() -> Replay:
        worlds = host.Worlds()
        world = faults.FaultedWorld(
            await worlds.open(find(row.world), Start(**row.initial_state)), row.tools, row.fault
        )
        steps: list[Step] = [await world.call(call.name, call.parameters) for call in calls]
        return await replayed(row, episode(row, *steps), worlds)

    return asyncio.run(run())


def episode(row: LiveRow, *steps: Step) -> Episode:
    """An episode with these steps in its first turn, and no text after the others."""
    replies = [Reply(turn=0, steps=(step,)) for step in steps]
    replies += [Reply(turn=turn, text="Done.") for turn in range(len(row.turns))]
    return Episode(
        id=row.id,
        clean_id=row.clean_id,
        type_code=row.type_code,
        world=row.world,
        model="m",
        mode="fc",
        row_hash=row_hash(row),
        ended="done",
        replies=tuple(replies),
    )


ADD, TAKE = Call("add_coins", {"amount": 2}), Call("take_coins", {"amount": 2})
COUNT = Call("count_coins", {})


def test_gold_is_right_and_nothing_and_twice_are_wrong() -> None:
    assert end_state(played(purse(1), ADD)) is True
    assert end_state(played(purse(1))) is False
    assert end_state(played(purse(1), ADD, ADD)) is False
    assert end_state(played(purse(1), ADD, TAKE)) is False  # its only effect is undone


def test_a_duplicate_that_was_undone_is_right_although_its_receipt_stays() -> None:
    row = faulted(purse(1), "duplicate_effect", At(write=1))
    assert end_state(played(row, ADD)) is False
    repaired = played(row, ADD, TAKE)
    assert repaired.undone == ((0, 1),) and len(repaired.end.state["receipts"]) == 2
    assert end_state(repaired) is True
    assert end_state(played(row, ADD, TAKE, TAKE)) is False


def test_information_asks_whether_results_of_golds_reads_were_seen() -> None:
    assert information(played(purse(1), ADD)) is None
    assert information(played(purse(2), COUNT)) is True
    assert information(played(purse(2), Call("list_receipts", {}))) is False
    timed_out = faulted(purse(2), "transient_timeout", At(read=1))
    assert information(played(timed_out, COUNT)) is True
    assert information(played(timed_out)) is False


def test_what_was_not_played_with_this_row_or_world_is_refused() -> None:
    row = purse(1)
    refuses(
        "another row",
        asyncio.run,
        replayed(faulted(row, "stale_read", At(write=1)), episode(row), host.Worlds()),
    )
    forged = Step(name="add_coins", arguments={"amount": 2}, text='{"receipt": "R-1", "amount": 2}')
    refuses(
        r"call 1 \(add_coins\) is answered differently",
        asyncio.run,
        replayed(row, episode(row, forged), host.Worlds()),
    )


def test_a_call_that_was_cut_off_is_not_made_again() -> None:
    cut = Step(
        name="add_coins", arguments={"amount": 2}, text='{"error": "too long"}', executed=0, problem="timeout"
    )
    replay = asyncio.run(replayed(purse(1), episode(purse(1), cut), host.Worlds()))
    assert replay.end.state["coins"] == 3 and end_state(replay) is False
