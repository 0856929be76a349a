"""`rbtc build --cases`: own cases through the same builder, with their book and card."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

from robustbench_tc import api, taxonomy
from robustbench_tc.builders.build import BuildSpec, build, factorial
from robustbench_tc.builders.generate import Rule
from robustbench_tc.builders.generators.base import kinds
from robustbench_tc.builders.own.dataset import book, pool
from robustbench_tc.builders.report import BuildReport
from robustbench_tc.builders.sources import OWN_CASES
from robustbench_tc.dataset_cards.render import own_card
from robustbench_tc.io import parquet
from robustbench_tc.own.book import NAME, read_book
from robustbench_tc.own.cases_file import read_cases
from robustbench_tc.own.desk import desk

from ...conftest import Done
from ...own import shop
from ...refusals import refuses
from ...trees import tree, write
from ..writer import Writer


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    api.build(folder / "bench", cases=shop.write(folder))
    return folder / "bench"


def reported(bench: Path) -> Any:
    return json.loads((bench / "build_report.json").read_text())


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
    found = read_book(bench)
    assert found is not None
    assert (found.cases, found.turns) == (7, 8)
    skipped = reported(bench)["skipped"]
    reasons = {(skip["type_code"], skip["clean_id"]): skip["reason"] for skip in skipped}
    assert reasons["query_paraphrase", "own__who"] == "not_generated"
    assert reasons["CD", "own__thanks"] == reasons["transient_timeout", "own__vague"] == "no_gold_call"
    assert [one.name for one in found.files] == ["cases.yaml", "orders.json", "crm.json"]
    assert found.results["own__chain"] == {"get_order": ({"customer": "C-2"},)}
    card = (bench / "README.md").read_text()
    assert "not the\npublished benchmark" in card and "They are not played in a world" in card
    assert "license: other" in card and "apache" not in card.casefold()
    beside = [*bench.glob("*.json*"), bench / "README.md"]
    assert str(bench.parent) not in "".join(path.read_text("utf-8") for path in beside)


def test_same_cases_same_bytes_on_any_number_of_processes_and_in_any_folder(
    bench: Path, tmp_path: Path
) -> None:
    api.build(tmp_path / "again", cases=shop.write(tmp_path / "my cases"), num_proc=2)
    assert tree(tmp_path / "again") == tree(bench)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--profile", "paper"), "--profile is for the published benchmark"),
        (("--sources", "."), "--sources is for the published benchmark"),
        (("--errata", "x.jsonl"), "--errata"),
        (("--generator", "query_paraphrase=rule"), "rules write only realistic_typos"),
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


def test_the_factorial_design_has_all_its_cells(tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    folder = tmp_path / "bench"
    done = rbtc("build", "--cases", shop.write(tmp_path), "--design", "factorial", "--out", folder)
    assert done.code == 0, done.err
    rows = reported(folder)["rows"]
    assert set(rows) == {"clean", *factorial()} and all(one["own"] for one in rows.values())
    assert rbtc("eval", folder, "--agent", "oracle", "--out", tmp_path / "run").code == 0
    gate = rbtc("gate", tmp_path / "run", "--allow-inconclusive")
    assert gate.code == 0 and "not gated, beyond the core types: mix__" in gate.out


# --- Own cases of every kind as a whole build: all types' own checks, same bytes, errors of one line


MORE = """
- id: größe-ü
  request: What is the status of order 2001, in the store of Zürich?
  expect: [{call: get_order, arguments: {order_id: 2001}}]
- id: any
  request: Find the customer that wrote us from grace@example.com, or ask me which one I mean.
  any_of: [[{call: "crm:find", arguments: {email: grace@example.com}}], ask, no_call]
- id: both-finds
  request: Find the customer grace@example.com and all of her orders, please.
  expect:
  - {call: "crm:find", arguments: {email: grace@example.com}}
  - {call: "orders:find", arguments: {customer_email: grace@example.com}}
- id: second-same
  request: Count the parcels of order 7 with the second counter, please.
  expect: [{call: "extra:count#2", arguments: {order: {one_of: [7, {number: 7.0}]}}}]
- id: first-same
  request: Count the parcels of order 8, whichever counter you like best.
  expect: [{call: "count", arguments: {order: 8, tags: {set: []}, raw: {exact: {regex: literal}}}}]
- id: odd-schema
  request: Set it to Hello, then do the thing without parameters, please.
  expect:
  - {call: set_it, arguments: {a: Hello, b: null, c: {next: {}}, d: 4, e: [1], default: x, f: 1, g: [1, "2"]}}
  - {call: no_parameters}
- {id: name-alone, request: Do the thing that has a name alone., expect: [{call: name_alone}]}
- id: calls-before
  messages:
  - {role: user, content: Which items are in order 9?}
  - role: assistant
    content: I look.
    tool_calls: [{id: c1, type: function, function: {name: get_order, arguments: '{"order_id": 9}'}}]
  - {role: tool, tool_call_id: c1, content: '{"items": ["a lamp"]}'}
  - {role: assistant, content: A lamp.}
  - {role: user, content: Then cancel that order because of a mistake.}
  expect: [{call: cancel_order, arguments: {order_id: 9, reason: ordered_by_mistake}}]
