"""inspect_ai's model as a speaker of ours.

In prompt mode a request goes out as inspect_ai's messages. In function-calling mode its own tools would be
rewritten on the way (`strict`, `additionalProperties`, equal names), so messages and registry go as fields of
the body, as `rbtc eval` sends them, and only to chat completions.
"""

import time

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Model,
    ModelOutput,
)
from inspect_ai.model._generate_config import active_generate_config

from robustbench_tc.eval import wire
from robustbench_tc.eval.speakers import ModelSpeaker
from robustbench_tc.llm import Completion, LLMError
from robustbench_tc.llm.errors import from_status
from robustbench_tc.schema import dumps

FINISHED = {"max_tokens": "length"}
"""inspect_ai's stop reasons by the words of chat completions; the others are the same."""


def messages(ask: wire.Ask) -> list[ChatMessage]:
    """A request for inspect_ai; of native calls and results it shows the text only (the body has them)."""
    kinds = {"system": ChatMessageSystem, "assistant": ChatMessageAssistant}
    return [kinds.get(m["role"], ChatMessageUser)(content=m["content"] or "") for m in ask.messages]


class InspectSpeaker(ModelSpeaker):
    """Asks inspect_ai's model; `output` and `error` are those of the latest request."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.output: ModelOutput | None = None
        self.error: Exception | None = None

    async def ask(self, ask: wire.Ask, repeat: int) -> Completion:
        """The completion of one request. Raises LLMError for a refusal, which may be scored."""
        self.output = self.error = None
        started = time.monotonic()
        try:
            output = await self._model.generate(messages(ask), config=self._config(ask))
        except Exception as error:  # each provider has its own; without a status it goes on
            self.error = error
            body, status = getattr(error, "body", None), getattr(error, "status_code", None)
            if not isinstance(status, int):
                raise
            raise from_status(status, body, {}, with_tools=ask.tools is not None, now=0.0) from error
        if output.stop_reason == "model_length" and output.usage is None:
            raise LLMError("too_long", output.completion)
        if output.stop_reason == "content_filter" and output.usage is None:
            raise LLMError("content_filter", output.completion)
        self.output = output
        return _completion(output, time.monotonic() - started)

    def _config(self, ask: wire.Ask) -> GenerateConfig:
        if ask.tools is None:
            return GenerateConfig()
        from inspect_ai.model._providers.openai_compatible import OpenAICompatibleAPI

        api, config = self._model.api, self._model.config.merge(active_generate_config())
        if not isinstance(api, OpenAICompatibleAPI) or api.uses_responses_api([], config):
            raise PrerequisiteError(
                "mode=fc needs chat completions (openai-api/NAME/MODEL, vllm/MODEL …): other providers "
                "rewrite the registry; use -T mode=prompt, or rbtc eval --mode fc"
            )
        return GenerateConfig(
            extra_body={**(config.extra_body or {}), "messages": ask.messages, "tools": ask.tools}
        )


def _completion(output: ModelOutput, seconds: float) -> Completion:
    message = output.message
    parts = [ContentText(text=message.content)] if isinstance(message.content, str) else message.content
    text, reasoning = "", ""
    for part in parts:
        if isinstance(part, ContentReasoning) and part.internal == "think":  # it stood in the text
            text += f"<think>{part.reasoning}</think>\n\n"
        elif isinstance(part, ContentReasoning):
            reasoning += part.reasoning
        elif isinstance(part, ContentText):
            text += part.text
    calls = [
        {"id": one.id, "name": one.function, "arguments": one.parse_error or dumps(one.arguments)}
        for one in message.tool_calls or ()
    ]
    return Completion(
        text=text,
        tool_calls=calls or None,
        finish_reason=FINISHED.get(output.stop_reason, output.stop_reason),
        prompt_tokens=output.usage.input_tokens if output.usage else None,
        completion_tokens=output.usage.output_tokens if output.usage else None,
        model=output.model,
        latency_s=seconds,
        reasoning=reasoning or None,
    )
