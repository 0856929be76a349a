"""Tables of the packs beyond the core: made once, shown wherever a run is shown."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from robustbench_tc import api
from robustbench_tc.cli.summary import print_tables
from robustbench_tc.eval.report import page
from robustbench_tc.eval.stats import packs
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.overview import overview
from robustbench_tc.eval.stats.packs import Given, Table, makers, spelled
from robustbench_tc.eval.stats.runs import read

from .synthetic_runs import clean_ids, coin, pairs, write_run

HOSTILE = "<script>alert(1)</script> | `x`"


def offered(given: Given) -> Iterable[Table]:
    row = given.summary.types["CD_AB_pref"]
    yield Table(
        name="a_table",
        title=f"A table {HOSTILE}",
        columns=("type", "n", "share", "Δ matched"),
        rows=(("CD_AB_pref", row.accuracy.n, -0.25, row.delta_matched), (HOSTILE, 3, 0.5, None)),
        note="A note.",
    )


@pytest.fixture
def of_offers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "makers", lambda: {"offers": offered})


def run(folder: Path, *codes: str) -> Path:
    ids, core = clean_ids(), coin(1)
    rows = [*pairs(ids), *((one, code) for code in codes for one in ids[:20])]
    return write_run(folder, lambda one, code: code in codes or core(one, code), rows)


def test_a_cell_is_spelled_with_its_interval() -> None:
    assert [spelled(one) for one in ("a", 3, 0.5, None)] == [("a", ""), ("3", ""), ("0.500", ""), ("–", "")]
    assert spelled(Interval(0.5, 0.25, 0.75, 4)) == ("0.500", "[0.250, 0.750]")


@pytest.mark.usefixtures("of_offers")
def test_a_packs_tables_are_in_the_report_and_in_the_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run(tmp_path / "run", "CD_AB_pref")
    report = api.report([str(folder)])
    (table,) = report.models[0].packs
    value = table.rows[0][3]
    assert isinstance(value, Interval) and value.n == 20
    shown = page.html(report)
    assert "<script>alert(1)" not in shown and "A note." in shown and 'href="#packs"' in shown
    assert f"{value.value:.3f}".replace("-", "−") in shown and "−0.250" in shown
    text = page.markdown(report)
    assert "### " in text and "| CD\\_AB\\_pref | 20 | -0.250 |" in text.replace("−", "-")
    assert json.loads(page.as_json(report))["models"][0]["packs"][0]["rows"][1] == [HOSTILE, 3, 0.5, None]
    made = overview(read(folder), 0, {}, allow_missing=True)
    assert made.packs == report.models[0].packs
    print_tables(made)
    said = capsys.readouterr().out
    assert "A note." in said and "-0.250" in said and HOSTILE in said


@pytest.mark.usefixtures("of_offers")
def test_a_run_of_the_core_has_no_tables_of_packs(tmp_path: Path) -> None:
    report = api.report([str(run(tmp_path / "run"))])
    assert report.models[0].packs == ()
    assert 'id="packs"' not in page.html(report) and "Beyond the core" not in page.markdown(report)


def test_every_module_speaks_for_packs_that_there_are() -> None:
    assert all(callable(make) for make in makers().values())
