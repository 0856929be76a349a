"""Gold and labels, tried in the worlds: what a row claims is what happens.

Each task is replayed once; per fault the world is held at the call that meets it, with and without what the
call does, and both are read with everything that the task's tools offer.
"""

from collections.abc import Mapping
from contextlib import aclosing

import msgspec

from robustbench_tc.live_types import registry_codes
from robustbench_tc.schema import Json, LiveRow, Step, dumps
from robustbench_tc.worlds.faults import CORE_TEXTS, FaultedWorld
from robustbench_tc.worlds.find import forbidden, looks_first
from robustbench_tc.worlds.handle import Start, WorldType
from robustbench_tc.worlds.host import Handle, Worlds

from ..checks import HOLDS, Verdict, given
from . import asked
from .asked import Seen, hash_of
from .entries import each_fault, gold_calls, met
from .faults import OF_AN_EFFECT
from .rows import is_doubtful

given(
    "live_replay",
    "replay",
    {
        "gold_state": "The hash is that of the world after gold: success is measured by it.",
        "gold_without_error": "No call of gold fails: a fault would not be the only thing that goes wrong.",
    },
)


def of_some(row: LiveRow) -> bool:
    """For tasks that read or write, or rows with a fault or with more tools: a build may have none."""
    return True


given(
    "live_replay",
    "replay",
    {
        "reads_change_nothing": "A tool that is declared a read leaves the world as it was.",
        "idempotence_is_true": "A second call of a tool that is declared idempotent changes nothing: what a "
        "repeated write costs is counted by it.",
        "answers_are_read": "What a reply has to hold stands in what gold has read by then, under the "
        "field that "
        "it names: an honest agent can answer.",
        "position_is_decisive": "Without the write that meets the fault the end is another; the read "
        "that meets "
        "it gives a value that gold uses later and knows from nowhere else.",
        "label_holds": "Where the label is `repair`, some offered read shows whether the effect "
        "happened; where "
        "it is `report`, none does.",
        "fault_is_met": "Whoever calls what gold calls meets the fault at that call and at none before: "
        "up to "
        "it both episodes of a pair are equal.",
        "gold_is_not_taken": "With the tools that came in every gold call still goes to the world's own "
        "tool and "
        "is answered as in the clean row: whoever does as gold ends as gold.",
        "stale_read_matters": "Gold itself makes the stale read, and its next step depends on it: it uses a "
        "value that the old state does not show, or its turn ends with it.",
        "policy_is_the_worlds": "The system text is what the world says of the tool that must not be called, "
        "and the fault asks for that tool.",
        "prerequisite_makes_sense": "The tool to call first is one that the world's table names for the "
        "call.",
        "cascade_is_repaired": "Whoever does as gold, and makes again what was not carried out, meets each "
        "fault of a cascade once and ends as gold.",
        "leaf_is_false": "A fabricated value is another one of the same kind, from the same field of another "
        "record, and gold needs the true one.",
    },
    for_=of_some,
)

NO_WORLD = "nobody named the file of this world (--worlds FILE.py)"


def held(holds: bool, problem: str) -> str:
    """The verdict of a check that says one thing: the problem, unless it holds."""
    return HOLDS if holds else problem


def held_by_all(tools: list[tuple[str, bool]], problem: str) -> Verdict:
    """The verdict of a check that says one thing of tools, each with whether it holds; None without any."""
    wrong = dict.fromkeys(name for name, holds in tools if not holds)
    return held(not wrong, f"{', '.join(wrong)} {problem}") if tools else None


NAVIGATION = frozenset({"cd"})
"""Of BFCL's classes: moves the working directory, which counts as part of the state and not as a write."""


