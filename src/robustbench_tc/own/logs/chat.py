"""What a log is, and the entries of its conversations, whichever format they are written in.

Formats differ in what stands around a conversation (`formats`, `spans`), and in words: who speaks, what a
part of a content is, where a call has its name and arguments. The words are tables here, read by one reader.
"""

import json
import re
from typing import Any, Literal, TypeAlias

import msgspec

from robustbench_tc.own.cases import OwnTool
from robustbench_tc.own.files import Unreadable, decode_text
from robustbench_tc.schema import Json

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class LoggedCall(msgspec.Struct, frozen=True):
    """A call that the agent made."""

    id: str
    """Empty where the log has none."""
    name: str
    """As the log writes it."""
    arguments: dict[str, Json] | None
    """None where the text is not a JSON object."""
    text: str
    """The arguments as the log has them."""


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation."""

    role: Role
    text: str
    calls: tuple[LoggedCall, ...] = ()
    call_id: str = ""
    """Of a tool's message: which call it answers. Empty where the log does not say."""
    left_out: tuple[str, ...] = ()
    """Kinds of parts that are not text: `image`, `audio`, `video`, `file`, `hosted`."""

    def then(self, more: "Message") -> tuple["Message"]:
        """This and what the same one said at once, as one message."""
        text, calls, left_out = self.text + more.text, self.calls + more.calls, self.left_out + more.left_out
        return (Message(self.role, text, calls, self.call_id, left_out),)


class TimedRun(msgspec.Struct, frozen=True):
    """How long a tool took once."""

    tool: str
    text: str
    """What it answered; empty where that was not recorded."""
    seconds: float


class Conversation(msgspec.Struct, frozen=True):
    """One conversation, its messages in order."""

    id: str
    """The log's own, else made of its file and line. May stand there twice."""
    log: str
    """The stem of its file."""
    line: int
    """Where it begins, from 1; several conversations may stand in one line."""
    messages: tuple[Message, ...]
    tools: tuple[OwnTool, ...] | None
    """What the agent was offered; None where the log does not say."""
    runs: tuple[TimedRun, ...] = ()
    """Of its tools, where the log has spans of them with both ends."""


_ROLES: dict[str, Role] = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "gpt", "model"), "assistant"),
    **dict.fromkeys(("tool", "function", "observation"), "tool"),  # `function`: before tool calls had ids
}
"""By the word of a format; LangChain's `HumanMessageChunk` is `human`."""
_GEMINI = {
    "text": "text",
    **dict.fromkeys(("functionCall", "function_call"), "call"),
    **dict.fromkeys(("functionResponse", "function_response"), "result"),
    **dict.fromkeys(("inlineData", "inline_data", "fileData", "file_data"), "file"),
    **dict.fromkeys(("executableCode", "executable_code"), "hosted"),
    **dict.fromkeys(("codeExecutionResult", "code_execution_result"), "hosted"),
}
"""What a part is, by the key that holds it."""
_TYPES = {
    **dict.fromkeys(("text", "input_text", "output_text", "refusal"), "text"),
    **dict.fromkeys(("tool_use", "tool_call", "function_call", "custom_tool_call"), "call"),
    **dict.fromkeys(("tool_result", "tool_call_response"), "result"),
    **dict.fromkeys(("function_call_output", "custom_tool_call_output"), "result"),
    **dict.fromkeys(("reasoning", "thinking", "redacted_thinking", "mcp_list_tools"), "thought"),
    **dict.fromkeys(("image", "image_url", "input_image"), "image"),
    **dict.fromkeys(("audio", "input_audio"), "audio"),
    "video": "video",
    **dict.fromkeys(("file", "input_file", "document", "blob", "file_data", "uri"), "file"),
}
"""What a part, or an item of Responses, is, by its `type`."""
_HOSTED = re.compile("_(tool_use|tool_result|call|call_output)$")
"""What is left of types so called: runs of a provider's own tools, as `web_search_call`."""
_OTHER = ("image", "audio", "video", "file", "hosted")
_SAID = ("message", "reasoning", "function_call", "custom_tool_call")
"""Items of which a model says several at once."""


def first_of(given: Json, *names: str) -> Json:
    """The first value that an object has under one of these names; None without one."""
    if not isinstance(given, dict):
        return None
    return next((given[name] for name in names if given.get(name) is not None), None)


def opened(given: Json) -> Json:
    """A text that is a JSON object or list as that; any other value as it is."""
    if isinstance(given, str) and given.lstrip()[:1] in ("{", "["):
        try:
            found = decode_text(given)
        except Unreadable:
            return given
        if isinstance(found, dict | list):
            return found
    return given


def each(given: Json) -> list[Json]:
    """The entries of a list; of another value none."""
    return given if isinstance(given, list) else []


def name(given: Json) -> str:
    """An id as a text; empty where there is none."""
    return str(given) if isinstance(given, str | int) and not isinstance(given, bool) else ""


