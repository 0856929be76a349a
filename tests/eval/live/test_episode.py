"""One episode, turn by turn: what is asked, what is carried out, when it ends."""

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc import schema
from robustbench_tc.eval import speakers, wire
from robustbench_tc.eval.live import agents, world_env
from robustbench_tc.eval.live.prompts import MAX_CALLS, RESULTS, TRY_AGAIN
from robustbench_tc.worlds.find import tasks

from ...refusals import refuses
from . import purses
from .playing import Says, calls, played

encode = msgspec.json.encode

ONE, TWO = (purses.clean_row(task) for task in tasks(purses.PURSE))


def test_a_turn_ends_with_a_reply_without_calls(tmp_path: Path) -> None:
    agent = Says(
        calls(("count_coins", {})),
        "You have five.",
        calls(("take_coins", {"amount": 5})),
        "Taken.",
        "Whispered.",
    )
    episode = played(TWO, agent, tmp_path)
    assert episode.ended == "done"
    assert [reply.turn for reply in episode.replies] == [0, 0, 1, 1, 2]
    assert episode.replies[0].steps[0].text == '{"coins": 5}'
    assert [m["role"] for m in agent.asked[-1].messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    called, result = agent.asked[-1].messages[1:3]
    assert [call["id"] for call in called["tool_calls"]] == [result["tool_call_id"]]
    assert agent.asked[-1].messages[-1]["content"] == "Whisper 'empty' into it."


def test_prompt_mode_shows_all_results_of_a_reply_in_one_message(tmp_path: Path) -> None:
    agent = Says("[add_coins(amount=2), count_coins()]", "Done.")
    episode = played(ONE, agent, tmp_path, mode="prompt")
    system, user = agent.asked[0].messages
    assert agent.asked[0].tools is None
    assert all(tool.name in system["content"] for tool in ONE.tools) and "writes" not in system["content"]
    assert user == {"role": "user", "content": "Put two coins into the purse."}
    lines = agent.asked[1].messages[-1]["content"].splitlines()
    assert [json.loads(line)["name"] for line in lines[1:]] == ["add_coins", "count_coins"]
    assert json.loads(lines[2])["result"] == '{"coins": 5}'
    assert [step.executed for step in episode.replies[0].steps] == [1, 1]


def test_a_question_is_answered_once_in_a_turn(tmp_path: Path) -> None:
    agent = Says("Which purse do you mean?", "Should I really?", "Which one?", "Fine.", "Fine.")
    assert [(reply.turn, reply.answered) for reply in played(TWO, agent, tmp_path).replies] == [
        (0, True),
        (0, False),
        (1, True),
        (1, False),
        (2, False),
    ]
    assert agent.asked[1].messages[-1] == {"role": "user", "content": schema.PLEASE_DECIDE}


def test_a_reported_failure_ends_no_episode(tmp_path: Path) -> None:
    said = "I am sorry, the call failed and the coins were not added."
    row = purses.faulted(TWO, schema.Fault(schema.At(call=1), "transient_timeout", repeat="always"))
    bad = played(row, Says(calls(("count_coins", {})), said, said, said), tmp_path)
    assert bad.ended == "done" and bad.replies[0].steps[0].met and len(bad.replies) == 4


def test_the_twenty_first_step_of_a_turn_is_the_last(tmp_path: Path) -> None:
    agent = Says(*itertools.repeat(calls(("count_coins", {})), 21))
    episode = played(TWO, agent, tmp_path)
    assert episode.ended == "too_many_steps"
    assert len(episode.replies) == schema.MAX_STEPS + 1
    assert all(reply.steps[0].executed == 1 for reply in episode.replies)
    # Each turn has its own count.
    twenty = itertools.repeat(calls(("count_coins", {})), 20)
    assert played(TWO, Says(*twenty, "a", *twenty, "b", "c"), tmp_path / "other").ended == "done"


def test_every_native_call_is_answered_whatever_it_is(tmp_path: Path) -> None:
    wrong = calls(
        ("add_coins", {"amount": 2}),
        ("add_coins", "[2]"),
        ("add_coins", "{"),
        ("dance", {}),
        ("", {}),
        ("count_coins", ""),
    )
    wrong["tool_calls"][1]["id"] = "c0"  # twice the same id
    agent = Says(wrong, "Done.")
    steps = played(ONE, agent, tmp_path).replies[0].steps
    assert [(step.executed, step.problem) for step in steps[:5]] == [
        (1, None),
        (0, "arguments"),
        (0, "arguments"),
        (0, "not_offered"),
        (0, "not_offered"),
    ]
    ids = [call["id"] for call in agent.asked[1].messages[-7]["tool_calls"]]
    assert len(set(ids)) == 6
    assert [m["tool_call_id"] for m in agent.asked[1].messages[-6:]] == ids


@pytest.mark.parametrize("mode", ["fc", "prompt"])
def test_of_too_many_calls_the_first_are_carried_out(tmp_path: Path, mode: str) -> None:
    many = ["add_coins"] * (MAX_CALLS + 60)
    said = (
        calls(*((name, {"amount": 1}) for name in many))
        if mode == "fc"
        else "[" + ", ".join(f"{name}(amount=1)" for name in many) + "]"
    )
    steps = played(ONE, Says(said, "Done."), tmp_path, mode=mode).replies[0].steps
    assert len(steps) == MAX_CALLS + 1
    assert [step.executed for step in steps] == [1] * MAX_CALLS + [0]
    assert "only the first 50" in steps[-1].text


@pytest.mark.parametrize(
    "said",
    [
        "x" * 3_000_000,
        "[" * 100_000,
        "\ud800 half a pair",
        "",
        {"text": None},
        calls(("add_coins", '{"amount": ' + "[" * 90_000)),
        calls(("add_coins", '{"amount": "' + "9" * 5_000_000 + '"}')),
        calls(("a" * 100_000, {})),
        calls(("__class__", {})),
        calls(("add_coins", '{"amount": 1e999}')),
        calls(("whisper", '{"text": "\\ud800"}')),
        "[add_coins(amount=" + "9" * 10_000 + ")]",
        "[__import__('os').system('true')]",
    ],
    ids=range(13),
)
@pytest.mark.parametrize("mode", ["fc", "prompt"])
def test_hostile_answers_are_bounded_and_harmless(tmp_path: Path, mode: str, said: Any) -> None:
    episode = played(ONE, Says(said, *["Done."] * 3), tmp_path, mode=mode)
    assert episode.ended == "done"
    assert (tmp_path / "journal.jsonl").stat().st_size < 3 * world_env.MAX_TEXT
    json.dumps(schema.columns([episode], schema.Episode)["replies"]).encode()


def test_tools_that_are_added_later(tmp_path: Path) -> None:
    turns = (
        TWO.turns[0],
        schema.Turn((), adds=("take_coins", "whisper")),
        schema.Turn((schema.Message("user", "And now?"),), adds=("add_coins",)),
    )
    row = msgspec.structs.replace(TWO, turns=turns)
    for mode in ("fc", "prompt"):
        agent = Says("a", "b", "c")
        played(row, agent, tmp_path / mode, mode=mode)
        texts = [ask.messages[-1]["content"] for ask in agent.asked]
        if mode == "fc":
            names = [{tool["function"]["name"] for tool in ask.tools or ()} for ask in agent.asked]
            assert names[1] - names[0] == {"take_coins", "whisper"} and names[2] - names[1] == {"add_coins"}
            assert texts[1:] == [TRY_AGAIN, "And now?"]
        else:
            assert "take_coins" not in agent.asked[0].messages[0]["content"]
            assert '"name":"whisper"' in texts[1] and texts[1].endswith(TRY_AGAIN)
            assert '"name":"add_coins"' in texts[2] and texts[2].endswith("And now?")


def test_an_empty_reply_is_sent_back_as_a_text_that_servers_take(tmp_path: Path) -> None:
    agent = Says("", "b", "c")
    played(TWO, agent, tmp_path)
    assert agent.asked[1].messages[1] == {"role": "assistant", "content": wire.NO_TEXT}


@pytest.mark.parametrize("status", ["request_error", "rejected", "too_long"])
def test_without_an_answer_the_episode_ends_and_says_why(tmp_path: Path, status: str) -> None:
    failed = {"status": status, "error": "500: no"}
    episode = played(ONE, Says(calls(("add_coins", {"amount": 2})), failed), tmp_path)
    assert (episode.ended, episode.error, len(episode.replies)) == (status, "500: no", 1)
    again = Says("Done.")
    second = played(ONE, again, tmp_path)  # a failure is asked again, a refusal is the endpoint's answer
    assert second.ended == ("done" if status == "request_error" else status)
    assert len(again.asked) == (status == "request_error")


def test_an_episode_goes_on_in_a_fresh_world_that_knows_its_calls(tmp_path: Path) -> None:
    first = Says(calls(("add_coins", {"amount": 2})))
    with pytest.raises(RuntimeError):  # the session dies at the second answer
        played(ONE, first, tmp_path)
    second = Says(calls(("count_coins", {})), "Done.")
    assert played(ONE, second, tmp_path).replies[1].steps[0].text == '{"coins": 5}'
    assert len(second.asked) == 2


def edit_results(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes what the journal has of the first reply's calls."""
    journal = folder / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    change(lines[1])
    journal.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def test_a_world_that_answers_otherwise_than_before_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        played(ONE, Says(calls(("count_coins", {}))), tmp_path)
    edit_results(tmp_path, lambda line: line["results"][0].update(text='{"coins": 4}'))
    refuses(
        "answered otherwise than in the journal",
        played,
        ONE,
        Says(calls(("count_coins", {})), "Done."),
        tmp_path,
    )


def test_a_call_that_hung_is_not_made_again_after_a_kill(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        played(ONE, Says(calls(("add_coins", {"amount": 2}))), tmp_path)
    cut_off = {"text": "took too long", "executed": 0, "problem": "timeout"}
    edit_results(tmp_path, lambda line: line["results"][0].update(cut_off))
    episode = played(ONE, Says(calls(("count_coins", {})), "Done."), tmp_path)
    assert episode.replies[1].steps[0].text == '{"coins": 3}'


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lambda line: line["results"].clear(),
        lambda line: line["results"].append(line["results"][0]),
        lambda line: line["results"][0].update(name="count_coins"),
        lambda line: line["results"][0].update(arguments={"amount": 3}),
        lambda line: line["results"][0].pop("text"),
        lambda line: line.update(results=7),
        lambda line: line.pop("results"),
    ],
)
def test_results_of_other_calls_are_one_line(tmp_path: Path, change: Any, ended: bool) -> None:
    says = [calls(("add_coins", {"amount": 2})), "Done."] if ended else [calls(("add_coins", {"amount": 2}))]
    with contextlib.nullcontext() if ended else pytest.raises(RuntimeError):
        played(ONE, Says(*says), tmp_path)
    edit_results(tmp_path, change)
    refuses(r"answer 1: the journal was changed by hand .*--fresh", played, ONE, Says("Done."), tmp_path)


def without_results(ask: wire.Ask) -> list[Any]:
    """A request with the results of tools left out."""
    found = []
    for message in ask.messages:
        content = str(message["content"])
        if message["role"] == "tool":
            message = {**message, "content": "…"}
        elif message["role"] == "user" and content.startswith(RESULTS):
            lines = [json.loads(line) for line in content.removeprefix(RESULTS).splitlines()]
            message = {**message, "content": [line["name"] for line in lines]}
        found.append(message)
    return [found, ask.tools]


@pytest.mark.parametrize("mode", ["fc", "prompt"])
def test_nothing_but_tool_results_tells_a_faulted_row_from_its_clean_row(tmp_path: Path, mode: str) -> None:
    """Every request of every pair: equal bytes up to the fault; behind it the same replies get the same
    requests but for what tools answered."""
    met_by = Counter[str]()
    pairs = zip(itertools.cycle((ONE, TWO)), purses.rows()[2:], strict=False)
    for number, (clean, row) in enumerate(pairs):
        speaker = speakers.ScriptedAgent("oracle", {clean.clean_id: clean})
        one = played(clean, speaker, tmp_path / f"{number}-clean", mode=mode)
        other = played(row, speaker, tmp_path / f"{number}-faulted", mode=mode)
        assert one.ended == "done"
        assert [step.name for reply in one.replies for step in reply.steps] == [
            call.name for turn in clean.golden_calls for call in turn
        ]
        met = next(
            (n for n, r in enumerate(other.replies) if any(s.met for s in r.steps)), len(other.replies)
        )
        met_by[row.type_code] += met < len(other.replies)
        left, right = (
            purses.requests(*both) for both in ((clean, mode, one.replies), (row, mode, other.replies))
        )
        assert encode(left[: met + 1]) == encode(right[: met + 1]), row.id
        assert encode(purses.requests(clean, mode, other.replies)) == encode(right), row.id
        # The fault as it is shown, in the words of the clean row's results: nothing else differs.
        true = [
            msgspec.structs.replace(
                r, steps=[msgspec.structs.replace(s, text="…", met=False) for s in r.steps]
            )
            for r in other.replies
        ]
        masked = purses.requests(clean, mode, true)
        assert [without_results(ask) for ask in masked] == [without_results(ask) for ask in right], row.id
    assert [code for code, met in met_by.items() if not met] == ["live_stale_read"]  # nothing is read later


def test_every_agent_ends_every_episode(tmp_path: Path) -> None:
    for name, row in itertools.product(agents.AGENTS, purses.rows()[:6]):
        clean = {ONE.clean_id: ONE, TWO.clean_id: TWO}
        episode = played(row, speakers.ScriptedAgent(name, clean), tmp_path / name / row.id.replace(":", "-"))
        assert episode.ended in ("done", "too_many_steps")
