"""Tables by level and of the packs beyond the core: made once, shown wherever a run is shown."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from robustbench_tc import api, taxonomy
from robustbench_tc.eval.report import page
from robustbench_tc.eval.stats import levels, packs, runs, stages
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.levels import LEVELS, LevelLine
from robustbench_tc.eval.stats.packs import Given, Table, makers, spelled
from robustbench_tc.eval.stats.runs import read
from robustbench_tc.eval.stats.screen import overview
from robustbench_tc.eval.stats.summary import summarise

from ..conftest import Done
from .synthetic_runs import clean_ids, coin, pairs, write_run

IDS = clean_ids({"bfcl_v3": 6, "apibank": 20, "rotbench": 4, "toolalpaca": 4, "tooleyes": 6})
PREFERRED = [(one, code) for one in IDS[:9] for code in ("CD_AB_pref", "TD_AB_pref")]


CORE = coin(1)


def both(clean_id: str, code: str) -> bool | None:
    """Right on one type of the pack and wrong on the other."""
    return code == "CD_AB_pref" if code.endswith("_pref") else CORE(clean_id, code)


def lines(folder: Path, **how: bool) -> dict[tuple[str, str], LevelLine]:
    [outcomes] = runs.align([runs.read(folder)])
    return {(one.level, one.pack): one for one in levels.levels(outcomes, **how)}


def test_the_cores_lines_add_up_to_the_perturbed_rows(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", coin(1), pairs(IDS))
    found = lines(folder)
    assert list(found) == [(level, "core") for level in LEVELS[:3]]
    [outcomes] = runs.align([runs.read(folder)])
    whole = summarise(outcomes).lines
    assert sum(one.n for one in found.values()) == whole["perturbed"].n
    assert sum(one.correct for one in found.values()) == whole["perturbed"].correct
    for level, component in (("perception", "observation"), ("reasoning", "reward")):
        one, same = found[level, "core"], whole[component]
        assert one.accuracy is not None and one.delta_matched is not None
        assert (one.accuracy.value, one.delta) == (same.accuracy, same.delta)
        assert one.delta_matched.value == same.delta_matched
        assert one.accuracy.low < one.accuracy.value < one.accuracy.high


def test_a_pack_stands_beside_the_core_and_moves_none_of_its_lines(tmp_path: Path) -> None:
    without = lines(write_run(tmp_path / "core", coin(1), pairs(IDS)))
    found = lines(write_run(tmp_path / "both", both, pairs(IDS) + PREFERRED))
    assert {key: one for key, one in found.items() if key[1] == "core"} == without
    pack, every = found["reasoning", "offers"], found["reasoning", "all"]
    assert (pack.types, pack.n, pack.correct) == (("CD_AB_pref", "TD_AB_pref"), 18, 9)
    core = found["reasoning", "core"]
    assert (every.n, every.correct) == (core.n + 18, core.correct + 9)
    assert every.types == core.types + pack.types


def test_a_line_with_a_row_or_a_type_missing_has_no_value_unless_that_is_allowed(tmp_path: Path) -> None:
    rows = [pair for pair in pairs(IDS) if pair[1] != "CD"]
    folder = write_run(
        tmp_path / "run", lambda c, t: None if (c, t) == (IDS[0], "realistic_typos") else True, rows
    )
    found = lines(folder)
    assert (found["perception", "core"].accuracy, found["perception", "core"].missing) == (None, 1)
    assert found["reasoning", "core"].accuracy is None, "CD was not asked"
    assert found["interaction", "core"].accuracy is not None
    allowed = lines(folder, allow_missing=True)
    assert all(one.accuracy is not None and one.accuracy.value == 1.0 for one in allowed.values())


def test_a_type_of_the_core_that_is_missing_is_missing_from_the_core_and_the_sum_alone(
    tmp_path: Path,
) -> None:
    rows = [pair for pair in pairs(IDS) if pair[1] != "CD"]
    ghosts = [(one, "ghost_tool_1") for one in IDS]
    found = lines(write_run(tmp_path / "core", lambda c, t: True, rows + PREFERRED))
    valued = {pack: found["reasoning", pack].accuracy is not None for pack in ("core", "offers", "all")}
    assert valued == {"core": False, "offers": True, "all": False}
    clean = [pair for pair in rows if pair[1] == "clean"]
    packs = lines(write_run(tmp_path / "packs", lambda c, t: True, clean + PREFERRED + ghosts))
    assert [pack for level, pack in packs if level == "reasoning"] == ["registry", "offers", "all"]
    every = packs["reasoning", "all"]
    assert every.n == 18 + len(IDS) and every.accuracy is not None, "nothing of the core was asked"


def test_a_pack_alone_has_its_line(tmp_path: Path) -> None:
    rows = [(one, "clean") for one in IDS] + PREFERRED
    found = lines(write_run(tmp_path / "run", lambda c, t: True, rows))
    assert list(found) == [("reasoning", "offers")]
    assert (found["reasoning", "offers"].delta, found["reasoning", "offers"].pairs) == (0.0, 18)


def test_every_type_has_a_level_of_the_four() -> None:
    assert {kind.level for kind in taxonomy.types("all")} <= set(LEVELS)
    of_core = {level: [k.code for k in taxonomy.types() if k.level == level] for level in LEVELS}
    assert [len(codes) for codes in of_core.values()] == [4, 12, 6, 0]


def test_the_full_summary_has_the_levels_and_the_stages_of_wrong_answers(
    tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    folder = write_run(tmp_path / "run", both, pairs(IDS) + PREFERRED)
    said = [line.split() for line in rbtc("summary", folder, "--full", "--allow-missing").out.splitlines()]
    for (level, pack), one in lines(folder, allow_missing=True).items():
        [line] = [words for words in said if words[:2] == [level, pack]]
        assert line[2:5] == [str(len(one.types)), str(one.correct), str(one.n)]
    run = runs.read(folder)
    found = stages.stages(run, runs.align([run])[0])
    for name in ("clean", "perturbed", *taxonomy.COMPONENTS):
        counted = [found.n[name], found.wrong(name), *found.of(name).values()]
        assert [name, *map(str, counted)] in said


# --- Tables of the packs beyond the core: made once, shown wherever a run is shown


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
def test_a_packs_tables_are_in_the_report_and_in_the_full_summary(
    tmp_path: Path, rbtc: Callable[..., Done]
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
    said = rbtc("summary", folder, "--full").out
    assert "A note." in said and "-25.0" in said and HOSTILE in said


@pytest.mark.usefixtures("of_offers")
def test_a_run_of_the_core_has_no_tables_of_packs(tmp_path: Path) -> None:
    report = api.report([str(run(tmp_path / "run"))])
    assert report.models[0].packs == ()
    assert 'id="packs"' not in page.html(report) and "Beyond the core" not in page.markdown(report)


def test_every_module_speaks_for_packs_that_there_are() -> None:
    assert all(callable(make) for make in makers().values())
