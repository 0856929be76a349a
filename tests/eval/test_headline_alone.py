"""Rows beyond the core move nothing that is said of the core: no value, no interval, no test, no sentence."""

import json
from functools import partial
from typing import Any

import pytest

from robustbench_tc import api, taxonomy
from robustbench_tc.eval.report import drawings, page
from robustbench_tc.eval.stats import compare
from robustbench_tc.eval.stats.runs import read
from robustbench_tc.eval.stats.screen import overview

from .synthetic_runs import Verdict, clean_ids, coin, pairs, write_run

BEYOND = [kind.code for kind in taxonomy.types("extension")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Two models, each with the core alone and with every further type, on which they are all wrong."""
    root, ids = tmp_path_factory.mktemp("runs"), clean_ids()
    made: dict[str, list[str]] = {"core": [], "all": []}
    for model, verdict in (("a-7b", coin(1, 0.6, 0.7)), ("b-7b", coin(2, 0.8, 0.9))):
        further = [(one, code) for code in BEYOND for one in ids]
        for name, rows in (("core", pairs(ids)), ("all", [*pairs(ids), *further])):
            folder = root / f"{model}-{name}"
            write_run(folder, partial(of_core, verdict), rows, model=model)
            made[name].append(str(folder))
    return made


def of_core(verdict: Verdict, clean_id: str, code: str) -> bool | None:
    """The verdict on a row of the core; every other row is wrong."""
    return code not in BEYOND and verdict(clean_id, code)


def of_the_core(report: Any) -> Any:
    """What a report says, without the lines of further types and the lists of single rows."""
    found = json.loads(page.as_json(report))
    del found["marts"]
    for model in found["models"]:
        model["run"] = ""
        model["card"] = {}
        model["packs"] = []
        model["mean_scores"] = {}  # over all rows
        types = (model["summary"]["types"], model["answer"]["types"], model["type_marks"])
        for where in (*types, model["summary"]["lines"]):
            for code in BEYOND:
                where.pop(code, None)
        for cells in (*model["sources"].values(), *model["source_losses"].values()):
            for code in (*BEYOND, "extension"):
                cells.pop(code, None)
        model["levels"] = [line for line in model["levels"] if line["pack"] == "core"]
        stages = model["stages"]
        for where in (model["error_modes"], stages["n"], stages["failures"], stages["type_shifts"]):
            for code in BEYOND:
                where.pop(code, None)
    return found


def test_a_report_says_the_same_of_the_core(folders: dict[str, list[str]]) -> None:
    core, whole = (api.report(folders[name], baseline="a-7b") for name in ("core", "all"))
    scored = {code for code in BEYOND if taxonomy.get(code).traits.get("scored", True)}
    assert scored <= set(whole.models[0].summary.types)
    assert of_the_core(core) == of_the_core(whole)
    for draw in (drawings.losses, drawings.heatmap):
        assert draw(core.models) == draw(whole.models)
    assert drawings.stage_shifts(core.models[0]) == drawings.stage_shifts(whole.models[0])
    for drops in (drawings.of_types, drawings.answered):
        assert drawings.axis_of(drops(core.models)) == drawings.axis_of(drops(whole.models))


def test_a_comparison_says_the_same_of_the_core(folders: dict[str, list[str]]) -> None:
    core, whole = (compare.compare_runs(*map(read, folders[name])) for name in ("core", "all"))
    assert (core.verdict, core.overall, core.deltas) == (whole.verdict, whole.overall, whole.deltas)
    assert core.power == whole.power
    assert core.types == {code: one for code, one in whole.types.items() if code not in BEYOND}


def test_a_summary_says_the_same_of_the_core(folders: dict[str, list[str]]) -> None:
    core, whole = (overview(read(folders[name][0]), 0, {}, allow_missing=True) for name in ("core", "all"))
    assert core.summary.values == whole.summary.values
    assert (core.summary.power, core.verified) == (whole.summary.power, whole.verified)
    for name in ("sentence", "lines", "worst", "warnings"):
        assert getattr(core.answer, name) == getattr(whole.answer, name), name
    assert core.levels == tuple(line for line in whole.levels if line.pack == "core")
    assert core.stages is not None and whole.stages is not None
    assert core.stages.shifts == whole.stages.shifts
    types = whole.summary.types
    assert core.summary.types == {code: row for code, row in types.items() if code not in BEYOND}
