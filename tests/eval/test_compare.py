"""Is B better than A: paired over common rows, never with the paper, and nothing left out in silence."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robustbench_tc import schema, taxonomy
from robustbench_tc.cli import _console
from robustbench_tc.eval import prompts
from robustbench_tc.eval.stats import failures, paired, runs, summary
from robustbench_tc.eval.stats.breakdown import breakdown, gains
from robustbench_tc.eval.stats.compare import Comparison, beside_paper, compare_runs
from robustbench_tc.eval.stats.outcomes import Outcomes

from ..conftest import Rbtc
from ..refusals import refuses
from . import small
from .synthetic_runs import Verdict, clean_ids, coin, mcnemar_p, pairs, write_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compare")


@pytest.fixture(scope="module")
def weak(folder: Path) -> runs.Run:
    return runs.read_run(write_run(folder / "weak", coin(1, 0.55, 0.7), model="weak"))


@pytest.fixture(scope="module")
def strong(folder: Path) -> runs.Run:
    return runs.read_run(write_run(folder / "strong", coin(2, 0.8, 0.9), model="strong"))


@pytest.fixture(scope="module")
def compared(weak: runs.Run, strong: runs.Run) -> Comparison:
    return compare_runs(weak, strong)


def test_a_better_model_is_said_to_be_better_where_and_what_could_have_been_seen(
    compared: Comparison,
) -> None:
    found, power = compared, compared.power
    assert power is not None and (power.samples, power.repeats) == (199, 1)
    assert 0.02 < power.smallest["perturbed"] < power.smallest["clean"] < power.smallest["type"] * 1.2
    assert found.verdict.startswith("strong is better than weak on perturbed rows: strong has +")
    assert "3817 pairs" in found.verdict and "strong ahead (after Holm over 22 types)" in found.verdict
    assert set(found.overall) == {"clean", "perturbed", *taxonomy.COMPONENTS}
    assert found.notes == ()
    for code, one in found.types.items():
        assert one.p == mcnemar_p(one.only_a, one.only_b)
        assert one.p <= found.types_holm[code]
        assert one.difference.value == pytest.approx(one.b - one.a)
        assert one.difference.value == pytest.approx((one.only_b - one.only_a) / one.n)


def test_turning_the_comparison_round_turns_every_sign(
    weak: runs.Run, strong: runs.Run, compared: Comparison
) -> None:
    back = compare_runs(strong, weak)
    assert back.verdict.startswith("strong is better than weak")
    for name, pair in compared.overall.items():
        other = back.overall[name]
        assert other.p == pair.p
        assert (other.only_a, other.only_b) == (pair.only_b, pair.only_a)
        assert other.difference.value == pytest.approx(-pair.difference.value)
        assert other.difference.low == pytest.approx(-pair.difference.high, abs=0.002)


def test_a_run_against_itself_differs_nowhere(weak: runs.Run) -> None:
    found = compare_runs(weak, weak)
    assert found.verdict.startswith("No significant difference between ")
    assert all(p.p == 1.0 and p.difference.value == 0 for p in found.overall.values())
    # No sample differs; what could be behind that has a width all the same.
    assert all(0 < p.difference.half_width < 0.05 for p in found.overall.values())
    assert found.a != found.b or weak.path in found.a


def test_rows_of_one_sample_are_not_taken_as_independent(folder: Path) -> None:
    """Two models that differ by whole samples: the clusters' interval is wider than the rows'."""

    def every(n: int) -> Verdict:
        return lambda c, t: int(c.rsplit("_", 1)[1]) % n == 0

    a, b = runs.align([runs.read_run(write_run(folder / f"whole{n}", every(n))) for n in (2, 3)])
    codes = taxonomy.codes()
    clustered, by_row = paired.compare(a, b, codes), paired.compare(a, b, codes, "paper")
    assert clustered and by_row
    assert clustered.difference.value == pytest.approx(by_row.difference.value)
    assert clustered.difference.half_width > 3 * by_row.difference.half_width
    assert clustered.p > by_row.p


def test_delta_differences_are_those_of_the_tables(
    weak: runs.Run, strong: runs.Run, compared: Comparison
) -> None:
    found = compared.deltas["reward"]
    a, b = runs.align([weak, strong])
    codes = [t.code for t in taxonomy.types() if t.component == "reward"]

    def delta(outcomes: Outcomes) -> float:
        clean, n = outcomes.counts()["clean"].tally
        counts = np.array([outcomes.counts()[code].tally for code in codes])
        return clean / n - float(counts[:, 0].sum() / counts[:, 1].sum())

    assert (found.a, found.b) == pytest.approx((delta(a), delta(b)))
    assert found.difference.value == pytest.approx(delta(a) - delta(b))
    assert found.difference.method == "mover" and found.difference.low < found.difference.value
    assert found.closed is not None and found.closed.method == "fieller"
    assert found.closed.value == pytest.approx((delta(a) - delta(b)) / delta(a))
    assert found.closed.low < found.closed.value < found.closed.high < 1.2


def test_the_first_table_is_corrected_for_its_lines(compared: Comparison) -> None:
    found, p = compared, {name: pair.p for name, pair in compared.overall.items()}
    smallest = min(p, key=p.__getitem__)
    assert found.overall_holm[smallest] == pytest.approx(min(1, 6 * p[smallest]))
    assert all(p[name] <= corrected <= 1 for name, corrected in found.overall_holm.items())
    largest = max(p, key=p.__getitem__)
    assert found.overall_holm[largest] == pytest.approx(max(p[largest], *found.overall_holm.values()))
    assert set(found.deltas_holm) == set(taxonomy.COMPONENTS)


def test_the_net_loss_is_what_could_be_gained(weak: runs.Run) -> None:
    [outcomes] = runs.align([weak])
    made = summary.summarise(outcomes)
    found = {one.type_code: one for one in gains(made, breakdown(weak))}
    assert [one.type_code for one in found.values()] == sorted(
        found, key=lambda code: (made.lines[code].gained - made.lines[code].lost, code)
    )
    one, line, flips = found["CD"], made.lines["CD"], made.types["CD"].flips
    assert one.gain == pytest.approx((line.lost - line.gained) / 3817)
    matched = made.types["CD"].delta_matched
    assert matched is not None and flips is not None
    assert (one.low, one.high) == pytest.approx((matched.low * 148 / 3817, matched.high * 148 / 3817))
    assert one.p_holm == flips.p_holm


def test_nothing_is_promised_where_as_many_are_gained(folder: Path) -> None:
    """A model that guesses: it loses a quarter of the pairs and gains as many."""
    coins = np.random.default_rng(1).random(5_000).tolist()
    run = runs.read_run(write_run(folder / "guess", lambda c, t: coins.pop() < 0.5, model="guess"))
    [outcomes] = runs.align([run])
    found = gains(summary.summarise(outcomes), breakdown(run))
    assert sum(one.lost for one in found) / 3817 > 0.2
    assert abs(sum(one.gain for one in found)) < 0.1  # three standard errors of 199 clean coins
    assert all(one.p_holm is not None and one.p_holm > 0.05 for one in found)


def test_a_share_of_no_gap_is_not_shown(folder: Path, strong: runs.Run) -> None:
    even = runs.read_run(write_run(folder / "even", lambda c, t: c[-1] in "02468", model="even"))
    assert all(delta.closed is None for delta in compare_runs(even, strong).deltas.values())


def test_a_share_of_a_gap_that_may_be_none_is_not_shown_either(folder: Path, strong: runs.Run) -> None:
    """Every answer is right but one, so that a third of the resamples have no gap at all."""
    one = ("apibank__level1_20", "transient_timeout")
    assert one[1] in {t.code for t in taxonomy.types() if t.component == "transition"}
    nearly = runs.read_run(write_run(folder / "nearly", lambda c, t: (c, t) != one, model="nearly"))
    found = compare_runs(nearly, strong).deltas["transition"]
    assert found.a > 0 and found.closed is None


def test_rows_that_one_run_lacks_are_left_out_and_counted(folder: Path, weak: runs.Run) -> None:
    made = coin(2, 0.8, 0.9)
    holes = {("apibank__level1_20", "TD"), ("bfcl_v3__level1_3", "clean")}
    wanted = [pair for pair in pairs(clean_ids()) if pair[1] != "CD"]
    partial = runs.read_run(
        write_run(
            folder / "partial",
            lambda c, t: None if (c, t) in holes else made(c, t),
            wanted,
            model="partial",
        )
    )
    found = compare_runs(weak, partial)
    assert (found.types["TD"].n, found.types["TD"].left_out) == (147, 1)
    for pair in (*found.types.values(), *found.overall.values()):
        assert pair.difference.value == pytest.approx(pair.b - pair.a)
        assert pair.difference.value == pytest.approx((pair.only_b - pair.only_a) / pair.n)
    assert (found.overall["clean"].n, found.overall["clean"].left_out) == (198, 1)
    assert "CD" not in found.types
    assert "partial: no rows of CD" in found.notes
    assert "partial: TD: 1 of 148 rows have no verdict" in found.notes
    assert any(note.startswith("rows left out") and "perturbed 149" in note for note in found.notes)


def test_different_numbers_of_repeats_are_put_on_one_scale(folder: Path) -> None:
    rows = pairs(clean_ids({"bfcl_v3": 20}))
    a = runs.read_run(write_run(folder / "r1", lambda c, t: t < "b", rows, model="a"))
    b = runs.read_run(write_run(folder / "r3", lambda c, t: t >= "b", rows, model="b", repeats=3))
    pair = compare_runs(a, b).overall["reward"]
    assert (pair.a, pair.b, pair.n) == (1.0, 0.0, 120)
    assert pair.difference.value == -1.0
    assert (pair.only_a, pair.only_b) == (120, 0)


def test_runs_that_share_no_row_are_refused(folder: Path) -> None:
    half = [pair for pair in pairs(clean_ids()) if pair[1] == "CD"]
    cd_only = runs.read_run(write_run(folder / "cd", coin(3), half))
    td_only = runs.read_run(write_run(folder / "td", coin(3), [(c, "TD") for c, _ in half]))
    refuses("no answered row in common", compare_runs, cd_only, td_only)


def test_the_paper_stands_beside_and_gets_no_mark(weak: runs.Run) -> None:
    lines = {line.name: line for line in beside_paper(weak, "o4-mini")}
    assert (lines["CD"].paper_n, lines["CD"].n) == (102, 148)
    assert f"{lines['perturbed'].paper_accuracy:.3f}" == "0.502"
    assert lines["perturbed"].p is None and lines["CD"].p is not None
    assert lines["CD"].ours.value == pytest.approx(lines["CD"].accuracy - lines["CD"].paper_accuracy)
    assert not any("star" in field for field in Comparison.__struct_fields__)
    restricted = {line.name: line for line in beside_paper(weak, "o4-mini", subset="paper")}
    assert restricted["CD"].n == 102
    refuses("did you mean o4-mini", beside_paper, weak, "o4mini")


# --- single predictions -------------------------------------------------------------------------------


def test_failures_are_the_wrong_answers_filtered(folder: Path, weak: runs.Run) -> None:
    run = Path(weak.path)
    found = failures.failures(run, type_code="CD", error_mode="wrong_parameters", sources=["apibank"]).found
    wrong = [
        row
        for row, code, source, right in zip(
            *(weak.rows[name].tolist() for name in ("id", "type_code", "source", "correct")), strict=True
        )
        if code == "CD" and source == "apibank" and right == 0
    ]
    judged = [row for row in found if isinstance(row, failures.Judged)]
    assert len(judged) == len(found) and [row.prediction.id for row in judged] == wrong
    assert failures.failures(run, error_mode="omitted").found == []
    assert judged[0].why == "value (wrong_parameters)"
    named = [
        failures.failures(run, type_code=name).found
        for name in ("CD_AB", "MisDesc-Abbr", "cheap decoy, cryptic gold")
    ]
    assert named[0] and named[1] == named[2] == named[0]
    refuses("did you mean wrong_name", failures.failures, run, error_mode="wrong_nam")
    refuses("unknown type of this run", failures.failures, run, type_code="XX")


def test_a_prediction_is_found_by_id_sample_and_prefix(folder: Path, weak: runs.Run) -> None:
    run = Path(weak.path)
    [one] = failures.find(run, "bfcl_v3__level1_3::CD_AB")
    assert one.prediction.type_code == "CD_AB"
    assert failures.find(run, "bfcl_v3__level1_3::misdesc-abbr") == [one]
    assert len(failures.find(run, "bfcl_v3__level1_31")) == 23
    refuses("fits 74 ids", failures.find, run, "apibank__")
    refuses("did you mean|try a prefix", failures.find, run, "nobody")
    refuses("unknown type of bfcl_v3__level1_3", failures.find, run, "bfcl_v3__level1_3::CDX")


def test_a_row_without_an_answer_says_so(tmp_path: Path) -> None:
    rows = pairs(clean_ids({"bfcl_v3": 2}))
    run = write_run(
        tmp_path / "a", lambda c, t: None if t == "CD" else True, rows, error=lambda c, t: "HTTP 500"
    )
    [row] = failures.find(run, "bfcl_v3__level1_1::CD")
    assert row.verdict is None and row.why == "no verdict: no answer was had (HTTP 500)"
    assert failures.failures(run).found == []


def test_flips_of_repeats_are_counted_in_answers_and_rounded() -> None:
    """Three rows of which b gets one of two repeats right and a none: one and a half answers."""
    first, second = (
        Outcomes(
            clean_ids=("x", "y", "z"), types=("clean", "CD"), repeats=2, n=two,
            correct=right, missing=none, pairs=none, kept=none, lost=none, gained=none, unmet=none,
        )
        for two, none in [(np.full((3, 2), 2), np.zeros((3, 2), np.int64))]
        for right in (none, np.array([[0, 1]] * 3))
    )  # fmt: skip
    pair = paired.compare_lines(first, second, {"CD": ["CD"]})["CD"]
    assert (pair.only_a, pair.only_b, pair.a, pair.b) == (0, 2, 0.0, 0.5)


def test_a_difference_of_two_gaps_reaches_two() -> None:
    """a loses everything and b gains everything: their Δ are 1 and −1."""
    none = np.zeros((9, 2), np.int64)
    first, second = (
        Outcomes(
            clean_ids=tuple("abcdefghi"), types=("clean", "CD"), repeats=1, n=np.ones((9, 2), np.int64),
            correct=np.array([right] * 9), missing=none, pairs=none, kept=none, lost=none, gained=none,
            unmet=none,
        )
        for right in ([1, 0], [0, 1])
    )  # fmt: skip
    found = paired.compare_delta_lines(first, second, {"CD": ["CD"]})["CD"]
    assert (found.a, found.b, found.difference.value, found.difference.high) == (1.0, -1.0, 2.0, 2.0)
    assert 1 < found.difference.low < 2


# --- the commands -------------------------------------------------------------------------------------


pytestmark = pytest.mark.usefixtures("new_folder")


@pytest.fixture
def two(weak: runs.Run, strong: runs.Run) -> tuple[str, str]:
    return weak.path, strong.path


def test_a_run_stands_beside_a_model_of_the_paper(rbtc: Rbtc, two: tuple[str, str]) -> None:
    shown = rbtc("compare", two[0], "paper:o4-mini").out
    assert shown.startswith("weak beside paper:o4-mini") and "unpaired, and over other rows" in shown
    found = json.loads(rbtc("compare", two[0], "paper:o4-mini", "--json").out)
    assert {line["name"] for line in found["paper"]} > {"clean", "reward", "CD"} and found["overall"] == {}


def test_compare_prints_the_verdict_corrected_tests_and_what_it_could_have_seen(
    rbtc: Rbtc, two: tuple[str, str]
) -> None:
    shown = rbtc("compare", *two).out
    assert "strong is better than weak on perturbed rows" in shown
    assert shown.count("p (Holm)") == 4  # of each table, and what it means
    assert "minimum detectable effect in points (80 % power; 199 samples, 1 repeat)" in shown
    same = rbtc("compare", two[0], two[0]).out
    assert "No significant difference" in same and "No single type differs" in same
    back = json.loads(rbtc("compare", *two[::-1], "--json").out)
    assert back["overall"]["perturbed"]["n"] == 3817 and back["paper"] == []
    closed = [one["closed"] for one in back["deltas"].values()]
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

    rows = [sample("clean"), sample("transient_timeout", "Tool execution timed out.")]
    release = small.write(tmp_path / "robustbench-tc", rows)
    wrong = "[book(day='tuesday')]\n\x1b[2J"
    right = "[book(day='monday')]"

    def reply(row: schema.Sample) -> dict[str, Any]:
        if not row.injected_error:
            return {"raw_output": right}
        return {"raw_output": wrong, "injected": True, "first_output": right}

    return small.scored_run(tmp_path / "run", release, "tiny", reply, prompt_version=prompts.prompt_version())


def test_show_tells_what_was_asked_answered_wanted_and_why(
    real_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _console.show(failures.replies(real_run, "bfcl_v3__simple_1::transient_timeout"))
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
    _console.show(failures.replies(real_run, "bfcl_v3__simple", dataset="robustbench-tc"))
    shown = capsys.readouterr().out
    assert "clean" in shown and "right" in shown and "wrong" in shown and "add ::TYPE" in shown


def test_show_without_the_dataset_says_what_it_cannot_show(
    real_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = (real_run.parent / "robustbench-tc").rename(real_run.parent / "moved")
    _console.show(failures.replies(real_run, "bfcl_v3__simple_1::clean"))
    shown = capsys.readouterr().out
    assert "prompt: not shown: " in shown and "verdict: right" in shown
    _console.show(failures.replies(real_run, "bfcl_v3__simple_1::clean", dataset=str(moved)))
    assert "Book a table for monday." in capsys.readouterr().out


def test_failures_show_gold_and_answer_side_by_side(real_run: Path, rbtc: Rbtc) -> None:
    found = rbtc("failures", real_run).out
    [line] = [one for one in found.splitlines() if "transient_timeout" in one]
    gold, answer = line.index('book {"day":["monday"]}'), line.index('book {"day":"tuesday"}')
    assert gold < answer < line.index("a value is not an accepted one")
    (real_run.parent / "robustbench-tc").rename(real_run.parent / "moved")
    without = rbtc("failures", real_run).out
    assert 'book {"day":"tuesday"}' in without and "monday" not in without and "no gold calls: " in without
