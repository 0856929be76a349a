"""An agent behind the door gets the verdicts that `rbtc eval` gives it."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from robustbench_tc import taxonomy
from robustbench_tc.api.building import build_release
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.eval import failures, inputs, wire
from robustbench_tc.eval.agent_server import serving as model
from robustbench_tc.eval.score import judge
from robustbench_tc.proxy import journal
from robustbench_tc.proxy.door import Door
from robustbench_tc.proxy.plan import Plan
from robustbench_tc.proxy.predictions import of_journal
from robustbench_tc.proxy.relay import serving
from robustbench_tc.proxy.scored import score
from robustbench_tc.schema import Sample

from ..eval.test_agents import judged, settings_of
from .agents import Client, work

CODES = tuple(
    kind.code
    for kind in taxonomy.types("all")
    if kind.method != "llm" and kind.traits.get("tokens") in (None, 2_000)
)
NIGHTLY = os.environ.get("RBTC_NIGHTLY") == "1"


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> inputs.Dataset:
    """The bundled set with every type that a rule or the run time makes."""
    folder = tmp_path_factory.mktemp("release") / "robustbench-tc"
    build_release(BuildSpec(profile="bundled", codes=CODES), folder)
    return inputs.load(str(folder))


def through_the_door(
    name: str, rows: Sequence[Sample], among: Sequence[Sample], path: Path
) -> list[journal.Exchange]:
    """The journal of a door before the model that is this agent: the rows' cases in turn, asked clean."""
    codes = tuple(dict.fromkeys(row.type_code for row in rows))
    clean = {row.clean_id: row for row in rows if row.type_code == taxonomy.CLEAN}
    plan = Plan(bench="bundled", types=codes, allow_writes=True)
    with (
        model(name, rows) as upstream,
        serving(Door(upstream, plan, rows=tuple(rows), journal=path)) as url,
        Client(url) as client,
    ):
        for row in among:
            asked = wire.first(clean[row.clean_id], "fc")
            session = f"{row.clean_id}.{codes.index(row.type_code)}"
            rounds = wire.answered(row) + 1
            # The reference agents know the requests of the harness only: asked on after a distractor's
            # answer, they refuse.
            work(client, session, asked.messages, asked.tools or [], rounds=rounds, gives_up=True)
    return journal.read(path)


@pytest.mark.parametrize("name", ["oracle", "name-biased", "first-of-duplicates", "gives-up-on-error"])
def test_verdicts_are_those_of_the_harness(bundled: inputs.Dataset, name: str, tmp_path: Path) -> None:
    rows = bundled.rows
    places = {one: at for at, one in enumerate(dict.fromkeys(row.clean_id for row in rows))}
    among = [row for row in rows if NIGHTLY or places[row.clean_id] % 8 == len(name) % 8]
    lines = through_the_door(name, rows, among, tmp_path / "journal.jsonl")
    assert Counter(line.skipped for line in lines) == {None: len(lines)}
    assert name != "oracle" or {line.status for line in lines} == {200}
    by_id = {row.id: row for row in rows}
    found = {one.id: one for one in of_journal(lines, by_id, settings_of("fc"))}
    wanted = {row.id: verdict for row, verdict in judged(name, rows, "fc", lambda row: row in among)}
    assert found.keys() == wanted.keys()
    clean = {row.clean_id: row for row in rows if row.type_code == taxonomy.CLEAN}
    got = {one.id: judge(one, by_id[one.id], clean[one.clean_id]) for one in found.values()}
    assert {key: verdict for key, verdict in got.items() if verdict != wanted[key]} == {}
    made = score(tmp_path / "journal.jsonl", dataset=bundled.name, out=tmp_path / "run")
    assert made.failures == {}
    judged_by_score = {one.prediction.id: one.verdict for one in failures.read(made.folder.path)}
    assert judged_by_score.keys() == wanted.keys()
    assert {key: one for key, one in judged_by_score.items() if one != wanted[key]} == {}
