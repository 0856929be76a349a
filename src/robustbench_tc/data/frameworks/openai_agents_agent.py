"""An agent of the OpenAI Agents SDK under `rbtc eval --command`, and behind `rbtc proxy`.

The request comes on standard input, the calls of the first reply go to standard output. With `--loop` it runs
to its end, as it does in production: use that behind the door, which sees every call. The model is asked
where OPENAI_BASE_URL says.
"""

import asyncio
import json
import os
import sys

from agents import (
    Agent,
    FunctionTool,
    ModelSettings,
    OpenAIChatCompletionsModel,
    Runner,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

LOOP = "--loop" in sys.argv


async def carried_out(context, arguments: str) -> str:
    """Your tools go here."""
    return '{"status": "ok"}'


def tools(listed: list[dict]) -> list[FunctionTool]:
    return [
        FunctionTool(
            name=one["function"]["name"],
            description=one["function"].get("description") or "",
            params_json_schema=one["function"]["parameters"],
            on_invoke_tool=carried_out,
            strict_json_schema=False,
        )
        for one in listed
    ]


def items(chat: list[dict]) -> list[dict]:
    """The conversation, with earlier calls and their results as the SDK has them."""
    found = []
    for one in chat:
        if one["role"] == "tool":
            found.append(
                {"type": "function_call_output", "call_id": one["tool_call_id"], "output": one["content"]}
            )
            continue
        if one.get("content"):
            found.append({"role": one["role"], "content": one["content"]})
        calls = one.get("tool_calls") or ()
        found += [{"type": "function_call", "call_id": call["id"], **call["function"]} for call in calls]
    return found


async def main() -> dict:
    asked = json.load(sys.stdin)
    set_tracing_disabled(True)  # it would send the conversation to OpenAI
    agent = Agent(
        name="agent",
        model=OpenAIChatCompletionsModel(os.environ.get("MODEL", "gpt-5-mini"), AsyncOpenAI()),
        model_settings=ModelSettings(temperature=0),
        tools=tools(asked["tools"]),
        tool_use_behavior="run_llm_again" if LOOP else "stop_on_first_tool",
    )
    done = await Runner.run(agent, items(asked["messages"]), max_turns=10)
    first = done.raw_responses[0]
    calls = [one for one in first.output if one.type == "function_call"]
    texts = [
        part.text
        for one in first.output
        if one.type == "message"
        for part in one.content
        if part.type == "output_text"
    ]
    return {
        "text": "".join(texts),
        "calls": [{"name": one.name, "arguments": json.loads(one.arguments or "{}")} for one in calls],
        "usage": {"prompt_tokens": first.usage.input_tokens, "completion_tokens": first.usage.output_tokens},
    }


print(json.dumps(asyncio.run(main())))
