"""Type shift: one golden parameter that is no text is declared as a text, without loss, and the gold follows.

declared    becomes                                      golden 3, 2.5, [1, 2], true
integer     a text of digits (`pattern`)                 "3"
number      a decimal text (`pattern`)                   "2.5"
array       a text, its items separated by commas        "1, 2" or "1,2"
boolean     a text, `yes` or `no` (`enum`)               "yes"
"""

import random
import re
from decimal import Decimal
from typing import NamedTuple

from robustbench_tc.builders.plain import literal
from robustbench_tc.schema import ANY, OMIT, Call, Change, GoldenAnswer, Json, Sample, Tool
from robustbench_tc.taxonomy import Rows

from .base import (
    Context,
    NotApplicable,
    Perturbation,
    register,
)
from .registry import as_pointer, calls_of, gold_change, gold_tools, shortest

INTEGER = r"^-?[0-9]+$"
NUMBER = r"^-?[0-9]+(\.[0-9]+)?$"
ITEMS = r"^[^,]+(, ?[^,]+)*$"
COMMAS = "Separated by commas."
YES_NO = {True: "yes", False: "no"}

_DECLARED: dict[str, dict[str, Json]] = {
    "integer": {"type": "string", "pattern": INTEGER},
    "number": {"type": "string", "pattern": NUMBER},
    "array": {"type": "string", "pattern": ITEMS},
    "boolean": {"type": "string", "enum": ["yes", "no"]},
}
_NAMED = {
    "integer": re.compile(r"(?i)\b(?:int|integers?|whole numbers?)\b"),
    "number": re.compile(r"(?i)\b(?:floats?|floating|doubles?|decimals?|numeric(?:al)?)\b"),
    "array": re.compile(r"(?i)\b(?:lists?|arrays?|tuples?|sequences?)\b|\[\{"),
    "boolean": re.compile(r"(?i)\b(?:bool|boolean|true|false)\b"),
}
"""How a description names the type that its parameter had."""

_KEPT = ("description", "title", "optional")
"""Keys of a parameter's schema that say nothing of its type."""
_SPELT = re.compile(r"-?\d+(?:\.\d+)?")


class Shift(NamedTuple):
    """One parameter that can be declared as a text."""

    tool: int
    """Its tool's index in the registry."""
    name: str
    kind: str
    schema: dict[str, Json]
    """As a text."""
    golden: tuple[GoldenAnswer, ...]


def typed(sample: Sample) -> list[tuple[int, str]]:
    """Every parameter that a golden call has to give and that is no text: its tool's index, its name.

    Raises NotApplicable for a sample without one gold tool.
    """
    first = sample.golden_answers[0] if sample.golden_answers else ()
    found = []
    for tool_name, index in gold_tools(sample).items():
        given = {name for call in first if call.name == tool_name for name in shortest(call)}
        for name, inner in sample.tools[index].properties.items():
            if name in given and isinstance(inner, dict) and _kind(inner) in _DECLARED:
                found.append((index, name))
    return found


def _kind(inner: dict[str, Json]) -> str:
    """The declared type; "" where it is no single word."""
    kind = inner.get("type")
    return kind if isinstance(kind, str) else ""


def shift(sample: Sample, index: int, name: str) -> Shift | str:
    """How the parameter becomes a text, or the reason why it does not."""
    inner: dict[str, Json] = sample.tools[index].properties[name]
    kind = _kind(inner)
    if _NAMED[kind].search(str(inner.get("description") or "")):
        return "description_names_the_type"
    schema, golden = as_text(inner), _followed(sample, sample.tools[index].name, name, kind)
    if schema is None or golden is None:
        return "no_lossless_form"
    return Shift(index, name, kind, schema, golden)


def as_text(inner: dict[str, Json]) -> dict[str, Json] | None:
    """The parameter's schema as that of a text; None where its default or its choices have no text form."""
    kind = _kind(inner)
    out: dict[str, Json] = {**_DECLARED[kind]}
    out |= {key: value for key, value in inner.items() if key in _KEPT}
    if kind == "array":
        text = str(inner.get("description") or "").rstrip()
        joint = " " if not text or text[-1] in ".!?" else ". "
        out["description"] = (text + joint + COMMAS).lstrip()
    choices = inner.get("enum")
    if isinstance(choices, list) and kind != "boolean":
        forms = [_forms(kind, value, "") for value in choices]
        if not all(forms):
            return None
        out["enum"] = [form[0] for form in forms if form]
    if inner.get("default") is not None:
        form = _forms(kind, inner["default"], "")
        if not form:
            return None
        out["default"] = form[0]
    return out


def _followed(sample: Sample, tool: str, name: str, kind: str) -> tuple[GoldenAnswer, ...] | None:
    """The golden answers with the parameter's values as texts; None where one has no text form."""
    said = "\n".join(message.content for message in sample.messages)
    if not all(
        _texts(kind, call.parameters.get(name, []), said)
        for call in calls_of(sample, tool)
        if name in call.parameters
    ):
        return None

    def follow(call: Call) -> Call:
        if call.name != tool or name not in call.parameters:
            return call
        values = _texts(kind, call.parameters[name], said)
        return Call(call.name, {**call.parameters, name: values})

    return tuple(tuple(follow(call) for call in answer) for answer in sample.golden_answers)


