"""Answers made elsewhere: exported requests, asked by a script, and imported, are a run that asked."""

import hashlib
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustbench_tc import api
from robustbench_tc.eval.record import open_run

from ..conftest import Rbtc
from ..loopback import Fault, LoopbackServer, error_body, reply
from ..refusals import refuses


def as_text(body: dict[str, Any]) -> str:
    return json.dumps(body, sort_keys=True)


def model(body: dict[str, Any]) -> Any:
    """Says the same to the same request: mostly a call, now and then a text, a refusal for its length, and
    garbage for arguments."""
    said = hashlib.sha256(as_text(body).encode()).digest()[0]
    if said % 13 == 0:
        return Fault(400, error_body("maximum context length is 10 tokens", "context_length_exceeded"))
    if said % 5 == 0:
        return reply("I would rather not.", usage=(said, 4))
    if body.get("tools"):
        name = body["tools"][said % len(body["tools"])]["function"]["name"]
        return reply("", [(name, "{" if said % 7 == 0 else f'{{"a": {said}}}')], usage=(said, 5))
    return reply(f"[ping(a={said})]", usage=(said, 6))


def ask_elsewhere(requests: Path, answers: Path, base_url: str) -> list[dict[str, Any]]:
    """A lab's own script: each request once, the answers in another order, as the Batch API writes them."""
    lines = [json.loads(line) for line in requests.read_text().splitlines()]
    found = []
    for line in reversed(lines):
        data = json.dumps(line["body"]).encode()
        sent = urllib.request.Request(
            f"{base_url}/chat/completions", data, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(sent, timeout=10) as got:
                status, body = got.status, json.load(got)
        except urllib.error.HTTPError as error:
            status, body = error.code, json.load(error)
        response = body if "method" not in line else {"status_code": status, "body": body}
        found.append({"custom_id": line["custom_id"], "response": response, "error": None})
    answers.write_text("".join(json.dumps(one) + "\n" for one in found))
    return lines


def told(run: Path) -> pa.Table:
    """Predictions and verdicts, without the seconds that the answers took."""
    return pq.read_table(run / "scores.parquet").drop_columns(["latency_s"])


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("fc", {}),
        ("prompt", {}),
        ("fc", {"defend": "retry"}),
        ("prompt", {"temperature": 0.5, "seed": 7, "repeat": 2, "samples": 3}),
    ],
)
def test_requests_asked_elsewhere_are_a_run_that_asked(
    release: Path, tmp_path: Path, mode: str, options: dict[str, Any]
) -> None:
    run, answers = tmp_path / "run", tmp_path / "answers.jsonl"
    options = {"model": "tiny", "mode": mode, **options}
    with LoopbackServer(model) as server:
        asked = api.evaluate(
            release, base_url=server.url, out=tmp_path / "asked", probe=False, early_stop=False, **options
        )
        bodies = set(map(as_text, server.bodies))
        server.bodies.clear()
        left, passes = 1, 0
        while left:
            requests = tmp_path / f"requests-{passes}.jsonl"
            more: dict[str, Any] = {"second_pass": run} if passes else {"begin": run, **options}
            written = api.export_requests(release, out=requests, **more)
            lines = ask_elsewhere(requests, answers, server.url)
            assert written.count == len(lines) == len({one["custom_id"] for one in lines}) > 0
            imported = api.import_predictions(answers, run)
            left, passes = asked.folder.record.expected - imported.count, passes + 1
            assert bool(left) is any("--second-pass" in note for note in imported.notes)
        assert passes > 1
        assert set(map(as_text, server.bodies)) == bodies
        if asked.folder.record.settings.shares:
            assert server.count == len(bodies)
    there, here = asked.folder.record, open_run(run).record
    assert told(run) == told(tmp_path / "asked")
    assert (here.settings, here.totals["status"]) == (there.settings, there.totals["status"])
    assert here.served_models == there.served_models == ["tiny"] and there.totals["status"]["too_long"] > 0
    assert sum(here.reused.values()) == len((tmp_path / "asked" / "journal.jsonl").read_text().splitlines())


def test_what_is_no_answer_changes_nothing(release: Path, tmp_path: Path, rbtc: Rbtc) -> None:
    requests, run, answers = tmp_path / "requests.jsonl", tmp_path / "run", tmp_path / "answers.jsonl"
    done = rbtc(
        "export", "requests", release, "--model", "tiny", "--limit", 4, "--begin", run, "--format", "openai",
        "--out", requests,
    )  # fmt: skip
    lines = [json.loads(line) for line in requests.read_text().splitlines()]
    assert (
        done.code == 0
        and f"{len(lines)} requests in" in done.err
        and f"rbtc import ANSWERS.jsonl {run}" in done.err
    )
    assert set(lines[0]) == {"custom_id", "body"} and lines[0]["body"]["max_tokens"] == 1024
    one, other = (line["custom_id"] for line in lines[:2])
    answers.write_text(
        json.dumps({"custom_id": one, "response": {"status_code": 500, "body": error_body("busy")}})
        + "\n" + json.dumps({"custom_id": other, "response": [], "error": {"code": "batch_expired"}})
        + '\n{"custom_id": "nobody"}\n{"torn'
    )  # fmt: skip
    said = rbtc("import", answers, run).refusal
    assert "no answer in" in said and "left out: 1 × server_error: HTTP 500: busy" in said
    assert "batch_expired" in said and "torn last line" in said
    assert not (run / "journal.jsonl").exists()
    with LoopbackServer(model) as server:
        ask_elsewhere(requests, answers, server.url)
    failed = {"response": {"status_code": 500, "body": error_body("busy")}}
    strays = [{"custom_id": one, **failed}, {"custom_id": "of another run", **failed}]
    answers.write_text(answers.read_text() + "".join(f"{json.dumps(stray)}\n" for stray in strays))
    done = rbtc("import", answers, run)
    assert done.code == 0 and "busy" not in done.err  # an answer that is there stands
    assert "left out: 1 × further answer to a request" in done.err
    assert "left out: 1 × answer to no open request" in done.err
    refuses("no answer in", api.import_predictions, answers, run)  # each is there already
    refuses("give --model", api.import_predictions, answers, release)
    refuses("exists", api.export_requests, second_pass=run, out=requests)
