"""How the answers of a run went: error modes, sources, flags of replies, and which types lose most."""

import pytest

from robustbench_tc.eval.stats import runs
from robustbench_tc.eval.stats.breakdown import READ_WITH_CARE, Flagged, SourceCell, breakdown, gains
from robustbench_tc.eval.stats.summary import Summary
from robustbench_tc.eval.stats.values import Line

from .synthetic_runs import write_run

SAMPLES = ("bfcl_v3__level1_0", "bfcl_v3__level1_1", "tooleyes__level1_0")
ROWS = [(c, t) for c in SAMPLES for t in ("clean", "CD", "TD", "CD_AB_pref")]
WRONG = {(SAMPLES[0], "CD"), (SAMPLES[1], "CD"), (SAMPLES[1], "TD"), (SAMPLES[2], "CD_AB_pref")}
"""CD and TD are reward types of the core, CD_AB_pref is an extension."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> runs.Run:
    quoted = {(SAMPLES[0], "clean"), (SAMPLES[1], "CD"), (SAMPLES[2], "CD_AB_pref")}
    folder = write_run(
        tmp_path_factory.mktemp("breakdown") / "a",
        lambda c, t: None if (c, t) == (SAMPLES[2], "TD") else (c, t) not in WRONG,
        ROWS,
        flags=lambda c, t: ["quoted_call", "rare"] if (c, t) in quoted else [],
        error_mode=lambda c, t: {"CD": "name_bias", "TD": "omitted"}.get(t) if (c, t) in WRONG else None,
    )
    return runs.read(folder)


def test_wrong_answers_count_for_their_type_and_its_component(run: runs.Run) -> None:
    found = breakdown(run).error_modes
    assert found["CD"] == {"name_bias": 2}
    assert found["TD"] == {"omitted": 1}
    assert found["reward"] == {"omitted": 1, "name_bias": 2}
    assert found["CD_AB_pref"] == {"other": 1}, "a wrong answer without a mode is still counted"
    assert set(found) == {"CD", "TD", "reward", "CD_AB_pref"}


def test_sources_are_counted_by_component_and_extensions_apart(run: runs.Run) -> None:
    found = breakdown(run).sources
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
    assert breakdown(run, allow_missing=True).sources["tooleyes"]["reward"].accuracy == 1.0


def test_flags_of_replies_are_counted_in_clean_and_in_the_core_types(run: runs.Run) -> None:
    found = breakdown(run).flags
    assert found["quoted_call"] == found["rare"] == Flagged((1, 1), (0, 1))
    assert (found["quoted_call"].replies, found["quoted_call"].right) == (2, 1)
    never = set(READ_WITH_CARE) - {"quoted_call"}
    assert all(found[name] == Flagged((0, 0), (0, 0)) and not found[name].replies for name in never)


def test_accuracies_without_flagged_replies_are_over_the_others() -> None:
    lines = {"clean": Line(correct=3, n=4), "perturbed": Line(correct=5, n=8)}
    assert Flagged((1, 2), (5, 5)).accuracies_without(lines) == {"clean": 1.0, "perturbed": 0.0}
    assert Flagged((3, 4), (0, 0)).accuracies_without(lines) == {"clean": None, "perturbed": 0.625}


def test_types_stand_in_the_order_of_their_net_loss(run: runs.Run) -> None:
    lines = {
        "perturbed": Line(correct=2, n=10),
        "CD": Line(correct=1, n=5, pairs=5, lost=2, gained=1),
        "TD": Line(correct=1, n=5, pairs=5, lost=3),
    }
    made = Summary(lines=lines, values={}, types={}, gaps=())
    first, second = gains(made, breakdown(run))
    assert (first.type_code, first.lost, first.gained, first.gain, first.error) == (
        "TD",
        3,
        0,
        0.3,
        "omitted",
    )
    assert (second.type_code, second.lost, second.gained, second.gain) == ("CD", 2, 1, 0.1)
    assert second.error == "name_bias"
