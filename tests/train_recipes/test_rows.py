"""The rows of a recipe: which its switches choose, how many, and what each says of itself."""

import itertools
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from robustbench_tc.builders import toolrl_dr, toolrl_spec, toolrl_versions
from robustbench_tc.builders.sources.rlla import gold_calls
from robustbench_tc.dataset_cards.training import training_card
from robustbench_tc.errors import UserError
from robustbench_tc.eval.score import reward as toolrl
from robustbench_tc.train_recipes import recipe as recipes, retry_reward as retry, validation
from robustbench_tc.train_recipes.reward import compute_score
from robustbench_tc.train_recipes.rows import Rows, choose, locate, shares, write
from tests.conftest import ROOT
from tests.refusals import refuses


def chosen(data: Path, *words: str, name: recipes.Name = "grpo", **more: Any) -> Rows:
    return choose(str(data), recipes.read_recipe(name, words)[0], **more)


def stored(paths: list[Path]) -> list[dict[str, Any]]:
    """Rows of files as they stand."""
    found = []
    for path in paths:
        rows = pq.read_table(path).to_pylist()
        found += [{**row, "extra_info": json.loads(row["extra_info"])} for row in rows]
    return found


@pytest.fixture(scope="module")
def mixed(training_data: Path) -> Rows:
    return chosen(training_data, "data=retry", "alpha=0.25")


@given(st.integers(1, 400), st.integers(1, 400), st.floats(0.01, 0.99))
def test_the_share_holds_and_no_more_rows_would_fit(single: int, retries: int, share: float) -> None:
    try:
        taken = shares(single, retries, share)
    except UserError:
        # Too few rows for the share to have one of each.
        assert min(single, retries) < 1 / min(share, 1 - share)
        return
    total = sum(taken)
    assert 0 < taken[0] <= single and 0 < taken[1] <= retries
    assert abs(taken[1] - share * total) <= 0.5 + 1e-9
    for more in range(total + 1, single + retries + 1):
        part = math.floor(more * share + 0.5)
        assert part > retries or more - part > single


@pytest.mark.parametrize(
    ("single", "retries", "share", "taken"),
    [
        (344, 398, 0.5, (344, 345)),  # half a row is rounded up
        (100, 100, 0.25, (100, 34)),
        (10, 100, 0.9, (10, 95)),
        (100, 10, 0.5, (10, 10)),
    ],
)
def test_how_many_rows_are_taken(single: int, retries: int, share: float, taken: tuple[int, int]) -> None:
    assert shares(single, retries, share) == taken


@pytest.mark.parametrize("share", ["0", "1", "-0.5", "2", "half"])
def test_what_is_no_share(share: str) -> None:
    refuses(r"at `\$\.alpha`", recipes.read_recipe, "grpo", ["data=retry", f"alpha={share}"])


def test_a_share_that_leaves_no_row_of_one_of_them() -> None:
    refuses("none of one kind is left", shares, 3, 3, 0.01)


def test_each_row_is_that_of_its_config_and_says_how_it_is_rolled_out(
    training_data: Path, mixed: Rows, tmp_path: Path
) -> None:
    """Nothing of a row changes but what is said of its rollout, and its place."""
    shards = write(mixed, tmp_path / "rows")
    for split, found in (("train", stored(shards.train)), ("validation", stored(shards.validation))):
        known = {
            rollout: [
                row
                for path in getattr(locate(str(training_data), config), split)
                if path.parent.name == config
                for row in stored([path])
                if split == "train" or bool(row["extra_info"].get("retry")) is (rollout == "retry")
            ]
            for rollout, config in (("single", "full"), ("retry", "retry"))
        }
        for row in itertools.chain(*known.values()):
            row["extra_info"].pop("index")
        assert [row["extra_info"].pop("index") for row in found] == list(range(len(found)))
        for row in found:
            known[row["extra_info"].pop("rollout")].remove(row)  # once: no row is taken twice
        if split == "validation":
            assert known == {"single": [], "retry": []}


