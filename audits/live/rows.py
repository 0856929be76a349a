"""What must hold of a live row by itself, and of the pair that it makes with its clean row."""

import re

import msgspec

from robustbench_tc.live_types import FORBIDDEN, config_of, registry_codes, type_codes
from robustbench_tc.schema import KINDS, TASKS, LiveRow, dumps
from robustbench_tc.worlds.handle import Start

from ..checks import DoesNotApply, check
from .entries import Entry, gold_calls

TELLING = re.compile(
    r"\b(?:live_\w+|first_write|used_read|last_write|robustbench\w*|perturb\w*|fault[ _]?inject\w*|"
    + "|".join(kind for kind in KINDS if "_" in kind)
    + r")\b",
    re.IGNORECASE,
)


def of_a_fault(entry: Entry) -> bool:
    """For rows in configs of faults."""
    return entry.config != TASKS and not more_tools(entry)


def more_tools(entry: Entry) -> bool:
    """For rows in configs of registry types."""
    return entry.config in registry_codes()


def with_policy(entry: Entry) -> bool:
    """For rows whose system text forbids a tool."""
    return entry.config == FORBIDDEN


def not_of_a_fault(entry: Entry) -> bool:
    """For clean rows, and rows with more tools."""
    return not of_a_fault(entry)


def beside_clean(entry: Entry) -> bool:
    """For rows that are compared with a clean one."""
    return entry.config != TASKS


def of_a_task(entry: Entry) -> bool:
    """For rows that do not repeat their clean row: the others are as it is."""
    return entry.clean is None or bool(entry.differs) or more_tools(entry) or with_policy(entry)


@check("live_rows")
def place(row: LiveRow, entry: Entry) -> None:
    """A row lies in the config of its type and its id says task and type: both are how it is found."""
    assert entry.config in (TASKS, *type_codes()), f"{entry.config} is no config of the live dataset"
    assert config_of(row.type_code) == entry.config, f"type {row.type_code[:80]} in the config {entry.config}"
    named = row.id == f"{row.clean_id}::{row.type_code}" and row.clean_id.strip()
    assert named, f"the id is not {row.clean_id[:80]}::{row.type_code}"


@check("live_rows", for_=beside_clean)
def anchored(row: LiveRow, entry: Entry) -> None:
    """Every other row has its clean row: without it nothing can be compared."""
    assert entry.clean is not None, "`tasks` has no such task"


@check("live_rows", for_=beside_clean)
def equals_its_clean_row(row: LiveRow, entry: Entry) -> None:
    """A row with a fault differs from its clean row in the fault alone, one with more tools in the tools: any
    other difference would be measured with it."""
    if entry.clean is None:
        raise DoesNotApply
    assert not entry.differs, f"other than in the clean row: {', '.join(entry.differs)}"


@check("live_rows", for_=not_of_a_fault)
def clean_has_no_fault(row: LiveRow, entry: Entry) -> None:
    """A clean row, and one with more tools, has no fault, position or label: what is compared with it has
    one."""
    stated = [name for name in _OF_A_FAULT if getattr(row, name) is not None]
    assert not stated, f"stated: {', '.join(stated)}"


@check("live_rows", for_=of_a_fault)
def says_its_fault(row: LiveRow, entry: Entry) -> None:
    """A row with a fault has position and label: its tables are by both."""
    unstated = [name for name in _OF_A_FAULT if getattr(row, name) is None]
    assert not unstated, f"not stated: {', '.join(unstated)}"


_OF_A_FAULT = ("fault", "position", "label")


@check("live_rows", for_=of_a_task)
def turns_ask(row: LiveRow, entry: Entry) -> None:
    """Every turn says something as the user: an agent cannot know gold without it."""
    assert row.turns, "there is no turn"
    for number, turn in enumerate(row.turns):
        said = [message for message in turn.messages if message.role == "user" and message.content.strip()]
        assert said, f"turn {number}: the user says nothing"
        strangers = {message.role for message in turn.messages} - {"user", "system"}
        assert not strangers, f"turn {number}: somebody else speaks in it"


