"""The one Ray actor for texts and answers, over a stand-in for Ray; with Ray itself: test_cluster.py."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from robustbench_tc.errors import UserError
from robustbench_tc.llm import Client, Completion, Endpoint, LLMError, LoadBalancer
from robustbench_tc.llm.balance import OpenTransport, on_actors
from robustbench_tc.llm.messages import ChatRequest

from .refusals import refuses


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause: Exception) -> None:
        self.cause = cause


class Method:
    def __init__(self, bound: Callable[..., Any], cluster: "Cluster", number: int) -> None:
        self.bound, self.cluster, self.number = bound, cluster, number

    async def remote(self, *arguments: Any) -> Any:
        if self.number in self.cluster.lost:
            raise RayError("the actor died")
        try:
            return await self.bound(*arguments)
        except Exception as error:
            raise RayTaskError(error) from None


class Actor:
    def __init__(self, made: Any, cluster: "Cluster", number: int) -> None:
        self._made, self._cluster, self._number = made, cluster, number

    def __getattr__(self, name: str) -> Method:
        return Method(getattr(self._made, name), self._cluster, self._number)


class Cluster:
    """What `on_actors` needs of the module `ray`."""

    def __init__(self, gpus: float = 0) -> None:
        self.exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)
        self.lost: set[int] = set()
        self.options: dict[str, Any] = {}
        self._gpus, self._actors = gpus, 0

    def cluster_resources(self) -> dict[str, float]:
        return {"GPU": self._gpus} if self._gpus else {}

    def remote(self, **options: Any) -> Callable[[Any], Any]:
        self.options = options

        def made(kind: Any) -> Any:
            def start(opening: OpenTransport) -> Actor:
                self._actors += 1
                return Actor(kind(opening), self, self._actors - 1)

            return SimpleNamespace(remote=start)

        return made


class Echo:
    """A transport that says who it is; `refuses` fails with that error."""

    opened: list["Echo"]

    def __init__(self, name: str, refuses: Exception | None = None) -> None:
        self.name, self.refuses = name, refuses

    async def send(self, body: dict[str, Any]) -> Completion:
        if self.refuses is not None:
            raise self.refuses
        return Completion(text=f"{self.name}: {body['messages'][0]['content']}", latency_s=0.0)

    async def served_models(self) -> list[str]:
        return [self.name, "both"]

    async def close(self) -> None:
        """Nothing is open."""


ASKED = {"messages": [{"role": "user", "content": "hello"}]}


def test_requests_go_to_actors_in_turn_and_each_opens_its_own_way() -> None:
    ways = [Echo("one"), Echo("two")]
    opened: list[str] = []

    def opening(way: Echo) -> OpenTransport:
        def open_() -> Echo:
            opened.append(way.name)
            return way

        return open_

    async def ask() -> list[str]:
        over = LoadBalancer(on_actors(Cluster(), [opening(way) for way in ways], concurrency=4), ["a", "b"])
        assert opened == []
        said = [(await over.send(ASKED)).text for _ in range(4)]
        assert await over.served_models() == ["both"]
        await over.close()
        return said

    assert asyncio.run(ask()) == ["one: hello", "two: hello"] * 2
    assert opened == ["one", "two"]


def test_errors_travel_whole_and_what_is_no_answer_comes_out_as_it_was() -> None:
    refused = LLMError("too_long", "8,000 tokens", 400, retry_after_s=2.5, param="messages")

    async def ask(error: Exception) -> None:
        [wire] = on_actors(Cluster(), [lambda: Echo("one", error)], concurrency=1)
        await wire.send(ASKED)

    with pytest.raises(LLMError) as found:
        asyncio.run(ask(refused))
    assert vars(found.value) == vars(refused)
    refuses(r"^no such weights$", asyncio.run, ask(UserError("no such weights")))


def test_a_lost_actor_is_a_failed_connection_that_the_client_asks_again_elsewhere() -> None:
    cluster, ways = Cluster(), [Echo("one"), Echo("two")]
    cluster.lost = {0}

    async def ask() -> tuple[list[str], int]:
        wires = on_actors(cluster, [lambda way=way: way for way in ways], concurrency=2)  # type: ignore[misc]
        over = LoadBalancer(wires, ["a", "b"])
        async with Client(Endpoint("m", reasoning=False), wire=over, backoff_s=0.001) as client:
            said = [(await client.complete(ChatRequest(ASKED["messages"]))).text for _ in range(3)]
            return said, client.stats.retries

    assert asyncio.run(ask()) == (["two: hello"] * 3, 1)  # the others are not sent there


def test_gpus_are_counted_before_they_are_waited_for() -> None:
    cluster = Cluster(gpus=1)
    refuses(
        "has 1 GPUs, 2 are asked for: see --gpus",
        on_actors,
        cluster,
        [lambda: Echo("x")] * 2,
        concurrency=1,
        gpus=1,
    )
    on_actors(cluster, [lambda: Echo("x")], concurrency=3, gpus=1)
    assert cluster.options["max_task_retries"] > 0  # a vLLM that starts again is waited for
    on_actors(cluster, [lambda: Echo("x")], concurrency=3)
    assert cluster.options["max_task_retries"] == 0  # an address is asked again by the client
    assert cluster.options["max_concurrency"] == 6
