"""What goes over the wire for one row: the first request, and the second after an injected error.

fc mode sends the registry as native `tools=`; prompt mode puts it into the system message (`prompts`). The
protocol of the second pass is benchmark.md §6, letter by letter: nothing else is said.
"""

import itertools
from collections.abc import Sequence

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.eval.prompts.calls import earlier_calls
from robustbench_tc.llm import call_id
from robustbench_tc.llm.wire_names import MAX_NAME, safe_name
from robustbench_tc.schema import Call, Json, Sample, Tool, dumps

from .prompts import OURS, Prompts, own_messages

NO_TEXT = "(no text)"
"""Stands for a reply without text and calls: many servers refuse an empty message."""


class Ask(msgspec.Struct, frozen=True):
    """One request: OpenAI chat messages, and OpenAI tools in fc mode."""

    messages: list[dict[str, Json]]
    tools: list[dict[str, Json]] | None = None
    row: Sample | None = None
    """What is asked about, for agents in this process; nothing of it beside the request goes anywhere."""
    number: int = 1
    """Of the reply that is asked for, from 1."""
    draw: int = 0
    """Which of several samples of the same request, from 0."""


def has_duplicates(ask: Ask) -> bool:
    """Whether tools of the request have the same name, which some servers refuse."""
    names = [tool["function"]["name"] for tool in ask.tools or ()]
    return len(set(names)) < len(names)


class WireNames:
    """Tool names as a server accepts them, and back.

    Unsafe characters (BFCL's dots) become `_`. Equal names stay equal: duplicates are sent as they are.
    Different names stay different, a name that needs no change keeps it. A name that no tool has comes back
    as it is.
    """

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        names = dict.fromkeys(tool.name for tool in tools)
        self._back: dict[str, str] = {}
        for name in sorted(names, key=lambda name: safe_name(name) != name):  # a safe name is its own first
            wire, number = safe_name(name), 2
            while wire in self._back:
                tail = f"_{number}"
                wire, number = safe_name(name)[: MAX_NAME - len(tail)] + tail, number + 1
            self._back[wire] = name
        self._wire = {name: wire for wire, name in self._back.items()}

    def wire(self, name: str) -> str:
        """The name that the endpoint sees for a tool's name."""
        return self._wire.get(name) or safe_name(name)

    def back(self, wire: str) -> str:
        """The tool's name for one that the endpoint sent; a name that was never sent stays."""
        return self._back.get(wire, wire)


def first(row: Sample, mode: str, words: Prompts = OURS) -> Ask:
    """The request every row begins with. `mode` is `prompt` or `fc`; `words`: of prompt mode."""
    if mode == "prompt":
        return Ask([dict(m) for m in words.messages(row)])
    names = WireNames(row.tools)
    return Ask(_native(row, names), [function(tool, names) for tool in row.tools])


def _native(row: Sample, names: WireNames) -> list[dict[str, Json]]:
    """The row's messages, with the calls of earlier turns as native ones where each has its result."""
    messages = own_messages(row)
    said: list[dict[str, Json]] = [{"role": m.role, "content": m.content} for m in messages]
    for place, message in enumerate(messages):
        found = earlier_calls(message) if message.role == "assistant" else None
        if found is None:
            continue
        text, calls = found
        results = list(itertools.takewhile(lambda one: one["role"] == "tool", said[place + 1 :]))
        if len(results) != len(calls):
            continue
        made = [{"name": call.name, "arguments": dumps(call.parameters)} for call in calls]
        said[place : place + 1 + len(calls)] = calling(
            text, made, [str(result["content"]) for result in results], names, said[:place]
        )
    return said


def answered(row: Sample) -> int:
    """How many of the row's calls are answered with its text before the reply that is scored."""
    if row.injected_error is None:
        return 0
    return taxonomy.get(row.type_code).answered_calls if taxonomy.known(row.type_code) else 1


