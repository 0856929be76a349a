"""Every number of a mart is the one of `eval.stats`, to the last bit, whatever a run looks like."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from robustbench_tc import taxonomy
from robustbench_tc.eval import paper
from robustbench_tc.eval.stats import levels, runs, stages, summary, values
from robustbench_tc.eval.stats.breakdown import breakdown, gains
from robustbench_tc.eval.stats.packs import mixed, severity
from robustbench_tc.sql.query import Inputs, connect, marts, query

from ..conftest import NIGHTLY
from ..eval.synthetic_runs import clean_ids, coin, counted, mcnemar_p, pairs, write_run
from .test_sql_marts import SQL, release_of

Pairs = list[tuple[str, str]]

IDS = clean_ids({"bfcl_v3": 6, "apibank": 20, "rotbench": 4, "toolalpaca": 4, "tooleyes": 6})
EVERY = pairs(IDS)
EXTENSIONS = [(c, t) for c in IDS[:30:3] for t in ("CD_AB_pref", "TD_AB_pref")]
DECLINING = [(c, t) for c in IDS[:30:3] for t in ("gold_removed", "ghost_tool_2")]
CONTROLS = [(c, t) for c in IDS[6:40:3] for t in ("call_due", "named_tool")]


def noisy(seed: int, silent: float = 0.0) -> Callable[[str, str], bool | None]:
    """A model whose answers differ from repeat to repeat, and fail now and then."""
    generator = np.random.default_rng(seed)
    return lambda clean_id, code: None if generator.random() < silent else bool(generator.random() < 0.6)


def scattered(rows: Iterable[tuple[str, str]], share: float) -> Pairs:
    generator = np.random.default_rng(9)
    return [row for row in rows if generator.random() < share]


def partly_repeated(folder: Path) -> Path:
    """Asked twice, but many rows only in one of the repeats, as an import may be."""
    import pyarrow.parquet as pq

    made = write_run(folder, noisy(7, 0.02), EVERY, repeats=2, record={"expected": 0})
    table = pq.read_table(made / "scores.parquet")
    pq.write_table(
        table.filter(np.random.default_rng(5).random(table.num_rows) < 0.8), made / "scores.parquet"
    )
    return made


SHAPES: dict[str, Callable[[Path], Path]] = {
    "whole": lambda f: write_run(f, coin(1), EVERY),
    "holes": lambda f: write_run(f, noisy(2, 0.01), EVERY),
    "extensions": lambda f: write_run(f, noisy(3), EVERY + EXTENSIONS),
    "repeats": lambda f: write_run(f, noisy(4), EVERY, repeats=3),
    "repeats with holes": lambda f: write_run(f, noisy(5, 0.05), EVERY, repeats=2),
    "partly repeated": partly_repeated,
    "unfinished": lambda f: write_run(f, coin(1), EVERY, record={"expected": len(EVERY) + 7}),
    "declining beside its controls": lambda f: write_run(f, noisy(5), EVERY + DECLINING + CONTROLS),
    "declining, some controls cut off": lambda f: write_run(f, noisy(6, 0.2), EVERY + DECLINING + CONTROLS),
    "declining without controls": lambda f: write_run(f, noisy(7), EVERY + DECLINING),
    "some types": lambda f: write_run(f, coin(1), [p for p in EVERY if p[1] in ("clean", "CD", "TD")]),
    "no clean rows": lambda f: write_run(f, coin(1), [p for p in EVERY if p[1] != "clean"]),
    "few rows": lambda f: write_run(f, noisy(6, 0.1), scattered(EVERY, 0.2)),
    "a type without a verdict": lambda f: write_run(f, lambda c, t: None if t == "CD" else True, EVERY),
    "nothing right": lambda f: write_run(f, lambda c, t: False, EVERY),
    "clean never right": lambda f: write_run(f, lambda c, t: t != "clean", EVERY),
    "everything right": lambda f: write_run(f, lambda c, t: True, EVERY),
}


class Marts:
    """The marts over one set of inputs, on one connection: all runs together, as a user may ask."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        with connect(inputs) as connection:
            self._found = {
                name: connection.sql((SQL / f"{name}.sql").read_text()).to_arrow_table().to_pylist()
                for name, mart in marts().items()
                if mart.needs == "cells" or (mart.needs == "runs" and inputs.runs)
            }
            named = connection.sql("select clean_id, type_code from stg_release").fetchall()
            self.release = [(str(clean_id), str(code)) for clean_id, code in named]

    def of(self, run: str) -> dict[str, list[dict[str, Any]]]:
        """The rows of one run, by mart."""
        return {name: [row for row in found if row.get("run") == run] for name, found in self._found.items()}

    def __getitem__(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._found[name]
        return found


class Asked(NamedTuple):
    """How the marts are asked."""

    subset: runs.Subset = "all"
    allow_missing: bool = False
    release: bool = False


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("runs")
    return {name: make(root / name.replace(" ", "-")) for name, make in SHAPES.items()}


SUBSETS: tuple[runs.Subset, ...] = ("all", "paper")
WAYS = [Asked(*way) for way in itertools.product(SUBSETS, (False, True), (False, True))]
BY_DAY = [way for way in WAYS if (way.subset == "paper") == (way.allow_missing != way.release)]
"""Half of them, in which every two settings still meet in every pair of values."""


@pytest.fixture(scope="module", params=WAYS if NIGHTLY else BY_DAY)
def asked(
    request: pytest.FixtureRequest, folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Asked, Marts]:
    how: Asked = request.param
    release = tmp_path_factory.mktemp("release") / "release"
    more = [
        ("bfcl_v3__level1_99", "clean"),
        ("bfcl_v3__level1_99", "CD"),
        ("rotbench__level1_77", "redundant"),
    ]
    return how, Marts(
        Inputs(
            runs=[str(folder) for folder in folders.values()],
            subset=how.subset,
            allow_missing=how.allow_missing,
            release=str(release_of(release, EVERY + more)) if how.release else None,
        )
    )


def every_value_agrees(found: values.Values, made: Mapping[str, list[dict[str, Any]]]) -> None:
    """table2, deltas, by_type, accuracy, heatmap and gap_closure beside the lines of `values`."""
    [table2] = made["table2"]
    for metric in values.METRICS:
        if metric in table2:
            kind, _, name = metric.rpartition("_")
            if metric in values.RETENTIONS:
                value = values.retention(found.lines, values.RETENTIONS[metric])
            else:
                value = getattr(found.lines[name], kind or "accuracy")
            assert table2[metric] == value, metric
    assert (table2["n_clean"], table2["n_perturbed"]) == tuple(
        found.lines[h].n for h in ("clean", "perturbed")
    )
    seen = set()
    for row in made["deltas"]:
        line = found.lines[row["type_code"] or row["component"]]
        seen.add(row["type_code"] or row["component"])
        assert (row["n"], row["accuracy"], row["delta"], row["delta_matched"], row["pairs"] or 0) == (
            (line.n, line.accuracy, line.delta, line.delta_matched, line.pairs)
        ), row
    there = {code for code in found.types if found.lines[code].n}
    assert seen >= {*values.HEADS[1:], *(there & set(taxonomy.codes()))}
    for mart in ("accuracy", "by_type"):
        listed = {row["type_code"]: row for row in made[mart]}
        assert listed.keys() - {"clean"} >= there
        for code, row in listed.items():
            line = found.lines[code]
            assert (row["correct"], row["n"], row["missing"]) == (line.correct, line.n, line.missing), row
            assert row["accuracy"] == line.accuracy
            assert row.get("delta") == (line.delta if mart == "by_type" else None)
    [heat] = made["heatmap"]
    for code in (taxonomy.CLEAN, *taxonomy.codes()):
        assert heat[code] == (found.lines[code].accuracy if code in found.lines else None)


def every_stage_agrees(found: stages.Stages | None, made: list[dict[str, Any]]) -> None:
    assert found is not None
    listed: stages.Failures = {}
    for row in made:
        of_type = listed.setdefault(row["type_code"], {})
        of_type.setdefault(row["stage"], {})[row["detail"]] = row["n"]
        assert row["share_of_wrong"] == row["n"] / found.wrong(row["type_code"])
        assert row["share_of_rows"] == row["n"] / found.n[row["type_code"]]
    own = {line: of for line, of in found.failures.items() if line not in values.HEADS[1:] and of}
    assert listed == own
    assert [list(of) for of in listed.values()] == [list(of) for of in own.values()], "the stages' order"


def every_level_agrees(found: tuple[levels.LevelLine, ...], made: list[dict[str, Any]]) -> None:
    assert [(row["level"], row["pack"]) for row in made] == [(one.level, one.pack) for one in found]
    for row, one in zip(made, found, strict=True):
        assert (row["types"], row["n"], row["correct"]) == (len(one.types), one.n, one.correct)
        assert (row["missing"], row["pairs"] or 0) == (one.missing, one.pairs)
        assert row["accuracy"] == (one.accuracy and one.accuracy.value)
        assert row["delta"] == one.delta
        assert row["delta_matched"] == (one.delta_matched and one.delta_matched.value)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_value_of_every_run_agrees(
    shape: str, folders: dict[str, Path], asked: tuple[Asked, Marts]
) -> None:
    (subset, allow_missing, _), every = asked
    run = str(folders[shape])
    made, expected = every.of(run), every.release or None
    read = runs.read_run(run)
    [outcomes] = runs.align([read], subset=subset, expected=expected)
    found = values.from_counts(outcomes.counts(), outcomes.usable(allow_missing), partial=allow_missing)
    every_value_agrees(found, made)

    inside = runs.within(read, outcomes)
    rest = breakdown(inside, allow_missing=allow_missing)
    flips = {row["type_code"]: row for row in made["flip_matrix"]}
    assert flips.keys() == {code for code in found.types if found.lines[code].pairs}
    for code, row in flips.items():
        line = found.lines[code]
        wrong = line.pairs - line.kept - line.lost - line.gained
        assert (row["pairs"], row["both_right"], row["lost"], row["gained"], row["both_wrong"]) == (
            (line.pairs, line.kept, line.lost, line.gained, wrong)
        )
    listed = made["flips"]
    for code in found.types:
        of_type = [row["flip"] for row in listed if row["type_code"] == code]
        assert (of_type.count("lost"), of_type.count("gained")) == (
            found.lines[code].lost,
            found.lines[code].gained,
        )
    assert [
        (
            r["type_code"],
            r["pairs"],
            r["lost"],
            r["gained"],
            r["net_lost"] / found.lines["perturbed"].n,
            r["perturbed_accuracy_gain"],
            r["most_frequent_error"],
        )
        for r in made["what_to_gain"]
    ] == [
        (
            g.type_code,
            g.pairs,
            g.lost,
            g.gained,
            (g.lost - g.gained) / found.lines["perturbed"].n,
            g.gain,
            g.error,
        )
        for g in gains(summary.summarise(outcomes, allow_missing=allow_missing), rest)
    ]
    for row in made["what_to_gain"]:
        net = outcomes.matched([row["type_code"]])[0]
        assert row["p"] == pytest.approx(mcnemar_p(int((net > 0).sum()), int((net < 0).sum()))), row
    modes: dict[str, dict[str, int]] = {}
    for row in made["error_modes"]:
        modes.setdefault(row["type_code"], {})[row["error_mode"]] = row["n"]
    assert modes == {code: rest.error_modes[code] for code in modes}
    assert modes.keys() == rest.error_modes.keys() - set(values.HEADS[1:])
    every_stage_agrees(stages.stages(inside, outcomes, allow_missing=allow_missing), made["stages"])
    every_level_agrees(levels.levels(outcomes, allow_missing=allow_missing), made["by_level"])
    cells = {(row["source"], row["component"]): row for row in made["by_source"]}
    ours = {(source, name): cell for source, of in rest.sources.items() for name, cell in of.items()}
    assert cells.keys() == ours.keys()
    for key, row in cells.items():
        cell = ours[key]
        assert (row["correct"], row["n"], row["missing"]) == (cell.correct, cell.n, cell.missing)
        assert row["accuracy"] == cell.accuracy
        assert row["mean_score"] == pytest.approx(cell.mean_score)


def test_the_papers_models_agree() -> None:
    made = Marts(Inputs(paper=paper.CELLS))
    found = {}
    for model in paper.models():
        counts = {code: values.Counts(*count) for code, count in paper.counts(model).items()}
        found[model] = values.from_counts(counts, counts)
        every_value_agrees(found[model], made.of(f"paper:{model}"))
    base = found[paper.BASELINE]
    closures = made["gap_closure"]
    assert len(closures) == 20 * 4
    for row in closures:
        of_base, of_model = (one.lines[row["component"]].delta for one in (base, found[row["model"]]))
        assert of_base is not None and of_model is not None
        assert (row["baseline_delta"], row["delta"]) == (of_base, of_model)
        assert row["closed"] == values.closure(of_base, of_model)


def test_gap_closures_of_runs_agree(tmp_path: Path) -> None:
    folders = [
        str(write_run(tmp_path / str(i), coin(i, 0.5 + i / 10), EVERY, model=f"m{i}")) for i in range(3)
    ]
    made = Marts(Inputs(runs=folders, parameters={"baseline": "m0"}))
    lines = {}
    for folder in folders:
        outcomes = counted(Path(folder))
        lines[folder] = values.from_counts(outcomes.counts(), outcomes.usable()).lines
    found = made["gap_closure"]
    assert len(found) == 2 * 4
    for row in found:
        of_base, of_run = (lines[one][row["component"]].delta for one in (folders[0], row["run"]))
        assert of_base is not None and of_run is not None
        assert row["closed"] == values.closure(of_base, of_run)


# --- The marts of doses and interactions hold the numbers of `eval.stats`, as far as doubles go


SAMPLES = clean_ids()[:50]
BEYOND = [kind.code for kind in taxonomy.types("all") if kind.pack in ("severity", "mixed")]


def mart(name: str, run: Path) -> list[dict[str, Any]]:
    return query(name, Inputs(runs=[str(run)])).to_pylist()


@pytest.fixture(params=[1, 3])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Coins over a build with holes: rows that are not there, and answers that were not had."""
    generator = np.random.default_rng(request.param)
    rows = pairs(SAMPLES) + [(one, code) for one in SAMPLES for code in BEYOND if generator.random() < 0.9]

    def verdict(clean_id: str, code: str) -> bool | None:
        return None if generator.random() < 0.01 else bool(generator.random() < 0.6)

    return write_run(tmp_path / "run", verdict, rows, repeats=request.param)


def test_doses(run: Path) -> None:
    outcomes = counted(run)
    expected = [(one, dose) for one in severity.series(outcomes, outcomes.types) for dose in one.doses]
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
    outcomes = counted(run)
    expected = mixed.interactions(outcomes, outcomes.types)
    found = mart("interactions", run)
    assert [row["mixture"] for row in found] == [one.code for one in expected] and len(found) == 11
    for row, one in zip(found, expected, strict=True):
        assert row["n"] == one.n and row["parts"] == " + ".join(one.parts)
        assert row["interaction"] == pytest.approx(one.interaction.value, abs=1e-15)
        assert row["loss"] == pytest.approx(one.loss, abs=1e-15)
        assert row["losses"] == pytest.approx(sum(one.losses), abs=1e-14)
        assert row["clean_accuracy"] == pytest.approx(one.clean, abs=1e-15)


def test_a_mixture_that_no_module_states_and_a_type_that_is_not_scored(tmp_path: Path) -> None:
    rows = [(one, code) for one in SAMPLES for code in ("typos_1", BY_NAME, "transient_timeout_x9")]
    run = write_run(tmp_path / "run", lambda one, code: code != BY_NAME, pairs(SAMPLES) + rows)
    (row,) = mart("interactions", run)
    assert (row["mixture"], row["parts"], row["interaction"]) == (BY_NAME, "typos_1 + CD", 1.0)
    found = {row["type_code"]: row for row in mart("by_type", run)}
    assert (found[BY_NAME]["display_name"], found[BY_NAME]["component"]) == ("Typo-1 + MisDesc", "mixed")
    assert found[BY_NAME]["accuracy"] == 0.0 and found["typos_1"]["accuracy"] == 1.0
    assert found["transient_timeout_x9"]["n"] == len(SAMPLES)
    assert found["transient_timeout_x9"]["accuracy"] is found["transient_timeout_x9"]["delta"] is None
    (heat,) = mart("heatmap", run)
    assert heat["transient_timeout_x9"] is None and heat["typos_1"] == 1.0
    assert "transient_timeout_x9" not in {row["type_code"] for row in mart("hardest", run)}


BY_NAME = "mix__typos_1__CD"


def test_a_run_of_the_core_has_neither(tmp_path: Path) -> None:
    core = write_run(tmp_path / "core", lambda one, code: True, pairs(SAMPLES))
    assert mart("doses", core) == mart("interactions", core) == []
