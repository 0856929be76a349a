"""A grammar of our own: prose about letters, notes and everyday things, to stand before a request.

A rule is a name and its alternatives; `{name}` stands for one alternative of that rule. The prose holds no
digit, so that numbers of a sample never stand in it by chance, and names no tool. `Writer` draws sentences
for one row: none holds a text that it is told to leave out, and no form comes back more often than `MOST`.
"""

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from .base import NotApplicable

MOST = 5
"""So often a sentence form may stand in a row, once names and numbers are masked."""

_TRIES = 60
"""Drawn so often, a sentence that fits is not there."""

PROSE: Mapping[str, Sequence[str]] = {
    "person": (
        "Marit Ansgar Odile Bertram Hedvig Casimir Ottoline Florian Grietje Leopold Rosalind "
        "Thaddeus Wilhelmina "
        "Ignatius Perpetua Lysander Cordula Evander Sunniva Barnaby Eudora Torvald Henrike Aurelio Philippa "
        "Magnus Isolde Cedric Brunhild Valentin"
    ).split(),
    "who": (
        "{person}|{person}|{person}|the caretaker|the ferryman|our treasurer|the baker|the librarian|"
        "somebody from the council|one of the older neighbours|the choir mistress|the carpenter|the postman|"
        "a cousin of {person}'s|the new tenant"
    ).split("|"),
    "thing": (
        "the folding tables|the lanterns|the spare key|the choir books|the rain barrels|the garden fence|"
        "the noticeboard|the kitchen roof|the seed trays|the wooden benches|the old piano|"
        "the collection of maps|"
        "the paint for the shutters|the boiler|the rowing boat|the bee hives|the coffee urn|"
        "the stage curtain|"
        "the photograph albums|the ladder|the wheelbarrow|the guest list|the pear trees|the bicycle stand|"
        "the brass bell|the tool shed|the lost umbrella|the recipe for plum cake|the puppet theatre|"
        "the letter to the council"
    ).split("|"),
    "place": (
        "the boathouse|the parish hall|the old mill|the reading room|the orchard|"
        "the ferry landing|the glasshouse|"
        "the rope works|the lower meadow|the bell tower|the cider press|the village green|the bakery yard|"
        "the quarry path|the school gate|the smithy|the duck pond|the railway arch|the vicarage|"
        "the allotments"
    ).split("|"),
    "where": ("at {place}", "near {place}", "behind {place}", "on the way to {place}", "in front of {place}"),
    "when": (
        "before the harvest|once the frost is over|as soon as the ferry runs again|"
        "towards the end of the season|"
        "after the choir practice|in the quiet week|when the heating is repaired|before the leaves are down|"
        "on the morning of the fair|after dark|during the thaw|the day after the storm|over the holidays|"
        "on a rainy afternoon|before breakfast|when everybody is home|at the next meeting|later in spring"
    ).split("|"),
    "mood": "patient|brisk|friendly|plain|warm|careful|cheerful|sober|modest|hopeful|gentle|frank".split("|"),
    "did": (
        "moved|mended|borrowed|painted|measured|counted|carried off|photographed|locked away|"
        "cleaned|lent out|"
        "wrapped up|labelled|sorted out|forgot about|promised to mend|wanted to sell|asked about|"
        "complained about|looked for|wrote about|argued over|made a drawing of|took care of"
    ).split("|"),
    "act": (
        "move|mend|sell|lend out|paint|label|measure|give away|store|photograph|replace|insure|"
        "clean|put aside|"
        "share|describe|weigh|cover up|hand over|show round"
    ).split("|"),
    "cause": (
        "the carpenter had not sent an estimate|it had rained for days|nobody else had time|{who} was away|"
        "the money was meant for something else|the door would not shut|there was no lamp|"
        "the neighbours were asleep|the road was closed|{who} had said so from the start|the wind had turned|"
        "everybody expected it|the old rules forbid it|the children liked it that way|"
        "a visitor had praised it|"
        "the plan was older than the hall|{who} never answered|it looked {mood} enough|the ink had run|"
        "the bus left early|nobody could agree|the paint was still wet"
    ).split("|"),
    "joint": (
        "because {cause}", "although {cause}", "and {cause}", "while {cause}", "since {cause}",
        "even though {cause}", "so that nobody noticed that {cause}", "or so it seems, as {cause}",
    ),
    "aside": (
        "as far as I know|so I am told|if I remember rightly|to be fair|for once|by all accounts|in the end|"
        "strictly speaking|between ourselves|as it happens|more or less|oddly enough"
    ).split("|"),
    "report": (
        "{who} {did} {thing} {where} {when}, {joint}.",
        "{when}, {who} {did} {thing}, {joint}.",
        "it was {who} who {did} {thing} {where}, {aside}.",
        "{aside}, {thing} stood {where} until {who} {did} {thing}.",
        "nobody {did} {thing}, {joint}, and {who} {did} {thing} instead.",
        "{who} {did} {thing} and then {did} {thing} {where}.",
        "what {who} said {where} was {mood}, {joint}.",
        "there was a {mood} talk about {thing} {when}, {joint}.",
        "{thing} will stay {where}, {aside}, unless {who} objects {when}.",
        "as for {thing}, {cause} {when} and nobody minded.",
        "{who} thinks that {thing} belongs {where}, {joint}.",
        "the {mood} part is that {who} {did} {thing}, {joint}.",
    ),
    "ask": (
        "please sum this up in a {mood} tone for {who}.",
        "how would you tell {who} about {thing}, {aside}?",
        "could you turn this into a {mood} note about {thing}?",
        "what should I {act} first, {thing} or {thing}?",
        "would it be {mood} to {act} {thing} {when}?",
        "how might the story about {thing} go on {where}?",
        "what would you answer if {who} {did} {thing}?",
        "is it wise to {act} {thing}, {joint}?",
        "help me to find a {mood} ending in which {who} {did} {thing}.",
        "{aside}, which sentence about {thing} would you strike out?",
    ),
    "counsel": (
        "I would {act} {thing} {when}, {joint}.",
        "ask {who} to {act} {thing} {where}, and {act} {thing} only {when}.",
        "the {mood} way is to {act} {thing} first and to {act} {thing} {when}.",
        "if {cause}, {act} {thing} {where} and tell {who}.",
        "{aside}, it costs nothing to {act} {thing} {when}.",
        "nobody will mind if you {act} {thing}, provided that {who} hears of it {when}.",
        "better {act} {thing} than {act} {thing}, {joint}.",
        "start {where}: {act} {thing}, then see whether {who} agrees.",
        "a {mood} ending could be that {who} {did} {thing} {when}.",
        "let {who} {act} {thing}, and write about {thing} in a {mood} tone.",
        "what matters to {who} is {thing}, {joint}.",
        "leave out that {who} {did} {thing}, {joint}.",
    ),
}  # fmt: skip

