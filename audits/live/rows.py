"""What must hold of a live row by itself, and of the pair that it makes with its clean row."""

import re
from collections.abc import Callable, Iterator

import msgspec

from robustbench_tc.live_types import config_of, registry_codes, type_codes
from robustbench_tc.schema import KINDS, TASKS, LiveRow, LiveTool, dumps
from robustbench_tc.worlds.handle import Start

from ..invariants.base import HOLDS, Verdict
from .met import gold_calls
from .read import Entry

PROTECTS = {
    "decodes": "A row that is not a live row stops the harness, or is dropped without a word.",
    "canonical": "Every cell is the text that its value is written as: nothing hides in it, equal rows are "
    "equal bytes.",
    "place": "A row lies in the config of its type and its id says task and type: both are how it is found.",
    "anchored": "Every other row has its clean row: without it nothing can be compared.",
    "equals_its_clean_row": "A row with a fault differs from its clean row in the fault alone, one with more "
    "tools in the tools: any other difference would be measured with it.",
    "clean_has_no_fault": "A clean row, and one with more tools, has no fault, position or label: what is "
    "compared with it has one.",
    "says_its_fault": "A row with a fault has position and label: its tables are by both.",
    "turns_ask": "Every turn says something as the user: an agent cannot know gold without it.",
    "registry_is_sound": "Names of tools are distinct, later turns add tools of the registry, an undo is a "
    "tool that writes: what the harness offers depends on it.",
    "flags_are_the_worlds": "Reads, writes, idempotence and undo are properties of a world's tool: faults "
    "are counted by them.",
    "starts": "The initial state is a state and a seed: a world is opened with nothing else.",
    "gold_is_offered": "Gold calls tools of the world that its turn offers: no agent could do it otherwise.",
    "gold_arguments_are_declared": "Gold's arguments are declared, and none that is required is missing.",
    "nothing_tells": "No text that an agent reads names a kind of fault, a position or this benchmark.",
}
"""Every check `rows.NAME` of a row by itself, with its sentence."""

TELLING = re.compile(
    r"\b(?:live_\w+|first_write|used_read|last_write|robustbench\w*|perturb\w*|fault[ _]?inject\w*|"
    + "|".join(kind for kind in KINDS if "_" in kind)
    + r")\b",
    re.IGNORECASE,
)

_TYPE_CODES = set(type_codes())


class RowChecks:
    """Verdicts on rows in order. Remembers what the tools of a world are, as the first row has them."""

    def __init__(self) -> None:
        self._flags: dict[tuple[str, str], tuple[bool, bool, str | None]] = {}

    def verdicts(self, entry: Entry) -> dict[str, Verdict]:
        """By check; those left out do not apply."""
        row = entry.row
        if row is None:
            return {"decodes": entry.problem}
        found: dict[str, Verdict] = {
            "decodes": HOLDS,
            "canonical": f"column {entry.canonical}" if entry.canonical else HOLDS,
            "place": _place(entry, row),
        }
        more_tools = entry.config in registry_codes()
        own = {"fault": row.fault, "position": row.position, "label": row.label}
        stated = [name for name, value in own.items() if value is not None]
        if entry.config == TASKS or more_tools:
            found["clean_has_no_fault"] = _listed("stated", stated)
        else:
            found["says_its_fault"] = _listed("not stated", [name for name in own if name not in stated])
        if entry.config != TASKS:
            found["anchored"] = HOLDS if entry.clean is not None else "`tasks` has no such task"
            found["equals_its_clean_row"] = (
                None if entry.clean is None else _listed("other than in the clean row", entry.differs)
            )
        if entry.clean is None or entry.differs or more_tools:  # the others are their clean row's
            found["flags_are_the_worlds"] = "; ".join(self._other_flags(row))
            found |= {name: look(row) for name, look in _OF_A_TASK.items()}
        return found

    def _other_flags(self, row: LiveRow) -> Iterator[str]:
        for tool in row.tools:
            if tool.distractor:
                continue
            flags = tool.writes, tool.idempotent, tool.undo
            if self._flags.setdefault((row.world, tool.name), flags) != flags:
                yield f"{tool.name[:80]} is declared otherwise in another row of {row.world[:80]}"


def _place(entry: Entry, row: LiveRow) -> str:
    if entry.config != TASKS and entry.config not in _TYPE_CODES:
        return f"{entry.config} is no config of the live dataset"
    if config_of(row.type_code) != entry.config:
        return f"type {row.type_code[:80]} in the config {entry.config}"
    if row.id != f"{row.clean_id}::{row.type_code}" or not row.clean_id.strip():
        return f"the id is not {row.clean_id[:80]}::{row.type_code}"
    return HOLDS


