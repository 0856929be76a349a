"""Conversations of logs as proposed cases: every batch of calls one, its history the messages before it."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, takewhile
from typing import Any

from robustbench_tc.eval.score import matchers
from robustbench_tc.llm.wire_names import safe_name
from robustbench_tc.own.cases import PROBLEM, PROPOSED_BY, OwnTool, fingerprint
from robustbench_tc.own.files import Unreadable, decode_text
from robustbench_tc.schema import Json

from .chat import Conversation, LoggedCall, Message
from .redact import Redactor

Proposal = dict[str, Json]
"""A case as a cases file has it: `id`, `proposed_by`, `messages`, `expect`, …"""

NOT_JSON = "the arguments of a call are not a JSON object"
KEY = 500
"""Characters of an object's key: YAML takes no longer ones on a line."""
LEVELS = 150
HISTORY = 1_000_000
"""Characters of a case's history."""


def learn(conversation: Conversation, hide: Redactor) -> None:
    """Takes note of what a conversation holds that is to be replaced."""
    for message in conversation.messages:
        hide.apply(opened(message.text))
        for call in message.calls:
            hide.apply(call.text if call.arguments is None else call.arguments)


def opened(text: str) -> Json:
    """A text that is a JSON object or list as that; any other as it is."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            found = decode_text(text)
        except Unreadable:
            return text
        if isinstance(found, dict | list):
            return found
    return text


class Proposals:
    """Makes cases; `left` counts what makes none, by its reason."""

    def __init__(
        self, tools: Sequence[OwnTool], problem: Callable[[Proposal], str | None], hide: Redactor
    ) -> None:
        """`problem`: why a case cannot be read, None where it can (`own.read.Checker`)."""
        self.left: Counter[str] = Counter()
        self._problem = problem
        self._hide = hide
        self._numbers: Counter[str] = Counter()
        """By log and line how many cases there are already."""
        self._names = {tool.tool.name: tool.tool.name for tool in tools}
        wire = Counter(safe_name(name) for name in self._names)
        for name in list(self._names):
            if wire[safe_name(name)] == 1:
                self._names.setdefault(safe_name(name), name)
        self._seen: set[str] = set()
        self._texts: dict[int, str] = {}
        """By the place of a message in the conversation at hand: its text without personal data."""

    def of(self, log: str, found: Conversation) -> Iterator[Proposal]:
        """The cases of a conversation."""
        self._texts = {}
        if any(message.left_out for message in found.messages):
            self.left["holds images, sounds or files"] += 1
            return
        batches = [at for at, message in enumerate(found.messages) if message.calls]
        if not batches:
            yield from self._without_calls(log, found)
            return
        for at in batches:
            history = found.messages[:at]
            if not any(message.role == "user" for message in history):
                self.left["calls before any request"] += 1
                continue
            answers = list(takewhile(lambda one: one.role == "tool", found.messages[at + 1 :]))
            yield from self._case(log, found, history, (found.messages[at], answers))

    def _without_calls(self, log: str, found: Conversation) -> Iterator[Proposal]:
        roles = [message.role for message in found.messages]
        if "user" not in roles or roles[-1] != "assistant":
            self.left["no request, or no answer to it"] += 1
            return
        last = len(roles) - 1 - roles[::-1].index("user")
        yield from self._case(log, found, found.messages[: last + 1], None)

    def _case(
        self,
        log: str,
        found: Conversation,
        history: Sequence[Message],
        batch: tuple[Message, list[Message]] | None,
    ) -> Iterator[Proposal]:
        if sum(len(one.text) + sum(len(call.text) for call in one.calls) for one in history) > HISTORY:
            self.left[f"a history of more than {HISTORY:,} characters"] += 1
            return
        problem = None
        body: Proposal
        if len(history) == 1 and history[0].role == "user":
            body = {"request": self._hide.text(history[0].text)}
        else:
            body = {"messages": list(self._messages(history))}
        if batch is None:
            body["expect"] = "no_call"
        else:
            calls, answers = batch
            body["expect"] = [self._call(call) for call in calls.calls]
            if any(call.arguments is None for call in calls.calls):
                problem = NOT_JSON
            if results := self._results(calls.calls, answers):
                body["results"] = results
        if not fits(body):
            self.left[f"keys of more than {KEY} characters, or more than {LEVELS} levels"] += 1
            return
        mark = fingerprint(body)
        if mark in self._seen:
            self.left["the same as a case before"] += 1
            return
        self._seen.add(mark)
        place = f"{log}:{found.line}"
        self._numbers[place] += 1
        end = f"-{found.line}-{self._numbers[place]}"
        case: Proposal = {"id": log[: 64 - len(end)] + end, PROPOSED_BY: place}
        if (why := problem or self._problem(case | body)) is not None:
            case[PROBLEM] = " ".join(why.split())[:300]
        yield case | body

    # Parts of a case

    def _name(self, name: str) -> str:
        """The name that cases write: a client's form of it is mapped back, an unknown one stays."""
        return self._names.get(name) or self._hide.text(name)

    def _call(self, call: LoggedCall) -> dict[str, Json]:
        found: dict[str, Json] = {"call": self._name(call.name)}
        given = self._hide.apply(call.arguments) if call.arguments else None
        if given:
            found["arguments"] = {key: plain(value) for key, value in given.items()}
        return found

    def _messages(self, history: Sequence[Message]) -> Iterator[dict[str, Json]]:
        """The history as chat messages, with call ids of its own: a log's may be missing."""
        begin = next((at for at, one in enumerate(history) if one.role != "system"), len(history))
        if begin:
            text = "\n\n".join(self._text(at, one) for at, one in enumerate(history[:begin]))
            if text.strip():
                yield {"role": "system", "content": text}
        waiting: list[tuple[str, str]] = []
        made = 0
        for at, message in enumerate(history[begin:], begin):
            text = self._text(at, message)
            if message.calls:
                ids = [f"c{made + n}" for n in range(1, len(message.calls) + 1)]
                made += len(ids)
                waiting = [(call.id, new) for call, new in zip(message.calls, ids, strict=True)]
                calls: list[Json] = [
                    self._earlier(call, new) for call, new in zip(message.calls, ids, strict=True)
                ]
                yield {"role": "assistant", "content": text or None, "tool_calls": calls}
            elif message.role == "tool":
                answered = _take(waiting, message.call_id)
                yield {"role": "tool", "tool_call_id": answered or "unknown", "content": text}
            else:
                waiting = []
                yield {"role": message.role, "content": text}

    def _text(self, place: int, message: Message) -> str:
        """A message's text; every case of a conversation says it again."""
        if place not in self._texts:
            self._texts[place] = hidden(message.text, self._hide)
        return self._texts[place]

    def _earlier(self, call: LoggedCall, new: str) -> Json:
        if call.arguments is None:
            text = self._hide.text(call.text)
        else:
            text = json.dumps(self._hide.apply(call.arguments), ensure_ascii=False)
        body: dict[str, Json] = {"name": self._name(call.name), "arguments": text}
        return {"id": new, "type": "function", "function": body}

    def _results(self, calls: Sequence[LoggedCall], answers: Sequence[Message]) -> dict[str, Json]:
        waiting = [(call.id, str(place)) for place, call in enumerate(calls)]
        by_place = {_take(waiting, one.call_id): one.text for one in answers}
        found: dict[str, Json] = {}
        for place, call in enumerate(calls):
            text = by_place.get(str(place))
            if text is not None:
                found.setdefault(self._name(call.name), []).append(self._hide.apply(opened(text)))
        return found


