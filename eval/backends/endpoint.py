"""An OpenAI-compatible endpoint, through the project's one client."""

from robustbench_tc.llm import ChatRequest, Client, Completion
from robustbench_tc.schema import Json

from ..wire import Ask


class EndpointBackend:
    """Asks over HTTP. With `seed` in the decoding, repeat n is asked with seed + n.

    `system` stands in front of every request's system message, or is one.
    """

    def __init__(self, client: Client, decoding: dict[str, Json], system: str | None = None) -> None:
        self._client = client
        self._decoding = decoding
        self._system = system

    async def ask(self, ask: Ask, repeat: int) -> Completion:
        """As `Backend.ask`; a repeat has a seed and a place in the store of its own."""
        params = dict(self._decoding)
        if params.get("seed") is not None:
            params["seed"] += repeat
        messages = with_system(ask.messages, self._system)
        return await self._client.complete(ChatRequest(messages, ask.tools, params, repeat))


def with_system(messages: list[dict[str, Json]], system: str | None) -> list[dict[str, Json]]:
    """The messages with the user's own system text in front."""
    if system is None:
        return messages
    first, *rest = messages or [{}]
    if first.get("role") != "system":
        return [{"role": "system", "content": system}, *messages]
    return [{**first, "content": f"{system}\n\n{first['content']}"}, *rest]
