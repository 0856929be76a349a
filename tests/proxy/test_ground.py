"""`rbtc cases import --faults`: kinds, rates, words, and the plan that has them."""

import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from robustbench_tc import api, taxonomy
from robustbench_tc.own.logs.log_files import read_log
from robustbench_tc.proxy.answer_kinds import KINDS, is_cut, kind_of
from robustbench_tc.proxy.plan import Plan, Session, parse_plan, read_plan
from robustbench_tc.result_faults import FAULT_KINDS, Fault

from ..refusals import refuses


def conversation(number: int, *answers: str | None, orders: Sequence[int] = ()) -> dict[str, Any]:
    """One call after the other, each with its answer; `orders`: what each is called with."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Do {number}."}]
    for at, answer in enumerate(answers):
        arguments = json.dumps({"order": orders[at]} if orders else {})
        call = {"id": f"c{at}", "type": "function", "function": {"name": "get", "arguments": arguments}}
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
        ('{"status": "500"}', "server error"),
        ('{"statusCode": "429", "detail": "slow down"}', "rate limit"),
        ('{"status": "200"}', None),
        ('{"code": 40030}', None),
        ("HTTP/1.1 200 OK", None),
        ("HTTP 204", None),
        ("450", None),
        ("500.25", None),
        ("404, 405", None),
        ("429: slow down", "rate limit"),
        ("404 page not found", "not found"),
        ("500 - Internal Server Error", "server error"),
        ("422 Unprocessable Entity", "arguments refused"),
        ("HTTP/1.1 503 Service Unavailable", "server error"),
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
        (" " * 3_990 + "x", None),  # no time for each way to share the blanks out
        ("\n - Error: 429", "rate limit"),
        (json.dumps({"errors": [], "data": ["long"] * 1_000}), None),
        ('[{"error": null}, {"error": null}]', None),
        (json.dumps({"error": "quota exceeded", "trace": ["long"] * 1_000}), "rate limit"),
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


@pytest.mark.parametrize("always", [1, 2])
def test_a_position_is_drawn_over_by_no_rate(tmp_path: Path, always: int) -> None:
    """What always meets a call stands first, and a rate is of the calls that it leaves."""
    first, second = "Error: 429 Too Many Requests", "Error: 503 Service Unavailable"
    steady, now_and_then = (first, second) if always == 1 else (second, first)
    lines = [conversation(n, steady, now_and_then if n % 4 == 0 else "ok", "ok") for n in range(40)]
    plan = parse_plan(api.ground([written(tmp_path / "l.jsonl", *lines)]).plan().encode(), "p")
    assert [(one.at, one.rate) for one in plan.faults] == [((1,), None), ((), pytest.approx(10 / 80))]


def test_the_number_of_an_empty_answer_is_that_of_its_call(tmp_path: Path) -> None:
    """Calls that nothing can be compared with are counted too."""
    lines = [conversation(n, "ok", "[]", '{"items": 1}', orders=(n, 99, 99)) for n in range(5)]
    (fault,) = api.ground([written(tmp_path / "l.jsonl", *lines)]).faults
    assert (fault.kind, fault.at, fault.met, fault.calls) == ("empty", (2,), 5, 10)


@given(st.text(max_size=40))
@example("\x7f\x9b31m\x85\u2028\ufeff\ufffe\N{GRINNING FACE}")
def test_a_plan_reads_back_every_text(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    log = written(tmp_path_factory.mktemp("log") / "l.jsonl", conversation(1, f"Error: 429 {text}!", "ok"))
    found = api.ground([log])
    (fault,) = parse_plan(found.plan().encode(), "p").faults
    assert fault.text == found.faults[0].texts[0]


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


ORDERS = [json.dumps({"order": n, "items": ["shoe"] * (n % 9), "total": n / 4}) for n in range(40)]
ORDERS[::7] = ["[]"] * len(ORDERS[::7])  # nothing is in them, and that is true


@pytest.mark.parametrize("rates", [(0.1, 0.2, 0.15), (0.02, 0.4, 0.3), (0.3, 0.05, 0.04)])
def test_planted_results_are_found_again(tmp_path: Path, rates: tuple[float, ...]) -> None:
    """Cut and empty results, and errors before them, as a door makes them: each rate lies in its interval,
    and the plan of the log has the rates of the plan; what is truly empty is no fault."""
    planted = ("transient_timeout", "truncated", "empty_result")
    faults = tuple(Fault(kind=kind, rate=rate) for kind, rate in zip(planted, rates, strict=True))
    plan, rng, lines, true_ones = Plan(seed=1, faults=faults), random.Random(str(rates)), [], 0
    for number in range(300):
        orders = rng.sample(range(len(ORDERS)), 4)
        met = [plan.met(Session(f"s{number}", 0), call, "get") for call in range(1, 5)]
        true_ones += sum(
            ORDERS[n] == "[]" and fault in (None, faults[2]) for n, fault in zip(orders, met, strict=True)
        )
        answers = (
            ORDERS[n] if one is None else one.answer(ORDERS[n]) for n, one in zip(orders, met, strict=True)
        )
        lines.append(conversation(number, *answers, orders=orders))
    found = api.ground([written(tmp_path / "l.jsonl", *lines)])
    by_kind, left = {one.kind: one for one in found.faults}, 1.0
    for name, rate in zip(("time-out", "cut short", "empty"), rates, strict=True):
        assert by_kind[name].low <= rate * left <= by_kind[name].high, name
        left *= 1 - rate
    assert by_kind["empty, with nothing to compare"].met == true_ones
    assert by_kind["empty"].calls < by_kind["cut short"].calls == 1_200
    again = parse_plan(found.plan().encode(), "p").faults
    assert [one.kind for one in again] == list(planted)
    assert [one.rate for one in again] == pytest.approx(rates, abs=0.04)
    assert f"# Not in this plan, by calls: empty, with nothing to compare {true_ones}." in found.plan()


FULL, NONE = ORDERS[1], "[]"


def test_an_empty_answer_is_a_fault_where_another_conversation_got_something(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    def asked(number: int, answer: str) -> dict[str, Any]:
        return conversation(number, answer, orders=[1])

    cases: list[tuple[str, list[dict[str, Any]], int, int]] = [
        ("something elsewhere", [asked(1, NONE), asked(2, FULL)], 1, 0),
        ("in other words", [asked(1, " null\n"), asked(2, FULL)], 1, 0),
        ("another order", [asked(1, NONE), conversation(2, FULL, orders=[2])], 0, 1),
        ("made, then there", [conversation(1, NONE, FULL, orders=[1, 1]), asked(2, NONE)], 1, 1),
        ("whoever asks", [conversation(1, NONE), conversation(2, FULL)], 0, 1),
        ("an error elsewhere", [asked(1, NONE), asked(2, "Error: 503")], 0, 1),
        ("never anything", [asked(n, NONE) for n in range(3)], 0, 3),
    ]
    for name, lines, empty, perhaps in cases:
        with subtests.test(name):
            by_kind = {
                one.kind: one.met for one in api.ground([written(tmp_path / "l.jsonl", *lines)]).faults
            }
            assert by_kind.get("empty", 0) == empty
            assert by_kind.get("empty, with nothing to compare", 0) == perhaps


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(VALUES) | st.dictionaries(st.text(max_size=4), VALUES), st.floats(0, 1), st.booleans())
def test_json_is_cut_wherever_it_ends_too_early(value: Any, share: float, ascii_only: bool) -> None:
    whole = json.dumps(value, ensure_ascii=ascii_only)
    assert not is_cut(whole)
    assert is_cut(whole[: 1 + int(share * (len(whole) - 2))])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok",
        "4",
        "Done. It was cut",
        '"half a',
        "[INFO] up",
        "[see](x)",
        "{'a': 1",
        "{x",
        '{"a": 1}}',
        "[" * 9_999,
    ],
)
def test_a_short_answer_is_not_cut(text: str) -> None:
    assert not is_cut(text)


def test_what_the_log_itself_cuts_is_no_fault(tmp_path: Path) -> None:
    cut = [conversation(n, ORDERS[n][:40], "ok") for n in (8, 17, 26, 33)]
    (fault,) = api.ground([written(tmp_path / "l.jsonl", *cut)]).faults
    assert (fault.kind, fault.plan, fault.met, fault.calls) == ("cut where the log cuts", None, 4, 8)
    (fault,) = api.ground([written(tmp_path / "l.jsonl", *cut, conversation(9, ORDERS[8]))]).faults
    assert (fault.plan, fault.met, fault.texts) == ("truncated", 4, ("get",))


def test_an_answer_that_a_format_puts_into_an_object_shows_the_same_faults(tmp_path: Path) -> None:
    there = ORDERS[1:7] * 2
    lost = [NONE, there[1][:20], "Error: 429 Too Many Requests", *there[3:]]
    for put in (str, lambda text: json.dumps({"result": text})):  # as Gemini's SDK does
        lines = [conversation(n, *map(put, one), orders=range(12)) for n, one in enumerate((there, lost))]
        found = api.ground([written(tmp_path / "l.jsonl", *lines)])
        faults = {one.kind: (one.met, one.calls) for one in found.faults}
        assert faults == {"rate limit": (1, 24), "cut short": (1, 24), "empty": (1, 21)}


Run = tuple[str, float, float, str | None]
"""A group, when a run began and ended, what it answered, if that was recorded."""


def otlp(run: Run) -> Any:
    group, start, end, text = run
    values = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get", "gen_ai.tool.call.result": text,
        "gen_ai.conversation.id": group,
    }  # fmt: skip
    times = {
        "startTimeUnixNano": str(int((start + 1.7e9) * 1e9)),
        "endTimeUnixNano": int((end + 1.7e9) * 1e9),
    }
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]
    return {
        "resourceSpans": [{"scopeSpans": [{"spans": [{"name": "get", **times, "attributes": attributes}]}]}]
    }


UNTIL = {"start_time": "2026-01-01T00:00:00.250000", "end_time": "2026-01-01T00:00:01.750000"}
INFERENCE = {"openinference.span.kind": "TOOL", "tool.name": "get", "output.value": "ok", "session.id": "g"}
TIMED: dict[str, Any] = {
    "otlp": otlp(("g", 0.25, 1.75, "ok")),
    "openinference": {
        "name": "get", "start_time": UNTIL["start_time"] + "Z", "end_time": UNTIL["end_time"] + "Z",
        "attributes": INFERENCE,
    },
    "phoenix": {
        "start_time": 1.70000000025e12, "end_time": 1.70000000175e12,
        **{f"attributes.{key}": value for key, value in INFERENCE.items()},
    },
    "langsmith": {
        "run_type": "tool", "name": "get", "trace_id": "g", "inputs": {}, **UNTIL,
        "outputs": {"output": "ok"},
    },
    "langfuse": {
        "type": "TOOL", "name": "get", "traceId": "g", "input": {}, "output": "ok",
        "startTime": UNTIL["start_time"] + "+01:00", "endTime": UNTIL["end_time"] + "+01:00",
    },
    "agents_sdk": {
        "trace_id": "g", "started_at": UNTIL["start_time"], "ended_at": UNTIL["end_time"],
        "span_data": {"type": "function", "name": "get", "input": "{}", "output": "ok"},
    },
}  # fmt: skip
"""A run of a second and a half, in each format that has times."""


@pytest.mark.parametrize("form", TIMED)
def test_a_run_has_its_time_in_every_format(tmp_path: Path, form: str) -> None:
    """One that ended before it began, or has no end, has none."""
    text = json.dumps(TIMED[form])
    swapped = text.replace('"start', '"@').replace('"end', '"start').replace('"@', '"end')
    for line, seconds in ((text, [1.5]), (text.replace('"end', '"x'), []), (swapped, [])):
        (tmp_path / "l.jsonl").write_text(line)
        (one,) = read_log(tmp_path / "l.jsonl").conversations
        assert [(run.tool, run.text) for run in one.runs] == [("get", "ok")] * len(seconds)
        assert [run.seconds for run in one.runs] == pytest.approx(seconds, abs=1e-3)


@pytest.mark.parametrize("share", [0.02, 0.35])
def test_slow_runs_are_found_where_a_log_has_times(tmp_path: Path, share: float) -> None:
    """Exactly those that were planted; a slow error is an error, and a run without an end has no time."""
    rng, lines, later = random.Random(f"slow {share}"), list[Any](), list[float]()
    for number in range(80):
        for at in range(3):
            start, usual = 10.0 * at + number / 100, rng.uniform(0.1, 0.5)
            if rng.random() < share:
                later.append(rng.uniform(2, 8))
                usual += later[-1]
            lines.append(otlp((f"g{number}", start, start + usual, "ok")))
    lines.append(otlp(("g0", 100.0, 130.0, "Error: timed out")))
    lines.append(json.loads(re.sub(r'"end(\w*)":', r'"x\1":', json.dumps(otlp(("g1", 100.0, 130.0, "ok"))))))
    lines.append(otlp(("g2", 130.0, 100.0, "ok")))
    found = api.ground([written(tmp_path / "l.jsonl", *lines)])
    slow = next(one for one in found.faults if one.kind == "slow")
    assert (slow.met, slow.calls) == (len(later), 241)
    assert slow.low <= share <= slow.high and slow.texts == ("get",)
    assert (
        slow.seconds is not None and min(later) - 0.4 < slow.seconds[0] <= slow.seconds[1] < max(later) + 0.4
    )
    *_, fault = parse_plan(found.plan().encode(), "p").faults
    assert (fault.kind, fault.seconds) == ("latency", slow.seconds)
    assert fault.rate == pytest.approx(slow.rate, rel=0.01)
    quick = [otlp((f"g{n}", 0.0, 0.2 * (1 + n % 4), "ok")) for n in range(20)]
    assert api.ground([written(tmp_path / "q.jsonl", *quick)]).faults == ()
    mute = [otlp((f"g{n}", 0.0, 9.0 if n == 3 else 0.2, None)) for n in range(20)]
    (slow,) = api.ground([written(tmp_path / "m.jsonl", *mute)]).faults
    assert (slow.kind, slow.met, slow.calls, slow.seconds) == ("slow", 1, 20, (8.8, 8.8))


def test_what_has_no_name_is_listed_with_its_words_and_counted(tmp_path: Path) -> None:
    lines = [
        conversation(n, f"Error: the {n % 14}th moon of ops@corp-internal.io is down", "ok")
        for n in range(30)
    ]
    found = api.ground([written(tmp_path / "l.jsonl", *lines)])
    (fault,) = found.faults
    assert (fault.kind, fault.plan, fault.met) == ("other error", None, 30)
    assert len(fault.texts) == 10 < fault.wordings == 14
    printed = [str(part) for part in found.shown()]
    assert "other error: 4 other wordings" in printed and "corp-internal" not in "".join(printed)
    assert "# Not in this plan, by calls: other error 30." in found.plan()
    assert parse_plan(found.plan().encode(), "p").faults == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (conversation(1), "it contains no answered tool call"),
        (conversation(1, None), "it contains no answered tool call"),
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
