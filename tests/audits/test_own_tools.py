"""The gate over a dataset of own tools: green as built, red once touched; nothing leaves without a word."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api
from robustbench_tc.audits import gate
from robustbench_tc.audits.report import AuditReport

from ..own import shop
from ..released import report_says
from . import builds


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    api.build(folder / "bench", cases=shop.write(folder))
    return folder / "bench"


def red(report: AuditReport) -> set[str]:
    return {one.id for one in report.checks if one.blocks}


def test_it_is_green_and_says_what_was_not_looked_at(bench: Path) -> None:
    report = gate.audit(bench)
    assert report.passed and red(report) == set()
    left_out = {one.id for one in report.checks if one.status == "not_run"}
    assert {
        "provenance.clean_rows",
        "rows.flag_says_what_the_golds_say",
        "paraphrase.query_paraphrase",
    } <= left_out
    ran = {one.id for one in report.checks if one.status == "passed"}
    assert {"provenance.report", "rows.gold_passes_its_scorer", "rows.unit_finds_nothing"} <= ran
    assert {"rows.gold_is_there", "rows.gold_at_its_index", "configs.complete"} <= ran


def edited(config: str, column: str, old: str, new: str) -> Callable[[Path], None]:
    def change(rows: list[builds.Row]) -> None:
        assert any(old in str(row[column]) for row in rows)
        for row in rows:
            if isinstance(row[column], str):
                row[column] = row[column].replace(old, new)
            elif isinstance(row[column], list):
                for message in row[column]:
                    message["content"] = message["content"].replace(old, new)

    return lambda folder: builds.edit_training(folder, config, change, "test")


EDITS: dict[str, Callable[[Path], object]] = {
    "gold of a perturbed row": edited("CD", "golden_answers", "1042", "1043"),
    "gold of the clean rows": edited("clean", "golden_answers", "Miller", "Meyer"),
    "a tool of a perturbed row": edited("same_name_A", "tools", "Pays money back.", "Pays."),
    "the request of a perturbed row": edited("same_name_A", "messages", "1042", "1043"),
    "a category": edited("clean", "category", "no_call", "calls"),
    "a source": edited("CD", "source", "own", "apibank"),
    "an injected text": edited("transient_timeout", "injected_error", "timed out", "ran out"),
    "a row that is gone": lambda folder: builds.edit_training(folder, "CD", lambda rows: rows.pop(0), "test"),
    "a config that is gone": lambda folder: shutil.rmtree(folder / "TD"),
    "a book that is gone": lambda folder: (folder / "own.json").unlink(),
    "a book with other words": lambda folder: (folder / "own.json").write_text('{"version": 1}'),
    "a stranger's file": lambda folder: (folder / "notes.txt").write_text("x"),
    "a card that says more": lambda folder: (folder / "README.md").write_text("# The best benchmark"),
}


@pytest.mark.parametrize("what", EDITS)
def test_what_was_touched_is_red(bench: Path, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "bench"
    shutil.copytree(bench, folder)
    EDITS[what](folder)
    report_says(folder)
    report = gate.audit(folder)
    assert not report.passed and red(report)


def test_the_desk_that_comes_with_the_package_is_green(tmp_path: Path) -> None:
    api.init(tmp_path / "demo")
    api.build(tmp_path / "bench", cases=tmp_path / "demo" / "cases.yaml")
    assert red(gate.audit(tmp_path / "bench")) == set()


def test_a_schema_that_refers_to_itself_is_one(tmp_path: Path) -> None:
    cases = shop.write(tmp_path)
    tree = {"type": "object", "properties": {"parts": {"type": "array", "items": {"$ref": "#"}}}}
    tools = [*shop.ORDERS, {"name": "plan", "description": "Plans.", "parameters": tree}]
    (tmp_path / "orders.json").write_text(json.dumps(tools))
    api.build(tmp_path / "bench", cases=cases, types=("CD",))
    assert red(gate.audit(tmp_path / "bench")) == set()


def test_a_key_in_a_request_is_found_an_address_is_not(tmp_path: Path) -> None:
    cases = shop.write(tmp_path)
    text = cases.read_text().replace(
        "Find the customer Miller", "Find the customer Miller of m@shop.example.org"
    )
    cases.write_text(text)
    api.build(tmp_path / "one", cases=cases, types=("CD",))
    assert red(gate.audit(tmp_path / "one")) == set()
    key = "ghp_" + "a1B2" * 9
    cases.write_text(text.replace("Miller of", f"Miller with {key} of"))
    api.build(tmp_path / "two", cases=cases, types=("CD",))
    assert "rows.clean_credentials_reviewed" in red(gate.audit(tmp_path / "two"))


def test_it_leaves_its_makers_hands_only_where_he_says_so(bench: Path, tmp_path: Path, rbtc: Any) -> None:
    release = ("release", bench, "--version", "1.0.0", "--out", tmp_path / "bench")
    for words in ((), ("--trial",)):
        assert "--i-own-this-data" in rbtc(*release, *words).refusal
        assert not (tmp_path / "bench").exists()
    assert rbtc(*release, "--i-own-this-data").code == 0
    assert "no licence" in (tmp_path / "bench" / "LICENSE").read_text()
    assert "not the\npublished benchmark" in (tmp_path / "bench" / "README.md").read_text()
    assert rbtc("verify", tmp_path / "bench").code == 0
    assert "--i-own-this-data" in rbtc("publish", tmp_path / "bench", "acme/shop", "--dry-run").refusal
    assert rbtc("audit", tmp_path / "bench", "--out", tmp_path / "audit").code == 0
