"""What a server does with the requests of a run."""

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..eval.record import Finding

TIMEOUT_S = 60.0


def probe(model: str, *, base_url: str | None = None, long: int | None = None) -> "list[Finding]":
    """`rbtc probe`: fourteen short requests, each with what its reply means for a run.

    `long`: also whether a request of so many words is taken. Raises UserError where nobody answers.
    """
    from ..eval import probe
    from ..eval.evaluate import endpoints
    from ..llm import Client, over_http

    [endpoint] = endpoints(model, base_url or (), None, "openai", {})

    async def asked() -> "list[Finding]":
        wire = over_http([endpoint], TIMEOUT_S)
        async with Client(endpoint, wire=wire, concurrency=4, max_retries=1) as client:
            found = await probe.ask(client, endpoint.model)
            return [*found, await probe.ask_long(client, long)] if long else found

    return asyncio.run(asked())
