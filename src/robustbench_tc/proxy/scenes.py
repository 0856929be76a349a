"""Which scene a session gets, and which tool of its row is which of its case.

A scene is a case as it is and as it is put to the model: a row of a dataset, or a type's unit on the request
itself.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from robustbench_tc import seeding, sources, taxonomy
from robustbench_tc.builders.perturb import REGISTRY, Context, NotApplicable
from robustbench_tc.builders.sources import BUNDLED, read_pool
from robustbench_tc.builders.steps import Step, steps
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.eval import defend
from robustbench_tc.eval.defend.chain import Chain, shown
from robustbench_tc.llm.wire_names import safe_name
from robustbench_tc.result_faults import Fault
from robustbench_tc.schema import ANY, CONTROL_TOOLS, Call, Json, Message, Sample, Tool

from .plan import Plan, Session

ASKED = "door__"
"""How the id of a row begins that is made of a request."""
TOOLS_UNREAD = "tools_cannot_be_read"
"""Why a request is not perturbed: a tool of it is none."""


class Scene(NamedTuple):
    """What a session gets."""

    code: str
    """The type, or `clean`."""
    clean: Sample
    row: Sample
    """`clean` itself where nothing is perturbed."""
    skipped: str | None = None
    """Why nothing is, although the plan names a type."""
    defences: Chain = ()
    """What stands between the row and the model."""

    @property
    def shown(self) -> Sample:
        """The row as the model sees it: as one whose conversation has results."""
        there = self.row.messages
        row = replace(self.row, messages=(*(there or (Message("user", ""),)), Message("tool", "")))
        found = shown(self.defences, row)
        return self.row if found is row else replace(found, messages=found.messages[:-1] if there else ())

    def told(self, text: str, *, injected: bool = False) -> str:
        """The answer to a call as the model sees it. `injected`: it took the place of the tool's own."""
        row = replace(self.row, messages=(Message("tool", text),), injected_error=text if injected else None)
        found = shown(self.defences, row)
        return found.injected_error or found.messages[-1].content

    @property
    def put(self) -> str | None:
        """The row of the dataset that is put to the model."""
        return None if self.skipped or self.row.id.startswith(ASKED) else self.row.id

    @property
    def repeats_names(self) -> bool:
        """Whether the type shows two tools of one name."""
        names = {tool.name for tool in self.shown.tools}
        return self.row is not self.clean and len(names) < len(self.shown.tools)

    def unperturbed(self, reason: str) -> "Scene":
        """The case itself, for that reason."""
        return self._replace(row=self.clean, skipped=reason)

    @property
    def answered(self) -> int:
        """How many replies with calls the row's text answers."""
        return 0 if self.row.injected_error is None else taxonomy.get(self.code).answered_calls

    def met(
        self, plan: Plan, session: Session, batch: int, number: int, meant: tuple[str | None, str]
    ) -> Fault | None:
        """What a call meets: the type's text, where it is among the first `batch` replies with calls; else
        the fault that the plan has for the session's call of that number of the agent's own tools, both from
        1. `meant`: the agent's name of the tool, and the arguments as it gets them."""
        if batch <= self.answered:
            return Fault(kind=self.code, text=self.row.injected_error)
        own, arguments = meant
        given = loaded(arguments)
        return (
            None if own is None else plan.met(session, number, own, given if isinstance(given, dict) else {})
        )


def head_of(row: Sample) -> tuple[Message, ...]:
    """What stands before a turn: the messages up to the last one that is an assistant's or a tool's."""
    said = [at for at, one in enumerate(row.messages) if one.role not in ("system", "user")]
    return row.messages[: said[-1] + 1] if said else ()


def of_turn(row: Sample) -> Sample:
    """The row with the messages of its turn alone."""
    return replace(row, messages=row.messages[len(head_of(row)) :])


