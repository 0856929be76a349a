"""Rows whose registry has more tools, played: known figures, tables of their own, edits refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc import api, schema
from robustbench_tc.builders.live import build, registry
from robustbench_tc.eval.data import Selection
from robustbench_tc.eval.inputs import load_live
from robustbench_tc.eval.live import inputs
from robustbench_tc.eval.live.score import read_scores
from robustbench_tc.eval.stats.packs.live import lines
from robustbench_tc.sql.query import Inputs, query

from ...conftest import Done
from ...refusals import refuses
from . import purses
from .playing import scores


def _purses() -> list[schema.LiveRow]:
    """The purse's tasks, with a namesake before and behind the world's tool, and one fault."""
    clean = [row for row in purses.rows() if row.clean]
    faulted = [purses.faulted(row, schema.Fault(schema.At(write=1), "silent_no_op")) for row in clean]
    more = [
        row
        for name in ("same_name_A", "same_name_D")
        for row in registry.registered(clean, name, 3).values()
        if isinstance(row, schema.LiveRow)
    ]
    return [*clean, *faulted, *more]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The agent that fills in the first tool of a name, on the purse's rows."""
    root = tmp_path_factory.mktemp("more")
    purses.write(root / "purses", _purses())
    api.evaluate(root / "purses", agent="takes-first", worlds=[str(purses.FILE)], out=root / "run")
    api.score(root / "run", worlds=[str(purses.FILE)])
    return root / "run"


def test_the_oracle_is_right_in_every_row_and_who_takes_the_first_tool_where_the_worlds_own_is_first() -> (
    None
):
    made = build.prepared(build.LiveSpec(types=("same_name_A", "same_name_B", "flood_3")), probe=False)
    clean, *others = (list(build.rows_of(code, made)) for code in made)
    rows = [row for of_type in others for row in of_type]
    assert len(rows) == 120
    right = scores(rows, "oracle", clean)
    assert all(one.success and not one.met and one.recovered is None for one in right)
    biased = {one.id: one for one in scores(rows, "takes-first", clean)}
    for row in rows:
        first = next(call for calls in row.golden_calls for call in calls)
        named = [tool for tool in row.tools if tool.name == first.name]
        own_first, own = not named[0].distractor, next(tool for tool in named if not tool.distractor)
        assert getattr(biased[row.id], "success" if own.writes else "information") == own_first, row.id
        assert biased[row.id].repeated == biased[row.id].blind_repeats == 0
    taken = {one.type_code for one in biased.values() if not (one.success and one.information is not False)}
    assert taken == {"live_same_name_A", "live_same_name_B"}  # a flood has other names


def test_types_have_lines_of_their_own_and_are_in_no_sum(run: Path, rbtc: Callable[..., Done]) -> None:
    scored = read_scores(run)
    found = {line.name: line for line in lines(scored)}
    assert list(found) == ["silent_no_op", "implicit", "all", "same_name_A", "same_name_D"]
    assert found["all"].n == found["silent_no_op"].n == 2
    for name in ("same_name_A", "same_name_D"):
        own = [one for one in scored if one.type_code == f"live_{name}"]
        assert found[name].n == len(own) > 0 and found[name].met == 0 and found[name].recovery is None
        assert found[name].success.value == sum(bool(one.success) for one in own) / len(own)
    only = [one for one in scored if one.type_code in ("clean", "live_same_name_A")]
    assert [line.name for line in lines(only)] == ["same_name_A"]
    printed = rbtc("summary", run, "--full")
    assert printed.code == 0 and "same_name_D" in printed.out


def test_page_episode_and_marts_show_them(run: Path, tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    api.report([run], tmp_path / "out", worlds=[str(purses.FILE)])
    text = (tmp_path / "out" / "report.html").read_text()
    assert "same_name_A" in text and "not carried out" in text
    taken = next(
        one for one in read_scores(run) if one.success is False and one.type_code == "live_same_name_A"
    )
    shown = rbtc("show", run, taken.id, "--worlds", purses.FILE)
    assert shown.code == 0 and "this tool is not available" in shown.out
    for mart in ("live_recovery", "live_side_effects"):
        by_type = {row["type_code"]: row for row in query(mart, Inputs(runs=[str(run)])).to_pylist()}
        assert {"clean", "live_silent_no_op", "live_same_name_A", "live_same_name_D"} == by_type.keys()
    assert by_type["live_same_name_A"]["episodes"] == 1  # nothing can stand in for `count_coins()`


def test_rows_are_selected_by_type_with_their_clean_rows(tmp_path: Path) -> None:
    data = load_live(str(purses.write(tmp_path / "data", _purses())))
    assert list(dict.fromkeys(row.type_code for row in data.rows)) == [
        "clean", "live_silent_no_op", "live_same_name_A", "live_same_name_D",
    ]  # fmt: skip
    assert inputs.codes(["same_name_A", "live_same_name_D"]) == ("live_same_name_A", "live_same_name_D")
    chosen = data.select(Selection(types=inputs.codes(["same_name_A"])))
    assert {row.type_code for row in chosen} == {"clean", "live_same_name_A"} and len(chosen) == 2


def _in_the_way(row: schema.LiveRow) -> dict[str, Any]:
    own = next(t for t in row.tools if t.name == row.golden_calls[0][0].name and not t.distractor)
    return {
        "tools": (
            msgspec.structs.replace(own, distractor=True),
            *(t for t in row.tools if not t.distractor),
        )
    }


EDITS: dict[str, tuple[Callable[[schema.LiveRow], dict[str, Any]], str]] = {
    "a fault": (lambda r: {"fault": schema.Fault(schema.At(write=1), "silent_no_op")}, "more than the tools"),
    "a label": (lambda r: {"label": "repair"}, "more than the tools"),
    "other words": (
        lambda r: {"turns": (schema.Turn((schema.Message("user", "Hi"),)), *r.turns[1:])},
        "more than the tools",
    ),
    "a tool called the world's": (
        lambda r: {"tools": tuple(msgspec.structs.replace(t, distractor=False) for t in r.tools)},
        "are not those of its clean row",
    ),
    "no more tools": (
        lambda r: {"tools": tuple(t for t in r.tools if not t.distractor)},
        "are not those of its clean row",
    ),
    "a changed tool": (
        lambda r: {
            "tools": tuple(
                t if t.distractor else msgspec.structs.replace(t, description="?") for t in r.tools
            )
        },
        "are not those of its clean row",
    ),
    "gold's call taken": (_in_the_way, "goes to a tool that is not of the world"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_row_is_refused_before_anything_is_asked(tmp_path: Path, edit: str) -> None:
    change, why = EDITS[edit]
    rows = _purses()
    at = next(at for at, row in enumerate(rows) if row.type_code == "live_same_name_D")
    rows[at] = msgspec.structs.replace(rows[at], **change(rows[at]))
    refuses(why, load_live, str(purses.write(tmp_path / "data", rows)))
