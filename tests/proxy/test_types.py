"""Every rule and runtime type through the door: the agent meets only what it registered."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import seeding, taxonomy
from robustbench_tc.api.building import build_release
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.builders.perturb import REGISTRY, Context, NotApplicable
from robustbench_tc.builders.perturb.registry import donor_pools
from robustbench_tc.builders.sources import read_pool
from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs, wire
from robustbench_tc.eval.score import judge
from robustbench_tc.eval.stats import failures
from robustbench_tc.proxy import journal
from robustbench_tc.proxy.door import Door
from robustbench_tc.proxy.plan import WITHOUT_CASES, Plan
from robustbench_tc.proxy.relay import serving
from robustbench_tc.proxy.scenes import tool_of
from robustbench_tc.proxy.scored import score
from robustbench_tc.schema import Sample, Tool
from robustbench_tc.worlds.fit import fits
from tests.agent_server import serving as model

from ..conftest import NIGHTLY
from ..eval.test_agents import judged
from .agents import Client, work
from .scripted import CallsAll, filled, predictions_of
from .wire import serving as server_of

Json = Any
RULED = tuple(kind for kind in taxonomy.types("all") if kind.method != "llm")
CODES = tuple(kind.code for kind in RULED if kind.traits.get("tokens") in (None, 2_000))
WITHOUT = tuple(
    kind.code for kind in RULED if kind.channel in WITHOUT_CASES and not kind.ground_truth_changes
)


def played(
    model: CallsAll, plan: Plan, rows: Sequence[Sample], sessions: Sequence[tuple[str, Sample]], path: Path
) -> list[journal.Exchange]:
    """The journal of an agent that works on the cases through the door, every second one streamed."""
    with (
        server_of(model) as server,
        serving(Door(server.url, plan, rows=tuple(rows), journal=path)) as url,
        Client(url) as client,
    ):
        for number, (session, clean) in enumerate(sessions):
            asked = wire.first(clean, "fc")
            # An agent of one's own has instructions of its own in front of the case.
            messages: list[Json] = [{"role": "system", "content": "You are an agent."}, *asked.messages]
            work(client, session, messages, asked.tools or [], stream=number % 2 == 1)
    assert model.wrong == []
    return journal.read_exchanges(path)


def counted(model: CallsAll, lines: Sequence[journal.Exchange], session: str) -> int:
    """How many calls of the session never reached the agent; each of them was answered."""
    own = [line for line in lines if line.session == session]
    held = [call for line in own for call in line.held]
    made = sum(len(reply["tool_calls"] or ()) for line in own for reply in line.replies)
    assert made == model.made[session]
    # The first request may hold earlier exchanges of the row, with results of calls that nobody makes here.
    begin = len(model.bodies[session][0]["messages"])
    last = model.bodies[session][-1]["messages"][begin:]
    answers = {message["tool_call_id"] for message in last if message["role"] == "tool"}
    assert {call["id"] for call in held} <= answers
    assert made == len(answers)
    return len(held)


def _either(tools: Sequence[Tool]) -> bool:
    """Whether a call that the model makes can mean either of two tools: it then goes to the agent's own."""
    called = [(tool, filled({"type": "object", **tool.parameters})) for tool in tools]
    return any(
        other.name == tool.name and other is not tool and fits(other.parameters, arguments)
        for tool, arguments in called
        for other in tools
    )


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> inputs.Dataset:
    """The bundled set with every type that a rule or the run time makes."""
    folder = tmp_path_factory.mktemp("release") / "robustbench-tc"
    build_release(BuildSpec(profile="bundled", codes=CODES), folder)
    return inputs.load_samples(str(folder))


@pytest.fixture(scope="module")
def full(shared: Path) -> Sequence[Sample]:
    """The clean samples of the full profile."""
    return read_pool(shared / "sources", "full").samples


def test_every_type_over_the_bundled_set(bundled: inputs.Dataset, tmp_path: Path) -> None:
    rows = bundled.rows
    clean = {row.clean_id: row for row in rows if row.type_code == taxonomy.CLEAN}
    codes = tuple(dict.fromkeys(row.type_code for row in rows))
    assert set(codes) == {taxonomy.CLEAN, *CODES} - {"prerequisite"}  # no bundled row
    sessions = [
        (f"{row.clean_id}.{codes.index(row.type_code)}", row, clean[row.clean_id])
        for number, row in enumerate(rows)
        if NIGHTLY or number % 37 == 0 or rows[number - 1].type_code != row.type_code
    ]
    assert {row.type_code for _, row, _ in sessions} == set(codes)
    model = CallsAll()
    plan = Plan(bench="bundled", types=codes, allow_writes=True)
    lines = played(model, plan, rows, [(name, one) for name, _, one in sessions], tmp_path / "j")
    assert {line.skipped for line in lines} == {None}
    for session, row, one in sessions:
        held = counted(model, lines, session)
        came = len(row.tools) - len(one.tools)
        if not _either(row.tools):
            assert held >= came, row.id
        if row.tools == one.tools:
            assert held == 0, row.id
        first = model.bodies[session][0]
        asked = wire.first(row, "fc")
        assert first["tools"] == asked.tools, row.id
        said = [message["content"] for message in first["messages"]]
        assert said[0] == "You are an agent." or "You are an agent." in said, row.id
        assert [text for text in said if text != "You are an agent."] == [
            message["content"] for message in asked.messages
        ], row.id
        faults = [one.kind for line in lines if line.session == session for one in line.replaced]
        assert set(faults) == ({row.type_code} if row.injected_error is not None else set()), row.id