def origins(clean: Sample, row: Sample) -> list[int | None]:
    """For each tool of `row` the place of the clean tool that carries out its calls; None for a distractor.

    Where a tool that came in is the right one (swapped offers), it takes the place of the clean gold tool.
    """
    found: list[int | None] = list(range(len(clean.tools)))
    applied = steps(row, clean) if taxonomy.parts(row.type_code) else [Step(clean, row)]
    for step in applied:
        found = [None if at is None else found[at] for at in _of_step(step)]
    answers = zip(clean.golden_answers[:1], row.golden_answers[:1], strict=False)
    for old, new in (pair for before, after in answers for pair in zip(before, after, strict=False)):
        named = [at for at, tool in enumerate(row.tools) if tool.name == new.name]
        wanted = [at for at, tool in enumerate(clean.tools) if tool.name == old.name]
        place = next((at for at, origin in enumerate(found) if origin in wanted), None)
        if named and place is not None and all(found[at] is None for at in named):
            found[named[0]], found[place] = found[place], None
    return found


def _of_step(step: Step) -> list[int | None]:
    """As `origins`, for one type: by its diff."""
    tools, changed = step.after.tools, {change.path: change for change in step.after.changes}
    free = dict(enumerate(step.before.tools))
    found: dict[int, int] = {}
    for equal in (True, False):  # a tool that is as it was, then one that bears the name it had
        for place, tool in enumerate(tools):
            whole, renamed = changed.get(f"/tools/{place}"), changed.get(f"/tools/{place}/name")
            if place in found or (whole is not None and whole.before is None):
                continue
            name = tool.name if renamed is None else renamed.before
            fitting = (at for at, one in free.items() if (one == tool if equal else one.name == name))
            if (here := next(fitting, None)) is not None:
                found[place] = here
                del free[here]
    return [found.get(place) for place in range(len(tools))]


def loaded(text: bytes | bytearray | str) -> Json:
    """The value of a JSON text; None for what is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def inside(value: Json, *names: str) -> Json:
    """What stands under these names, one within the other; None where one of them is not there."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def arguments_back(clean: Tool, row: Tool, text: str) -> str:
    """A call's arguments as the clean tool declares them, where the row's names or types are others.

    Names are given back by their place in the schema, texts that stand for a number, a list, or a yes or no
    as that; a parameter that only the row's tool has is left out. What cannot be read stays as it is.
    """
    given = None if clean.parameters == row.parameters else loaded(text)
    if not isinstance(given, dict):
        return text
    ours, theirs = list(clean.properties), list(row.properties)
    about = [
        {name: inside(inner, "description") for name, inner in one.properties.items()} for one in (clean, row)
    ]
    back = dict(zip(theirs, ours, strict=False))
    if ours == theirs or about[0] == about[1]:  # at most in another order
        back = dict(zip(ours, ours, strict=True))
    found: dict[str, Json] = {}
    for name, value in given.items():
        own = back.get(name, None if name in theirs else name)
        if own is not None:
            found[own] = _in_type(clean.properties.get(own), row.properties.get(name), value)
    return text if found == given else json.dumps(found, ensure_ascii=False)


def _in_type(clean: Json, row: Json, value: Json) -> Json:
    kind = inside(clean, "type")
    if not isinstance(value, str) or inside(row, "type") != "string":
        return value
    word = value.strip()
    if kind == "boolean":
        return {"yes": True, "no": False, "true": True, "false": False}.get(word.lower(), value)
    if kind == "array":
        items = {"type": inside(clean, "items", "type")}
        return [_in_type(items, {"type": "string"}, part.strip()) for part in value.split(",")]
    if kind in ("integer", "number"):
        with suppress(ValueError):  # no number: it stays the text that it is
            whole = kind == "integer" or word.lstrip("+-").isdigit()
            return int(value) if whole else float(value)
    return value


def known_types(rows: Sequence[Sample], wanted: Sequence[str]) -> tuple[str, ...]:
    """The types of a dataset's rows in their order, or those of them that are wanted, and `clean`.

    Raises UserError for one that it has not.
    """
    there = dict.fromkeys((taxonomy.CLEAN, *(row.type_code for row in rows)))
    named = {taxonomy.find_in(there, name, "type of the dataset") for name in wanted}
    return tuple(code for code in there if not named or code in named or code == taxonomy.CLEAN)


