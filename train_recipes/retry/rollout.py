"""verl's pieces of the retry-aware rollout: a parser for rlla's calls and a tool that serves every name.

verl's own Hermes parser reads one JSON object per block and the key `arguments`; rlla writes several lines
in one block, with the key `parameters`. verl's own loop knows a fixed set of tools; rlla's rows each have
theirs.
"""

import json
from typing import Any

from verl.experimental.agent_loop.tool_parser import FunctionCall, ToolParser
from verl.tools.base_tool import BaseTool
from verl.tools.schemas import (
    OpenAIFunctionParametersSchema,
    OpenAIFunctionSchema,
    OpenAIFunctionToolSchema,
    ToolResponse,
)


@ToolParser.register("rlla")
class RllaToolParser(ToolParser):
    """The calls of the first tool-call block, one JSON object per line; other lines are passed over."""

    async def extract_tool_calls(
        self, responses_ids: list[int], tools: Any = None
    ) -> tuple[str, list[FunctionCall]]:
        """The decoded text (kept whole: the history shows what the model wrote) and its calls."""
        text = self.tokenizer.decode(responses_ids, skip_special_tokens=True)
        return text, read_calls(text)


def read_calls(text: str) -> list[FunctionCall]:
    """The calls of the first block of a text; never raises."""
    block = text.partition("<tool_call>")[2].partition("</tool_call>")[0]
    calls = []
    for line in block.split("\n"):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):  # a line that is not JSON is not a call
            continue
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            calls.append(FunctionCall(name=value["name"], arguments=json.dumps(value.get("parameters"))))
    return calls


class ReplayTool(BaseTool):
    """Answers a call of any name: with the error that it is given, else with a plain success.

    No real tool stands behind a row, so a success says nothing about the call's arguments: the reward does.
    """

    def __init__(self) -> None:
        schema = OpenAIFunctionSchema(
            name="replay",
            description="Serves every tool of a row.",
            parameters=OpenAIFunctionParametersSchema(type="object", properties={}, required=[]),
        )
        self.config: dict[str, Any] = {}
        self.tool_schema = OpenAIFunctionToolSchema(type="function", function=schema)
        self.name = "replay"

    async def execute(
        self, instance_id: str, parameters: dict[str, Any], **kwargs: Any
    ) -> tuple[ToolResponse, float, dict[str, Any]]:
        """The answer to one call. `kwargs`: `name` of the called tool, `error` text or None."""
        if kwargs.get("error"):
            return ToolResponse(text=kwargs["error"]), 0.0, {"failed": 1}
        result = json.dumps(
            {"name": kwargs.get("name"), "results": {"status": "success"}}, ensure_ascii=False
        )
        return ToolResponse(text=result), 0.0, {"failed": 0}
