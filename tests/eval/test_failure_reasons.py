"""Requests that fail: every reason is named with its count, filters and cut replies are counted."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.cli import _asking, _console
from robustbench_tc.eval import predictions, reasons, run
from robustbench_tc.eval.record import Session, open_run
from robustbench_tc.schema import Message

from ..conftest import Rbtc
from ..loopback import (
    BAD_TOOL_NAME,
    DROP,
    DUPLICATE_TOOLS,
    EMPTY_CHOICES,
    HTML,
    NO_MODEL,
    NO_TEMPERATURE,
    SERVER_ERROR,
    TOO_LONG,
    UNAUTHORISED,
    Fault,
    LoopbackServer,
    error_body,
    rate_limit,
    reply,
)
from . import small

pytestmark = pytest.mark.usefixtures("new_folder")

BAD_GATEWAY = Fault(502, "<html><body><h1>502 Bad Gateway</h1></body></html>", {"Content-Type": "text/html"})
FILTERED = Fault(
    400,
    error_body(
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        "content_filter",
        "prompt",
    ),
)
NO_LOGPROBS = Fault(400, error_body("logprobs is not supported with this model", "unsupported", "logprobs"))

FAULTS: dict[str, tuple[Fault, int]] = {
    "auth: HTTP 401: Incorrect API key provided": (UNAUTHORISED, 1),
    "auth: HTTP 403: Country not supported": (Fault(403, error_body("Country not supported")), 2),
    "not_found: HTTP 404: The model does not exist": (NO_MODEL, 3),
    "rate_limit: HTTP 429: Rate limit reached (such": (rate_limit(), 1),
    "rate_limit: HTTP 429: Rate limit reached (Retry-After: 7 s)": (rate_limit("7"), 2),
    "server_error: HTTP 500: The server had an error": (SERVER_ERROR, 3),
    "server_error: HTTP 502: 502 Bad Gateway": (BAD_GATEWAY, 1),
    "timeout: no reply within 3 s": (Fault(200, "late", hang_s=30.0), 2),
    "connection: ": (DROP, 3),
    "not_a_completion: text/html, not JSON": (HTML, 1),
    "empty_choices: the reply holds no choice": (EMPTY_CHOICES, 2),
    "content_filter: HTTP 400: The response was filtered": (FILTERED, 3),
    "too_long: HTTP 400: This model's maximum context length": (TOO_LONG, 1),
}
"""What is said of a fault, the fault, and how often it comes."""


def numbered(folder: Path, count: int) -> Path:
    """A release of so many clean rows; the request of row n ends in `row n`."""
    row = small.clean_rows()[0]
    return small.write(
        folder,
        (
            msgspec.structs.replace(
                row,
                id=f"bfcl_v3__{n:03}::clean",
                clean_id=f"bfcl_v3__{n:03}",
                messages=(Message("user", f"How high is it? row {n}"),),
            )
            for n in range(count)
        ),
    )


def number_of(body: dict[str, Any]) -> int:
    return int(re.findall(r"row (\d+)", json.dumps(body["messages"]))[-1])


def faulty(faults: list[Fault | None]) -> Callable[[dict[str, Any]], Any]:
    """Row n meets the nth fault, always; None is an answer."""

    return lambda body: faults[number_of(body)] or reply("[ping()]")


def asked(release: Path, server: LoopbackServer, *more: object) -> tuple[object, ...]:
    # One at a time, and the first is answered: a wrong key at the very first request ends the command.
    options = ("--concurrency", 1, "--max-retries", 0, "--timeout", 3.0, "--out", "run")
    return ("eval", release, "--no-probe", "--model", "tiny", "--base-url", server.url, *options, *more)


def test_every_fault_is_named_with_its_count_in_the_last_lines(rbtc: Rbtc, tmp_path: Path) -> None:
    plan: list[Fault | None] = [None]
    for fault, count in FAULTS.values():
        plan += [fault] * count + [None]
    release = numbered(tmp_path / "release", len(plan))
    with LoopbackServer(faulty(plan)) as server:
        said = rbtc(*asked(release, server))
    tail = said.err.splitlines()[-(len(FAULTS) + 2) :]
    assert tail[0] == "why requests failed, the most frequent first:"
    for line, (_, count) in FAULTS.items():
        assert any(one.startswith(f"  {count} × {line}") for one in tail[1:-1]), (line, said.err)
    counts = [int(one.split()[0]) for one in tail[1:-1]]
    assert counts == sorted(counts, reverse=True) and sum(counts) == sum(n for _, n in FAULTS.values())
    assert "rows have no answer" in tail[-1] and said.code == 1
    assert "such as bfcl_v3__001::clean" in said.err
    assert "maximum context length" in said.err and "counted as a wrong answer" in said.err

    shown = rbtc("failures", "run")
    assert shown.code == 0
    for line, (_, count) in FAULTS.items():
        assert f"  {count} × {line}" in shown.out
    summary = json.loads(rbtc("summary", "run", "--allow-missing", "--json").out)
    assert summary["content_filter"] == 3 and summary["too_long"] == 1


def test_what_is_dropped_is_noted_and_what_was_asked_again_is_counted(rbtc: Rbtc, tmp_path: Path) -> None:
    seen: set[int] = set()

    def handler(body: dict[str, Any]) -> Any:
        if "temperature" in body:
            return NO_TEMPERATURE
        first = number_of(body) not in seen
        seen.add(number_of(body))
        if number_of(body) == 3 and "logprobs" in body:
            return NO_LOGPROBS
        return rate_limit("0") if first and number_of(body) in (1, 2) else reply("[ping()]")

    release = numbered(tmp_path / "release", 5)
    with LoopbackServer(handler) as server:
        said = rbtc(*asked(release, server, "--max-retries", 2, "--logprobs", "--allow-missing"))
    assert said.code == 0, said.err
    last = said.err.splitlines()[-4:]
    assert "attempts that failed and were made again: 2 × rate_limit" in last
    assert any(line.startswith("not sent, the endpoint does not take it: temperature") for line in last)
    assert any("logprobs" in line for line in last)
    assert open_run(Path("run")).record.sessions[0].retried == {"rate_limit": 2}


def test_filtered_and_cut_replies_are_counted(rbtc: Rbtc, tmp_path: Path) -> None:
    def handler(body: dict[str, Any]) -> Any:
        return {
            0: reply("", finish_reason="content_filter"),
            1: reply("[ping(", finish_reason="length"),
            2: reply("I had better", finish_reason="length"),
        }.get(number_of(body), FILTERED if number_of(body) == 3 else reply("[ping()]"))

    release = numbered(tmp_path / "release", 6)
    with LoopbackServer(handler) as server:
        said = rbtc(*asked(release, server, "--allow-missing"))
    assert said.code == 0, said.err
    assert "6 samples, 6 rows, 1 missing" in said.out and "2 of 5 replies were cut off" in said.out
    full = rbtc("summary", "run", "--allow-missing", "--full").out
    counted = {
        line.strip().rpartition(" ")[0].strip(): line.split()[-1]
        for line in full.splitlines()
        if line.strip()
    }
    assert (counted["cut at the token limit"], counted["content filter"]) == ("2", "2")
    assert (counted["too long"], counted["rejected"]) == ("0", "0")
    found = json.loads(rbtc("summary", "run", "--allow-missing", "--json").out)
    assert (found["length"], found["content_filter"]) == (2, 2)
    record = open_run(Path("run")).record
    assert record.totals["finish_reason"] == {"content_filter": 2, "length": 2, "stop": 2}
    assert rbtc("report", "run", "--allow-missing", "--out", "page").code == 0
    assert any('"content_filter": 2' in path.read_text() for path in Path("page").rglob("*.json"))


def test_unknown_finish_reasons_are_counted(rbtc: Rbtc, tmp_path: Path) -> None:
    release = numbered(tmp_path / "release", 5)
    words = ["stop", "eos", "length", "eos", "abort[now]"]
    with LoopbackServer(lambda b: reply("[ping()]", finish_reason=words[number_of(b)])) as server:
        said = rbtc(*asked(release, server))
    assert "unknown finish reasons: 2 × eos, 1 × abort[now]" in said.err


def test_a_filter_is_not_an_endpoint_that_has_gone(rbtc: Rbtc, tmp_path: Path) -> None:
    release = numbered(tmp_path / "release", 30)
    with LoopbackServer(lambda body: FILTERED) as server:
        said = rbtc(*asked(release, server))
    assert "  30 × content_filter: " in said.err and "stopped answering" not in said.err


@pytest.mark.parametrize(
    ("answered", "fault"), [(2, BAD_TOOL_NAME), (3, BAD_TOOL_NAME), (2, DUPLICATE_TOOLS)]
)
def test_a_run_rejected_for_one_reason_says_it_instead_of_a_summary(
    rbtc: Rbtc, tmp_path: Path, answered: int, fault: Fault
) -> None:
    release = numbered(tmp_path / "release", 30)
    with LoopbackServer(faulty([None] * answered + [fault] * (30 - answered))) as server:
        said = rbtc(*asked(release, server))
    last = said.err.splitlines()[-1]
    if answered == 2 and fault is BAD_TOOL_NAME:
        assert (said.code, said.out) == (1, "")
        assert last.startswith(
            "rbtc: 28 of 30 rows were rejected for one reason: rejected: HTTP 400: Invalid"
        )
    else:
        assert said.code == 0 and "for one reason" not in said.err and said.out
    assert Path("run/scores.parquet").is_file()


def test_an_endpoint_that_goes_is_explained_before_the_last_line(rbtc: Rbtc, tmp_path: Path) -> None:
    release = numbered(tmp_path / "release", 40)
    with LoopbackServer(lambda body: reply("[ping()]") if number_of(body) < 3 else BAD_GATEWAY) as server:
        said = rbtc(*asked(release, server))
    why, last = said.err.splitlines()[-2:]
    # Two are in hand at a time: one more may be under way when it ends.
    named = r"  2[01] × server_error: HTTP 502: 502 Bad Gateway \(such as bfcl_v3__003::clean\)"
    assert re.fullmatch(named, why)
    assert last.startswith("rbtc: the endpoint stopped answering")
    assert last.endswith("answers are kept; run the same command again to resume")
    record = open_run(Path("run")).record
    assert record.totals["status"]["ok"] == 3 and record.totals["predictions"] < 40
    assert record.sessions[0].errors["server_error"] >= 20
    assert rbtc("score", "run").code == 0
    assert re.search(r"  2[01] × server_error: HTTP 502", rbtc("failures", "run").out)


def test_reasons_are_the_same_but_for_numbers_and_ids_and_the_rest_is_counted() -> None:
    found = reasons.reasons(
        [
            *(
                (f"a{n}", "request_error", f"server_error: HTTP 500: request req-{n}f0c failed")
                for n in range(5)
            ),
            ("b", "request_error", "server_error: HTTP 502: request req-1 failed"),
            ("c", "rejected", "rejected: HTTP 400: no"),
            ("d", "ok", None),
            ("e", "request_error", None),
        ]
    )
    assert [(one.code, one.count, one.id) for one in found] == [
        ("server_error", 5, "a0"),
        ("rejected", 1, "c"),
        ("server_error", 1, "b"),
        ("unknown error", 1, "e"),
    ]
    assert [*reasons.lines(found)][2] == "  1 × rejected: HTTP 400: no (such as c, counted as a wrong answer)"
    words = "abcdefghijklmnopqrstuvwxyz"
    many = reasons.reasons((word, "request_error", f"timeout: {word * 9}") for word in words)
    lines = [*reasons.lines(many, Session(started="", endpoint="", package_version="", concurrency=1))]
    assert len(lines) == 1 + reasons.SHOWN + 1
    assert lines[-1] == "  11 × 11 other reasons: 11 × timeout"
    assert [*reasons.lines([])] == [] and reasons.of_predictions(Path("nowhere")) == []


def test_hostile_reasons_are_bounded_and_shown_as_text(rbtc: Rbtc, tmp_path: Path) -> None:
    bad = Fault(500, error_body("\x1b[2J\n[red]" + "a" * 40_000))
    release = numbered(tmp_path / "release", 3)
    with LoopbackServer(faulty([None, bad, None])) as server:
        said = rbtc(*asked(release, server))
    line = next(one for one in said.err.splitlines() if one.startswith("  1 × server_error"))
    assert "\x1b" not in said.err and "[red]" in line and len(line) < 500


# --- without a terminal -----------------------------------------------------------------------------------


def test_without_a_terminal_there_is_a_line_a_minute(
    rbtc: Rbtc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _console.LINE_S == 60.0
    release = numbered(tmp_path / "release", 20)
    with LoopbackServer(lambda body: reply("[ping()]"), delay_s=0.05) as server:
        monkeypatch.setattr(_console, "LINE_S", 0.2)
        said = rbtc(*asked(release, server))
        lines = [one for one in said.err.splitlines() if " of 20 done, " in one]
        assert said.code == 0 and lines, said.err
        assert re.fullmatch(r"\d+ of 20 done, [\d.e+]+ a second, about \d+ s left", lines[-1])
    assert len(predictions.read_predictions(Path("run/predictions.parquet"))) == 20


@pytest.mark.parametrize(
    ("state", "seconds", "line"),
    [
        (run.Progress(4000, 1200), 60.0, "1,200 of 4,000 done, 20 a second, about 2 min left"),
        (run.Progress(4000, 1200, kept=1140), 60.0, "1,200 of 4,000 done, 1 a second, about 47 min left"),
        (
            run.Progress(20_000, 130, request_errors=4, cost=0.12345),
            130.0,
            "130 of 20,000 done, 4 failed, 1 a second, about 5.5 h left, cost 0.1235",
        ),
        (run.Progress(10, 3, kept=3), 61.0, "3 of 10 done, no new answer in 61 s"),
    ],
)
def test_how_far_a_run_is(state: run.Progress, seconds: float, line: str) -> None:
    assert _asking.how_far(state, seconds) == line
