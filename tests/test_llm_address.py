"""Addresses as people give them, several of one model, what servers refuse; credentials are never shown."""

import asyncio
import base64
import logging
import subprocess
import sys
from collections.abc import Callable, Sequence
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
    over_http,
    parse_endpoint,
    parse_endpoints,
)
from robustbench_tc.llm.endpoint import parse_address, public
from robustbench_tc.llm.errors import from_status, refused, refused_value

from .conftest import Done
from .eval import small
from .loopback import SERVER_ERROR, Fault, LoopbackServer, error_body
from .refusals import refuses

SECRET, TOKEN = "hunter2-s3cret", base64.b64encode(b"user:hunter2-s3cret").decode()

WRONG = [
    ("", "must begin with http"),
    ("host:8000/v1", "must begin with http"),
    (f"ftp://user:{SECRET}@host/v1", "must begin with http"),
    (f"user:{SECRET}@host/v1", "must begin with http"),
    ("file:///etc/passwd", "must begin with http"),
    (f"http://user:{SECRET}@host:99999/v1", "port"),
    (f"http://user:{SECRET}@host:http/v1", "port"),
    (f"http://user:{SECRET}@host:-1/v1", "port"),
    (f"http://user:{SECRET}@host:１/v1", "port"),
    (f"http://user:{SECRET}/slash@host/v1", "%2F"),
    (f"http://user:12/{SECRET}@host/v1", "%40"),
    (f"http://user:?{SECRET}@host/v1", "%40"),
    (f"http://user:#{SECRET}@host/v1", "%40"),
    (f"http://user:{SECRET}?a@host/v1", "%3F"),
    (f"http://user:{SECRET}@", "names no host"),
    (f"http://user:{SECRET}@/v1", "names no host"),
    ("http://", "names no host"),
    ("http:///v1", "names no host"),
    ("http://?x=1", "leave out what stands behind ? or #"),
    (f"http://user:{SECRET}@ho st/v1", "white space"),
    (f"http://user:{SECRET} @host/v1", "white space"),
    (f" http://user:{SECRET}@host/v1", "white space"),
    (f"http://user:{SECRET}@host/v1\n", "control"),
    (f"http://user:{SECRET}@host/\x1b[2J", "control"),
    (f"http://user:{SECRET}@[::1/v1", "brackets"),
    (f"http://user:{SECRET}@::1/v1", "port"),
    (f"http://user:{SECRET}@[zz]/v1", "brackets"),
    (f"http://user:{SECRET}@a..b/v1", "network knows"),
    (f"http://user:{SECRET}@{'a' * 64}.example/v1", "network knows"),
    (f"http://user:{SECRET}@<host>/v1", "network knows"),
    (f"http://user:{SECRET}@host/v1/chat/completions", "leave out what stands behind /v1"),
    (f"http://user:{SECRET}@host/v1/chat/completions/", "leave out what stands behind /v1"),
    (f"http://user:{SECRET}@host/v1/completions", "leave out what stands behind /v1"),
    (f"http://user:{SECRET}@host/v1#here", "leave out what stands behind ? or #"),
    (f"http://user:{SECRET}@host/v1?key={SECRET}", "leave out what stands behind ? or #"),
    (f"http://user:{SECRET}@host/v1?", "leave out what stands behind ? or #"),
    (f"http://user@host/v1#{SECRET}", "leave out what stands behind ? or #"),
]


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_a_wrong_address_is_one_line_without_secrets(text: str, why: str) -> None:
    said = refuses(".", parse_address, text)
    assert why in said and said.startswith("base URL ") and said.isprintable()
    assert SECRET not in said and "user" not in said.replace("user name", "")
    assert SECRET not in refuses(".", Endpoint("tiny", text or "nothing").resolved, {})


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://host", "http://host"),
        ("https://host:8443/v1/", "https://host:8443/v1"),
        ("HTTP://HOST/V1", "http://host/V1"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("http://[fe80::1%25eth0]/v1", "http://[fe80::1%25eth0]/v1"),
        ("http://my_host.local.:1/v1", "http://my_host.local.:1/v1"),
        ("http://münchen.example/v1", "http://münchen.example/v1"),
        (f"https://user:{SECRET}@[::1]:1/v1", "https://[::1]:1/v1"),
    ],
)
def test_a_right_address_keeps_what_can_be_shown(text: str, url: str) -> None:
    assert parse_address(text).url == url
    assert Endpoint("tiny", text).resolved({}).base_url == url


