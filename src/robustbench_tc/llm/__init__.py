"""One client for every model call: generation, judging, inference, over any OpenAI-compatible endpoint."""

from ..io.store import Store
from .client import Client, Stats
from .errors import LLMError
from .messages import ChatRequest, Completion, completion
from .native import NativeTransport, Provider, native_endpoint, native_model
from .transport import Endpoint, Transport, over_http, parse_endpoint, parse_endpoints

__all__ = [
    "ChatRequest",
    "Client",
    "Completion",
    "Endpoint",
    "LLMError",
    "NativeTransport",
    "Provider",
    "Stats",
    "Store",
    "Transport",
    "completion",
    "native_endpoint",
    "native_model",
    "over_http",
    "parse_endpoint",
    "parse_endpoints",
]
