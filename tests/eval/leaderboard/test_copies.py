"""Runs with the replies of another: found, named with the share, and no business of ranked runs."""

from collections.abc import Mapping

import msgspec
import numpy as np
import pytest

from robustbench_tc.eval.leaderboard import copies, flags
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.copies import sketch
from robustbench_tc.eval.leaderboard.row import Figures, Row
from robustbench_tc.eval.leaderboard.tiers import Flag, Tier

from . import few, made
from .test_flags import Judged, mixed, oracle, silent

__all__ = ["oracle", "silent"]


def row(name: str, sketched: str, tier: Tier = "unverified", has: tuple[str, ...] = ()) -> Row:
    figures = Figures.of(msgspec.structs.replace(few.entry({"CD": [1, 0]}), replies=sketched))
    return Row(
        id=name, model=name, family="", user="ann", params_b=None, mode="fc", submitted_at="", tier=tier,
        flags=has, figures=figures,
    )  # fmt: skip


def found(runs: Mapping[str, str]) -> dict[str, Flag]:
    return copies.flagged(row(name, sketched) for name, sketched in runs.items())[1]


def test_a_copy_names_the_earlier_run_and_the_share(oracle: Judged, silent: Judged) -> None:
    runs = {
        "first": oracle[0],
        "other": silent[0],
        "renamed": [msgspec.structs.replace(one, model="Y-9B", latency_s=9.0) for one in oracle[0]],
        "touched": mixed(0.97, oracle, silent)[0],
        "half": mixed(0.5, oracle, silent)[0],
    }
    sketches = {name: sketch(run) for name, run in runs.items()}
    made_of = found(sketches)
    assert {name: flag.of for name, flag in made_of.items()} == {"renamed": "first", "touched": "first"}
    assert made_of["renamed"].value == 1.0 and 0.95 <= made_of["touched"].value < 1.0
    assert flags.says(made_of["renamed"]).endswith("rows have the replies of submission first")
    # Who came first is what counts, and a run without a sketch is equal to nothing.
    assert list(found(dict(reversed(sketches.items())))) == ["renamed", "first"]
    assert found({"a": "", "b": "", "c": "no base64!", "d": "no base64!", "e": "eA==", "f": "eA=="}) == {}


def test_a_run_with_a_rank_is_held_against_ranked_runs_only(oracle: Judged) -> None:
    said = sketch(oracle[0])
    rows = [
        row("somebody", said),
        row("flagged", said, "endpoint-matched", ("near-gold",)),
        row("first", said, "reproduced"),
        row("second", said, "endpoint-matched"),
        row("last", said),
    ]
    done, found = copies.flagged(rows)
    assert {name: flag.of for name, flag in found.items()} == {"second": "first", "last": "somebody"}
    assert [one.flags for one in done] == [(), ("near-gold",), (), ("copy",), ("copy",)]
    # Without what has no rank the ranked ones are the same.
    assert copies.flagged(rows[2:4])[0] == done[2:4]


def test_ids_of_native_calls_and_the_order_of_repeats_do_not_count(asked: Asked) -> None:
    answers = made.answers("oracle", asked, made.settings(asked, "X-3B", "fc", repeat=2))
    renamed = [
        msgspec.structs.replace(
            one, tool_calls=[{**call, "id": f"x{n}"} for n, call in enumerate(one.tool_calls)]
        )
        if one.tool_calls
        else one
        for one in answers
    ]
    assert any(one.tool_calls for one in answers)
    assert sketch(renamed) == sketch(answers)
    swapped = [answers[i ^ 1] for i in range(len(answers))]
    assert sketch(swapped) == sketch(answers)


def test_a_sketch_of_many_rows_is_of_some_of_them(monkeypatch: pytest.MonkeyPatch, oracle: Judged) -> None:
    monkeypatch.setattr(copies, "SKETCHED", 64)
    assert (
        len(Figures.of(msgspec.structs.replace(few.entry({"CD": [1]}), replies=sketch(oracle[0]))).replies)
        == 128
    )
    assert sketch(oracle[0]) == sketch(oracle[0][::-1])


def test_copies_among_many_are_found_from_groups_of_rows() -> None:
    draw = np.random.default_rng(1)
    seen, expected, named = copies.Replies(), {}, {}
    runs = {f"r{i}": draw.integers(0, 2**16, 400, dtype=np.uint16) for i in range(200)}
    for i in range(0, 200, 10):
        copied = runs[f"r{i}"].copy()
        copied[draw.choice(400, 20, replace=False)] += 1  # 0.95 stay
        runs[f"copy{i}"] = copied
        expected[f"copy{i}"] = f"r{i}"
    for name, replies in runs.items():
        if (flag := seen.equal(copies.Said.of(replies.tobytes()))) is not None:
            named[name] = flag.of
        seen.add(name, copies.Said.of(replies.tobytes()))
    assert named == expected
    # A run of another number of rows is equal to none.
    assert seen.equal(copies.Said.of(runs["r0"][:300].tobytes())) is None
