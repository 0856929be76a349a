"""Runs at the edge: all wrong, all right, one row, no clean rows, no answers, components without rows.

Every command that computes over a run answers them with numbers, gaps, or one line; never with a traceback.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats.runs import align, read_run
from robustbench_tc.eval.stats.summary import summarise
from robustbench_tc.sql.query import Inputs, connect, marts, text_of

from ..conftest import NIGHTLY, Done
from .synthetic_runs import Verdict, clean_ids, pairs, write_run

pytestmark = pytest.mark.filterwarnings("error")

SIZES = {"bfcl_v3": 3, "apibank": 16, "rotbench": 2, "toolalpaca": 2, "tooleyes": 2}
ROWS = pairs(clean_ids(SIZES))
FIRST = ROWS[0][0]
REWARD = {t.code for t in taxonomy.types() if t.component == "reward"}

SHAPES: dict[str, tuple[Verdict, list[tuple[str, str]]]] = {
    "all wrong": (lambda c, t: False, ROWS),
    "all right": (lambda c, t: True, ROWS),
    "clean wrong, perturbed right": (lambda c, t: t != "clean", ROWS),
    "clean right, perturbed wrong": (lambda c, t: t == "clean", ROWS),
    "one clean row right": (lambda c, t: (c, t) == (FIRST, "clean"), ROWS),
    "no answers": (lambda c, t: None, ROWS),
    "no clean answers": (lambda c, t: None if t == "clean" else c < "b", ROWS),
    "no clean rows": (lambda c, t: c < "b", [row for row in ROWS if row[1] != "clean"]),
    "clean rows only": (lambda c, t: False, [row for row in ROWS if row[1] == "clean"]),
    "one clean row": (lambda c, t: True, ROWS[:1]),
    "one clean row, wrong": (lambda c, t: False, ROWS[:1]),
    "one perturbed row": (lambda c, t: False, [("rotbench__level1_0", "CD")]),
    "one row without an answer": (lambda c, t: None, [("rotbench__level1_0", "CD")]),
    "one sample": (lambda c, t: False, [row for row in ROWS if row[0] == FIRST]),
    "no reward rows": (lambda c, t: False, [row for row in ROWS if row[1] not in REWARD]),
    "ToolEyes only": (lambda c, t: False, [row for row in ROWS if row[0].startswith("tooleyes")]),
    "clean and perturbed of different samples": (
        lambda c, t: True,
        [(c, "CD" if i % 2 else "clean") for i, c in enumerate(clean_ids(SIZES))],
    ),
}


TWICE = ("all wrong", "one perturbed row", "clean wrong, perturbed right")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("runs")
    made = {}
    for number, (name, (verdict, rows)) in enumerate(SHAPES.items()):
        for repeats in (1, 2) if name in TWICE else (1,):
            label = name if repeats == 1 else f"{name}, twice"
            folder = root / f"run-{number}-{repeats}"
            made[label] = write_run(folder, verdict, rows, model=label, repeats=repeats)
    return made


NAMES = [*SHAPES, *(f"{name}, twice" for name in TWICE)]


def one_line_or_nothing(done: Done) -> None:
    """A command that ends well, or with one line that says why not."""
    if done.code:
        assert done.code == 1 and done.err.startswith("rbtc: ") and done.err.count("\n") == 1, done


@pytest.mark.parametrize("name", NAMES)
def test_the_report_stands(
    name: str, runs: dict[str, Path], rbtc: Callable[..., Done], tmp_path: Path
) -> None:
    for options in ("", "--ci paper --allow-missing") if name in TWICE else ("",):
        done = rbtc("report", runs[name], "--out", tmp_path, *options.split())
        assert done.code == 0, done.err
        [model] = json.loads((tmp_path / "report.json").read_text())["models"]
        for metric, found in model["summary"]["values"].items():
            if found is not None:
                assert found["low"] <= found["value"] <= found["high"], metric
        for ending in ("html", "md", "csv"):
            text = (tmp_path / f"report.{ending}").read_text()
            text = re.sub(
                r'(id="(rows|files)">)[A-Za-z0-9+/=]+</script>', r"\1", text
            )  # base64 spells anything
            assert not re.search(r"[^a-z](nan|inf)[^a-z]", text)
    if name in TWICE:
        one_line_or_nothing(rbtc("report", runs[name], "--out", tmp_path, "--subset", "paper"))


@pytest.mark.parametrize("name", NAMES)
def test_summary_failures_and_the_paper_beside_them_stand(
    name: str, runs: dict[str, Path], rbtc: Callable[..., Done]
) -> None:
    done = rbtc("summary", runs[name], "--json", "--allow-missing")
    assert done.code == 0, done.err
    json.loads(done.out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert rbtc("summary", runs[name], "--allow-missing").code == 0
    assert rbtc("failures", runs[name]).code == 0
    assert rbtc("compare", runs[name], "paper:o4-mini").code == 0
    one_line_or_nothing(rbtc("summary", runs[name]))


ALONE = ("no answers", "no clean rows", "clean rows only", "one perturbed row")
"""Shapes of which nothing is left in some view when nobody stands beside them."""


@pytest.mark.parametrize("names", [NAMES, *((name,) for name in ALONE)], ids=["all at once", *ALONE])
def test_every_mart_stands(names: Sequence[str], runs: dict[str, Path]) -> None:
    """What a mart says of a run is computed from that run's rows, so all are asked about at once, each query
    being planned once."""
    for allow_missing in (False, True):
        inputs = Inputs(runs=tuple(str(runs[name]) for name in names), allow_missing=allow_missing)
        with connect(inputs) as connection:
            for mart in (name for name, one in marts().items() if one.needs != "live"):
                for row in connection.sql(text_of(mart, inputs)).to_arrow_table().to_pylist():
                    numbers = [value for value in row.values() if isinstance(value, float)]
                    assert all(map(math.isfinite, numbers)), (mart, row)


@pytest.mark.parametrize("name", NAMES)
def test_they_are_compared_and_reported_with_others(
    name: str, runs: dict[str, Path], rbtc: Callable[..., Done], tmp_path: Path
) -> None:
    for other in ("all wrong", "no clean rows") if NIGHTLY else ("no clean rows",):
        one_line_or_nothing(rbtc("compare", runs[name], runs[other]))
    assert "no answered row in common" in rbtc("compare", runs["no answers"], runs[name]).err
    if name in ("all right", "no clean rows", "clean rows only", "one clean row"):
        options = ("--baseline", "all wrong", "--allow-missing", "--out", tmp_path)
        assert rbtc("report", runs[name], runs["all wrong"], *options).code == 0


def test_retention_is_a_gap_with_a_reason_where_no_clean_answer_is_right(
    runs: dict[str, Path], rbtc: Callable[..., Done], tmp_path: Path
) -> None:
    """It is a share of clean accuracy: not 0, not 1, and said the same way everywhere."""
    for name in ("all wrong", "clean wrong, perturbed right", "one sample"):
        done = rbtc("report", runs[name], "--out", tmp_path)
        assert "retention is not defined: no clean answer is right" in done.err
        assert "retention is not defined" in (tmp_path / "report.html").read_text()
        assert json.loads(rbtc("summary", runs[name], "--json").out)["summary"]["values"]["retention"] is None
        table2 = rbtc("sql", "table2", "--run", runs[name], "--json").out
        assert [row["retention"] for row in json.loads(table2)] == [None]
        [outcomes] = align([read_run(runs[name])])
        values = summarise(outcomes).values
        assert values["retention"] is None and values["clean"] is not None and values["clean"].value == 0
        assert values["delta_transition"] is not None


def test_all_right_loses_nothing_but_is_not_sure_of_it(runs: dict[str, Path]) -> None:
    """25 samples that are all right leave 0.863 to 1 open (Clopper-Pearson), and every difference a width."""
    [outcomes] = align([read_run(runs["all right"])])
    made = summarise(outcomes)
    for metric in ("retention", "retention_with_transition"):
        found = made.values[metric]
        assert found is not None and found.value == 1 and found.low < 0.95 and found.high > 1.05
    clean = made.values["clean"]
    assert clean is not None and clean.high == 1.0
    assert clean.low == pytest.approx(0.025 ** (1 / 25))
    for metric, found in made.values.items():
        if metric.startswith("delta_"):
            assert found is not None and found.value == 0 and found.low < -0.05 and found.high > 0.05, metric


def test_all_wrong_is_not_sure_of_it_either(runs: dict[str, Path]) -> None:
    [outcomes] = align([read_run(runs["all wrong"])])
    found = summarise(outcomes).values["perturbed"]
    assert found is not None and (found.low, found.value) == (0.0, 0.0) and found.high > 0.1
