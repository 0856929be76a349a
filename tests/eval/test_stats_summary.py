"""Runs as counts, and the tables of one model: what is missing is never averaged over."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from robustbench_tc import schema, taxonomy
from robustbench_tc.eval import paper
from robustbench_tc.eval.stats import runs
from robustbench_tc.eval.stats.breakdown import READ_WITH_CARE, Flagged, SourceCell, breakdown, gains
from robustbench_tc.eval.stats.outcomes import Outcomes
from robustbench_tc.eval.stats.summary import Summary, summarise
from robustbench_tc.eval.stats.values import METRICS, Line, closure, codes_of

from ..refusals import refuses
from .synthetic_runs import clean_ids, coin, counted, mcnemar_p, pairs, write_run


def value(summary: Summary, metric: str) -> float:
    found = summary.values[metric]
    assert found is not None
    return found.value


def test_the_types_are_the_papers_own() -> None:
    assert {cell.type_code for cell in paper.cells()} == {taxonomy.CLEAN, *taxonomy.codes()}
    assert {(cell.type_code, cell.component) for cell in paper.cells() if cell.component != "clean"} == {
        (t.code, t.component) for t in taxonomy.types()
    }
    refuses("did you mean o4-mini", paper.counts, "o4mini")


def test_the_shipped_counts_are_the_specifications(shared: Path) -> None:
    for name in ("cells", "half_widths", "table2"):  # the models: test_vllm_backend
        ours = paper.CELLS.with_name(f"{name}.csv").read_bytes()
        assert ours == (shared / "spec" / "paper" / f"{name}.csv").read_bytes()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> runs.Run:
    return runs.read_run(write_run(tmp_path_factory.mktemp("runs") / "a", coin(1)))


@pytest.fixture(scope="module")
def outcomes(run: runs.Run) -> Outcomes:
    return counted(run)


@pytest.fixture(scope="module")
def made(outcomes: Outcomes) -> Summary:
    return summarise(outcomes)


def test_a_whole_run_has_every_value_in_both_conventions_and_says_how_its_interval_was_had(
    outcomes: Outcomes, made: Summary
) -> None:
    methods = {"retention": ("fieller", "simulated"), "delta": ("mover", "exact")}
    for at, summary in enumerate((made, summarise(outcomes, "paper"))):
        assert summary.gaps == () and set(summary.types) == set(taxonomy.codes())
        for metric in METRICS:
            found = summary.values[metric]
            assert found is not None and found.low <= found.value <= found.high and found.n > 0, metric
            assert found.value == pytest.approx(value(made, metric)), metric
            assert found.method == methods.get(metric.partition("_")[0], ("hull", "exact"))[at], metric


def test_sums_by_hand_are_the_tables(run: runs.Run, made: Summary) -> None:
    right = dict(zip(run.rows["id"].tolist(), run.rows["correct"].tolist(), strict=True))
    rows = pairs(clean_ids())
    clean = np.mean([right[f"{c}::clean"] for c in clean_ids()])
    reward = [(c, t) for c, t in rows if t in codes_of("reward")]
    perturbed = np.mean([right[f"{c}::{t}"] for c, t in reward])
    matched = np.mean([right[f"{c}::clean"] - right[f"{c}::{t}"] for c, t in reward])
    assert value(made, "delta_reward") == pytest.approx(clean - perturbed)
    assert value(made, "delta_matched_reward") == pytest.approx(matched)
    assert abs(value(made, "delta_reward") - value(made, "delta_matched_reward")) > 1e-4
    drops = [value(made, f"delta_{name}") for name in ("observation", "action", "reward")]
    assert value(made, "retention") == pytest.approx(1 - np.mean(drops) / clean)
    flips, found = made.types["CD"].flips, made.types["CD"].delta_matched
    assert flips is not None and found is not None and found.p == flips.p, "the p of its exact test"
    lost = sum(right[f"{c}::clean"] == 1 and right[f"{c}::CD"] == 0 for c, t in rows if t == "CD")
    assert (flips.pairs, flips.lost) == (148, lost)
    assert flips.p == mcnemar_p(flips.lost, flips.gained)
    assert flips.p <= flips.p_holm <= 1


def test_the_power_line_is_the_reach_of_the_intervals(made: Summary) -> None:
    """A normal estimate whose 95 % interval reaches ± h is away from 0 in 80 % of runs at h · 2.8016 /
    1.9600."""
    found = made.values["delta_matched_reward"]
    assert made.power is not None and found is not None
    assert (made.power.samples, made.power.repeats) == (199, 1)
    assert made.power.smallest["reward"] == pytest.approx(2.80159 / 1.95996 * found.half_width, rel=1e-5)
    assert set(made.power.smallest) == {*taxonomy.COMPONENTS, "type"}
    assert made.power.line.startswith(
        "minimum detectable effect in points (80 % power; 199 samples, 1 repeat)"
    )


def test_retention_with_transition_counts_all_four(made: Summary) -> None:
    drops = [value(made, f"delta_{name}") for name in taxonomy.COMPONENTS]
    expected = 1 - np.mean(drops) / value(made, "clean")
    assert value(made, "retention_with_transition") == pytest.approx(expected)
    assert closure(0.0, 0.1) is None
    assert value(made, "retention_with_transition") != pytest.approx(value(made, "retention"))


def test_the_paper_subset_has_102_priced_rows_and_no_bfcl_same_name(run: runs.Run) -> None:
    counts = {code: found.tally for code, found in counted(run, "paper").counts().items()}
    assert {counts[code][1] for code in ("CD", "TD", "CD_NT", "TD_NT")} == {148 - 32 - 14}
    assert counts["same_name_A"][1] == 74 + 21 + 21
    assert (counts["clean"][1], counts["CD_AB"][1], counts["redundant"][1]) == (199, 148, 199)
    assert runs.in_paper_subset("apibank__level3_2", "CD_AB")


def test_a_row_without_an_answer_is_a_gap_and_not_a_wrong_answer(tmp_path: Path) -> None:
    coins, lost = coin(1), ("apibank__level1_20", "TD")
    outcomes = counted(write_run(tmp_path / "a", lambda c, t: None if (c, t) == lost else coins(c, t)))
    summary = summarise(outcomes)
    assert summary.gaps == ("TD: 1 of 148 rows have no verdict",)
    assert "TD" not in summary.types
    for metric in ("perturbed", "delta_reward", "retention"):
        assert summary.values[metric] is None
    assert value(summary, "delta_action") > 0
    allowed = summarise(outcomes, allow_missing=True)
    assert allowed.types["TD"].accuracy.n == 147
    assert allowed.values["perturbed"] is not None
    assert allowed.gaps == summary.gaps


def test_a_row_that_only_another_run_has_is_missing_here(tmp_path: Path) -> None:
    rows = pairs(clean_ids())
    whole = runs.read_run(write_run(tmp_path / "a", coin(1)))
    part = runs.read_run(write_run(tmp_path / "b", coin(2), [r for r in rows if r[1] != "CD"], model="b"))
    first, second = runs.align([whole, part])
    assert summarise(first).gaps == ()
    assert summarise(second).gaps == ("no rows of CD",)
    assert summarise(second).values["delta_reward"] is None
    assert runs.align([part])[0].types == tuple(t for t in first.types if t != "CD")
    assert summarise(runs.align([part])[0]).values["perturbed"] is None


def test_rows_named_by_the_release_count_as_missing(tmp_path: Path) -> None:
    rows = pairs(clean_ids())
    part = runs.read_run(
        write_run(tmp_path / "a", coin(1), [r for r in rows if r != ("bfcl_v3__level1_3", "CD")])
    )
    [outcomes] = runs.align([part], expected=rows)
    assert summarise(outcomes).gaps == ("CD: 1 of 148 rows have no verdict",)


def test_an_unfinished_run_shows_nothing_until_it_is_allowed(tmp_path: Path) -> None:
    outcomes = counted(write_run(tmp_path / "a", coin(1), record={"expected": 9999}))
    summary = summarise(outcomes)
    assert not summary.types and not any(summary.values.values())
    assert "never made: it is unfinished" in summary.gaps[0]
    assert summarise(outcomes, allow_missing=True).values["clean"] is not None


def test_repeats_are_counted_within_their_sample(tmp_path: Path) -> None:
    rows = pairs(clean_ids({"bfcl_v3": 30}))

    def verdict(clean_id: str, code: str) -> bool:
        return (int(clean_id.split("_")[-1]) + (code == "CD")) % 3 > 0

    once = write_run(tmp_path / "a", verdict, rows)
    twice = write_run(tmp_path / "b", verdict, rows, repeats=2)
    one, two = (summarise(counted(folder)) for folder in (once, twice))
    for metric in METRICS:
        a, b = one.values[metric], two.values[metric]
        assert a is not None and b is not None
        # Not more is known than from one: but for the t adjustment (29 degrees of freedom) the same.
        assert (b.value, b.n) == pytest.approx((a.value, 2 * a.n))
        assert (b.low, b.high) == pytest.approx((a.low, a.high), abs=0.025)
        assert b.half_width >= a.half_width - 1e-9
    first, second = one.types["CD"].flips, two.types["CD"].flips
    assert first is not None and second is not None
    assert (second.lost, second.gained, second.p) == (2 * first.lost, 2 * first.gained, first.p)


def test_a_perturbed_answer_is_paired_with_the_clean_answer_of_its_own_repeat(tmp_path: Path) -> None:
    rows = [("bfcl_v3__level1_1", "clean"), ("bfcl_v3__level1_1", "CD")]
    asked = runs.read_run(write_run(tmp_path / "a", lambda c, t: True, rows, repeats=4))
    right = {("clean", 0), ("clean", 1), ("CD", 1), ("CD", 2)}
    keys = zip(asked.rows["type_code"].tolist(), asked.rows["repeat"].tolist(), strict=True)
    said = {**asked.rows, "correct": np.array([int(key in right) for key in keys])}
    found = counted(msgspec.structs.replace(asked, rows=said)).counts()["CD"]
    assert (found.pairs, found.kept, found.lost, found.gained) == (4, 1, 1, 1)


def test_a_repeat_that_was_never_asked_is_missing(tmp_path: Path) -> None:
    rows = [("bfcl_v3__level1_1", "clean"), ("bfcl_v3__level1_1", "CD")]
    thrice = runs.read_run(write_run(tmp_path / "a", lambda c, t: True, rows, repeats=3))
    record = json.loads((tmp_path / "a" / "run.json").read_text())
    record["settings"]["repeat"] = 5
    (tmp_path / "a" / "run.json").write_text(json.dumps(record))
    for run, repeats, missing in ((thrice, 3, 0), (runs.read_run(tmp_path / "a"), 5, 2)):
        outcomes = counted(run)
        assert outcomes.repeats == repeats
        assert {code: (found.n, found.missing) for code, found in outcomes.counts().items()} == {
            "clean": (3, missing),
            "CD": (3, missing),
        }


def test_a_type_that_this_version_does_not_know_is_named(tmp_path: Path) -> None:
    rows = [("bfcl_v3__level1_1", "clean"), ("bfcl_v3__level1_1", "CD")]
    other = {"CD": "of_tomorrow"}
    run = runs.read_run(write_run(tmp_path / "a", coin(1), rows, type_code=lambda c, t: other.get(t, t)))
    refuses("type 'of_tomorrow' is unknown to this version", runs.align, [run])


def test_the_verified_subset_is_without_the_samples_that_nobody_could_answer(tmp_path: Path) -> None:
    rows = pairs(clean_ids({"bfcl_v3": 4, "apibank": 3}))
    unstated = {"bfcl_v3__level1_2", "apibank__level3_0"}
    flags = lambda c, t: [schema.GOLD_NOT_STATED] if c in unstated else []  # noqa: E731
    run = runs.read_run(write_run(tmp_path / "a", coin(1), rows, flags=flags))
    everything, verified = counted(run), counted(run, "verified")
    assert set(everything.clean_ids) - set(verified.clean_ids) == unstated
    assert verified.counts()["clean"].n == everything.counts()["clean"].n - 2 == 5


def test_what_is_no_scored_run_is_refused_in_one_line(tmp_path: Path) -> None:
    rows = pairs(clean_ids({"bfcl_v3": 2}))
    (tmp_path / "empty").mkdir()
    unscored, torn, unread = (
        write_run(tmp_path / name, coin(1), rows) for name in ("unscored", "torn", "unread")
    )
    (unscored / "scores.parquet").unlink()
    (torn / "scores.parquet").write_bytes((torn / "scores.parquet").read_bytes()[:500])
    (unread / "run.json").write_text("{")
    doubled = write_run(tmp_path / "doubled", coin(1), rows + rows[:44])
    mixed = write_run(tmp_path / "mixed", coin(1), rows, mode=lambda c, t: "fc" if t == "clean" else "prompt")
    for folder, line in (
        (tmp_path / "nowhere", "is not a run folder"),
        (tmp_path / "empty", r"is not a run folder: it has no run\.json"),
        (unscored, "rbtc score"),
        (torn, r"scores\.parquet is damaged"),
        (unread, r"run\.json is damaged"),
        (doubled, "44 predictions more than once"),
        (mixed, "mixes 2 modes"),
    ):
        refuses(line, runs.read_run, folder)


def test_runs_on_other_datasets_are_never_put_side_by_side(tmp_path: Path) -> None:
    fields: dict[str, dict[str, Any]] = {
        "release": {},
        "build": {"version": None},
        "other rows": {"fingerprint": "e" * 32},
        "other texts": {"sample_hash": lambda c, t: t},
    }
    rows = pairs(clean_ids({"bfcl_v3": 2}))
    release, build, *others = (
        runs.read_run(write_run(tmp_path / name, coin(1), rows, **more)) for name, more in fields.items()
    )
    assert runs.align([release, build]), "one fingerprint: a build and its release"
    for other in others:
        refuses("different datasets", runs.align, [release, other])


# --- how the answers went -----------------------------------------------------------------------------


SAMPLES = ("bfcl_v3__level1_0", "bfcl_v3__level1_1", "tooleyes__level1_0")
ROWS = [(c, t) for c in SAMPLES for t in ("clean", "CD", "TD", "CD_AB_pref")]
WRONG = {(SAMPLES[0], "CD"), (SAMPLES[1], "CD"), (SAMPLES[1], "TD"), (SAMPLES[2], "CD_AB_pref")}
"""CD and TD are reward types of the core, CD_AB_pref is an extension."""


@pytest.fixture(scope="module")
def answers_run(tmp_path_factory: pytest.TempPathFactory) -> runs.Run:
    quoted = {(SAMPLES[0], "clean"), (SAMPLES[1], "CD"), (SAMPLES[2], "CD_AB_pref")}
    folder = write_run(
        tmp_path_factory.mktemp("breakdown") / "a",
        lambda c, t: None if (c, t) == (SAMPLES[2], "TD") else (c, t) not in WRONG,
        ROWS,
        flags=lambda c, t: ["quoted_call", "rare"] if (c, t) in quoted else [],
        error_mode=lambda c, t: {"CD": "name_bias", "TD": "omitted"}.get(t) if (c, t) in WRONG else None,
    )
    return runs.read_run(folder)


def test_wrong_answers_count_for_their_type_and_its_component(answers_run: runs.Run) -> None:
    found = breakdown(answers_run).error_modes
    assert found["CD"] == {"name_bias": 2}
    assert found["TD"] == {"omitted": 1}
    assert found["reward"] == {"omitted": 1, "name_bias": 2}
    assert found["CD_AB_pref"] == {"other": 1}, "a wrong answer without a mode is still counted"
    assert set(found) == {"CD", "TD", "reward", "CD_AB_pref"}


def test_sources_are_counted_by_component_and_extensions_apart(answers_run: runs.Run) -> None:
    found = breakdown(answers_run).sources
    assert found["bfcl_v3"] == {
        "clean": SourceCell(2, 2, 0, 1.0, 1.0),
        "reward": SourceCell(1, 4, 0, 0.25, 0.25),
        "extension": SourceCell(2, 2, 0, 1.0, 1.0),
    }
    assert found["tooleyes"] == {
        "clean": SourceCell(1, 1, 0, 1.0, 1.0),
        "reward": SourceCell(1, 1, 1, None, 1.0),
        "extension": SourceCell(0, 1, 0, 0.0, 0.0),
    }
    assert breakdown(answers_run, allow_missing=True).sources["tooleyes"]["reward"].accuracy == 1.0


def test_flags_of_replies_are_counted_in_clean_and_in_the_core_types(answers_run: runs.Run) -> None:
    found = breakdown(answers_run).flags
    assert found["quoted_call"] == found["rare"] == Flagged((1, 1), (0, 1))
    assert (found["quoted_call"].replies, found["quoted_call"].right) == (2, 1)
    never = set(READ_WITH_CARE) - {"quoted_call"}
    assert all(found[name] == Flagged((0, 0), (0, 0)) and not found[name].replies for name in never)


def test_accuracies_without_flagged_replies_are_over_the_others() -> None:
    lines = {"clean": Line(correct=3, n=4), "perturbed": Line(correct=5, n=8)}
    assert Flagged((1, 2), (5, 5)).accuracies_without(lines) == {"clean": 1.0, "perturbed": 0.0}
    assert Flagged((3, 4), (0, 0)).accuracies_without(lines) == {"clean": None, "perturbed": 0.625}


def test_types_stand_in_the_order_of_their_net_loss(answers_run: runs.Run) -> None:
    lines = {
        "perturbed": Line(correct=2, n=10),
        "CD": Line(correct=1, n=5, pairs=5, lost=2, gained=1),
        "TD": Line(correct=1, n=5, pairs=5, lost=3),
    }
    made = Summary(lines=lines, values={}, types={}, gaps=())
    first, second = gains(made, breakdown(answers_run))
    assert (first.type_code, first.lost, first.gained, first.gain, first.error) == (
        "TD",
        3,
        0,
        0.3,
        "omitted",
    )
    assert (second.type_code, second.lost, second.gained, second.gain) == ("CD", 2, 1, 0.1)
    assert second.error == "name_bias"