def _texts(kind: str, accepted: Json, said: str) -> list[Json] | None:
    """The accepted values as texts, marks of what may be left out or is free as they are."""
    out: list[Json] = []
    for value in accepted if isinstance(accepted, list | tuple) else ():
        forms = [value] if value in (OMIT, ANY) else _forms(kind, value, said)
        if not forms:
            return None
        out += [form for form in forms if form not in out]
    return out or None


def _forms(kind: str, value: Json, said: str) -> list[str] | None:
    """The texts of a value, the plainest first; None where there is none. Numbers also as `said` has them."""
    if kind == "boolean":
        word = value if isinstance(value, bool) else {"true": True, "false": False}.get(str(value).lower())
        return None if word is None else [YES_NO[word]]
    if kind == "array":
        return _joined(value, said)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    forms = _numbers(value, said)
    wanted = re.compile(INTEGER if kind == "integer" else NUMBER)
    return [form for form in forms if wanted.search(form)] or None


def _numbers(value: float | str, said: str) -> list[str]:
    text = value if isinstance(value, str) else repr(value)
    forms = [text]
    if re.search(NUMBER, text):
        exact = Decimal(text)
        if exact == exact.to_integral_value():
            forms.append(str(int(exact)))
        forms += [spelt for spelt in _SPELT.findall(said) if Decimal(spelt) == exact]
    return list(dict.fromkeys(forms))


def _joined(value: Json, said: str) -> list[str] | None:
    if isinstance(value, str):  # API-Bank writes lists as texts
        value = literal(value)
    if not isinstance(value, list | tuple) or not value:
        return None
    plain, spelt = [], []
    for item in value:
        if isinstance(item, bool) or not isinstance(item, int | float | str):
            return None
        forms = [item] if isinstance(item, str) else _numbers(item, said)
        if any("," in form or not form or form != form.strip() for form in forms):
            return None
        plain.append(forms[0])
        spelt.append(forms[-1])
    return list(dict.fromkeys(joint.join(items) for items in (plain, spelt) for joint in (", ", ",")))


def _with(tool: Tool, name: str, schema: dict[str, Json]) -> Tool:
    """The tool with one parameter declared otherwise."""
    properties = {key: schema if key == name else inner for key, inner in tool.properties.items()}
    return Tool(tool.name, tool.description, {**tool.parameters, "properties": properties})


class TypeShift(Perturbation, frozen=True):
    """TypeShift: the schema asks for a text where the value is a number, a list, or a yes or no."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """Raises NotApplicable where no golden parameter can be declared as a text."""
        places = typed(sample)
        reasons = ["no_parameter_to_shift"] if not places else []
        for place in rng.sample(places, len(places)):
            chosen = shift(sample, *place)
            if isinstance(chosen, Shift):
                return self._row(sample, chosen)
            reasons.append(chosen)
        raise NotApplicable(min(reasons))

    def _row(self, sample: Sample, chosen: Shift) -> Sample:
        old = sample.tools[chosen.tool]
        path = f"/tools/{chosen.tool}/parameters/properties/{as_pointer(chosen.name)}"
        changes = [Change(path, old.properties[chosen.name], chosen.schema)]
        changes += gold_change(sample, chosen.golden)
        tools = list(sample.tools)
        tools[chosen.tool] = _with(old, chosen.name, chosen.schema)
        return self.row(sample, changes, tools=tuple(tools), golden_answers=chosen.golden)

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """One golden parameter is declared as a text, nothing else changed, and the gold follows."""
        wrong = self.beyond(clean, row)
        if row.gold_tool_index != clean.gold_tool_index:
            wrong.append("gold_tool_index is not the clean one")
        if len(row.tools) != len(clean.tools):
            return [*wrong, "the set of tools changed"]
        for index, name in typed(clean):
            if row.tools[index] == clean.tools[index]:
                continue
            one = shift(clean, index, name)
            tools = list(clean.tools)
            if isinstance(one, Shift):
                tools[index] = _with(tools[index], name, one.schema)
            if isinstance(one, Shift) and row.tools == tuple(tools):
                follows = row.golden_answers == one.golden
                return wrong if follows else [*wrong, "the gold does not follow the declared type"]
        return [*wrong, "the registry is not the clean one with one golden parameter declared as a text"]


register(
    TypeShift(
        code="type_shift",
        order=404,
        display_name="TypeShift",
        label="parameter type changed",
        component="action",
        level="interaction",
        pack="registry",
        channel="registry",
        what_is_modified=(
            "One golden parameter changes its declared type without loss (integer, number, array or boolean "
            "to text); the gold follows."
        ),
        how_made=(
            "One parameter that the golden call has to give, declared as integer, number, array or boolean, "
            "is declared as a text: digits, a decimal text, items separated by commas, `yes` or `no`. The "
            "golden value is that text, in every form that loses nothing; a value of the old type is wrong. "
            "No row where the description names the old type, or a value has no such text."
        ),
        method="rule",
        may_change=("parameter schemas", "golden answers"),
        ground_truth_changes=True,
        train_augmentable=False,
        applies_to=("bfcl_v3", "apibank", "toolalpaca"),
        rows=Rows(paper=36, bundled=23, full=1036),
        prior_art="none known: schema drift is tested in results, not in what a tool asks for",
    ),
)