def test_the_papers_rows_are_those_of_the_build(training_data: Path, tmp_path: Path) -> None:
    """In their order, with every column; what is said beside is the rollout."""
    for data, config in (("dr-full", "full"), ("dr-mixed", "mixed")):
        shards = write(chosen(training_data, f"data={data}"), tmp_path / data)
        for split in ("train", "validation"):
            found = stored(getattr(shards, split))
            assert {row["extra_info"].pop("rollout") for row in found} == {"single"}
            assert found == stored(getattr(locate(str(training_data), config), split))


def test_clean_rows_are_those_of_retry_without_their_errors(training_data: Path) -> None:
    clean, retried = chosen(training_data, "data=clean"), chosen(training_data, "data=retry")
    assert [row.prompt for row in clean.train] == [row.prompt for row in retried.train]
    for row in clean.train:
        assert row.extra_info["type_code"] == "clean" and "retry" not in row.extra_info
    assert {row.extra_info["component"] for row in clean.validation} == {None, "action", "reward"}


def test_fine_tuning_has_conversations_of_any_single_turn_data(training_data: Path) -> None:
    built = chosen(training_data, name="sft")
    shares_of = Counter(row.extra_info["type_code"] != "clean" for row in built.train)
    assert shares_of[True] == math.floor(0.3 * shares_of.total())
    for words in (["data=clean"], ["data=dr-full"], ["alpha=0.2"]):
        rows = chosen(training_data, *words, name="sft").train
        assert {row.messages[-1].role for row in rows} == {"assistant"}
    perturbed = [row.extra_info["type_code"] != "clean" for row in rows]
    assert sum(perturbed) == round(0.2 * len(rows)) and sum(perturbed) > 0


def test_a_component_or_a_source_is_held_out(training_data: Path) -> None:
    whole, held = chosen(training_data), chosen(training_data, "hold_out=reward")
    components = Counter(row.extra_info["component"] for row in whole.train)
    assert Counter(row.extra_info["component"] for row in held.train) == components - Counter(
        {"reward": components["reward"]}
    )
    assert held.left_out == {"held out": components["reward"]} and components["reward"] > 0
    assert held.validation == whole.validation
    refuses("no train row for data=dr-full", chosen, training_data, "hold_out=rlla")
    for nobodys in ("rewards", "toolace", "train", "''"):  # ToolRL's files do not name its own sources
        for name in ("grpo", "sft"):
            line = refuses("no train row is of it", chosen, training_data, f"hold_out={nobodys}", name=name)
            assert "the sources (rlla) and the components (action, " in line and "\n" not in line
    errors = chosen(training_data, "data=retry", "alpha=0.5", "hold_out=reward").train
    assert {row.extra_info.get("component") for row in errors} == {"action", None}
    calm = chosen(training_data, "data=retry", "alpha=0.1", "hold_out=retry").train
    assert any(row.extra_info["rollout"] == "retry" for row in calm)
    assert not any(row.extra_info.get("retry") for row in calm)


def test_counts_say_what_is_left_out(training_data: Path) -> None:
    there = {name: len(stored(locate(str(training_data), name).train)) for name in ("full", "retry")}
    found = chosen(training_data, "data=retry", "alpha=0.25")
    taken = Counter(row.extra_info["rollout"] for row in found.train)
    assert taken["single"] + found.left_out["plain, beyond alpha"] == there["full"]
    assert taken["retry"] + found.left_out["disturbed, beyond alpha"] == there["retry"]
    assert taken["retry"] == round(taken.total() / 4)
    few = chosen(training_data, "data=retry", "alpha=0.25", limit=20)
    assert Counter(row.extra_info["rollout"] for row in few.train) == {"single": 15, "retry": 5}
    assert len(chosen(training_data, limit=7).train) == 7


def test_equal_inputs_give_equal_bytes_and_another_seed_other_rows(
    training_data: Path, mixed: Rows, tmp_path: Path
) -> None:
    other = chosen(training_data, "data=retry", "alpha=0.25", seed=1)
    again = chosen(training_data, "data=retry", "alpha=0.25")
    (first, second, third) = (
        write(rows, tmp_path / name).train[0].read_bytes()
        for name, rows in (("mixed", mixed), ("again", again), ("other", other))
    )
    assert first == second != third


def test_a_batch_holds_rows_of_both(mixed: Rows) -> None:
    """Whoever reads the file without shuffling does not train on one kind, then the other."""
    rollouts = [row.extra_info["rollout"] for row in mixed.train]
    assert sum(one != other for one, other in itertools.pairwise(rollouts)) > len(rollouts) / 5


