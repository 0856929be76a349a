"""Cards say what is there: builds of four mixtures of types, and what each says of itself."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from robustbench_tc.api.building import build_release
from robustbench_tc.builders.build import BuildSpec, select_types
from robustbench_tc.builders.report import BuildReport
from robustbench_tc.builders.toolrl_dr import build as build_training
from robustbench_tc.builders.toolrl_report import TrainingReport
from robustbench_tc.builders.toolrl_spec import TrainingSpec
from robustbench_tc.builders.toolrl_versions import Checks
from robustbench_tc.dataset_cards import responsible_ai, sentences
from robustbench_tc.dataset_cards.render import benchmark_card
from robustbench_tc.dataset_cards.training import training_card
from robustbench_tc.eval.score.reward import earns_maximum
from robustbench_tc.io import parquet

from ..builders import rlla_rows as made

CORE = ("CD", "realistic_typos", "transient_timeout", "transient_auth_error")

MIXTURES: dict[str, tuple[tuple[str, ...], dict[str, bool]]] = {
    "static": (
        ("CD", "redundant"),
        {
            "- English only.": True,
            "nothing is injected at run time": True,
            "One injected error": False,
            "After a 401": False,
            "for the second pass": False,
            "more after answered calls": False,
            "It has no adversary": True,
            "earlier exchanges": False,
            "against the row's own": False,
        },
    ),
    "core": (
        CORE,
        {
            "- English only.": True,
            "One injected error a row, always at the first call.": True,
            "After a 401": True,
            "more after answered calls": True,
            "It has no adversary": True,
            "same error": False,
        },
    ),
    "packs": (
        ("language_zh", "language_es", "context_8k", "context_2k", "injected_result", "type_shift", "CD"),
        {
            "English only": False,
            "English, but for the requests of": True,
            "Chinese": True,
            "Spanish": True,
            "Arabic": False,
            "up to 8,000 tokens": True,
            "up to 32,000 tokens": False,
            "One injected error": False,
            "In injected_result the first call is answered with a result.": True,
            "It has no adversary": False,
            "Only injected_result contains injected instructions": True,
            "in type_shift against the row's own.": True,
            "After a 401": False,
        },
    ),
    "repeated": (
        ("transient_timeout_x2", "transient_timeout_x9", "transient_timeout"),
        {
            "meet the same error: transient_timeout_x2 2 and transient_timeout_x9 9.": True,
            "One injected error a row, always at the first call.": True,
            "earlier exchanges": False,
        },
    ),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_every_sentence_is_of_the_types_that_have_rows(name: str, tmp_path: Path) -> None:
    codes, sentences = MIXTURES[name]
    out = tmp_path / "robustbench-tc"
    report = build_release(BuildSpec(profile="bundled", codes=select_types(codes), allow_missing=True), out)
    card = (out / "README.md").read_text()
    text = " ".join(card.split())
    built = {code: sum(by_source.values()) for code, by_source in report.rows.items()}
    assert all(built.values()), "every type of the mixture has rows"
    assert {sentence: sentence in text for sentence in sentences} == sentences
    spoken = {code.rpartition("_")[2] for code in codes if code.startswith("language_")}
    assert set(yaml.safe_load(card.split("---")[1])["language"]) == {"en", *spoken}
    assert _most_requests(text) == _counted(out, report)
    beside = json.dumps(responsible_ai.benchmark(9, [], [], list(built)))
    assert ("English only" in beside) is not bool(spoken)


def _most_requests(text: str) -> int:
    match = re.search(r"at most (\d+) requests", text)
    assert match is not None
    return int(match.group(1))


def _counted(out: Path, report: BuildReport) -> int:
    """One for each row, and one for each call that is answered, which the row's own type says by its name."""
    answered = {"transient_timeout_x2": 2, "transient_timeout_x9": 9}
    at_run_time = {"injected_result", "benign_result", "transient_timeout", "transient_auth_error"}
    answered |= dict.fromkeys(at_run_time, 1)
    counts = {code: sum(1 for _ in parquet.read_rows(parquet.shards(out / code))) for code in report.rows}
    return sum(rows * (1 + answered.get(code, 0)) for code, rows in counts.items())


def test_golds_that_are_known_to_be_wrong_are_counted(tmp_path: Path) -> None:
    report = build_release(BuildSpec(profile="bundled", codes=("CD",)), tmp_path / "robustbench-tc")
    flagged = msgspec.structs.replace(report, flags={"gold_not_stated": {"clean": 11, "CD": 7, "TD": 2}})
    text = " ".join(benchmark_card(flagged).split())
    assert "11 golden answers of clean rows cannot be inferred by anybody" in text
    assert "and are still included, with their 9 perturbed rows." in text
    none = " ".join(benchmark_card(msgspec.structs.replace(report, flags={})).split())
    assert "0 golden answers of clean rows cannot be inferred by anybody" in none


def test_a_type_without_a_row_is_not_spoken_of() -> None:
    assert sentences.languages(["CD"]) == "English only."
    assert sentences.languages(["CD", "language_hi"]).endswith("of language_hi, which are in Hindi.")
    assert (
        sentences.further_requests({"clean": 5, "CD": 4, "transient_timeout": 3, "injected_result": 2}) == 5
    )


# --- training -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def toolrl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rlla")
    made.write_parquet(folder / "train.parquet", [made.ferry_row(n) for n in range(6)])
    made.write_parquet(folder / "test.parquet", [made.ferry_row(9_000)])
    return folder


def trained(toolrl: Path, out: Path, **changes: Any) -> tuple[TrainingReport, str]:
    spec = TrainingSpec(rlla=toolrl, **changes)
    report = build_training(spec, out, checks=Checks(earns_maximum=earns_maximum), card=training_card)
    return report, " ".join((out / "README.md").read_text().split())


def test_the_head_of_training_data_counts_the_types_that_were_used(toolrl: Path, tmp_path: Path) -> None:
    report, card = trained(toolrl, tmp_path / "a", configs=("full",), types=("CD", "same_name_A"))
    components = ", ".join(f"{name} {rows}" for name, rows in report.components.items())
    used = [code for code, rows in report.used.items() if rows]
    assert f"has one of {len(used)} types of RobustBench-TC ({components} of" in card
    assert "meets one of" not in card and "No row meets a transition error." in card
    assert "`paft`" not in card and "`retry`" not in card


def test_training_data_without_a_perturbed_row_say_so(toolrl: Path, tmp_path: Path) -> None:
    report, card = trained(toolrl, tmp_path / "b", configs=("retry",), retry_position=2)
    assert "No row is perturbed. In `retry` the tool turn 2 of" in card
    assert f"meets one of {len(report.injected)} transition errors" in card
    assert "Validation rows of `retry` are clean." in card and "draws one of" not in card


def test_a_build_that_used_none_of_a_type_warns(toolrl: Path, tmp_path: Path, rbtc: Any) -> None:
    """Nobody writes the typos."""
    done = rbtc(
        "build", "toolrl-dr", "--rlla", toolrl, "--out", tmp_path / "c", "--types", "realistic_typos,CD",
        "--configs", "full",
    )  # fmt: skip
    assert done.code == 0, done.err
    report = json.loads((tmp_path / "c" / "build_report.json").read_text())
    assert report["not_generated"] == ["realistic_typos"]
    assert "no row was made of realistic_typos" in " ".join(done.err.split())
    assert "**No row was made of `realistic_typos`.**" in (tmp_path / "c" / "README.md").read_text()
