"""What an own case wanted of an argument stands in the failures, in one row and on the page."""

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.eval.wanted import describe, unmet
from robustbench_tc.schema import Call, Json, Sample, Tool, Verdict

from ..conftest import Done

TOOLS = (Tool("refund", "Refunds.", {"type": "object", "properties": {"amount": {"type": "number"}}}),)


def row(*answers: tuple[Call, ...], category: str = "calls", source: str = "own") -> Sample:
    return Sample(
        id="own__a::clean",
        clean_id="own__a",
        type_code="clean",
        source=source,
        category=category,
        messages=(),
        tools=TOOLS,
        golden_answers=answers,
        output_format="tool_call_tags",
    )


def wrong(*calls: Call) -> Verdict:
    return Verdict(
        calls=calls,
        variant=None,
        score=0.0,
        correct=False,
        reason="wrong_value",
        error_mode="wrong_parameters",
    )


def refund(**arguments: Json) -> Call:
    return Call("refund", arguments)


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"number": 19.9, "tolerance": 0.01}, "19.9 ± 0.01"),
        ({"number": 20}, "20"),
        ({"date": "2026-11-24"}, "the day 2026-11-24"),
        ({"regex": "^a"}, "a text with /^a/"),
        ({"set": ["a", {"any": True}]}, '["a", anything] in any order'),
        ({"one_of": ["mail", {"regex": "phone"}]}, '"mail" or a text with /phone/'),
        ({"exact": {"regex": "a"}}, '{"regex":"a"}'),
        ({"value": {"number": 1, "tolerance": 2}, "unit": ["x"]}, '{"value": 1 ± 2, "unit": ["x"]}'),
        (None, "null"),
    ],
)
def test_every_matcher_has_words(expected: Json, said: str) -> None:
    assert describe(expected) == said


def test_the_first_argument_that_is_wrong_is_named() -> None:
    amount = {"amount": [{"number": 19.9, "tolerance": 0.01}]}
    golden = (refund(**amount),)
    assert unmet(wrong(refund(amount=25)), row(golden)) == "amount: 19.9 ± 0.01 wanted, 25 given"
    assert unmet(wrong(refund()), row(golden)) == "amount: 19.9 ± 0.01 wanted, nothing given"
    assert unmet(wrong(refund(amount=19.9, fast=True)), row(golden)) == "fast: not wanted, true given"
    long = unmet(wrong(refund(amount="x" * 10_000)), row(golden))
    assert long is not None and len(long) < 200
    two = (refund(**amount), refund(amount=[7]))
    assert unmet(wrong(refund(amount=7), refund(amount=8)), row(two)) == "amount: 19.9 ± 0.01 wanted, 8 given"
    ordered = unmet(wrong(refund(amount=7), refund(amount=19.9)), row(two, category="calls+ordered"))
    assert ordered == "amount: 19.9 ± 0.01 wanted, 7 given"


def test_nothing_is_said_where_no_argument_is_what_is_wrong() -> None:
    golden = (refund(amount=[1]),)
    assert unmet(wrong(), row(golden)) is None
    assert unmet(wrong(Call("other", {})), row(golden)) is None
    assert unmet(wrong(refund(amount=1), refund(amount=1)), row(golden)) is None
    assert unmet(wrong(refund(amount=2)), row(golden, source="bfcl_v3")) is None


def test_failures_show_and_the_report_say_it(
    tmp_path: Path, rbtc: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop.json").write_text(
        '[{"name": "refund", "description": "Refunds.", "parameters": {"type": "object", "properties":'
        ' {"amount": {"type": "number"}}, "required": ["amount"]}}]'
    )
    Path("cases.yaml").write_text(
        "version: 1\ntools: [shop.json]\ncases:\n- {id: a, request: Refund 19.90 please., expect:"
        " [{call: refund, arguments: {amount: {number: 19.9, tolerance: 0.01}}}]}\n"
    )
    Path("helper_of_wanted.py").write_text(
        "from robustbench_tc.api import Reply\n"
        "def answer(task):\n"
        "    return Reply(calls=[{'name': 'refund', 'arguments': {'amount': 25}}])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert rbtc("build", "--cases", "cases.yaml", "--types", "clean", "--out", "bench").code == 0
    done = rbtc("eval", "bench", "--callable", "helper_of_wanted:answer", "--out", "run")
    assert done.code == 0, done.err
    said = "amount: 19.9 ± 0.01 wanted, 25 given"
    assert said in rbtc("failures", "run").out
    assert said in rbtc("show", "own__a::clean", "--run", "run").out
    assert rbtc("report", "run", "--out", "report").code == 0
    assert said in json.dumps(embedded(Path("report/report.html")), ensure_ascii=False)


def embedded(page: Path) -> Any:
    text = page.read_text("utf-8").partition('id="rows"')[2].partition(">")[2].partition("<")[0]
    return json.loads(zlib.decompress(base64.b64decode(text), -15))
