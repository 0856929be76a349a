"""`rbtc cases import --faults`: kinds, rates, words, and the plan that has them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from robustbench_tc import api, taxonomy
from robustbench_tc.proxy.answer_kinds import KINDS, is_cut, kind_of
from robustbench_tc.proxy.plan import Plan, Session, parse_plan, read_plan
from robustbench_tc.result_faults import FAULT_KINDS, Fault

from ..refusals import refuses


def conversation(number: int, *answers: str | None) -> dict[str, Any]:
    """One call after the other, each with its answer."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Do {number}."}]
    for at, answer in enumerate(answers):
        call = {"id": f"c{at}", "type": "function", "function": {"name": "get", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        if answer is not None:
            messages.append({"role": "tool", "tool_call_id": f"c{at}", "content": answer})
    return {"messages": messages, "id": f"conversation {number}"}


def written(path: Path, *lines: Any) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


@pytest.mark.parametrize("code", FAULT_KINDS)
def test_the_cores_own_texts_are_their_kinds(code: str) -> None:
    found = kind_of(taxonomy.injected_error(code) or "")
    assert found is not None and found.plan == code


def test_kinds(subtests: pytest.Subtests) -> None:
    cases = [
        ('{"error": {"code": 429, "message": "slow down"}}', "rate limit"),
        ("Error: Rate limit reached for requests", "rate limit"),
        ('{"status": 401, "message": "no"}', "credentials refused"),
        ("PermissionError: access denied", "credentials refused"),
        ("httpx.ReadTimeout: timed out", "time-out"),
        ('{"isError": true, "content": "deadline exceeded"}', "time-out"),
        ('{"error": "503 Service Unavailable"}', "server error"),
        ("ConnectionError: connection refused", "no connection"),
        ("Error: Unexpected token < in JSON", "answer broken"),
        ('{"error": "order 7 not found"}', "not found"),
        ('{"error": "missing parameter: day"}', "arguments refused"),
        ('{"success": false}', "other error"),
        ("Traceback (most recent call last):\n  KeyError: 'x'", "other error"),
        ("", None),
        ("42", None),
        ('{"status": "ok", "note": "the 401 error of last week"}', None),
        ('{"mails": ["Re: timeout", "429 Too Many Requests"]}', None),
        ("The train leaves at 5:03.", None),
        ("A report on rate limits: too many requests were made in 2024.", None),
        ('{"error": null, "result": 3}', None),
        ('{"errors": [], "data": {}}', None),
        ("[" * 50_000, None),
        ("503 pages were read", "server error"),
    ]
    for text, name in cases:
        with subtests.test(text):
            found = kind_of(text)
            assert (None if found is None else found.name) == name


@given(st.text(max_size=400) | st.dictionaries(st.text(max_size=8), st.text(max_size=20)).map(json.dumps))
def test_any_answer_has_a_kind_or_none(text: str) -> None:
    assert kind_of(text) in (None, *KINDS)


def test_a_log_becomes_a_plan_with_its_rates_and_words(tmp_path: Path) -> None:
    slow, down = "Error: 429, ask ops@corp-internal.io at 10:00", "503 Service Unavailable"
    lines = [
        conversation(
            n, *(slow if (n + at) % 10 == 0 else down if (n + at) % 10 == 1 else "ok" for at in range(5))
        )
        for n in range(40)
    ]
    log = written(tmp_path / "agent.jsonl", *lines, conversation(41, "ok", None))
    found = api.ground([log], tmp_path / "plan.yaml")
    assert (found.calls, found.conversations, found.unanswered) == (201, 41, 1)
    by_kind = {one.kind: one for one in found.faults}
    assert by_kind["rate limit"].met == by_kind["server error"].met == 20
    assert by_kind["rate limit"].low < 0.1 < by_kind["rate limit"].high
    first, second = read_plan(tmp_path / "plan.yaml").faults
    assert (first.kind, second.kind) == ("transient_rate_limit", "transient_server_error")
    assert first.rate == pytest.approx(20 / 201)
    assert second.rate == pytest.approx(20 / 201 / (1 - 20 / 201))  # of the calls that the first one left
    assert second.text == down
    text = (tmp_path / "plan.yaml").read_text()
    assert (
        "corp-internal" not in text
        and "ops@" not in text
        and (first.text or "").startswith("Error: 429, ask ")
    )
    assert api.ground([log]).plan() == text


def test_calls_that_fail_together_have_a_wider_interval(tmp_path: Path) -> None:
    down, widths = "503 Service Unavailable", []
    for each in ([(down, "ok", "ok", "ok", "ok")] * 40, [(down,) * 5] * 8 + [("ok",) * 5] * 32):
        lines = [conversation(n, *answers[n % 5 :], *answers[: n % 5]) for n, answers in enumerate(each)]
        (fault,) = api.ground([written(tmp_path / "l.jsonl", *lines)]).faults
        assert (fault.met, fault.calls) == (40, 200)
        widths.append(fault.high - fault.low)
    assert widths[1] > 1.8 * widths[0]


def test_what_always_comes_at_one_call_is_a_position(tmp_path: Path) -> None:
    lines = [conversation(n, "ok", "Error: timed out", "ok") for n in range(4)]
    (fault,) = api.ground([written(tmp_path / "l.jsonl", *lines, conversation(9, "ok"))]).faults
    assert fault.at == (2,) and fault.not_told_apart == ("timeout_after_effect",)
    (fault,) = api.ground([written(tmp_path / "l.jsonl", *lines, conversation(9, "ok", "ok"))]).faults
    assert fault.at == ()


@pytest.mark.parametrize("share", [0.004, 0.3, 1.0])
def test_a_plan_of_a_log_of_a_plan_is_the_plan(tmp_path: Path, share: float) -> None:
    """From a plan over conversations that met it back to a plan: the rate is inside the interval."""
    plan = Plan(seed=1, faults=(Fault(kind="transient_timeout", rate=share),))
    lines = []
    for number in range(300):
        met = [plan.met(Session(f"s{number}", 0), call, "get") for call in range(1, 4)]
        lines.append(conversation(number, *("ok" if one is None else one.answer("ok") for one in met)))
    found = api.ground([written(tmp_path / "l.jsonl", *lines)])
    (fault,) = found.faults
    assert fault.low <= share <= fault.high
    (again,) = parse_plan(found.plan().encode(), "p").faults
    assert again.kind == "transient_timeout" and again.answer("") == plan.faults[0].answer("")
    assert again.rate == pytest.approx(fault.rate)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (conversation(1), "no tool call is answered in it"),
        (conversation(1, None), "no tool call is answered in it"),
        ("not a conversation", "no conversation can be read; line 1"),
    ],
)
def test_a_log_without_answers_is_one_line(tmp_path: Path, line: Any, said: str) -> None:
    refuses(said, api.ground, [written(tmp_path / "l.jsonl", line)])


