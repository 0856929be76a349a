"""Interactions of runs whose answers are known, and the agents that have them."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from robustbench_tc import api, taxonomy
from robustbench_tc.eval.agents import is_right
from robustbench_tc.eval.agents.mixed import TOGETHER, sample_class
from robustbench_tc.eval.report import page
from robustbench_tc.eval.stats.interactions import Interaction, interactions
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.runs import align, read
from robustbench_tc.schema import Sample

from .synthetic_runs import Verdict, clean_ids, write_run
from .test_agents import verdicts

DESIGN = ("realistic_typos", "same_name_D", "CD", "transient_rate_limit")
MIXED = tuple(kind.code for kind in taxonomy.types("all") if kind.pack == "mixed")
PAIR = "mix__realistic_typos__CD"
IDS = clean_ids()[:48]


def rows(codes: Iterable[str] = (*DESIGN, *MIXED)) -> list[tuple[str, str]]:
    return [(one, code) for one in IDS for code in ("clean", *codes)]


def found(
    folder: Path, verdict: Verdict, asked: list[tuple[str, str]], repeats: int = 1
) -> dict[str, Interaction]:
    (outcomes,) = align([read(write_run(folder / "run", verdict, asked, repeats=repeats))])
    return {one.code: one for one in interactions(outcomes, outcomes.usable())}


def weak(clean_id: str, code: str, together: bool) -> bool:
    """Right, unless one of the parts loses the sample, or two of them together do."""
    parts = taxonomy.parts(code) or (code,)
    place = IDS.index(clean_id) % 6
    lost = any(DESIGN.index(part) == place for part in parts if part in DESIGN)
    return not (lost or (together and len(parts) > 1 and place == 4))


@pytest.mark.parametrize("repeats", [1, 2])
def test_losses_that_add_up_do_not_interact(tmp_path: Path, repeats: int) -> None:
    made = found(tmp_path, lambda one, code: weak(one, code, False), rows(), repeats)
    assert set(made) == set(MIXED)
    for code, one in made.items():
        assert one.interaction.value == 0.0 and one.interaction.p == 1.0
        assert one.n == 48 and one.clean == 1.0
        assert one.loss == pytest.approx(sum(one.losses)) and one.losses == (8 / 48,) * len(one.parts)
        assert (one.p_holm is None) == (len(taxonomy.parts(code)) > 2)


def test_what_is_lost_only_together_is_the_interaction(tmp_path: Path) -> None:
    made = found(tmp_path, lambda one, code: weak(one, code, True), rows())
    for one in made.values():
        assert one.interaction.value == 8 / 48 and one.interaction.p == pytest.approx(2 * 0.5**8)
        assert one.interaction.low > 0
    pairs = [one for one in made.values() if len(one.parts) == 2]
    assert len(pairs) == 6 and all(one.p_holm == pytest.approx(6 * 2 * 0.5**8) for one in pairs)


def test_only_samples_with_all_four_rows_count(tmp_path: Path) -> None:
    asked = [one for one in rows() if not (one[1] == "CD" and IDS.index(one[0]) < 12)]
    made = found(tmp_path, lambda one, code: weak(one, code, True), asked)
    assert made[PAIR].n == 36 and made[PAIR].interaction.value == 6 / 36
    assert made["mix__realistic_typos__same_name_D"].n == 48
    without = [one for one in rows() if one[1] != "CD"]
    assert PAIR not in found(tmp_path / "other", lambda one, code: True, without)


def test_a_mixture_that_costs_less_than_its_parts_has_a_negative_interaction(tmp_path: Path) -> None:
    made = found(tmp_path, lambda one, code: code == "clean" or IDS.index(one) % 2 == 0, rows())
    assert made[PAIR].interaction.value == -0.5 and made[PAIR].loss == 0.5


def test_interactions_and_cells_are_in_the_report(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", lambda one, code: weak(one, code, True), rows())
    report = api.report([str(run)])
    tables = {table.name: table for table in report.models[0].packs}
    shown = tables["mixed_interactions"]
    assert shown.rows[0][0] == "realistic_typos + same_name_D"
    value = shown.rows[0][6]
    assert isinstance(value, Interval) and value.value == 8 / 48
    cells = tables["mixed_cells"]
    assert len(cells.rows) == 16 and [row[1] for row in cells.rows] == [48] * 16
    assert "Interactions of perturbations" in page.html(report)
    few = write_run(tmp_path / "few", lambda one, code: True, rows((*DESIGN, *MIXED[:6], MIXED[-1])))
    names = [table.name for table in api.report([str(few)]).models[0].packs]
    assert names == ["mixed_interactions"], "a design that is not whole has no table of cells"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Sample]:
    """The factorial design over the starter samples."""
    from robustbench_tc.eval.inputs import load

    folder = tmp_path_factory.mktemp("factorial") / "robustbench-tc"
    api.build(folder, profile="bundled", design="factorial")
    return list(load(str(folder)).rows)


@pytest.mark.parametrize(
    ("name", "together"), [("additive-weakness", False), ("super-additive-weakness", True)]
)
def test_the_agents_interactions_are_what_they_are_made_to_be(
    built: list[Sample], tmp_path: Path, name: str, together: bool
) -> None:
    clean = {row.clean_id: row for row in built if row.type_code == "clean"}
    right = {(row.clean_id, row.type_code): is_right(name, row, clean[row.clean_id]) for row in built}
    said = verdicts(name, built, "prompt")
    assert [one.correct for one in said] == list(right.values()), (
        "the scorers see what the agent is made to do"
    )
    made = found(tmp_path, lambda one, code: right[one, code], list(right))
    assert set(made) == set(MIXED)
    for code, one in made.items():
        whole = [c for c in clean if all((c, part) in right for part in (*taxonomy.parts(code), code))]
        both = sum(sample_class(c) == TOGETHER for c in whole) if together else 0
        assert one.n == len(whole) and one.interaction.value == both / len(whole)
