"""The client and its store against a real server on the loopback interface: no mock, no network."""

import asyncio
import errno
import logging
import os
import re
import socket
import time
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from robustbench_tc.errors import UserError
from robustbench_tc.llm import (
    ChatRequest,
    Client,
    Completion,
    Endpoint,
    LLMError,
    Stats,
    Store,
    completion,
    parse_endpoint,
    transport,
)
from robustbench_tc.llm.errors import from_status

from . import loopback
from .commands import running
from .loopback import Fault, LoopbackServer, error_body, in_order, reply
from .refusals import refuses

KEY = "sk-planted-0123456789abcdef"


def ask(text: str = "Hi", **params: Any) -> ChatRequest:
    return ChatRequest([{"role": "user", "content": text}], params=params)


def run(
    server: LoopbackServer, *requests: ChatRequest, model: str = "tiny", **options: Any
) -> tuple[list[Completion | BaseException], Stats]:
    """Asks everything at once; what failed comes back as its exception."""

    async def all_of_them() -> tuple[list[Completion | BaseException], Stats]:
        settings = {"backoff_s": 0.001, "timeout_s": 5.0, **options}
        async with Client(Endpoint(model, server.url), **settings) as client:
            asked = (client.complete(request) for request in requests)
            return await asyncio.gather(*asked, return_exceptions=True), client.stats

    return asyncio.run(all_of_them())


def only(found: tuple[list[Completion | BaseException], Stats]) -> Completion:
    (one,), _ = found
    assert isinstance(one, Completion), one
    return one


def failure(found: tuple[list[Completion | BaseException], Stats]) -> LLMError:
    (one,), _ = found
    assert isinstance(one, LLMError), one
    return one


# --- endpoints ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "model", "url"),
    [
        ("gpt-5-mini", "gpt-5-mini", None),
        ("qwen3-8b@http://localhost:8000/v1", "qwen3-8b", "http://localhost:8000/v1"),
        ("org/model@rev@https://u:p@host/v1", "org/model@rev", "https://u:p@host/v1"),
    ],
)
def test_an_endpoint_is_a_model_and_perhaps_an_address(spec: str, model: str, url: str | None) -> None:
    found = parse_endpoint(spec)
    assert (found.model, found.base_url) == (model, url)


@pytest.mark.parametrize("spec", ["", "@http://h/v1", "tiny@localhost:8000/v1", "a b", "tiny@host:80"])
def test_a_wrong_endpoint_is_one_line(spec: str) -> None:
    refuses(r"^endpoint .*(expected MODEL|begins with http)", parse_endpoint, spec)


def test_an_endpoint_never_shows_its_secrets() -> None:
    endpoint = Endpoint("tiny", "http://user:secret@host:1/v1?k=secret", KEY)
    for text in (repr(endpoint), str(endpoint), f"{endpoint}"):
        assert KEY not in text
    assert "secret" not in str(endpoint)


def test_openai_needs_a_key_and_a_local_endpoint_does_not() -> None:
    refuses("OPENAI_API_KEY", Endpoint("gpt-5-mini").resolved, {})
    assert Endpoint("tiny", "http://localhost:1/v1/").resolved({}).base_url == "http://localhost:1/v1"
    assert Endpoint("gpt-5-mini").resolved({"OPENAI_API_KEY": f"{KEY}\n"}).api_key == KEY
    caught = refuses("header", Endpoint("gpt-5-mini").resolved, {"OPENAI_API_KEY": f"{KEY}\nX-Other: 1"})
    assert KEY not in caught


@pytest.mark.parametrize(
    ("model", "reasoning"),
    [
        *((name, True) for name in ("o1", "o4-mini", "o3-2025-04-16", "gpt-5-mini", "openai/gpt-5.4")),
        *((name, False) for name in ("gpt-5-chat-latest", "gpt-4o-mini", "olmo-2", "gpt-50")),
    ],
)
def test_reasoning_endpoints_are_known_by_name(model: str, reasoning: bool) -> None:
    assert Endpoint(model).is_reasoning is reasoning
    assert Endpoint(model, reasoning=not reasoning).is_reasoning is not reasoning


# --- one answer ---------------------------------------------------------------------------------------


