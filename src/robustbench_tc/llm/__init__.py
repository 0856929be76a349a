"""One client for every model call: generation, judging, inference, over any OpenAI-compatible endpoint.

A request goes in (`ChatRequest`), a `Completion` or an `LLMError` comes out. Begin with `client.py`, which
retries, counts and keeps; `transport.py` sends one attempt, as `native.py` does to providers with an API of
their own, and `balance.py` shares requests out among several addresses.
"""

from .balance import LoadBalancer, over_http
from .client import Client, Stats
from .endpoint import PROVIDERS, Endpoint, native_model, parse_endpoint, parse_endpoints
from .errors import LLMError
from .messages import ChatRequest, Completion, call_id, completion
from .native import need_any_llm
from .store import Store
from .transport import Transport

__all__ = [
    "PROVIDERS",
    "ChatRequest",
    "Client",
    "Completion",
    "Endpoint",
    "LLMError",
    "LoadBalancer",
    "Stats",
    "Store",
    "Transport",
    "call_id",
    "completion",
    "native_model",
    "need_any_llm",
    "over_http",
    "parse_endpoint",
    "parse_endpoints",
]
