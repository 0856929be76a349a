"""New tools in the schema style of the registry that they join, by code.

A model writes schemas in a style of its own: other keys, other types, two or three parameters each. That
alone tells a new tool from an original one. So each new tool takes the *form* of a tool of the registry, its
model: the keys of the schema and their order, how many parameters there are, of which types, which are
required, and how descriptions begin and end. What it is and does stays its own: its name, the words of its
description, its parameters as far as they fit the form. Where the form asks for more, parameters of the tool
that it stands beside fill it, as tools of one API share them, or the model's; where it asks for fewer, the
last optional ones go. A parameter that the registry has under the same name is described as there.

Nothing is drawn: the same registry and the same new tools give the same styled ones.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from robustbench_tc.schema import Json, Tool

PER_MODEL = 2
"""How often a tool of the registry is a model at most: as often as new tools stand beside one."""

_NUMBERS = frozenset({"integer", "number"})
_BORROWED, _FOREIGN, _DROPPED = 4, 10, 3
"""What it costs to fill a slot from the tool beside the new one, or from its model, and to leave a parameter
out. Whole numbers: they are compared."""


_SAYING_LITTLE = frozenset(
    "a an the of for to in on at by with from and or this that which is are it its one given tool api get "
    "gets return returns retrieve retrieves list lists find finds".split()
)


class _Slot(msgspec.Struct, frozen=True):
    """A parameter: its name, its schema, whether it is required."""

    name: str
    form: dict[str, Json]
    required: bool

    @property
    def kind(self) -> Json:
        return self.form.get("type")

    @property
    def is_number(self) -> bool:
        """Whether numbers are all that it takes: a list of types may be more."""
        return isinstance(self.kind, str) and self.kind in _NUMBERS

    @property
    def is_special(self) -> bool:
        """Whether it has more than a type and a description, which no other parameter can take over."""
        return not self.form.keys() <= {"type", "description", "items"}


def styled(new: Sequence[tuple[Tool, Tool]], registry: Sequence[Tool]) -> list[Tool]:
    """The new tools of (new tool, the tool it stands beside), each in the form of a tool of the registry.

    `registry`: without control tools. A tool is the model of two new ones at most, so the forms of the new
    tools are those of the registry; who takes which is settled by how well they fit.
    """
    forms = list(map(_slots, registry))
    known = {slot.name: slot for slots in forms for slot in slots}
    costs = []
    for tool, beside in new:
        own, lent = _slots(tool), _slots(beside)
        costs.append([cost for slots in forms for cost in PER_MODEL * (_cost(slots, own, lent),)])
    return [
        _in_the_form_of(registry[place // PER_MODEL], tool, beside, known)
        for (tool, beside), place in zip(new, _matched(costs), strict=True)
    ]


def near_duplicates(one: Tool, other: Tool) -> bool:
    """Whether two tools are all but the same: by the words of their names, of their descriptions, or both."""
    if one.name == other.name:
        return True
    names = _shared(_name_words(one.name), _name_words(other.name))
    words = _shared(_description_words(one.description), _description_words(other.description))
    return names >= 100 or words >= 60 or names + words >= 105


def _shared(one: frozenset[str], other: frozenset[str]) -> int:
    """How many in a hundred of the words of either are in both, rounded down."""
    return 100 * len(one & other) // len(one | other) if one and other else 0


@lru_cache(10_000)
def _name_words(name: str) -> frozenset[str]:
    found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    return frozenset(_singular(word.lower()) for word in found)


@lru_cache(10_000)
def _description_words(text: str) -> frozenset[str]:
    words = re.findall(r"[a-z0-9]+", text.lower())
    return frozenset(_singular(word) for word in words if word not in _SAYING_LITTLE)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _slots(tool: Tool) -> list[_Slot]:
    return [
        _Slot(name, inner if isinstance(inner, dict) else {}, name in tool.required)
        for name, inner in tool.properties.items()
    ]


def _matched(costs: Sequence[Sequence[int]]) -> list[int]:
    """A different column for every row, cheap in all: the best first, then exchanges while they help."""
    cells = sorted((cost, row, column) for row, line in enumerate(costs) for column, cost in enumerate(line))
    chosen: dict[int, int] = {}
    for _, row, column in cells:
        if row not in chosen and column not in chosen.values():
            chosen[row] = column
    helps = True
    while helps:
        helps = False
        for a in chosen:
            for b in range(a):
                now = costs[a][chosen[a]] + costs[b][chosen[b]]
                if costs[a][chosen[b]] + costs[b][chosen[a]] < now:
                    chosen[a], chosen[b] = chosen[b], chosen[a]
                    helps = True
    return [chosen[row] for row in range(len(costs))]


def _cost(slots: Sequence[_Slot], own: Sequence[_Slot], lent: Sequence[_Slot]) -> int:
    """How much of a tool is lost, and borrowed from the one beside it, in the form of these slots."""
    given = _assigned(slots, own)
    borrowed = len(_assigned([slot for place, slot in enumerate(slots) if place not in given], lent))
    foreign = len(slots) - len(given) - borrowed
    return borrowed * _BORROWED + foreign * _FOREIGN + (len(own) - len(given)) * _DROPPED


def _in_the_form_of(model: Tool, tool: Tool, beside: Tool, known: Mapping[str, _Slot]) -> Tool:
    filled = _filled(_slots(model), _slots(tool), _slots(beside), known)
    own: dict[str, Json] = {
        "properties": {slot.name: slot.form for slot in filled},
        "required": [slot.name for slot in filled if slot.required],
    }
    parameters = {key: own.get(key, value) for key, value in model.parameters.items()}
    return Tool(tool.name, like(tool.description, model.description), parameters)


def _filled(
    slots: Sequence[_Slot], own: Sequence[_Slot], lent: Sequence[_Slot], known: Mapping[str, _Slot]
) -> list[_Slot]:
    """The parameters in the order of the slots: own ones, else lent ones, else the slot as it is."""
    given = _assigned(slots, own)
    taken = {one.name.casefold() for one in given.values()}
    free = [place for place in range(len(slots)) if place not in given]
    left = [one for one in lent if one.name.casefold() not in taken]
    for at, borrowed in _assigned([slots[place] for place in free], left).items():
        given[free[at]] = borrowed
        taken.add(borrowed.name.casefold())
    out: list[_Slot] = []
    for place, slot in enumerate(slots):
        others = (o for o in known.values() if _same_kind(slot, o))
        one = given.get(place) or next((o for o in (slot, *others) if o.name.casefold() not in taken), None)
        if one is None:
            continue
        taken.add(one.name.casefold())
        out.append(_Slot(one.name, _form(slot, known.get(one.name, one)), slot.required))
    return out


def _assigned(slots: Sequence[_Slot], own: Iterable[_Slot]) -> dict[int, _Slot]:
    """Which of the tool's own parameters, required ones first, fills which slot."""
    left = sorted(own, key=lambda one: not one.required)
    given: dict[int, _Slot] = {}
    for fits in (_same, _same_kind_and_need, _same_kind, _can_be):
        for place, slot in enumerate(slots if left else ()):
            if place not in given and (one := next((o for o in left if fits(slot, o)), None)):
                given[place] = one
                left.remove(one)
    return given


