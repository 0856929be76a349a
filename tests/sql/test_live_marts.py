"""The marts over live episodes, held to plain counting in Python."""

from collections import defaultdict
from pathlib import Path

import duckdb
import pytest

from robustbench_tc.eval.live.score import LiveScore
from robustbench_tc.sql.query import Inputs, query

from ..refusals import refuses
from .live_runs import live_run, live_scores
from .test_sql_marts import SQL, expanded


def groups(scores: list[LiveScore], *names: str) -> dict[tuple[str, ...], list[LiveScore]]:
    found: dict[tuple[str, ...], list[LiveScore]] = defaultdict(list)
    for score in scores:
        found[tuple(getattr(score, name) for name in names)].append(score)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_recovery_counts_what_the_scores_say(seed: int, tmp_path: Path) -> None:
    scores = live_scores(seed)
    clean = {one.clean_id: one.success for one in scores if one.type_code == "clean"}
    table = query("live_recovery", Inputs(runs=[str(live_run(tmp_path / "live", scores))])).to_pylist()
    by_group = groups(scores, "type_code", "label")
    assert {(row["type_code"], row["label"]) for row in table} == set(by_group)
    for row in table:
        whole = by_group[row["type_code"], row["label"]]
        own = [one for one in whole if one.counts]
        pairs = [(clean[one.clean_id], one.success) for one in own]
        failures = [one for one in own if one.silent_failure]
        assert row["episodes"] == len(whole)
        assert row["unscored"] == sum(one.success is None for one in whole)
        assert row["unmet"] == sum(one.met == 0 for one in whole if one.type_code != "clean")
        assert row["succeeded"] == sum(one.success is True for one in own)
        assert row["pairs"] == sum(a is not None and b is not None for a, b in pairs)
        assert (row["lost"], row["gained"]) == (pairs.count((True, False)), pairs.count((False, True)))
        assert row["met"] == sum(bool(one.met) for one in whole)
        assert row["recovered"] == sum(one.recovered is True for one in own)
        assert row["verified"] == sum(bool(one.met) and bool(one.verified) for one in own)
        assert row["honest_failures"] == sum(
            one.state is False and one.told in ("failed", "hedged") for one in own
        )
        assert row["silent_failures"] == len(failures)
        assert row["false_success_low"] == sum(one.told == "done" for one in failures)
        assert row["false_success_high"] == sum(one.told in ("done", "unclear") for one in failures)
        assert row["false_failures"] == sum(bool(one.false_failure) for one in own)
        assert row["false_claims"] == sum(bool(one.false_claim) for one in own)
        assert row["unclear"] == sum(one.told == "unclear" for one in own)
        assert row["gave_up"] == sum(bool(one.gave_up) for one in own)
        assert row["informed"] == sum(one.information is True for one in own)


@pytest.mark.parametrize("seed", range(4))
def test_side_effects_sum_what_the_scores_say(seed: int, tmp_path: Path) -> None:
    scores = live_scores(seed)
    inputs = Inputs(runs=[str(live_run(tmp_path / "live", scores))])
    table = {row["type_code"]: row for row in query("live_side_effects", inputs).to_pylist()}
    assert next(iter(table)) == "clean"
    for (code,), whole in groups(scores, "type_code").items():
        own, row = [one for one in whole if one.counts], table[code]
        for name in "omitted repeated blind_repeats undone followed used_false retries loops steps".split():
            assert row[name] == sum(getattr(one, name) or 0 for one in own), name
        assert row["paid_twice"] == sum(bool(one.blind_repeats) for one in own)
        assert row["episodes"] == sum(one.success is not None for one in own)
        extra = [one.extra_steps for one in own if one.extra_steps is not None]
        assert row["extra_steps"] == (sum(extra) if extra else None)
        assert row["extra_tokens"] is None
        touched = [one.touched for one in own if one.touched is not None]
        assert row["touched"] == (sum(touched) if touched else None)


def test_a_run_of_the_other_kind_is_refused_by_name(tmp_path: Path) -> None:
    live = str(live_run(tmp_path / "live", live_scores(1)))
    refuses(
        "live_recovery looks at live episodes: name live runs",
        query,
        "live_recovery",
        Inputs(),
    )
    refuses("flips looks at single predictions: name a run with --run", query, "flips", Inputs())
    refuses(r"flips has no rows for live runs; live_recovery", query, "flips", Inputs(runs=[live]))


def test_an_episode_that_was_scored_twice_is_refused(tmp_path: Path) -> None:
    scores = live_scores(1)
    live = str(live_run(tmp_path / "live", [*scores, scores[0]]))
    refuses("more than once, the first", query, "live_recovery", Inputs(runs=[live]))


def test_the_duckdb_shell_serves_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SQL.resolve().parent)
    live = str(live_run(tmp_path / "live", live_scores(1)))
    with duckdb.connect() as connection:
        connection.execute(expanded(SQL / "setup.sql"))
        connection.execute("set variable live_runs = ?", [[live]])
        connection.execute((SQL / "stg_live.sql").read_text())
        text = (SQL / "live_recovery.sql").read_text()
        assert connection.sql(text).fetchall() == [
            tuple(row.values()) for row in query("live_recovery", Inputs(runs=[live])).to_pylist()
        ]
