"""What names and descriptions of tools say: their words, what lacks a unit, what speaks to the model.

Texts that speak to the model instead of describing the tool, as an attacker would plant them, are looked for
narrowly: `docs/own-lint.md` says which.
"""

import re
from collections.abc import Collection, Iterator

from robustbench_tc.schema import Json, Tool

STEERS = "tells the model when to call it"
ADVISES = "tells the model in which case to prefer it"

_SAID: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (what, re.compile(pattern, re.IGNORECASE))
    for what, pattern in (
        (
            "tells the model to disregard what it was told",
            r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|other|all)"
            r"\b.{0,20}\b(?:instructions?|prompts?|messages?|rules|tools)\b",
        ),
        (
            "tells the model to hide something from the user",
            r"\b(?:do not|don't|never|without)\b.{0,20}\b(?:tell|inform|mention|reveal|notify|alert)"
            r"\w*\b.{0,40}\b(?:user|customer|human|person)\b",
        ),
        (
            "asks for secrets or the conversation",
            r"\b(?:send|include|pass|append|upload|forward|provide)\b.{0,60}\b(?:system prompt|chat history|"
            r"conversation history|entire conversation|private key|ssh key|\.ssh|\.env\b)",
        ),
        ("imitates a system message", r"<\|?(?:im_start|system|important)\|?>|\[/?(?:INST|SYSTEM)\]|<<SYS>>"),
        (
            STEERS,
            r"\balways (?:call|use|invoke|prefer|choose|select|run) (?:this|it)\b|"
            r"\b(?:before|instead of) (?:using|calling|any use of) (?:any|all|every|the) other tools?\b|"
            r"\byou (?:must|have to|are required to|should always) (?:first |always )?"
            r"(?:call|use|invoke|run) (?:this|it)\b",
        ),
    )
)
_HIDDEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
"""Characters that no reader sees, or that turn the order in which he reads."""

LONGEST = 20_000
"""Characters of a text that are looked at."""


_EVERYWHERE = re.compile(
    r"\b(?:any|all|every|the) other tools?\b|\bwhatever\b|\bregardless\b|\b(?:every|each|any|all) "
    r"(?:requests?|messages?|questions?|turns?|conversations?|tasks?)\b",
    re.IGNORECASE,
)
_IN_A_CASE = re.compile(
    r"\b(?:prefer|choose|select|when|whenever|if|unless|for|to|over|instead|rather|before)\b", re.IGNORECASE
)


def addressed_to_model(text: str) -> str | None:
    """What a text does that a description should not; None where it only describes.

    `ADVISES` where it only steers the choice of tools, in a case that each such sentence states.
    """
    text = text[:LONGEST]
    if _HIDDEN.search(text):
        return "holds characters that nobody sees"
    plain = " ".join(text.split())
    what = next((what for what, pattern in _SAID if pattern.search(plain)), None)
    if what == STEERS:
        steering = [one for one in re.split(r"(?<=[.!?]) ", plain) if dict(_SAID)[STEERS].search(one)]
        if steering and all(_IN_A_CASE.search(one) and not _EVERYWHERE.search(one) for one in steering):
            return ADVISES
    return what


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+|\d+")


def word_list(text: str) -> list[str]:
    """Its words in small letters, in order; `getOrder_byId` has get, order, by and id."""
    return [word.casefold() for word in _WORD.findall(text)]


def words_of(text: str) -> frozenset[str]:
    """Its distinct words."""
    return frozenset(word_list(text))


READS = frozenset(
    "get list read search find fetch query show describe view lookup look count check inspect retrieve "
    "browse download explain validate verify compare preview analyze calculate convert".split()
)
"""Verbs of a tool that changes nothing."""

DELETES = frozenset("delete remove destroy drop purge wipe erase overwrite truncate uninstall".split())

WRITES = DELETES | frozenset(
    "create add send insert append submit pay charge refund transfer register invite upload push publish "
    "buy purchase deploy install import enqueue duplicate clone merge reply update set edit modify change "
    "rename move replace cancel enable disable restore revoke assign unassign approve reject write save put "
    "patch upsert attach detach archive reschedule".split()
)
"""Verbs of a tool that changes something."""