@check("live_rows", for_=of_a_task)
def registry_is_sound(row: LiveRow, entry: Entry) -> None:
    """Names of tools are distinct, later turns add tools of the registry, an undo is a tool that writes: what
    the harness offers depends on it."""
    tools = [tool for tool in row.tools if not tool.distractor]
    own = {tool.name: tool for tool in tools}
    assert own, "there is no tool"
    assert len(own) == len(tools), "two tools have one name"
    added = [name for turn in row.turns for name in turn.adds]
    bad = sorted(set(added) - {tool.name for tool in row.tools})
    assert not bad, f"a turn adds {bad[0][:80]}, which is no tool"
    first = row.turns and row.turns[0].adds
    assert len(set(added)) == len(added) and not first, "a tool is added twice, or by the first turn"
    for tool in own.values():
        undo, name = own.get(tool.undo or ""), tool.name[:80]
        assert tool.writes or tool.undo is None, f"{name} is a read with an undo"
        writes = tool.undo is None or (undo is not None and undo.writes)
        assert writes, f"{name}: its undo {str(tool.undo)[:80]} is no tool that writes"


@check("live_rows", for_=of_a_task)
def starts(row: LiveRow, entry: Entry) -> None:
    """The initial state is a state and a seed: a world is opened with nothing else."""
    try:
        start = msgspec.convert(row.initial_state, Start)
    except msgspec.ValidationError as error:
        raise AssertionError(str(error)[:160]) from None
    same = dumps(msgspec.to_builtins(start)) == dumps(row.initial_state)
    assert same, "it holds more than a state and a seed"
    hashed = re.fullmatch(r"[0-9a-f]{64}", row.gold_state_sha256)
    assert hashed, "the hash of the gold state is not 64 hex digits"


def is_doubtful(row: LiveRow) -> bool:
    """Whether a flag says what is wrong with gold: upstream's own, kept as it is."""
    return any(flag.startswith("gold_") for flag in row.flags)


@check("live_rows", for_=of_a_task)
def gold_is_offered(row: LiveRow, entry: Entry) -> None:
    """Gold calls tools of the world that its turn offers: no agent could do it otherwise."""
    if is_doubtful(row):
        raise DoesNotApply
    calls, turns = len(row.golden_calls), len(row.turns)
    assert calls == turns, f"{calls} lists of calls for {turns} turns"
    assert any(row.golden_calls), "gold calls nothing"
    offered = [{tool.name for tool in row.offered(turn)} for turn in range(turns)]
    for gold in gold_calls(row):
        name = gold.call.name
        assert gold.tool is not None, f"{name[:80]} is no tool of the world"
        assert name in offered[gold.turn], f"{name[:80]} is not offered in turn {gold.turn}"


@check("live_rows", for_=of_a_task)
def gold_arguments_are_declared(row: LiveRow, entry: Entry) -> None:
    """Gold's arguments are declared, and none that is required is missing."""
    for gold in gold_calls(row):
        if gold.tool is not None:
            plain, given, name = gold.tool.plain, set(gold.call.parameters), gold.call.name[:80]
            undeclared, missing = sorted(given - set(plain.properties)), sorted(set(plain.required) - given)
            assert not undeclared, f"{name}: {undeclared[0][:80]} is not declared"
            assert not missing, f"{name}: {str(missing[0])[:80]} is missing"


@check("live_rows", for_=of_a_task)
def nothing_tells(row: LiveRow, entry: Entry) -> None:
    """No text that an agent reads names a kind of fault, a position or this benchmark."""
    read = {
        "a turn": dumps([[message.content for message in turn.messages] for turn in row.turns]),
        "a tool": dumps([tool.plain for tool in row.tools]),
        "the initial state": dumps(row.initial_state),
    }
    for place, text in read.items():
        found = TELLING.search(text)
        assert not found, f"{place} says {found.group()!r}"


def flags_are_known(row: LiveRow, known: dict[tuple[str, str], object]) -> None:
    """Reads, writes, idempotence and undo are those of the world's rows before, by world and tool."""
    other = list[str]()
    for tool in row.tools:
        flags = tool.writes, tool.idempotent, tool.undo
        if not tool.distractor and known.setdefault((row.world, tool.name), flags) != flags:
            other.append(f"{tool.name[:80]} is declared otherwise in another row of {row.world[:80]}")
    assert not other, "; ".join(other)
