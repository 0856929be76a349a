"""`rbtc compare`, `failures` and `show --run` as a user meets them."""

import json
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import schema
from robustbench_tc.builders.plain import published
from robustbench_tc.cli import _console
from robustbench_tc.eval import prompts
from robustbench_tc.eval.stats.failures import replies

from ..conftest import Rbtc
from . import small
from .synthetic_runs import coin, write_run

pytestmark = pytest.mark.usefixtures("new_folder")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("runs")
    return (
        str(write_run(folder / "a", coin(1, 0.5, 0.7), model="weak")),
        str(write_run(folder / "b", coin(2, 0.8, 0.9), model="strong")),
    )


def test_compare_prints_a_verdict_and_json_holds_the_same(rbtc: Rbtc, two: tuple[str, str]) -> None:
    shown = rbtc("compare", *two)
    assert shown.code == 0
    assert "strong is better than weak on perturbed rows" in shown.out
    found = json.loads(rbtc("compare", *two, "--json").out)
    assert found["overall"]["perturbed"]["n"] == 3817
    assert found["paper"] == []


def test_a_run_stands_beside_a_model_of_the_paper(rbtc: Rbtc, two: tuple[str, str]) -> None:
    shown = rbtc("compare", two[0], "paper:o4-mini").out
    assert shown.startswith("weak beside paper:o4-mini") and "unpaired, and over other rows" in shown
    found = json.loads(rbtc("compare", two[0], "paper:o4-mini", "--json").out)
    assert {line["name"] for line in found["paper"]} > {"clean", "reward", "CD"} and found["overall"] == {}


def test_compare_prints_corrected_tests_and_what_it_could_have_seen(rbtc: Rbtc, two: tuple[str, str]) -> None:
    shown = rbtc("compare", *two).out
    assert shown.count("p (Holm)") == 4  # of each table, and what it means
    assert "minimum detectable effect in points (80 % power; 199 samples, 1 repeat)" in shown
    same = rbtc("compare", two[0], two[0]).out
    assert "No significant difference" in same and "No single type differs" in same
    back = rbtc("compare", *two[::-1], "--json").out
    closed = [one["closed"] for one in json.loads(back)["deltas"].values()]
    assert rbtc("compare", *two[::-1]).out.count("not defined") == closed.count(None)


def test_compare_says_what_it_is_at_where_there_is_no_terminal(
    rbtc: Rbtc, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_console, "LINE_S", 600.0)
    quiet = rbtc("compare", *two, "--json")
    assert quiet.err == ""  # nothing for a short comparison
    monkeypatch.setattr(_console, "LINE_S", 0.0)
    done = rbtc("compare", *two, "--json")
    assert done.err.splitlines() == ["comparing: reading the runs", "comparing: counting"]
    assert done.out == quiet.out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["compare", "A", "paper:o5-mini"], "did you mean o4-mini"),
        (["compare", "A", "nowhere"], "nowhere is not a run folder"),
        (["failures", "A", "--type", "CDD"], "did you mean CD"),
    ],
)
def test_bad_input_is_one_line(rbtc: Rbtc, two: tuple[str, str], arguments: list[str], line: str) -> None:
    given = [two[0] if word == "A" else word for word in arguments]
    assert line in rbtc(*given).refusal


def test_wrong_words_are_one_line(rbtc: Rbtc, two: tuple[str, str]) -> None:
    for words, line in (
        (("compare", two[0]), "requires an argument"),
        (("compare", *two, "--subset", "papers"), 'Did you mean "paper"?'),
    ):
        done = rbtc(*words)
        assert done.code == 2 and line in done.err and done.err.count("\n") == 1


def test_failures_list_ids_and_reasons(rbtc: Rbtc, two: tuple[str, str]) -> None:
    found = rbtc("failures", two[0], "--type", "CD", "--limit", "3")
    assert "wrong_parameters" in found.out and "the first 3 shown" in found.out
    rows = json.loads(rbtc("failures", two[0], "--limit", "2", "--json").out)
    assert [row["verdict"]["correct"] for row in rows] == [False, False]


