"""Rows of `full` and `retry` together: which, how many, and what each says of itself."""

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
from robustbench_tc.train_recipes import validation
from robustbench_tc.train_recipes.dataset import locate
from robustbench_tc.train_recipes.mixture.reward import compute_score
from robustbench_tc.train_recipes.mixture.rows import NUMBERS, main, sizes, write
from robustbench_tc.train_recipes.retry import reward as retry
from tests.conftest import ROOT
from tests.refusals import refuses

Rows = list[dict[str, Any]]


def rows(paths: list[Path]) -> Rows:
    found: Rows = []
    for path in paths:
        for row in pq.read_table(path).to_pylist():
            found.append({**row, "extra_info": json.loads(row["extra_info"])})
    return found


@pytest.fixture(scope="module")
def mixed(training_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("mixed") / "mixture-training"
    write(str(training_data), out, 0.25)
    return out


@given(st.integers(1, 400), st.integers(1, 400), st.floats(0.01, 0.99))
def test_the_share_holds_and_no_more_rows_would_fit(single: int, retries: int, share: float) -> None:
    try:
        taken = sizes(single, retries, share)
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
    assert sizes(single, retries, share) == taken


@pytest.mark.parametrize("share", [0, 1, -0.5, 2, float("nan")])
def test_what_is_no_share(share: float) -> None:
    refuses("give the share of retry rows, above 0 and below 1", sizes, 10, 10, share)


def test_a_share_that_leaves_no_row_of_one_of_them() -> None:
    refuses("leaves none of one of full and retry", sizes, 3, 3, 0.01)


def test_each_row_is_that_of_its_config_and_says_which(training_data: Path, mixed: Path) -> None:
    """Nothing of a row changes but the two things that are said of it, and its place."""
    indices: dict[str, list[int]] = {"train": [], "validation": []}
    shards = locate(str(mixed), "mixture")
    for split, found in (("train", rows(shards.train)), ("validation", rows(shards.validation))):
        known = {
            recipe: [
                row
                for row in rows(getattr(locate(str(training_data), config), split))
                if split == "train" or bool(row["extra_info"].get("retry")) is (recipe == "retry")
            ]
            for recipe, config in (("toolrl_dr", "full"), ("retry", "retry"))
        }
        for row in itertools.chain(*known.values()):
            row["extra_info"].pop("index")
        for row in found:
            recipe = row["extra_info"].pop("recipe")
            agent = {"toolrl_dr": "full_agent", "retry": "retry_agent"}[recipe]
            assert row.pop("agent_name") == agent
            indices[split].append(row["extra_info"].pop("index"))
            known[recipe].remove(row)  # once: no row is taken twice
        if split == "validation":
            assert known == {"toolrl_dr": [], "retry": []}
        assert indices[split] == list(range(len(found)))


def test_counts_say_what_is_left_out(
    training_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(training_data), "--share", "0.25", "--out", str(tmp_path / "m")]) == 0
    said = dict(line.rsplit(": ", 1) for line in capsys.readouterr().out.splitlines())
    counts = {name: int(count) for name, count in said.items()}
    there = {name: len(rows(locate(str(training_data), name).train)) for name in ("full", "retry")}
    for name in there:
        assert counts[f"train: {name}"] + counts[f"left out: {name}, beyond the share"] == there[name]
    found = Counter(row["agent_name"] for row in rows(locate(str(tmp_path / "m"), "mixture").train))
    assert found["retry_agent"] == counts["train: retry"] == round(found.total() / 4)
    assert "left out: validation of retry, no error to meet" in counts
    kept = json.loads((tmp_path / "m" / NUMBERS).read_text())
    assert kept["rows"] == counts and (kept["share"], kept["seed"]) == (0.25, 0)
    assert set(kept["sha256"]) >= {"full/train-00000-of-00001.parquet", "retry/train-00000-of-00001.parquet"}
    assert main([str(training_data), "--share", "0.25", "--rows", "20", "--out", str(tmp_path / "few")]) == 0
    found = Counter(row["agent_name"] for row in rows(locate(str(tmp_path / "few"), "mixture").train))
    assert found == {"full_agent": 15, "retry_agent": 5}


def test_equal_inputs_give_equal_bytes_and_another_seed_other_rows(
    training_data: Path, mixed: Path, tmp_path: Path
) -> None:
    write(str(training_data), tmp_path / "again", 0.25)
    write(str(training_data), tmp_path / "other", 0.25, seed=1)
    name = "mixture/train-00000-of-00001.parquet"
    assert (tmp_path / "again" / name).read_bytes() == (mixed / name).read_bytes()
    assert (tmp_path / "other" / name).read_bytes() != (mixed / name).read_bytes()


def test_a_batch_holds_rows_of_both(mixed: Path) -> None:
    """Whoever reads the file without shuffling does not train on one recipe, then the other."""
    agents = [row["agent_name"] for row in rows(locate(str(mixed), "mixture").train)]
    assert sum(one != other for one, other in itertools.pairwise(agents)) > len(agents) / 5


