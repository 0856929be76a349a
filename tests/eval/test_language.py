"""The language pack in an evaluation: the mode `wrong_language`, the agent that has it, and the tables."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from robustbench_tc import taxonomy
from robustbench_tc.eval.agents import is_right
from robustbench_tc.eval.record import Mode
from robustbench_tc.eval.score.wrong_language import leaves_users_language
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.packs.language import tables
from robustbench_tc.languages import VALUE_MAP, value_map
from robustbench_tc.schema import Call, Change, GoldenAnswer, Json, Message, Sample, Verdict
from robustbench_tc.sql.query import Inputs, connect, query

from .small import rows_of
from .synthetic_runs import pack_input, write_run
from .test_agents import MODES, bench_of, verdicts

PACK = tuple(kind.code for kind in taxonomy.types("all") if kind.pack == "language")
ECHO = "echoes-user-language"


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sample, ...]:
    return rows_of(tmp_path_factory.mktemp("bundled"), PACK)


@pytest.fixture(scope="module")
def paper(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Sample, ...]:
    return rows_of(tmp_path_factory.mktemp("paper"), PACK, profile="paper", sources=shared / "sources")


def judged(name: str, rows: Sequence[Sample], mode: Mode) -> dict[str, tuple[bool, str | None]]:
    """Type and verdict of every row by id; each is the one that the agent is known for."""
    anchors = bench_of(rows).anchors
    found: dict[str, Verdict] = {
        row.id: verdict for row, verdict in zip(rows, verdicts(name, rows, mode), strict=True)
    }
    assert [i for i, v in found.items() if v.correct != is_right(name, by_id(rows)[i], anchors[i])] == []
    return {i: (v.correct, v.error_mode) for i, v in found.items()}


def by_id(rows: Sequence[Sample]) -> dict[str, Sample]:
    return {row.id: row for row in rows}


def check_the_echo(rows: Sequence[Sample], mode: Mode, full: int) -> None:
    """It fails all and only the rows with translated values, each as `wrong_language`; the oracle none."""
    mapped = {row.id for row in rows if value_map(row)}
    assert len(mapped) == full == sum(row.type_code.startswith("language_full_") for row in rows)
    found = judged(ECHO, rows, mode)
    assert {i for i, (correct, _) in found.items() if not correct} == mapped
    assert Counter(why for correct, why in found.values() if not correct) == {"wrong_language": full}
    assert all(correct for correct, _ in judged("oracle", rows, mode).values())


@pytest.mark.parametrize("mode", MODES)
def test_the_echo_fails_all_and_only_the_translated_rows_of_the_starter_samples(
    bundled: tuple[Sample, ...], mode: Mode
) -> None:
    check_the_echo(bundled, mode, 37)


@pytest.mark.parametrize("mode", MODES)
def test_the_echo_fails_all_and_only_the_translated_rows_of_the_paper(
    paper: tuple[Sample, ...], mode: Mode
) -> None:
    check_the_echo(paper, mode, 78)


def test_agents_of_other_faults_leave_no_value_in_the_users_language(bundled: tuple[Sample, ...]) -> None:
    for name in ("silent", "rambler", "retries-with-a-changed-argument", "first-of-duplicates"):
        assert "wrong_language" not in Counter(why for _, why in judged(name, bundled, "prompt").values())


# --- the mode ------------------------------------------------------------------------------------------


def asked(code: str, **surfaces: str) -> Sample:
    explained = (Change(VALUE_MAP, None, dict(surfaces)),) if surfaces else ()
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
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four samples: all of them in Chinese, three with values translated too, one in German."""
    folder = tmp_path_factory.mktemp("runs") / "a"
    return write_run(folder, lambda c, t: RIGHT[c, t], list(RIGHT), error_mode=mode)


def test_the_tables_hold_what_the_verdicts_say(run: Path) -> None:
    made = {table.name: table for table in tables(pack_input(run))}
    assert list(made) == ["language_deltas", "language_execution", "language_errors"]

    def plain(name: str) -> list[tuple[object, ...]]:
        return [
            tuple(cell.value if isinstance(cell, Interval) else cell for cell in row)
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


def test_the_mart_says_the_same(run: Path) -> None:
    found = {row["type_code"]: row for row in query("language", Inputs(runs=[str(run)])).to_pylist()}
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


def test_the_mart_knows_the_types_of_every_language(run: Path) -> None:
    with connect(Inputs(runs=[str(run)])) as connection:
        rows = connection.execute(
            "select type_code, display_name, core, type_order from stg_types"
        ).fetchall()
    wanted = {(k.code, k.display_name, k.pack == "core", k.order) for k in taxonomy.types("known")}
    assert set(rows) == wanted and len(rows) == len(wanted)
