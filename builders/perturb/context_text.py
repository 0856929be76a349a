"""A text of our own: closed exchanges about letters, notes and everyday things, to stand before a request.

Written as sentences with gaps, put together by rule with a seed of its own: always the same texts in the same
order. They hold no digit, so that numbers of a sample never stand in them by chance, and name no tool.
"""

import random
from functools import cache
from typing import NamedTuple


class Exchange(NamedTuple):
    """A request and its answer in words."""

    request: str
    answer: str


COUNT = 360
"""How many there are: about 300,000 characters together."""

_PEOPLE = (
    "Marit Ansgar Odile Bertram Hedvig Casimir Ottoline Florian Grietje Leopold Rosalind Thaddeus Wilhelmina "
    "Ignatius Perpetua Lysander Cordula Evander Sunniva Barnaby"
).split()
_PLACES = (
    "the boathouse|the parish hall|the old mill|the reading room|the orchard|the ferry landing|"
    "the glasshouse|the rope works|the lower meadow|the bell tower|the cider press|"
    "the village green|the bakery yard|the quarry path"
).split("|")
_THINGS = (
    "the folding tables|the lanterns|the spare key|the choir books|the rain barrels|"
    "the garden fence|the noticeboard|the kitchen roof|the seed trays|the wooden benches|"
    "the old piano|the notice about the footpath|the collection of maps|"
    "the paint for the shutters|the boiler"
).split("|")
_WHEN = (
    "before the harvest|once the frost is over|as soon as the ferry runs again|towards the end of the season|"
    "after the choir practice|in the quiet week|when the heating is repaired|before the leaves are down"
).split("|")
_MOODS = "patient|brisk|friendly|plain|warm|careful|cheerful|sober|modest|hopeful".split("|")

_NOTES = (
    "{a} reported that {thing} had been moved to {place} and would stay there {when}.",
    "It was agreed that {b} would speak to the neighbours about {thing} before anything is decided.",
    "Nobody objected to the plan, although {a} wondered whether {place} was large enough for everybody.",
    "{b} thanked the helpers who had cleared {place}, and asked for more hands {when}.",
    "The repair of {thing} was put off again because the carpenter had not sent an estimate.",
    "{a} reminded the meeting that {place} has to be locked in the evening, whoever used it last.",
    "There was a long talk about {thing}, at the end of which the matter was left as it stands.",
    "{b} offered to write a {mood} letter to the council, and to show a draft to {a} first.",
    "The money for {thing} is there, but it is meant to be spent {when} and not earlier.",
    "A visitor had praised {place} in a letter, which {a} read aloud to general amusement.",
    "{a} and {b} will look at {thing} together and say at the next meeting what is needed.",
    "Someone has to water the plants near {place}; {b} was willing, if a watering can is found.",
)
_SUMMARIES = (
    "{a} and {b} spoke about {place} and {thing}; most of it was settled in a {mood} mood.",
    "What remains open is {thing}, and who looks after it {when}.",
    "The others were thanked for their help at {place}, and asked to keep the door locked.",
    "Everything else was left as it is, which nobody seemed to mind.",
    "A letter is to be written, in a {mood} tone, and shown round before it is sent.",
    "If you like, the part about {thing} could move to the top, because it is what readers will look for.",
)
_ASK_NOTE = (
    "Please sum up these minutes for people who were not there, in a {mood} tone:",
    "Could you shorten this report for our newsletter and keep the names as they are?",
    "Here is what I wrote down after the meeting. What would you tell somebody who missed it?",
    "My handwriting is hard to read, so I typed this out. Say in a few sentences what matters:",
)