class Scenes:
    """Scenes by session: pure, so that a conversation that is sent again gets the same."""

    def __init__(self, plan: Plan, rows: Iterable[Sample] = ()) -> None:
        """`rows`: those of the plan's dataset. Raises UserError for a type that it has no row of."""
        self._plan, self._chain = plan, defend.parse(plan.defend)
        self._known = {*plan.read_only, *plan.idempotent}
        """Tools that the plan names, or its dataset has."""
        self._listed = set[str]()
        """Those of lists so far."""
        self.unlisted = set[str]()
        """Servers whose lists are still to come."""
        self._rows = {(row.clean_id, row.type_code): row for row in rows}
        if plan.bench is not None:
            there = {code for _, code in self._rows}
            for code in plan.types:
                if code not in there:
                    raise UserError(
                        f"{plan.bench} has no row of the type {code}: build it with --types {code}"
                    )
            self._known |= _spellings(tool.name for row in self._rows.values() for tool in row.tools)
            if self.stray is not None:
                raise UserError(f"{self.stray} (of {plan.bench})")

    def listed(self, names: Iterable[str]) -> None:
        """Learns which tools there are, from a list of them."""
        self._listed |= _spellings(names)

    @property
    def stray(self) -> str | None:
        """What is wrong with a plan that has a fault for a tool that no list has had so far; None for
        nothing."""
        there = self._known | self._listed
        wrong = next((tool for fault in self._plan.faults for tool in fault.tools if tool not in there), None)
        return wrong and f"a fault of the plan is for an {unknown('tool', wrong, there)}"

    def stray_type(self, session: Session) -> str | None:
        """What is wrong with a session whose type is for a case of which no list has had a tool so far; None
        for nothing."""
        code, case = self._plan.type_of(session), self._case(session)
        names = [] if case is None or code == taxonomy.CLEAN else [tool.name for tool in case.tools]
        if not names or _spellings(names) & self._listed:
            return None
        return f"session {session} gets {code}, which is for {', '.join(names)}: no list has such a tool"

    def untouched(self, session: Session) -> Scene:
        """Where nothing happens to requests, whatever their tools are."""
        asked = _row(session, (), ())
        return Scene(taxonomy.CLEAN, asked, asked)

    def scene_of(
        self,
        session: Session,
        messages: Sequence[tuple[str, str]],
        tools: Sequence[Tool],
        reason: str | None = None,
    ) -> Scene:
        """The scene of a request. `messages`: role and text, up to the first reply. `reason`: why it goes on
        without its type.

        Without a dataset one of the request's tools is drawn as the one that is meant.
        """
        code, asked = self._plan.type_of(session), _row(session, messages, tools)
        found = Scene(code, asked, asked, reason) if reason else self._scene_of(session, code, asked)
        return found._replace(defences=self._chain)

    def _scene_of(self, session: Session, code: str, asked: Sample) -> Scene:
        if self._plan.bench is not None:
            clean = self._case(session)
            if clean is None:
                return Scene(code, asked, asked, None if code == taxonomy.CLEAN else "unknown_case")
            return self._put(code, clean)
        if code == taxonomy.CLEAN:
            return Scene(code, asked, asked)
        tools, meant = asked.tools, self._meant(session, asked.tools)
        if meant is None:
            return Scene(code, asked, asked, "no_tools")
        # A call that says no more than that the tool is meant: all that it requires, any values.
        required = tools[meant].required or tools[meant].properties
        call = Call(tools[meant].name, {name: [ANY] for name in required if isinstance(name, str)})
        clean = replace(asked, golden_answers=((call,),), gold_tool_index=meant)
        unit = REGISTRY[code]
        rng = seeding.rng(self._plan.seed, unit.draws_as or code, clean.clean_id)
        try:
            return Scene(code, clean, unit.perturb(clean, rng, self._context))
        except NotApplicable as skip:
            return Scene(code, asked, asked, skip.reason)

    def _case(self, session: Session) -> Sample | None:
        named = ((one, taxonomy.CLEAN) for one in clean_ids(session.case))
        return next((self._rows[one] for one in named if one in self._rows), None)

    def _put(self, code: str, clean: Sample) -> Scene:
        """A case of the dataset under a type."""
        row = self._rows.get((clean.clean_id, code))
        return Scene(code, clean, row or clean, None if row is not None else "no_such_row")

    def later(self, session: Session) -> list[Scene]:
        """The scenes of a case's further turns, for a session that is named by the case and not by a turn."""
        own = f"{sources.OWN}__{session.case}"
        if (own, taxonomy.CLEAN) in self._rows or (f"{own}.1", taxonomy.CLEAN) not in self._rows:
            return []
        found: list[Scene] = []
        while (clean := self._rows.get((f"{own}.{len(found) + 2}", taxonomy.CLEAN))) is not None:
            scene = self._put(self._plan.type_of(session), clean)
            if head_of(scene.row) != head_of(clean):
                scene = scene.unperturbed("history_is_perturbed")
            found.append(scene._replace(defences=self._chain))
        return found

    def _meant(self, session: Session, tools: Sequence[Tool]) -> int | None:
        names = [tool.name for tool in tools]
        single = [at for at, name in enumerate(names) if names.count(name) == 1 and name not in CONTROL_TOOLS]
        taking = [at for at in single if tools[at].properties] or single

        def drawn(at: int) -> float:
            """By its name alone: it stays where an agent later shows fewer tools, or in another order."""
            return seeding.rng(self._plan.seed, "door", "meant", session.case, names[at]).random()

        return min(taking, key=drawn, default=None)

    @cached_property
    def _context(self) -> Context:
        """Lends the tools of the bundled samples."""
        lent = (tool for row in read_pool(BUNDLED, "bundled").samples for tool in row.tools)
        tools = {tool.name: tool for tool in lent if tool.name not in CONTROL_TOOLS}
        return Context(donors={sources.OWN: tuple(tools.values())})


