"""Losses by component and by source and type, and the sentence that a report leads with."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from robustbench_tc import taxonomy
from robustbench_tc.eval.report.finding import finding
from robustbench_tc.eval.stats import losses
from robustbench_tc.eval.stats.losses import Loss
from robustbench_tc.eval.stats.runs import Outcomes, Run, align, read
from robustbench_tc.eval.stats.significance import mcnemar_p
from robustbench_tc.eval.stats.summary import Summary, summarise

from .synthetic_runs import Verdict, clean_ids, coin, pairs, write_run

SIZES = {"bfcl_v3": 12, "toolalpaca": 9}


def of_sample(run: Run) -> dict[str, str]:
    return dict(zip(run.rows["clean_id"].tolist(), run.rows["source"].tolist(), strict=True))


def made(folder: Path, verdict: Verdict, **fields: object) -> tuple[Run, Outcomes]:
    rows = pairs(clean_ids(SIZES))
    run = read(write_run(folder, verdict, rows, **fields))  # type: ignore[arg-type]
    return run, align([run])[0]


def test_cells_are_counted_and_tested_as_by_hand(tmp_path: Path) -> None:
    """Wrong under CD where BFCL is asked; under TD two more are wrong than on clean, everywhere."""

    def verdict(clean_id: str, code: str) -> bool:
        if code == "CD":
            return not clean_id.startswith("bfcl_v3")
        return not (code == "TD" and clean_id.endswith(("_1", "_2")))

    run, outcomes = made(tmp_path / "a", verdict)
    found = losses.by_source(outcomes, of_sample(run))
    assert set(found) == set(SIZES)
    cells = sum(len(row) for row in found.values())
    assert cells == 2 * len(taxonomy.codes())
    lost = found["bfcl_v3"]["CD"]
    p = mcnemar_p(12, 0)
    assert lost == Loss(12, 12, 0, 1.0, p, min(1.0, p * cells))
    assert lost.significant and not found["toolalpaca"]["CD"].significant
    assert (found["toolalpaca"]["TD"].lost, found["toolalpaca"]["TD"].pairs) == (2, 9)
    whole = losses.by_component(outcomes)
    assert set(whole) == set(taxonomy.COMPONENTS)
    assert (whole["reward"].lost, whole["reward"].pairs) == (12 + 2 + 2, 6 * 21)
    assert whole["observation"].p_holm == 1.0


def test_the_cells_of_a_type_add_up_to_the_type(tmp_path: Path) -> None:
    run, outcomes = made(tmp_path / "a", coin(4))
    table, summary = losses.by_source(outcomes, of_sample(run)), summarise(outcomes)
    for code, row in summary.types.items():
        assert row.flips is not None
        cells = [found[code] for found in table.values()]
        assert sum(one.lost for one in cells) == row.flips.lost
        assert sum(one.pairs for one in cells) == row.flips.pairs
    for name, loss in losses.by_component(outcomes).items():
        shown = summary.values[f"delta_matched_{name}"]
        assert shown is not None and loss.delta_matched == pytest.approx(shown.value, abs=1e-12)


def test_a_cell_with_a_missing_row_is_left_out_unless_that_is_allowed(tmp_path: Path) -> None:
    hole = ("bfcl_v3__level1_3", "TD")
    run, outcomes = made(tmp_path / "a", lambda c, t: None if (c, t) == hole else True)
    strict, partial = (losses.by_source(outcomes, of_sample(run), allow_missing=on) for on in (False, True))
    assert strict == losses.by_source(outcomes, of_sample(run)), "nothing missing is allowed unasked"
    assert "TD" not in strict["bfcl_v3"] and strict["toolalpaca"]["TD"].pairs == 9
    assert partial["bfcl_v3"]["TD"].pairs == 11
    assert "reward" not in losses.by_component(outcomes)
    assert losses.by_component(outcomes, allow_missing=True)["reward"].pairs == 6 * 21 - 1


def test_samples_that_no_run_answered_belong_to_the_source_of_their_id(tmp_path: Path) -> None:
    run = read(write_run(tmp_path / "a", lambda c, t: True, pairs(clean_ids(SIZES))))
    named = [*zip(run.rows["clean_id"], run.rows["type_code"], strict=True), ("rotbench__x_1", "clean")]
    [outcomes] = align([run], expected=named)
    assert set(losses.by_source(outcomes, of_sample(run))) == set(SIZES)


# --- the sentence ---------------------------------------------------------------------------------------


def said(folder: Path, verdict: Verdict, **fields: object) -> str:
    return finding(summarise(made(folder, verdict, **fields)[1])).text


def test_the_largest_significant_loss_is_named_with_its_interval_and_test(tmp_path: Path) -> None:
    _, outcomes = made(tmp_path / "a", lambda c, t: t != "CD" and not (t == "TD" and "bfcl" in c))
    summary = summarise(outcomes)
    found, matched = finding(summary), summary.types["CD"].delta_matched
    assert found.type_code == "CD" and matched is not None and 0.5 < matched.low < matched.high == 1
    assert found.text == (
        "loses most under MisDesc (reward): 100.0 points of accuracy on the same samples (95\u00a0% interval "
        f"{100 * matched.low:.1f} to 100.0); exact paired test p < 0.001, corrected for 22 types; "
        "2 of 22 types lose significantly."
    )


def test_a_larger_estimate_that_is_not_significant_is_not_what_is_named(tmp_path: Path) -> None:
    """Under TD two of two are lost, under CD 30 of 40."""
    rows = [(c, t) for c, t in pairs(clean_ids({"bfcl_v3": 40})) if t in ("clean", "CD", "TD")]
    few = [(c, t) for c, t in rows if t != "TD" or c.endswith(("level1_1", "level1_2"))]
    run = read(
        write_run(tmp_path / "a", lambda c, t: t == "clean" or (t == "CD" and c.endswith(tuple("048"))), few)
    )
    summary = summarise(align([run])[0])
    larger, named = (summary.types[code].delta_matched for code in ("TD", "CD"))
    assert larger is not None and named is not None and larger.value == 1.0 > named.value
    assert finding(summary).type_code == "CD"
    assert "corrected for 2 types; no other loss is significant." in finding(summary).text


def test_where_nothing_is_significant_the_sentence_says_so(tmp_path: Path) -> None:
    text = said(tmp_path / "a", lambda c, t: not (t == "CD" and c.endswith("_1")))
    assert text.startswith(
        "shows no significant loss under any of 22 types; the largest that was measured is "
    )
    assert "MisDesc (reward): 9.5 points" in text and "p = 1.000" in text


def test_runs_at_the_ends_get_a_sentence_of_their_own(tmp_path: Path) -> None:
    assert said(tmp_path / "right", lambda c, t: True) == (
        "loses nothing: under none of 22 types is it worse than on the same clean samples."
    )
    assert said(tmp_path / "wrong", lambda c, t: False) == (
        "gets none of its 21 clean answers right, so nothing can be lost."
    )
    only = [(c, t) for c, t in pairs(clean_ids(SIZES)) if t == "CD"]
    run = read(write_run(tmp_path / "only", lambda c, t: True, only))
    assert finding(summarise(align([run])[0])).text.startswith("cannot be judged: no rows of clean")
    clean = [(c, t) for c, t in pairs(clean_ids(SIZES)) if t == "clean"]
    run = read(write_run(tmp_path / "clean", lambda c, t: True, clean))
    assert "cannot be judged: no perturbed row" in finding(summarise(align([run])[0])).text


def nulls(times: int, samples: int, right: float) -> Iterator[Summary]:
    """Models that lose nothing: every answer to a sample is right with the sample's own chance."""
    codes = (taxonomy.CLEAN, *taxonomy.codes())
    for seed in range(times):
        generator = np.random.default_rng(seed)
        ability = generator.beta(3 * right, 3 * (1 - right), size=(samples, 1))
        correct = (generator.random((samples, len(codes))) < ability).astype(np.int64)
        one, anchor = np.ones_like(correct), correct[:, :1]
        pair = one.copy()
        pair[:, 0] = 0
        outcomes = Outcomes(
            clean_ids=tuple(map(str, range(samples))),
            types=codes,
            correct=correct,
            n=one,
            missing=0 * one,
            pairs=pair,
            kept=pair * (anchor & correct),
            lost=pair * (anchor > correct),
            gained=pair * (anchor < correct),
            repeats=1,
        )
        yield summarise(outcomes)


@pytest.mark.parametrize("right", [0.5, 0.9])
def test_a_model_that_loses_nothing_is_seldom_said_to_lose(right: float) -> None:
    alarms = sum(finding(one).type_code is not None for one in nulls(60, 40, right))
    assert alarms <= 7  # of 60: 3 at the level, and a chance below 1 in 30 of more than 7
