"""Defences in live episodes: what is shown, called and repeated, and that nothing else changes."""

import asyncio
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from benchmarks.defences import live_table
from hypothesis import HealthCheck, given, settings, strategies as st

from robustbench_tc import api, live_types, llm
from robustbench_tc.builders.live.build import LiveSpec, prepared, rows_of
from robustbench_tc.errors import UserError
from robustbench_tc.eval.defend.chain import budget
from robustbench_tc.eval.defend.rows import DATA, HINT, RULE
from robustbench_tc.eval.live import defended, episodes, ledger
from robustbench_tc.eval.live.replay import replayed
from robustbench_tc.eval.live.success import end_state
from robustbench_tc.eval.speakers import ScriptedAgent
from robustbench_tc.schema import Episode, LiveRow, LiveTool
from robustbench_tc.worlds import find, host

from ...conftest import ROOT, Rbtc
from ...refusals import refuses
from . import purses
from .playing import Says, calls, played

pytestmark = pytest.mark.usefixtures("new_folder")

FREE = ("dedupe", "namespace", "namespace:prefix", "namespace:first", "hint", "clarify", "spotlight")
KINDS = ("transient_timeout", "transient_auth_error", "timeout_after_effect")


@pytest.fixture(scope="module")
def rows() -> dict[str, LiveRow]:
    """Bundled rows of three kinds and one registry type, with their clean ones."""
    made = prepared(LiveSpec(kinds=KINDS, types=("same_name_A",)))
    codes = ("clean", *map(live_types.type_code, (*KINDS, "same_name_A")))
    return {row.id: row for code in codes for row in rows_of(code, made)}


def agent(name: str, rows: dict[str, LiveRow]) -> ScriptedAgent:
    return ScriptedAgent(name, {row.clean_id: row for row in rows.values() if row.clean})


def steps_of(one: Episode) -> list[tuple[str, str | None]]:
    return [(step.name, step.defence) for reply in one.replies for step in reply.steps]


# --- retry --------------------------------------------------------------------------------------------


def test_retry_heals_exactly_what_may_pass_and_repeats_no_effect(
    rows: dict[str, LiveRow], tmp_path: Path
) -> None:
    """A third of the rows of three kinds: the agent that gives up is right where the error ends within three
    calls, never on bad credentials; the blind one repeats no effect any more."""
    number = itertools.count()

    def judge(row: LiveRow, name: str, *words: str) -> tuple[bool, int]:
        one = played(row, agent(name, rows), tmp_path / str(next(number)), *words)
        replay = asyncio.run(replayed(row, one, host.Worlds()))
        return bool(end_state(replay)), ledger.harm(replay)["repeated"]

    for row in [row for row in rows.values() if row.fault is not None][::3]:
        assert row.fault is not None
        for name in ("gives-up", "blind-retrier"):
            right, repeated = judge(row, name, "retry")
            assert repeated == 0, (name, row.id)
            if row.fault.kind == "timeout_after_effect":
                assert right, (name, row.id)
            elif name == "gives-up":
                passes = row.fault.kind == "transient_timeout" and row.fault.repeat != "always"
                assert right is passes, row.id
    lost = [row for row in rows.values() if row.type_code == "live_timeout_after_effect"][:4]
    assert sum(judge(row, "blind-retrier")[1] for row in lost) > 0  # without it the blind one does repeat


def _row(rows: dict[str, LiveRow], tool: str, kind: str = "timeout_after_effect") -> LiveRow:
    return next(
        row
        for row in rows.values()
        if row.fault is not None and row.fault.kind == kind and row.fault.at.tool == tool
    )


def test_a_lost_answer_is_looked_for_and_told(rows: dict[str, LiveRow], tmp_path: Path) -> None:
    one = played(_row(rows, "place_order"), agent("gives-up", rows), tmp_path, "retry")
    (met,) = [step for reply in one.replies for step in reply.steps if step.met]
    assert met.told is not None and json.loads(met.told)["order_id"].startswith("O-")
    made = steps_of(one)
    at = made.index(("place_order", None))
    assert made[at - 1] == made[at + 1] == made[at + 2] == ("list_orders", "look")
    assert ("place_order", "repeat") not in made and one.noticed == ("retry",)


