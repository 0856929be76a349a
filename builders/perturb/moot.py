"""Offers that may be moot (`_moot`): the cheaper or quicker look-alike lacks a parameter.

In one half of the rows the request needs that parameter, so the better offer cannot serve and the complete
tool is the gold; in the other half the parameter is optional and unused, and the better offer is the gold.
Which half is drawn once for each sample: where CD_moot takes a needed parameter, TD_moot takes an unused one.
So a sample serves only if its gold tool has a parameter of each kind.
"""

import random
import re
from typing import NamedTuple

from robustbench_tc.schema import OMIT, Call, GoldenAnswer, Json, Sample, Tool, dumps
from robustbench_tc.taxonomy import Rows

from .balanced import BALANCED, Balanced, Schema, Side, Two, offers_of, stated, the_gold_tool
from .base import (
    Facts,
    NotApplicable,
    register,
)
from .offers import offer_text
from .registry import may_be_left_out

WISHES: dict[str, tuple[str, ...]] = {
    "cost": (
        "Of the tools that can do all of this, use the cheapest.",
        "Pick the least expensive tool that can take everything I asked for.",
        "As long as the tool covers all of it, keep the cost of the call as low as possible.",
        "My budget is tight, so choose the cheapest tool that can handle every part of this.",
    ),
    "time": (
        "Of the tools that can do all of this, use the fastest.",
        "Pick the quickest tool that can take everything I asked for.",
        "As long as the tool covers all of it, get me the answer as soon as possible.",
        "I am in a hurry, so choose the fastest tool that can handle every part of this.",
    ),
}

_HOW_MADE = (
    "A look-alike of the gold tool enters, named like it and `_1`; one of the two lacks a parameter and is "
    "{better} by a factor of 4 or more. In half of the rows (over CD_moot and TD_moot) the request states a "
    "value of that parameter and every accepted answer gives it: the gold is the complete tool. In the other "
    "half the parameter is optional, no accepted answer needs it and no value of it is said: the gold is the "
    "tool without it, and its answer does not give it. The gold has the name with `_1` in half of the rows. "
    "A sentence that asks for the {wish} of the tools that can do all of it joins the last user turn; where "
    "a call was executed after that turn, the closing turn that asks for the scored call. The registry is "
    "shuffled."
)


class Kinds(NamedTuple):
    """The parameters of a gold tool that can be taken away."""

    needed: tuple[str, ...]
    """Every accepted answer gives it, with a value that the conversation states and that is not its default.
    Where there is one that the schema does not require, only those: the registry then says less."""
    unused: tuple[str, ...]
    """The schema does not require it, every accepted answer may leave it out, and none of its values is
    stated."""


def kinds(sample: Sample) -> Kinds:
    """Both kinds of parameters of the sample's gold tool. Raises NotApplicable."""
    tool = sample.tools[the_gold_tool(sample)]
    said = "\n".join(message.content for message in sample.messages).casefold()
    calls = [call for answer in sample.golden_answers for call in answer]
    needed, unused = [], []
    for name, about in tool.properties.items():
        given = [call.parameters[name] for call in calls if name in call.parameters]
        values = [value for accepted in given for value in accepted]
        default = about.get("default") if isinstance(about, dict) else None
        if len(given) == len(calls) and not any(map(may_be_left_out, given)):
            if default not in values and _stated(values, said, whole=True):
                needed.append(name)
        elif (
            name not in tool.required
            and all(map(may_be_left_out, given))
            and not _stated(values, said, whole=False)
        ):
            unused.append(name)
    if not needed:
        raise NotApplicable("no_needed_parameter")
    if not unused:
        raise NotApplicable("no_unused_optional_parameter")
    optional = tuple(name for name in needed if name not in tool.required)
    return Kinds(optional or tuple(needed), tuple(unused))