def _row(session: Session, messages: Sequence[tuple[str, str]], tools: Sequence[Tool]) -> Sample:
    """A request as a clean row."""
    return Sample(
        id=f"{ASKED}{session.case}::clean",
        clean_id=f"{ASKED}{session.case}",
        type_code=taxonomy.CLEAN,
        source=sources.OWN,
        category="calls",
        messages=tuple(
            msgspec.convert({"role": as_row(role), "content": text}, Message) for role, text in messages
        ),
        tools=tuple(tools),
        golden_answers=(),
        output_format=sources.get(sources.OWN).output_format,
    )


def _spellings(names: Iterable[str]) -> set[str]:
    """Names of tools as cases, providers and single servers write them."""
    return {word for name in names for word in (name, safe_name(name), name.rpartition(":")[2])}


def clean_ids(case: str) -> tuple[str, ...]:
    """The clean ids that a case's name can mean."""
    own = f"{sources.OWN}__{case}"
    return own, f"{own}.1", case


def as_row(role: str) -> str:
    """A chat message's role as rows know it: `developer` is `system`."""
    return role if role in ("system", "user", "assistant", "tool") else "system"


class _Schema(msgspec.Struct):
    """The parts of a schema that a unit looks at, of the kinds that JSON Schema says."""

    type: str | list[str] = ""
    description: str = ""
    enum: list[Any] = []
    required: list[str] = []
    properties: dict[str, "_Schema | bool"] = {}
    items: "_Schema | bool | list[Any] | None" = None


def tool_of(function: Mapping[str, Json]) -> Tool:
    """A tool as a request lists it. Raises ValueError for what is none."""
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    described = {"description": function.get("description") or "", "parameters": parameters}
    try:
        msgspec.convert(parameters, _Schema)
        return msgspec.convert({**described, "name": function["name"]}, Tool)
    except (KeyError, msgspec.ValidationError, RecursionError) as error:
        raise ValueError(f"a tool that cannot be read: {error}") from None
