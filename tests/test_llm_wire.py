"""Several addresses of one model: who is asked, and what happens when one of them is gone."""

import asyncio
from collections.abc import Sequence
from typing import Any

from robustbench_tc.errors import UserError
from robustbench_tc.llm import ChatRequest, Client, Endpoint, LLMError, Stats, over_http, parse_endpoints

from .loopback import SERVER_ERROR, LoopbackServer
from .refusals import refuses

GONE = "http://127.0.0.1:9/v1"


def asked(urls: Sequence[str], requests: int, **options: Any) -> tuple[list[str | BaseException], Stats]:
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
        texts, stats = asked([one.url, two.url], 40, concurrency=8)
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
        [found], _ = asked([server.url, server.url], 1, max_retries=0)
        assert isinstance(found, LLMError) and found.code == "server_error"
        assert found.message.startswith(f"tiny@{server.url}: ")
    [down], _ = asked([GONE, GONE], 1)
    assert isinstance(down, UserError) and "127.0.0.1:9" in str(down)