def test_a_completion_carries_all_that_the_reply_says() -> None:
    said = reply("Well.", [("geo.find", '{"q": 1')], usage=(7, 3), reasoning_content="Hm.", model="tiny-v2")
    said["choices"][0]["logprobs"] = {"content": []}
    with LoopbackServer(lambda body: said) as server:
        done = only(run(server, ask(temperature=0, max_tokens=9, extra_body={"top_k": 4})))
    assert done.text == "Well."
    assert done.tool_calls == [{"id": "call_0", "name": "geo.find", "arguments": '{"q": 1'}]
    assert (done.finish_reason, done.model, done.reasoning) == ("tool_calls", "tiny-v2", "Hm.")
    assert (done.prompt_tokens, done.completion_tokens, done.retries) == (7, 3, 0)
    assert done.logprobs == {"content": []} and done.latency_s > 0 and not done.replayed
    assert server.bodies == [
        {"model": "tiny", "messages": [{"role": "user", "content": "Hi"}]}
        | {"temperature": 0, "max_tokens": 9, "top_k": 4}
    ]


@pytest.mark.parametrize(
    ("message", "text", "calls"),
    [
        ({"content": None}, "", None),
        ({}, "", None),
        ({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}]}, "ab", None),
        ({"content": None, "refusal": "I will not."}, "I will not.", None),
        ({"function_call": {"name": "f", "arguments": "{}"}}, "", [("call_0", "f", "{}")]),
        (
            {
                "tool_calls": [
                    {"function": {"name": "f", "arguments": {"a": 1}}},
                    {"id": 7, "function": {"name": "g"}},
                ]
            },
            "",
            [("call_0", "f", '{"a":1}'), ("7", "g", "")],
        ),
    ],
)
def test_odd_but_honest_replies_are_answers(message: Any, text: str, calls: Any) -> None:
    done = completion({"choices": [{"message": message}]})
    assert done.text == text
    found = [(call["id"], call["name"], call["arguments"]) for call in done.tool_calls or ()]
    assert (found or None) == calls


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["choices", "message", "content", "tool_calls", "function", "name", "usage", "model"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_a_server_sends_is_an_answer_or_an_error_with_a_code(value: Any) -> None:
    try:
        done = completion({"choices": [{"message": value}], "usage": value} if value else value)
    except LLMError as error:
        assert error.code in ("not_a_completion", "empty_choices") and error.retryable
    else:
        assert isinstance(done.text, str)


@pytest.mark.parametrize("tokens", [-1, 2**63 - 1, 2**64, 10**30])
def test_a_number_of_tokens_that_is_none_is_not_kept(tokens: int) -> None:
    """It would end the run in the file of predictions, and every later start with it."""
    done = completion(loopback.reply("fine", usage=(tokens, 5)))
    assert (done.prompt_tokens, done.completion_tokens) == (None, 5)


def test_half_a_surrogate_in_a_reply_is_still_an_answer() -> None:
    body = '{"choices": [{"message": {"content": "a \\ud83d b"}}], "usage": null}'
    with LoopbackServer(lambda _: Fault(200, body, {"Content-Type": "application/json"})) as server:
        assert only(run(server, ask())).text == "a � b"


# --- faults -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        loopback.rate_limit("0.01"),
        loopback.rate_limit("Thu, 01 Jan 1970 00:00:00 GMT"),
        loopback.rate_limit("soon"),
        loopback.SERVER_ERROR,
        loopback.UNAVAILABLE,
        Fault(408, "slow"),
        Fault(409, "busy"),
        loopback.HTML,
        loopback.EMPTY_CHOICES,
        loopback.DROP,
        Fault(200, {"error": {"message": "upstream died"}}),
        Fault(200, {"choices": [{"index": 0}]}),
        Fault(200, "[" * 100_000),
        Fault(200, ""),
    ],
)
def test_passing_faults_are_asked_again_and_counted(fault: Fault) -> None:
    with LoopbackServer(in_order([fault, fault], lambda _: "fine")) as server:
        found = run(server, ask())
    assert (only(found).text, only(found).retries, server.count) == ("fine", 2, 3)
    assert (found[1].requests, found[1].retries, found[1].answered) == (3, 2, 1)


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
GONE = Fault(0)
NO_TOOLS = Fault(400, error_body('"auto" tool choice requires --enable-auto-tool-choice'))

