"""Sessions, and the plan of a door: one YAML file, read once, every mistake named with its line."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, NamedTuple, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs
from robustbench_tc.eval.inputs import Dataset, Names
from robustbench_tc.llm.wire_names import safe_name
from robustbench_tc.own import yaml
from robustbench_tc.own.files import read_bytes
from robustbench_tc.own.yaml import Fields, Node
from robustbench_tc.result_faults import EFFECTS, Fault, Words
from robustbench_tc.schema import Json

HEADER = "X-RBTC-Session"
MOST = 1_000
"""Characters of a session's name."""

_NAME = re.compile(r"(.+)\.(0|[1-9]\d{0,8})", re.DOTALL | re.ASCII)


class Session(NamedTuple):
    """One attempt at one case."""

    case: str
    repeat: int

    def __str__(self) -> str:
        return f"{self.case}.{self.repeat}"


class Refused(Exception):
    """What a door does not take, in one line, and the status that says it to the caller."""

    def __init__(self, said: str, status: int = 400) -> None:
        super().__init__(said)
        self.status = status


def parse(name: str) -> Session:
    """A session by its name, `<case>.<repeat>`. Raises Refused."""
    found = _NAME.fullmatch(name)
    if found is None or len(name) > MOST or not name.isprintable():
        raise Refused(
            f"the session {name[:60]!r} is not written <case>.<repeat>, such as refund-17.0, in at most "
            f"{MOST} characters"
        )
    return Session(found[1], int(found[2]))


WITHOUT_CASES = ("namesake", "registry", "offers", "tool_result")
"""Channels whose types need no more of a case than a tool that is meant."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to happen to the sessions of a door. Without types and faults it changes nothing."""

    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    bench: Annotated[str, Meta(min_length=1)] | None = None
    """A dataset's folder: its rows say how a case is perturbed."""
    types: Words = ()
    """Repeat n of a case gets the type at place n, beginning again after the last; may hold `clean`."""
    types_after: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """So many calls into a session its tools become the type's (the door in front of a server)."""
    faults: Annotated[tuple[Fault, ...], Meta(min_length=1)] = ()
    read_only: Words = ()
    idempotent: Words = ()
    allow_writes: bool = False
    """Faults may take the place of writes' results too: an agent that then calls again writes twice."""
    defend: Words = ()
    """Defences between the row and the model, the first in front (`rbtc list defences`)."""

    def type_of(self, session: Session) -> str:
        """The type of a session: the repeats of a case go through the types in turn."""
        return self.types[session.repeat % len(self.types)] if self.types else taxonomy.CLEAN

    def standing(self, session: Session, number: int) -> Iterator[Fault]:
        """The faults that are there at the session's call of that number, from 1. What is drawn depends on
        nothing else, so a conversation that is sent again, with more behind it, meets the same."""
        for place, fault in enumerate(self.faults):
            key = ("door", fault.kind, str(place), str(session))
            if fault.stands(number, self.seed, *key):
                yield fault.drawn(number, self.seed, *key)

    def met(
        self, session: Session, number: int, tool: str, arguments: Mapping[str, Json] = MappingProxyType({})
    ) -> Fault | None:
        """The first of them that is one of such a call."""
        return next((one for one in self.standing(session, number) if one.about(tool, arguments)), None)

    @property
    def changes_lists(self) -> bool:
        """Whether the tools of a session are others later on."""
        return self.types_after > 0 or any(fault.kind == "dropped_tool" for fault in self.faults)

    def gone(self, made: int) -> frozenset[str]:
        """The tools that are there no more once so many calls were made."""
        dropped = [one for one in self.faults if one.kind == "dropped_tool" and one.stands(made + 1)]
        return frozenset(tool for fault in dropped for tool in fault.tools)

    def may_replace(self, tool: str) -> bool:
        """Whether the result of a call that was carried out may be replaced: the agent may make it again."""
        return self.allow_writes or tool in self.read_only or tool in self.idempotent

    @property
    def idle(self) -> bool:
        """Whether it asks for nothing at all."""
        return not (self.types or self.faults or self.defend)


LLM_DEFENCES = ("dedupe", "namespace", "offers", "hint", "clarify", "spotlight", "strict", "schema")
"""Those that act on one request and its reply; the others ask several times, or in place of the agent."""
MCP_DEFENCES = ("dedupe", "namespace", "offers", "hint", "spotlight")
"""Those that act on the list of tools and on results."""


