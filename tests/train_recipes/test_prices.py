"""Whether a training set can teach to read prices."""

from collections.abc import Callable
from pathlib import Path

import pytest

from robustbench_tc.builders.toolrl_dr import TrainingSpec, build
from robustbench_tc.builders.toolrl_versions import Checks
from robustbench_tc.dataset_cards.training import training_card
from robustbench_tc.errors import UserError
from robustbench_tc.train_recipes import prices
from robustbench_tc.train_recipes.dataset import locate
from robustbench_tc.train_recipes.prices import Priced
from robustbench_tc.train_recipes.toolrl_dr.reward import earns_maximum

PAGE = Path(__file__).parents[2] / "docs" / "training.md"


def test_a_rule_is_right_where_it_picks_the_golden_name() -> None:
    rows = [Priced("pay", {"pay": 1.0, "pay_fast": 5.0}), Priced("pay_fast", {"pay": 5.0, "pay_fast": 1.0})]
    assert prices.shares(rows) == {"shorter name": 0.5, "listed first": 0.5, "best offer": 1.0}


def test_only_offers_of_the_golden_function_count(training_data: Path) -> None:
    found, rows = prices.priced(locate(str(training_data), "full").train)
    assert 0 < len(found) < rows
    assert all(one.gold in one.offers and len(one.offers) > 1 for one in found)
    assert prices.shares(found)["best offer"] == 1.0


def test_the_page_says_what_the_real_rows_can_teach(shared: Path, tmp_path: Path) -> None:
    """ToolRL's rows with seed 0: as they are, with swapped offers, and without the reward component."""
    spec: Callable[..., TrainingSpec] = lambda **more: TrainingSpec(  # noqa: E731
        rlla=shared / "sources", configs=("full", "mixed"), **more
    )
    builds = {
        "full": spec(),
        "counterbalanced": spec(counterbalance=True),
        "without-reward": spec(types=("observation", "action")),
    }
    for name, one in builds.items():
        build(one, tmp_path / name, checks=Checks(earns_maximum=earns_maximum), card=training_card)
    assert prices.table([str(tmp_path / name) for name in builds]) in PAGE.read_text()


def test_mistakes_are_one_line() -> None:
    for words in ([], ["--help"], ["/nowhere/at/all"]):
        with pytest.raises(UserError) as caught:
            prices.main(words)
        assert "\n" not in str(caught.value)