FAULTS = {
    "nobody listens": (GONE, r"^nothing answers at http://127\S+ \(Connect call failed", 1),
    "no reply": (loopback.HANG, r"^timeout: no reply within 0\.3 s$", 3),
    "connection dropped": (loopback.DROP, "^connection: Server disconnected", 3),
    "reply cut off": (loopback.CUT_OFF, "^connection: .*payload is not completed", 3),
    "too many requests": (loopback.rate_limit("0"), r"^rate_limit: HTTP 429: .* \(Retry-After: 0 s\)$", 3),
    "quota": (Fault(429, error_body("Out of quota", "insufficient_quota")), "^rate_limit: HTTP 429: Out", 1),
    "server error": (loopback.SERVER_ERROR, "^server_error: HTTP 500: The server had an error$", 3),
    "gateway": (loopback.UNAVAILABLE, "^server_error: HTTP 503: Service Unavailable$", 3),
    "web page": (loopback.HTML, "^not_a_completion: text/html, not JSON: '<html>", 3),
    "error under 200": (Fault(200, {"error": "busy"}), "^not_a_completion: no choices in busy$", 3),
    "error beside an answer": (
        Fault(200, reply("Hi") | {"error": {"code": 502}}),
        "^server_error: the reply says error: .*502",
        3,
    ),
    "failed provider": (
        Fault(200, reply("Hi", finish_reason="network_error")),
        "^server_error: the reply says finish_reason: network_error$",
        3,
    ),
    "no choices": (loopback.EMPTY_CHOICES, "^empty_choices: ", 3),
    "wrong key": (loopback.UNAUTHORISED, r"refuses the key \(HTTP 401: .*\): check OPENAI_API_KEY$", 1),
    "unknown model": (loopback.NO_MODEL, "does not serve the model 'm': it serves qwen3-4b, qwen3-8b$", 1),
    "no such route": (Fault(404, "<h1>Not Found</h1>"), r"\(HTTP 404: Not Found\).* usually ends in /v1$", 1),
    "context length": (loopback.TOO_LONG, "^too_long: HTTP 400: .*maximum context length", 1),
    "duplicate tools": (loopback.DUPLICATE_TOOLS, "^duplicate_tools: HTTP 400: ", 1),
    "name of a tool": (loopback.BAD_TOOL_NAME, "^rejected: HTTP 400: Invalid 'tools", 1),
    "no tools": (NO_TOOLS, r"takes no tools .*--tool-call-parser$", 1),
    "filtered": (Fault(400, error_body("No.", "content_filter")), r"^content_filter: HTTP 400: No\.$", 1),
    "any other refusal": (Fault(400, error_body("messages: too few")), "^bad_request: HTTP 400: messages", 1),
}


def test_every_fault_is_named_and_asked_again_where_that_can_help() -> None:
    for name, (fault, said, requests) in FAULTS.items():
        models = ["m"] if name == "no such route" else ["qwen3-8b", "qwen3-4b"]
        port = 9 if fault is GONE else 0
        server = LoopbackServer(lambda _, fault=fault: fault, models=models, port=port)  # type: ignore[misc]
        request = ChatRequest([{"role": "user", "content": "Hi"}], [TOOL, TOOL])
        limit = 0.3 if fault is loopback.HANG else 20.0
        with nullcontext() if fault is GONE else server:
            [error], stats = run(server, request, model="m", max_retries=2, timeout_s=limit)
        assert isinstance(error, LLMError | UserError), (name, error)
        assert re.search(said, str(error)) and "\n" not in str(error) and len(str(error)) < 400, (name, error)
        assert (stats.requests, server.count) == (requests, 0 if fault is GONE else requests), name


def test_a_refusal_about_tools_is_none_where_no_tools_were_sent() -> None:
    with LoopbackServer(lambda _: loopback.DUPLICATE_TOOLS) as server:
        found = run(server, ask(), max_retries=2)
    assert failure(found).code == "bad_request" and found[1].errors == {"bad_request": 1}


