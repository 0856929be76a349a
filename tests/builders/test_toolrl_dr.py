"""The training builder: every row's draw, every config's rows, what is dropped and why."""

import json
import math
import os
import random
import subprocess
import sys
from array import array
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from scipy.stats import chisquare

from robustbench_tc import taxonomy
from robustbench_tc.builders.generators.base import Generator
from robustbench_tc.builders.toolrl_dr import build, mixture
from robustbench_tc.builders.toolrl_report import TrainingReport
from robustbench_tc.builders.toolrl_spec import TrainingSpec
from robustbench_tc.builders.toolrl_versions import Checks
from robustbench_tc.dataset_cards.training import training_card
from robustbench_tc.eval.score.reward import compute_score, earns_maximum
from robustbench_tc.io import parquet
from robustbench_tc.schema import Message

from ..known import INJECTED_ERRORS
from ..refusals import refuses
from ..trees import tree
from . import rlla_rows as made
from .writer import Writer

CHECKS = Checks(earns_maximum=earns_maximum)
STATIC = [t.code for t in taxonomy.types() if t.static]
MODEL_WRITTEN = [code for code in STATIC if taxonomy.get(code).method == "llm"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 train rows (48 with a call, 6 of them dialogues, 12 responses) and 5 for validation."""
    folder = tmp_path_factory.mktemp("rlla")
    train = [made.ferry_row(n) for n in range(42)] + [made.dialogue_row()] * 6
    question = made.user("What does the library do on a Sunday afternoon?")
    train += [
        (made.system(made.LIBRARY, made.FERRY), question, made.reply(f"{n} o'clock.")) for n in range(12)
    ]
    return made.write(folder, train, [made.ferry_row(1_000 + n) for n in range(5)])


def writers() -> dict[str, Generator]:
    return {code: Writer() for code in MODEL_WRITTEN}


def rows(folder: Path, config: str, split: str = "train") -> list[dict[str, Any]]:
    found = list(parquet.read_rows(parquet.shards(folder / config, split)))
    return [row | {"extra_info": json.loads(row["extra_info"])} for row in found]


def made_from(source: Path, out: Path, **changes: Any) -> TrainingReport:
    options: dict[str, Any] = {"checks": CHECKS, "card": training_card}
    options |= {name: changes.pop(name) for name in ("checks", "generators") if name in changes}
    return build(TrainingSpec(rlla=source, **changes), out, **options)


@pytest.fixture(scope="module")
def whole(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TrainingReport]:
    """All configs of these rows, with nothing said otherwise."""
    out = tmp_path_factory.mktemp("whole") / "toolrl-dr"
    return out, made_from(source, out)


# --- the real rows ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TrainingReport]:
    out = tmp_path_factory.mktemp("real") / "toolrl-dr"
    return out, made_from(shared / "sources", out)


ANSWERS = {"train": 54, "validation": 9}
"""Rows that only answer: they take types whose texts a model writes, and no other."""


UNSTATED = {"train": 46, "validation": 14}
"""Rows whose gold nobody could know, though its parameters are declared."""


def test_the_real_rows_make_all_four_configs(real: tuple[Path, TrainingReport]) -> None:
    _, report = real
    train, held = 390 - UNSTATED["train"], 79 - UNSTATED["validation"]
    fit = held - ANSWERS["validation"]
    pairs = {"validation": held + fit, "validation_perturbed": fit}
    clean = {"validation": held, "validation_perturbed": 0}
    full = train - ANSWERS["train"]
    assert report.rows["full"] == {"train": full, "perturbed": full, **pairs}
    assert report.rows["mixed"] == {"train": train, "perturbed": train // 2, **pairs}
    assert report.rows["paft"] == {"train": train, "perturbed": 3 * train // 10, **clean}
    assert report.rows["retry"] == {"train": train, "perturbed": 0, **clean}
    assert report.dropped == {
        "train": {
            "also_in_validation": 1,
            "gold_tool_not_listed": 1,
            "gold_parameter_not_declared": 8,
            "gold_not_stated": UNSTATED["train"],
        },
        "validation": {"gold_tool_not_listed": 1, "gold_not_stated": UNSTATED["validation"]},
    }
    assert ("rlla__sft_130", "gold_tool_not_listed") in report.dropped_rows
    assert list(report.lacking) == ["observation"]
    assert "No row of observation; `--generator URL`" in report.markdown()
    assert report.not_generated == tuple(MODEL_WRITTEN) and len(report.types) == 11
    assert chisquare([report.drawn.get(code, 0) for code in report.types]).pvalue > 0.01
    assert sum(report.validation_used.values()) == fit
    assert report.kept["validation_no_type_fits"] == ANSWERS["validation"]
    assert report.validation_components.keys() == {"action", "reward"}
    assert f"Validation of `full` and `mixed`: each row clean, and {fit}" in report.markdown()


def test_every_real_row_earns_the_maximum_with_its_own_gold(real: tuple[Path, TrainingReport]) -> None:
    for config in ("full", "mixed", "retry"):
        for split in ("train", "validation"):
            for row in rows(real[0], config, split):
                gold = row["reward_model"]["ground_truth"]
                best = 4.0 if "<tool_call>" in gold else 1.0
                assert compute_score(row["data_source"], gold, gold, row["extra_info"])["score"] == best


def test_full_has_no_clean_train_row_and_pairs_for_validation(real: tuple[Path, TrainingReport]) -> None:
    assert all(row["extra_info"]["type_code"] != "clean" for row in rows(real[0], "full"))
    held = rows(real[0], "full", "validation")
    assert held == rows(real[0], "mixed", "validation")
    clean = {row["extra_info"]["clean_id"]: row for row in held if row["extra_info"]["type_code"] == "clean"}
    perturbed = [row for row in held if row["extra_info"]["type_code"] != "clean"]
    assert len(clean) - len(perturbed) == ANSWERS["validation"]
    assert len({row["extra_info"]["index"] for row in held}) == len(held)
    for row in perturbed:
        assert row["prompt"] != clean.pop(row["extra_info"]["clean_id"])["prompt"]
    for config in ("retry", "paft"):
        codes = {row["extra_info"]["type_code"] for row in rows(real[0], config, "validation")}
        assert codes == {"clean"}


def test_validation_meets_types_that_training_leaves_out(
    source: Path, whole: tuple[Path, TrainingReport], tmp_path: Path
) -> None:
    """So that a run without a component shows whether robustness carries over to it; training is the same."""
    every, report = whole
    made_from(source, tmp_path / "action", configs=("full",), types=("action",))
    held = rows(tmp_path / "action", "full", "validation")
    assert held == rows(every, "full", "validation")
    assert {row["extra_info"]["component"] for row in rows(tmp_path / "action", "full")} == {"action"}
    assert sum(report.validation_used.values()) == sum(bool(row["extra_info"]["component"]) for row in held)
    assert report.validation_used


def test_no_benchmark_query_is_in_the_training_data(shared: Path, real: tuple[Path, TrainingReport]) -> None:
    from robustbench_tc.audits.contamination import Index, query
    from robustbench_tc.builders.sources import read_pool

    samples = read_pool(shared / "sources", "full").samples
    index = Index(query(sample.id, sample.messages) for sample in samples)
    assert index.size > 2_000
    for config in ("full", "retry"):
        for row in rows(real[0], config):
            message = Message("user", row["prompt"][1]["content"])
            overlap = index.look_up(query(row["extra_info"]["clean_id"], [message]))
            assert overlap is None or not overlap.contaminated


# --- laws ---------------------------------------------------------------------------------------------


def test_same_seed_same_bytes_in_another_process(
    source: Path, whole: tuple[Path, TrainingReport], tmp_path: Path
) -> None:
    here, report = whole
    assert report.left_out["full"] == 12 and set(report.not_generated) == set(MODEL_WRITTEN)
    script = (
        "import sys; from pathlib import Path\n"
        "from robustbench_tc.builders.toolrl_dr import build\n"
        "from robustbench_tc.builders.toolrl_spec import TrainingSpec\n"
        "from robustbench_tc.builders.toolrl_versions import Checks\n"
        "from robustbench_tc.eval.score.reward import earns_maximum\n"
        "from robustbench_tc.dataset_cards.training import training_card\n"
        "checks = Checks(earns_maximum=earns_maximum)\n"
        "build(TrainingSpec(rlla=Path(sys.argv[1])), Path(sys.argv[2]), checks=checks, card=training_card)"
    )
    command = [sys.executable, "-c", script, str(source), str(tmp_path / "there")]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": "7"})
    assert tree(here) == tree(tmp_path / "there")


def test_another_seed_moves_draws_but_no_clean_row(
    source: Path, whole: tuple[Path, TrainingReport], tmp_path: Path
) -> None:
    made_from(source, tmp_path / "b", configs=("full", "retry"), seed=1)
    both = whole[0], tmp_path / "b"
    drawn = [[row["extra_info"]["type_code"] for row in rows(folder, "full")] for folder in both]
    prompts = [[row["prompt"] for row in rows(folder, "retry")] for folder in both]
    assert drawn[0] != drawn[1] and prompts[0] == prompts[1]


def test_rows_do_not_influence_each_other(whole: tuple[Path, TrainingReport], tmp_path: Path) -> None:
    some = made.write(tmp_path / "some", [made.ferry_row(n) for n in range(5)], [made.ferry_row(1_000)])
    made_from(some, tmp_path / "few", configs=("full",))
    few, every = (
        [(row["prompt"], row["reward_model"]) for row in rows(folder, "full")]
        for folder in (tmp_path / "few", whole[0])
    )
    assert few == every[:5]


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=40),
    st.fractions(0, 1, max_denominator=20),
    st.integers(0, 5),
)
def test_a_mixture_holds_its_share_exactly(versions: list[int], share: Fraction, seed: int) -> None:
    times, left_out = mixture(array("B", versions), share, random.Random(seed))
    copies, clean, perturbed, at = max(*versions, 1), 0, 0, 0
    for count in versions:
        clean += times[at]
        perturbed += sum(times[at + 1 : at + 1 + count])
        assert all(n <= 1 for n in times[at + 1 : at + 1 + count])
        at += 1 + count
    assert perturbed == math.floor(share * (clean + perturbed))
    assert clean + perturbed + left_out == copies * len(versions)
    # rows are left out only where the share could not hold with one more of them
    assert left_out == 0 or perturbed < math.floor(share * (clean + perturbed + 1))


def test_first_draws_of_many_rows_are_uniform_over_all_sixteen_types(tmp_path: Path) -> None:
    made.write(tmp_path, [made.ferry_row(n) for n in range(800)], [made.ferry_row(9_000)])
    report = made_from(tmp_path, tmp_path / "out", configs=("full",), generators=writers())
    assert sum(report.drawn.values()) == 800 and set(report.drawn) == set(STATIC)
    assert chisquare(list(report.drawn.values())).pvalue > 0.001
    assert report.rows["full"]["train"] == 800


# --- types and texts ----------------------------------------------------------------------------------


def test_responses_take_the_five_model_written_types_and_no_other(source: Path, tmp_path: Path) -> None:
    made_from(source, tmp_path / "out", configs=("full",), generators=writers(), copies=16)
    found = [
        row for row in rows(tmp_path / "out", "full") if "<response>" in row["reward_model"]["ground_truth"]
    ]
    assert {row["extra_info"]["type_code"] for row in found} == set(MODEL_WRITTEN)
    assert len(found) == 12 * 5


def test_only_texts_that_were_drawn_are_asked_for(source: Path, tmp_path: Path) -> None:
    typos = Writer()
    report = made_from(source, tmp_path / "out", configs=("full",), generators={"realistic_typos": typos})
    tried = report.used["realistic_typos"] + sum(report.refused.get("realistic_typos", {}).values())
    assert 0 < typos.asked <= tried


def test_a_refused_text_means_another_draw(source: Path, tmp_path: Path) -> None:
    echo = {"query_paraphrase": Writer(lambda request: request.input)}
    types = ("query_paraphrase", "same_name_A")
    report = made_from(source, tmp_path / "out", configs=("full",), generators=echo, types=types)
    assert report.used == {"same_name_A": 48}
    assert set(report.refused["query_paraphrase"]) == {"unchanged"}


def test_repeated_rows_are_differently_perturbed(source: Path, tmp_path: Path) -> None:
    made_from(source, tmp_path / "out", configs=("full", "mixed"), copies=3, types=("action",))
    by_row: dict[str, list[str]] = {}
    for row in rows(tmp_path / "out", "full"):
        by_row.setdefault(row["extra_info"]["clean_id"], []).append(row["extra_info"]["type_code"])
    assert all(len(codes) == len(set(codes)) == 3 for codes in by_row.values())
    mixed = [row["extra_info"]["component"] for row in rows(tmp_path / "out", "mixed")]
    assert (len(mixed), mixed.count("action")) == (180, 90)


def test_distractors_of_other_rows_bring_their_parameters_in_upstreams_words(tmp_path: Path) -> None:
    host = {"host": {"description": "Which one.", "type": "string", "default": ""}}
    alone = made.system(made.NO_ARGUMENTS | {"parameters": host}), made.user("Is the ferry service up now?")
    gold = made.gold(("ping", {"host": "ferry"}))  # a call without arguments would fit any tool
    made.write(tmp_path, [made.ferry_row(1), (*alone, gold)], [made.ferry_row(9_000)])
    made_from(tmp_path, tmp_path / "out", configs=("full",), types=("same_name_C",))
    text = rows(tmp_path / "out", "full")[1]["prompt"][0]["content"]
    lent = [json.dumps(tool["parameters"]) for tool in (made.FERRY, made.MUSHROOM, made.LIBRARY)]
    assert any(f"Name: ping\nDescription: \nParameters: {parameters}" in text for parameters in lent)


def test_history_follows_the_renamed_tool(source: Path, tmp_path: Path) -> None:
    made_from(source, tmp_path / "out", configs=("full",), types=("CD_AB",))
    found = [row for row in rows(tmp_path / "out", "full") if "<obs>" in row["prompt"][1]["content"]]
    assert len(found) == 6
    for row in found:
        assert row["prompt"][1]["content"].count('{"name": "findFerTim", ') == 2
        assert row["extra_info"]["flags"] == ["history_renamed"]
        edits = [c for c in json.loads(row["extra_info"]["changes"]) if c["path"] == "/messages/0/content"]
        assert [edit["after"] for edit in edits] == ['"findFerTim"', '"findFerTim"']
        offers = row["extra_info"]["offers"]
        assert len(offers) == 1 and 4 * offers[0]["findFerTim"] <= offers[0]["findFerryTimes"]


# --- configs ------------------------------------------------------------------------------------------


def test_retry_rows_carry_one_of_the_six_errors_where_they_call(source: Path, tmp_path: Path) -> None:
    report = made_from(source, tmp_path / "out", configs=("retry",), retry_position=2)
    found = rows(tmp_path / "out", "retry")
    errors = [
        row["extra_info"]["retry"] for row in found if "<tool_call>" in row["reward_model"]["ground_truth"]
    ]
    assert all(e["error"] == INJECTED_ERRORS[e["type_code"]] and e["position"] == 2 for e in errors)
    assert (
        {e["type_code"] for e in errors}
        == {t.code for t in taxonomy.types() if t.injected_error}
        == set(report.injected)
    )
    assert sum(report.injected.values()) == 48
    assert [row["extra_info"]["retry"] for row in found].count(None) == 12


def test_retry_errors_can_be_rarer(source: Path, tmp_path: Path) -> None:
    assert made_from(source, tmp_path / "none", configs=("retry",), retry_probability=0.0).injected == {}
    half = made_from(source, tmp_path / "half", configs=("retry",), retry_probability=0.5)
    assert 8 < sum(half.injected.values()) < 40


def test_paft_holds_conversations_that_end_with_the_gold(source: Path, tmp_path: Path) -> None:
    made_from(source, tmp_path / "out", configs=("paft",), alpha=Fraction(0))
    found = rows(tmp_path / "out", "paft")
    assert [m["role"] for m in found[0]["messages"]] == ["system", "user", "assistant"]
    assert set(found[0]) == {"messages", "extra_info"}
    assert {row["extra_info"]["type_code"] for row in found} == {"clean"} and len(found) == 60


def test_it_loads_by_name(
    whole: tuple[Path, TrainingReport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    monkeypatch.chdir(whole[0].parent)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    loaded = datasets.load_dataset("toolrl-dr", "full", cache_dir=str(tmp_path / "cache"))
    assert {split: len(part) for split, part in loaded.items()} == {"train": 48, "validation": 10}
    assert loaded["train"][0]["extra_info"]["index"] == 1
    assert datasets.get_dataset_config_names("toolrl-dr") == ["full", "mixed", "retry", "paft"]


# --- what is dropped ----------------------------------------------------------------------------------


SAIL = made.gold(("findFerryTimes", {"harbour": "Turku"}), ("sail", {}))
BOATS = tuple(text.replace("boat", "boat " * 300) for text in made.ferry_row(2))
WORDS = {"tokens": lambda turns: sum(len(turn["content"].split()) for turn in turns), "max_tokens": 250}


def asked_for(parameters: dict[str, str]) -> made.Row:
    asked = made.user("Sail me to Turku in first class.")
    return made.system(made.FERRY), asked, made.gold(("findFerryTimes", parameters))


@pytest.mark.parametrize(
    ("row", "checks", "reason"),
    [
        (made.ferry_row(9_000), {}, "also_in_validation"),
        ((*made.ferry_row(2)[:2], made.ferry_row(2)[2] + " trailing words"), {}, "gold_below_maximum"),
        ((made.system(made.FERRY), made.user("Sail me to Turku."), SAIL), {}, "gold_tool_not_listed"),
        (asked_for({"harbour": "Turku", "class": "first"}), {}, "gold_parameter_not_declared"),
        (asked_for({"harbour": "Visby"}), {}, "gold_not_stated"),
        (
            made.ferry_row(2),
            {"leaks": lambda id, messages: id == "rlla__train_1" and "harbour 2" in messages[0].content},
            "benchmark_query",
        ),
        (BOATS, WORDS, "prompt_too_long"),
    ],
)
def test_a_row_that_cannot_be_trained_on_is_dropped(
    row: made.Row, checks: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    made.write(tmp_path, [made.ferry_row(1), row], [made.ferry_row(9_000)])
    judge = msgspec.structs.replace(CHECKS, **checks)
    report = made_from(tmp_path, tmp_path / "out", configs=("full",), checks=judge)
    assert report.dropped["train"] == {reason: 1}
    assert report.dropped_rows == (("rlla__train_1", reason),)
    assert report.prompt_length["unit"] == ("tokens" if "tokens" in checks else "characters")
    assert "tokens" not in checks or report.prompt_length["quantiles"]["max"] <= 250


# --- errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"types": ("transient_timeout",)}, "transient_timeout happens at run time"),
        ({"types": ("transition",)}, "transition happens at run time"),
        ({"types": ("CDD",)}, "did you mean CD"),
        ({"configs": ("fulll",)}, "did you mean full"),
        ({"ratio": Fraction(3, 2)}, "--ratio 3/2 is not a share"),
        ({"copies": 17}, "--copies 17"),
        ({"retry_probability": 2.0}, "--retry-probability"),
        ({"retry_position": 0}, "--retry-position 0"),
        ({"types": ("CD_AB_pref",)}, "CD_AB_pref is for measuring only"),
        ({"types": ("CD", "CD_swap"), "counterbalance": True}, "makes the rows of CD_swap itself"),
        ({"types": ("action",), "counterbalance": True}, "no reward type of the core is drawn"),
        ({"types": ("ofers",)}, "did you mean offers"),
    ],
)
def test_bad_wishes_are_one_line_and_leave_nothing(
    source: Path, tmp_path: Path, changes: Mapping[str, Any], message: str
) -> None:
    refuses(message, made_from, source, tmp_path / "out", **changes)
    assert list(tmp_path.iterdir()) == []


def test_a_source_without_a_usable_row_is_an_error(tmp_path: Path) -> None:
    made.write(tmp_path, [("no tools", "hi", made.reply())], [made.ferry_row(1)])
    refuses(r"no row can serve \(tools_not_parsed 1\)", made_from, tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_verdict_against_a_renamed_gold_ends_the_build(source: Path, tmp_path: Path) -> None:
    seen = set[str]()

    def earns(gold: str) -> bool:
        seen.add(gold)
        return "findFerTim" not in gold

    checks = Checks(earns_maximum=earns)
    refuses("renamed gold", made_from, source, tmp_path / "out", types=("CD_AB",), checks=checks)
    assert any("findFerryTimes" in gold for gold in seen)


def test_the_report_says_how_its_steps_differ_from_the_papers() -> None:
    counts: dict[str, Any] = dict.fromkeys(TrainingReport.__struct_fields__)
    report = TrainingReport(**counts | {"rows": {"full": {"train": 3_905}, "mixed": {"train": 4_000}}})
    assert (report.steps("full"), report.steps("mixed")) == (183, 186)