def _take(waiting: list[tuple[str, str]], call_id: str) -> str:
    """The new id of the call that a result answers, by its id, else the first that waits; empty for none."""
    for at, (given, _) in enumerate(waiting):
        if given == call_id or not (call_id and given):
            return waiting.pop(at)[1]
    return ""


def hidden(text: str, hide: Redactor) -> str:
    """A text without personal data; JSON in it is looked into, and stays as it was where nothing is found."""
    found = opened(text)
    if isinstance(found, str):
        return hide.text(text)
    new = hide.apply(found)
    return text if new == found else json.dumps(new, ensure_ascii=False)


def plain(value: Json) -> Json:
    """A logged value as what is expected: what looks like a matcher is none."""
    return {"exact": value} if _like_a_matcher(value) else value


def _like_a_matcher(value: Any) -> bool:
    if isinstance(value, dict):
        return matchers.kind(value) is not None or any(map(_like_a_matcher, value.values()))
    return isinstance(value, list) and any(map(_like_a_matcher, value))


def fits(value: Json, level: int = 0) -> bool:
    """Whether a cases file can hold a value."""
    if level > LEVELS:
        return False
    if isinstance(value, dict):
        return all(len(key) <= KEY and fits(one, level + 1) for key, one in value.items())
    return not isinstance(value, list) or all(fits(one, level + 1) for one in value)


# Cases as the YAML that `own.yaml` reads back: structure in lines, values as JSON.

_WIDTH = 100


def _entry(proposal: Proposal) -> str:
    """One entry of `cases:`."""
    lines = []
    for key, found in proposal.items():
        if isinstance(found, list) and found and len(as_json(found)) > _WIDTH:
            lines += [f"{key}:", *(f"- {as_json(one)}" for one in found)]
        else:
            lines.append(f"{key}: {as_json(found)}")
    return "".join(f"{'- ' if at == 0 else '  '}{line}\n" for at, line in enumerate(lines))


def as_json(found: Json) -> str:
    """A value as JSON, which YAML is: what YAML does not take as it is, is escaped."""
    return "".join(map(_seen, json.dumps(found, ensure_ascii=False)))


def _seen(char: str) -> str:
    if char.isprintable():
        return char
    units = char.encode("utf-16-be")
    if len(units) == 2:
        return f"\\u{units.hex()}"
    return f"\\U{ord(char):08x}"  # of YAML, not of JSON


def case_files(tools: Sequence[str], proposals: Iterable[Proposal], most: int, note: str) -> dict[str, bytes]:
    """The cases in files of at most `most` bytes, in their order: `cases.yaml`, `cases-2.yaml` and so on.

    `note`: where they come from.
    """
    first = (
        f"# {note}\n# Review them with `rbtc cases review`; until then every table says that they are not.\n"
        f"version: 1\ntools: {as_json(list(tools))}\ncases:\n"
    ).encode()
    found: list[list[bytes]] = []
    size = most + 1
    for proposal in proposals:
        entry = _entry(proposal).encode()
        if size + len(entry) > most:
            found.append([first])
            size = len(first)
        found[-1].append(entry)
        size += len(entry)
    names = (f"cases{'' if number == 1 else f'-{number}'}.yaml" for number in count(1))
    return {name: b"".join(parts) for name, parts in zip(names, found, strict=False)}
