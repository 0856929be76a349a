"""Type shift: one golden parameter that is no text is declared as a text, without loss, and the gold follows.

declared    becomes                                      golden 3, 2.5, [1, 2], true
integer     a text of digits (`pattern`)                 "3"
number      a decimal text (`pattern`)                   "2.5"
array       a text, its items separated by commas        "1, 2" or "1,2"
boolean     a text, `yes` or `no` (`enum`)               "yes"
"""

import random
import re
from collections.abc import Sequence
from contextlib import suppress
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
from .registry import as_pointer, gold_change, gold_tools, shortest

NUMBER = r"^-?[0-9]+(\.[0-9]+)?$"
COMMAS = "Separated by commas."
YES_NO = {"true": "yes", "false": "no"}

_DECLARED: dict[str, dict[str, Json]] = {
    "integer": {"type": "string", "pattern": "^-?[0-9]+$"},
    "number": {"type": "string", "pattern": NUMBER},
    "array": {"type": "string", "pattern": "^[^,]+(, ?[^,]+)*$"},
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
            if name in given and isinstance(inner, dict) and str(inner.get("type")) in _DECLARED:
                found.append((index, name))
    return found


def shift(sample: Sample, index: int, name: str) -> Shift:
    """How the parameter becomes a text. Raises NotApplicable where it does not."""
    tool = sample.tools[index]
    inner: dict[str, Json] = tool.properties[name]
    if _NAMED[inner["type"]].search(str(inner.get("description") or "")):
        raise NotApplicable("description_names_the_type")
    said = "\n".join(message.content for message in sample.messages)

    def follow(call: Call) -> Call:
        if call.name != tool.name or name not in call.parameters:
            return call
        values = _texts(inner["type"], call.parameters[name], said)
        return Call(call.name, {**call.parameters, name: values})

    golden = tuple(tuple(follow(call) for call in answer) for answer in sample.golden_answers)
    return Shift(index, name, as_text(inner), golden)


def as_text(inner: dict[str, Json]) -> dict[str, Json]:
    """The parameter's schema as that of a text. Raises NotApplicable as `_forms`, for default and choices."""
    kind, choices = inner["type"], inner.get("enum")
    out = {**_DECLARED[kind], **{key: value for key, value in inner.items() if key in _KEPT}}
    if kind == "array":
        text = str(inner.get("description") or "").rstrip()
        joint = " " if not text or text[-1] in ".!?" else ". "
        out["description"] = (text + joint + COMMAS).lstrip()
    if isinstance(choices, list) and kind != "boolean":
        out["enum"] = [_forms(kind, value, "")[0] for value in choices]
    if inner.get("default") is not None:
        out["default"] = _forms(kind, inner["default"], "")[0]
    return out


def _texts(kind: str, accepted: Sequence[Json], said: str) -> list[Json]:
    """The accepted values as texts, marks of what may be left out or is free as they are."""
    out: list[Json] = []
    for value in accepted:
        forms = [value] if value in (OMIT, ANY) else _forms(kind, value, said)
        out += [form for form in forms if form not in out]
    return out


def _forms(kind: str, value: Json, said: str) -> list[str]:
    """The texts of a value, the plainest first; numbers also as `said` has them. Raises NotApplicable where
    there is none."""
    if kind == "boolean":
        forms = [word for text, word in YES_NO.items() if str(value).lower() == text]
    elif kind == "array":
        forms = _joined(value, said)
    else:
        wanted = re.compile(_DECLARED[kind]["pattern"])
        forms = [form for form in _numbers(value, said) if wanted.search(form)]
    if not forms:
        raise NotApplicable("no_lossless_form")
    return forms


def _numbers(value: Json, said: str) -> list[str]:
    """The number as it stands, as a whole one and as `said` has it; a text as it stands."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return []
    text = value if isinstance(value, str) else repr(value)
    forms = [text]
    if re.search(NUMBER, text):
        exact = Decimal(text)
        if exact == exact.to_integral_value():
            forms.append(str(int(exact)))
        forms += [spelt for spelt in _SPELT.findall(said) if Decimal(spelt) == exact]
    return list(dict.fromkeys(forms))


def _joined(value: Json, said: str) -> list[str]:
    """The items between commas; [] where one is no plain value, or has a comma or space of its own."""
    if isinstance(value, str):  # API-Bank writes lists as texts
        value = literal(value)
    items = value if isinstance(value, list | tuple) else ()
    spelt = [[item] if isinstance(item, str) else _numbers(item, said) for item in items]
    if not spelt or not all(spelt):
        return []
    if any("," in form or not form or form != form.strip() for forms in spelt for form in forms):
        return []
    plainest, last = [forms[0] for forms in spelt], [forms[-1] for forms in spelt]
    return list(dict.fromkeys(joint.join(forms) for forms in (plainest, last) for joint in (", ", ",")))


def _shifted(sample: Sample, chosen: Shift) -> tuple[Tool, ...]:
    """The registry with the parameter declared as a text."""
    tools = list(sample.tools)
    old = tools[chosen.tool]
    properties = {**old.properties, chosen.name: chosen.schema}
    tools[chosen.tool] = Tool(old.name, old.description, {**old.parameters, "properties": properties})
    return tuple(tools)


class TypeShift(Perturbation, frozen=True):
    """TypeShift: the schema asks for a text where the value is a number, a list, or a yes or no."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """Raises NotApplicable where no golden parameter can be declared as a text."""
        places = typed(sample)
        reasons = []
        for place in rng.sample(places, len(places)):
            try:
                return self._row(sample, shift(sample, *place))
            except NotApplicable as skip:
                reasons.append(skip.reason)
        raise NotApplicable(min(reasons, default="no_parameter_to_shift"))

    def _row(self, sample: Sample, chosen: Shift) -> Sample:
        path = f"/tools/{chosen.tool}/parameters/properties/{as_pointer(chosen.name)}"
        change = Change(path, sample.tools[chosen.tool].properties[chosen.name], chosen.schema)
        changes = [change, *gold_change(sample, chosen.golden)]
        return self.row(sample, changes, tools=_shifted(sample, chosen), golden_answers=chosen.golden)

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """One golden parameter is declared as a text, nothing else changed, and the gold follows."""
        wrong = self.beyond(clean, row)
        if row.gold_tool_index != clean.gold_tool_index:
            wrong.append("gold_tool_index is not the clean one")
        if len(row.tools) != len(clean.tools):
            return [*wrong, "the set of tools changed"]
        for place in typed(clean):
            with suppress(NotApplicable):
                chosen = shift(clean, *place)
                if row.tools == _shifted(clean, chosen):
                    follows = row.golden_answers == chosen.golden
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
