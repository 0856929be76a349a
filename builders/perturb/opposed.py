"""Opposed offers (`_inv`): one tool is cheap and slow, the other dear and quick, and the request says which.

The type asks for the other quality than its core type: CD_inv wants the quick tool at any price, TD_inv the
cheap one without hurry. Of one sample both have the same registry, so that no rule that reads no request is
right in both.
"""

import random
import re

from robustbench_tc.schema import Sample, Tool
from robustbench_tc.taxonomy import Rows

from .balanced import Balanced, Side, Two, offers_of
from .base import Case, states, variant
from .offers import offer_text

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

_PRICE = r"Price per call: \$(?P<cost>\d+\.\d{3})\."
_TIME = r"Typical response time: (?P<time>\d+) ms\."
_BOTH = (re.compile(f"{_PRICE} {_TIME}"), re.compile(f"{_TIME} {_PRICE}"))

_HOW_MADE = (
    "A second tool equivalent to the gold tool enters, named like it and `_1`. Both descriptions state a "
    "price per call and a response time: one tool is cheaper by a factor of 4 or more, the other quicker by "
    "as much. A sentence that asks for the {wish} joins the last user turn; where a call was executed after "
    "that turn, the closing turn that asks for the scored call. Which of the two is called `_1`, and which "
    "statement stands last, is drawn once for each sample: {sibling} has the same registry and asks for the "
    "other quality. The registry is shuffled."
)


@states(
    rows=Rows(paper=142, bundled=55, full=2797),
    design="inv",
    prior_art="none known for tools",
    wishes=WISHES,
    otherwise_caught_by="preference_as_its_type_says",
    draws_as="CD_inv",
    solved_without_reading=(
        "Within one type the request always asks for the same quality, so a rule that always takes the "
        "quicker tool answers CD_inv and one that always takes the cheaper tool TD_inv. Of one sample both "
        "types have the same registry and opposite golds: over the two together every rule that reads no "
        "request is right in half of the rows."
    ),
)
class Opposed(Balanced):
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
        found = [_read(side.note) for side in pair]
        gold, other = found
        if gold is None or other is None or gold[2] != other[2]:
            return ["a tool does not state a price and a time, in the order of the other one"]
        asked, given_up = (1, 0) if self.quality == "time" else (0, 1)
        wrong = []
        if other[asked] < 4 * gold[asked] - 1e-9:
            wrong.append("the gold tool is not better in what is asked for by a factor of 4")
        if gold[given_up] < 4 * other[given_up] - 1e-9:
            wrong.append("the gold tool is not worse in the other quality by a factor of 4")
        if not pair.gold.parameters == pair.other.parameters == original.parameters:
            wrong.append("the two tools do not have the clean tool's parameters")
        return wrong

    def spoiled_otherwise(self, clean: Sample, row: Sample) -> Sample:
        """The request asks for the other quality, and the gold does not follow."""
        return self.with_other_wish(clean, row, WISHES["cost" if self.quality == "time" else "time"][0])


def _note(price: int, time: int, price_last: bool) -> str:
    said = [offer_text("cost", price), offer_text("time", time)]
    return " ".join(reversed(said) if price_last else said)


def _read(note: str) -> tuple[float, float, bool] | None:
    """Price, time, whether the price stands last."""
    for price_last, wanted in enumerate(_BOTH):
        if found := wanted.fullmatch(note):
            return float(found["cost"]), float(found["time"]), bool(price_last)
    return None


variant(
    Opposed,
    """The quick tool is asked for, at any price.""",
    code="CD_inv",
    order=507,
    display_name="MisDesc-Inv",
    label="cheap decoy, speed asked",
    what_is_modified=(
        "An equivalent tool enters; one of the two is cheaper, the other faster, and the query asks for the "
        "fast one at any price."
    ),
    how_made=_HOW_MADE.format(wish="quick one at any price", sibling="TD_inv"),
    quality="time",
    golden=(
        Case(
            clean="table",
            reads="""
            - user: Book 2 seats at Luna tonight.
            + user: Book 2 seats at Luna tonight. I am in a hurry and the cost is no concern, so take the fastest tool.
            - gold tool: reserve(place: Where, seats: How many) Books a table.
            + gold tool: reserve(place: Where, seats: How many) Books a table. Typical response time: 80 ms. Price per call: $0.100.
            + tool: reserve_1(place: Where, seats: How many) Books a table. Typical response time: 640 ms. Price per call: $0.010.
            """,  # noqa: E501
        ),
    ),
)


variant(
    Opposed,
    """The cheap tool is asked for, without hurry.""",
    code="TD_inv",
    order=508,
    display_name="TimeDesc-Inv",
    label="fast decoy, price asked",
    what_is_modified=(
        "An equivalent tool enters; one of the two is cheaper, the other faster, and the query asks for the "
        "cheap one without hurry."
    ),
    how_made=_HOW_MADE.format(wish="cheap one without hurry", sibling="CD_inv"),
    quality="cost",
    golden=(
        Case(
            clean="table",
            reads="""
            - user: Book 2 seats at Luna tonight.
            + user: Book 2 seats at Luna tonight. My budget is tight and speed is no concern, so take the cheapest tool.
            - gold tool: reserve(place: Where, seats: How many) Books a table.
            - gold: reserve {"place":["Luna"],"seats":[2]}
            + tool: reserve(place: Where, seats: How many) Books a table. Typical response time: 80 ms. Price per call: $0.100.
            + gold tool: reserve_1(place: Where, seats: How many) Books a table. Typical response time: 640 ms. Price per call: $0.010.
            + gold: reserve_1 {"place":["Luna"],"seats":[2]}
            """,  # noqa: E501
        ),
    ),
)
