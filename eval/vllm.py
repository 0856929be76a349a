"""vLLM in this process, in batches: the fastest local run. Needs the `vllm` extra.

The harness asks row by row; whatever is waiting when the engine is free becomes the next batch, so
`--concurrency` is the largest batch. It goes in by the two halves of `LLM.chat`, which itself takes one
registry for all. Native calls are cut out of the text here, as the server does (`serve_command`).
"""

import asyncio
import time
from typing import Any

import msgspec

from robustbench_tc.errors import UserError, need_extra
from robustbench_tc.llm import Completion, LLMError
from robustbench_tc.llm.errors import from_status, one_line
from robustbench_tc.schema import Json

from .request_settings import RequestSettings

_PASSED_ON = (
    "temperature",
    "max_tokens",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "stop",
    "stop_token_ids",
    "bad_words",
    "include_stop_str_in_output",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "min_tokens",
    "ignore_eos",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "logit_bias",
    "allowed_token_ids",
)
"""What `vllm.SamplingParams` has under the same name."""


def check_takes(asked: RequestSettings) -> None:
    """UserError for what an engine in this process has no place for: said before the weights are loaded."""
    if asked.headers:
        raise UserError("--header: vLLM in this process is called without HTTP: leave headers out")
    for name in asked.decoding:
        if name == "reasoning_effort":
            raise UserError(
                "--reasoning-effort: vLLM in this process has none; if the model's chat template knows "
                "it, use --chat-template-arg reasoning_effort=…"
            )
        if name not in (*_PASSED_ON, "logprobs", "chat_template_kwargs"):
            raise UserError(f"vLLM in this process takes no {name}: it takes {', '.join(_PASSED_ON)}")


class VLLMTransport:
    """One engine as a `Transport`; `weights` is a folder or Hub id, `options` are those of `vllm.LLM`."""

    def __init__(self, weights: str, *, batch: int, **options: Json) -> None:
        try:
            import vllm
        except ImportError:
            raise need_extra("vllm", "vllm") from None
        try:
            self._llm = vllm.LLM(model=weights, **options)
        except (OSError, ValueError) as error:
            raise UserError(f"vLLM cannot load {weights}: {str(error).splitlines()[0]}") from None
        self._sampling = vllm.SamplingParams
        self._weights = weights
        self._batch = batch
        self._waiting: list[tuple[dict[str, Json], asyncio.Future[Completion | LLMError]]] = []
        self._engine: asyncio.Task[None] | None = None

    async def served_models(self) -> list[str]:
        return [self._weights]

    async def close(self) -> None:
        """Waits for the requests under way; the engine itself stays loaded."""
        if self._engine is not None:
            await asyncio.gather(self._engine, return_exceptions=True)

    async def send(self, body: dict[str, Json]) -> Completion:
        """Queues the request; the engine takes all that wait together, up to `batch`. Raises LLMError."""
        done: asyncio.Future[Completion | LLMError] = asyncio.get_running_loop().create_future()
        self._waiting.append((body, done))
        if self._engine is None or self._engine.done():
            self._engine = asyncio.create_task(self._run())
        result = await done
        if isinstance(result, LLMError):
            raise result
        return result

    async def _run(self) -> None:
        """Batches until nobody waits."""
        await asyncio.sleep(0)  # let everybody who is ready get in line
        while self._waiting:
            batch, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
            results: list[Completion | LLMError]
            try:
                results = await asyncio.to_thread(self._chat, [body for body, _ in batch])
            except Exception as error:  # an engine fails in ways of its own; each is a failed request
                said = f"vLLM: {type(error).__name__}: {one_line(str(error))}"
                results = [LLMError("server_error", said) for _ in batch]
            for (_, done), result in zip(batch, results, strict=True):
                if not done.done():
                    done.set_result(result)

    def _chat(self, bodies: list[dict[str, Json]]) -> list[Completion | LLMError]:
        started = time.perf_counter()
        refused = [self._enqueue(body) for body in bodies]
        outputs = iter(self._llm.wait_for_completion(use_tqdm=False))  # in the order of the requests
        seconds = time.perf_counter() - started
        return [
            error or self._completion(next(outputs), "tools" in body, seconds)
            for body, error in zip(bodies, refused, strict=True)
        ]

    def _enqueue(self, body: dict[str, Json]) -> LLMError | None:
        """Hands a request to the engine, or says why it takes it not, such as for its length."""
        chosen = {name: body[name] for name in _PASSED_ON if body.get(name) is not None}
        if body.get("logprobs"):
            chosen["logprobs"] = 1
        try:
            self._llm.enqueue_chat(
                body["messages"],
                self._sampling(**chosen),
                use_tqdm=False,
                tools=body.get("tools"),
                chat_template_kwargs=body.get("chat_template_kwargs"),
            )
        except Exception as error:  # whatever the template or the engine raises is about this request
            return from_status(400, one_line(str(error)), {}, with_tools="tools" in body, now=time.time())
        return None

    def _completion(self, output: Any, native: bool, seconds: float) -> Completion:
        """`seconds` are those of the batch: within one, nothing shorter was measured."""
        one = output.outputs[0]
        text, calls = cut_calls(one.text) if native else (one.text, None)
        chosen = zip(one.token_ids, one.logprobs or (), strict=False)
        logprobs = [{"token": token, "logprob": at[token].logprob} for token, at in chosen]
        return Completion(
            text=text,
            tool_calls=calls,
            finish_reason="tool_calls" if calls else one.finish_reason,
            prompt_tokens=len(output.prompt_token_ids or ()),
            completion_tokens=len(one.token_ids),
            model=self._weights,
            latency_s=seconds,
            logprobs=logprobs,
        )


def cut_calls(text: str) -> tuple[str, list[dict[str, str]] | None]:
    """Text before the first `<tool_call>` block, and the blocks as native calls.

    As in the server's parser one undecodable block leaves the whole text as it is.
    """
    before, *blocks = text.split("<tool_call>")
    calls: list[dict[str, str]] = []
    for block in blocks:
        written, closed, _ = block.partition("</tool_call>")
        if not closed:
            break
        try:
            found = msgspec.json.decode(written)
            arguments = found.get("arguments", found.get("parameters", {}))
            name = found["name"]
        except (ValueError, KeyError, AttributeError, RecursionError):
            return text, None
        if not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments).decode()
        calls.append({"id": f"call_{len(calls)}", "name": str(name), "arguments": arguments})
    return (before, calls) if calls else (text, None)