COUNT = 300 if NIGHTLY else 75


def test_types_without_a_case_over_registries_of_the_full_profile(
    full: Sequence[Sample], tmp_path: Path
) -> None:
    rows = [row for row in full if row.messages[-1].role == "user"][:: len(full) // (COUNT + 20)][:COUNT]
    assert len(rows) == COUNT
    model = CallsAll()
    plan = Plan(types=WITHOUT, allow_writes=True)
    sessions = [(f"case-{at}.{at % len(WITHOUT)}", row) for at, row in enumerate(rows)]
    lines = played(model, plan, (), sessions, tmp_path / "j")
    skipped = {line.session for line in lines if line.skipped}
    assert len(skipped) < COUNT / 5
    for at, (session, row) in enumerate(sessions):
        kind = taxonomy.get(WITHOUT[at % len(WITHOUT)])
        held = counted(model, lines, session)
        if session in skipped or kind.channel == "tool_result":
            assert held == 0
            assert model.bodies[session][0]["tools"] == wire.first(row, "fc").tools
        elif not _either([tool_of(one["function"]) for one in model.bodies[session][0]["tools"]]):
            assert held >= 1, (session, kind.code)


def made(rows: Sequence[Sample], pool: Sequence[Sample]) -> list[Sample]:
    """For each clean row one row of a type that applies to it, every type in turn."""
    context = Context(donors=donor_pools(pool), loans={"pool": tuple(pool)}, samples=pool)
    out = []
    for at, row in enumerate(rows):
        for code in (*CODES[at % len(CODES) :], *CODES[: at % len(CODES)]):
            try:
                out.append(REGISTRY[code].perturb(row, seeding.rng(0, code, row.clean_id), context))
                break
            except (NotApplicable, UserError):  # the errors: texts of others, which this build has not
                continue
    return out


def test_every_type_over_registries_of_the_full_profile(full: Sequence[Sample], tmp_path: Path) -> None:
    some = full[:: len(full) // COUNT][:COUNT]
    rows = made(some, full)
    assert len(rows) == COUNT
    assert len({row.type_code for row in rows}) >= (45 if NIGHTLY else 40)
    codes = (taxonomy.CLEAN, *CODES)
    clean = {row.clean_id: row for row in some}
    sessions = [(f"{row.clean_id}.{codes.index(row.type_code)}", clean[row.clean_id]) for row in rows]
    plan = Plan(bench="full", types=codes, allow_writes=True)
    door_rows = (*some, *rows, *(_empty(code) for code in CODES))
    model = CallsAll()
    lines = played(model, plan, door_rows, sessions, tmp_path / "j")
    for (session, one), row in zip(sessions, rows, strict=True):
        skipped = {line.skipped for line in lines if line.session == session}
        assert skipped == {None}, (row.id, skipped)
        held = counted(model, lines, session)
        if not _either(row.tools):
            assert held >= len(row.tools) - len(one.tools), row.id
        assert model.bodies[session][0]["tools"] == wire.first(row, "fc").tools, row.id


def _empty(code: str) -> Sample:
    """A row of no case, so that the door's dataset has one of every type."""
    return Sample(
        id=f"nobody::{code}",
        clean_id="nobody",
        type_code=code,
        source="own",
        category="calls",
        messages=(),
        tools=(),
        golden_answers=(),
        output_format="tool_call_tags",
    )


# --- An agent behind the door gets the verdicts that `rbtc eval` gives it


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
    return journal.read_exchanges(path)


@pytest.mark.parametrize("name", ["oracle", "name-biased", "first-of-duplicates", "gives-up-on-error"])
def test_verdicts_are_those_of_the_harness(bundled: inputs.Dataset, name: str, tmp_path: Path) -> None:
    rows = bundled.rows
    places = {one: at for at, one in enumerate(dict.fromkeys(row.clean_id for row in rows))}
    among = [row for row in rows if NIGHTLY or places[row.clean_id] % 8 == len(name) % 8]
    lines = through_the_door(name, rows, among, tmp_path / "journal.jsonl")
    assert Counter(line.skipped for line in lines) == {None: len(lines)}
    assert name != "oracle" or {line.status for line in lines} == {200}
    by_id = {row.id: row for row in rows}
    found = {one.id: one for one in predictions_of(lines, by_id)}
    wanted = {row.id: verdict for row, verdict in judged(name, rows, "fc", lambda row: row in among)}
    assert found.keys() == wanted.keys()
    clean = {row.clean_id: row for row in rows if row.type_code == taxonomy.CLEAN}
    got = {one.id: judge(one, by_id[one.id], clean[one.clean_id]) for one in found.values()}
    assert {key: verdict for key, verdict in got.items() if verdict != wanted[key]} == {}
    made = score(tmp_path / "journal.jsonl", dataset=bundled.name, out=tmp_path / "run")
    assert made.failures == {}
    judged_by_score = {one.prediction.id: one.verdict for one in failures.read_judged(made.folder.path)}
    assert judged_by_score.keys() == wanted.keys()
    assert {key: one for key, one in judged_by_score.items() if one != wanted[key]} == {}
