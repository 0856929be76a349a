"""What a long session of an agent holds before a request: calls of the row's tools, and what they gave.

A call is written as own cases write calls of earlier turns (`eval.prompts.calls`); a prompt writes it in
the row's format, and in fc mode it is a native one. Results are long JSON, tables and logs, of generated
values and of values from other samples' golds.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from robustbench_tc import sources
from robustbench_tc.eval.prompts.calls import tool_call_tags
from robustbench_tc.schema import ANY, CONTROL_TOOLS, OMIT, Call, Json, Message, Sample, Tool, dumps

from ..answerable import NAMES_ONLY
from .base import Context
from .context_orders import arguments
from .context_text import PROSE, Writer

Pair: TypeAlias = tuple[str, str]
"""A key and its value."""

GRAMMAR: Mapping[str, Sequence[str]] = {
    **PROSE,
    "use": "run|try|use|start|go through|call up|turn to|make use of|send off|work with".split("|"),
    "wish": (
        "please {use} {task} with {given}, {joint}.",
        "could you {use} {task} for {who}, with {given}?",
        "next is {task}: {given}, {joint}.",
        "for {thing} I need {task} with {given}.",
        "{who} asked for {task} with {given}, {joint}.",
        "with {given}, what does {task} say, {aside}?",
        "{aside}, {task} with {given} should settle it {when}.",
        "take {given} and {use} {task} {when}.",
        "before we {act} {thing}, {use} {task} with {given}.",
        "I promised {who} the outcome of {task} with {given} {when}.",
        "can {task} tell us more {when}, with {given}?",
        "now with {given}: {use} {task}, {joint}.",
    ),
    "ready": "let me|I will|I am going to|then I will|now I will|first I will|gladly, I will|"
    "of course, I can".split("|"),
    "manner": (
        "with these values|as you asked|and report back|before anything else|and read you the result|"
        "with what you gave me|and see what comes back|once|and keep the details|for {who}|{when}|"
        "so that {who} can decide|and then {act} {thing}"
    ).split("|"),
    "lead": ("{ready} {use} {task} {manner}.", "{task} is next: {ready} {use} it {manner}."),
    "many": "a handful of|several|quite a few|a long list of|more than enough|some".split("|"),
    "rows": "entries|lines|records|items|results|matches".split("|"),
    "note": (
        "worth a second look|which looks plausible|as you expected|and nothing else stands out|"
        "so {who} can {act} {thing}|which {who} may want to see {when}|although {cause}|"
        "so there is no need to {act} {thing}|and I would {act} {thing} next"
    ).split("|"),
    "outcome": (
        "the result has {many} {rows}, and {first} comes first, {note}.",
        "{task} gave {many} {rows}; {first} stands at the top, {note}.",
        "I found {first} among {many} {rows}, {aside}.",
        "it went through with {first} as the reference, {note}.",
        "{first} is what {who} will ask about, {note}.",
        "of {many} {rows} I would keep {first}, {joint}.",
        "{aside}, {first} is the one for {thing}, {note}.",
        "there are {many} {rows} for {who}, among them {first}, {note}.",
    ),
    "follow": (
        "tell me if {who} needs the rest {when}.",
        "I left {thing} out of it, {joint}.",
        "shall I {act} {thing} too, or wait until {who} answers?",
        "the others can wait {when}, {aside}.",
        "{who} may want to {act} {thing} {when}.",
        "that should do for {thing}, {joint}.",
    ),
    "event": (
        "{thing} moved {where}|{who} signed off|waiting for {who}|queue drained|lock on {thing} released|"
        "retry scheduled|cache miss|{place} unreachable|heartbeat received|{thing} rejected|quota restored|"
        "checksum of {thing} differs|worker restarted {where}|{who} {did} {thing}"
    ).split("|"),
    "service": "berths|ledger|tariffs|mailroom|gate|scales|archive|parcels|tides|registry".split("|"),
    "level": "INFO|INFO|INFO|DEBUG|WARN|ERROR".split("|"),
}  # fmt: skip

_FIELDS = (
    "allotment amount approved_by archive batch berth booked_by branch bundle capacity "
    "carrier category channel "
    "checked_by clerk colour comment consignee counter custodian deposit depot dimension "
    "draught entry estimate "
    "ferry floor grade handler harbour holder invoice issuer keeper label landing ledger "
    "length margin material "
    "measure mooring notice operator origin owner parcel permit pier quay quantity receipt "
    "recorder reference "
    "region remark remit route sector shelf shipper slot stage stamp station stock summary "
    "supplier tariff tonnage "
    "tract tray usage valuation vessel volume voucher warden warehouse weight yard yield"
).split()
"""What generated records have fields of."""

_PRIVATE = re.compile(r"(?i)pass|token|key|secret|mail|phone|card|account|user|ssn|birth")
"""Values of other samples that may not be carried into a row."""


@lru_cache(1)  # the same for all rows of a build
def carried(context: Context) -> tuple[Pair, ...]:
    """Keys and plain texts of the golds of a build's samples, each once, that a result can hold."""
    found: dict[Pair, None] = {}
    for call in (call for sample in context.samples for answer in sample.golden_answers for call in answer):
        for key, accepted in call.parameters.items():
            for value in accepted[:1]:
                plain = isinstance(value, str) and 3 < len(value) <= 60 and "<" not in value
                if plain and not _PRIVATE.search(key):
                    found[key, value] = None
    return tuple(found)


