"""The rules of `rbtc lint` for what is likely to be misread or done twice, whatever the model."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

from robustbench_tc.schema import Json

from ..llm.wire_names import MAX_NAME, safe_name
from . import texts
from .rules import RULES as RULES, About, of_each, rule
from .tools import Entry

# Names


@rule("long-name")
@of_each(f"the name has {{}} characters, clients cut it after {MAX_NAME}")
def _long_name(entry: Entry, _: None) -> Iterable[str]:
    return [str(len(entry.name))] if len(entry.name) > MAX_NAME else []


@rule("same-name", limit=str, level="error")
@rule("name-collision", limit=safe_name, level="error")
def _same_name(entries: Sequence[Entry], limit: Callable[[str], str]) -> About:
    """Names that are equal, or become so when a client cuts them and replaces what it does not accept."""
    found: dict[str, list[Entry]] = {}
    for one in entries:
        several = found.setdefault(limit(one.name), [])
        if one.name.strip() and (limit is str or one.name not in [other.name for other in several]):
            several.append(one)
    for name, several in found.items():
        if len(several) > 1:
            yield (
                several,
                f"{len(several)} tools are called {name[:80]!r} as they are sent; rename all but one",
            )


COMPARED = 1_000
"""Tools that are compared with each other, the first of a registry."""


@rule("near-duplicate")
def _near_duplicate(entries: Sequence[Entry], _: None) -> About:
    """Groups of tools that a model can hardly tell apart; those of one name on the wire are another rule's.

    Words of a tenth of all descriptions are a server's phrases; where little else stands, they tell nothing.
    """
    tools = [one for one in entries if one.name.strip()][:COMPARED]
    names = [texts.weighed(texts.words_of(one.name), texts.LIGHT) for one in tools]
    said = [texts.words_of(one.tool.description[: texts.LONGEST]) for one in tools]
    times = Counter(word for words in said for word in words)
    phrases = {word for word, count in times.items() if count > max(3, len(tools) / 10)}
    own = [words - phrases for words in said]
    descriptions = [
        rest if len(rest) > 3 or rest == words else frozenset() for rest, words in zip(own, said, strict=True)
    ]
    wire = [(safe_name(one.name), texts.verb_of(one.name)) for one in tools]
    group = list(range(len(tools)))
    for one, other in (*alike(names, 0.7), *alike(descriptions, 0.9)):
        if group[one] != group[other] and wire[one][0] != wire[other][0] and wire[one][1] == wire[other][1]:
            joined = group[other]
            group = [group[one] if number == joined else number for number in group]
    groups: dict[int, list[Entry]] = {}
    for number, tool in zip(group, tools, strict=True):
        groups.setdefault(number, []).append(tool)
    for several in groups.values():
        if len(several) > 1:
            yield (
                several,
                "their names or descriptions are nearly the same: say in each what only this one does",
            )


def alike(sets: Sequence[frozenset[str]], least: float) -> Iterator[tuple[int, int]]:
    """Places of two sets whose Jaccard index is `least` or more, each pair once; empty sets are like none."""
    for one, other in combinations(range(len(sets)), 2):
        shared = len(sets[one] & sets[other])
        if shared and shared >= least * len(sets[one] | sets[other]) - 1e-9:
            yield one, other


# Texts


@rule("instruction", level="error")
@of_each("{}: a description describes; whoever may write here steers the agent")
def _instruction(entry: Entry, _: None) -> Iterable[str]:
    found = [(where, texts.addressed_to_model(text)) for where, text in texts.texts_of(entry.tool)]
    return [f"{where} {what}" for where, what in found if what not in (None, texts.ADVISES)]


@rule("steering")
@of_each(f"{{}} {texts.ADVISES}: fine among a server's own tools, not beside those of others")
def _steering(entry: Entry, _: None) -> Iterable[str]:
    told = texts.texts_of(entry.tool)
    return [where for where, text in told if texts.addressed_to_model(text) == texts.ADVISES]


@rule("no-description")
@of_each("the tool {} has no description")
def _no_description(entry: Entry, _: None) -> Iterable[str]:
    return [entry.name] if entry.name.strip() and not entry.tool.description.strip() else []


def _schemas(entry: Entry) -> list[tuple[str, dict[str, Json]]]:
    return [(name, schema) for name, schema in entry.tool.properties.items() if isinstance(schema, dict)]


@rule("parameter-description")
@of_each("parameters have no description: {}")
def _parameter_description(entry: Entry, _: None) -> Iterable[str]:
    return [name for name, schema in _schemas(entry) if not str(schema.get("description") or "").strip()]


@rule("no-unit")
@of_each("numbers of something measured, and no unit is named: {}")
def _no_unit(entry: Entry, _: None) -> Iterable[str]:
    return [name for name, schema in _schemas(entry) if texts.lacks_unit(name, schema)]


@rule("required-undeclared")
@of_each("requires what its properties do not declare: {}")
def _required_undeclared(entry: Entry, _: None) -> Iterable[str]:
    return [name for name in entry.tool.required if name not in entry.tool.properties]


# Retries


_KEY = re.compile(r"idempot|dedup|nonce|(?:client|request)_?(?:request_?)?(?:id|token|key)$", re.IGNORECASE)
_NEW_KEY = re.compile(
    r"\b(?:new|fresh|different|random|another|unique)\b[^.;]*\b(?:each|every|per)\b[^.;]*"
    r"\b(?:call|time|attempt|retry|retries|try|request|invocation)\b|\bnever (?:reuse|repeat)\b",
    re.IGNORECASE,
)
_SAME_KEY = re.compile(r"\b(?:same|re-?used?)\b(?<!never reuse)", re.IGNORECASE)
NOT_TWICE = re.compile(
    r"\b(?:not|non)[- ]idempotent\b"
    r"|\b(?:new|another|again)\b[^.;]*\b(?:each|every) (?:call|time|invocation)\b"
    r"|\b(?:each|every) (?:call|time|invocation)\b[^.;]*\b(?:new|another|again)\b",
    re.IGNORECASE,
)
"""What a description says of a tool whose second call does something more."""


def _writes(entry: Entry) -> bool:
    """Whether a tool changes something, by its name and its own word."""
    return texts.verb_of(entry.name) in texts.WRITES and not entry.read_only


def keys(entry: Entry) -> list[tuple[str, str]]:
    """The parameters by which a server can see that a call is a repeated one, and their descriptions."""
    return [(name, str(schema.get("description"))) for name, schema in _schemas(entry) if _KEY.search(name)]


@rule("retry-no-key")
@of_each("it writes, and has neither idempotentHint nor a key: repeated after a timeout, it is done twice")
def _retry_no_key(entry: Entry, _: None) -> Iterable[str]:
    return [entry.name] if _writes(entry) and not entry.idempotent and not keys(entry) else []


def new_with_each_call(entry: Entry) -> list[str]:
    """Those of them whose descriptions ask for a new key with each call."""
    return [name for name, said in keys(entry) if _NEW_KEY.search(said) and not _SAME_KEY.search(said)]


@rule("retry-new-key")
@of_each("asks for a new key with each call, so that a retry is a second write: {}")
def _retry_new_key(entry: Entry, _: None) -> Iterable[str]:
    return new_with_each_call(entry)


@rule("retry-hints")
@of_each("its hints say {}, its name or description the opposite")
def _retry_hints(entry: Entry, _: None) -> Iterable[str]:
    hints = entry.raw.get("annotations")
    first = texts.verb_of(entry.tool.description[:200].split(" ")[0].removesuffix("s"))
    verbs = {texts.verb_of(entry.name), first}
    if entry.read_only and verbs & texts.WRITES and not verbs & texts.READS:
        yield "that it changes nothing"
    if entry.idempotent and NOT_TWICE.search(entry.tool.description):
        yield "that a second call changes nothing more"
    if isinstance(hints, dict) and hints.get("destructiveHint") is False and verbs & texts.DELETES:
        yield "that nothing is lost"


@rule("retry-unseen")
def _retry_unseen(entries: Sequence[Entry], _: None) -> About:
    """Writes whose effect no read could show, by what the tools of their server are called."""
    for prefix in dict.fromkeys(one.prefix for one in entries):
        tools = [one for one in entries if one.prefix == prefix and one.name.strip()]
        things = [texts.things_of(one.name) for one in tools]
        everywhere = frozenset[str]().union(*things).intersection(*things)
        if all(one - everywhere for one in things):  # the server's own name, not what it is about
            things = [one - everywhere for one in things]
        about = list(zip(tools, things, strict=True))
        shown = [read for one, read in about if one.read_only or texts.verb_of(one.name) in texts.READS]
        for one, written in about:
            # A read that names nothing may show everything.
            if written and _writes(one) and all(shown) and not any(written & read for read in shown):
                yield (one,), "no tool reads what it writes: after a timeout nobody sees whether it was done"
