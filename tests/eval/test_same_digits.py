"""One run, every door: summary, report and comparison show the same numbers.

Marts: tests/sql/test_sql_agrees.py. The board: tests/eval/leaderboard/test_same_figures.py.
"""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats import values
from robustbench_tc.io.numbers import number, typeset

from ..conftest import Done, Rbtc
from .synthetic_runs import clean_ids, coin, pairs, write_run


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs over the same rows."""
    root, rows = tmp_path_factory.mktemp("runs"), pairs(clean_ids())

    def run(name: str, seed: int, right: float) -> Path:
        return write_run(root / name, coin(seed, right, 0.8), rows, model=name)

    return run("weak-3b", 1, 0.6), run("strong-7b", 2, 0.8)


def said(done: Done) -> Any:
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.fixture
def summary(rbtc: Rbtc, folders: tuple[Path, Path]) -> dict[str, Any]:
    """`rbtc summary --json` as metric → value, and type → its line."""
    found: dict[str, Any] = said(rbtc("summary", folders[0], "--json"))
    return found


def metrics(found: dict[str, Any]) -> dict[str, float]:
    """METRICS out of the summary's JSON."""
    return {name: one["value"] for name, one in found["summary"]["values"].items()}


def test_values_are_the_same_to_the_last_bit(
    rbtc: Rbtc, folders: tuple[Path, Path], summary: dict[str, Any]
) -> None:
    run, other = folders
    wanted = metrics(summary)
    lines = summary["summary"]["lines"]
    types = {code: lines[code] for code in taxonomy.codes()}
    assert wanted.keys() == set(values.METRICS) and types.keys() == summary["summary"]["types"].keys()

    report = said(rbtc("report", run, other, "--json"))
    [model] = [one for one in report["models"] if one["model"] == "weak-3b"]
    assert model["summary"]["values"] == summary["summary"]["values"]
    assert model["summary"]["types"] == summary["summary"]["types"]
    assert model["error_modes"] == summary["error_modes"]
    for code, line in types.items():
        row = model["summary"]["types"][code]
        for kind in ("accuracy", "delta", "delta_matched"):
            assert row[kind]["value"] == line[kind], (code, kind)
        assert (row["flips"]["lost"], row["flips"]["gained"]) == (line["lost"], line["gained"])

    compared = said(rbtc("compare", run, other, "--json"))
    for name in values.HEADS:
        of = wanted[name if name in wanted else f"accuracy_{name}"]
        assert compared["overall"][name]["a"] == of
    assert {name: delta["a"] for name, delta in compared["deltas"].items()} == {
        name: wanted[f"delta_{name}"] for name in taxonomy.COMPONENTS
    }
    assert {code: pair["a"] for code, pair in compared["types"].items()} == {
        code: line["accuracy"] for code, line in types.items()
    }


def cells(text: str, name: str) -> list[str]:
    """The numbers in the line of a printed table that begins with `name`."""
    [line] = [line for line in text.splitlines() if re.match(rf"[\s│|]*{re.escape(name)}\s", line)]
    return re.findall(r"[-−+]?\d+\.\d+", line)


def test_printed_digits_are_the_same(
    rbtc: Rbtc, folders: tuple[Path, Path], summary: dict[str, Any], tmp_path: Path
) -> None:
    run, other = folders
    wanted = metrics(summary)
    screen, _, tables = rbtc("summary", run, "--full").out.partition("rows: all")
    tables = tables.partition("by level")[0]
    for component in taxonomy.COMPONENTS:
        accuracy, delta, matched = (
            number(100 * wanted[f"{kind}_{component}"], 1) for kind in ("accuracy", "delta", "delta_matched")
        )
        assert cells(screen, component)[:2] == [accuracy, matched]
        assert cells(tables, component)[:3] == [accuracy, delta, matched]

    assert rbtc("report", run, other, "--out", tmp_path).code == 0
    markdown = (tmp_path / "report.md").read_text()
    html = (tmp_path / "report.html").read_text()
    row = next(line for line in markdown.splitlines() if line.startswith("| weak-3b | ") and "[" in line)
    table2 = ("clean", "perturbed", *(f"delta_{name}" for name in taxonomy.COMPONENTS), "retention")
    assert re.findall(r"\| (\S+) \[", row) == [typeset(number(wanted[name])) for name in table2]
    assert all(f"<td>{typeset(number(wanted[name]))}" in html for name in table2)
    lines = csv.DictReader(io.StringIO((tmp_path / "report.csv").read_text()))
    found = {
        line["metric"]: float(line["value"])
        for line in lines
        if line["model"] == "weak-3b" and not line["type_code"]
    }
    assert found == wanted

    shown = rbtc("sql", "table2", "--run", run).out
    for name in table2:
        assert cells(shown, name) == [number(wanted[name])]
    compared = rbtc("compare", run, other).out
    for name in values.HEADS:
        value = wanted[name if name in wanted else f"accuracy_{name}"]
        assert number(value) in compared