@pytest.fixture
def real_run(tmp_path: Path) -> Path:
    """A release of one sample under two types, and a run over it made with the harness's own files."""
    tool = schema.Tool(
        "book", "Books a table.", {"type": "object", "properties": {"day": {"type": "string"}}}
    )
    gold = ((schema.Call("book", {"day": ["monday"]}),),)

    def sample(code: str, error: str | None = None) -> schema.Sample:
        return schema.Sample(
            id=f"bfcl_v3__simple_1::{code}",
            clean_id="bfcl_v3__simple_1",
            type_code=code,
            component=None if error is None else "transition",
            source="bfcl_v3",
            category="simple",
            messages=(schema.Message("user", "Book a table for monday."),),
            tools=(tool,),
            golden_answers=gold,
            gold_tool_index=0,
            output_format="python_calls",
            injected_error=error,
        )

    import pyarrow.parquet as pq

    rows = (sample("clean"), sample("transient_timeout", "Tool execution timed out."))
    release = tmp_path / "robustbench-tc"
    for row in rows:
        (release / row.type_code).mkdir(parents=True)
        pq.write_table(
            schema.arrow_table([published(row)], schema.PublishedSample),
            release / row.type_code / "test-00000-of-00001.parquet",
        )
    wrong = "[book(day='tuesday')]\n\x1b[2J"
    right = "[book(day='monday')]"

    def reply(row: schema.Sample) -> dict[str, Any]:
        if not row.injected_error:
            return {"raw_output": right}
        return {"raw_output": wrong, "injected": True, "first_output": right}

    version = prompts.prompt_version()
    return small.scored_run(tmp_path / "run", release, "tiny", reply, prompt_version=version)


def test_show_tells_what_was_asked_answered_wanted_and_why(
    real_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _console.show(replies(real_run, "bfcl_v3__simple_1::transient_timeout"))
    shown = capsys.readouterr().out
    for part in (
        "asked (user): Book a table for monday.",
        "first reply: [book(day='monday')]",
        "answered with: Tool execution timed out.",
        "second reply: [book(day='tuesday')]",
        'gold: book {"day":["monday"]}',
        "verdict: wrong, score 0: ",
        "(wrong_parameters)",
    ):
        assert part in shown, part
    assert "\x1b[2J" not in shown and "\\x1b[2J" in shown


def test_show_of_a_sample_lists_its_verdicts(real_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _console.show(replies(real_run, "bfcl_v3__simple", dataset="robustbench-tc"))
    shown = capsys.readouterr().out
    assert "clean" in shown and "right" in shown and "wrong" in shown and "add ::TYPE" in shown


def test_show_without_the_dataset_says_what_it_cannot_show(
    real_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = real_run.parent / "robustbench-tc"
    release.rename(real_run.parent / "moved")
    _console.show(replies(real_run, "bfcl_v3__simple_1::clean"))
    shown = capsys.readouterr().out
    assert "prompt: not shown: " in shown and "verdict: right" in shown
    moved = real_run.parent / "moved"
    _console.show(replies(real_run, "bfcl_v3__simple_1::clean", dataset=str(moved)))
    assert "Book a table for monday." in capsys.readouterr().out


def test_failures_show_gold_and_answer_side_by_side(real_run: Path, rbtc: Rbtc) -> None:
    found = rbtc("failures", real_run).out
    [line] = [one for one in found.splitlines() if "transient_timeout" in one]
    gold, answer = line.index('book {"day":["monday"]}'), line.index('book {"day":"tuesday"}')
    assert gold < answer < line.index("a value is not an accepted one")
    (real_run.parent / "robustbench-tc").rename(real_run.parent / "moved")
    without = rbtc("failures", real_run).out
    assert 'book {"day":"tuesday"}' in without and "monday" not in without and "no gold calls: " in without
