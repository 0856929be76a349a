"""OpenAI's own client behind the door: it is left as it is, and reads what the door writes."""

from typing import Any

import openai
import pytest

from robustbench_tc.proxy.door import Door
from robustbench_tc.proxy.relay import serving

from . import test_responses as responses
from .scripted import chat_reply
from .test_door import ASKED, BUDGET, CHEAP, GET, PAY, TOOLS, Script
from .wire import serving as server_of

Json = Any


def client(url: str) -> Json:
    return openai.OpenAI(base_url=url.replace("/v1", "/s/refund-17.0/v1"), api_key="sk-mine", max_retries=0)


def test_chat_completions_whole_and_streamed() -> None:
    script = Script(chat_reply([CHEAP, GET, PAY], "Let me see."))
    with server_of(script) as server, serving(Door(server.url, BUDGET)) as url, client(url) as own:
        whole = own.chat.completions.create(model="m", messages=ASKED, tools=TOOLS)
        names = [call.function.name for call in whole.choices[0].message.tool_calls]
        assert names == ["get_order", "refund"]
        with own.chat.completions.stream(
            model="m", messages=ASKED, tools=TOOLS, stream_options={"include_usage": True}
        ) as stream:
            found = stream.get_final_completion()
        assert found.choices[0].message.content == "Let me see."
        calls = [
            (call.function.name, call.function.arguments) for call in found.choices[0].message.tool_calls
        ]
        assert calls == [GET, PAY]
        assert found.usage.total_tokens == 5
    assert {seen.headers["Authorization"] for seen in server.seen} == {"Bearer sk-mine"}


def test_responses_whole_and_streamed() -> None:
    script = responses.Script(([CHEAP, GET, PAY], "Let me see."))
    with server_of(script) as server, serving(Door(server.url, BUDGET)) as url, client(url) as own:
        whole = own.responses.create(model="m", input="Refund order 7.", tools=responses.FLAT)
        with own.responses.stream(model="m", input="Refund order 7.", tools=responses.FLAT) as stream:
            streamed = stream.get_final_response()
    for found in (whole, streamed):
        assert found.output_text == "Let me see."
        assert [(one.name, one.arguments) for one in found.output if one.type == "function_call"] == [
            GET,
            PAY,
        ]


def test_an_error_of_the_door_is_one_that_the_client_knows() -> None:
    with (
        server_of(Script(chat_reply([], "Hi"))) as server,
        serving(Door(server.url, BUDGET)) as url,
        client(url) as own,
        pytest.raises(openai.BadRequestError, match="'n' is not supported"),
    ):
        own.chat.completions.create(model="m", messages=ASKED, tools=TOOLS, n=2)
