"""A user's own settings: on the wire, in the run record and its identity, from options and from a file."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api
from robustbench_tc.errors import UserError
from robustbench_tc.eval import models, request_settings, vllm
from robustbench_tc.llm.store import Store

from ..conftest import ROOT, Rbtc
from ..loopback import Fault, LoopbackServer, error_body, reply
from ..refusals import refuses

pytestmark = pytest.mark.usefixtures("new_folder")

SECRET = "tok-planted-0123456789"


def lower(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def record_of(run: str = "run") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(run, "run.json").read_text())
    return found


def clean_rows(release: Path, server: LoopbackServer) -> tuple[object, ...]:
    """The command that asks the clean rows."""
    endpoint = ("--model", "tiny", "--base-url", server.url)
    return ("eval", release, "--no-probe", *endpoint, "--types", "clean", "--out", "run")


OPTIONS = (
    "--top-p", 0.9, "--top-k", 20, "--stop", "END", "--stop", "\n\n", "--reasoning-effort", "low",
    "--extra-body", '{"min_p": 0.05, "max_tokens": null}', "--header", f"X-Token={SECRET}",
    "--chat-template-arg", "enable_thinking=true", "--chat-template-arg", "date=2026-11-22",
    "--max-cost", 5, "--price", "0.5,2",
)  # fmt: skip


# --- on the wire and in the record --------------------------------------------------------------------


def test_every_setting_reaches_the_endpoint_and_the_record(
    rbtc: Rbtc, release: Path, server: LoopbackServer
) -> None:
    Path("system.txt").write_text("You are careful.\n")
    base = clean_rows(release, server)
    said = rbtc(*base, *OPTIONS, "--system", "system.txt")
    body, headers = server.bodies[-1], server.headers[-1]
    assert said.code == 0, said.err
    sent = {name: value for name, value in body.items() if name not in ("model", "messages", "tools")}
    count = server.count
    assert (rbtc(*base, *OPTIONS, "--system", "system.txt").code, server.count) == (0, count)
    decoding = {
        "temperature": 0.0, "top_p": 0.9, "top_k": 20, "stop": ["END", "\n\n"], "reasoning_effort": "low",
        "min_p": 0.05, "chat_template_kwargs": {"date": "2026-11-22", "enable_thinking": True},
    }  # fmt: skip
    assert sent == decoding
    assert lower(headers)["x-token"] == SECRET
    assert body["messages"][0]["role"] == "system"
    assert body["messages"][0]["content"] == "You are careful."
    there = record_of()
    assert there["settings"]["decoding"] == decoding
    assert (there["settings"]["system"], there["settings"]["headers"]) == ("You are careful.", ["x-token"])
    first = there["sessions"][0]
    assert re.fullmatch(r"[0-9a-f]{8}", first["headers"]["x-token"])
    assert first["cost"] == pytest.approx(5 * (10 * 0.5 + 5 * 2) / 1e6) and there["sessions"][1]["cost"] == 0
    for file in Path("run").rglob("*"):
        assert SECRET.encode() not in file.read_bytes(), file
    assert SECRET not in said.out + said.err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--top-p", 0.8), "top_p: not set there, 0.8 here"),
        (("--stop", "X"), 'stop: not set there, ["X"] here'),
        (("--extra-body", '{"min_p": 0.1}'), "min_p: not set there, 0.1 here"),
        (("--header", "X-Team=a"), 'headers: not set there, ["x-team"] here'),
        (("--chat-template-arg", "a=1"), 'chat_template_kwargs: not set there, {"a":1} here'),
        (("--system", "system.txt"), 'system: not set there, "Be brief." here'),
    ],
)
def test_another_setting_is_another_run(
    rbtc: Rbtc, release: Path, words: Any, line: str, server: LoopbackServer
) -> None:
    Path("system.txt").write_text("Be brief.")
    base = clean_rows(release, server)
    assert rbtc(*base).code == 0
    before = server.count
    said = rbtc(*base, *words)
    assert said.code == 1 and f"run with other settings: {line}" in said.err
    assert server.count == before


def test_cost_and_the_value_of_a_header_are_no_part_of_the_identity(
    rbtc: Rbtc, release: Path, server: LoopbackServer
) -> None:
    base = clean_rows(release, server)
    assert rbtc(*base, "--header", f"X-Token={SECRET}", "--price", "1,1", "--max-cost", 9).code == 0
    before = server.count
    assert rbtc(*base, "--header", "X-Token=another-value", "--price", "2,2").code == 0
    assert server.count == before
    one, two = (session["headers"]["x-token"] for session in record_of()["sessions"])
    assert one != two


def test_what_is_asked_for_where_nobody_says_otherwise() -> None:
    plain = {"temperature": 0.0, "max_tokens": 1024}
    assert request_settings.settle(None, request_settings.RequestOptions()).decoding == plain
    found = request_settings.settle(models.find("qwen3-8b"), request_settings.RequestOptions()).decoding
    assert found == plain | {"chat_template_kwargs": {"enable_thinking": False}}


def test_a_limit_of_cost_holds_over_all_sessions_of_a_run(
    rbtc: Rbtc, release: Path, server: LoopbackServer
) -> None:
    base = (
        "eval",
        "--no-probe",
        release,
        "--model",
        "tiny",
        "--base-url",
        server.url,
        "--out",
        "run",
        "--concurrency",
        1,
    )
    limit = ("--price", "1,2", "--max-cost", 0.0001)  # 20 millionths a reply
    assert "stopped: 0.0001 spent, the limit is 0.0001" in rbtc(*base, *limit).refusal
    assert server.count == 5
    assert rbtc(*base, *limit).code == 1 and server.count == 5
    assert rbtc(*base, "--price", "1,2", "--max-cost", 1).code == 0


def test_requests_under_way_when_the_limit_is_reached_are_kept(
    rbtc: Rbtc, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are paid for; neither a slow endpoint nor a slow disk loses their answers."""
    put = Store.put

    async def late(store: Store, key: str, record: dict[str, Any]) -> None:
        await asyncio.sleep(0.1)
        await put(store, key, record)

    def slow_at_last(_: dict[str, Any]) -> Fault:
        return Fault(200, reply("[ping(a=1)]"), hang_s=0.5 if server.count > 4 else 0)

    monkeypatch.setattr(Store, "put", late)
    with LoopbackServer(slow_at_last) as server:
        said = rbtc(
            "eval", release, "--no-probe", "--model", "tiny", "--base-url", server.url, "--out", "run",
            "--concurrency", 4, "--no-share", "--price", "1,2", "--max-cost", 0.0001,
        )  # fmt: skip
        assert said.code == 1 and 5 < server.count <= 8
    journal = [json.loads(line) for line in Path("run/journal.jsonl").read_text().splitlines()]
    assert [line["status"] for line in journal] == ["ok"] * server.count


