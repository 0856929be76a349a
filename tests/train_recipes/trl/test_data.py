"""Rows and reward as TRL gets them; no TRL is needed here."""

import json
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.eval.score.reward import compute_score, variant_from_env
from robustbench_tc.train_recipes import grpo, recipe as recipes, reward, sft, start, validation
from robustbench_tc.train_recipes.rows import choose
from robustbench_tc.train_recipes.trl import data, smoke, toy
from tests.refusals import refuses
from tests.trees import write


@pytest.fixture(scope="module")
def rows(training_data: Path) -> list[dict[str, Any]]:
    return data.rows(choose(str(training_data), recipes.read_recipe("grpo")[0]).train)


def test_all_rows_come_with_their_gold(rows: list[dict[str, Any]], training_data: Path) -> None:
    report = json.loads((training_data / "build_report.json").read_text())
    assert len(rows) == report["rows"]["full"]["train"]
    golds = [row["ground_truth"] for row in rows]
    earned = data.scores(golds, [row["data_source"] for row in rows], golds)
    assert earned == [validation.best(gold) for gold in golds]
    assert {validation.best(gold) for gold in golds} <= {1.0, 4.0}


def test_the_reward_is_that_of_the_oracle(shared: Path) -> None:
    """Every recorded answer, as a text and as TRL's message."""
    seen = 0
    for line in (shared / "vectors" / "toolrl_reward.jsonl").open():
        vector = json.loads(line)
        plain = variant_from_env(vector["env"]) == variant_from_env({})
        if not plain or vector["upstream_exception"] is not None:
            continue
        answer, gold = vector["solution_str"], vector["ground_truth"]
        said: list[Any] = [answer, [{"role": "assistant", "content": answer}]]
        assert data.scores(said, ["rlla"] * 2, [gold] * 2) == pytest.approx([vector["score"]] * 2, abs=1e-9)
        seen += 1
    assert seen > 100


def test_the_control_permutes_and_logs_what_is_true() -> None:
    gold = toy.gold(toy.TASKS[0])
    answers = [gold, "nothing", "<think> a </think>", *["junk"] * 20]
    logged: dict[str, float] = {}
    common: dict[str, Any] = {
        "prompts": [None] * len(answers),
        "completions": answers,
        "data_source": ["rlla"] * len(answers),
        "ground_truth": [gold] * len(answers),
        "log_metric": logged.__setitem__,
        "trainer_state": None,
    }
    true = data.reward()(**common)
    assert true == [compute_score("rlla", one, gold)["score"] for one in answers]
    assert logged == {"score": sum(true) / len(true), "at_maximum": 1 / len(true)}
    kept = dict(logged)
    permuted = data.reward(shuffled=3)(**common)
    assert sorted(permuted) == sorted(true) and permuted != true and logged == kept
    assert data.reward(shuffled=3)(**common) == permuted


def test_shaping_is_that_of_verl(rows: list[dict[str, Any]]) -> None:
    priced = [row for row in rows if row["component"] == "reward"]
    golds = [row["ground_truth"] for row in priced]
    offers = [row["offers"] for row in priced]
    earned = data.scores(golds, ["rlla"] * len(golds), golds, offers, shaping=0.25)
    verls = [
        reward.compute_score(
            "rlla", gold, gold, {"rollout": "single", "offers": json.loads(row["offers"])}, shaping=0.25
        )["score"]
        for row, gold in zip(priced, golds, strict=True)
    ]
    assert earned == verls and set(earned) == {4.25}


def test_fine_tuning_rows_are_a_prompt_and_a_completion(training_data: Path) -> None:
    chosen = choose(str(training_data), recipes.read_recipe("sft")[0]).train
    for row, pair in zip(chosen, sft.pairs(chosen), strict=True):
        assert [turn["role"] for turn in pair["completion"]] == ["assistant"]
        turns = [(turn["role"], turn["content"]) for turn in pair["prompt"] + pair["completion"]]
        assert turns == [(turn.role, turn.content) for turn in row.messages]


