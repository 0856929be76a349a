"""Opposed offers (`_inv`): one tool is cheap and slow, the other dear and quick, and the request says which.

The type asks for the other quality than its core type: CD_inv wants the quick tool at any price, TD_inv the
cheap one without hurry. Of one sample both have the same registry, so that no rule that reads no request is
right in both.

Offers in mixed units (`_unit`): per call and per 1,000 calls, milliseconds and seconds.

The better offer after conversion is the gold; its bare number is the smaller one in half of the rows.
"""

import random

from robustbench_tc.schema import Sample, Tool
from robustbench_tc.taxonomy import Rows

from .balanced import BALANCED, Balanced, Side, Two, offers_of, stated
from .base import (
    Facts,
    broken,
    register,
)
from .offers import PREFERENCES, offer_text

WISHES: dict[str, tuple[str, ...]] = {
    "time": (
        "I need this as fast as possible, at any price.",
        "Use whichever tool answers soonest; the price does not matter.",
        "Please pick the quickest option, whatever it costs.",
        "I am in a hurry and the cost is no concern, so take the fastest tool.",
    ),
    "cost": (
        "Please keep the cost as low as possible, there is no hurry.",
        "Use whichever tool is the cheapest; the response time does not matter.",
        "Please pick the least expensive option, however long it takes.",
        "My budget is tight and speed is no concern, so take the cheapest tool.",
    ),
}

_HOW_MADE = (
    "A second tool equivalent to the gold tool enters, named like it and `_1`. Both descriptions state a "
    "price per call and a response time: one tool is cheaper by a factor of 4 or more, the other quicker by "
    "as much. A sentence that asks for the {wish} joins the last user turn; where a call was executed after "
    "that turn, the closing turn that asks for the scored call. Which of the two is called `_1`, and which "
    "statement stands last, is drawn once for each sample: {sibling} has the same registry and asks for the "
    "other quality. The registry is shuffled."
)


class Opposed(Balanced, frozen=True):
    """The common course of both types."""

    def suffixed(self, drawn: bool) -> bool:
        """The quick tool has the suffixed name where the draw says so, in both types."""
        return drawn == (self.quality == "time")

    def two(self, sample: Sample, tool: Tool, second: bool, rng: random.Random) -> Two:
        """The tool with the quality that is asked for, and the one with the other."""
        cheap, dear = offers_of("cost", rng)
        quick, slow = offers_of("time", rng)
        fast = Side(_note(dear, quick, second), tool.parameters)
        thrifty = Side(_note(cheap, slow, second), tool.parameters)
        return Two(fast, thrifty) if self.quality == "time" else Two(thrifty, fast)

    def wrong_offers(self, clean: Sample, original: Tool, pair: Two) -> list[str]:
        units, units_of_other = ([one.unit for one in stated(side)] for side in pair)
        if units != units_of_other or sorted(units) != ["call", "ms"]:
            return ["a tool does not state a price and a time, in the order of the other one"]
        gold, other = ({one.unit: one.value for one in stated(side)} for side in pair)
        asked, given_up = ("ms", "call") if self.quality == "time" else ("call", "ms")
        return _other_parameters(original, pair) + broken(
            {
                "the gold tool is not better in what is asked for by a factor of 4": other[asked]
                < 4 * gold[asked] - 1e-9,
                "the gold tool is not worse in the other quality by a factor of 4": gold[given_up]
                < 4 * other[given_up] - 1e-9,
            }
        )


OPPOSED: Facts = {
    **BALANCED,
    "rows": Rows(paper=142, bundled=55, full=2797),
    "design": "inv",
    "prior_art": "none known for tools",
    "wishes": WISHES,
    "draws_as": "CD_inv",
    "solved_without_reading": (
        "Within one type the request always asks for the same quality, so a rule that always takes the "
        "quicker tool answers CD_inv and one that always takes the cheaper tool TD_inv. Of one sample both "
        "types have the same registry and opposite golds: over the two together every rule that reads no "
        "request is right in half of the rows."
    ),
}


def _other_parameters(original: Tool, pair: Two) -> list[str]:
    same = pair.gold.parameters == pair.other.parameters == original.parameters
    return broken({"the two tools do not have the clean tool's parameters": not same})


def _note(price: int, time: int, price_last: bool) -> str:
    said = [offer_text("cost", price), offer_text("time", time)]
    return " ".join(reversed(said) if price_last else said)