def read_messages(entries: Json) -> tuple[Message, ...]:
    """Messages of a list of entries. Raises Unreadable."""
    found: list[Message] = []
    before = None
    for number, entry in enumerate(each(entries), 1):
        try:
            made = read_entry(entry)
        except Unreadable as error:
            raise Unreadable(f"message {number}: {error}") from None
        kind = entry.get("type")
        said = [one.role for one in (*found[-1:], *made)]
        if before in _SAID and kind in _SAID and said == ["assistant", "assistant"]:
            made = [*found.pop().then(made[0])]
        found += made
        before = kind
    return tuple(found)


def read_entry(entry: Json) -> list[Message]:
    """The messages of one entry: the answers of tools that it holds, then what else it says."""
    if not isinstance(entry, dict):
        raise Unreadable("is not an object")
    body = _unwrapped(entry)
    given = first_of(body, "content", "parts", "contents", "value")
    word = body.get("role", body.get("from"))
    item = _kind(body.get("type")) if word is None else ""
    if item == "thought":
        return []
    if item:
        given, word = [body], "tool" if item == "result" else "assistant"
    elif word is None:
        word = body.get("type", "user" if "parts" in body else None)
    role = _ROLES.get(re.sub("(message)?(chunk)?$", "", str(word).lower()))
    if role is None:
        raise Unreadable("'role' is not one of system, user, assistant, tool")
    if isinstance(body.get("parts"), str):
        raise Unreadable("has no 'parts'")
    if role == "tool" and not (_is_parts(given) and any(_part(one)[0] == "result" for one in given)):
        return [_answer(body, given)]
    texts, left_out = list[str](), list[str]()
    calls, answers = list[LoggedCall](), list[Message]()
    for kind, part in map(_part, _listed(given)):
        if kind == "text":
            text = first_of(part, "text", "content", "refusal")
            if not isinstance(text, str):
                raise Unreadable("a part of 'content' has no text")
            texts.append(text)
        elif kind == "call":
            calls.append(read_call(part))
        elif kind == "result":
            answers.append(_answer(part, first_of(part, "output", "content", "response", "result")))
        elif kind in _OTHER:
            left_out.append(kind)
        elif kind != "thought":
            raise Unreadable("a part of 'content' is of a kind that is not read")
    if role == "assistant":
        calls = _calls(body) or calls
        spoken = (body.get("refusal"), first_of(body.get("audio"), "transcript"))
        texts = texts or [text for text in spoken if isinstance(text, str)]
    elif calls:
        raise Unreadable("a call that is not the assistant's")
    if texts or calls or left_out or not answers:
        answers.append(Message(role, "".join(texts), tuple(calls), "", tuple(left_out)))
    return answers


