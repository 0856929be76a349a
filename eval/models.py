"""The paper's models, and open ones of today: how each is served and asked (`models.toml`)."""

import shlex
import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.schema import Json, dumps

DEFAULT_DECODING: dict[str, Json] = {"temperature": 0.0, "max_tokens": 1024}
"""The paper's, for every model that its table does not give others."""

NO_THINKING = {"enable_thinking": False}
"""Chat template arguments of the Qwen3 family and its descendants."""


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of `models.toml`."""

    name: str
    group: str
    mode: Literal["prompt", "fc"]
    params_b: float | None = None
    """Billions of parameters."""
    weights: str | None = None
    """Hub id."""
    base_url: str | None = None
    """Of a closed model."""
    thinking: Literal["off"] | None = None
    opens_thought: bool = False
    """The chat template ends inside a thought: a reply without its closing tag is all thought."""
    dtype: str | None = None
    max_model_len: int | None = None
    """Tokens."""
    temperature: float | None = None
    max_tokens: int | None = None
    """None: the endpoint decides about these two."""
    parser: str | None = None
    """Of tool calls, in vLLM's server; None: no page is known that names one."""
    flags: str = ""
    """What else its server needs."""
    source: str | None = None
    """The page that names parser and flags."""

    @property
    def paper_mode(self) -> str:
        """The mode in the paper's words: fc against a provider is `api`."""
        if self.base_url is not None:
            return "api"
        return self.mode


@cache
def models() -> dict[str, Model]:
    """Every model by its name, in the order of the paper's table, then the open ones."""
    text = files(__package__).joinpath("models.toml").read_text("utf-8")
    entries = tomllib.loads(text)
    return {name: msgspec.convert({"name": name, **entry}, Model) for name, entry in entries.items()}


@cache
def find(name: str) -> Model | None:
    """The model of that name, or of that Hub id, in any case; None when the table has none."""
    wanted = name.lower()
    for model in models().values():
        if wanted in (model.name.lower(), (model.weights or "").lower()):
            return model
    return None


def mode_of(name: str) -> Literal["prompt", "fc"]:
    """How a model is asked unless somebody says otherwise: as it was trained, else natively."""
    entry = find(name)
    return "fc" if entry is None else entry.mode


def serve_command(name: str, *, weights: str | None = None, port: int = 8000) -> str:
    """The `vllm serve` line for a model of the table. Raises UserError.

    The server answers to the table's name and to its lower-case form, so that `rbtc eval --model` takes both.
    """
    model = find(name)
    if model is None:
        raise unknown("model", name, models())
    if model.base_url is not None:
        raise UserError(
            f"{model.name} is a closed model: rbtc eval --model {model.name} --base-url {model.base_url}"
        )
    source = weights or model.weights
    if source is None:
        raise UserError(f"{model.name} has no published weights: name a folder or Hub id after it")
    served = dict.fromkeys([model.name, model.name.lower()])
    words = ["vllm", "serve", source, "--served-model-name", *served, "--port", str(port)]
    options = {
        "--dtype": model.dtype,
        "--max-model-len": model.max_model_len,
        "--enable-auto-tool-choice --tool-call-parser": model.parser,
        "--default-chat-template-kwargs": {"off": dumps(NO_THINKING)}.get(model.thinking or ""),
    }
    for option, value in options.items():
        words += [] if value is None else [*option.split(), str(value)]
    return shlex.join([*words, *shlex.split(model.flags)])