def following(
    row: Sample,
    mode: str,
    replies: Sequence[tuple[str | None, Json]],
    results: Sequence[Sequence[str] | None] = (),
    words: Prompts = OURS,
) -> Ask:
    """The request after so many replies (text, native calls).

    `results`: for each reply what its calls were answered with, in their order; without any, the row's text.
    """
    asked, names = first(row, mode, words), WireNames(row.tools)
    messages = list(asked.messages)
    for place, (text, tool_calls) in enumerate(replies):
        said = results[place] if place < len(results) else None
        turn = words.result("\n".join([row.injected_error or ""] if said is None else said))
        texts = [row.injected_error or ""] * len(tool_calls or ()) if said is None else said
        messages += replied(text, tool_calls, texts, turn, mode, names, messages)
    return Ask(messages, asked.tools)


def replied(
    text: str | None,
    tool_calls: Json,
    results: Sequence[str],
    turn: str | None,
    mode: str,
    names: WireNames,
    before: Sequence[dict[str, Json]],
) -> list[dict[str, Json]]:
    """A reply and what its calls were answered with, as the next request has them: one tool message for each
    native call; of calls in a text, the user's `turn`. `before`: the messages that it replied to."""
    if mode == "fc" and tool_calls and results:
        return calling(text, tool_calls, results, names, before)
    said = {"role": "assistant", "content": written(text, tool_calls)}
    return [said] if turn is None else [said, {"role": "user", "content": turn}]


def calling(
    text: str | None,
    calls: Sequence[dict[str, Json]],
    results: Sequence[str],
    names: WireNames,
    before: Sequence[dict[str, Json]],
) -> list[dict[str, Json]]:
    """A reply with native calls and what each was answered, as messages that every server takes.

    `results`: a text for each call. `before`: the messages in front of these, whose ids stay theirs. What a
    server would refuse is mended: arguments that are no JSON object go out as `{}` (vLLM refuses the history
    otherwise), an id is nine letters or digits and stands once (Mistral), content is a text.
    """
    taken = {call["id"] for message in before for call in message.get("tool_calls") or ()}
    sent: list[dict[str, Json]] = []
    for place, call in enumerate(calls):
        name = call_id(str(call.get("id") or f"{len(before)}_{place}"))
        while name in taken:
            name = call_id(name)
        taken.add(name)
        function = {"name": names.wire(call["name"]), "arguments": _object_text(call["arguments"])}
        sent.append({"id": name, "type": "function", "function": function})
    return [
        {"role": "assistant", "content": text or "", "tool_calls": sent},
        *(
            {"role": "tool", "tool_call_id": call["id"], "content": result}
            for call, result in zip(sent, results, strict=True)
        ),
    ]


def _object_text(arguments: str) -> str:
    """Arguments as they came where they are a JSON object; any server can read the others as `{}`."""
    try:
        msgspec.json.decode(arguments, type=dict)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return "{}"
    return arguments


def names_back(tools: tuple[Tool, ...], tool_calls: Json) -> Json:
    """Native calls `[{"id", "name", "arguments"}]` with the registry's own names; none as they came."""
    if not tool_calls:
        return tool_calls
    names = WireNames(tools)
    return [{**call, "name": names.back(call["name"])} for call in tool_calls]


def native(calls: Sequence[Call], prefix: str = "call_") -> list[dict[str, Json]]:
    """Calls in the form of native ones, with ids that begin so."""
    return [
        {"id": f"{prefix}{at}", "name": call.name, "arguments": dumps(call.parameters)}
        for at, call in enumerate(calls)
    ]


def function(tool: Tool, names: WireNames) -> dict[str, Json]:
    """A tool as an entry of a request's `tools`."""
    found: dict[str, Json] = {"name": names.wire(tool.name)}
    if tool.description:
        found["description"] = tool.description
    found["parameters"] = tool.parameters or {"type": "object", "properties": {}}
    return {"type": "function", "function": found}


def written(text: str | None, tool_calls: Json) -> str:
    """A reply without native calls as an assistant's message, which no server takes empty."""
    if text and text.strip():
        return text
    # Calls that a server cut out of the text although no tools were sent, put back as tagged JSON.
    tagged = "\n".join(
        f'<tool_call>\n{{"name": {dumps(c["name"])}, "arguments": {c["arguments"]}}}\n</tool_call>'
        for c in tool_calls or ()
    )
    return tagged or NO_TEXT