def _unwrapped(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry out of what LangChain and OpenInference put around it."""
    for key in ("message", "kwargs", "data"):
        inner = entry.get(key)
        if isinstance(inner, dict) and "role" not in entry:
            path = entry.get("id")
            kind = path[-1] if isinstance(path, list) and path else entry.get("type")
            entry = {"type": kind} | inner
    return entry


def _listed(given: Json) -> list[Json]:
    """The parts of a content."""
    given = first_of(given, "parts") or given
    if not given:
        return []
    if isinstance(given, str):
        return [{"type": "text", "text": given}]
    if not isinstance(given, list):
        raise Unreadable("'content' is neither a text nor a list of parts")
    return given


def _kind(word: Json) -> str:
    """What a `type` means, in our words; empty for one that is not known."""
    return _TYPES.get(str(word)) or ("hosted" if _HOSTED.search(str(word)) else "")


def _part(part: Json) -> tuple[str, Any]:
    """What a part is, in our words, and its body."""
    if not isinstance(part, dict):
        return "", part
    inner = part.get("message_content")  # OpenInference's; a call stands beside it
    part = part | inner if isinstance(inner, dict) else part
    if part.get("modality") in _OTHER:
        return str(part["modality"]), part
    if (kind := part.get("type")) is not None or part.get("thought") is True:
        return ("thought" if kind is None else _kind(kind)), part
    key = next((key for key in part if key in _GEMINI and part[key] is not None), "")
    return _GEMINI.get(key, ""), part if key == "text" else part.get(key)


def _is_parts(given: Json) -> bool:
    """Whether a value is a list of parts, and not what a tool answered."""
    kinds = {_part(one)[0] for one in each(given)}
    return bool(kinds) and kinds <= {"text", "image", "audio", "result"}


def _answer(body: Json, given: Json) -> Message:
    """What a tool answered."""
    text, left_out = answer_text(given)
    if not text and isinstance(failed := first_of(first_of(body, "error"), "message"), str):
        text = failed
    return Message(
        "tool", text, (), name(first_of(body, "tool_call_id", "tool_use_id", "call_id", "id")), left_out
    )


def answer_text(given: Json) -> tuple[str, tuple[str, ...]]:
    """The text of an answer, and the kinds of its parts that are not text; other values as JSON."""
    if given is None or isinstance(given, str):
        return given or "", ()
    if _is_parts(given):
        said = read_entry({"role": "user", "content": given})[-1]
        return said.text, said.left_out
    return json.dumps(given, ensure_ascii=False), ()


def _calls(body: dict[str, Any]) -> list[LoggedCall]:
    """The calls of a message that lists them beside its content."""
    found: list[Json] = []
    for key in ("tool_calls", "invalid_tool_calls"):
        listed = opened(body.get(key))
        if not isinstance(listed, list | None):
            raise Unreadable(f"'{key}' is not a list")
        found += listed or []
    old = first_of(body, "function_call")
    return list(map(read_call, found if old is None else [*found, old]))


def read_call(given: Json) -> LoggedCall:
    """A call, its name and arguments inside `function` or beside its id. Raises Unreadable."""
    given = first_of(given, "tool_call") or given
    if not isinstance(given, dict):
        raise Unreadable("a tool call is not an object")
    inner = first_of(given, "function", "custom")
    body = inner if isinstance(inner, dict) else given
    called = inner if isinstance(inner, str) and "arguments" in given else body.get("name")
    if not isinstance(called, str) or not called.strip():
        raise Unreadable("a call has no name")
    return logged(
        name(first_of(given, "call_id", "id")), called, first_of(body, "arguments", "args", "input")
    )


def logged(call_id: str, called: str, arguments: Json) -> LoggedCall:
    """A call whose arguments are an object or its text; nothing at all is no arguments."""
    text = "" if arguments is None else arguments
    if not isinstance(text, str):
        text = json.dumps(text, ensure_ascii=False)
    try:
        value = decode_text(text) if text.strip() else {}
    except Unreadable:
        value = None
    return LoggedCall(call_id, called, value if isinstance(value, dict) else None, text)


# Requests and replies, as the APIs of providers have them


def asked(request: Json, system: Json = None) -> list[Json]:
    """The entries of a request: its instructions, then its messages. Raises Unreadable."""
    request = opened(request)
    given = request
    if isinstance(request, dict):
        given = opened(first_of(request, "messages", "input", "contents"))
        system = system or first_of(
            request, "system", "instructions", "systemInstruction", "system_instruction"
        )
    if isinstance(given, dict):
        return asked(given, system)
    if isinstance(given, str) and first_of(request, "messages") is None:
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise Unreadable("'messages' is not a list with messages in it")
    given = given[0] if isinstance(given[0], list) else given  # LangChain's batch of one
    if system and not any(first_of(one, "role") == "system" for one in given):
        given = [{"role": "system", "content": system}, *given]
    return given


def replied(reply: Json) -> list[Json]:
    """The entries of a reply: of several choices the first."""
    reply = opened(reply)
    if isinstance(reply, str):
        if re.match("(data|event): ?", reply):
            raise Unreadable("the reply is a stream: log what the SDK made of it")
        return [{"role": "assistant", "content": reply}]
    if isinstance(reply, dict):
        inner = first_of(reply, "choices", "candidates", "generations", "messages", "output", "message")
        if inner is not None and "role" not in reply:
            return replied(inner)
        return [reply] if reply.keys() & {"role", "content", "kwargs"} else []
    if not isinstance(reply, list) or not reply:
        return []
    first = reply[0]
    if isinstance(first, list):
        return replied(first)
    if isinstance(content := first_of(first, "content"), dict):
        return [{"role": "model", **content}]
    # Items of Responses, and the messages of a whole conversation, are no choices.
    are_choices = all(
        first_of(one, "type") is None and first_of(one, "role") in (None, "assistant") for one in reply
    )
    is_generation = isinstance(first_of(first, "message"), dict)
    return reply[:1] if are_choices or is_generation else reply


def offered(given: Json) -> list[Json] | None:
    """Definitions of tools as a tools file has them; None where there is no list of them."""
    given = opened(given)
    if not isinstance(given, list):
        return None
    found: list[Json] = []
    for one in given:
        tool = opened(first_of(one, "tool") or one)  # OpenInference's
        tool = opened(first_of(tool, "json_schema") or tool)
        for entry in each(first_of(tool, "functionDeclarations", "function_declarations")) or [tool]:
            schema = opened(first_of(entry, "parametersJsonSchema", "parameters_json_schema", "parameters"))
            if isinstance(schema, dict):
                about = {key: entry[key] for key in ("name", "description") if key in entry}
                entry = {**about, "parameters": json.loads(json.dumps(schema), object_hook=_lowered)}
            found.append(entry)
    return found


def defined(entry: Json) -> Json:
    """The tool that an entry defines: Langfuse lists those of LangChain among messages. None for others."""
    content = first_of(entry, "content") if first_of(entry, "role") == "tool" else None
    return content if isinstance(first_of(content, "function", "input_schema"), dict) else None


def _lowered(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with Gemini's `OBJECT` and `STRING` as JSON Schema has them, and without its SDK's nulls."""
    kind, data = schema.get("type"), ("default", "const", "example")
    schema = {key: value for key, value in schema.items() if value is not None or key in data}
    return schema | {"type": kind.lower()} if isinstance(kind, str) and kind.isupper() else schema