def verb_of(name: str) -> str:
    """The first verb of a tool's name; "" where it has none that is known. `get_or_create` and
    `search_and_replace` write."""
    words = word_list(name)
    for read, joined, other in zip(words, words[1:], words[2:], strict=False):
        if read in READS and joined in ("or", "and") and other in WRITES:
            return other
    return next((word for word in words if word in READS or word in WRITES), "")


LIGHT = READS | WRITES | {"v"}
"""Words of a name that say little of what is meant, as numbers do: verbs and versions."""


def weighed(words: frozenset[str], light: Collection[str]) -> frozenset[str]:
    """The words, so that a number or a light one counts a quarter of what another does."""
    heavy = {word for word in words if word not in light and not word.isdigit()}
    return words | {f"{word} {copy}" for word in heavy for copy in range(3)}


def things_of(name: str) -> frozenset[str]:
    """What a tool is about: its words but verbs, numbers and small words, in the singular."""
    heavy = {word for word in words_of(name) if word not in LIGHT and len(word) > 2 and not word.isdigit()}
    return frozenset(word.removesuffix("s") for word in heavy)


_MEASURED = frozenset(
    "timeout duration delay interval ttl elapsed lifetime deadline uptime "  # time
    "price amount cost budget fee salary income payment balance revenue rent wage "  # money
    "size length width height weight thickness volume capacity mass "  # size
    "distance radius altitude elevation mileage "  # distance
    "temperature temp".split()
)
"""Words of a parameter's name that ask for a unit."""

_COUNTED = frozenset("page batch sample font pool window list array chunk id ids method number".split())
"""Words beside it that make it a count, or the name of something."""

_UNITS = frozenset(
    "s sec secs second seconds ms millisecond milliseconds us microseconds ns min mins minute minutes h "
    "hr hrs hour hours day days week weeks month months year years epoch unix timestamp "
    "usd eur gbp jpy cny inr chf euro euros dollar dollars cent cents pound pounds yen yuan rupees currency "
    "byte bytes kb mb gb tb kib mib gib bit bits px pixel pixels pt "
    "m cm mm km meter meters metre metres centimeter centimeters centimetres kilometer kilometers kilometres "
    "mile miles foot feet ft inch inches in yard yards "
    "g kg mg gram grams kilogram kilograms lb lbs ounce ounces oz ton tons tonnes "
    "l ml liter liters litre litres gallon gallons "
    "celsius fahrenheit kelvin degree degrees c f k percent percentage ratio fraction rate unit units "
    "character characters letters words tokens items rows elements count number".split()
)
_SIGNS = re.compile(r"[%$€£¥°]")


def lacks_unit(name: str, schema: dict[str, Json]) -> bool:
    """Whether a numeric parameter is of time, money, size, distance or temperature, and no unit is named."""
    types = schema.get("type")
    words = types if isinstance(types, list) else [types]
    if not {"integer", "number"} & {word for word in words if isinstance(word, str)}:
        return False
    named = words_of(name)
    if not named & _MEASURED or named & _COUNTED:
        return False
    said = str(schema.get("description") or "")
    if "enum" in schema or "const" in schema or _SIGNS.search(said):
        return False
    return not ((named - _MEASURED) | words_of(said)) & _UNITS


def texts_of(tool: Tool) -> Iterator[tuple[str, str]]:
    """Every text of a tool that a model reads, and where it stands."""
    yield "the description", tool.description
    left: list[tuple[str, Json]] = [("the schema", tool.parameters)]
    while left:
        where, value = left.pop()
        if isinstance(value, dict):
            for key, inner in value.items():
                if key in ("description", "title", "examples", "default") and isinstance(inner, str):
                    yield f"a {key} in {where}", inner
                left.append((f"{key[:40]!r}" if isinstance(inner, dict) else where, inner))
        elif isinstance(value, list):
            left += [(where, inner) for inner in value]
