"""A LangGraph agent under `rbtc eval --command`, and behind `rbtc proxy`.

The request comes on standard input, the calls of the first reply go to standard output. With `--loop` the
graph runs to its end, as it does in production: use that behind the door, which sees every call. The model
is asked where OPENAI_BASE_URL says.
"""

import json
import os
import sys
import warnings

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI

warnings.filterwarnings("ignore")
from langgraph.prebuilt import create_react_agent  # noqa: E402

LOOP = "--loop" in sys.argv


def carried_out(**arguments) -> str:
    """Your tools go here."""
    return '{"status": "ok"}'


def tools(listed: list[dict]) -> list:
    """Without the loop the model is only told of them, so that the graph ends at the first call."""
    if not LOOP:
        return listed
    return [
        StructuredTool(
            name=one["function"]["name"],
            description=one["function"].get("description") or one["function"]["name"],
            args_schema=one["function"]["parameters"],
            func=carried_out,
        )
        for one in listed
    ]


def messages(chat: list[dict]) -> list:
    """The conversation, with earlier calls and their results as LangChain has them."""
    found = []
    for one in chat:
        if one["role"] == "tool":
            found.append(ToolMessage(one["content"], tool_call_id=one["tool_call_id"]))
        elif one["role"] == "assistant":
            calls = [
                {
                    "id": call["id"],
                    "name": call["function"]["name"],
                    "args": json.loads(call["function"]["arguments"]),
                }
                for call in one.get("tool_calls") or ()
            ]
            found.append(AIMessage(one.get("content") or "", tool_calls=calls))
        else:
            found.append(one)
    return found


asked = json.load(sys.stdin)
model = ChatOpenAI(model=os.environ.get("MODEL", "gpt-5-mini"), temperature=0)
graph = create_react_agent(model, tools(asked["tools"]))
before = messages(asked["messages"])
after = graph.invoke({"messages": before}, {"recursion_limit": 20})["messages"]
first = next(one for one in after[len(before) :] if isinstance(one, AIMessage))
calls = [{"name": call["name"], "arguments": call["args"]} for call in first.tool_calls]
used = first.usage_metadata or {}
usage = {"prompt_tokens": used.get("input_tokens", 0), "completion_tokens": used.get("output_tokens", 0)}
print(json.dumps({"text": first.text, "calls": calls, "usage": usage}))