def test_every_gold_earns_the_maximum_of_its_own_reward(mixed: Path) -> None:
    for row in rows(locate(str(mixed), "mixture").train):
        gold, info = row["reward_model"]["ground_truth"], row["extra_info"]
        if info["recipe"] == "retry" and info["retry"] and gold_calls(gold):
            info = {**info, "attempts": [gold, gold], "error_attempt": 0}
            if retry.permanent(info["retry"]):
                report = "<think> No. </think>\n<response> The credentials were refused. </response>"
                info["attempts"] = [gold, report]
        assert compute_score("rlla", gold, gold, info)["score"] == validation.best(gold)


def test_each_row_has_the_reward_of_its_recipe_and_all_have_the_same_keys() -> None:
    gold = '<think> t </think>\n<tool_call>\n{"name": "a", "parameters": {"x": 1}}\n</tool_call>'
    wrong = gold.replace("1", "2")
    single = compute_score("rlla", wrong, gold, {"recipe": "toolrl_dr"})
    assert single["score"] == toolrl.compute_score("rlla", wrong, gold)["score"]
    assert {name: single[name] for name in ("met_error", "charged", "first_score")} == {
        "met_error": 0.0, "charged": 0.0, "first_score": single["score"],
    }  # fmt: skip
    fault = {"type_code": "transient_timeout", "error": "timed out", "position": 1}
    info = {"recipe": "retry", "retry": fault, "attempts": [gold, wrong, gold], "error_attempt": 0}
    again = compute_score("rlla", "", gold, info, penalty=1.0)
    assert again == retry.compute_score("rlla", "", gold, info, penalty=1.0)
    assert again["charged"] == 1.0
    assert single.keys() == again.keys()


@pytest.mark.parametrize("info", [None, {}, {"recipe": "retry_live"}])
def test_a_row_that_names_no_recipe_is_a_mistake_of_the_set_up(info: dict[str, Any] | None) -> None:
    with pytest.raises(ValueError, match="rows of a mixture name toolrl_dr or retry"):
        compute_score("rlla", "", "", info)


def test_wrong_input_is_one_line_and_leaves_nothing(
    training_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.txt").write_text("x")
    broken = tmp_path / "broken"
    for config in ("full", "retry"):
        for split in ("train", "validation"):
            path = broken / config / f"{split}-00000-of-00001.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"prompt": ["x"], "extra_info": ["{"]}), path)
    only_full = tmp_path / "only"
    (only_full / "full").mkdir(parents=True)
    for path in (training_data / "full").iterdir():
        (only_full / "full" / path.name).write_bytes(path.read_bytes())
    for words, line in (
        ([str(tmp_path / "none"), "--out", str(tmp_path / "m")], "no dataset at"),
        ([str(only_full), "--out", str(tmp_path / "m")], "unknown config"),
        ([str(broken), "--out", str(tmp_path / "m")], "not rows of `rbtc build toolrl-dr`"),
        ([str(training_data), "--share", "nan", "--out", str(tmp_path / "m")], "--share nan"),
        ([str(training_data), "--rows", "5000", "--out", str(tmp_path / "m")], "give at most"),
        ([str(training_data), "--rows", "-4", "--out", str(tmp_path / "m")], "choose another share"),
        ([str(training_data), "--out", str(tmp_path / "there")], "take another --out"),
    ):
        assert main(words) == 1
        said = capsys.readouterr().err
        assert line in said and said.count("\n") == 1, said
        assert not (tmp_path / "m").exists()
    assert (tmp_path / "there" / "mine.txt").read_text() == "x"


def test_whoever_takes_a_build_for_a_mixture_is_told_what_makes_one(training_data: Path) -> None:
    refuses(
        r"`python -m robustbench_tc\.train_recipes\.mixture\.rows DATASET",
        locate,
        str(training_data),
        "mixture",
    )


def test_the_pages_numbers_are_those_of_toolrls_rows(shared: Path, tmp_path: Path) -> None:
    spec = toolrl_spec.TrainingSpec(rlla=shared / "sources/toolrl/dataset", configs=("full", "retry"))
    toolrl_dr.build(
        spec,
        tmp_path / "data",
        checks=toolrl_versions.Checks(earns_maximum=toolrl.earns_maximum),
        card=training_card,
    )
    page = (ROOT / "train_recipes" / "mixture" / "README.md").read_text()
    for share in (0.5, 0.25):
        found = write(str(tmp_path / "data"), tmp_path / str(share), share)
        names = ("train: full", "train: retry", "left out: full, beyond the share")
        numbers = [found[name] for name in (*names, "left out: retry, beyond the share")]
        assert f"| {share:g} | {numbers[0] + numbers[1]} | " + " | ".join(map(str, numbers)) + " |" in page
