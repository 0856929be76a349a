"""What Anthropic's Messages API says: whole replies, and their events."""

import json
from typing import Any

Json = Any
THINKING = {"type": "thinking", "thinking": "It came late.", "signature": "EqQBCgIYAhIM"}


def reply(calls: list[tuple[str, str]], text: str | None = None, turn: int = 1) -> Json:
    content: list[Json] = [THINKING]
    if text is not None:
        content.append({"type": "text", "text": text})
    content += [
        {"type": "tool_use", "id": f"toolu_{turn}_{n}", "name": name, "input": json.loads(arguments)}
        for n, (name, arguments) in enumerate(calls)
    ]
    return {
        "id": f"msg_{turn}",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 0},
    }


def events_of(whole: Json, size: int = 3) -> list[Json]:
    """A reply as its events: texts, thinking and inputs in fragments of so many characters."""
    usage = whole["usage"]
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events: list[Json] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        here = {"index": index}
        empty: Json = {"tool_use": {"input": {}}, "text": {"text": ""}}.get(
            block["type"], {"thinking": "", "signature": ""}
        )
        events.append({"type": "content_block_start", **here, "content_block": {**block, **empty}})
        parts = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}
        kind, name = parts.get(block["type"], ("input_json_delta", "partial_json"))
        said = block.get(name) if name in block else json.dumps(block["input"])
        for at in range(0, len(said), size):
            delta = {"type": kind, name: said[at : at + size]}
            events.append({"type": "content_block_delta", **here, "delta": delta})
        if "signature" in block:
            delta = {"type": "signature_delta", "signature": block["signature"]}
            events.append({"type": "content_block_delta", **here, "delta": delta})
        events.append({"type": "content_block_stop", **here})
    ends = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    events.append(
        {"type": "message_delta", "delta": ends, "usage": {"output_tokens": usage["output_tokens"]}}
    )
    return [*events, {"type": "message_stop"}]


def stream_of(whole: Json, size: int = 3) -> bytes:
    """Its bytes."""
    lines = [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events_of(whole, size)]
    return "".join(lines).encode()


def assembled(stream: bytes) -> Json:
    """The reply that a stream amounts to. Fails for one whose blocks are not numbered in turn, or that does
    not end."""
    events = [json.loads(one.partition("data: ")[2]) for one in stream.decode().split("\n\n") if one.strip()]
    whole: Json = {}
    inputs: dict[int, str] = {}
    for event in events:
        kind, index, delta = event["type"], event.get("index"), event.get("delta", {})
        if kind == "message_start":
            assert not whole, "a reply begins twice"
            whole = {**event["message"], "content": []}
        elif kind == "content_block_start":
            assert index == len(whole["content"]), "blocks are not numbered in turn"
            whole["content"].append(dict(event["content_block"]))
        elif kind == "content_block_delta":
            block = whole["content"][index]
            for name, more in delta.items():
                if name == "partial_json":
                    inputs[index] = inputs.get(index, "") + more
                elif name != "type":
                    block[name] += more
        elif kind == "message_delta":
            whole |= delta
            whole["usage"] = {**whole["usage"], **event["usage"]}
    assert events[-1] == {"type": "message_stop"}
    for index, text in inputs.items():
        whole["content"][index]["input"] = json.loads(text)
    return whole


def sound(messages: list[Json]) -> None:
    """The user begins, roles alternate, and the results of all calls stand first in the next message."""
    assert [one["role"] for one in messages] == [
        "assistant" if at % 2 else "user" for at in range(len(messages))
    ]
    waiting: list[str] = []
    for message in messages:
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = [one["tool_use_id"] for one in blocks if one["type"] == "tool_result"]
        assert sorted(results) == sorted(waiting), "calls without results, or results without calls"
        assert all(one["type"] == "tool_result" for one in blocks[: len(results)])
        waiting = [one["id"] for one in blocks if one["type"] == "tool_use"]
    assert not waiting
