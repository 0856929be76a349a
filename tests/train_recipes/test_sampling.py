"""Which type is drawn next."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_tc.train_recipes import sampling
from robustbench_tc.train_recipes.sampling import (
    LEARNERS,
    MODES,
    Drawing,
    Weights,
    drawing,
    losses,
    simulated,
)
from robustbench_tc.train_recipes.trl.order import Repeated, load, save
from robustbench_tc.train_recipes.validation import Row, Scored

from ..refusals import refuses

TYPES = ["CD"] * 10 + ["TD"] * 6 + ["same_name_A"] * 4
hostile = st.floats(allow_nan=True, allow_infinity=True)


@given(
    st.sampled_from(MODES),
    st.lists(st.dictionaries(st.sampled_from(["CD", "TD", "same_name_A", "other"]), hostile), max_size=30),
)
def test_shares_are_shares_whatever_is_seen(mode: sampling.Mode, seen: list[dict[str, float]]) -> None:
    weights = Weights(Counter(TYPES), mode)
    for one in seen:
        weights.update(one)
    shares = weights.shares
    assert math.isclose(math.fsum(shares.values()), 1.0) and set(shares) == set(TYPES)
    for name, count in Counter(TYPES).items():
        assert shares[name] >= sampling.FLOOR * count / len(TYPES) - 1e-12
    again = Weights(Counter(TYPES), mode)
    again.restore(json.loads(json.dumps(weights.state)))
    assert again.shares == shares


def test_what_is_wrong_is_drawn_more_often() -> None:
    even = dict.fromkeys("abc", 1.0)
    shares = {}
    for mode in MODES:
        weights = Weights(even, mode)
        for _ in range(5):
            weights.update({"a": 0.9, "b": 0.1, "c": 0.1})
        shares[mode] = weights.shares["a"]
    assert shares["uniform"] == pytest.approx(1 / 3)
    assert 1 / 3 < shares["adaptive"] < shares["minimax"] <= sampling.FLOOR / 3 + 1 - sampling.FLOOR
    weights = Weights(even, "adaptive")
    weights.update(dict.fromkeys("abc", 0.0))
    assert weights.shares == pytest.approx(dict.fromkeys("abc", 1 / 3))


def test_draws_follow_the_shares_and_go_through_all_rows_of_a_type() -> None:
    weights = Weights(Counter(TYPES), "minimax")
    for _ in range(8):
        weights.update({"CD": 0.0, "TD": 0.0, "same_name_A": 1.0})
    found = Drawing(TYPES, weights, seed=3)
    drawn = [index for _ in range(200) for index in found.epoch()]
    counts = Counter(TYPES[index] for index in drawn)
    for name, share in weights.shares.items():
        assert counts[name] / len(drawn) == pytest.approx(share, abs=0.03)
    rows = Counter(index for index in drawn if TYPES[index] == "same_name_A")
    assert max(rows.values()) - min(rows.values()) <= 1 and len(rows) == 4


@given(st.integers(0, 60), st.sampled_from(["adaptive", "minimax"]))
def test_a_sampler_that_is_put_back_goes_on_as_the_other_would_have(at: int, mode: sampling.Mode) -> None:
    def endless(one: Drawing) -> Iterator[int]:
        while True:
            yield from one.epoch()

    first, second = drawing(TYPES, mode, 5), drawing(TYPES, mode, 5)
    first.weights.update({"CD": 0.2, "TD": 0.7})
    list(islice(endless(first), at))
    second.weights.restore(first.weights.state)
    second.place = type(first.place)(*json.loads(json.dumps(first.place)))
    rest = [list(islice(endless(one), 50)) for one in (first, second)]
    assert rest[0] == rest[1]


def test_trls_order_repeats_prompts_and_batches() -> None:
    order = Repeated(drawing(TYPES, "adaptive", 0), in_a_row=2, batch=3, times=2)
    indices = list(order)
    assert len(indices) == len(order) == 20 // 3 * 3 * 2 * 2
    for start in range(0, len(indices), 12):
        chunk = indices[start : start + 12]
        assert chunk[:6] == chunk[6:] and chunk[0::2] == chunk[1::2]


def test_the_state_lies_beside_a_checkpoint(tmp_path: Path) -> None:
    first = drawing(TYPES, "adaptive", 0)
    first.weights.update({"CD": 1.0})
    list(islice(first.epoch(), 7))
    save(first, tmp_path)
    second = drawing(TYPES, "adaptive", 0)
    load(second, tmp_path)
    assert list(second.epoch()) == list(first.epoch()) and second.weights.shares == first.weights.shares


def test_losses_are_those_of_validation() -> None:
    rows = [Row("a", "reward", 4.0, "CD"), Row("b", "reward", 4.0, "CD"), Row("a", "clean", 4.0)]
    answers = [
        Scored("a", "reward", 4.0, True),
        Scored("b", "reward", 0.0, False),
        Scored("a", "clean", 4.0, True),
    ]
    assert losses(rows, answers) == {"CD": 0.5, "clean": 0.0}


def test_the_simulation_says_what_the_page_says() -> None:
    """Slow types gain, and a type that cannot be learnt costs the others: most under minimax."""
    worst = {mode: max(simulated(LEARNERS["one slow"], mode).values()) for mode in MODES}
    assert worst["minimax"] < worst["adaptive"] < worst["uniform"]
    mean = {mode: sum(simulated(LEARNERS["one cannot be learnt"], mode).values()) for mode in MODES}
    assert mean["uniform"] < mean["adaptive"] < mean["minimax"]
    assert sampling.table() in (Path(__file__).parents[2] / "docs" / "training.md").read_text()


@pytest.mark.parametrize(
    ("types", "mode", "said"),
    [
        (["CD"] * 4, "adaptive", "CD is all there is"),
        ([], "adaptive", "no row is all"),
        (TYPES, "adaptiv", "unknown sampling"),
    ],
)
def test_mistakes_are_one_line(types: list[str], mode: sampling.Mode, said: str) -> None:
    refuses(said, drawing, types, mode, 0)