def test_what_an_endpoint_refuses_is_left_out_once_and_noted(rbtc: Rbtc, release: Path) -> None:
    def picky(body: dict[str, Any]) -> Any:
        if "top_k" in body:
            return Fault(400, error_body("Unrecognized request argument supplied: top_k"))
        if "logprobs" in body:
            return Fault(403, error_body("You are not allowed to request logprobs from this model"))
        return reply("[ping(a=1)]")

    with LoopbackServer(picky) as server:
        said = rbtc(
            "eval", release, "--no-probe", "--model", "tiny", "--base-url", server.url, "--types", "clean",
            "--out", "run", "--top-k", 5, "--logprobs", "--concurrency", 1,
        )  # fmt: skip
        assert server.count == 5 + 2
    assert said.code == 0, said.err
    assert "the endpoint does not take top_k, logprobs: left out of the requests" in said.err
    assert record_of()["sessions"][0]["left_out"] == ["top_k", "logprobs"]
    assert record_of()["settings"]["decoding"]["top_k"] == 5


def test_a_refused_value_is_said_at_once(rbtc: Rbtc, release: Path) -> None:
    words = "Unsupported value: 'reasoning_effort' does not support 'tiny'. Supported values are: 'low'."
    refusal = Fault(400, error_body(words, "unsupported_value", "reasoning_effort"))
    with LoopbackServer(lambda body: refusal) as server:
        said = rbtc(
            "eval", release, "--model", "m", "--base-url", server.url, "--reasoning-effort", "tiny",
            "--concurrency", 1, "--out", "run",
        )  # fmt: skip
        assert said.code == 1 and server.count <= 2
    assert "refuses the value of reasoning_effort (HTTP 400: Unsupported value" in said.err