def test_the_wait_is_what_the_server_asks_for_within_the_cap() -> None:
    with LoopbackServer(in_order([loopback.rate_limit("0.2")], lambda _: "fine")) as server:
        begun = time.perf_counter()
        only(run(server, ask()))
        assert time.perf_counter() - begun >= 0.2
    with LoopbackServer(in_order([loopback.rate_limit("3600")], lambda _: "fine")) as server:
        only(run(server, ask(), max_wait_s=0.01))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("Please reduce: your prompt is too long: 200001 tokens > 200000 maximum", "too_long"),
        ("'max_tokens' is too large: 8192. This model's maximum context length is 8192 tokens", "too_long"),
        ("The decoder prompt (length 90) is longer than the maximum model length of 64.", "too_long"),
        ("The prompt (total length 259) is too long to fit into the model (context length 64).", "too_long"),
        ("max_tokens must be at least 1, got -186.", "too_long"),
        ("the request exceeds the available context size", "too_long"),
        ("The input token count (9) exceeds the maximum number of tokens allowed (8).", "too_long"),
        (error_body("Too much", "context_length_exceeded"), "too_long"),
        (
            {
                "error": error_body("Provider", "400")["error"]
                | {"metadata": {"raw": "Tool names must be unique"}}
            },
            "duplicate_tools",
        ),
        ("Duplicate function declaration found: f", "duplicate_tools"),
        ("The tool f is already defined at toolConfig.tools.1.", "duplicate_tools"),
        ("tools: the name f is given more than once", "duplicate_tools"),
        ("Invalid function name: geo.find", "rejected"),
        ("tools.0.custom.input_schema: JSON schema is invalid", "rejected"),
        ("The model `tiny` does not exist.", "not_found"),
        ('"auto" tool choice requires --enable-auto-tool-choice', "bad_request"),
        ("tiny does not support tools", "bad_request"),
        ({"detail": [{"loc": ["body"], "msg": "field required"}]}, "bad_request"),
        ([1, 2], "bad_request"),
        (None, "bad_request"),
    ],
)
def test_the_wordings_of_many_servers_are_distinguished(body: Any, code: str) -> None:
    assert from_status(400, body, {}, with_tools=True, now=0.0).code == code


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (413, error_body("Payload Too Large"), "too_long"),
        (
            422,
            error_body("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9000 inputs"),
            "too_long",
        ),
        (422, error_body("`inputs` must have less than 1024 tokens. Given: 2000"), "too_long"),
        (500, error_body("the input length exceeds the context length"), "too_long"),
        (400, error_body("The response was filtered due to the prompt.", "content_filter"), "content_filter"),
        (400, error_body("Your request was rejected.", "content_policy_violation"), "content_filter"),
        (400, {"error": {"message": "x", "code": "content_policy"}}, "content_filter"),
        (403, error_body("The model requires moderation and your input was flagged"), "content_filter"),
        (400, error_body("Unknown argument", "invalid_value", "filter"), "bad_request"),
        (403, error_body("Country not supported"), "auth"),
        (500, error_body("content filter is down", "content_filter"), "server_error"),
    ],
)
def test_a_length_or_a_filter_is_one_whatever_the_status_says(status: int, body: Any, code: str) -> None:
    assert from_status(status, body, {}, with_tools=True, now=0.0).code == code


@pytest.mark.parametrize("model", ["tiny", "gpt-5-mini"])
def test_a_limit_of_tokens_is_learnt_once(model: str) -> None:
    def limited(body: dict[str, Any]) -> Any:
        asked = body.get("max_tokens") or body["max_completion_tokens"]
        said = f"max_tokens is too large: {asked}. This model supports at most 512 completion tokens, whereas"
        return "fine" if asked <= 512 else Fault(400, error_body(f"{said} you provided {asked}."))

    with LoopbackServer(limited) as server:
        asked = (ask(max_tokens=most) for most in (900, 100, 901))
        found, stats = run(server, *asked, model=model, concurrency=1)
    assert all(isinstance(one, Completion) and one.text == "fine" for one in found)
    assert (server.count, stats.left_out) == (4, ["max_tokens above 512"])


def test_a_refused_system_role_is_learnt_once() -> None:
    """Its text then stands before the first user message."""

    def gemma(body: dict[str, Any]) -> Any:
        roles = [message["role"] for message in body["messages"]]
        return Fault(400, error_body("System role not supported")) if "system" in roles else "fine"

    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    with LoopbackServer(gemma) as server:
        found, stats = run(server, ChatRequest(asked), ChatRequest(asked), ask(), concurrency=1)
        again, said = run(server, ChatRequest(asked), system_as_user=True)
    assert all(isinstance(one, Completion) and one.text == "fine" for one in (*found, *again))
    assert server.count == 5 and said.left_out == stats.left_out
    assert stats.left_out == ["system role (its text stands before the first user message)"]
    for body in (server.bodies[1], server.bodies[4]):
        assert body["messages"] == [{"role": "user", "content": "Be brief.\n\nHi"}]