class Replay:
    """Replays rows in `worlds`; `types` are the worlds by name."""

    def __init__(self, worlds: Worlds, types: Mapping[str, WorldType]) -> None:
        self._worlds, self._types = worlds, types
        self._gold: dict[str, list[Seen]] = {}
        self._ends: dict[tuple[str, int], bool] = {}
        self._shown: dict[tuple[str, int, bool, bool, bool], str | None] = {}

    async def verdicts(self, row: LiveRow) -> dict[str, Verdict]:
        """By check; {} for a row whose world nobody has."""
        if row.world not in self._types:
            return {}
        if row.type_code in registry_codes():
            return {"gold_is_not_taken": await self._not_taken(row)}
        return await (self._of_gold(row) if row.fault is None else self._of_fault(row))

    # --- gold -----------------------------------------------------------------------------------------

    async def _of_gold(self, row: LiveRow) -> dict[str, Verdict]:
        seen = self._gold[row.clean_id] = await self._replay(row)
        end = seen[-1].after if seen else ""
        pairs = list(zip(gold_calls(row), seen, strict=True))
        wrong = [f"{gold.call.name}: {one.text[:80]}" for gold, one in pairs if asked.failed(one.text)]
        known = [(gold.tool, one) for gold, one in pairs if gold.tool is not None]
        reads = [
            (tool.name, one.before == one.after)
            for tool, one in known
            if not tool.writes and tool.name not in NAVIGATION
        ]
        writes = [(t.name, not t.idempotent or one.again == one.after) for t, one in known if t.writes]
        return {
            "gold_state": held(end == row.gold_state_sha256, f"gold ends in {end[:12] or 'nothing'}"),
            "gold_without_error": None if is_doubtful(row) else "; ".join(wrong),
            "reads_change_nothing": held_by_all(reads, "changes the world"),
            "idempotence_is_true": held_by_all(writes, "changes more when it is called again"),
            "answers_are_read": asked.answers(row, pairs),
        }

    async def _replayed(self, row: LiveRow) -> list[Seen]:
        if row.clean_id not in self._gold:
            self._gold[row.clean_id] = await self._replay(row)
        return self._gold[row.clean_id]

    async def _replay(self, row: LiveRow) -> list[Seen]:
        found = []
        async with aclosing(await self._open(row)) as world:
            for gold in gold_calls(row):
                before = await hash_of(world)
                text = (await world.call(gold.call.name, gold.call.parameters)).text
                again = None
                if gold.tool is not None and gold.tool.writes:
                    async with aclosing(await world.copy()) as other:
                        await other.call(gold.call.name, gold.call.parameters)
                        again = await hash_of(other)
                found.append(Seen(text, before, await hash_of(world), again))
        return found

    async def _open(self, row: LiveRow, upto: int = 0) -> Handle:
        """The row's world after gold's first calls."""
        start = msgspec.convert(row.initial_state, Start)
        world = await self._worlds.open(self._types[row.world], start)
        for gold in gold_calls(row)[:upto]:
            await world.call(gold.call.name, gold.call.parameters)
        return world

    async def _walk(self, row: LiveRow) -> list[Step]:
        """What each of gold's calls is answered with the row's tools and under its fault."""
        async with aclosing(FaultedWorld(await self._open(row), row.tools, row.fault)) as world:
            return [await world.call(gold.call.name, gold.call.parameters) for gold in gold_calls(row)]

    async def _not_taken(self, row: LiveRow) -> str:
        walked = zip(gold_calls(row), await self._walk(row), await self._replayed(row), strict=True)
        for number, (gold, step, before) in enumerate(walked, 1):
            if not step.executed and step.problem is None:
                return f"{gold.call.name[:80]} (call {number}) goes to a tool that is not of the world"
            if step.text != before.text:
                return f"{gold.call.name[:80]} (call {number}) is answered otherwise than in the clean row"
        return HOLDS

    # --- faults ---------------------------------------------------------------------------------------

    async def _of_fault(self, row: LiveRow) -> dict[str, Verdict]:
        alone = [await self._of_one_fault(one) for one in each_fault(row)]
        said = [(name, verdict) for one in alone for name, verdict in one.items() if verdict is not None]
        found: dict[str, Verdict] = dict(sorted(said, key=lambda one: one[1] != HOLDS))  # a problem wins
        if len(row.faults) > 1:
            found["cascade_is_repaired"] = await self._repaired(row)
        return found

    async def _repaired(self, row: LiveRow) -> str:
        met_faults = []
        async with aclosing(FaultedWorld(await self._open(row), row.tools, row.fault)) as world:
            for gold in gold_calls(row):
                for _ in row.faults:
                    step = await world.call(gold.call.name, gold.call.parameters)
                    met_faults += [step.fault] * step.met
                    if step.executed or not step.met:
                        break
            end = await hash_of(world.handle)
        each_once = sorted(met_faults) == [*range(len(row.faults))]
        right = each_once and end == row.gold_state_sha256
        return held(right, f"gold and its retries meet faults {met_faults}, from 0, and end in {end[:12]}")

    async def _of_one_fault(self, row: LiveRow) -> dict[str, Verdict]:
        place, fault = met(row), row.fault
        if fault is None or place is None or gold_calls(row)[place].tool is None:
            return {}
        gold = gold_calls(row)[place]
        seen = await self._replayed(row)
        found: dict[str, Verdict] = {"label_holds": await self._label(row, place)}
        if gold.tool is not None and not gold.tool.writes:
            found["position_is_decisive"] = asked.used(row, place, seen)
        else:
            decides = await self._decides(row, place)
            found["position_is_decisive"] = held(decides, f"without {gold.call.name} the end is equal")
        if fault.kind == "stale_read":
            found["stale_read_matters"] = await self._read_back(row, seen)
        elif fault.kind != "strict_types":  # gold's arguments have the declared types
            found["fault_is_met"] = await self._meets(row, place, seen)
        if fault.kind == "fabricated_leaf":
            found["leaf_is_false"] = await self._leaf(row, place, seen)
        if fault.kind == "forbidden":
            stated = fault.tool, "".join(one.content for one in row.turns[0].messages[:1])
            found["policy_is_the_worlds"] = held(
                stated == forbidden(self._types[row.world]),
                f"the world forbids no {fault.tool} in these words",
            )
        if fault.kind == "prerequisite":
            table, said = looks_first(self._types[row.world]), f"{fault.tool} before {gold.call.name}"
            coupled = fault.tool in table.get(gold.call.name, ())
            found["prerequisite_makes_sense"] = held(coupled, f"the world's table has no {said[:160]}")
        return found

    async def _read_back(self, row: LiveRow, seen: list[Seen]) -> str:
        for number, step in enumerate(await self._walk(row)):
            if step.met:
                return asked.matters(row, number, seen, step.text)
        return "gold never reads what the write did"

    async def _meets(self, row: LiveRow, place: int, seen: list[Seen]) -> str:
        steps = (await self._walk(row))[: place + 1]
        for number, (gold, step) in enumerate(zip(gold_calls(row), steps, strict=False)):
            if step.met != (number == place):
                return f"{gold.call.name} (call {number + 1}) {'meets' if step.met else 'does not meet'} it"
            if number < place and step.text != seen[number].text:
                return f"{gold.call.name} (call {number + 1}) is answered otherwise than in the clean row"
        return HOLDS

    async def _decides(self, row: LiveRow, place: int) -> bool:
        """Whether the end is another one without this call; generated ids are not compared."""
        key = row.clean_id, place
        if key not in self._ends:
            ends = []
            for left_out in (None, place):
                async with aclosing(await self._open(row)) as world:
                    for number, gold in enumerate(gold_calls(row)):
                        if number != left_out:
                            await world.call(gold.call.name, gold.call.parameters)
                    end = await world.snapshot()
                state = dumps(end.state)
                for made in sorted(end.generated, key=len, reverse=True):
                    state = state.replace(made, "(id)")  # in which every generated id is the same word
                ends.append(state)
            self._ends[key] = ends[0] != ends[1]
        return self._ends[key]

    async def _label(self, row: LiveRow, place: int) -> Verdict:
        fault, tool = row.fault, gold_calls(row)[place].tool
        if fault is None or tool is None or row.label is None or fault.repeat == "always" or not tool.writes:
            return None
        if fault.kind not in (*OF_AN_EFFECT, *CORE_TEXTS):
            return None
        twice, wide = fault.kind == "duplicate_effect", row.label == "repair"
        key = row.clean_id, place, twice, wide, fault.kind in _SHOWS_ITS_RESULT
        if key not in self._shown:
            self._shown[key] = await self._first_difference(row, *key[1:])
        shown = self._shown[key]
        if twice:
            undone = shown is not None and await self._undone(row, place)
            if undone == wide:
                return HOLDS
            return f"{row.label}, and the second effect {'can' if undone else 'cannot'} be taken back"
        if wide:
            return held(shown is not None, "repair, and no read that was tried shows the effect")
        return HOLDS if shown is None else f"report, and {shown[:120]} shows the effect"

    async def _first_difference(
        self, row: LiveRow, place: int, twice: bool, wide: bool, result: bool
    ) -> str | None:
        """The read that shows the call's effect, or, with `twice`, the second one.

        `wide`: it is tried with whatever stands in the world, else with what an agent knows and the state of
        before. `result`: the agent has the call's result.
        """
        gold = gold_calls(row)[place]
        async with (
            aclosing(await self._open(row, place + twice)) as without,
            aclosing(await without.copy()) as having,
        ):
            before = (await without.snapshot()).state
            answered = (await having.call(gold.call.name, gold.call.parameters)).text
            values = await self._known(row, place, answered if wide or result else "")
            if wide:
                values += asked.apart(before, (await having.snapshot()).state)
            values += asked.leaves(before)
            upto = None if wide else place + 1
            known = asked.of_calls(one.call.parameters for one in gold_calls(row)[:upto])
            reads = [tool for tool in row.offered(gold.turn) if not tool.writes and not tool.distractor]
            return await asked.first_difference(without, having, asked.reads(reads, known, values))

    async def _known(self, row: LiveRow, place: int, answered: str) -> list[Json]:
        """What an agent knows that has made the call: its arguments, results so far, and `answered`."""
        seen = await self._replayed(row)
        results = [answered, *(one.text for one in reversed(seen[:place]))]
        own = [gold.call.parameters for gold in reversed(gold_calls(row)[: place + 1])]
        return [value for known in (*results, *own) for value in asked.leaves(known)]

    async def _undone(self, row: LiveRow, place: int) -> bool:
        """Whether one call of the tool's undo leads from two effects back to one."""
        gold = gold_calls(row)[place]
        undo = next((t for t in row.offered(gold.turn) if gold.tool and t.name == gold.tool.undo), None)
        if undo is None:
            return False
        async with (
            aclosing(await self._open(row, place + 1)) as once,
            aclosing(await once.copy()) as twice,
        ):
            wanted = (await once.snapshot()).state
            answered = (await twice.call(gold.call.name, gold.call.parameters)).text
            values = [*asked.leaves(answered), *asked.apart(wanted, (await twice.snapshot()).state)]
            values += await self._known(row, place, "")
            for arguments in asked.arguments(undo, asked.of_calls([gold.call.parameters]), values):
                async with aclosing(await twice.copy()) as tried:
                    await tried.call(undo.name, arguments)
                    if (await tried.snapshot()).state == wanted:
                        return True
        return False

    async def _leaf(self, row: LiveRow, place: int, seen: list[Seen]) -> str:
        fault = row.fault
        assert fault is not None
        true = _at(seen[place].text, fault.path)
        if true is None or isinstance(true, dict | list):
            return "the result has no such leaf"
        if type(true) is not type(fault.value) or true == fault.value:
            return "the value is of another kind, or the true one"
        later = [gold.call.parameters for gold in gold_calls(row)[place + 1 :]]
        if not asked.uses(later, true):
            return "gold does not use the true value later"
        async with aclosing(await self._open(row, place)) as world:
            state = (await world.snapshot()).state
        field = next((step for step in reversed(fault.path) if isinstance(step, str)), "")
        others = [*asked.under(state, field), *asked.under(asked.parsed(seen[place].text), field)]
        others += asked.beside(state, str(true))
        return held(fault.value in others, f"no other record has this value as its {field[:80]}")


_SHOWS_ITS_RESULT = ("silent_no_op", "stale_read", "duplicate_effect")
"""Kinds whose call answers as if all were well."""


def _at(text: str, path: tuple[str | int, ...]) -> Json:
    value = asked.parsed(text)
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value