# --- from a file --------------------------------------------------------------------------------------


FILE = """
model = "tiny"
types = ["clean"]
temperature = 0.5
top-p = 0.9
stop = "END"
system = "system.txt"
price = [0.5, 2]
max_cost = 3
min_p = 0.05
logprobs = true

[headers]
X-Token = "{secret}"

[chat_template_arg]
enable_thinking = false
effort = "max"

[extra_body]
repetition_penalty = 1.1

[response_format]
type = "text"
"""


def test_a_file_says_the_same_and_the_command_line_wins(
    rbtc: Rbtc, release: Path, server: LoopbackServer
) -> None:
    Path("sub").mkdir()
    Path("sub/run.toml").write_text(FILE.replace("{secret}", SECRET))
    Path("sub/system.txt").write_text("Be brief.")
    base = ("eval", release, "--no-probe", "--config", "sub/run.toml", "--base-url", server.url)
    said = rbtc(*base, "--out", "a")
    assert said.code == 0, said.err
    a, headers = server.bodies[-1], server.headers[-1]
    said_b = rbtc(*base, "--out", "b", "--top-p", 0.7, "--extra-body", '{"min_p": 0.2}', "--model", "other")
    assert said_b.code == 0, said_b.err
    b = server.bodies[-1]
    assert "is sent unchanged in every request: min_p, response_format" in said.err
    expected = {
        "model": "tiny", "temperature": 0.5, "max_tokens": 1024, "top_p": 0.9, "stop": ["END"], "min_p": 0.05,
        "logprobs": True, "repetition_penalty": 1.1, "response_format": {"type": "text"},
        "chat_template_kwargs": {"effort": "max", "enable_thinking": False},
    }  # fmt: skip
    assert {name: value for name, value in a.items() if name not in ("messages", "tools")} == expected
    assert lower(headers)["x-token"] == SECRET and a["messages"][0]["content"] == "Be brief."
    expected |= {"model": "other", "top_p": 0.7, "min_p": 0.2}
    assert {name: value for name, value in b.items() if name not in ("messages", "tools")} == expected
    assert SECRET not in said.out + said.err + Path("a/run.json").read_text()


def test_the_file_on_the_page_is_read(rbtc: Rbtc, release: Path) -> None:
    page = (ROOT / "docs" / "evaluating.md").read_text()
    [block] = re.findall(r"```toml\n(# run\.toml.*?)```", page, re.DOTALL)
    with LoopbackServer(lambda body: reply("[ping(a=1)]"), models=["my-model"]) as server:
        Path("run.toml").write_text(block.replace("http://localhost:8000/v1", server.url))
        said = rbtc(
            "eval", release, "--config", "run.toml", "--types", "clean", "--out", "run", "--top-p", 0.9
        )
        body = server.bodies[-1]
    assert said.code == 0, said.err
    assert (body["model"], body["top_p"], body["min_p"]) == ("my-model", 0.9, 0.05)
    assert record_of()["sessions"][0]["cost"] > 0


