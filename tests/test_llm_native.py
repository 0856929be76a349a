"""Anthropic's and Google's own APIs against servers that speak them: replies, refusals, keys, whole runs."""

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api
from robustbench_tc.errors import UserError
from robustbench_tc.eval import predictions
from robustbench_tc.llm import (
    ChatRequest,
    Client,
    Completion,
    Endpoint,
    LLMError,
    Stats,
    native_model,
    over_http,
)

from . import loopback
from .eval import small
from .loopback import Fault, LoopbackServer
from .provider_servers import (
    AnthropicServer,
    GeminiServer,
    anthropic_error,
    anthropic_reply,
    blocks_of,
    gemini_error,
    gemini_reply,
)
from .refusals import refuses

KEY = "sk-ant-planted-0123456789"
ENV = {"ANTHROPIC_API_KEY": KEY, "GEMINI_API_KEY": KEY}
SERVERS: dict[str, Callable[..., LoopbackServer]] = {
    "anthropic": AnthropicServer,
    "gemini": GeminiServer,
}
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "object", "properties": {"b": {"type": "integer", "minimum": 3}}}},
    "required": ["a"],
}
TOOL = {"type": "function", "function": {"name": "f", "description": "Finds.", "parameters": SCHEMA}}
NOW = {"retry-after": "0"}
USER = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]

both = pytest.mark.parametrize("provider", list(SERVERS))


def need_any_llm() -> None:
    """Skips the test in an environment without it; CI's has it."""
    pytest.importorskip("any_llm", reason="needs the extra providers (make env)")


def ask(
    server: LoopbackServer, provider: str, *requests: ChatRequest, **options: Any
) -> tuple[list[Completion | BaseException], Stats]:
    need_any_llm()

    async def all_of_them() -> tuple[list[Completion | BaseException], Stats]:
        headers = options.pop("headers", ())
        endpoint = Endpoint("tiny", server.url, headers=headers, provider=provider).resolved(ENV)
        wire = over_http([endpoint], options.pop("timeout_s", 20.0))
        async with Client(endpoint, wire=wire, **{"backoff_s": 0.001, "max_retries": 1, **options}) as client:
            found = [client.complete(request) for request in requests]
            return await asyncio.gather(*found, return_exceptions=True), client.stats

    return asyncio.run(all_of_them())


def one(server: LoopbackServer, provider: str, tools: Any = None, **params: Any) -> Any:
    return ask(server, provider, ChatRequest(USER, tools, params))[0][0]


# --- names and keys -----------------------------------------------------------------------------------


def test_a_model_names_its_provider() -> None:
    assert native_model("anthropic:claude-x") == ("anthropic", "claude-x")
    assert native_model("gemini:gemini-x") == ("gemini", "gemini-x")
    assert [native_model(spec) for spec in ("qwen3:8b", "anthropic", "anthropic:", "claude-x")] == [None] * 4


def test_keys_come_from_the_providers_own_variables() -> None:
    claude, gemini = Endpoint("m", provider="anthropic"), Endpoint("m", provider="gemini")
    refuses(
        r"no key for https://api\.anthropic\.com: set ANTHROPIC_API_KEY, or",
        claude.resolved,
        {"OPENAI_API_KEY": "x"},
    )
    refuses("set GEMINI_API_KEY or GOOGLE_API_KEY", gemini.resolved, {})
    found = gemini.resolved({"GOOGLE_API_KEY": KEY})
    assert (found.api_key, found.key_name) == (KEY, "GOOGLE_API_KEY") and KEY not in repr(found)
    local = Endpoint("m", "http://localhost:1/v1/", provider="anthropic").resolved({})
    assert (local.base_url, local.api_key) == ("http://localhost:1", None)
    caught = refuses(
        "header cannot carry: check ANTHROPIC_API_KEY", claude.resolved, {"ANTHROPIC_API_KEY": f"{KEY}\nX: 1"}
    )
    assert KEY not in caught


def test_the_extra_is_named_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "any_llm", None)
    release = small.write(tmp_path / "small", small.clean_rows())
    refuses(
        r"pip install -e '.\[providers\]'",
        api.evaluate,
        release,
        model="gemini:m",
        base_url="http://127.0.0.1:9",
        out=tmp_path / "run",
    )
    assert not (tmp_path / "run").exists()


