"""`rbtc build --cases`: own cases through the same builder, with their book and card."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

from robustbench_tc import api, taxonomy
from robustbench_tc.builders.build import factorial
from robustbench_tc.compute.parallel import Workers
from robustbench_tc.own.book import read

from ...conftest import Done
from ...own import shop
from ...refusals import refuses


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    api.build(folder / "bench", cases=shop.write(folder))
    return folder / "bench"


def reported(bench: Path) -> Any:
    return json.loads((bench / "build_report.json").read_text())


def test_every_pair_of_case_and_type_is_a_row_or_a_skip_with_a_reason(bench: Path) -> None:
    report = reported(bench)
    clean = report["rows"]["clean"]["own"]
    assert clean == 8
    skipped = Counter(skip["type_code"] for skip in report["skipped"])
    assert set(report["rows"]) == {"clean", *taxonomy.codes()}
    for code in taxonomy.codes():
        assert report["rows"][code].get("own", 0) + skipped[code] == clean, code
    reasons = {(skip["type_code"], skip["clean_id"]): skip["reason"] for skip in report["skipped"]}
    assert reasons["query_paraphrase", "own__who"] == "not_generated"
    assert reasons["CD", "own__thanks"] == "no_gold_call"
    assert reasons["transient_timeout", "own__vague"] == "no_gold_call"


def test_typing_errors_are_made_by_rule_and_keep_what_gold_needs(bench: Path) -> None:
    rows = datasets.load_dataset(
        str(bench), "realistic_typos", split="test", cache_dir=str(bench.parent / "cache")
    )
    assert {row["generator"] for row in rows} == {"rule"}
    texts = {row["clean_id"]: row["messages"][-1]["content"] for row in rows}
    assert "1042" in texts["own__refund"] and "broken" in texts["own__refund"]
    assert texts["own__refund"] != "Please refund order 1042 because the parcel arrived broken."
    assert "Miller" in texts["own__who"]


def test_the_book_and_the_card_say_what_it_is(bench: Path) -> None:
    found = read(bench)
    assert found is not None
    assert (found.cases, found.turns, found.several_turns) == (7, 8, True)
    assert [one.name for one in found.files] == ["cases.yaml", "orders.json", "crm.json"]
    assert found.results["own__chain"] == {"get_order": ({"customer": "C-2"},)}
    card = (bench / "README.md").read_text()
    assert "not the\npublished benchmark" in card and "No world stands behind them" in card
    assert "license: other" in card and "apache" not in card.casefold()
    assert str(bench.parent) not in "".join(path.read_text() for path in bench.glob("*.json*"))


def test_same_cases_same_bytes_on_any_number_of_processes(bench: Path, tmp_path: Path) -> None:
    api.build(tmp_path / "again", cases=bench.parent / "cases.yaml", workers=Workers(num_proc=2))
    for path in sorted(path for path in bench.rglob("*") if path.is_file()):
        assert (tmp_path / "again" / path.relative_to(bench)).read_bytes() == path.read_bytes(), path


def test_other_cases_are_other_bytes(bench: Path, tmp_path: Path) -> None:
    cases = shop.write(tmp_path)
    cases.write_text(cases.read_text().replace("Miller", "Meyer"))
    api.build(tmp_path / "bench", cases=cases, types=("CD",))
    assert (tmp_path / "bench" / "own.json").read_bytes() != (bench / "own.json").read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--profile", "paper"), "--profile is for the published benchmark"),
        (("--sources", "."), "--sources is for the published benchmark"),
        (("--errata", "x.jsonl"), "--errata"),
        (("--generator", "query_paraphrase=rule"), "rules write realistic_typos alone"),
        (("--types", "nothing_such"), "nothing_such"),
    ],
)
def test_options_that_make_no_sense_are_one_line(
    words: tuple[str, str], said: str, tmp_path: Path, rbtc: Any
) -> None:
    cases = shop.write(tmp_path)
    assert said in rbtc("build", "--cases", cases, "--out", tmp_path / "bench", *words).refusal
    assert not (tmp_path / "bench").exists()


def test_a_gold_that_no_reply_can_meet_names_its_case(tmp_path: Path) -> None:
    cases = shop.write(tmp_path)
    cases.write_text(cases.read_text().replace("{regex: broken}", "{regex: '[^\\s\\S]'}"))
    refuses(r"cases\.yaml:\d+: .*", api.build, tmp_path / "bench", cases=cases)


def test_a_strangers_folder_is_not_replaced(tmp_path: Path, rbtc: Any) -> None:
    cases = shop.write(tmp_path)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "thesis.tex").write_text("mine")
    done = rbtc("build", "--cases", cases, "--out", tmp_path / "bench", "--force")
    assert done.code == 1 and done.err.count("\n") == 1
    assert (tmp_path / "bench" / "thesis.tex").read_text() == "mine"


def test_the_factorial_design_has_all_its_cells(tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    folder = tmp_path / "bench"
    done = rbtc("build", "--cases", shop.write(tmp_path), "--design", "factorial", "--out", folder)
    assert done.code == 0, done.err
    rows = reported(folder)["rows"]
    assert set(rows) == {"clean", *factorial()} and all(one["own"] for one in rows.values())
    assert rbtc("eval", folder, "--agent", "oracle", "--out", tmp_path / "run").code == 0
    gate = rbtc("gate", tmp_path / "run")
    assert gate.code == 0 and "not looked at, beyond the core's types: mix__" in gate.out