def test_the_command(rbtc: Callable[..., Any], tmp_path: Path) -> None:
    hostile = "Error: timed out \x1b[31m\n\u202e{{x}} # kind: silent_no_op\n- {kind: stale_read}"
    log = written(tmp_path / "l.jsonl", conversation(1, "ok", hostile), conversation(2, "ok"))
    done = rbtc("cases", "import", "--faults", log, "--out", tmp_path / "plan.yaml")
    assert (done.code, done.err) == (0, "")
    assert "time-out" in done.out and "transient_timeout or timeout_after_effect" in " ".join(
        done.out.split()
    )
    assert "\x1b" not in done.out and "\u202e" not in done.out
    (fault,) = read_plan(tmp_path / "plan.yaml").faults
    assert (fault.kind, fault.text) == ("transient_timeout", hostile)
    assert (
        "exists and is not replaced"
        in rbtc("cases", "import", "--faults", log, "--out", tmp_path / "plan.yaml").refusal
    )
    found = json.loads(rbtc("cases", "import", "--faults", log, "--json").out)
    assert found["calls"] == 3 and found["faults"][0]["met"] == 1
    gone = rbtc("cases", "import", "--faults", tmp_path / "none.jsonl")
    assert gone.code == 1 and gone.err.count("\n") == 1
