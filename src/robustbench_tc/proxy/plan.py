"""The plan of a door: one YAML file, read once, every mistake named with its line."""

from difflib import get_close_matches
from pathlib import Path

import msgspec

from robustbench_tc import seeding, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.own import yaml
from robustbench_tc.own.fields import Fields
from robustbench_tc.own.limits import read_bytes
from robustbench_tc.own.yaml import Node

from .session import Session

TOP = (
    "version",
    "seed",
    "bench",
    "types",
    "types_after",
    "faults",
    "read_only",
    "idempotent",
    "allow_writes",
)
FAULT = ("kind", "rate", "at", "tools", "text")

MOST_POSITION = 100_000
"""The largest position of a call that a fault may name."""


TIMEOUT = "transient_timeout"
EFFECTS = ("timeout_after_effect", "silent_no_op", "stale_read", "injected_instruction")
"""Kinds that decide whether a call is carried out: for the door in front of a server."""
MOST_TEXT = 4_000
"""Characters of a fault's own text."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that results meet while an agent works."""

    kind: str
    """A transition type of the core, whose text takes the result's place; or one of EFFECTS."""
    rate: float | None = None
    """The share of calls, each drawn for itself."""
    at: tuple[int, ...] = ()
    """Or: the calls of a conversation, from 1."""
    tools: tuple[str, ...] = ()
    """Only these; () for all."""
    text: str | None = None
    """Words of the plan's own instead of the kind's."""

    @property
    def answer(self) -> str:
        """What the call is answered with; of an injected instruction, what is added to the result."""
        if self.text is not None:
            return self.text
        return taxonomy.injected_error(TIMEOUT if self.kind == "timeout_after_effect" else self.kind) or ""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to happen to the sessions of a door. Without types and faults it changes nothing."""

    seed: int = 0
    bench: str | None = None
    """A dataset's folder: its rows say how a case is perturbed."""
    types: tuple[str, ...] = ()
    """Repeat n of a case gets the type at place n, beginning again after the last; may hold `clean`."""
    types_after: int = 0
    """So many calls into a session its tools become the type's (the door in front of a server)."""
    faults: tuple[Fault, ...] = ()
    read_only: tuple[str, ...] = ()
    idempotent: tuple[str, ...] = ()
    allow_writes: bool = False
    """Faults may take the place of writes' results too: an agent that then calls again writes twice."""

    @property
    def at_run_time(self) -> bool:
        """Whether something depends on the session: what a request without one cannot be given."""
        several = len(self.types) > 1 or self.types_after > 0
        kinds = (taxonomy.get(code) for code in self.types if code != taxonomy.CLEAN)
        return bool(self.faults or self.bench) or several or any(kind.answered_calls for kind in kinds)

    def met(self, session: Session, number: int, tool: str) -> Fault | None:
        """The first fault that the session's call of that number, from 1, meets. What is drawn depends on
        nothing else, so a conversation that is sent again, with more behind it, meets the same."""
        for place, fault in enumerate(self.faults):
            key = ("door", fault.kind, str(place), str(session), str(number))
            meets = number in fault.at
            if fault.rate is not None:
                meets = seeding.rng(self.seed, *key).random() < fault.rate
            if meets and (not fault.tools or tool in fault.tools):
                return fault
        return None

    def may_replace(self, tool: str) -> bool:
        """Whether the result of a call that was carried out may be replaced: the agent may make it again."""
        return self.allow_writes or tool in self.read_only or tool in self.idempotent

    @property
    def idle(self) -> bool:
        """Whether it asks for nothing at all."""
        return not self.types and not self.faults


def check_for_tools(plan: Plan) -> None:
    """Refuses types that the door in front of a server could never carry out: those that change the request,
    which it does not see, and those of the first calls where the types begin later. Raises UserError."""
    kinds = [taxonomy.get(code) for code in plan.types if code != taxonomy.CLEAN]
    asked = [kind.code for kind in kinds if kind.channel == "offers"]
    if asked and plan.bench is None:
        raise UserError(
            f"the type {asked[0]} states a preference in the request, and this door sees tools only: "
            "use `rbtc proxy --upstream`"
        )
    first = [kind.code for kind in kinds if kind.answered_calls]
    if first and plan.types_after:
        raise UserError(
            f"the type {first[0]} answers a session's first calls, which are over when 'types_after' begins: "
            "leave 'types_after' out, or write it as a fault with 'at'"
        )


FAULT_KINDS = tuple(
    kind.code for kind in taxonomy.types() if kind.channel == "tool_result" and kind.injected_error
)
"""The transition types of the core."""

KINDS = (*FAULT_KINDS, *EFFECTS)