def test_a_reasoning_endpoint_is_asked_in_its_own_terms() -> None:
    with LoopbackServer(lambda _: "fine") as server:
        found = run(server, ask(temperature=0, max_tokens=9), model="gpt-5-mini")
    assert {"temperature", "max_tokens"}.isdisjoint(server.bodies[0])
    assert server.bodies[0]["max_completion_tokens"] == 9
    assert found[1].left_out == ["temperature"]


def test_what_an_endpoint_does_not_take_is_learnt_once() -> None:
    def picky(body: dict[str, Any]) -> Any:
        if "temperature" in body:
            return loopback.NO_TEMPERATURE
        return loopback.NO_MAX_TOKENS if "max_tokens" in body else "fine"

    async def one_by_one(url: str) -> list[Completion]:
        async with Client(Endpoint("unknown-name", url)) as client:
            return [await client.complete(ask(str(n), temperature=0, max_tokens=9)) for n in range(5)]

    with LoopbackServer(picky) as server:
        found = asyncio.run(one_by_one(server.url))
    assert [done.retries for done in found] == [0] * 5
    assert server.count == 2 + 5


# --- what a person has to fix -------------------------------------------------------------------------


def message_of(server: LoopbackServer, *requests: ChatRequest, **options: Any) -> str:
    found, _ = run(server, *requests, **options)
    for error in found:
        assert isinstance(error, UserError), error
    text = str(found[0])
    assert "\n" not in text and server.url in text
    return text


def test_nobody_who_accepts_is_said_after_the_last_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "CONNECT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as full:
        server = LoopbackServer(echo, port=listener.getsockname()[1])
        for _ in range(4):  # fills the queue of connections that nobody accepts
            one = full.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        found, stats = run(server, ask(), max_retries=2)
    assert isinstance(found[0], UserError) and "nothing answers" in str(found[0])
    assert stats.requests == 3


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    """Another host would get the rows and a key in a header, and its answers would count."""
    with LoopbackServer(lambda _: "from elsewhere") as other:
        place = other.url.replace("127.0.0.1", "u:pass@localhost") + "/chat/completions"
        with LoopbackServer(lambda _: Fault(status, "", {"Location": place})) as server:
            said = message_of(server, ask(), max_retries=2)
        assert other.count == 0 and server.count == 1
    assert f"redirect to http://localhost:{other.port}/v1/chat/completions, which is not followed" in said


def test_after_a_first_answer_refusals_are_errors_of_one_request() -> None:
    async def two(url: str) -> str:
        async with Client(Endpoint("tiny", url)) as client:
            await client.complete(ask("first"))
            with pytest.raises(LLMError) as caught:
                await client.complete(ask("second"))
            return caught.value.code

    with LoopbackServer(in_order(["fine"], lambda _: loopback.UNAUTHORISED)) as server:
        assert asyncio.run(two(server.url)) == "auth"


def test_wrong_settings_are_one_line() -> None:
    refuses("base URL", Client, Endpoint("m", "http://h:x/v1"))
    refuses("http://", Client, Endpoint("m", "ftp://h/v1"))
    refuses("prices", Client, Endpoint("m", "http://h/v1"), max_cost=1.0)
    refuses("concurrency", Client, Endpoint("m", "http://h/v1"), concurrency=0)


# --- bounds -------------------------------------------------------------------------------------------


def test_no_more_requests_are_under_way_than_allowed_and_each_answer_is_told() -> None:
    seen: list[int] = []
    asked = [ask(str(n)) for n in range(20)]
    with LoopbackServer(lambda _: "fine", delay_s=0.03) as server:
        run(server, *asked, concurrency=4, progress=lambda stats: seen.append(stats.answered))
    assert server.at_once == 4 and server.count == 20 and seen == [*range(1, 21)]


def test_the_request_limit_counts_what_is_sent() -> None:
    with LoopbackServer(in_order([loopback.SERVER_ERROR], lambda _: "fine")) as server:
        found, stats = run(server, *(ask(str(n)) for n in range(6)), max_requests=4)
    assert server.count == 4 and stats.answered == 3
    codes = [error.code for error in found if isinstance(error, LLMError)]
    assert codes == ["budget"] * 3 and stats.errors == {"budget": 3}


