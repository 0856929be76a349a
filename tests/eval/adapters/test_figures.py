"""The table that a harness prints: our values, and what it says of a part of the types."""

import pytest

from robustbench_tc import taxonomy
from robustbench_tc.eval.adapters.figures import figures

REWARD = [kind.code for kind in taxonomy.types() if kind.component == "reward"]


def test_a_whole_component_and_a_part_of_one() -> None:
    rows = [
        ("a", "clean", 0, True),
        ("b", "clean", 0, True),
        ("c", "clean", 0, False),
        ("d", "clean", 0, True),
    ]
    rows += [(one, code, 0, one in "ac") for code in REWARD for one in "abc"]
    rows += [(one, "same_name_A", 0, one == "a") for one in "ab"]
    found = figures(rows)
    assert found["clean"] == 0.75 and found["accuracy_reward"] == pytest.approx(2 / 3)
    assert found["delta_reward"] == pytest.approx(0.75 - 2 / 3)
    assert found["delta_matched_reward"] == 0.0  # b is lost, c is gained
    assert found["accuracy_same_name_A"] == 0.5 and found["delta_same_name_A"] == 0.25
    assert not {"accuracy_action", "retention", "perturbed", f"accuracy_{REWARD[0]}"} & set(found)


def test_types_without_their_clean_rows() -> None:
    assert figures([("a", "CD_AB", 0, True), ("b", "CD_AB", 0, False)]) == {"accuracy_CD_AB": 0.5}


def test_epochs_pair_with_their_own_clean_row() -> None:
    rows = [("a", "clean", 0, True), ("a", "clean", 1, False)]
    rows += [("a", code, repeat, repeat == 1) for code in REWARD for repeat in (0, 1)]
    assert figures(rows)["delta_matched_reward"] == 0.0
    assert figures(rows)["accuracy_reward"] == 0.5
