"""An agent that knows nothing of doors: it asks, carries out what comes back, and asks again."""

import http.client
import json
from collections.abc import Callable
from typing import Any, Self
from urllib.parse import quote, urlsplit

Json = Any


class Client:
    """Posts chat completions over one connection; a context manager."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._root = parts.path.removesuffix("/v1")
        self._http = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)

    def post(self, session: str | None, body: Json, endpoint: str = "/chat/completions") -> tuple[int, bytes]:
        place = f"/s/{quote(session, safe='')}" if session is not None else ""
        path = f"{self._root}{place}/v1{endpoint}"
        self._http.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        found = self._http.getresponse()
        return found.status, found.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()


def assembled(stream: bytes) -> Json:
    """A streamed reply as a whole one: its message and finish reason. Fails for a stream that is broken."""
    message: dict[str, Json] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Json]] = {}
    finish = None
    ids = set()
    *events, end = [one for one in stream.decode().split("\n\n") if one.startswith("data: ")]
    assert end == "data: [DONE]"
    for event in events:
        chunk = json.loads(event.removeprefix("data: "))
        ids.add(chunk.get("id"))
        for choice in chunk["choices"]:
            assert finish is None, "something follows the end"
            delta = choice["delta"]
            if delta.get("content"):
                message["content"] = (message["content"] or "") + delta["content"]
            for part in delta.get("tool_calls") or ():
                if part["index"] not in calls:
                    assert part["index"] == len(calls), "calls are not numbered in turn"
                    calls[part["index"]] = {
                        "id": part["id"],
                        "type": part["type"],
                        "function": {"name": "", "arguments": ""},
                    }
                calls[part["index"]]["function"]["name"] += part["function"].get("name", "")
                calls[part["index"]]["function"]["arguments"] += part["function"].get("arguments", "")
            finish = choice.get("finish_reason") or finish
    assert finish is not None and len(ids) == 1
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def work(
    client: Client,
    session: str | None,
    messages: list[Json],
    tools: list[Json],
    carry_out: Callable[[str, str], str] = lambda name, arguments: '{"done": true}',
    *,
    rounds: int = 4,
    stream: bool = False,
    gives_up: bool = False,
) -> list[Json]:
    """Works on a request for so many replies; the whole conversation, replies included.

    `gives_up`: ends where the server answers with an error.
    """
    registered = {tool["function"]["name"] for tool in tools}
    messages = list(messages)
    for _ in range(rounds):
        body: dict[str, Json] = {"model": "m", "messages": messages, "tools": tools, "user": session}
        if stream:
            body["stream"] = True
        status, said = client.post(session, body)
        if gives_up and status != 200:
            break
        assert status == 200, said[:500]
        reply = assembled(said) if stream else json.loads(said)
        message = reply["choices"][0]["message"]
        messages.append(message)
        calls = message.get("tool_calls") or []
        assert (reply["choices"][0]["finish_reason"] == "tool_calls") == bool(calls)
        for call in calls:
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            assert name in registered, f"{session}: the agent is asked to call {name}"
            messages.append(
                {"role": "tool", "tool_call_id": call["id"], "content": carry_out(name, arguments)}
            )
        if not calls:
            break
    return messages
