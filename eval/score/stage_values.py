"""Values at the stage `fill`: whether the scorer of a source takes one, and how a wrong one is wrong."""

import re
from collections.abc import Callable
from functools import partial
from itertools import islice

from robustbench_tc.schema import ANY, OMIT, Call, Json, Sample

from . import apibank, bfcl, rotbench, toolalpaca
from .values import folded, is_number, json_equal, json_type, leaves

_WORD = re.compile(r"\w+")

LEAVES = 1_000
"""Values inside one argument that are looked for in what was shown: a model's may hold any number."""


def value_fits(scorer: str, value: Json, accepted: list[Json], declared: Json, golden: Call) -> bool:
    """Whether the scorer of that name takes `value` for one of the accepted ones."""
    schema = declared if isinstance(declared, dict) else {}
    if scorer == "bfcl_v3":
        return bfcl.value_reason(value, accepted, schema) is None
    if scorer == "rotbench" and rotbench.is_control(golden):
        return True
    of_scorers: dict[str, Callable[[Json, Json], bool]] = {
        "apibank": partial(apibank.equal, declared=schema),
        "toolalpaca": toolalpaca.equal,
        "rotbench": rotbench.equal,
    }
    equal = of_scorers.get(scorer, json_equal)
    return ANY in accepted or any(equal(value, answer) for answer in accepted)


def fill_detail(value: Json, accepted: list[Json], row: Sample, clean: Sample, mode: str | None) -> str:
    """How a wrong value is wrong.

    `wrong_language`: by the error mode of that name. `wrong_type`: no accepted value is of its JSON type.
    `typo_copied`: it has a word that a type of typos wrote into the messages. `invented`: a text or number of
    it stands nowhere in the messages or the tools. `wrong_value` otherwise.
    """
    if mode == "wrong_language":
        return "wrong_language"
    known = [answer for answer in accepted if answer != OMIT] or accepted
    if known and _kind(value) not in map(_kind, known):
        return "wrong_type"
    said = [*islice((one for one in leaves(value) if isinstance(one, str) or is_number(one)), LEAVES)]
    if "typos" in row.type_code and _copied(said, row, clean):
        return "typo_copied"
    registry = leaves([[tool.description, tool.parameters] for tool in row.tools])  # defaults and choices too
    shown = _said(row) + "\n" + folded(" ".join(str(one) for one in registry if one is not None))
    return "wrong_value" if all(_stands(leaf, shown) for leaf in said) else "invented"


def _kind(value: Json) -> str:
    """The JSON type; integers and other numbers are one."""
    return "number" if is_number(value) else json_type(value)


def _copied(leaves: list[Json], row: Sample, clean: Sample) -> bool:
    """Whether a text has a word that the perturbed messages have and the clean ones have not."""
    new = set(_WORD.findall(_said(row))) - set(_WORD.findall(_said(clean)))
    return any(isinstance(leaf, str) and not new.isdisjoint(_WORD.findall(folded(leaf))) for leaf in leaves)


def _said(row: Sample) -> str:
    return folded("\n".join(message.content for message in row.messages))


def _stands(leaf: Json, shown: str) -> bool:
    """Whether a text stands in what was shown, or a number stands there by itself."""
    if isinstance(leaf, str):
        return folded(leaf) in shown
    text = repr(leaf).removesuffix(".0")
    return re.search(rf"(?<![\d.]){re.escape(text)}(?!\d|\.\d*[1-9])", shown.replace(",", "")) is not None