def test_a_near_miss_in_a_file_is_noted(rbtc: Rbtc, release: Path, server: LoopbackServer) -> None:
    Path("run.toml").write_text("temperatur = 0.5\n")
    said = rbtc("eval", release, "--config", "run.toml", "--model", f"tiny@{server.url}", "--limit", 1)
    assert "temperatur (did you mean temperature?)" in said.err


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("top_p = ", 2, "--config run.toml: Invalid value (at end of document)"),
        ("top_p = true", 2, "--config run.toml: top_p: Expected `float | null`, got `bool`"),
        ("top_p = 2026-11-22", 2, "--config run.toml: top_p: Expected `float | null`, got `date`"),
        ("top_k = 1.5", 2, "--config run.toml: top_k: Expected `int | null`, got `float`"),
        ("top_p = 7", 1, "top_p: Expected `float` <= 1.0"),
        ("logprobs = 1", 2, "--config run.toml: logprobs: Expected `bool`, got `int`"),
        ("when = 2026-11-22", 1, "extra_body: JSON cannot hold it: Object of type date"),
        ("min_p = nan", 1, "extra_body: JSON cannot hold it: Out of range float"),
        ("fresh = true", 2, "fresh can only be given on the command line"),
        ("header = 'tok-planted-0123456789'", 2, "--config run.toml: --header: write NAME=VALUE"),
        ("api_key = 'tok-planted-0123456789'", 1, "extra_body: api_key would be written to the run record"),
        ("header = {A = 'b'}\nheaders = {A = 'b'}", 2, "headers occurs twice"),
        ("messages = []", 1, "extra_body: the harness itself sends messages"),
        ("extra_body = {top_k = 1}\ntop_k = 2", 1, "top_k is both in extra_body and an option"),
        ("extra_body = 3", 2, "--config run.toml: extra_body: expected a table of names with values"),
        ("system = 'none.txt'", 2, "--system: none.txt: No such file"),
        ("price = [1]\nmax_cost = 1", 2, "--price: write IN,OUT"),
    ],
)
def test_a_wrong_file_is_one_line(rbtc: Rbtc, release: Path, text: str, code: int, line: str) -> None:
    Path("run.toml").write_text(text)
    said = rbtc(
        "eval", release, "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--config", "run.toml"
    )
    assert said.code == code and line in said.err.splitlines()[-1], said.err
    assert SECRET not in said.err and "Traceback" not in said.err


def test_a_wrong_option_is_one_line(rbtc: Rbtc, release: Path, subtests: pytest.Subtests) -> None:
    cases = [
        (("--config", "none.toml"), 2, "none.toml"),
        (("--extra-body", "{"), 2, "--extra-body: not a JSON object: "),
        (("--extra-body", "[1]"), 2, "--extra-body: not a JSON object: Expected `object`, got `array`"),
        (("--extra-body", "[" * 100_000), 2, "--extra-body: not a JSON object"),
        (("--extra-body", '{"n": 2}'), 1, "extra_body: the harness itself sends n"),
        (("--extra-body", '{"extra_headers": {}}'), 1, "extra_body: extra_headers would be written to"),
        (("--extra-body", '{"top_k": 2}', "--top-k", 3), 1, "top_k is both in extra_body and an"),
        (("--header", f"X-Token: {SECRET}"), 2, "--header: write NAME=VALUE (not NAME: VALUE, as for curl)"),
        (("--header", f"={SECRET}"), 2, "--header: write NAME=VALUE"),
        (("--header", f"X-T={SECRET}\nX-U: 1"), 1, "headers[...]: Expected `str` matching regex"),
        (("--header", f"Host={SECRET}"), 1, "header Host: the client itself sets it"),
        (("--header", f"a=1{SECRET}", "--header", f"A={SECRET}"), 1, "header A is given twice"),
        (("--header", "X-Token="), 1, "headers[...]: Expected `str` matching regex"),
        (("--chat-template-arg", "thinking"), 2, "--chat-template-arg: write NAME=VALUE"),
        (("--top-p", 0), 1, "top_p: Expected `float` > 0.0"),
        (("--top-p", "nan"), 1, "top_p: Expected `float` > 0.0"),
        (("--top-k=-2",), 1, "top_k: Expected `int` >= -1"),
        (("--stop", ""), 1, "stop[0]: Expected `str` of length >= 1"),
        (("--reasoning-effort", "very high"), 1, "reasoning_effort: Expected `str` matching regex"),
        (("--max-cost", 1), 1, "a cost limit needs the prices per million prompt and completion tokens"),
        (("--max-cost", "nan", "--price", "1,1"), 1, "max_cost: Expected `float` >= 0.0"),
        (("--price", "1"), 2, "--price: write IN,OUT"),
        (("--price", "1,inf"), 1, "price[1]: Expected `float` <= 1.79"),
        (("--system", "none.txt"), 2, "--system: none.txt: No such file"),
        (("--system", "empty.txt"), 1, "system: Expected `str` matching regex"),
    ]
    for words, code, line in cases:
        with subtests.test(line):
            Path("empty.txt").write_text(" \n")
            said = rbtc("eval", release, "--model", "m", "--base-url", "http://127.0.0.1:9/v1", *words)
            assert said.code == code and line in said.err.splitlines()[-1], said.err
            assert SECRET not in said.err and "Traceback" not in said.err and not Path("runs").exists()


