"""What the Responses API says: whole replies, and their events."""

import json
from typing import Any

Json = Any


def response(calls: list[tuple[str, str]], text: str | None = None, turn: int = 1) -> Json:
    output: list[Json] = [{"type": "reasoning", "id": f"rs_{turn}", "summary": [], "encrypted_content": "x"}]
    if text is not None:
        part = {"type": "output_text", "text": text, "annotations": []}
        output.append({"type": "message", "id": f"msg_{turn}", "role": "assistant", "status": "completed",
                       "content": [part]})  # fmt: skip
    output += [
        {"type": "function_call", "id": f"fc_{turn}_{n}", "call_id": f"call_{turn}_{n}", "name": name,
         "arguments": arguments, "status": "completed"}
        for n, (name, arguments) in enumerate(calls)
    ]  # fmt: skip
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    return {
        "id": f"resp_{turn}",
        "object": "response",
        "status": "completed",
        "output": output,
        "usage": usage,
    }


def in_events(whole: Json) -> list[bytes]:
    """A response as its events; texts and arguments in fragments of three characters."""
    events: list[Json] = [{"type": "response.created", "response": {**whole, "output": [], "status": "x"}}]
    for at, item in enumerate(whole["output"]):
        here = {"output_index": at}
        empty: Json = (
            {"content": []} if item["type"] == "message" else {"arguments": ""} if "name" in item else {}
        )
        events.append({"type": "response.output_item.added", **here, "item": {**item, **empty}})
        if item["type"] == "function_call":
            text, kind = item["arguments"], "response.function_call_arguments"
            events += [{"type": f"{kind}.delta", **here, "item_id": item["id"], "delta": text[n : n + 3]}
                       for n in range(0, len(text), 3)]  # fmt: skip
            events.append({"type": f"{kind}.done", **here, "item_id": item["id"], "arguments": text})
        elif item["type"] == "message":
            part = {**here, "item_id": item["id"], "content_index": 0}
            whole_part = item["content"][0]
            text, kind = whole_part["text"], "response.output_text"
            events.append({"type": "response.content_part.added", **part, "part": {**whole_part, "text": ""}})
            events += [{"type": f"{kind}.delta", **part, "logprobs": [], "delta": text[n : n + 3]}
                       for n in range(0, len(text), 3)]  # fmt: skip
            events.append({"type": f"{kind}.done", **part, "logprobs": [], "text": text})
            events.append({"type": "response.content_part.done", **part, "part": whole_part})
        events.append({"type": "response.output_item.done", **here, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return [
        f"event: {one['type']}\ndata: {json.dumps({**one, 'sequence_number': n})}\n\n".encode()
        for n, one in enumerate(events)
    ]


def assembled(stream: bytes) -> Json:
    """The response that a stream amounts to: its events are numbered in turn and tell the same as its end."""
    events = [json.loads(one.partition("data: ")[2]) for one in stream.decode().split("\n\n") if one.strip()]
    assert [one["sequence_number"] for one in events] == list(range(len(events)))
    items: dict[int, Json] = {}
    arguments: dict[int, str] = {}
    for event in events:
        at = event.get("output_index")
        if event["type"] == "response.output_item.added":
            assert at == len(items), "items are not numbered in turn"
            items[at] = event["item"]
        elif event["type"] == "response.function_call_arguments.delta":
            arguments[at] = arguments.get(at, "") + event["delta"]
        elif event["type"] == "response.output_item.done":
            assert items[at].get("name") == event["item"].get("name")
            assert arguments.get(at, "") == event["item"].get("arguments", "")
            items[at] = event["item"]
    last = events[-1]
    assert last["type"] == "response.completed"
    assert last["response"]["output"] == [items[at] for at in sorted(items)]
    assert len({one["response"]["id"] for one in events if "response" in one}) == 1
    whole: Json = last["response"]
    return whole


def sound(items: Json) -> None:
    """Every call has its result, and every result its call."""
    if isinstance(items, list):
        calls = [one["call_id"] for one in items if one.get("type") == "function_call"]
        results = [one["call_id"] for one in items if one.get("type") == "function_call_output"]
        assert sorted(calls) == sorted(results)