def test_every_gold_earns_the_maximum_of_its_own_reward(mixed: Rows) -> None:
    for row in mixed.train:
        gold, info = row.reward_model["ground_truth"], row.extra_info
        if info["rollout"] == "retry" and info["retry"] and gold_calls(gold):
            info = {**info, "attempts": [gold, gold], "error_attempt": 0}
            if retry.permanent(info["retry"]):
                report = "<think> No. </think>\n<response> The credentials were refused. </response>"
                info["attempts"] = [gold, report]
        assert compute_score("rlla", gold, gold, info)["score"] == validation.best(gold)


def test_each_row_has_the_reward_of_its_rollout_and_all_have_the_same_keys() -> None:
    gold = '<think> t </think>\n<tool_call>\n{"name": "a", "parameters": {"x": 1}}\n</tool_call>'
    wrong = gold.replace("1", "2")
    single = compute_score("rlla", wrong, gold, {"rollout": "single"})
    assert single["score"] == toolrl.compute_score("rlla", wrong, gold)["score"]
    assert {name: single[name] for name in ("met_error", "charged", "first_score")} == {
        "met_error": 0.0, "charged": 0.0, "first_score": single["score"],
    }  # fmt: skip
    fault = {"type_code": "transient_timeout", "error": "timed out", "position": 1}
    info = {"rollout": "retry", "retry": fault, "attempts": [gold, wrong, gold], "error_attempt": 0}
    again = compute_score("rlla", "", gold, info, penalty=1.0)
    assert again == retry.compute_score("rlla", "", gold, info, penalty=1.0)
    assert again["charged"] == 1.0
    assert single.keys() == again.keys()
    priced = [compute_score("rlla", gold, gold, one, shaping=0.25) for one in (info, {"rollout": "single"})]
    assert priced[0].keys() == priced[1].keys() == single.keys() | {"shaping_score"}


@pytest.mark.parametrize("info", [None, {}, {"rollout": "full"}])
def test_a_row_that_names_no_rollout_is_a_mistake_of_the_set_up(info: dict[str, Any] | None) -> None:
    with pytest.raises(ValueError, match="name single, retry or live"):
        compute_score("rlla", "", "", info)


def test_wrong_input_is_one_line(training_data: Path, tmp_path: Path) -> None:
    for config in ("full", "retry"):
        for split in ("train", "validation"):
            path = tmp_path / "broken" / config / f"{split}-00000-of-00001.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"prompt": ["x"], "extra_info": ["{"]}), path)
    (tmp_path / "only" / "retry").mkdir(parents=True)
    for path in (training_data / "retry").iterdir():
        (tmp_path / "only" / "retry" / path.name).write_bytes(path.read_bytes())
    retried = ("data=retry", "alpha=0.5")
    refuses("no dataset at", chosen, tmp_path / "none")
    refuses("unknown config", chosen, tmp_path / "only", *retried)
    assert (
        len(chosen(tmp_path / "only", "data=retry").validation) == 64
    )  # alone, it validates on its own rows
    refuses("not rows of `rbtc build toolrl-dr`", chosen, tmp_path / "broken")
    refuses("--rows 5000: .* give at most", chosen, training_data, *retried, limit=5000)
    refuses("none of one kind is left", chosen, training_data, "alpha=0.5")


def test_the_pages_numbers_are_those_of_toolrls_rows(shared: Path, tmp_path: Path) -> None:
    spec = toolrl_spec.TrainingSpec(rlla=shared / "sources/toolrl/dataset", configs=("full", "retry"))
    toolrl_dr.build(
        spec,
        tmp_path / "data",
        checks=toolrl_versions.Checks(earns_maximum=toolrl.earns_maximum),
        card=training_card,
    )
    page = (ROOT / "train_recipes" / "README.md").read_text()
    for share in (0.5, 0.25):
        found = chosen(tmp_path / "data", "data=retry", f"alpha={share}")
        taken = Counter(row.extra_info["rollout"] for row in found.train)
        numbers = [taken.total(), taken["single"], taken["retry"], *found.left_out.values()]
        assert f"| {share:g} | " + " | ".join(map(str, numbers)) + " |" in page
