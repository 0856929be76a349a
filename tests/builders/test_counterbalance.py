"""Training beyond the core: types drawn by name, and half of the priced rows with their offers swapped."""

import json
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import taxonomy
from robustbench_tc.builders import rebuild
from robustbench_tc.builders.perturb.swapped import SWAPPED
from robustbench_tc.builders.sources.rlla import gold_calls
from robustbench_tc.builders.toolrl_spec import SWAPS
from robustbench_tc.dataset_cards.training import training_card
from robustbench_tc.eval.prompts.rlla_form import parse_system
from robustbench_tc.eval.score.reward import compute_score
from robustbench_tc.io import marker

from ..trees import tree
from . import rlla_rows as made
from .test_toolrl_dr import CHECKS, made_from, rows


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 train rows: 50 with one call, 4 of them dialogues, and 6 that call two tools."""
    folder = tmp_path_factory.mktemp("rlla")
    train = [made.ferry_row(n) for n in range(50)] + [made.dialogue_row()] * 4
    two = made.gold(("findFerryTimes", {"harbour": "Turku"}), ("identify_mushroom", {"cap": "red"}))
    asks = [
        made.user(f"What boats leave Turku, and which mushroom number {n} has a red cap?") for n in range(6)
    ]
    train += [(made.system(made.FERRY, made.MUSHROOM), one, two) for one in asks]
    return made.write(folder, train, [made.ferry_row(1_000)])


def by_id(folder: Path) -> dict[str, dict[str, Any]]:
    return {row["extra_info"]["clean_id"]: row for row in rows(folder, "full")}


def test_half_of_the_priced_rows_are_swapped_and_no_other_row_moves(source: Path, tmp_path: Path) -> None:
    usual = made_from(source, tmp_path / "usual", configs=("full",))
    report = made_from(source, tmp_path / "swapped", configs=("full",), counterbalance=True)
    before, after = by_id(tmp_path / "usual"), by_id(tmp_path / "swapped")
    assert before.keys() == after.keys()
    swapped = kept = 0
    for clean_id, row in before.items():
        code, now = row["extra_info"]["type_code"], after[clean_id]["extra_info"]["type_code"]
        if now == code:
            assert after[clean_id] == row
            kept += code in SWAPPED
            continue
        assert code in SWAPPED and now == SWAPPED[code].code
        swapped += 1
        for offers in after[clean_id]["extra_info"]["offers"]:
            called = {call.name for call in gold_calls(after[clean_id]["reward_model"]["ground_truth"])}
            (best,) = called & offers.keys()
            assert all(4 * offers[best] <= value for name, value in offers.items() if name != best)
        gold = after[clean_id]["reward_model"]["ground_truth"]
        assert compute_score("rlla", gold, gold, after[clean_id]["extra_info"])["score"] == 4.0
        assert after[clean_id]["prompt"][0] != row["prompt"][0]
    assert swapped >= 5 and kept >= 5 and swapped + kept == sum(usual.used.get(code, 0) for code in SWAPPED)
    assert report.drawn == usual.drawn
    static = {kind.code for kind in taxonomy.types() if kind.static}
    assert {*usual.types, *usual.not_generated} == static and len(static) == 16, "no type beyond the core"
    assert {code: report.used[code] for code in SWAPS if code in report.used}
    assert "| CD_AB_swap | reward | counterbalance |" in report.markdown()
    assert b"counterbalance" not in (tmp_path / "usual" / marker.BUILD).read_bytes()


def test_rows_that_call_two_tools_are_swapped_too_and_transcripts_follow(
    source: Path, tmp_path: Path
) -> None:
    made_from(source, tmp_path / "out", configs=("full",), types=("CD", "CD_AB"), counterbalance=True)
    found = [row for row in rows(tmp_path / "out", "full") if row["extra_info"]["type_code"] in SWAPS]
    assert any(len(row["extra_info"]["offers"]) == 2 for row in found)
    for row in found:
        names = {tool.name for tool in parse_system(row["prompt"][0]["content"]).tools}
        called = [call.name for call in gold_calls(row["reward_model"]["ground_truth"])]
        assert names.issuperset(called)
        suffixed = [name.endswith("_Budget") for name in called]
        assert all(suffixed) == (row["extra_info"]["type_code"] == "CD_swap") == any(suffixed)
        if "<obs>" in row["prompt"][1]["content"]:
            assert f'"name": "{called[0]}"' in row["prompt"][1]["content"]


def test_the_same_swaps_in_a_build_made_again(source: Path, tmp_path: Path) -> None:
    made_from(source, tmp_path / "a", counterbalance=True)
    made_from(source, tmp_path / "other-seed", counterbalance=True, seed=1)
    options: dict[str, Any] = {"checks": CHECKS, "leak_note": "not done", "card": training_card}
    rebuild.rebuild_training(tmp_path / "a", tmp_path / "b", rlla_root=source, **options)
    assert tree(tmp_path / "a") == tree(tmp_path / "b") != tree(tmp_path / "other-seed")


def test_a_pack_is_drawn_by_name_as_far_as_it_is_there_to_train_on(source: Path, tmp_path: Path) -> None:
    report = made_from(source, tmp_path / "out", configs=("full",), types=("offers",))
    wanted = tuple(k.code for k in taxonomy.types("all") if k.pack == "offers" and k.train_augmentable)
    assert report.types == wanted and len(wanted) == 12
    assert "CD_AB_pref" in taxonomy.codes_of("offers") and "CD_AB_pref" not in wanted
    for row in rows(tmp_path / "out", "full"):
        info, gold = row["extra_info"], row["reward_model"]["ground_truth"]
        assert compute_score("rlla", gold, gold, info)["score"] == 4.0
        (name,) = {call.name for call in gold_calls(gold)}
        for offers in info["offers"]:
            assert offers[name] == min(offers.values()) and len(offers) == 2
        assert bool(info["offers"]) == (not info["type_code"].endswith("_moot"))


def test_a_tool_that_lacks_a_parameter_is_written_in_upstreams_words(tmp_path: Path) -> None:
    harbours = [f"harbour {n}" for n in range(8)]
    train = [
        (
            made.system(made.FERRY),
            made.user(f"Boats from {harbour}?"),
            made.gold(("findFerryTimes", {"harbour": harbour})),
        )
        for harbour in harbours
    ]
    made.write(tmp_path, train, [made.ferry_row(9_000)])
    made_from(tmp_path, tmp_path / "out", configs=("full",), types=("CD_moot", "TD_moot"))
    ferry: dict[str, Any] = made.FERRY
    whole = ferry["parameters"]
    parts = [json.dumps({name: whole[name]}) for name in whole]
    found = rows(tmp_path / "out", "full")
    assert len(found) == 8
    for row in found:
        text = row["prompt"][0]["content"]
        assert f"Parameters: {json.dumps(whole)}" in text
        assert sum(f"Parameters: {part}" in text for part in parts) == 1
