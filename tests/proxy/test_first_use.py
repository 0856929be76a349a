"""What goes wrong at a first try: every message names the way out."""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from robustbench_tc.api import proxied
from robustbench_tc.errors import UserError
from robustbench_tc.proxy import journal
from robustbench_tc.proxy.door import Door
from robustbench_tc.proxy.plan import Plan
from robustbench_tc.proxy.relay import serving
from robustbench_tc.result_faults import Fault

from ..conftest import Done
from .items_server import response
from .scripted import Script, chat_reply
from .test_dialects import FLAT
from .test_door import ASKED, BUDGET, CHEAP, GET, PAY, TOOLS
from .test_own import rows
from .wire import Answer, Seen, send, serving as server_of

Json = Any
BODY = json.dumps({"model": "m", "messages": ASKED, "tools": TOOLS}).encode()
FAULTS = Plan(faults=(Fault(kind="transient_timeout", rate=0.5),))


@contextmanager
def first(
    handler: Callable[[Seen], Answer], plan: Plan, folder: Path, code: str = "CD"
) -> Iterator[tuple[str, list[str]]]:
    """A door over own cases, and what it says to its user."""
    said: list[str] = []
    with (
        server_of(handler) as server,
        serving(
            Door(server.url, plan, rows=rows(folder, code), journal=folder / "j", say=said.append)
        ) as url,
    ):
        yield url.removesuffix("/v1"), said


def message(url: str, body: bytes = BODY, **headers: str) -> tuple[int, str]:
    got = send(url, body, headers)
    return got.status, str(json.loads(got.body)["error"]["message"])


def test_a_wrong_base_url_is_answered_with_the_right_one(tmp_path: Path) -> None:
    script = Script(chat_reply([], "Hi"))
    with first(script, FAULTS, tmp_path) as (url, _):
        right = f"the base URL is {url}/v1, or {url}/s/<case>.<repeat>/v1"
        for path in ("/chat/completions", "/s/a.0/chat/completions", "/s/a.0/v1/v1/chat/completions", "/"):
            status, said = message(f"{url}{path}")
            assert status == 404 and right in said and path in said, path
            assert ("has /v1 twice" in said) == ("/v1/v1" in path)
        for name in ("CASE.REPEAT", "a", "a.x", "a.-1"):
            status, said = message(f"{url}/s/{name}/v1/chat/completions")
            assert status == 400 and "is not written <case>.<repeat>, such as refund-17.0" in said
        status, said = message(f"{url}/s/a.0/v1/chat/completions", b"{nope")
        assert status == 400 and "has to be a JSON object" in said
        assert not script.bodies
        assert send(f"{url}/s/a.0/v1/chat/completions", BODY).status == 200
        header = {"X-RBTC-Session": "a.0"}
        assert send(f"{url}/v1/chat/completions", BODY, header).status == 200
    with first(script, Plan(bench="own", types=("CD",)), tmp_path) as (url, _):
        status, said = message(f"{url}/v1/chat/completions")
        assert status == 400 and "…/s/<case>.<repeat>/v1, or the header X-RBTC-Session" in said


def test_a_case_that_is_not_there_is_said_to_the_user(tmp_path: Path) -> None:
    with first(Script(chat_reply([], "Hi")), Plan(bench="own", types=("CD",)), tmp_path) as (url, said):
        for name in ("refund17.0", "refund17.0", "wholly.0"):
            assert send(f"{url}/s/{name}/v1/chat/completions", BODY).status == 200
    assert said == [
        "session refund17.0: unknown case; did you mean refund-17?; the request passes "
        "unchanged (said once; the journal has all)"
    ]


def test_requests_of_another_api_pass_and_are_noted(tmp_path: Path) -> None:
    with first(lambda seen: Answer(), Plan(bench="own", types=("CD",)), tmp_path) as (url, said):
        for path in ("/messages/batches", "/completions", "/embeddings", "/models"):
            assert send(f"{url}/s/refund-17.0/v1{path}", BODY).body == b"{}"
    assert [one.skipped for one in journal.read_exchanges(tmp_path / "j")] == ["path_is_not_perturbed"] * 2
    assert len(said) == 1 and "path is not perturbed" in said[0]


def test_a_server_that_refuses_is_explained_and_no_key_is_shown(tmp_path: Path) -> None:
    def refuses(seen: Seen) -> Answer:
        key = seen.headers.get("Authorization", "")
        if not key:
            return Answer([b'{"error": {"message": "no such route"}}'], 404)
        return Answer([json.dumps({"error": {"message": f"Incorrect API key: {key}"}}).encode()], 401)

    with first(refuses, Plan(bench="own", types=("CD",)), tmp_path) as (url, said):
        talk = [{"role": "user", "content": "Get order 7."}]
        body = json.dumps({"messages": talk, "tools": TOOLS}).encode()
        place = f"{url}/s/two.0/v1/chat/completions"
        for headers in ({}, {"Authorization": "Bearer sk-secret-1"}, {"Authorization": "Bearer sk-secret-1"}):
            status, text = message(place, body, **headers)
            assert status in (401, 404) and (not headers or "sk-secret-1" in text)  # the server's own words
    assert len(said) == 2 and "as a rule in /v1" in said[0] and "give the key to the agent" in said[1]
    assert "sk-secret" not in "".join(said) + (tmp_path / "j").read_text()