# --- one answer ---------------------------------------------------------------------------------------


def test_anthropic_is_asked_in_its_own_terms() -> None:
    said = anthropic_reply(
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "Well."},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": "é"}},
        stop_reason="tool_use",
    )
    with AnthropicServer(lambda body: said, key=KEY) as server:
        done = one(
            server, "anthropic", [TOOL, TOOL], temperature=0.0, max_tokens=9, top_p=0.5, top_k=4, stop=["END"]
        )
    assert isinstance(done, Completion), done
    assert (done.text, done.reasoning, done.finish_reason) == ("Well.", "Hm.", "tool_calls")
    assert done.tool_calls is not None
    [call] = done.tool_calls
    assert (call["id"], call["name"], json.loads(call["arguments"])) == ("toolu_1", "f", {"a": "é"})
    assert (done.prompt_tokens, done.completion_tokens, done.model) == (10, 5, "claude-tiny")
    sent = {"name": "f", "description": "Finds.", "input_schema": SCHEMA}
    assert server.bodies == [
        {
            "model": "tiny", "system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}],
            "temperature": 0.0, "max_tokens": 9, "top_p": 0.5, "top_k": 4, "stop_sequences": ["END"],
            "tools": [sent, sent],
        }
    ]  # fmt: skip


def test_gemini_is_asked_in_its_own_terms() -> None:
    said = gemini_reply(
        {"text": "Hm.", "thought": True},
        {"text": "Well."},
        {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2ln"},
    )
    with GeminiServer(lambda body: said, key=KEY) as server:
        done = one(
            server, "gemini", [TOOL, TOOL], temperature=0.0, max_tokens=9, top_k=4, stop=["END"], seed=3
        )
    assert isinstance(done, Completion), done
    assert (done.text, done.reasoning, done.finish_reason) == ("Well.", "Hm.", "tool_calls")
    assert [(call["name"], call["arguments"]) for call in done.tool_calls or ()] == [("f", '{"a": 1}')]
    assert (done.prompt_tokens, done.completion_tokens) == (10, 5)
    [body] = server.bodies
    assert body["generationConfig"] == {
        "temperature": 0.0, "maxOutputTokens": 9, "topK": 4, "stopSequences": ["END"], "seed": 3,
    }  # fmt: skip
    assert body["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    [tools] = body["tools"]
    declared = tools["functionDeclarations"]
    assert [one["name"] for one in declared] == ["f", "f"]
    schemas = [one.get("parametersJsonSchema", one.get("parameters_json_schema")) for one in declared]
    assert schemas == [SCHEMA, SCHEMA], "the whole schema, nested properties and bounds included"


@pytest.mark.parametrize(
    ("provider", "said", "reason"),
    [
        ("anthropic", anthropic_reply({"type": "text", "text": "cu"}, stop_reason="max_tokens"), "length"),
        ("anthropic", anthropic_reply(stop_reason="refusal"), "content_filter"),
        ("gemini", gemini_reply({"text": "cu"}, finish="MAX_TOKENS"), "length"),
        ("gemini", gemini_reply(finish="SAFETY"), "content_filter"),
        ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}}, "content_filter"),
    ],
)
def test_how_a_reply_ended_is_kept(provider: str, said: Any, reason: str) -> None:
    with SERVERS[provider](lambda body: said) as server:
        done = one(server, provider)
    assert isinstance(done, Completion), done
    assert (done.finish_reason, done.text) == (reason, "cu" if reason == "length" else "")


