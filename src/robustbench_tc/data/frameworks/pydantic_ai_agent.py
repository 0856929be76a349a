"""A pydantic-ai agent under `rbtc eval --command`, and behind `rbtc proxy`.

The request comes on standard input, the calls of the first reply go to standard output. With `--loop` it runs
to its end, as it does in production: use that behind the door, which sees every call. The model is asked
where OPENAI_BASE_URL says.
"""

import json
import os
import sys

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

LOOP = "--loop" in sys.argv


def carried_out(name: str, arguments: dict) -> str:
    """Your tools go here."""
    return '{"status": "ok"}'


def tools(listed: list[dict]) -> list[ToolDefinition]:
    """One of each name: pydantic-ai refuses a second, so a namesake cannot be shown to its model."""
    found = {}
    for one in listed:
        function = one["function"]
        found.setdefault(
            function["name"],
            ToolDefinition(
                name=function["name"],
                description=function.get("description"),
                parameters_json_schema=function["parameters"],
            ),
        )
    return list(found.values())


def history(chat: list[dict]) -> list:
    """The conversation, with earlier calls and their results as pydantic-ai has them."""
    found, names = [], {}
    for one in chat:
        if one["role"] == "assistant":
            parts = [TextPart(one["content"])] if one.get("content") else []
            for call in one.get("tool_calls") or ():
                names[call["id"]] = call["function"]["name"]
                parts.append(
                    ToolCallPart(call["function"]["name"], call["function"]["arguments"], call["id"])
                )
            found.append(ModelResponse(parts))
        elif one["role"] == "tool":
            number = one["tool_call_id"]
            found.append(ModelRequest([ToolReturnPart(names.get(number, "?"), one["content"], number)]))
        else:
            part = SystemPromptPart if one["role"] == "system" else UserPromptPart
            found.append(ModelRequest([part(one["content"])]))
    return found


asked = json.load(sys.stdin)
agent = Agent(
    OpenAIChatModel(os.environ.get("MODEL", "gpt-5-mini")),
    toolsets=[ExternalToolset(tools(asked["tools"]))],
    output_type=[str, DeferredToolRequests],
    model_settings={"temperature": 0},
)
done = agent.run_sync(message_history=history(asked["messages"]))
first = done.output
calls = first.calls if isinstance(first, DeferredToolRequests) else []
used = done.usage
for _ in range(10):
    if not LOOP or not isinstance(done.output, DeferredToolRequests):
        break
    answers = {one.tool_call_id: carried_out(one.tool_name, one.args_as_dict()) for one in done.output.calls}
    done = agent.run_sync(
        message_history=done.all_messages(), deferred_tool_results=DeferredToolResults(calls=answers)
    )
found = [{"name": one.tool_name, "arguments": one.args_as_dict()} for one in calls]
usage = {"prompt_tokens": used.input_tokens, "completion_tokens": used.output_tokens}
print(json.dumps({"text": first if isinstance(first, str) else "", "calls": found, "usage": usage}))