def test_credentials_come_out_as_they_were_meant() -> None:
    assert parse_address(f"http://user:{SECRET}@host").basic == TOKEN
    assert base64.b64decode(parse_address("http://a%40b:p%3A%2F%23@host").basic or "") == b"a@b:p:/#"
    assert base64.b64decode(parse_address("http://token@host").basic or "") == b"token:"
    assert parse_address("http://host").basic is None


@given(st.text(), st.sampled_from(["http://", "https://", "ftp://", "//", ""]), st.text())
def test_any_text_is_an_address_or_one_line(before: str, scheme: str, after: str) -> None:
    text = f"{before}{scheme}user:{SECRET}@{after}"
    for show in (lambda: parse_address(text), lambda: parse_endpoint(f"tiny@{text}").resolved({})):
        try:
            show()
        except UserError as error:
            assert SECRET not in str(error)


@given(st.text())
def test_public_shows_no_credentials(text: str) -> None:
    assert SECRET not in public(f"http://user:{SECRET}{text}@host/v1?key={SECRET}")


# --- against a server -----------------------------------------------------------------------------------


def asked(url: str) -> Completion | LLMError | UserError:
    async def one() -> Completion:
        end = Endpoint("tiny", url).resolved()
        async with Client(end, wire=over_http([end], 5.0), max_retries=0) as client:
            return await client.complete(ChatRequest([{"role": "user", "content": "hello"}]))

    try:
        return asyncio.run(one())
    except (LLMError, UserError) as error:
        return error


def with_credentials(url: str) -> str:
    return url.replace("http://", f"http://user:{SECRET}@")


def test_credentials_are_sent_and_a_key_for_others_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    with LoopbackServer(lambda body: "ok") as server:
        assert isinstance(asked(with_credentials(server.url)), Completion)
        assert server.headers[-1]["Authorization"] == f"Basic {TOKEN}"
        assert isinstance(asked(server.url), Completion)
        assert server.headers[-1]["Authorization"] == "Bearer sk-of-somebody-else"