@both
def test_headers_go_along_and_secrets_are_taken_out_of_replies(
    provider: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with SERVERS[provider](lambda body: f"You sent {KEY} and tok-planted-0123456789") as server:
        found, _ = ask(server, provider, ChatRequest(USER), headers=(("X-Token", "tok-planted-0123456789"),))
        sent = {name.lower(): value for name, value in server.headers[0].items()}
    assert isinstance(found[0], Completion), found[0]
    assert found[0].text == "You sent *** and ***" and sent["x-token"] == "tok-planted-0123456789"
    assert KEY not in caplog.text and "tok-planted" not in caplog.text


# --- refusals and faults ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "fault", "code", "requests"),
    [
        ("anthropic", anthropic_error(529, "overloaded_error", "Overloaded"), "server_error", 2),
        ("anthropic", anthropic_error(500, "api_error", "Internal"), "server_error", 2),
        ("anthropic", anthropic_error(429, "rate_limit_error", "Slow", **NOW), "rate_limit", 2),
        (
            "anthropic",
            anthropic_error(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
            "too_long",
            1,
        ),
        (
            "anthropic",
            anthropic_error(400, "invalid_request_error", "tools: Tool names must be unique."),
            "duplicate_tools",
            1,
        ),
        (
            "anthropic",
            anthropic_error(400, "invalid_request_error", "tools.0.custom.input_schema: invalid"),
            "rejected",
            1,
        ),
        ("anthropic", loopback.HTML, "not_a_completion", 2),
        ("anthropic", loopback.DROP, "connection", 2),
        ("gemini", gemini_error(503, "UNAVAILABLE", "The model is overloaded."), "server_error", 2),
        ("gemini", gemini_error(429, "RESOURCE_EXHAUSTED", "Quota exceeded"), "rate_limit", 2),
        (
            "gemini",
            gemini_error(400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum (8)."),
            "too_long",
            1,
        ),
        (
            "gemini",
            gemini_error(400, "INVALID_ARGUMENT", "Duplicate function declaration found: f"),
            "duplicate_tools",
            1,
        ),
        ("gemini", {"usageMetadata": {"promptTokenCount": 3}}, "not_a_completion", 2),
        ("gemini", loopback.HTML, "not_a_completion", 2),
        ("gemini", loopback.DROP, "connection", 2),
    ],
)  # fmt: skip
def test_faults_have_the_codes_of_every_other_endpoint(
    provider: str, fault: Any, code: str, requests: int
) -> None:
    with SERVERS[provider](lambda body: fault) as server:
        found = one(server, provider, [TOOL])
        assert isinstance(found, LLMError), found
        assert (found.code, server.count) == (code, requests), found.message
    assert "\n" not in str(found) and len(str(found)) < 400 and KEY not in str(found)


@both
def test_a_hanging_server_is_a_time_out(provider: str) -> None:
    with SERVERS[provider](lambda body: loopback.HANG) as server:
        found, _ = ask(server, provider, ChatRequest(USER), timeout_s=0.3, max_retries=0)
    assert isinstance(found[0], LLMError) and found[0].code == "timeout"


def test_a_key_does_not_follow_a_redirect() -> None:
    with AnthropicServer(lambda body: "from elsewhere") as other:
        place = other.url.replace("127.0.0.1", "localhost") + "/v1/messages"
        with AnthropicServer(lambda body: Fault(307, "", {"Location": place})) as server:
            found = one(server, "anthropic")
        assert other.count == 0
    assert isinstance(found, UserError) and "which is not followed" in str(found)


@both
def test_what_a_person_has_to_fix_is_said_at_once(provider: str) -> None:
    with SERVERS[provider](lambda body: "fine", key="another") as server:
        found = one(server, provider)
        assert isinstance(found, UserError) and f"{server.url} refuses the key" in str(found)
        assert f"check {'ANTHROPIC' if provider == 'anthropic' else 'GEMINI'}_API_KEY" in str(found)
        assert KEY not in str(found)
    missing: Fault = (
        anthropic_error(404, "not_found_error", "model: tiny")
        if provider == "anthropic"
        else gemini_error(404, "NOT_FOUND", "models/tiny is not found")
    )
    with SERVERS[provider](lambda body: missing, models=["big"]) as server:
        assert "does not serve the model 'tiny': it serves big" in str(one(server, provider))
    assert "nothing answers at http://127" in str(one(server, provider))


@both
def test_what_a_provider_does_not_take_is_left_out_and_noted(provider: str) -> None:
    refused = {"anthropic": "seed", "gemini": "logprobs"}[provider]
    params: dict[str, Any] = {"temperature": 0.0, refused: 3, "chat_template_kwargs": {"a": 1}}
    with SERVERS[provider](lambda body: "fine") as server:
        found, stats = ask(server, provider, ChatRequest(USER, params=params), concurrency=1)
        assert server.count == 1
    assert isinstance(found[0], Completion), found[0]
    assert sorted(stats.left_out) == sorted([refused, "chat_template_kwargs"])

    def deprecated(body: Any) -> Any:
        words = "`temperature` may only be set to 1 when thinking is enabled."
        return anthropic_error(400, "invalid_request_error", words) if "temperature" in body else "fine"

    if provider == "anthropic":
        with AnthropicServer(deprecated) as server:
            _, stats = ask(server, provider, ChatRequest(USER, params={"temperature": 0.0, "max_tokens": 3}))
            assert (server.count, stats.left_out) == (2, ["temperature"])


# --- whole runs ---------------------------------------------------------------------------------------


def claude(body: dict[str, Any]) -> Any:
    """Thinks, and calls the first tool once."""
    if not body.get("tools"):
        return "[ping(a=1)]"
    return anthropic_reply(
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "tool_use", "id": f"toolu_{id(body)}", "name": body["tools"][0]["name"], "input": {"a": 1}},
        stop_reason="tool_use",
    )


def gemini(body: dict[str, Any]) -> Any:
    if not body.get("tools"):
        return "[ping(a=1)]"
    name = body["tools"][0]["functionDeclarations"][0]["name"]
    return gemini_reply({"functionCall": {"name": name, "args": {"a": 1}}, "thoughtSignature": "c2ln"})


@both
@pytest.mark.parametrize("mode", ["prompt", "fc"])
def test_a_whole_run_with_both_passes(
    provider: Any, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_any_llm()
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)
    release = small.write(tmp_path / "small", small.rows())
    with SERVERS[provider]({"anthropic": claude, "gemini": gemini}[provider], key=KEY) as server:
        done = api.evaluate(
            release, model=f"{provider}:tiny", base_url=server.url, mode=mode, out=tmp_path / "run",
            probe=False,
        )  # fmt: skip
        bodies, count = server.bodies, server.count
        again = api.evaluate(
            release, model="tiny", backend=provider, base_url=server.url, mode=mode, out=tmp_path / "run",
            probe=False,
        )  # fmt: skip
        assert server.count == count and again.asked.request_errors == 0
    settings = done.folder.record.settings
    assert (settings.model, settings.backend) == ("tiny", provider)
    found = predictions.read_predictions(done.folder.answers_path)
    assert {one.status for one in found} == {"ok"} and len(found) == len(small.rows())
    injected = sum(bool(one.injected) for one in found)
    assert injected and count + done.folder.record.sessions[0].shared == len(found) + injected
    for file in (tmp_path / "run").iterdir():
        assert KEY.encode() not in file.read_bytes()
    if mode == "prompt":
        return
    if provider == "anthropic":  # what was thought goes back, signed, with the call and the error
        returned = [block for body in bodies for block in blocks_of(body, "assistant")]
        assert (
            sum(block["type"] == "thinking" and block["signature"] == "c2ln" for block in returned)
            == injected
        )
        results = [block for body in bodies for block in blocks_of(body, "user")]
        assert sum(block["type"] == "tool_result" for block in results) == injected
    else:
        parts = [part for body in bodies for content in body["contents"] for part in content["parts"]]
        assert (
            sum("functionCall" in part and part["thoughtSignature"] == "c2ln" for part in parts) == injected
        )
        assert sum("functionResponse" in part for part in parts) == injected


def test_wrong_words_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    release = small.write(tmp_path / "small", small.clean_rows())
    cases: list[tuple[dict[str, Any], str]] = [
        ({"model": "anthropic:x"}, "set ANTHROPIC_API_KEY"),
        ({"model": "anthropic:x", "backend": "vllm"}, "--model anthropic:x and --backend vllm disagree"),
        ({"model": "gemini:x", "base_url": ["http://a", "http://b"]}, "gemini is asked at one address"),
    ]
    for options, line in cases:
        refuses(line, api.evaluate, release, out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()
