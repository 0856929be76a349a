"""A case as it is and as it is put to the model, and which tool of the one is which of the other."""

import json
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.builders.steps import Step, steps
from robustbench_tc.schema import Json, Message, Sample, Tool

from .plan import Fault, Plan
from .session import Session


class Scene(NamedTuple):
    """What a session gets."""

    code: str
    """The type, or `clean`."""
    clean: Sample
    row: Sample
    """`clean` itself where nothing is perturbed."""
    skipped: str | None = None
    """Why nothing is, although the plan names a type."""

    @property
    def text(self) -> str | None:
        """What answers the first calls."""
        return self.row.injected_error

    @property
    def answered(self) -> int:
        """How many replies with calls are answered so."""
        return 0 if self.text is None else taxonomy.get(self.code).answered_calls

    def met(self, plan: Plan, session: Session, batch: int, number: int, tool: str) -> Fault | None:
        """What a call meets: the type's text, where it is among the first `batch` replies with calls; else
        the fault that the plan has for the session's call of that number, both from 1."""
        if self.text is not None and batch <= self.answered:
            return Fault(kind=self.code, text=self.text)
        return plan.met(session, number, tool)


def head_of(row: Sample) -> tuple[Message, ...]:
    """What stands before a turn: the messages up to the last one that is an assistant's or a tool's."""
    said = [at for at, one in enumerate(row.messages) if one.role not in ("system", "user")]
    return row.messages[: said[-1] + 1] if said else ()


def of_turn(row: Sample) -> Sample:
    """The row with the messages of its turn alone."""
    return msgspec.structs.replace(row, messages=row.messages[len(head_of(row)) :])


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


def loaded(text: bytes | str) -> Json:
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
    if clean.parameters == row.parameters:
        return text
    names = _names(clean, row)
    same = (
        _type(inner) == _type(row.properties.get(name, inner)) for name, inner in clean.properties.items()
    )
    if names is None and all(same):
        return text
    given = loaded(text)
    if not isinstance(given, dict):
        return text
    found: dict[str, Json] = {}
    for name, value in given.items():
        own = name if names is None else names.get(name, name)
        if own is None:
            continue
        found[own] = _in_type(clean.properties.get(own), row.properties.get(name), value)
    return text if found == given else json.dumps(found, ensure_ascii=False)


def _names(clean: Tool, row: Tool) -> Mapping[str, str | None] | None:
    """The clean names of the row's parameters, None for one that was added; None where they are the same."""
    ours, theirs = list(clean.properties), list(row.properties)
    if ours == theirs or (set(ours) == set(theirs) and _described(clean) == _described(row)):
        return None
    return {name: ours[at] if at < len(ours) else None for at, name in enumerate(theirs)}


def _described(tool: Tool) -> dict[str, Json]:
    return {
        name: inner.get("description") if isinstance(inner, dict) else None
        for name, inner in tool.properties.items()
    }


def _type(schema: Json) -> Json:
    return schema.get("type") if isinstance(schema, dict) else None


def _in_type(clean: Json, row: Json, value: Json) -> Json:
    kind = _type(clean)
    if not isinstance(value, str) or _type(row) != "string" or kind in (None, "string"):
        return value
    if kind == "boolean":
        return {"yes": True, "no": False, "true": True, "false": False}.get(value.strip().lower(), value)
    try:
        if kind == "integer":
            return int(value)
        if kind == "number":
            return float(value) if not value.strip().lstrip("+-").isdigit() else int(value)
    except ValueError:
        return value
    if kind == "array":
        items = _type(clean.get("items"))
        return [_in_type({"type": items}, {"type": "string"}, part.strip()) for part in value.split(",")]
    return value
