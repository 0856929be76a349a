"""An OpenAI-compatible endpoint, through the project's one client."""

from robustbench_tc.llm import ChatRequest, Client, Completion
from robustbench_tc.schema import Json

from ..wire import Ask


class EndpointBackend:
    """Asks over HTTP. With `seed` in the decoding, repeat n is asked with seed + n."""

    def __init__(self, client: Client, decoding: dict[str, Json]) -> None:
        self._client = client
        self._decoding = decoding

    async def ask(self, ask: Ask, repeat: int) -> Completion:
        """As `Backend.ask`; a repeat has a seed and a place in the store of its own."""
        return await self._client.complete(
            ChatRequest(ask.messages, ask.tools, params(self._decoding, repeat), repeat)
        )


def params(decoding: dict[str, Json], repeat: int) -> dict[str, Json]:
    """The parameters of one request."""
    seed = decoding.get("seed")
    return decoding if seed is None or repeat == 0 else {**decoding, "seed": seed + repeat}
