"""Conversations of logs as proposed cases: every batch of calls one, its history the messages before it."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, takewhile
from typing import Any, TypeVar

import msgspec

from robustbench_tc.eval.score import matchers
from robustbench_tc.llm.wire_names import safe_name
from robustbench_tc.own.cases import PROBLEM, PROPOSED_BY, OwnTool, fingerprint
from robustbench_tc.schema import Json

from .chat import Conversation, LoggedCall, Message, opened
from .redact import Redactor

Proposal = dict[str, Json]
"""A case as a cases file has it: `id`, `proposed_by`, `messages`, `expect`, …"""

NOT_JSON = "the arguments of a call are not a JSON object"
KEY = 500
"""Characters of an object's key: YAML takes no longer ones on a line."""
LEVELS = 150
HISTORY = 1_000_000
"""Characters of a case's history."""


def redacted(found: Conversation, hide: Redactor) -> Conversation:
    """A conversation without personal data, JSON in its texts looked into. The redactor learns from it."""
    return msgspec.structs.replace(found, messages=tuple(_redacted(one, hide) for one in found.messages))


def _redacted(message: Message, hide: Redactor) -> Message:
    said = opened(message.text)
    kept = hide.apply(said)
    calls = []
    for call in message.calls:
        given = call.text if call.arguments is None else call.arguments
        found = hide.apply(given)
        text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        arguments = found if isinstance(found, dict) else None
        calls.append(LoggedCall(call.id, hide.text(call.name), arguments, text))
    text = message.text
    if kept != said:
        text = kept if isinstance(kept, str) else json.dumps(kept, ensure_ascii=False)
    return msgspec.structs.replace(message, text=text, calls=tuple(calls))


Waiting = TypeVar("Waiting")


class Proposals:
    """Makes cases; `left` counts what makes none, by its reason."""

    def __init__(self, tools: Sequence[OwnTool], problem: Callable[[Proposal], str | None]) -> None:
        """`problem`: why a case cannot be read, None where it can (`own.cases_file.Checker`)."""
        self.left: Counter[str] = Counter()
        self._problem = problem
        self._numbers: Counter[str] = Counter()
        """By log and line how many cases there are already."""
        self._names = {tool.tool.name: tool.tool.name for tool in tools}
        wire = Counter(safe_name(name) for name in self._names)
        for name in list(self._names):
            if wire[safe_name(name)] == 1:
                self._names.setdefault(safe_name(name), name)
        self._seen: set[str] = set()

    def propose_cases(self, log: str, found: Conversation) -> Iterator[Proposal]:
        """The cases of a conversation, which holds no personal data any more."""
        roles = [message.role for message in found.messages]
        batches = [at for at, message in enumerate(found.messages) if message.calls]
        if any(message.left_out for message in found.messages):
            self.left["holds images, sounds, files or runs of a provider's own tools"] += 1
        elif batches:
            for at in batches:
                if "user" in roles[:at]:
                    yield from self._case(log, found, at, found.messages[at].calls)
                else:
                    self.left["calls before any request"] += 1
        elif "user" in roles and roles[-1] == "assistant":
            yield from self._case(log, found, len(roles) - roles[::-1].index("user"), ())
        else:
            self.left["no request, or no answer to it"] += 1

    def _case(
        self, log: str, found: Conversation, at: int, calls: Sequence[LoggedCall]
    ) -> Iterator[Proposal]:
        """The case whose history are the messages before a place."""
        history = found.messages[:at]
        if sum(len(one.text) + sum(len(call.text) for call in one.calls) for one in history) > HISTORY:
            self.left[f"a history of more than {HISTORY:,} characters"] += 1
            return
        body: Proposal = {"messages": list(self._messages(history))}
        if len(history) == 1 and history[0].role == "user":
            body = {"request": history[0].text}
        body["expect"] = [self._call(call) for call in calls] or "no_call"
        if calls and (results := self._results(calls, found.messages[at + 1 :])):
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
        unread = NOT_JSON if any(call.arguments is None for call in calls) else None
        if (why := unread or self._problem(case | body)) is not None:
            case[PROBLEM] = " ".join(why.split())[:300]
        yield case | body

    # Parts of a case

    def _name(self, name: str) -> str:
        """The name that cases write: a client's form of it is mapped back, an unknown one stays."""
        return self._names.get(name, name)

    def _call(self, call: LoggedCall) -> dict[str, Json]:
        found: dict[str, Json] = {"call": self._name(call.name)}
        if call.arguments:
            found["arguments"] = {key: plain(value) for key, value in call.arguments.items()}
        return found

    def _messages(self, history: Sequence[Message]) -> Iterator[dict[str, Json]]:
        """The history as chat messages, with call ids of its own: a log's may be missing."""
        begin = next((at for at, one in enumerate(history) if one.role != "system"), len(history))
        text = "\n\n".join(one.text for one in history[:begin])
        if text.strip():
            yield {"role": "system", "content": text}
        waiting: list[tuple[str, str]] = []
        made = 0
        for message in history[begin:]:
            entry: dict[str, Json] = {"role": message.role, "content": message.text}
            if message.role == "tool":
                entry["tool_call_id"] = take(waiting, message.call_id) or "unknown"
            else:
                waiting = [(call.id, f"c{made + n}") for n, call in enumerate(message.calls, 1)]
                made += len(waiting)
            if message.calls:
                entry["content"] = message.text or None
                entry["tool_calls"] = [
                    {
                        "id": new,
                        "type": "function",
                        "function": {"name": self._name(call.name), "arguments": call.text},
                    }
                    for call, (_, new) in zip(message.calls, waiting, strict=True)
                ]
            yield entry

    def _results(self, calls: Sequence[LoggedCall], after: Sequence[Message]) -> dict[str, Json]:
        waiting = [(call.id, str(place)) for place, call in enumerate(calls)]
        answers = takewhile(lambda one: one.role == "tool", after)
        by_place = {take(waiting, one.call_id): one.text for one in answers}
        found: dict[str, Json] = {}
        for place, call in enumerate(calls):
            if str(place) in by_place:
                found.setdefault(self._name(call.name), []).append(opened(by_place[str(place)]))
        return found


def take(waiting: list[tuple[str, Waiting]], call_id: str) -> Waiting | None:
    """The call that a result answers, taken out of those that wait, each behind its id: by that, else the
    first."""
    for at, (given, _) in enumerate(waiting):
        if given == call_id or not (call_id and given):
            return waiting.pop(at)[1]
    return None


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
    """A value as JSON, which YAML is: what YAML does not take as it is, is escaped in its way."""
    text = json.dumps(found, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in text)


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