_SLOT = re.compile(r"\{(\w+)\}")


class Writer:
    """Draws the sentences of one row."""

    def __init__(
        self,
        rng: random.Random,
        left_out: Sequence[str] = (),
        grammar: Mapping[str, Sequence[str]] = PROSE,
    ) -> None:
        """`left_out`: texts that no sentence may hold, in lower case."""
        self.rng = rng
        self._left_out, self._grammar = left_out, grammar
        self._forms: Counter[str] = Counter()

    def sentence(self, rule: str, **words: str) -> str:
        """A sentence of the rule; `words` are alternatives of their own for a name. Raises NotApplicable
        where every one that is drawn holds a text to leave out or has been there too often."""
        for _ in range(_TRIES):
            text = self._drawn(f"{{{rule}}}", words)
            text = text[0].upper() + text[1:]
            form = masked(text)
            if self._forms[form] < MOST and self.allows(text):
                self._forms[form] += 1
                return text
        raise NotApplicable("too_little_text")

    def allows(self, text: str) -> bool:
        """Whether the text holds nothing that is to be left out."""
        folded = text.casefold()
        return not any(holds(folded, value) for value in self._left_out)

    def pick(self, rule: str) -> str:
        """One alternative of a rule, written out."""
        return self._drawn(f"{{{rule}}}", {})

    def prose(self, rule: str, count: int) -> str:
        """So many sentences of a rule."""
        return " ".join([self.sentence(rule) for _ in range(count)])

    def _drawn(self, text: str, words: dict[str, str]) -> str:
        while found := _SLOT.search(text):
            rule = found[1]
            drawn = words.get(rule) or self.rng.choice(self._grammar[rule])
            text = f"{text[: found.start()]}{drawn}{text[found.end() :]}"
        return text


def masked(sentence: str) -> str:
    """The form of a sentence: names and numbers, one or several in a row, as one mark."""
    return re.sub(r"\*(?: \*)+", "*", re.sub(r"(?<!\S)(?:[A-Z]\S*|\S*\d\S*)", "*", sentence))


def holds(text: str, value: str) -> bool:
    """Whether a value stands in a text, both in lower case, and not only within a word."""
    at = text.find(value)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(value) : at + len(value) + 1]
        if not (before.isalnum() and value[0].isalnum()) and not (after.isalnum() and value[-1].isalnum()):
            return True
        at = text.find(value, at + 1)
    return False
