"""The plan, sessions, decisions and the journal of a door."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from robustbench_tc import api, shown as shown_as
from robustbench_tc.credentials import NONE
from robustbench_tc.proxy import journal
from robustbench_tc.proxy.door import Door
from robustbench_tc.proxy.journal import Exchange, Journal
from robustbench_tc.proxy.plan import Plan, Refused, Session, parse, parse_plan, read_plan
from robustbench_tc.proxy.sessions import MOST_REMEMBERED, Latest, Sessions
from robustbench_tc.result_faults import FAULT_KINDS, Fault

from ..refusals import refuses

WHOLE = b"""
version: 1
seed: 7
types: [clean, same_name_D, CD, transient_timeout]
faults:
- {kind: transient_rate_limit, rate: 0.1}
- {kind: transient_timeout, at: [1, 3], tools: [get_order], text: Gone.}
read_only: [get_order]
idempotent: [set_address]
allow_writes: true
"""


def test_a_whole_plan_is_read() -> None:
    plan = parse_plan(WHOLE, "plan.yaml")
    assert plan == Plan(
        seed=7,
        types=("clean", "same_name_D", "CD", "transient_timeout"),
        faults=(
            Fault(kind="transient_rate_limit", rate=0.1),
            Fault(kind="transient_timeout", at=(1, 3), tools=("get_order",), text="Gone."),
        ),
        read_only=("get_order",),
        idempotent=("set_address",),
        allow_writes=True,
    )
    assert not plan.idle and parse_plan(b"version: 1", "p").idle
    assert plan.faults[1].answer("ok") == "Gone." and len(FAULT_KINDS) == 6


def test_a_mistake_is_one_line_that_names_its_place(subtests: pytest.Subtests) -> None:
    cases = [
        ("types: [CD]", "p:1: 'version' is missing"),
        ("version: 2", "p:1: this version is not known"),
        ("version: 1\ntype: [CD]", "p:2: unknown key 'type' of the plan: did you mean types?"),
        ("version: 1\ntypes: []", "p:2: Expected `array` of length >= 1 - at `$.types`"),
        (
            "version: 1\ntypes:\n- CD\n- same_nam_A",
            "p:4: unknown perturbation type 'same_nam_A': did you mean same_name",
        ),
        ("version: 1\ntypes: [paraphrase]", "p:2: unknown perturbation type"),
        ("version: 1\ntypes: [typos_1]", "p:2: typos_1 cannot be made without its case"),
        ("version: 1\ntypes: [redundant]", "p:2: redundant cannot be made without its case"),
        ("version: 1\nseed: yes", "p:2: Expected `int`, got `str` - at `$.seed`"),
        ("version: 1\nseed: -1", "p:2: Expected `int` >= 0"),
        (
            "version: 1\nfaults:\n- {rate: 0.1}",
            "p:3: Object missing required field `kind`",
        ),
        (
            "version: 1\nfaults:\n- {kind: timeout, rate: 1}",
            "unknown kind of fault 'timeout': did you",
        ),
        ("version: 1\nfaults:\n- {kind: transient_timeout}", "needs either 'rate' or 'at'"),
        ("version: 1\nfaults:\n- {kind: transient_timeout, rate: 1, at: [1]}", "needs either 'rate' or 'at'"),
        ("version: 1\nfaults:\n- {kind: transient_timeout, rate: 0}", "p:3: Expected `float` > 0.0"),
        (
            "version: 1\nfaults:\n- {kind: transient_timeout, rate: true}",
            "Expected `float | null`, got `bool`",
        ),
        (
            "version: 1\nfaults:\n- {kind: transient_timeout, at: [0]}",
            "Expected `int` >= 1 - at `$.faults[0].at",
        ),
        ("version: 1\nfaults:\n- {kind: injected_instruction, at: [1]}", "needs 'text'"),
        ("version: 1\nfaults:\n- {kind: stale_read, at: [1], text: x}", "takes no 'text'"),
        (
            "version: 1\nfaults:\n- {kind: silent_no_op, at: [1], text: 3}",
            "p:3: Expected `str | null`, got `int`",
        ),
        (
            f"version: 1\nfaults:\n- {{kind: silent_no_op, at: [1], text: {'x' * 4_001}}}",
            "of length <= 4000",
        ),
        ("version: 1\nfaults:\n- {kind: latency, at: [1]}", "'seconds' is what the fault latency needs"),
        ("version: 1\nfaults:\n- {kind: outage, at: [1], seconds: 2}", "'seconds' is what the fault latency"),
        (
            "version: 1\nfaults:\n- {kind: latency, at: [1], seconds: [2]}",
            "Expected `array` of length >= 2",
        ),
        ("version: 1\nfaults:\n- {kind: latency, at: [1], seconds: 601}", "Expected `float` <= 600"),
        ("version: 1\nfaults:\n- {kind: truncated, at: [1], text: x}", "takes no 'text'"),
        ("version: 1\nfaults:\n- {kind: dropped_tool, rate: 1, tools: [get]}", "needs 'at' and 'tools'"),
        ("version: 1\nfaults:\n- {kind: outage, at: [1], calls: 0}", "p:3: Expected `int` >= 1"),
        ("version: 1\ntypes_after: -1", "p:2: Expected `int` >= 0"),
        ("version: 1\nallow_writes: sure", "p:2: Expected `bool`, got `str` - at `$.allow_writes`"),
        ("version: 1\nread_only: get", "p:2: Expected `array`, got `str` - at `$.read_only`"),
        ("version: 1\nread_only: ['']", "p:2: Expected `str` of length >= 1 - at `$.read_only[0]`"),
        ("version: 1\nversion: 1", "p:2: the key 'version' is given twice"),
        ("- 1", "p:1: the plan must be a mapping"),
        ("", "p:1: the file is empty"),
    ]
    for text, said in cases:
        with subtests.test(said):
            assert said in refuses(".", parse_plan, text.encode(), "p")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("faults:\n- {kind: silent_no_op, at: [1]}", "silent_no_op"),
        ("types: [same_name_A]\ntypes_after: 2", "types_after"),
    ],
)
def test_what_happens_before_a_call_is_for_the_door_in_front_of_the_tools(text: str, said: str) -> None:
    plan = parse_plan(f"version: 1\n{text}".encode(), "p")
    refuses(
        f"{said} in the plan: .* `rbtc proxy` in front of an MCP server can",
        Door,
        "http://127.0.0.1:9/v1",
        plan,
    )


def test_a_bench_is_looked_for_beside_the_plan(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    file = tmp_path / "plan.yaml"
    file.write_text("version: 1\nbench: bench\ntypes: [typos_1]\n")
    assert read_plan(file).bench == str(tmp_path / "bench")
    refuses("there is no such file", read_plan, tmp_path / "none.yaml")


def test_sessions_are_read() -> None:
    assert parse("refund-17.0") == Session("refund-17", 0)
    assert parse("a.b.12") == Session("a.b", 12)
    assert str(parse("a.b.12")) == "a.b.12"


@pytest.mark.parametrize(
    "name", ["", "refund", ".1", "a.", "a.01", "a.-1", "a.1\n", "\x1b.1", "x" * 1_000 + ".1"]
)
def test_what_names_no_session_is_refused(name: str) -> None:
    with pytest.raises(Refused):
        parse(name)


def decide(plan: Plan, session: Session, calls: list[str]) -> list[Fault | None]:
    return [plan.met(session, number, tool) for number, tool in enumerate(calls, 1)]


CALLS = st.lists(st.sampled_from(["get", "find", "pay"]), max_size=20)


@given(CALLS, CALLS, st.integers(0, 3))
def test_a_longer_conversation_meets_the_same_faults(calls: list[str], more: list[str], repeat: int) -> None:
    plan = Plan(
        faults=(
            Fault(kind="transient_timeout", rate=0.4, tools=("get", "pay")),
            Fault(kind="transient_rate_limit", at=(2, 5)),
        ),
        read_only=("get",),
        idempotent=("find",),
    )
    session = Session("case", repeat)
    found = decide(plan, session, calls)
    assert decide(plan, session, [*calls, *more])[: len(calls)] == found
    for tool, fault in zip(calls, found, strict=True):
        assert plan.may_replace(tool) == (tool != "pay")
        assert fault is None or not fault.tools or tool in fault.tools


def test_a_rate_is_met_over_sessions() -> None:
    plan = Plan(faults=(Fault(kind="transient_timeout", rate=0.25),), allow_writes=True)
    drawn = [decide(plan, Session("case", n), ["get"] * 5) for n in range(400)]
    hits = sum(one is not None for found in drawn for one in found)
    assert 420 < hits < 580  # 500 expected, standard deviation 19
    assert len({tuple(one is not None for one in found) for found in drawn}) > 10


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "journal.jsonl"
    kept = Journal(path)
    kept.write(Exchange(session="a.0", repeat=0, number=1, replies=[{"text": "x" * 200_000}]), NONE)
    kept.write(Exchange(session="a.0", repeat=0, number=2, error="\ud800"), NONE)
    kept.close()
    found = journal.read_exchanges(path)
    assert [one.number for one in found] == [1, 2]
    assert len(str(found[0].replies[0]["text"])) < 101_000
    assert path.stat().st_mode & 0o077 == 0
    path.write_bytes(path.read_bytes() + b'{"v": 1, "sess')
    assert len(journal.read_exchanges(path)) == 2
    kept = Journal(path)  # takes the torn line away before it goes on
    kept.write(Exchange(session="a.0", repeat=0, number=3), NONE)
    kept.close()
    assert [one.number for one in journal.read_exchanges(path)] == [1, 2, 3]
    path.write_bytes(b"nothing\n" + path.read_bytes())
    refuses("not a journal of a door", Journal, path)
    refuses("jsonl:1: not a line of a door's journal", journal.read_exchanges, path)


def test_a_full_journal_takes_no_more_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Journal(tmp_path / "j")
    kept.write(Exchange(session="a.0", repeat=0, number=1), NONE)
    most = 3 * (tmp_path / "j").stat().st_size + 20
    monkeypatch.setattr(journal, "MOST_BYTES", most)
    for number in range(2, 10):
        kept.write(Exchange(session="a.0", repeat=0, number=number), NONE)
    assert [one.number for one in journal.read_exchanges(tmp_path / "j")] == [1, 2, 3]
    assert (tmp_path / "j").stat().st_size <= most
    refuses("choose another --journal", Journal, tmp_path)


def test_an_outage_lasts_and_a_dropped_tool_stays_away() -> None:
    plan = Plan(
        faults=(
            Fault(kind="outage", at=(3,), calls=2),
            Fault(kind="dropped_tool", at=(5,), tools=("pay",)),
            Fault(kind="truncated", rate=1.0, tools=("find",), arguments={"id": 7}),
        )
    )
    found = [one and one.kind for one in decide(plan, Session("case", 0), ["get"] * 6)]
    assert found == [None, None, "outage", "outage", None, None]
    assert [plan.gone(made) for made in (0, 3, 4, 90_000)] == [set(), set(), {"pay"}, {"pay"}]
    for arguments, kind in (({"id": 7, "more": []}, "truncated"), ({"id": 8}, None), ({}, None)):
        met = plan.met(Session("case", 0), 1, "find", arguments)
        assert (met and met.kind) == kind
    # Bursts: with a rate, each that begins lasts as long.
    flaky = Plan(faults=(Fault(kind="outage", rate=0.1, calls=3),))
    hits = [one is not None for one in decide(flaky, Session("case", 0), ["get"] * 200)]
    runs = [len(run) for run in "".join("x" if hit else " " for hit in hits).split()]
    assert runs and min(runs[:-1]) >= 3


def test_latency_is_drawn_within_its_bounds_and_drawn_again_the_same() -> None:
    plan = Plan(seed=4, faults=(Fault(kind="latency", rate=1.0, seconds=(1.0, 5.0)),))
    drawn = [[one.waits for one in decide(plan, Session("case", 0), ["get"] * 50) if one] for _ in range(2)]
    assert drawn[0] == drawn[1] and len(set(drawn[0])) > 40
    assert all(1 <= seconds <= 5 for seconds in drawn[0])


def test_explain_tells_what_a_door_does(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(
        "version: 1\ntypes: [clean, transient_timeout]\nfaults:\n"
        "- {kind: latency, rate: 0.5, seconds: [1, 2], tools: [get]}\n- {kind: outage, at: [2], calls: 2}\n"
    )
    found = api.explain_plan(file, session="a.1", calls=6)
    assert (found.type, found.answered) == ("transient_timeout", 1)
    plan, session = read_plan(file), Session("a", 1)
    for call in range(1, 7):
        first = next((one.fault for one in found.meetings if one.call == call), None)
        assert first == plan.met(session, call, "get")
    shown = shown_as.plain(found.shown())
    assert "session a.1: type transient_timeout" in shown and "outage" in shown
    refuses("--session", api.explain_plan, file, session="a")
    file.write_text("version: 1\n")
    assert "none of the first 20 calls" in shown_as.plain(api.explain_plan(file).shown())


def test_what_a_door_remembers_is_bounded() -> None:
    found: Latest[int, str] = Latest(3)
    for number in (1, 2, 3, 1, 4):
        found[number] = str(number)
    assert [*found.items()] == [(3, "3"), (1, "1"), (4, "4")]
    sessions = Sessions(Journal(None))
    assert all(one._most == MOST_REMEMBERED for one in (sessions._runs, sessions._asked, sessions._last))
