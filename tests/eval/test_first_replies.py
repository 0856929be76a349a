"""The first command of the README against servers that call natively, in their text, and not at all; and
`rbtc probe`, which names what a server does to a model that is perfect."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc import api
from robustbench_tc.builders.plan import Plan
from robustbench_tc.eval import inputs, predictions, probe, record
from robustbench_tc.eval.run import SILENT
from robustbench_tc.eval.stats import evidence, runs
from robustbench_tc.schema import Sample
from tests import agent_server

from ..builders.perturb import cases
from ..conftest import ROOT, Rbtc
from ..loopback import SERVER_ERROR, Fault, LoopbackServer, error_body, reply
from . import small
from .test_delivered import LOSSY, RECOVERABLE

pytestmark = pytest.mark.usefixtures("new_folder")

SILENCE = (
    "rbtc: 20 of 20 replies hold no call: is a tool parser missing on the server (vLLM: "
    "--enable-auto-tool-choice --tool-call-parser …), or is it a prompt-mode model (--mode prompt)? "
    "--no-early-stop continues"
)
MINE = "runs/mine"
"""Where the README's first command leaves its run."""

CHAT = "I would look that up in a calendar."
REFUSED = Fault(400, error_body("only rows are answered here"))


def first_command(url: str) -> list[str]:
    """The README's first command that asks a model, against this server."""
    readme = (ROOT / "README.md").read_text("utf-8")
    (words, *_) = re.findall(r"^rbtc (eval robustbench-tc --model .+?)(?: +#.*)?$", readme, re.MULTILINE)
    return [re.sub(r"^https?://localhost.*", url, word) for word in words.split()]


@pytest.fixture
def dataset(release: Path) -> tuple[Sample, ...]:
    Path("robustbench-tc").symlink_to(release)
    return inputs.load_samples("robustbench-tc").rows


@contextmanager
def without_a_parser(rows: tuple[Sample, ...]) -> Iterator[LoopbackServer]:
    """A server behind which the oracle's native calls stay in the text, in Hermes' form."""
    index = agent_server.Index(rows)

    def answered(body: dict[str, Any]) -> Any:
        found = index.find(body["messages"], body.get("tools"))
        if found is None:  # a request of the probe
            return REFUSED
        whole = agent_server.reply("oracle", found, body["model"])
        message = whole["choices"][0]["message"]
        for call in message.pop("tool_calls", ()):
            of = call["function"]
            said = {"name": of["name"], "arguments": json.loads(of["arguments"])}
            message["content"] = f"{message['content'] or ''}<tool_call>\n{json.dumps(said)}\n</tool_call>\n"
        return whole

    with LoopbackServer(answered) as server:
        yield server


def native(run: str) -> list[int | None]:
    return [one.native_calls for one in predictions.read_predictions(Path(run, "predictions.parquet"))]


def warnings(run: str) -> tuple[str, ...]:
    found = runs.read_run(run)
    return evidence.answer(found, runs.align([found])[0]).warnings


def test_a_server_that_calls_gets_its_accuracy_in_fc_mode(rbtc: Rbtc, dataset: tuple[Sample, ...]) -> None:
    with agent_server.serving("oracle", dataset) as url:
        said = rbtc(*first_command(url))
    assert said.code == 0, said.err
    assert "qwen3-8b is asked in fc mode, as it was trained; --mode changes it" in said.err
    assert json.loads(rbtc("summary", MINE, "--json").out)["summary"]["values"]["clean"]["value"] == 1.0
    assert all(native(MINE)) and not any("native" in line for line in warnings(MINE))


def test_a_server_that_only_talks_is_stopped_after_20_rows(rbtc: Rbtc, dataset: tuple[Sample, ...]) -> None:
    with LoopbackServer(lambda body: CHAT) as server:
        command = [*first_command(server.url), "--concurrency", "1", "--temperature", "0.5"]
        said = rbtc(*command)
        assert (said.code, said.err.splitlines()[-1]) == (1, SILENCE)
        assert len(native(MINE)) in (SILENT, SILENT + 1), "one more was under way"
        assert rbtc(*command, "--no-early-stop").code == 0
        assert server.count >= len(dataset) > SILENT, "what was asked stayed in the run"
    assert set(native(MINE)) == {0}