def _turns_ask(row: LiveRow) -> str:
    if not row.turns:
        return "there is no turn"
    for number, turn in enumerate(row.turns):
        said = [message for message in turn.messages if message.role == "user" and message.content.strip()]
        if not said:
            return f"turn {number}: the user says nothing"
        if any(message.role not in ("user", "system") for message in turn.messages):
            return f"turn {number}: somebody else speaks in it"
    return HOLDS


def _registry_is_sound(row: LiveRow) -> str:
    own = {tool.name: tool for tool in row.tools if not tool.distractor}
    if not own:
        return "there is no tool"
    if len(own) < sum(not tool.distractor for tool in row.tools):
        return "two tools have one name"
    added = [name for turn in row.turns for name in turn.adds]
    if bad := sorted(set(added) - {tool.name for tool in row.tools}):
        return f"a turn adds {bad[0][:80]}, which is no tool"
    if len(set(added)) < len(added) or (row.turns and row.turns[0].adds):
        return "a tool is added twice, or by the first turn"
    wrong = (what for tool in own.values() if (what := _flags(tool, own)))
    return next(wrong, HOLDS)


def _flags(tool: LiveTool, own: dict[str, LiveTool]) -> str:
    if tool.writes:
        undo = own.get(tool.undo) if tool.undo is not None else None
        if tool.undo is not None and (undo is None or not undo.writes):
            return f"{tool.name[:80]}: its undo {tool.undo[:80]} is no tool that writes"
        return HOLDS
    return "" if tool.undo is None else f"{tool.name[:80]} is a read with an undo"


def _starts(row: LiveRow) -> str:
    try:
        start = msgspec.convert(row.initial_state, Start)
    except msgspec.ValidationError as error:
        return str(error)[:160]
    if dumps(msgspec.to_builtins(start)) != dumps(row.initial_state):
        return "it holds more than a state and a seed"
    if not re.fullmatch(r"[0-9a-f]{64}", row.gold_state_sha256):
        return "the hash of the gold state is not 64 hex digits"
    return HOLDS


def is_doubtful(row: LiveRow) -> bool:
    """Whether a flag says what is wrong with gold: upstream's own, kept as it is."""
    return any(flag.startswith("gold_") for flag in row.flags)


def _gold_is_offered(row: LiveRow) -> Verdict:
    if is_doubtful(row):
        return None
    if len(row.golden_calls) != len(row.turns):
        return f"{len(row.golden_calls)} lists of calls for {len(row.turns)} turns"
    if not any(row.golden_calls):
        return "gold calls nothing"
    offered = [{tool.name for tool in row.offered(turn)} for turn in range(len(row.turns))]
    for gold in gold_calls(row):
        if gold.tool is None:
            return f"{gold.call.name[:80]} is no tool of the world"
        if gold.call.name not in offered[gold.turn]:
            return f"{gold.call.name[:80]} is not offered in turn {gold.turn}"
    return HOLDS


def _gold_arguments(row: LiveRow) -> str:
    for gold in gold_calls(row):
        if gold.tool is None:
            continue
        plain = gold.tool.plain
        if undeclared := sorted(set(gold.call.parameters) - set(plain.properties)):
            return f"{gold.call.name[:80]}: {undeclared[0][:80]} is not declared"
        if missing := sorted(set(plain.required) - set(gold.call.parameters)):
            return f"{gold.call.name[:80]}: {str(missing[0])[:80]} is missing"
    return HOLDS


def _nothing_tells(row: LiveRow) -> str:
    read = {
        "a turn": dumps([[message.content for message in turn.messages] for turn in row.turns]),
        "a tool": dumps([tool.plain for tool in row.tools]),
        "the initial state": dumps(row.initial_state),
    }
    for place, text in read.items():
        if found := TELLING.search(text):
            return f"{place} says {found.group()!r}"
    return HOLDS


_OF_A_TASK: dict[str, Callable[[LiveRow], Verdict]] = {
    "turns_ask": _turns_ask,
    "registry_is_sound": _registry_is_sound,
    "starts": _starts,
    "gold_is_offered": _gold_is_offered,
    "gold_arguments_are_declared": _gold_arguments,
    "nothing_tells": _nothing_tells,
}


def _listed(what: str, names: "list[str] | tuple[str, ...]") -> str:
    return f"{what}: {', '.join(names)}" if names else HOLDS