_STORY = (
    "{a} found {thing} behind {place}, covered with leaves, and carried the find home in a basket.",
    "Nobody in the village knew who had left it there, but {b} had a theory and gave it to everyone.",
    "By evening there was a small crowd near {place}, all of them {mood} and a little curious.",
    "{b} said that such a thing had happened before, {when}, and that it had ended well.",
    "{a} was not so sure, lit a lamp, and sat down to think about it over a pot of tea.",
    "The dog that lived near {place} barked once and then seemed to have no further opinion.",
    "In the end {a} wrote a note, pinned it to the door, and went to bed with a {mood} heart.",
    "The wind came up from the water and rattled at {thing} until somebody tied it down.",
)
_ASK_STORY = (
    "I am writing a short tale for children. How might it go on from here?",
    "This is the beginning of a story that I never finished. Please suggest an ending, {mood} but not sweet:",
    "Read this paragraph and tell me whether the tone is {mood} enough, and what you would change:",
)
_ENDINGS = (
    "It could turn out that {b} had put {thing} there as a surprise, and had simply forgotten about it.",
    "The tone is {mood} already; a shorter second sentence would help the reader along.",
    "I would let {a} walk back to {place} in the morning and find a note with a single word of thanks.",
    "Perhaps the dog could have the last word, since it is the only one that was not surprised.",
    "An ending that leaves the question open may suit it best, because the pleasure is in the guessing.",
    "The lamp is a good detail: come back to it at the close, when {b} knocks at the door.",
)

_ADVICE = (
    "I have to look after {thing} while {a} is away, and I have never done such a thing.",
    "{b} and I do not agree about {place}: one of us wants to keep it as it is, the other to start afresh.",
    "I promised {a} to say a few {mood} words at the farewell near {place}, and nothing comes to mind.",
    "We want to invite the neighbours to {place} {when}, but some of them do not talk to each other.",
    "I borrowed {thing} from {b} and it came back with a scratch, which I have not mentioned yet.",
    "Our group meets at {place}, and lately it is always the same people who tidy up afterwards.",
)
_ASK_ADVICE = (
    "What would you do in my place?",
    "How would you begin?",
    "Can you give me some advice that does not take long to follow?",
    "I would be glad of an opinion from somebody who is not part of it.",
)
_COUNSEL = (
    "Begin with the smallest part of it, on a day when nobody is in a hurry.",
    "Tell {b} early and in plain words; most people mind the waiting more than the thing itself.",
    "Ask {a} what would be a relief, instead of guessing at what would be a pleasure.",
    "A list on the wall at {place} does more than a speech, provided that it is a short one.",
    "If it is about {thing}, write down how you found it, so that you can put it back in the same way.",
    "Thank those who helped before you ask for more, and mention what they did by name.",
    "It need not be settled at once: {when} is early enough, and tempers will have cooled.",
    "Keep it {mood}, keep it brief, and stop while they still want to hear more.",
)


@cache
def own_exchanges() -> tuple[Exchange, ...]:
    """The exchanges, each once, in their order."""
    rng = random.Random("exchanges of our own")
    found: dict[str, Exchange] = {}
    while len(found) < COUNT:
        one = _exchange(rng)
        found.setdefault(one.request, one)
    return tuple(found.values())


def _exchange(rng: random.Random) -> Exchange:
    kind = rng.randrange(3)
    a, b = rng.sample(_PEOPLE, 2)
    asks, body, answers = (
        (_ASK_NOTE, _NOTES, _SUMMARIES),
        (_ASK_STORY, _STORY, _ENDINGS),
        (_ASK_ADVICE, _ADVICE, _COUNSEL),
    )[kind]

    def filled(sentences: list[str]) -> str:
        said = []
        for sentence in sentences:
            gaps = {"place": rng.choice(_PLACES), "thing": rng.choice(_THINGS), "when": rng.choice(_WHEN)}
            text = sentence.format(a=a, b=b, mood=rng.choice(_MOODS), **gaps)
            said.append(text[0].upper() + text[1:])
        return " ".join(said)

    ask, text = filled([rng.choice(asks)]), filled(rng.sample(body, 5 if kind < 2 else 4))
    request = f"{text} {ask}" if kind == 2 else f"{ask}\n\n{text}"
    return Exchange(request, filled(rng.sample(answers, 4)))