def test_calls_in_the_text_do_not_stop_a_run_and_are_warned_of(
    rbtc: Rbtc, dataset: tuple[Sample, ...]
) -> None:
    with without_a_parser(dataset) as server:
        said = rbtc(*first_command(server.url))
    assert said.code == 0, said.err
    assert set(native(MINE)) == {0}
    (line,) = (line for line in warnings(MINE) if "native" in line)
    assert re.fullmatch(r"0 of \d+ calls came as native calls: the server has no parser for them", line)


@pytest.mark.parametrize(("refusal", "asked"), [(SERVER_ERROR, 1), (REFUSED, len(probe.FIRST))])
def test_a_server_that_fails_is_asked_one_question_before_the_rows(
    rbtc: Rbtc, dataset: tuple[Sample, ...], refusal: Fault, asked: int
) -> None:
    """Each would be tried for as long as a row is."""
    questions = [one.messages for one in probe.QUESTIONS.values()]

    def answered(body: dict[str, Any]) -> Any:
        return refusal if body["messages"] in questions else CHAT

    with LoopbackServer(answered) as server:
        assert rbtc(*first_command(server.url), "--max-retries", 0, "--samples", 1).code == 0
    assert sum(body["messages"] in questions for body in server.bodies) == asked


def test_a_run_that_holds_a_call_is_not_stopped(rbtc: Rbtc, dataset: tuple[Sample, ...]) -> None:
    command = ("eval", "robustbench-tc", "--no-probe", "--model", "tiny", "--out", "run")
    with agent_server.serving("oracle", dataset) as url:
        assert rbtc(*command, "--base-url", url, "--types", "clean").code == 0
    with LoopbackServer(lambda body: CHAT) as server:
        assert rbtc(*command, "--base-url", server.url).code == 0
        assert server.count >= SILENT


@pytest.mark.parametrize("golds", ["no call", "a call or none"])
def test_rows_whose_gold_is_no_call_do_not_stop_a_run(rbtc: Rbtc, golds: str) -> None:
    clean = cases.CLEAN["table"]
    (row,) = Plan(samples=(clean,), seed=0, loans=cases.LENT).rows("missing_value")
    assert isinstance(row, Sample) and row.golden_answers == ((),)
    both = {"no call": ((),), "a call or none": (*clean.golden_answers, ())}[golds]
    many = [
        msgspec.structs.replace(one, id=f"bfcl_v3__{n}::{one.type_code}", clean_id=f"bfcl_v3__{n}")
        for n in range(2 * SILENT)
        for one in (clean, msgspec.structs.replace(row, golden_answers=both))
    ]
    small.write(Path("made"), many)
    settings = ("--concurrency", "1", "--temperature", "0.5")
    with LoopbackServer(lambda body: "Which table is meant?") as server:
        command = ("eval", "made", "--no-probe", "--model", "tiny", "--base-url", server.url, *settings)
        assert rbtc(*command, "--types", "missing_value", "--out", "declines").code == 0
        assert server.count == 2 * SILENT
        assert rbtc(*command, "--types", "clean", "--out", "calls").code == 1
    assert len(native("calls")) in (SILENT, SILENT + 1)


def test_a_model_of_the_table_keeps_the_mode_of_its_training(rbtc: Rbtc, dataset: tuple[Sample, ...]) -> None:
    """And a model asked in words that only talks is stopped too, with the other question."""
    with LoopbackServer(lambda body: CHAT) as server:
        said = rbtc(
            "eval", "robustbench-tc", "--no-probe", "--model", "toolrl-dr-full", "--base-url", server.url
        )
    assert "toolrl-dr-full is asked in prompt mode, as it was trained; --mode changes it" in said.err
    assert said.code == 1 and said.err.splitlines()[-1].endswith(
        "hold no call: is the model one that calls natively (--mode fc)? --no-early-stop continues"
    )
    assert set(native("runs/toolrl-dr-full-prompt")) == {None}


# --- the probe ----------------------------------------------------------------------------------------

Body = dict[str, Any]


def answer(body: Body) -> Body:
    """A perfect model that reads what the probe's requests say."""
    said, tools = body["messages"][-1], body.get("tools")
    if said["role"] == "tool":
        return reply("It is 17 degrees.")
    if tools:
        cities = [city for city in ("Oslo", "Lima") if city in said["content"]]
        return reply("", [(tools[0]["function"]["name"], json.dumps({"city": city})) for city in cities])
    if "name" in said["content"] and "France" not in said["content"]:
        return reply("Wren" if body["messages"][0]["role"] == "system" else "I have none.")
    found = reply("Paris.")
    if body.get("logprobs"):
        found["choices"][0]["logprobs"] = {"content": []}
    return found


