"""An OpenAI-compatible server's Batch API: every request says which answer of the journal it is for."""

from robustbench_tc.llm import Completion
from robustbench_tc.llm.batch import asking

from ..wire import Ask
from .endpoint import EndpointBackend


class BatchBackend(EndpointBackend):
    """As `EndpointBackend`, over a client whose transport is a `BatchTransport`."""

    async def ask(self, ask: Ask, repeat: int) -> Completion:
        """As `Backend.ask`; returns when the batch has ended."""
        before = asking.set(ask.key)
        try:
            return await super().ask(ask, repeat)
        finally:
            asking.reset(before)