def test_the_cost_limit_stops_and_needs_usage() -> None:
    price = (1.0, 2.0)  # each reply: 10 and 5 tokens, 20 millionths
    with LoopbackServer(lambda _: "fine") as server:
        found, stats = run(
            server, *(ask(str(n)) for n in range(9)), concurrency=1, max_cost=3e-5, price=price
        )
    assert server.count == 2 and stats.cost == pytest.approx(4e-5)
    with LoopbackServer(lambda _: reply("fine", usage=None)) as server:
        found, _ = run(server, ask("a"), ask("b"), concurrency=1, max_cost=1.0, price=price)
    assert server.count == 1 and "no token usage" in str(found[1])


# --- the store ----------------------------------------------------------------------------------------


def echo(body: dict[str, Any]) -> str:
    return "echo " + str(body["messages"][-1]["content"])


def test_the_same_question_is_asked_once_in_a_run_and_across_runs(tmp_path: Path) -> None:
    requests = [ask(str(n % 5)) for n in range(20)]
    with LoopbackServer(echo, delay_s=0.01) as server:
        with Store(tmp_path / "s.jsonl") as store:
            first, stats = run(server, *requests, store=store)
            assert (server.count, stats.requests, len(store)) == (5, 5, 5)
        with Store(tmp_path / "s.jsonl") as store:
            second, stats = run(server, *requests, store=store)
        assert (server.count, stats.requests, stats.replayed) == (5, 0, 20)
    assert [done.text for done in first if isinstance(done, Completion)] == [
        f"echo {n % 5}" for n in range(20)
    ]
    assert [msg.text for msg in second if isinstance(msg, Completion) and msg.replayed] == [
        done.text for done in first if isinstance(done, Completion)
    ]


def test_an_error_is_not_kept(tmp_path: Path) -> None:
    with LoopbackServer(in_order([loopback.HTML], echo)) as server, Store(tmp_path / "s.jsonl") as store:
        assert failure(run(server, ask(), store=store, max_retries=0)).code == "not_a_completion"
        assert len(store) == 0
        assert only(run(server, ask(), store=store)).text == "echo Hi"


def test_a_cancelled_caller_does_not_lose_a_paid_answer(tmp_path: Path) -> None:
    async def impatient(url: str, store: Store) -> None:
        async with Client(Endpoint("tiny", url), store=store) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.complete(ask()), 0.05)
            assert (await client.complete(ask())).text == "echo Hi"

    with LoopbackServer(echo, delay_s=0.15) as server, Store(tmp_path / "s.jsonl") as store:
        asyncio.run(impatient(server.url, store))
        assert server.count == 1


def test_the_key_is_the_question() -> None:
    message = [{"role": "user", "content": "Hi"}]
    base = ChatRequest(message, [TOOL], {"temperature": 0, "response_format": {"a": 1, "b": 2}})
    same = ChatRequest(message, [TOOL], {"response_format": {"b": 2, "a": 1}, "temperature": 0})
    assert base.key("m") == same.key("m")
    others = [
        base.key("n"),
        ChatRequest([*message, *message], [TOOL], base.params).key("m"),
        ChatRequest(message, [TOOL, TOOL], base.params).key("m"),
        ChatRequest(message, [TOOL], {"temperature": 1}).key("m"),
        ChatRequest(message, [TOOL], base.params, repeat=1).key("m"),
    ]
    assert len({base.key("m"), *others}) == 6


def put(path: Path, *keys: str) -> None:
    async def all_of_them(store: Store) -> None:
        await asyncio.gather(*(store.put(key, {"said": key}) for key in keys))

    with Store(path) as store:
        asyncio.run(all_of_them(store))


def test_a_put_that_is_given_up_leaves_a_store_that_works(tmp_path: Path) -> None:
    async def impatient(store: Store) -> None:
        asyncio.create_task(store.put("a", {}))  # noqa: RUF006
        await asyncio.sleep(0)

    with Store(tmp_path / "s.jsonl") as store:
        for _ in range(3):
            asyncio.run(impatient(store))
        asyncio.run(store.put("b", {}))
        assert "b" in store
    with Store(tmp_path / "s.jsonl") as store:
        assert "b" in store