def _stated(value: Json, said: str, *, whole: bool) -> bool:
    """Whether the conversation holds the value's text, or one within it; `whole`: as words of their own."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return any(_stated(inner, said, whole=whole) for inner in value)
    if isinstance(value, bool) or value is None or value == OMIT:
        return False
    text = (value if isinstance(value, str) else dumps(value)).strip().casefold()
    if not text or text not in said:
        return False
    return not whole or re.search(rf"(?<![^\W_]){re.escape(text)}(?![^\W_])", said) is not None


def without(schema: Schema, name: str) -> Schema:
    """The schema without one of its parameters."""
    out = dict(schema)
    out["properties"] = {key: value for key, value in schema["properties"].items() if key != name}
    if isinstance(schema.get("required"), list):
        out["required"] = [key for key in schema["required"] if key != name]
    return out


class Moot(Balanced, frozen=True):
    """The common course of both types."""

    def two(self, sample: Sample, tool: Tool, second: bool, rng: random.Random) -> Two:
        """The complete tool and the better offer that lacks a parameter; the first is the gold where the
        request needs that parameter."""
        can = kinds(sample)
        is_needed = second != self.mirrored
        better, worse = offers_of(self.quality, rng)
        lacking = (rng.choice(can.unused), rng.choice(can.needed))  # both drawn: one stream for two types
        complete = Side(offer_text(self.quality, worse), tool.parameters)
        lean = Side(offer_text(self.quality, better), without(tool.parameters, lacking[is_needed]))
        return Two(complete, lean) if is_needed else Two(lean, complete)

    def answers(self, sample: Sample, gold: Side) -> tuple[GoldenAnswer, ...]:
        """The accepted answers without a parameter that the gold tool lacks."""
        known = sample.tools[the_gold_tool(sample)].properties.keys()
        lost = known - gold.parameters.get("properties", {}).keys()
        return tuple(
            tuple(
                Call(call.name, {k: v for k, v in call.parameters.items() if k not in lost}) for call in one
            )
            for one in sample.golden_answers
        )

    def wrong_offers(self, clean: Sample, original: Tool, pair: Two) -> list[str]:
        needed = pair.gold.parameters == original.parameters
        complete, lean = pair if needed else reversed(pair)
        deciding = kinds(clean).needed if needed else kinds(clean).unused
        shortened = [without(original.parameters, name) for name in deciding]
        if complete.parameters != original.parameters or lean.parameters not in shortened:
            return ["the two tools are not the clean one and one without a parameter that decides"]
        better, worse = stated(lean), stated(complete)
        wanted = "call" if self.quality == "cost" else "ms"
        if [one.unit for one in better] != [wanted] or [one.unit for one in worse] != [wanted]:
            return ["a tool makes no offer"]
        if worse[0].value < 4 * better[0].value - 1e-9:
            return ["the tool that lacks a parameter is not the better offer by a factor of 4"]
        return []


MOOT: Facts = {
    **BALANCED,
    "rows": Rows(paper=30, bundled=10, full=856),
    "design": "moot",
    "prior_art": "none known for offers; tools that lack what a request needs: BFCL relevance, ToolSandbox",
    "wishes": WISHES,
    "draws_as": "CD_moot",
}


register(
    Moot(
        **MOOT,
        code="CD_moot",
        order=511,
        display_name="MisDesc-Moot",
        label="cheaper tool lacks parameter",
        what_is_modified=(
            "A look-alike enters; the cheaper of the two tools lacks a parameter, which the query needs in "
            "half of the rows; the query asks for the cheapest tool that can do it."
        ),
        how_made=_HOW_MADE.format(better="cheaper", wish="cheapest"),
        quality="cost",
    ),
    Moot(
        **MOOT,
        code="TD_moot",
        order=512,
        display_name="TimeDesc-Moot",
        label="faster tool lacks parameter",
        what_is_modified=(
            "A look-alike enters; the faster of the two tools lacks a parameter, which the query needs in "
            "half of the rows; the query asks for the fastest tool that can do it."
        ),
        how_made=_HOW_MADE.format(better="quicker", wish="quickest"),
        quality="time",
        mirrored=True,
    ),
)
