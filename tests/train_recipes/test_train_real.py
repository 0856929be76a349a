"""`make train-real`: its questions and its numbers; the run itself is in `make test-trl`."""

import json
import random
from pathlib import Path

import pytest
from benchmarks.train_real import result, rows
from benchmarks.train_real.__main__ import ROWS, TYPES, Cost

from robustbench_tc.eval.score.reward import compute_score

from ..conftest import ROOT, Rbtc

RESULT = ROOT / "benchmarks" / "train_real" / "result.json"


def test_no_tool_is_trained_on_and_held_out() -> None:
    trained, held = rows.registries()
    names = [name for one in (*trained, *held) for name in one.tools]
    assert len(names) == len(set(names)) == 4 * 26 and len(held) == rows.HELD_OUT
    for one in (*trained, *held):
        for _, parameters, requests in one.tools.values():
            assert len(set(requests)) == 3
            for text in requests:
                assert all(f"{{{name}}}" in text for name in parameters), text
                assert text.format(**dict.fromkeys(parameters, "")) != text


@pytest.mark.parametrize("condition", TYPES)
def test_the_first_answer_earns_the_most_and_no_other_does(
    condition: str, tmp_path: Path, rbtc: Rbtc
) -> None:
    _, held = rows.registries()
    rows.write(tmp_path / "rows", held, 16, seed=3, more=rows.UNUSED if condition == "moot" else {})
    words = ("--types", TYPES[condition], "--configs", "full,retry", "--generator", "realistic_typos=rule")
    done = rbtc("build", "toolrl-dr", "--rlla", tmp_path / "rows", *words, "--out", tmp_path / "built")
    assert done.code == 0, done.err
    asked = {data: rows.questions(tmp_path / "built", held, data) for data in ("clean", "dr-full", "retry")}
    assert len(asked["clean"]) == 16 and 8 <= len(asked["dr-full"]) <= 16
    assert all(one.type_code.startswith("transient_") for one in asked["retry"])
    for one in (*asked["clean"], *asked["dr-full"], *asked["retry"]):
        assert len(one.answers) == len(set(one.answers)) >= 3
        gold = one.thought + one.answers[0]
        texts = [f"<|im_start|>assistant\n{one.thought}{answer}<|im_end|>" for answer in one.answers]
        earned = [compute_score("rlla", text, gold)["score"] for text in texts]
        assert earned[0] == 4 and max(earned[1:]) < 4, (one, earned)
        (request,) = [turn["content"] for turn in one.messages if turn["role"] == "user"][:1]
        values = json.loads(one.answers[0].split("\n")[1])["parameters"].values()
        assert all(value in request for value in values)
    for before, after in zip(asked["clean"], asked["retry"], strict=False):
        assert len(after.messages) == 4 and after.answers[-1] == rows.GIVE_UP and len(before.messages) == 2


def arm(right: dict[str, list[int]]) -> dict[str, dict[str, bool]]:
    """Conditions with answers to numbered questions; those that are not named are all right."""
    size = len(right["clean"])
    return {
        name: {f"q{at}": bool(value) for at, value in enumerate(right.get(name, [1] * size))}
        for name in result.CONDITIONS
    }


def test_numbers_of_a_run_by_hand() -> None:
    base = arm({"clean": [0] * 8 + [1, 1]})
    clean = arm({"clean": [1] * 10, "action": [1] * 5 + [0] * 5, "reward": [0] * 10})
    perturbed = arm({"clean": [1] * 9 + [0], "action": [1] * 8 + [0] * 2, "reward": [1] * 5 + [0] * 5})
    arms = {"clean": clean, "perturbed": perturbed, "permuted": arm({"clean": [0] * 10})}
    first, second, third, fourth = result.bars(base, [arms])
    assert (first.gained, first.lost, first.holds) == (8, 0, True) and first.p == pytest.approx(2 / 2**8)
    assert (second.gained, second.lost) == (10, 0) and (third.gained, third.lost) == (8, 1)
    assert third.p == pytest.approx(2 * 10 / 2**9) and third.holds and fourth.holds
    assert result.clean_difference(arms).value == pytest.approx(-0.1)
    # Δ of the clean arm: −0.5 and −1; of the perturbed arm: −0.1 and −0.4
    assert result.endpoint(arms).value == pytest.approx((-0.1 - 0.4) / 2 - (-0.5 - 1) / 2)
    assert (
        not result.Bar(0, "clean", "base", 5, 5, 0.01).holds
        and "FAILED" in result.Bar(0, "a", "b", 4, 0, 0.125).line
    )


def test_the_recipe_is_tested_over_seeds_alone() -> None:
    assert result.over_seeds([0.2]) is None and result.over_seeds([0.2, 0.2]) is None
    found = result.over_seeds([0.1, 0.2, 0.3, 0.4, 0.5])
    assert found is not None and found[0] == pytest.approx(0.3)
    assert found[1:] == pytest.approx(
        (0.3 - 2.776445 * 0.0707107, 0.3 + 2.776445 * 0.0707107, 4.242641), rel=1e-4
    )
    assert "nothing is tested of the recipe" in result.power(72, 1) and "1.7 times" in result.power(72, 5)


def test_sizes_follow_the_budget() -> None:
    rng = random.Random(5)
    for _ in range(50):
        cost, seeds = Cost(rng.uniform(0.1, 5), rng.uniform(0.1, 2), rng.uniform(0.1, 9)), rng.randint(1, 5)
        share = rng.random()
        assert cost.minutes(seeds, 0) <= cost.minutes(seeds, share) <= cost.minutes(seeds, 1)
        assert cost.minutes(seeds, 1) > seeds * 3 / 2 * ROWS * cost.row / 60  # two models at once


def test_the_figure_of_the_docs_is_drawn_from_the_run() -> None:
    found = json.loads(RESULT.read_text())
    assert result.figure(found) == (ROOT / "docs" / "images" / "train-real.svg").read_text()
    told = (ROOT / "docs" / "training.md").read_text()
    for name, one in {"base": found["base"], **found["seeds"][0]}.items():
        cells = [f"{100 * result.accuracy(one['right'], condition):.0f}" for condition in result.CONDITIONS]
        assert f"| {name} | {' | '.join(cells)} | {one['written']} |" in told
    arms = {name: one["right"] for name, one in found["seeds"][0].items()}
    for bar in result.bars(found["base"]["right"], [arms]):  # the docs say what held, and what did not
        counts = f"{bar.gained} questions gained, {bar.lost} lost, p = {bar.p:.2g}"
        assert f"- {bar.arm} above {bar.against}: {counts}." in told
