"""New tools in the schema style of the registry that they join, by code.

A model writes schemas in a style of its own: other keys, other types, two or three parameters each. That alone
tells a new tool from an original one. So each new tool takes the *form* of a tool of the registry, its model:
the keys of the schema and their order, how many parameters there are, of which types, which are required, and
how descriptions are written. What it is and does stays its own: its name, the words of its description, its
parameters as far as they fit the form. Where the form asks for more, parameters of the model fill it, as tools
of one API share them; where it asks for fewer, the last optional ones go.

Nothing is drawn: the same registry and the same new tools give the same styled ones.
"""

import re
from collections.abc import Sequence

import msgspec

from robustbench_tc.schema import Json, Tool

_NUMBERS = frozenset({"integer", "number"})


class _Slot(msgspec.Struct, frozen=True):
    """A parameter of the model: its form, and itself for who borrows it."""

    name: str
    form: dict[str, Json]
    required: bool

    @property
    def kind(self) -> Json:
        return self.form.get("type")

    @property
    def is_special(self) -> bool:
        """Whether it has more than a type and a description, which no other parameter can take over."""
        return not self.form.keys() <= {"type", "description", "items"}


def styled(new: Sequence[Tool], registry: Sequence[Tool]) -> tuple[Tool, ...]:
    """The new tools, each in the form of a tool of the registry (control tools are not given).

    Every model serves as often as the others, and tools with many parameters get models with many.
    """
    models = sorted(registry, key=lambda tool: len(tool.properties))
    order = sorted(range(len(new)), key=lambda index: len(new[index].properties))
    out = list(new)
    for rank, index in enumerate(order):
        model = models[(2 * rank + 1) * len(models) // (2 * len(order))]
        out[index] = _in_the_form_of(model, new[index])
    return tuple(out)


def _in_the_form_of(model: Tool, tool: Tool) -> Tool:
    slots = [
        _Slot(name, inner if isinstance(inner, dict) else {}, name in model.required)
        for name, inner in model.properties.items()
    ]
    filled = _filled(slots, tool)
    parameters: dict[str, Json] = {}
    for key, value in model.parameters.items():
        if key == "properties":
            parameters[key] = {name: inner for name, inner, _ in filled}
        elif key == "required":
            parameters[key] = [name for name, _, required in filled if required]
        else:
            parameters[key] = value
    return Tool(tool.name, like(tool.description, model.description), parameters)


def _filled(slots: Sequence[_Slot], tool: Tool) -> list[tuple[str, dict[str, Json], bool]]:
    """(name, schema, required) of every parameter, in the order of the slots."""
    required = set(tool.required)
    own = [_Slot(n, i if isinstance(i, dict) else {}, n in required) for n, i in tool.properties.items()]
    own = sorted(own, key=lambda one: not one.required)
    given = _assigned(slots, own)
    taken = {one.name.casefold() for one in given.values()}
    out: list[tuple[str, dict[str, Json], bool]] = []
    for place, slot in enumerate(slots):
        if place in given:
            out.append((given[place].name, _form(slot, given[place]), slot.required))
        elif slot.name.casefold() not in taken:
            out.append((slot.name, slot.form, slot.required))
    return out


def _assigned(slots: Sequence[_Slot], own: Sequence[_Slot]) -> dict[int, _Slot]:
    """Which of the tool's own parameters fills which slot; the other slots are borrowed."""
    free = [place for place, slot in enumerate(slots) if not slot.is_special]
    given: dict[int, _Slot] = {}
    left = list(own)
    for fits in (_same_kind_and_need, _same_kind, _can_be):
        for place in free:
            if place not in given and (one := next((o for o in left if fits(slots[place], o)), None)):
                given[place] = one
                left.remove(one)
    return given


def _same_kind_and_need(slot: _Slot, own: _Slot) -> bool:
    return _same_kind(slot, own) and slot.required == own.required


def _same_kind(slot: _Slot, own: _Slot) -> bool:
    return bool(slot.kind == own.kind)


def _can_be(slot: _Slot, own: _Slot) -> bool:
    """Whether the parameter can be said in the slot's type: anything as a text, a number as another."""
    return slot.kind == "string" or (slot.kind in _NUMBERS and own.kind in _NUMBERS)


def _form(slot: _Slot, own: _Slot) -> dict[str, Json]:
    """The parameter's schema with the slot's keys in the slot's order."""
    out: dict[str, Json] = {}
    for key, value in slot.form.items():
        if key == "description":
            text = own.form.get("description")
            out[key] = like(text, value) if isinstance(text, str) and isinstance(value, str) else value
        elif key == "items":
            out[key] = own.form.get("items", value)
        else:
            out[key] = value
    return out


def like(text: str, model: str) -> str:
    """The text with the model's habits: a final full stop or none, a capital or a small first letter."""
    text, model = text.strip(), model.strip()
    if not text or not model:
        return "" if not model else text
    if model[-1] in ".!?":
        text = text if text[-1] in ".!?" else f"{text}."
    else:
        text = text.removesuffix(".")
    first = re.match(r"[A-Za-z][a-z]+\b", text)
    if first and model[0].isalpha():
        text = (text[0].upper() if model[0].isupper() else text[0].lower()) + text[1:]
    return text