WITHOUT_CASES = ("namesake", "registry", "offers", "tool_result")
"""Channels whose types need no more of a case than a tool that is meant."""


def read_plan(path: Path) -> Plan:
    """The plan of a file. `bench` is looked for beside it."""
    plan = parse_plan(read_bytes(path, "a plan"), str(path))
    if plan.bench is not None and "\0" not in plan.bench:
        beside = path.parent / Path(plan.bench).expanduser()
        if beside.exists():
            plan = msgspec.structs.replace(plan, bench=str(beside))
    return plan


def parse_plan(data: bytes, where: str) -> Plan:
    """The plan of a YAML text. `where` names the file in errors."""
    return _Reader(where).read(yaml.load(data, where))


class _Reader(Fields):
    def read(self, root: Node) -> Plan:
        top = self.mapping(root, "the plan", TOP)
        self.version(top, root.line)
        bench = self.text(top["bench"], "bench") if "bench" in top else None
        return Plan(
            seed=self.whole(top["seed"], 0, 2**63, "'seed' must be a whole number") if "seed" in top else 0,
            bench=bench,
            types=tuple(self.type_code(node, bench) for node in self.items(top.get("types"), "types")),
            types_after=self.position(top["types_after"], "types_after") if "types_after" in top else 0,
            faults=tuple(map(self.fault, self.items(top.get("faults"), "faults"))),
            read_only=self.names(top.get("read_only"), "read_only"),
            idempotent=self.names(top.get("idempotent"), "idempotent"),
            allow_writes=self.flag(top.get("allow_writes"), "allow_writes"),
        )

    def type_code(self, node: Node, bench: str | None) -> str:
        try:
            code = taxonomy.find(self.text(node, "types"))
        except UserError as error:
            self.fail(node.line, str(error))
        if code == taxonomy.CLEAN or bench is not None:
            return code
        kind = taxonomy.get(code)
        if kind.method == "llm" or kind.channel not in WITHOUT_CASES or kind.ground_truth_changes:
            self.fail(
                node.line,
                f"{code} cannot be made without its case: name a dataset that holds its rows with 'bench'",
            )
        return code

    def fault(self, node: Node) -> Fault:
        found = self.mapping(node, "a fault", FAULT)
        if "kind" not in found:
            self.fail(node.line, f"a fault needs 'kind', one of {', '.join(KINDS)}")
        kind = self.text(found["kind"], "kind")
        if kind not in KINDS:
            near = get_close_matches(kind, KINDS, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(KINDS)}"
            self.fail(found["kind"].line, f"unknown kind of fault {kind[:60]!r}: {hint}")
        if ("rate" in found) == ("at" in found):
            self.fail(node.line, f"the fault {kind} needs either 'rate' or 'at'")
        return Fault(
            kind=kind,
            rate=self.rate(found.get("rate")),
            at=tuple(self.position(item, "at") for item in self.items(found.get("at"), "at")),
            tools=self.names(found.get("tools"), "tools"),
            text=self.own_text(found.get("text"), kind, node.line),
        )

    def own_text(self, node: Node | None, kind: str, line: int) -> str | None:
        if node is None:
            if kind == "injected_instruction":
                self.fail(line, "the fault injected_instruction needs 'text': what is added to the result")
            return None
        if kind == "stale_read":
            self.fail(node.line, "stale_read shows an earlier result and takes no 'text'")
        text = self.text(node, "text")
        if len(text) > MOST_TEXT:
            self.fail(node.line, f"'text' has at most {MOST_TEXT:,} characters")
        return text

    def rate(self, node: Node | None) -> float | None:
        if node is None:
            return None
        if isinstance(node.value, bool) or not isinstance(node.value, int | float) or not 0 < node.value <= 1:
            self.fail(node.line, "'rate' must be a number above 0, at most 1")
        return float(node.value)

    def position(self, node: Node, what: str) -> int:
        said = "'at' lists calls by their number" if what == "at" else f"{what!r} is the number of a call"
        return self.whole(node, 1, MOST_POSITION, said)

    def whole(self, node: Node, least: int, most: int, said: str) -> int:
        value = node.value
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.fail(node.line, f"{said}, from {least} to {most:,}")
        return value

    def items(self, node: Node | None, what: str) -> list[Node]:
        """The entries of a list that may be missing, and may not be empty."""
        if node is None:
            return []
        if not isinstance(node.value, list) or not node.value:
            self.fail(node.line, f"{what!r} must be a list that is not empty; leave it out for none")
        return node.value

    def names(self, node: Node | None, what: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.text(item, what) for item in self.items(node, what)))