def callable_tools(sample: Sample) -> tuple[Tool, ...]:
    """The tools that an earlier exchange can call: no control tools, and no accepted ones where a call is
    right whatever its values, because whoever repeats an earlier call must not be right."""
    accepted = {call.name for answer in sample.golden_answers for call in answer}
    source = sources.find(sample.source)
    names_only = source is not None and source.scorer in NAMES_ONLY
    calls = (call for answer in sample.golden_answers for call in answer if not names_only)
    judged = {
        call.name
        for call in calls
        for values in call.parameters.values()
        if values and OMIT not in values and ANY not in values  # it has to have one of them
    }
    names = [tool.name for tool in sample.tools]
    kept_out = (accepted - judged) | CONTROL_TOOLS
    return tuple(tool for tool in sample.tools if tool.name not in kept_out and names.count(tool.name) == 1)


class Session:
    """Draws the exchanges of one row."""

    def __init__(self, writer: Writer, tools: Sequence[Tool], carried: Sequence[Pair]) -> None:
        self._writer, self._rng = writer, writer.rng
        self._tools, self._carried = tools, carried

    def exchange(self) -> list[Message] | None:
        """A request, one call or two with what they gave, and an answer; None where a value of the sample's
        golds got into it."""
        said = [Message("user", "")]
        wishes: list[str] = []
        first = ""
        for _ in range(1 + (self._rng.random() < 0.25)):
            tool = self._rng.choice(self._tools)
            given = arguments(tool, self._rng)
            task = _spoken(tool.name)
            if given is None and tool.properties:
                return None
            given = given or {}
            if not self._writer.allows(f"{dumps(given)} {task}"):
                return None
            first = self._reference()
            text = (
                " and ".join(f"{_spoken(key)} {dumps(value)}" for key, value in given.items()) or "no values"
            )
            wishes.append(self._writer.sentence("wish", task=task, given=text))
            lead = self._writer.sentence("lead", task=task)
            made = tool_call_tags([Call(tool.name, given)])
            result = self._rng.choice((self._json, self._json, self._table, self._log))
            said += [Message("assistant", f"{lead}\n{made}"), Message("tool", result(first))]
        answer = [self._writer.sentence("outcome", task=task, first=first), self._writer.sentence("follow")]
        said[0] = Message("user", " ".join([*wishes, self._writer.sentence("report")]))
        said.append(Message("assistant", " ".join(answer)))
        return said if all(self._writer.allows(message.content) for message in said) else None

    def _reference(self) -> str:
        letters = "".join(self._rng.choice("BDFHKMRT") for _ in range(2))
        return f"{letters}{self._rng.randint(10_000, 99_999)}"

    def _value(self) -> Json:
        rule = self._rng.choice(("person", "thing", "place", "mood", "", ""))
        return self._writer.pick(rule) if rule else self._rng.randint(1_000, 999_999)

    def _json(self, first: str) -> str:
        """Records of the same fields, with a summary that also holds values of other samples."""
        fields = self._rng.sample(_FIELDS, self._rng.randint(3, 6))
        references = [first, *(self._reference() for _ in range(self._rng.randint(2, 14)))]
        found: dict[str, Json] = {
            self._rng.choice(_FIELDS): [
                {"id": one, **{field: self._value() for field in fields}} for one in references
            ]
        }
        drawn = [self._rng.choice(self._carried) for _ in range(2 * bool(self._carried))]
        found |= {key: value for key, value in drawn if self._writer.allows(f"{key} {value}")}
        return dumps(found | {"next_page": self._reference()})

    def _table(self, first: str) -> str:
        fields = self._rng.sample(_FIELDS, self._rng.randint(3, 5))
        rows = [[first, *(str(self._value()) for _ in fields)]]
        rows += [
            [self._reference(), *(str(self._value()) for _ in fields)]
            for _ in range(self._rng.randint(3, 16))
        ]
        joint = self._rng.choice((" | ", "\t", ";"))
        return "\n".join(joint.join(row) for row in [["id", *fields], *rows])

    def _log(self, first: str) -> str:
        at = self._rng.randint(1_700_000_000, 1_900_000_000)
        lines = []
        for reference in [first, *(self._reference() for _ in range(self._rng.randint(5, 19)))]:
            at += self._rng.randint(1, 900)
            level, service, event = map(self._writer.pick, ("level", "service", "event"))
            lines.append(f"{at} {level} {service} [{reference}] {event}")
        return "\n".join(lines)


def _spoken(name: str) -> str:
    """A name of a tool or parameter as its words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_.]", " ", name).lower()