def test_an_agent_takes_no_system_text(rbtc: Rbtc, release: Path) -> None:
    Path("s.txt").write_text("Be brief.")
    for words in (("--system", "s.txt"), ("--system-as-user",)):
        said = rbtc("eval", release, "--agent", "oracle", *words).refusal
        assert "leave --system and --system-as-user out" in said


# --- from Python --------------------------------------------------------------------------------------


def test_the_settings_from_python(release: Path, tmp_path: Path, server: LoopbackServer) -> None:
    done = api.evaluate(
        release, model="tiny", base_url=server.url, types="clean", out=tmp_path / "run", top_p=0.5,
        stop="END", system="Be brief.", headers={"X-Token": SECRET}, extra_body={"min_p": 0.1},
        chat_template_args={"a": 1}, price=(1.0, 2.0), max_cost=1.0,
    )  # fmt: skip
    body = server.bodies[-1]
    assert (body["top_p"], body["stop"], body["min_p"]) == (0.5, ["END"], 0.1)
    assert body["chat_template_kwargs"] == {"a": 1}
    assert done.folder.record.settings.headers == ("x-token",)
    with pytest.raises(TypeError, match="unexpected keyword argument 'topp'"):
        api.evaluate(release, model="m", topp=1)  # type: ignore[call-arg]
    assert SECRET not in repr(
        request_settings.settle(None, request_settings.RequestOptions(headers={"X-Token": SECRET}))
    )


def test_what_json_cannot_hold_is_refused() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    for value in (deep, {"a": {1, 2}}, {"a": "\ud83d"}):
        refuses(r"^extra_body: JSON cannot hold it: ", request_settings.json_object, "extra_body", value)


def test_vllm_in_this_process_takes_what_it_has_a_place_for() -> None:
    vllm.check_takes(
        request_settings.settle(
            None, request_settings.RequestOptions(top_k=3, stop="x", extra_body={"min_p": 0.1}, logprobs=True)
        )
    )
    for options, line in (
        ({"headers": {"X-A": "b"}}, "--header: vLLM in this process is called without HTTP"),
        ({"reasoning_effort": "low"}, "--chat-template-arg reasoning_effort="),
        ({"extra_body": {"tool_choice": "auto"}}, "vLLM in this process takes no tool_choice"),
    ):
        with pytest.raises(UserError, match=line):
            vllm.check_takes(request_settings.settle(None, request_settings.RequestOptions(**options)))
    assert request_settings.RequestSettings(decoding={}).header_digests == {}