"""
COUNT = """{"name": "count", "description": "%s", "inputSchema": {"type": "object", "required": ["order"],
 "properties": {"order": {"type": "integer", "description": "Number of the order."},
  "tags": {"type": "array", "items": {"type": "string"}}, "raw": {"type": "object"}}}}"""
EXTRA = f'{{"tools": [{COUNT % "Counts parcels in the hall."}, {COUNT % "Counts those on the road."}]}}'
ODD = """[{"type": "function", "function": {"name": "set_it", "description": "Sets it.", "parameters": {
 "type": "object", "required": ["a"], "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}},
 "properties": {"a": {"type": ["string", "null"]}, "b": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
  "c": {"$ref": "#/$defs/node"}, "d": true, "e": {}, "default": {"type": "string"}, "f": {"enum": ["x", 1]},
  "g": {"type": ["array", "object"], "items": {"type": ["integer", "string"]}}}}}},
 {"type": "function", "function": {"name": "no_parameters", "parameters": {"type": "object"}}},
 {"type": "function", "function": {"name": "name_alone"}}]"""
PAIR = "version: 1\ntools: [extra.json]\ncases:\n- "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's files and more cases, in a folder whose name holds a blank."""
    files: dict[str, str | bytes] = dict(desk())
    text = desk()["cases.yaml"].decode()
    files["cases.yaml"] = text.replace("crm.json]", "crm.json, extra.json, odd.json]", 1) + MORE
    files |= {"extra.json": EXTRA, "odd.json": ODD}
    return write(tmp_path_factory.mktemp("own") / "my cases", files)


@pytest.fixture(scope="module")
def whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BuildReport]:
    """A build of all 22 types, for which every text was written."""
    cases = read_cases(folder / "cases.yaml")
    beside = book(cases)
    writers = {kind: Rule() if kind == "realistic_typos" else Writer() for kind in kinds()}
    out = tmp_path_factory.mktemp("built") / "all types"
    report = build(
        BuildSpec(profile=OWN_CASES),
        out,
        card=lambda made: own_card(made, beside),
        generators=writers,
        pool=pool(cases),
        beside={NAME: beside.json()},
    )
    return out, report


def rows(dataset: Path, code: str) -> list[dict[str, Any]]:
    return list(parquet.read_rows(parquet.shards(dataset / code, "test")))


def test_all_types_are_built_and_pass_their_own_checks(whole: tuple[Path, BuildReport]) -> None:
    out, report = whole  # `build` ends at the first row that breaks an invariant of its type
    clean = {row["id"] for row in rows(out, "clean")}
    assert {"own__größe-ü::clean", "own__calls-before::clean", "own__second-same::clean"} <= clean
    for code in taxonomy.codes():
        found = rows(out, code)
        assert found, code
        assert {f"{row['clean_id']}::clean" for row in found} <= clean
        assert len(found) + sum(skip.type_code == code for skip in report.skipped) == len(clean), code


@pytest.mark.parametrize(
    ("cases", "options", "said"),
    [
        ("version: 1\ntools: [extra.json]\ncases: []\n", {}, "'cases' must be a list that is not empty"),
        ("version: 1\ntools: []\ncases: []\n", {}, "'tools' must be a list that is not empty"),
        (f"{PAIR}{{id: a, request: Hi, expect: no_call}}\n", {"sources": "."}, "--sources is for the pub"),
        (f"{PAIR}{{id: a, request: Hi, expect: no_call}}\n", {"errata": "e"}, "--errata is for the pub"),
        (f"{PAIR}{{id: a, request: Hi, expect: no_call}}\n", {"generator": ["rul"]}, "did you mean rule"),
        (f"{PAIR}{{id: a, request: Hi, expect: [{{call: recount}}]}}\n", {}, "cases.yaml:4: "),
    ],
)
def test_what_cannot_be_built_is_one_line(
    cases: str, options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    write(tmp_path, {"cases.yaml": cases, "extra.json": EXTRA})
    options = {name: Path(v) if name in ("sources", "errata") else v for name, v in options.items()}
    refuses(re.escape(said), api.build, tmp_path / "bench", cases=tmp_path / "cases.yaml", **options)
    assert not (tmp_path / "bench").exists()


def test_a_folder_in_place_of_the_cases_file_is_said_to_be_one(folder: Path, tmp_path: Path) -> None:
    refuses("not a cases file: it is a folder", api.build, tmp_path / "bench", cases=folder)


def test_one_case_without_a_call_is_a_dataset_where_clean_rows_are_asked_for(tmp_path: Path) -> None:
    cases = f"{PAIR}{{id: a, request: 'Thank you very much for that!', expect: no_call}}\n"
    write(tmp_path, {"cases.yaml": cases, "extra.json": EXTRA})
    refuses(
        r"no type makes a row .*no_gold_call 1",
        api.build,
        tmp_path / "bench",
        cases=tmp_path / "cases.yaml",
        types=["CD_AB"],
    )
    report = api.build(tmp_path / "bench", cases=tmp_path / "cases.yaml", types=["clean"])
    assert report.types == () and len(rows(tmp_path / "bench", "clean")) == 1
