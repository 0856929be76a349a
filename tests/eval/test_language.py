"""The language pack in an evaluation: the mode `wrong_language`, and the tables."""

from pathlib import Path

import pytest

from robustbench_tc import taxonomy
from robustbench_tc.eval.score.wrong_language import leaves_users_language
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.packs.language import tables
from robustbench_tc.languages import VALUE_MAP
from robustbench_tc.schema import Call, Change, GoldenAnswer, Json, Message, Sample
from robustbench_tc.sql.query import Inputs, connect, query

from .synthetic_runs import pack_input, write_run

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