_HOW_MIXED = (
    "A second tool equivalent to the gold tool enters, named like it and `_1`, and both descriptions state a "
    "{what}, one {small} and one {large}. The gold tool's is better by a factor of 4 or more once both are "
    "in one unit; its bare number is the smaller one, and its name the one with `_1`, in half of the rows "
    "over CD_unit and TD_unit. A sentence that asks for the {wish} joins the last user turn; where a call "
    "was executed after that turn, the closing turn that asks for the scored call. The registry is shuffled."
)


class MixedUnits(Balanced, frozen=True):
    """The common course of both types."""

    def two(self, sample: Sample, tool: Tool, second: bool, rng: random.Random) -> Two:
        """The better offer in the unit that the draw says, the worse in the other."""
        better, worse = offers_of(self.quality, rng)
        small = second != self.mirrored
        return Two(
            Side(self._said(better, not small), tool.parameters),
            Side(self._said(worse, small), tool.parameters),
        )

    def _said(self, value: int, large: bool) -> str:
        """The offer as text, in the unit with the larger number or in the other one."""
        if self.quality == "cost":
            if large:
                return f"Price per 1,000 calls: ${value:.2f}."
            return f"Price per call: ${value / 1000:.3f}."
        return f"Typical response time: {f'{value} ms' if large else f'{value / 1000:g} s'}."

    def wrong_offers(self, clean: Sample, original: Tool, pair: Two) -> list[str]:
        gold, other = (stated(side) for side in pair)
        if [one.quality for one in (*gold, *other)] != [self.quality] * 2 or len(gold) != 1:
            return ["a tool makes no offer in a unit of this type"]
        return _other_parameters(original, pair) + broken(
            {
                "both offers are in one unit": gold[0].unit == other[0].unit,
                "the gold tool's offer is not better by a factor of 4 after conversion": other[0].value
                < 4 * gold[0].value - 1e-9,
            }
        )


MIXED_UNITS: Facts = {
    **BALANCED,
    "rows": Rows(paper=142, bundled=55, full=2797),
    "design": "unit",
    "prior_art": "none known for tools",
    "wishes": PREFERENCES,
    "draws_as": "CD_unit",
    "solved_without_reading": (
        "The better offer after conversion is always the gold, whatever is asked: whoever converts and takes "
        "it needs no request. The type tries the conversion; a rule that compares the bare numbers is right "
        "in half of the rows."
    ),
}


register(
    Opposed(
        **OPPOSED,
        code="CD_inv",
        order=507,
        display_name="MisDesc-Inv",
        label="cheap decoy, speed asked",
        what_is_modified=(
            "An equivalent tool enters; one of the two is cheaper, the other faster, and the query asks for "
            "the fast one at any price."
        ),
        how_made=_HOW_MADE.format(wish="quick one at any price", sibling="TD_inv"),
        quality="time",
    ),
    Opposed(
        **OPPOSED,
        code="TD_inv",
        order=508,
        display_name="TimeDesc-Inv",
        label="fast decoy, price asked",
        what_is_modified=(
            "An equivalent tool enters; one of the two is cheaper, the other faster, and the query asks for "
            "the cheap one without hurry."
        ),
        how_made=_HOW_MADE.format(wish="cheap one without hurry", sibling="CD_inv"),
        quality="cost",
    ),
    MixedUnits(
        **MIXED_UNITS,
        code="CD_unit",
        order=509,
        display_name="MisDesc-Unit",
        label="prices in different units",
        what_is_modified=(
            "An equivalent, dearer tool enters; one price is per call, the other per 1,000 calls; the query "
            "asks for a cheap option."
        ),
        how_made=_HOW_MIXED.format(what="price", small="per call", large="per 1,000 calls", wish="cheap one"),
        quality="cost",
    ),
    MixedUnits(
        **MIXED_UNITS,
        code="TD_unit",
        order=510,
        display_name="TimeDesc-Unit",
        label="times in different units",
        what_is_modified=(
            "An equivalent, slower tool enters; one response time is in milliseconds, the other in seconds; "
            "the query asks for a quick option."
        ),
        how_made=_HOW_MIXED.format(
            what="response time", small="in seconds", large="in milliseconds", wish="quick one"
        ),
        quality="time",
        mirrored=True,
    ),
)
