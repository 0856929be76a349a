"""Which scene a session gets: the rows of a dataset, or a type's unit on the request itself."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from robustbench_tc import seeding, sources, taxonomy
from robustbench_tc.builders.perturb import REGISTRY, Context, NotApplicable
from robustbench_tc.builders.sources import BUNDLED, read
from robustbench_tc.errors import UserError
from robustbench_tc.schema import ANY, CONTROL_TOOLS, Call, Json, Message, Sample, Tool

from .plan import Plan
from .scene import Scene, head_of
from .session import Session


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
        self._plan = plan
        self._clean: dict[str, Sample] = {}
        self._rows: dict[tuple[str, str], Sample] = {}
        for row in rows:
            self._rows[row.clean_id, row.type_code] = row
            if row.type_code == taxonomy.CLEAN:
                self._clean[row.clean_id] = row
        if plan.bench is not None:
            there = {code for _, code in self._rows}
            for code in plan.types:
                if code not in there:
                    raise UserError(
                        f"{plan.bench} has no row of the type {code}: build it with --types {code}"
                    )

    def code(self, session: Session) -> str:
        """The type of a session: the repeats of a case go through the plan's types in turn."""
        types = self._plan.types
        return types[session.repeat % len(types)] if types else taxonomy.CLEAN

    def of(self, session: Session, messages: Sequence[tuple[str, str]], tools: Sequence[Tool]) -> Scene:
        """The scene of a request. `messages`: role and text, up to the first reply.

        Without a dataset one of the request's tools is drawn as the one that is meant.
        """
        code = self.code(session)
        asked = _row(session, messages, tools)
        if self._plan.bench is not None:
            clean = next((self._clean[one] for one in clean_ids(session.case) if one in self._clean), None)
            if clean is None:
                return Scene(code, asked, asked, None if code == taxonomy.CLEAN else "unknown_case")
            row = self._rows.get((clean.clean_id, code))
            return Scene(code, clean, row or clean, None if row is not None else "no_such_row")
        if code == taxonomy.CLEAN:
            return Scene(code, asked, asked)
        meant = self._meant(session, tools)
        if meant is None:
            return Scene(code, asked, asked, "no_tools")
        # A call that says no more than that the tool is meant: all that it requires, any values.
        required = tools[meant].required or tools[meant].properties
        call = Call(tools[meant].name, {name: [ANY] for name in required if isinstance(name, str)})
        clean = msgspec.structs.replace(asked, golden_answers=((call,),), gold_tool_index=meant)
        unit = REGISTRY[code]
        rng = seeding.rng(self._plan.seed, unit.draws_as or code, clean.clean_id)
        try:
            return Scene(code, clean, unit.perturb(clean, rng, self._context))
        except NotApplicable as skip:
            return Scene(code, asked, asked, skip.reason)

    def later(self, session: Session) -> list[Scene]:
        """The scenes of a case's further turns, for a session that is named by the case and not by a turn."""
        own = f"{sources.OWN}__{session.case}"
        if self._plan.bench is None or own in self._clean or f"{own}.1" not in self._clean:
            return []
        found: list[Scene] = []
        while (clean := self._clean.get(f"{own}.{len(found) + 2}")) is not None:
            row = self._rows.get((clean.clean_id, self.code(session)))
            skipped = "no_such_row" if row is None else None
            if row is not None and head_of(row) != head_of(clean):
                skipped = "history_is_perturbed"
            row = clean if row is None or skipped else row
            found.append(Scene(self.code(session), clean, row, skipped))
        return found

    def as_it_came(
        self,
        session: Session,
        messages: Sequence[tuple[str, str]],
        tools: Sequence[Tool],
        reason: str,
    ) -> Scene:
        """The request unperturbed, for that reason."""
        asked = _row(session, messages, tools)
        return Scene(self.code(session), asked, asked, reason)

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
        lent = (tool for row in read(BUNDLED, "bundled").samples for tool in row.tools)
        tools = {tool.name: tool for tool in lent if tool.name not in CONTROL_TOOLS}
        return Context(donors={sources.OWN: tuple(tools.values())})


def _row(session: Session, messages: Sequence[tuple[str, str]], tools: Sequence[Tool]) -> Sample:
    """A request as a clean row."""
    said = ({"role": as_row(role), "content": text} for role, text in messages)
    return Sample(
        id=f"door__{session.case}::clean",
        clean_id=f"door__{session.case}",
        type_code=taxonomy.CLEAN,
        source=sources.OWN,
        category="calls",
        messages=tuple(msgspec.convert(one, Message) for one in said),
        tools=tuple(tools),
        golden_answers=(),
        output_format=sources.get(sources.OWN).output_format,
    )


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