def test_the_toys_rows_are_what_its_tokenizer_was_made_for() -> None:
    assert len({task.tool for task in toy.TASKS}) == len(toy.TASKS) == toy.SFT_ROWS + 2
    for task in toy.TASKS:
        gold = toy.gold(task)
        assert compute_score("rlla", gold, gold)["score"] == 4.0
        assert set(task.arguments) == set(task.parameters)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"words": ["data=retry"]}, "errors inside the rollout"),
        ({"words": ["data=paft"]}, "is not for the recipe grpo"),
        ({"dataset": "/nowhere/at-all"}, "at-all"),
        ({"words": ["beta"]}, "write KEY=VALUE"),
    ],
)
def test_mistakes_are_one_line(
    changed: dict[str, Any], said: str, training_data: Path, tmp_path: Path
) -> None:
    refuses(
        said, grpo.grpo, **{"model": "m", "out": tmp_path / "run", "dataset": str(training_data), **changed}
    )
    assert not (tmp_path / "run").exists()


def test_weights_that_cannot_be_saved_are_one_line(training_data: Path, tmp_path: Path) -> None:
    write(tmp_path, {"model/small-Q4_1.gguf": b"GGUF"})
    refuses(
        r"small-Q4_1\.gguf is GGUF", sft.sft, str(tmp_path / "model"), tmp_path / "run", str(training_data)
    )


def test_a_folder_of_other_settings_is_refused(training_data: Path, tmp_path: Path) -> None:
    run = start.begin("grpo", str(training_data), [], "m", tmp_path / "run", None, 4, 0)
    start.keep(run, {"lora": None})
    start.keep(run, {"lora": None})
    for other, more in ((run, {"lora": 2}), (run._replace(seed=1), {"lora": None})):
        refuses("other settings", start.keep, other, more)
    write(tmp_path, {"mine/thesis.txt": "x"})
    refuses("is not empty", start.keep, run._replace(out=tmp_path / "mine"), {})
    refuses("is not a folder", start.keep, run._replace(out=tmp_path / "mine" / "thesis.txt"), {})
    settings = tmp_path / "run" / start.SETTINGS
    settings.write_text(settings.read_text()[:-9])  # not a run's own doing: it is written at once
    refuses("other settings", start.keep, run, {"lora": None})


def test_bars_compare_whole_windows() -> None:
    curve = [{"score": float(at >= 12)} for at in range(24)]
    assert smoke.change(curve, "score") == 1.0
    assert smoke.change(list(reversed(curve)), "score") == -1.0
    up, flat = smoke.BARS[0], smoke.BARS[2]
    assert up.holds(0.8) and not up.holds(0.79) and flat.holds(0.3) and not flat.holds(0.31)
    assert "FAILED" in up.verdict_line(0.1) and "holds" in up.verdict_line(1.0)


def test_fresh_keeps_a_folder_that_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    refuses("is kept", smoke.smoke, out=tmp_path, fresh=True)
    assert (tmp_path / "thesis.txt").read_text() == "x"


def test_a_smoke_test_that_was_stopped_takes_the_build_that_is_there(tmp_path: Path) -> None:
    write(tmp_path, {"base-0/config.json": "{}"})
    assert smoke._prepared(tmp_path, 0) == tmp_path / "base-0"
    (built,) = (tmp_path / "toolrl-dr" / "full").glob("train-*.parquet")
    before = built.stat().st_mtime_ns
    assert smoke._prepared(tmp_path, 0) == tmp_path / "base-0"
    assert built.stat().st_mtime_ns == before


def test_windows_that_are_too_short_are_one_line(tmp_path: Path) -> None:
    refuses("give 24", smoke.smoke, out=tmp_path / "toy", steps=23)
    assert not (tmp_path / "toy").exists()