def test_what_a_server_says_about_them_is_hidden(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    leak = f"no {SECRET}, Authorization: Basic {TOKEN}"
    for fault in (
        Fault(500, error_body(leak)),
        Fault(401, error_body(leak)),
        Fault(400, leak),
        Fault(200, leak),
    ):
        with LoopbackServer(lambda body, fault=fault: fault) as server:  # type: ignore[misc]
            found = asked(with_credentials(server.url))
            assert isinstance(found, LLMError | UserError)
            assert SECRET not in str(found) + repr(found) and TOKEN not in str(found)
    with LoopbackServer(lambda body: leak) as server:
        found = asked(with_credentials(server.url))
        assert isinstance(found, Completion) and SECRET not in found.text and TOKEN not in found.text
    gone = asked(f"http://user:{SECRET}@127.0.0.1:9/v1")
    assert isinstance(gone, UserError) and SECRET not in str(gone)
    assert SECRET not in caplog.text and TOKEN not in caplog.text


def test_a_short_key_is_a_word_that_a_reply_may_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """`OPENAI_API_KEY=EMPTY` is what vLLM's own examples set."""
    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")
    with LoopbackServer(lambda body: '[f(status="EMPTY")]') as server:
        found = asked(server.url)
        assert isinstance(found, Completion) and found.text == '[f(status="EMPTY")]'


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_no_command_shows_or_keeps_them(
    tmp_path: Path, rbtc: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verbs, run folder, report and store: with credentials that are right, and in wrong addresses."""
    monkeypatch.chdir(tmp_path)
    release = small.write(tmp_path / "robustbench-tc", small.rows("CD"))
    secrets = (SECRET.encode(), TOKEN.encode())
    with LoopbackServer(lambda body: "[f()]") as server:
        url = with_credentials(server.url)
        done = rbtc("eval", release, "--model", "tiny", "--base-url", url, "--out", "run")
        assert done.code == 0, done.err
        assert {h["Authorization"] for h in server.headers} == {f"Basic {TOKEN}"}
        said = done.out + done.err
        said += str(rbtc("eval", release, "--model", f"tiny@{url}", "--out", "run2"))
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        said += str(rbtc("eval", release, "--model", "tiny", "--out", "run3"))
        monkeypatch.delenv("OPENAI_BASE_URL")
        said += str(rbtc("report", "run", "--out", "report", "--allow-missing"))
        said += str(rbtc("summary", "run", "--json", "--allow-missing"))
        build = ("build", "--profile", "bundled", "--types", "realistic_typos", "--out", "built")
        said += str(rbtc(*build, "--generator", f"openai:tiny@{url}", "--max-requests", "3"))
    said += rbtc("eval", release, "--model", f"tiny@{url}", "--out", "gone", "--max-retries", "0").err
    for text in [text for text, _ in WRONG if text and text == text.strip()][::4]:
        for words in (
            ("eval", release, "--model", "tiny", "--base-url", text, "--out", "none"),
            ("eval", release, "--model", f"tiny@{text}", "--out", "none"),
            (*build, "--force", "--generator", f"openai:tiny@{text}", "--store", "none.jsonl"),
            ("audit", release, "--judge", f"tiny@{text}", "--out", "audited", "--store", "none.jsonl"),
            ("data", "fetch", "--sources", "sources", "--mirror", text),
        ):
            done = rbtc(*words)
            assert done.code == 1 and done.err.count("\n") == 1 and not done.out, (words, done)
            said += done.err
    assert not (tmp_path / "none").exists()
    for secret in secrets:
        assert secret not in said.encode() and secret not in everything_in(tmp_path)


def test_it_is_one_line_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Where it was 127 lines: nothing else may print either, such as a logger or the loop's own handler."""
    release = small.write(tmp_path / "robustbench-tc", small.rows("CD"))
    command = ["eval", str(release), "--model", f"tiny@http://user:{SECRET}@127.0.0.1:9/v1"]
    done = subprocess.run(
        [sys.executable, "-c", "from robustbench_tc.cli import main; main()", *command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert SECRET not in done.stderr and "http://127.0.0.1:9/v1" in done.stderr


# --- Several addresses of one model: who is asked, and what happens when one of them is gone


GONE = "http://127.0.0.1:9/v1"


def asked_of(urls: Sequence[str], requests: int, **options: Any) -> tuple[list[str | BaseException], Stats]:
    """Texts or exceptions of so many requests, and what the client did."""

    async def all_of_them() -> tuple[list[str | BaseException], Stats]:
        ends = [Endpoint("tiny", url).resolved({}) for url in urls]
        async with Client(ends[0], wire=over_http(ends, 5.0), backoff_s=0.001, **options) as client:

            async def one(number: int) -> str:
                return (await client.complete(ChatRequest([{"role": "user", "content": str(number)}]))).text

            found = await asyncio.gather(*map(one, range(requests)), return_exceptions=True)
            return found, client.stats

    return asyncio.run(all_of_them())


def test_several_addresses_of_a_model_are_named_with_commas() -> None:
    one, two = parse_endpoints("qwen3-8b@http://a:1/v1,https://b:2/v1")
    assert (one.model, one.base_url) == (two.model, "http://a:1/v1") == ("qwen3-8b", "http://a:1/v1")
    assert two.base_url == "https://b:2/v1"
    [alone] = parse_endpoints("tiny@http://a:1/v1?x=1,2")
    assert alone.base_url == "http://a:1/v1?x=1,2"
    refuses("expected MODEL", parse_endpoints, "tiny@http://a b,http://c")


def test_requests_are_shared_out_evenly() -> None:
    with (
        LoopbackServer(lambda _: "one", delay_s=0.02) as one,
        LoopbackServer(lambda _: "two", delay_s=0.02) as two,
    ):
        texts, stats = asked_of([one.url, two.url], 40, concurrency=8)
        assert one.count + two.count == stats.requests == 40
        assert min(one.count, two.count) >= 10 and max(one.at_once, two.at_once) <= 5
    assert sorted(set(map(str, texts))) == ["one", "two"]


def test_one_that_is_gone_meanwhile_is_left_alone() -> None:
    """The second address answers once; then its server is stopped."""

    async def ask(client: Client, number: int) -> str:
        return (await client.complete(ChatRequest([{"role": "user", "content": str(number)}]))).text

    async def both() -> tuple[int, Stats]:
        with LoopbackServer(lambda _: "one") as one:
            with LoopbackServer(lambda _: "two") as two:
                ends = [Endpoint("tiny", server.url).resolved({}) for server in (one, two)]
                client = Client(ends[0], wire=over_http(ends, 5.0), backoff_s=0.001)
                assert [await ask(client, number) for number in range(2)] == ["one", "two"]
            for number in range(30):
                assert await ask(client, number) == "one"
            await client.close()
            return one.count, client.stats

    answered, stats = asyncio.run(both())
    assert answered == 31 and stats.answered == 32
    assert stats.retries == 1, "the one that is gone is tried once"


def test_a_message_says_which_address_it_is_about() -> None:
    with LoopbackServer(lambda _: SERVER_ERROR) as server:
        [found], _ = asked_of([server.url, server.url], 1, max_retries=0)
        assert isinstance(found, LLMError) and found.code == "server_error"
        assert found.message.startswith(f"tiny@{server.url}: ")
    [down], _ = asked_of([GONE, GONE], 1)
    assert isinstance(down, UserError) and "127.0.0.1:9" in str(down)


# --- Which parameter a server refuses, in the words of many servers; and what else a refusal may be about


BODY = (
    "model", "messages", "tools", "temperature", "max_tokens", "top_p", "top_k", "stop", "seed", "logprobs",
    "presence_penalty", "reasoning_effort", "chat_template_kwargs", "min_p",
)  # fmt: skip


@pytest.mark.parametrize(
    ("status", "body", "name"),
    [
        (400, error_body("Unrecognized request argument supplied: top_k"), "top_k"),
        (400, error_body("Unknown parameter: 'min_p'.", "unknown_parameter", "min_p"), "min_p"),
        (400, error_body("Unsupported parameter: 'top_p' is not supported with this model."), "top_p"),
        (403, error_body("You are not allowed to request logprobs from this model"), "logprobs"),
        (400, error_body("property 'logprobs' is unsupported"), "logprobs"),
        (400, error_body("`logprobs` is not supported with this model"), "logprobs"),
        (400, "top_k: Extra inputs are not permitted", "top_k"),
        (
            422,
            {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs"}]},
            "seed",
        ),
        (400, 'Invalid JSON payload received. Unknown name "top_k": Cannot find field.', "top_k"),
        (400, "Logprobs is not enabled for models/tiny", "logprobs"),
        (400, {"error": "Argument not supported on this model: presencePenalty"}, "presence_penalty"),
        (400, {"error": "Model tiny does not support parameter reasoningEffort."}, "reasoning_effort"),
        (400, {"error": "Argument not supported on this model: stop"}, "stop"),
        (400, error_body("Unsupported value: 'temperature' does not support 0"), "temperature"),
        (400, error_body("Unexpected keyword argument 'chat_template_kwargs'"), "chat_template_kwargs"),
        # About something else, or about a value.
        (400, error_body("Unsupported value: 'reasoning_effort' does not support 'x'"), None),
        (400, error_body("top_k must be at least 1, got -5; -5 is not supported"), None),
        (400, error_body("It is not permitted to stop here"), None),
        (400, error_body("The model does not support images in messages"), None),
        (400, error_body("model: not supported", None, "model"), None),
        (401, error_body("top_k is not permitted for this key"), None),
        (500, error_body("top_k is not supported"), None),
    ],
)  # fmt: skip
def test_a_refused_parameter_is_known_by_the_words(status: int, body: Any, name: str | None) -> None:
    assert refused(from_status(status, body, {}, with_tools=True, now=0.0), BODY) == name


def test_a_refused_value_is_not_a_refused_parameter() -> None:
    said = "Unsupported value: 'reasoning_effort' does not support 'x'. Supported values are: 'low'."
    error = from_status(400, error_body(said), {}, with_tools=False, now=0.0)
    assert (refused(error, BODY), refused_value(error, BODY)) == (None, "reasoning_effort")
    other = from_status(400, error_body("messages must be a list"), {}, with_tools=False, now=0.0)
    assert refused_value(other, BODY) is None


def test_a_long_hostile_message_takes_no_time() -> None:
    hostile = "unsupported " + "model " * 50_000 + "'" * 50_000
    assert refused(from_status(400, hostile, {}, with_tools=False, now=0.0), BODY) is None