def check(plan: Plan, *, tools: bool) -> None:
    """Refuses what a door could never carry out. `tools`: it stands in front of a server, and sees neither
    request nor reply; else in front of a model, and sees a result once its call was carried out. Raises
    UserError."""
    kinds = [taxonomy.get(code) for code in plan.types if code != taxonomy.CLEAN]
    effects = [fault.kind for fault in plan.faults if fault.kind in EFFECTS]
    for word in plan.defend:
        if word == "namespace:error" or word.split(":")[0] not in (MCP_DEFENCES if tools else LLM_DEFENCES):
            raise UserError(
                f"--defend {word}: it cannot stand behind this door, which sees one "
                f"{'list of tools or result' if tools else 'request and its reply'} at a time"
            )
    if not tools and (effects or plan.types_after):
        raise UserError(
            f"{[*effects, 'types_after'][0]} in the plan: this door sees a call's result after it was "
            "carried out; `rbtc proxy` in front of an MCP server can"
        )
    if tools and plan.bench is None and any(kind.channel == "offers" for kind in kinds):
        raise UserError(
            "a type of offers states a preference in the request, and this door sees tools only: use "
            "`rbtc proxy --upstream`"
        )
    if tools and plan.types_after and any(kind.answered_calls for kind in kinds):
        raise UserError(
            "a type that answers a session's first calls, which are over when 'types_after' begins: leave "
            "'types_after' out, or write it as a fault with 'at'"
        )


def read_plan(path: Path) -> Plan:
    """The plan of a file. `bench` is looked for beside it. Raises UserError."""
    plan = parse_plan(read_bytes(path, "a plan"), str(path))
    if plan.bench is not None and "\0" not in plan.bench:
        beside = path.parent / Path(plan.bench).expanduser()
        if beside.exists():
            plan = replace(plan, bench=str(beside))
    return plan


def parse_plan(data: bytes, where: str) -> Plan:
    """The plan of a YAML text. `where` names the file in errors. Raises UserError."""
    plan, fields, top = read_struct(Plan, data, where, "the plan")
    for place, fault in enumerate(plan.faults):
        if fault.mistake is not None:
            fields.fail(top["faults"].value[place].line, fault.mistake)
    return replace(
        plan, types=tuple(_type(fields, plan, node) for node in (top["types"].value if plan.types else ()))
    )


Struct = TypeVar("Struct", bound=msgspec.Struct)


def read_struct(
    kind: type[Struct], data: bytes, where: str, what: str
) -> tuple[Struct, Fields, dict[str, Node]]:
    """The struct of a YAML text with `version: 1`, and its fields with their lines. Raises UserError."""
    root, fields = yaml.load(data, where), Fields(where)
    top = dict(fields.mapping(root, what, ("version", *kind.__struct_fields__)))
    fields.version(top, root.line)
    del top["version"]
    try:
        return msgspec.convert({name: node.data() for name, node in top.items()}, kind), fields, top
    except msgspec.ValidationError as error:
        fields.fail(_line(root, str(error)), str(error))


def _line(node: Node, path: str) -> int:
    """The line of what an error of msgspec's is about: `… - at `$.faults[0].rate``; of an entry that it names
    by `[...]` alone, the line of the mapping."""
    path = path.rpartition("`$")[2].partition("[...]")[0]
    for name, place in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        node = node.value[name or int(place)]
    return node.line


def _type(fields: Fields, plan: Plan, node: Node) -> str:
    try:
        code = taxonomy.find(node.value)
    except UserError as error:
        fields.fail(node.line, str(error))
    kind = None if code == taxonomy.CLEAN or plan.bench is not None else taxonomy.get(code)
    if kind and (kind.method == "llm" or kind.channel not in WITHOUT_CASES or kind.ground_truth_changes):
        said = f"{code} cannot be made without its case: name a dataset that holds its rows with 'bench'"
        fields.fail(node.line, said)
    return code


def planned(path: Path, *, allow_writes: bool = False, defend: Names = ()) -> tuple[Plan, Dataset]:
    """The plan of a file with its dataset, which is empty where it names none; `defend`: in place of its own
    defences. Raises UserError."""
    plan = read_plan(path)
    chain = tuple(inputs.names_of(defend)) or plan.defend
    plan = replace(plan, allow_writes=plan.allow_writes or allow_writes, defend=chain)
    if plan.bench is None:
        return plan, Dataset(name="", rows=())
    data = inputs.load_samples(plan.bench)
    return with_tools(plan, data), data


def with_tools(plan: Plan, data: Dataset) -> Plan:
    """The plan for the dataset, with what that says of own tools: by their names, and as an agent registers
    them."""
    plan = replace(plan, bench=data.name)
    if (found := data.book) is None:
        return plan
    return replace(
        plan,
        read_only=(*plan.read_only, *found.read_only, *map(safe_name, found.read_only)),
        idempotent=(*plan.idempotent, *found.idempotent, *map(safe_name, found.idempotent)),
    )