def asked(handler: Callable[[Body], Any], **options: Any) -> dict[str, record.Finding]:
    with LoopbackServer(handler) as server:
        found = api.probe("tiny", base_url=server.url, **options).findings
        assert len(server.bodies) <= 13 + bool(options)  # the fourteenth is the list of models
    return {one.check: one for one in found}


def test_a_good_server_passes_every_check() -> None:
    found = asked(answer, long=100)
    assert {one.answer for one in found.values()} == {"yes"} and "100 words" in found
    assert probe.mode([*found.values()]) == "fc"


@pytest.mark.parametrize("fault", [*RECOVERABLE, *LOSSY])
def test_a_fault_of_a_server_is_named(fault: str) -> None:
    damage, reason = (RECOVERABLE | LOSSY)[fault]

    def damaged(body: Body) -> Body:
        made = answer(body)
        choice = made["choices"][0]
        choice["finish_reason"] = damage(choice["message"]) or choice["finish_reason"]
        return made

    found = asked(damaged)
    failed = [one.note for one in probe.failed([*found.values()])]
    assert any(note.startswith(f"{reason}: ") for note in failed), failed


REFUSALS: dict[str, tuple[Callable[[Body], bool], str]] = {
    "system": (lambda body: body["messages"][0]["role"] == "system", "system role"),
    "history": (lambda body: body["messages"][-1]["role"] == "tool", "result of a call"),
    "tools": (lambda body: bool(body.get("tools")), "tools accepted"),
    "dots": (lambda body: "weather.now" in json.dumps(body), "names with dots"),
    "length": (lambda body: "n" * 40 in json.dumps(body), "names of 64 characters"),
    "$ref": (lambda body: "$ref" in json.dumps(body), "schema with $ref"),
    "anyOf": (lambda body: "anyOf" in json.dumps(body), "schema with anyOf"),
    "enum": (lambda body: "enum" in json.dumps(body), "enum with null"),
    "key": (lambda body: "filter[x]" in json.dumps(body), "keys such as filter[x]"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_a_server_refuses_is_not_a_yes(what: str) -> None:
    refuses, check = REFUSALS[what]
    found = asked(lambda body: Fault(400, error_body("not here")) if refuses(body) else answer(body))
    assert found[check].answer != "yes" and "not here" in found[check].note
    assert not ({name for name, one in found.items() if one.answer != "yes"} - {check}) or what == "tools"


def test_a_model_that_says_nonsense_is_found_by_the_first_question() -> None:
    found = asked(lambda body: reply("The the the."))
    assert found["answers a question"].answer == "no" and probe.mode([*found.values()]) == "prompt"


def test_the_command_ends_with_the_line_that_fits(rbtc: Rbtc) -> None:
    with LoopbackServer(answer) as server:
        done = rbtc("probe", "tiny", "--base-url", server.url)
        assert done.code == 0 and done.out.rstrip().endswith("--mode fc")
        found = json.loads(rbtc("probe", "tiny", "--base-url", server.url, "--json").out)
        assert found["findings"][0] == {"check": "model listed", "answer": "yes", "note": ""}
    with LoopbackServer(lambda body: reply("No.")) as server:
        done = rbtc("probe", "tiny", "--base-url", server.url)
        assert done.code == 1 and "exits with 1: every run needs 'answers a question', " in done.out


def test_eval_asks_five_questions_first_and_once_a_run(release: Path, tmp_path: Path, rbtc: Rbtc) -> None:
    asked = ["eval", release, "--model", "tiny", "--out", tmp_path / "run", "--no-score", "--no-early-stop"]
    with LoopbackServer(lambda body: reply("No.")) as server:
        done = rbtc(*asked, "--base-url", server.url, "--limit", 1)
        rows = len(server.bodies) - 5
        assert done.code == 0 and "answers a question: no." in done.err and "native call: no." in done.err
        again = rbtc(*asked, "--base-url", server.url, "--limit", 3)
        assert "answers a question" not in again.err and 0 < rows < len(server.bodies) - 5
    with LoopbackServer(lambda body: reply("No.")) as server:
        rbtc(*asked, "--fresh", "--base-url", server.url, "--limit", 1, "--no-probe")
        assert len(server.bodies) == rows
