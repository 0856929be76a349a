"""vLLM in this process, in batches: the fastest local run. Needs the `vllm` extra.

The harness asks row by row; whatever is waiting when the engine is free becomes the next batch, so
`--concurrency` is the largest batch. Native calls are cut out of the text here, as the server's hermes parser
does (`serve_command`): in fc mode a reply's `<tool_call>` blocks become its tool calls.
"""

import asyncio
import time
from typing import Any

import msgspec

from robustbench_tc.errors import UserError, need_extra
from robustbench_tc.llm import Completion, LLMError
from robustbench_tc.schema import Json

from ..request_settings import RequestSettings

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
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
        raise UserError("--header: vLLM in this process is asked without HTTP: leave headers out")
    for name in asked.decoding:
        if name == "reasoning_effort":
            raise UserError(
                "--reasoning-effort: vLLM in this process has none; where the model's chat template knows it "
                "say --chat-template-arg reasoning_effort=…"
            )
        if name not in (*_PASSED_ON, "logprobs", "chat_template_kwargs"):
            raise UserError(f"vLLM in this process takes no {name}: it takes {', '.join(_PASSED_ON)}")


class VLLMTransport:
    """One engine as a `Transport`; `weights` is a folder or Hub id."""

    def __init__(
        self, weights: str, *, batch: int, dtype: str | None = None, max_model_len: int | None = None
    ) -> None:
        try:
            import vllm
        except ImportError:
            raise need_extra("vllm", "vllm") from None
        options: dict[str, Json] = {"dtype": dtype, "max_model_len": max_model_len}
        try:
            self._llm = vllm.LLM(model=weights, **{k: v for k, v in options.items() if v is not None})
        except (OSError, ValueError) as error:
            raise UserError(f"vLLM cannot load {weights}: {str(error).splitlines()[0]}") from None
        self._sampling = vllm.SamplingParams
        self._tokenizer = self._llm.get_tokenizer()
        self._limit: int = max_model_len or self._llm.llm_engine.model_config.max_model_len
        self._weights = weights
        self._batch = batch
        self._waiting: list[tuple[dict[str, Json], asyncio.Future[Completion]]] = []
        self._engine: asyncio.Task[None] | None = None

    async def served_models(self) -> list[str]:
        return [self._weights]

    async def close(self) -> None:
        """Waits for the requests under way; the engine itself stays loaded."""
        if self._engine is not None:
            await asyncio.gather(self._engine, return_exceptions=True)

    async def send(self, body: dict[str, Json]) -> Completion:
        """Queues the request; the engine takes all that wait together, up to `batch`. Raises LLMError."""
        done: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._waiting.append((body, done))
        if self._engine is None or self._engine.done():
            self._engine = asyncio.create_task(self._run())
        return await done

    async def _run(self) -> None:
        """Batches until nobody waits."""
        await asyncio.sleep(0)  # let everybody who is ready get in line
        while self._waiting:
            batch, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
            try:
                results = await asyncio.to_thread(self._generate, [body for body, _ in batch])
            except Exception as error:  # an engine fails in ways of its own; each is a failed request
                text = " ".join(str(error).split())[:300]
                results = [LLMError("server_error", f"vLLM: {type(error).__name__}: {text}") for _ in batch]
            for (_, done), result in zip(batch, results, strict=True):
                if done.done():
                    continue
                if isinstance(result, LLMError):
                    done.set_exception(result)
                else:
                    done.set_result(result)

    def _generate(self, bodies: list[dict[str, Json]]) -> list[Completion | LLMError]:
        results: list[Completion | LLMError | None] = []
        prompts: list[str] = []
        sampling: list[Any] = []
        for body in bodies:
            text = self._tokenizer.apply_chat_template(
                [_for_template(message) for message in body["messages"]],
                tools=body.get("tools"),
                add_generation_prompt=True,
                tokenize=False,
                **(body.get("chat_template_kwargs") or {}),
            )
            length = len(self._tokenizer(text, add_special_tokens=False)["input_ids"])
            if length >= self._limit:
                message = f"a prompt of {length} tokens; the model takes {self._limit}"
                results.append(LLMError("too_long", message))
                continue
            results.append(None)
            prompts.append(text)
            chosen = {name: body[name] for name in _PASSED_ON if body.get(name) is not None}
            sampling.append(self._sampling(**chosen, **({"logprobs": 1} if body.get("logprobs") else {})))
        started = time.perf_counter()
        outputs = iter(self._llm.generate(prompts, sampling, use_tqdm=False) if prompts else ())
        seconds = time.perf_counter() - started
        return [
            self._completion(next(outputs), "tools" in body, seconds) if result is None else result
            for result, body in zip(results, bodies, strict=True)
        ]

    def _completion(self, output: Any, native: bool, seconds: float) -> Completion:
        """`seconds` are those of the batch: within one, nothing shorter was measured."""
        one = output.outputs[0]
        text, calls = cut_calls(one.text) if native else (one.text, None)
        logprobs = None
        if one.logprobs:
            chosen = zip(one.token_ids, one.logprobs, strict=True)
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
    calls: list[dict[str, str]] = []
    start = text.find(_OPEN)
    at = start
    while at >= 0 and (end := text.find(_CLOSE, at)) >= 0:
        try:
            found = msgspec.json.decode(text[at + len(_OPEN) : end])
            arguments = found.get("arguments", found.get("parameters", {}))
            name = found["name"]
        except (ValueError, KeyError, AttributeError, RecursionError):
            return text, None
        written = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        calls.append({"id": f"call_{len(calls)}", "name": str(name), "arguments": written})
        at = text.find(_OPEN, end)
    return (text[:start], calls) if calls else (text, None)


def _for_template(message: dict[str, Json]) -> dict[str, Json]:
    """Templates write `arguments` as JSON themselves: they want the object, not its text."""
    if not message.get("tool_calls"):
        return message
    calls = []
    for call in message["tool_calls"]:
        function = call["function"]
        try:
            arguments = msgspec.json.decode(function["arguments"])
        except ValueError:
            arguments = function["arguments"]
        calls.append({**call, "function": {**function, "arguments": arguments}})
    return {**message, "content": message.get("content") or "", "tool_calls": calls}