def test_a_write_that_nothing_shows_is_not_repeated(rows: dict[str, LiveRow], tmp_path: Path) -> None:
    """Reads that say nothing of what they are asked about."""
    unsafe = {tool.name for one in rows.values() for tool in one.tools if tool.writes and not tool.idempotent}
    row = next(
        one
        for one in rows.values()
        if one.fault is not None and one.fault.kind == "transient_timeout" and one.fault.at.tool in unsafe
    )
    name = row.fault.at.tool if row.fault else ""

    def bare(tool: LiveTool) -> LiveTool:
        return tool if tool.writes else msgspec.structs.replace(tool, parameters={"type": "object"})

    blind = msgspec.structs.replace(row, tools=tuple(map(bare, row.tools)))
    one = played(blind, agent("gives-up", rows), tmp_path, "retry")
    assert (name, None) in steps_of(one) and not [made for made in steps_of(one) if made[1] is not None]
    assert one.noticed == ()


def test_a_fault_meets_the_agents_calls_as_without_defence(rows: dict[str, LiveRow], tmp_path: Path) -> None:
    """Looks are not counted: the same call of the agent's meets the fault."""
    for number, row in enumerate([one for one in rows.values() if one.fault is not None][::9]):
        found = []
        for words in ((), ("retry",)):
            one = played(row, agent("gives-up", rows), tmp_path / f"{number}{len(words)}", *words)
            own = [step for reply in one.replies for step in reply.own_steps]
            found.append(next(at for at, step in enumerate(own) if step.met))
        assert found[0] == found[1], row.id


# --- what is shown ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["fc", "prompt"])
def test_free_defences_change_no_clean_episode(rows: dict[str, LiveRow], tmp_path: Path, mode: str) -> None:
    """The world's calls, results and end are the same; so are those of a namesake's row but for `dedupe`."""
    chosen = [row for row in rows.values() if row.fault is None][::16]
    for number, row in enumerate(chosen):
        plain = played(row, agent("oracle", rows), tmp_path / f"{number}", mode=mode)
        for words in ((word,) for word in FREE):
            if row.type_code != "clean" and words[0] in ("dedupe", "namespace:first"):
                continue
            one = played(row, agent("oracle", rows), tmp_path / f"{number}-{words[0]}", *words, mode=mode)
            assert one.ended == plain.ended
            assert one.noticed == (
                ("namespace",) if words == ("namespace",) and row.type_code != "clean" else ()
            )
            made = [step for reply in one.replies for step in reply.steps]
            made = [msgspec.structs.replace(step, tool=None) for step in made]
            assert made == [step for reply in plain.replies for step in reply.steps], (row.id, words)


def test_names_lead_to_the_tool_that_was_shown_under_them(rows: dict[str, LiveRow], tmp_path: Path) -> None:
    """Of two tools of one name each is called by its own; the distractor has no effect."""
    row = next(row for row in rows.values() if row.type_code == "live_same_name_A")
    (name,) = {tool.name for tool in row.tools if tool.distractor}
    own = [tool.distractor for tool in row.tools if tool.name == name]
    for number, distractor in enumerate(own, 1):
        speaker = Says(calls((f"server{number}__{name}", {})), last="Done.")
        one = played(row, speaker, tmp_path / str(number), "namespace")
        (step,) = [step for reply in one.replies for step in reply.steps]
        assert step.name == name and row.tools[step.tool or 0].distractor is distractor
        assert ("this tool is not available" in step.text) is distractor
        shown = [tool["function"]["name"] for tool in speaker.asked[0].tools or ()]
        assert f"server{number}__{name}" in shown and name not in shown
        assert one.noticed == ("namespace",)


