"""The marts of doses and interactions hold the numbers of `eval.stats`, as far as doubles go."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats.dose import series
from robustbench_tc.eval.stats.interactions import interactions
from robustbench_tc.eval.stats.runs import align, read
from robustbench_tc.sql.query import Inputs, connect

from ..eval.synthetic_runs import clean_ids, pairs, write_run
from .test_sql_marts import SQL

IDS = clean_ids()[:50]
BEYOND = [kind.code for kind in taxonomy.types("all") if kind.pack in ("severity", "mixed")]


def mart(name: str, run: Path) -> list[dict[str, Any]]:
    with connect(Inputs(runs=[str(run)])) as connection:
        found: list[dict[str, Any]] = (
            connection.sql((SQL / f"{name}.sql").read_text()).to_arrow_table().to_pylist()
        )
    return found


@pytest.fixture(params=[1, 3])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Coins over a build with holes: rows that are not there, and answers that were not had."""
    generator = np.random.default_rng(request.param)
    rows = pairs(IDS) + [(one, code) for one in IDS for code in BEYOND if generator.random() < 0.9]

    def verdict(clean_id: str, code: str) -> bool | None:
        return None if generator.random() < 0.01 else bool(generator.random() < 0.6)

    return write_run(tmp_path / "run", verdict, rows, repeats=request.param)


def test_doses(run: Path) -> None:
    (outcomes,) = align([read(run)])
    expected = [(one, dose) for one in series(outcomes, outcomes.types) for dose in one.doses]
    found = mart("doses", run)
    assert len(found) == len(expected)
    assert {"typos", "factor", "abbreviated", "timeouts"} <= {one.name for one, _ in expected}
    by_code = {row["type_code"]: row for row in found}
    for one, dose in expected:
        row = by_code[dose.code]
        assert (row["series"], row["dose"]) == (one.name, dose.dose)
        assert row["accuracy"] == pytest.approx(dose.accuracy.value, abs=1e-15)
        assert row["common_n"] == one.n > 0 and dose.common is not None and one.clean is not None
        assert row["common_accuracy"] == pytest.approx(dose.common.value, abs=1e-15)
        assert row["common_clean_accuracy"] == pytest.approx(one.clean.value, abs=1e-15)


def test_interactions(run: Path) -> None:
    (outcomes,) = align([read(run)])
    expected = interactions(outcomes, outcomes.types)
    found = mart("interactions", run)
    assert [row["mixture"] for row in found] == [one.code for one in expected] and len(found) == 11
    for row, one in zip(found, expected, strict=True):
        assert row["n"] == one.n and row["parts"] == " + ".join(one.parts)
        assert row["interaction"] == pytest.approx(one.interaction.value, abs=1e-15)
        assert row["loss"] == pytest.approx(one.loss, abs=1e-15)
        assert row["losses"] == pytest.approx(sum(one.losses), abs=1e-14)
        assert row["clean_accuracy"] == pytest.approx(one.clean, abs=1e-15)


def test_a_mixture_that_no_module_states_and_a_type_that_is_not_scored(tmp_path: Path) -> None:
    rows = [(one, code) for one in IDS for code in ("typos_1", BY_NAME, "transient_timeout_x9")]
    run = write_run(tmp_path / "run", lambda one, code: code != BY_NAME, pairs(IDS) + rows)
    (row,) = mart("interactions", run)
    assert (row["mixture"], row["parts"], row["interaction"]) == (BY_NAME, "typos_1 + CD", 1.0)
    found = {row["type_code"]: row for row in mart("by_type", run)}
    assert (found[BY_NAME]["display_name"], found[BY_NAME]["component"]) == ("Typo-1 + MisDesc", "mixed")
    assert found[BY_NAME]["accuracy"] == 0.0 and found["typos_1"]["accuracy"] == 1.0
    assert found["transient_timeout_x9"]["n"] == len(IDS)
    assert found["transient_timeout_x9"]["accuracy"] is found["transient_timeout_x9"]["delta"] is None
    (heat,) = mart("heatmap", run)
    assert heat["transient_timeout_x9"] is None and heat["typos_1"] == 1.0
    assert "transient_timeout_x9" not in {row["type_code"] for row in mart("hardest", run)}


BY_NAME = "mix__typos_1__CD"


def test_a_run_of_the_core_has_neither(tmp_path: Path) -> None:
    core = write_run(tmp_path / "core", lambda one, code: True, pairs(IDS))
    assert mart("doses", core) == mart("interactions", core) == []
