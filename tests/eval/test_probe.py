"""`rbtc probe` names what a server does to a model that is perfect."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api
from robustbench_tc.eval import probe
from robustbench_tc.eval.record import Finding

from ..conftest import Rbtc
from ..loopback import Fault, LoopbackServer, error_body, reply
from .test_delivered import LOSSY, RECOVERABLE

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


def asked(handler: Callable[[Body], Any], **options: Any) -> dict[str, Finding]:
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
    others = {name for name, one in found.items() if one.answer != "yes"} - {check}
    assert not others or what == "tools"


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
        assert rbtc("probe", "tiny", "--base-url", server.url).code == 1


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