def test_results_are_marked_and_errors_hinted(rows: dict[str, LiveRow], tmp_path: Path) -> None:
    row = next(row for row in rows.values() if row.type_code == "live_transient_auth_error")
    speaker = Says(
        *[calls((one.name, one.parameters)) for turn in row.golden_calls for one in turn], last="Done."
    )
    one = played(row, speaker, tmp_path, "hint", "spotlight")
    first = speaker.asked[0].messages[0]
    assert first["role"] == "system" and RULE in first["content"]
    told = [m["content"] for m in speaker.asked[-1].messages if m["role"] == "tool"]
    assert told and all(DATA in text for text in told)
    met = [step.met for reply in one.replies for step in reply.own_steps]
    assert [HINT in text for text in told][: met.index(True) + 1][-1]
    assert one.noticed == ("hint",)


# --- chains -------------------------------------------------------------------------------------------

TAKES_NOTHING = 'shield:[{"tool":"take_*"}%2C{"tool":"add_coins"%2C"arguments":{"amount":3}}]'
ONE, TWO = (purses.clean_row(task) for task in find.tasks(purses.PURSE))
HOSTILE = st.sampled_from(
    [
        calls(("add_coins", {"amount": 3})), calls(("server1__add_coins", {"amount": 3})),
        calls(("take_coins", {"amount": "x"}), ("count_coins", {})), calls(("nothing", [1])),
        {"text": "[add_coins(amount=1)]"}, {"text": ""}, {"text": "[" * 60},
        {"text": None, "tool_calls": [{"id": None, "name": "", "arguments": "{"}]},
        {"status": "too_long", "error": "long"}, {"text": "I could not do it."}, {"text": "Which one?"},
    ]
)  # fmt: skip
CHAIN = st.lists(
    st.sampled_from([*FREE, "namespace:error", "schema", "retry", "vote:2", "strict", TAKES_NOTHING]),
    unique_by=lambda word: word.split(":")[0],
    max_size=5,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHAIN, st.lists(HOSTILE, max_size=12), st.sampled_from(range(len(purses.FAULTS))))
def test_no_budget_is_exceeded_and_every_episode_replays(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], said: Sequence[dict[str, Any]], fault: int
) -> None:
    """Whatever is said: so many requests a reply at most, the journal says the same, the world too."""
    row = purses.faulted(TWO, purses.FAULTS[fault])
    chain = defended.parse(tuple(words), "fc")
    one = played(row, Says(*said, last="Done."), tmp_path_factory.mktemp("hostile"), *words)
    assert all(reply.requests <= budget(chain) for reply in one.replies)
    made = [step for reply in one.replies for step in reply.steps if TAKES_NOTHING in words and step.executed]
    assert not any(step.name == "take_coins" or step.arguments == {"amount": 3} for step in made)
    asyncio.run(replayed(row, one, host.Worlds(), world=purses.PURSE))


def test_a_chain_asks_and_shows_as_its_parts_do(tmp_path: Path) -> None:
    wrong, right = calls(("add_coins", {"much": 3})), calls(("add_coins", {"amount": 3}))
    speaker = Says(wrong, right, right, right, last="Done.")
    one = played(ONE, speaker, tmp_path, "vote:2", "schema")
    assert one.replies[0].requests == 3  # the first sample was asked again
    assert [ask.draw for ask in speaker.asked[:3]] == [0, 0, 1]
    last = speaker.asked[1].messages[-1]
    assert last["role"] == "tool" and last["content"].startswith("Invalid call of add_coins")
    assert [step.arguments for step in one.replies[0].steps] == [{"amount": 3}]