@pytest.mark.parametrize("cut", [1, 2, 7, 15])
def test_a_torn_last_line_is_cut_off_and_the_rest_kept(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "s.jsonl"
    put(path, "a", "b", "c")
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with Store(path) as store:
        assert sorted(store.keys()) == ["a", "b"] and store.get("c") is None
        assert store.get("b") == {"key": "b", "said": "b"}
    put(path, "c")
    assert path.read_bytes() == whole


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    put(path, "a", "b", "c")
    path.write_bytes(path.read_bytes().replace(b'"b"}', b'"b"', 1))
    refuses(r"s\.jsonl, line 2 is damaged", Store, path)


def test_a_second_writer_is_refused_and_a_closed_store_is_free(tmp_path: Path) -> None:
    with Store(tmp_path / "s.jsonl"), pytest.raises(UserError, match="another process"):
        Store(tmp_path / "s.jsonl")
    Store(tmp_path / "s.jsonl").close()


def test_a_store_that_cannot_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "folder", tmp_path / "file" / "s.jsonl"):
        refuses("cannot be used as a store|is not a store that rbtc wrote", Store, path)


def test_another_kind_of_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    put(path, ask().key("tiny"))
    with LoopbackServer(echo) as server, Store(path) as store:
        found, _ = run(server, ask(), store=store)
    assert isinstance(found[0], UserError) and server.count == 0


def test_a_full_disk_is_one_line_and_costs_nothing_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"
    put(path, "a")
    real, left = os.pwrite, [9]

    def full(file: int, data: Any, place: int) -> int:
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(file, bytes(data[: left.pop()]), place)

    with monkeypatch.context() as patch, pytest.raises(UserError, match="No space left on device"):
        patch.setattr(os, "pwrite", full)
        put(path, "b")
    put(path, "c")
    with Store(path) as store:
        assert sorted(store.keys()) == ["a", "c"]


FILLER = """
import asyncio, sys
from robustbench_tc.llm import ChatRequest, Client, Endpoint, Store

async def main():
    with Store(sys.argv[2]) as store:
        async with Client(Endpoint("tiny", sys.argv[1]), store=store, concurrency=4) as client:
            asked = (ChatRequest([{"role": "user", "content": str(n)}]) for n in range(60))
            done = await asyncio.gather(*map(client.complete, asked))
            assert [d.text for d in done] == [f"echo {n}" for n in range(60)]

asyncio.run(main())
"""


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with LoopbackServer(echo, delay_s=0.02) as server:
        words = (tmp_path / "said", server.url, path)
        with running(*words, code=FILLER) as process:
            process.until(lambda: holds(path, 30))
            process.kill()
        with Store(path) as store:
            kept = len(store)
        assert 30 <= kept < 60
        before = settled(server)
        with running(*words, code=FILLER) as process:
            process.end()
        assert server.count - before == 60 - kept
    with Store(path) as store:
        assert len(store) == 60


def settled(server: LoopbackServer) -> int:
    """Its requests once no more come: those of a process that was killed may still be on their way."""
    seen = -1
    while seen != server.count:
        seen = server.count
        time.sleep(0.3)
    return seen


def holds(path: Path, enough: int) -> bool:
    return path.exists() and path.read_bytes().count(b"\n") >= enough


# --- secrets ------------------------------------------------------------------------------------------


def test_a_planted_key_appears_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    leak = f"Incorrect key {KEY} in 'Authorization: Bearer {KEY}'"
    faults = [
        Fault(500, error_body(leak)),
        Fault(400, error_body(leak)),
        Fault(400, f"<b>{leak}</b>"),
        Fault(200, {"error": leak}),
        Fault(200, leak),
    ]
    shown: list[str] = []
    with Store(tmp_path / "s.jsonl") as store:
        for fault in faults:
            with LoopbackServer(in_order([fault] * 2, echo)) as server:
                error = failure(run(server, ask(), store=store, max_retries=1))
                shown += [str(error), repr(error), error.message]
        with LoopbackServer(lambda _: Fault(401, error_body(leak))) as server:
            shown.append(message_of(server, ask(), store=store))
        with LoopbackServer(lambda _: f"You sent {KEY}", key=KEY) as server:
            shown.append(repr(only(run(server, ask("kept"), store=store))))
    shown += [(tmp_path / "s.jsonl").read_text(), caplog.text]
    assert "You sent ***" in shown[-2]
    for text in shown:
        assert KEY not in text and "Bearer sk-" not in text