def test_a_server_that_is_down_is_one_line(tmp_path: Path) -> None:
    said: list[str] = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with serving(Door(gone, BUDGET, say=said.append)) as url:
            for _ in range(2):
                status, text = message(f"{url}/chat/completions")
                assert (
                    status == 502 and text == f"rbtc proxy: {gone} cannot be reached: is the server running?"
                )
    assert said == [
        "session client.0 begins",
        f"a request failed: {gone} cannot be reached: is the server running? (said once; the journal has "
        "all)",
        "session client.1 begins",
    ]


def test_a_plan_that_asks_for_nothing_says_so(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("version: 1\n")
    said: list[str] = []
    with proxied(tmp_path / "plan.yaml", upstream="http://127.0.0.1:9/v1", say=said.append):
        assert "no types, faults or defences" in said[0]


def test_a_port_that_is_taken_and_a_plan_that_is_missing(rbtc: Callable[..., Done], tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("version: 1\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(
                UserError, match=rf"--port {port}: .*in use\): choose another, or 0 for a free one"
            ),
            proxied(plan, upstream="http://127.0.0.1:9/v1", port=port),
        ):
            pass
    assert (
        "no.yaml: not a plan: there is no such file"
        in rbtc("proxy", "--upstream", "http://127.0.0.1:9/v1", "--plan", tmp_path / "no.yaml").refusal
    )
    assert (
        "leave out what stands behind /v1"
        in rbtc("proxy", "--upstream", "http://127.0.0.1:9/v1/chat/completions", "--plan", plan).refusal
    )
    assert "--plan requires an argument" in rbtc("proxy", "--upstream", "http://127.0.0.1:9/v1").err


# --- OpenAI's own client behind the door: it is left as it is, and reads what the door writes


def client(url: str) -> Json:
    return openai.OpenAI(base_url=url.replace("/v1", "/s/refund-17.0/v1"), api_key="sk-mine", max_retries=0)


def test_chat_completions_whole_streamed_and_at_once(tmp_path: Path) -> None:
    script = Script(chat_reply([CHEAP, GET, PAY], "Let me see."))
    asked: dict[str, Json] = {"model": "m", "messages": ASKED, "tools": TOOLS}

    async def at_once(url: str) -> list[Json]:
        header = {"X-RBTC-Session": "refund-17.1"}
        async with openai.AsyncOpenAI(base_url=url, api_key="sk-mine", default_headers=header) as own:
            return await asyncio.gather(*(own.chat.completions.create(**asked) for _ in range(3)))

    with server_of(script) as server, serving(Door(server.url, BUDGET, journal=tmp_path / "j")) as url:
        with (
            client(url) as own,
            own.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream,
        ):
            streamed = stream.get_final_completion()
        whole = asyncio.run(at_once(url))
    assert streamed.choices[0].message.content == "Let me see." and streamed.usage.total_tokens == 5
    found = [one.choices[0].message.tool_calls for one in (streamed, *whole)]
    assert [[(one.function.name, one.function.arguments) for one in made] for made in found] == [
        [GET, PAY]
    ] * 4
    assert {seen.headers["Authorization"] for seen in server.seen} == {"Bearer sk-mine"}
    assert {one.session for one in journal.read_exchanges(tmp_path / "j")} == {"refund-17.0", "refund-17.1"}


def test_responses_whole_and_streamed() -> None:
    script = Script(response([CHEAP, GET, PAY], "Let me see."))
    with server_of(script) as server, serving(Door(server.url, BUDGET)) as url, client(url) as own:
        whole = own.responses.create(model="m", input="Refund order 7.", tools=FLAT)
        with own.responses.stream(model="m", input="Refund order 7.", tools=FLAT) as stream:
            streamed = stream.get_final_response()
    for found in (whole, streamed):
        assert found.output_text == "Let me see."
        assert [(one.name, one.arguments) for one in found.output if one.type == "function_call"] == [
            GET,
            PAY,
        ]


def test_an_error_of_the_door_is_one_that_the_client_knows() -> None:
    with (
        server_of(Script(chat_reply([], "Hi"))) as server,
        serving(Door(server.url, BUDGET)) as url,
        client(url) as own,
        pytest.raises(openai.BadRequestError, match="'n' is not supported"),
    ):
        own.chat.completions.create(model="m", messages=ASKED, tools=TOOLS, n=2)