@pytest.mark.parametrize(
    ("words", "mode", "why"),
    [
        ("offers", "fc", "live rows have no offers to choose among: leave it out"),
        ("strict", "prompt", "it works in fc mode, not in prompt"),
        ("retri", "fc", "unknown defence 'retri'"),
        ("vote:9,schema,vote:2", "fc", "vote is named twice"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(tmp_path: Path, words: str, mode: str, why: str) -> None:
    data = purses.write(tmp_path / "data", [ONE])
    refuses(
        why,
        api.evaluate,
        data,
        agent="oracle",
        mode=mode,
        defend=words,
        worlds=[str(purses.FILE)],
        out=tmp_path / "run",
    )
    assert not (tmp_path / "run").exists()


# --- runs ---------------------------------------------------------------------------------------------


def test_a_defended_run_goes_on_from_any_line_and_is_compared(
    rbtc: Rbtc, rows: dict[str, LiveRow], tmp_path: Path
) -> None:
    """Cut off at every third line of its journal it ends with the same bytes; `rbtc compare` shows it."""
    task = _row(rows, "place_order").clean_id
    chosen = [row for row in rows.values() if row.clean_id == task and row.type_code != "live_same_name_A"]
    common = ("eval", purses.write(tmp_path / "data", chosen), "--agent", "blind-retrier")
    behind = (*common, "--defend", "retry,schema", "--out", "defended")
    assert rbtc(*common, "--out", "plain").code == 0 and rbtc(*behind).code == 0
    whole = Path("defended/episodes.parquet").read_bytes()
    lines = Path("defended/journal.jsonl").read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines), len(lines) // 3):
        Path("defended/journal.jsonl").write_bytes(b"".join(lines[:cut]) + lines[cut][:9])
        Path("defended/scores.parquet").unlink()
        assert rbtc(*behind).code == 0
        assert Path("defended/episodes.parquet").read_bytes() == whole
    assert "defend" in rbtc(*common, "--out", "defended").refusal
    (found,) = json.loads(rbtc("compare", "plain", "defended", "--json").out)["defences"]["lines"]
    assert found["defences"] == ["retry", "schema"] and found["harm"]["value"] == 0
    flagged = {
        name: {code for code, share in shares.items() if share["value"] == 1 and share["n"] == 1}
        for name, shares in found["noticed"].items()
    }
    assert flagged == {
        "retry": {
            "live_transient_timeout",
            "live_timeout_after_effect",
        },  # looks before a clean write are no flag
        "schema": set(),
    }
    lost = found["kinds"]["timeout_after_effect"]
    assert lost["b"] * lost["n"] == 1 and found["repeated"][1] == 0
    shown = rbtc("compare", "plain", "defended")
    assert "effects repeated: " in shown.out and "timeout_after_effect" in shown.out
    assert "effects repeated" not in rbtc("compare", "defended", "plain").out  # two runs as any others
    line = "is itself defended (retry, schema): name the plain run"
    assert line in rbtc("compare", "defended", "plain", "defended").refusal
    assert rbtc("summary", "defended").code == 0
    assert rbtc("report", "defended", "--out", "page").code == 0
    assert Path("page/report.html").is_file()


def test_the_journal_has_no_call_that_the_defence_would_not_have_made(
    rows: dict[str, LiveRow], tmp_path: Path
) -> None:
    row = _row(rows, "place_order")
    played(row, agent("gives-up", rows), tmp_path, "retry")
    path = tmp_path / "journal.jsonl"
    text = path.read_text("utf-8")
    for old, new in (('"defence":"look"', '"defence":"repeat"'), ("The answer was lost", "All went well")):
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")
        with llm.Store(path) as journal, pytest.raises(UserError, match="changed by hand"):
            episodes.finished_episode(journal, row, purses.settings("fc", defend=("retry",)), 0)


def test_the_table_of_the_page_is_what_the_command_prints(rows: dict[str, LiveRow], tmp_path: Path) -> None:
    """Its columns for the kinds at hand."""
    page = (ROOT / "docs" / "defences.md").read_text("utf-8")
    own = [row for row in rows.values() if row.type_code in ("clean", "live_timeout_after_effect")]
    data = purses.write(tmp_path / "data", own)
    printed = list(live_table(str(data)))[2:]
    for line in printed:
        agent, defences, *cells = line.strip("| ").split(" | ")
        begin = f"| {agent} | {defences} |"
        (shown,) = [text for text in page.splitlines() if text.startswith(begin) and text.count("|") == 10]
        of_page = shown.strip("| ").split(" | ")[2:]
        assert [cells[at] for at in (0, 3, 5)] == [of_page[at] for at in (0, 3, 5)], line
    assert len(printed) == 9
