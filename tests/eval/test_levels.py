"""Tables by level and of the packs beyond the core: made once, shown wherever a run is shown."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from robustbench_tc import api, languages, taxonomy
from robustbench_tc.eval.report import page
from robustbench_tc.eval.score.wrong_language import leaves_users_language
from robustbench_tc.eval.stats import intervals, levels, packs, runs, screen, stages, summary
from robustbench_tc.eval.stats.packs.language import tables
from robustbench_tc.schema import Call, Change, GoldenAnswer, Json, Message, Sample
from robustbench_tc.sql.query import Inputs, connect, query

from ..conftest import Done
from .synthetic_runs import clean_ids, coin, pack_input, pairs, write_run

IDS = clean_ids({"bfcl_v3": 6, "apibank": 20, "rotbench": 4, "toolalpaca": 4, "tooleyes": 6})
PREFERRED = [(one, code) for one in IDS[:9] for code in ("CD_AB_pref", "TD_AB_pref")]


CORE = coin(1)


def both(clean_id: str, code: str) -> bool | None:
    """Right on one type of the pack and wrong on the other."""
    return code == "CD_AB_pref" if code.endswith("_pref") else CORE(clean_id, code)


def lines(folder: Path, **how: bool) -> dict[tuple[str, str], levels.LevelLine]:
    [outcomes] = runs.align([runs.read_run(folder)])
    return {(one.level, one.pack): one for one in levels.levels(outcomes, **how)}


def test_the_cores_lines_add_up_to_the_perturbed_rows(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", coin(1), pairs(IDS))
    found = lines(folder)
    assert list(found) == [(level, "core") for level in levels.LEVELS[:3]]
    [outcomes] = runs.align([runs.read_run(folder)])
    whole = summary.summarise(outcomes).lines
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
    assert {kind.level for kind in taxonomy.types("all")} <= set(levels.LEVELS)
    of_core = {level: [k.code for k in taxonomy.types() if k.level == level] for level in levels.LEVELS}
    assert [len(codes) for codes in of_core.values()] == [4, 12, 6, 0]


def test_the_full_summary_has_the_levels_and_the_stages_of_wrong_answers(
    tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    folder = write_run(tmp_path / "run", both, pairs(IDS) + PREFERRED)
    said = [line.split() for line in rbtc("summary", folder, "--full", "--allow-missing").out.splitlines()]
    for (level, pack), one in lines(folder, allow_missing=True).items():
        [line] = [words for words in said if words[:2] == [level, pack]]
        assert line[2:5] == [str(len(one.types)), str(one.correct), str(one.n)]
    run = runs.read_run(folder)
    found = stages.stages(run, runs.align([run])[0])
    for name in ("clean", "perturbed", *taxonomy.COMPONENTS):
        counted = [found.n[name], found.wrong(name), *found.wrong_by_stage(name).values()]
        assert [name, *map(str, counted)] in said


# --- Tables of the packs beyond the core: made once, shown wherever a run is shown


HOSTILE = "<script>alert(1)</script> | `x`"


def offered(given: packs.Given) -> Iterable[packs.Table]:
    row = given.summary.types["CD_AB_pref"]
    yield packs.Table(
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
    assert [packs.spelled(one) for one in ("a", 3, 0.5, None)] == [
        ("a", ""),
        ("3", ""),
        ("0.500", ""),
        ("–", ""),
    ]
    assert packs.spelled(intervals.Interval(0.5, 0.25, 0.75, 4)) == ("0.500", "[0.250, 0.750]")


@pytest.mark.usefixtures("of_offers")
def test_a_packs_tables_are_in_the_report_and_in_the_full_summary(
    tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    folder = run(tmp_path / "run", "CD_AB_pref")
    report = api.report([str(folder)])
    (table,) = report.models[0].packs
    value = table.rows[0][3]
    assert isinstance(value, intervals.Interval) and value.n == 20
    shown = page.html(report)
    assert "<script>alert(1)" not in shown and "A note." in shown and 'href="#packs"' in shown
    assert f"{value.value:.3f}".replace("-", "−") in shown and "−0.250" in shown
    text = page.markdown(report)
    assert "### " in text and "| CD\\_AB\\_pref | 20 | -0.250 |" in text.replace("−", "-")
    assert json.loads(page.as_json(report))["models"][0]["packs"][0]["rows"][1] == [HOSTILE, 3, 0.5, None]
    made = screen.overview(runs.read_run(folder), 0, {}, allow_missing=True)
    assert made.packs == report.models[0].packs
    said = rbtc("summary", folder, "--full").out
    assert "A note." in said and "-25.0" in said and HOSTILE in said


@pytest.mark.usefixtures("of_offers")
def test_a_run_of_the_core_has_no_tables_of_packs(tmp_path: Path) -> None:
    report = api.report([str(run(tmp_path / "run"))])
    assert report.models[0].packs == ()
    assert 'id="packs"' not in page.html(report) and "Beyond the core" not in page.markdown(report)


def test_every_module_speaks_for_packs_that_there_are() -> None:
    assert all(callable(make) for make in packs.makers().values())


# --- The language pack in an evaluation: the mode `wrong_language`, and the tables --------------------


# --- the mode ------------------------------------------------------------------------------------------


def asked(code: str, **surfaces: str) -> Sample:
    explained = (Change(languages.VALUE_MAP, None, dict(surfaces)),) if surfaces else ()
    return Sample(
        id=f"s::{code}",
        clean_id="s",
        type_code=code,
        source="bfcl_v3",
        category="multiple",
        messages=(Message("user", "…"),),
        tools=(),
        golden_answers=(),
        output_format="python_calls",
        changes=explained,
    )


def gold(**values: list[Json]) -> GoldenAnswer:
    return (Call("book", dict(values)),)


ZH = asked("language_full_zh", Luna="露娜", Rome="罗马")
ES = asked("language_full_es", Rome="Roma")


def test_what_is_a_value_in_the_users_language() -> None:
    cases: list[tuple[Sample, GoldenAnswer, dict[str, Json], bool]] = [
        (ZH, gold(place=["Luna"]), {"place": "露娜"}, True),
        (ZH, gold(place=["Luna"]), {"place": "月神"}, True),  # other words of the same script
        (ZH, gold(place=["Luna"]), {"place": "Lunna"}, False),
        (ZH, gold(place=["Luna"]), {"place": "Luna"}, False),
        (ZH, gold(place=["Luna"]), {"place": "Lunaa 露"}, False),  # mostly Latin
        (ZH, gold(seats=[2], place=["Luna"]), {"seats": 3, "place": "露娜"}, False),  # a number differs first
        (ZH, gold(seats=[2], place=["Luna"]), {"seats": 2, "place": "露娜"}, True),
        (ZH, gold(seats=[2], place=["Luna"]), {"seats": "2", "place": "露娜"}, True),
        (ZH, gold(place=["Luna"], seats=[2]), {"place": "露娜", "seats": 3}, True),
        (ZH, gold(note=["x", ""], place=["Luna"]), {"place": "露娜"}, True),  # a parameter that is not there
        (ZH, gold(places=[["Luna", "Rome"]]), {"places": ["Luna", "罗马"]}, True),
        (ZH, gold(places=[["Luna", "Rome"]]), {"places": ["Oslo", "罗马"]}, False),
        (ZH, gold(at=[{"city": ["Rome"]}]), {"at": {"city": "罗马"}}, True),
        (ZH, gold(free=[{"any": True}], place=["Luna"]), {"free": "随便", "place": "x"}, False),
        (ES, gold(place=["Rome"]), {"place": "ROMA"}, True),
        (ES, gold(at=[{"n": [2], "place": ["Rome"]}]), {"at": {"n": 2, "place": "Roma"}}, True),
        (ES, gold(at=[{"n": [2], "place": ["Rome"]}]), {"at": {"n": 3, "place": "Roma"}}, False),
        (ES, gold(place=["Rome"]), {"place": "Ｒｏｍａ"}, True),  # NFKC
        (ES, gold(place=["Rome"]), {"place": "la ciudad de Roma"}, False),
        (ES, gold(place=["Rome"], to=["Bonn"]), {"place": "Rome", "to": "Roma"}, False),  # not that value's
        (asked("language_hi"), gold(place=["Luna"]), {"place": "लूना"}, True),
        (asked("language_hi"), gold(seats=["2"]), {"seats": "२"}, True),
        (
            asked("language_es"),
            gold(place=["Rome"]),
            {"place": "Roma"},
            False,
        ),  # nothing tells it from a slip
        (asked("language_ru"), gold(place=["Rome"]), {"place": "Рим"}, True),
        (asked("query_paraphrase"), gold(place=["Luna"]), {"place": "露娜"}, False),
        (asked("clean"), gold(place=["Luna"]), {"place": "露娜"}, False),
    ]
    wrong = [
        (row.type_code, golden, call, foreign)
        for row, golden, call, foreign in cases
        if leaves_users_language([Call("book", call)], golden, row) is not foreign
    ]
    assert wrong == []


def test_calls_are_compared_with_the_golden_call_that_they_mean() -> None:
    golden = (*gold(place=["Rome"]), *gold(place=["Luna"]))
    calls = [Call("book", {"place": "Luna"}), Call("book", {"place": "罗马"})]
    assert leaves_users_language(calls, golden, ZH)
    assert not leaves_users_language([Call("other", {"place": "罗马"})], golden, ZH)


# --- the tables ----------------------------------------------------------------------------------------

RIGHT = {
    **{(c, "clean"): True for c in "abcd"},
    **{("a", "language_zh"): True, ("b", "language_zh"): True, ("c", "language_zh"): False},
    **{("d", "language_zh"): True, ("a", "language_full_zh"): False, ("b", "language_full_zh"): True},
    **{("c", "language_full_zh"): False, ("a", "language_de"): True, ("a", "language_full_de"): False},
}
FOREIGN = {("a", "language_full_zh"), ("a", "language_full_de")}


def mode(clean_id: str, code: str) -> str | None:
    if RIGHT[clean_id, code]:
        return None
    return "wrong_language" if (clean_id, code) in FOREIGN else "wrong_parameters"


@pytest.fixture(scope="module")
def language_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four samples: all of them in Chinese, three with values translated too, one in German."""
    folder = tmp_path_factory.mktemp("runs") / "a"
    return write_run(folder, lambda c, t: RIGHT[c, t], list(RIGHT), error_mode=mode)