def _same(slot: _Slot, own: _Slot) -> bool:
    return slot.name == own.name and slot.form.keys() == own.form.keys() and _same_kind(slot, own)


def _same_kind_and_need(slot: _Slot, own: _Slot) -> bool:
    return _same_kind(slot, own) and slot.required == own.required


def _same_kind(slot: _Slot, own: _Slot) -> bool:
    if slot.is_special:
        return slot.name == own.name and slot.form == own.form
    return bool(slot.kind == own.kind) and not own.is_special


def _can_be(slot: _Slot, own: _Slot) -> bool:
    """Whether the parameter can be said in the slot's type: anything as a text, a number as another."""
    if slot.is_special or own.is_special:
        return False
    return slot.kind == "string" or (slot.is_number and own.is_number)


def _form(slot: _Slot, own: _Slot) -> dict[str, Json]:
    """The parameter's schema with the slot's keys in the slot's order."""
    if slot.name == own.name:
        return slot.form
    out: dict[str, Json] = {}
    for key, value in slot.form.items():
        if key == "description":
            text = own.form.get("description")
            out[key] = like(text, value) if isinstance(text, str) and isinstance(value, str) else value
        elif key == "items":
            items = own.form.get("items")
            out[key] = items if _is_plain(items) and _is_plain(value) else value
        else:
            out[key] = value
    return out


def _is_plain(items: Json) -> bool:
    """Whether the schema of an array's entries is a type and nothing else."""
    return isinstance(items, dict) and items.keys() == {"type"}


def like(text: str, model: str) -> str:
    """The text with the model's habits: a final full stop or none, a capital or a small first letter."""
    text, model = text.strip(), model.strip()
    if not text or not model:
        return text
    if model[-1] in ".!?":
        text = text if text[-1] in ".!?" else f"{text}."
    else:
        text = text.removesuffix(".")
    if re.match(r"[A-Za-z][a-z]*\b", text) and model[0].isalpha():
        text = (text[0].upper() if model[0].isupper() else text[0].lower()) + text[1:]
    return text