def test_the_tables_hold_what_the_verdicts_say(language_run: Path) -> None:
    made = {table.name: table for table in tables(pack_input(language_run))}
    assert list(made) == ["language_deltas", "language_execution", "language_errors"]

    def plain(name: str) -> list[tuple[object, ...]]:
        return [
            tuple(cell.value if isinstance(cell, intervals.Interval) else cell for cell in row)
            for row in made[name].rows
        ]

    assert plain("language_deltas") == [("Chinese", 4, 0.25, 3, 2 / 3), ("German", 1, 0.0, 1, 1.0)]
    # Chinese: a, b and c have both rows; a is lost by its value, b is right twice, c is wrong twice.
    assert plain("language_execution") == [
        ("Chinese", 3, 2 / 3, 1 / 3, pytest.approx(1 / 3), "1.000"),
        ("German", 1, 1.0, 0.0, 1.0, "1.000"),
        ("all languages", 3, 0.75, 0.25, 0.5, "1.000"),
    ]
    assert plain("language_errors") == [
        ("Chinese", "kept", 1, 0, 0.0),
        ("Chinese", "translated", 2, 1, 0.5),
        ("German", "kept", 0, 0, None),
        ("German", "translated", 1, 1, 1.0),
    ]
    for table in made.values():
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_one_kind_of_rows_alone_has_no_share_of_execution(tmp_path: Path) -> None:
    few = [pair for pair in RIGHT if pair[1] in ("clean", "language_zh")]
    made = tables(pack_input(write_run(tmp_path / "a", lambda c, t: RIGHT[c, t], few, error_mode=mode)))
    assert [table.name for table in made] == ["language_deltas", "language_errors"]


def test_the_mart_says_the_same(language_run: Path) -> None:
    found = {row["type_code"]: row for row in query("language", Inputs(runs=[str(language_run)])).to_pylist()}
    assert list(found) == ["language_zh", "language_full_zh", "language_de", "language_full_de"]
    zh, full = found["language_zh"], found["language_full_zh"]
    assert (zh["delta"], zh["samples"], zh["wrong"], zh["wrong_language"], zh["share"]) == (
        0.25,
        None,
        1,
        0,
        0,
    )
    assert (full["pairs"], full["samples"], full["wrong"], full["share"]) == (3, 3, 2, 0.5)
    assert full["delta"] == pytest.approx(2 / 3) and full["execution"] == pytest.approx(1 / 3)
    assert found["language_de"]["language"] == "de" and found["language_full_de"]["share"] == 1


def test_the_mart_knows_the_types_of_every_language(language_run: Path) -> None:
    with connect(Inputs(runs=[str(language_run)])) as connection:
        rows = connection.execute(
            "select type_code, display_name, core, type_order from stg_types"
        ).fetchall()
    wanted = {(k.code, k.display_name, k.pack == "core", k.order) for k in taxonomy.types("known")}
    assert set(rows) == wanted and len(rows) == len(wanted)
