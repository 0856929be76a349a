"""What the trials of a write show, beside what the server says of it."""

import json
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from robustbench_tc.eval.defend.again import transient
from robustbench_tc.own import advice
from robustbench_tc.own.tools import Entry

from ..scenes import inside
from .effects import Effect, changes, constant, tokens
from .trials import AGAIN, NEW_KEY, ONCE, REPEATED, TWICE, Drill, Trial

_REPEATABLE = re.compile(
    r"(?<!not )(?<!non-)(?<!non )\bidempotent\b|(?<!not )\bsafe to (?:retry|repeat|call again)\b"
    r"|\b(?:at most|exactly|only) once\b",
    re.IGNORECASE,
)
_COLLIDES = re.compile(r"\balready\b|\bduplicate\b|\bexists\b", re.IGNORECASE)


class Judged(msgspec.Struct, kw_only=True):
    """A write, what its trials show, and what the server says."""

    tool: str
    verdict: Literal["idempotent", "doubles", "refuses", "cannot be seen"] = "cannot be seen"
    server: Literal["agreement", "lie", "silence", ""] = ""
    """Whether that fits what the server says. "": nothing was seen that it could be held against."""
    claims: list[str] = []
    """Its hints, keys and words on repeated calls."""
    trials: list[str] = []
    """Those in which the effect is another one than that of a single call."""
    difference: tuple[str, ...] = ()
    """Of the first of these: the place, what one call changes there, and what two do."""
    notes: list[str] = []
    is_error_after_effect: bool = False
    needs_key: bool = False
    """Whether it is done twice where the second call has a key of its own."""

    @property
    def is_safe(self) -> bool:
        """Whether it may be called again by somebody who knows nothing of the first call."""
        return self.verdict in ("idempotent", "refuses") and not self.needs_key

    @property
    def is_unannounced(self) -> bool:
        """Whether it doubles, and nobody was told."""
        return self.verdict == "doubles" and self.server != "agreement"


def judge(tool: Entry, trials: Mapping[str, Trial], drill: Drill) -> Judged:
    """The verdict on a write that went through its trials. Raises NoAnswer where too much has changed."""
    found, effects = Judged(tool=tool.name), compared(trials, drill)
    once, again = effects[ONCE], effects[AGAIN]
    first, second = trials[ONCE].answers[0], trials[TWICE].answers[1]
    found.is_error_after_effect = first.failed and bool(once.changes)
    if found.is_error_after_effect:
        found.notes.append(f"answers with an error although it was carried out: {first.text[:100]}")
    # Where an earlier trial can be seen, the second call of all may change nothing more.
    if not once.equals(again) and (again.changes or not drill.is_touched):
        found.notes.append("a single call changes something else in each trial")
        return found
    if drill.is_touched and once.changes and not again.changes:
        found.notes.append("later trials met what the first had written: a reset command would show more")
    alike = (once, again) if drill.is_touched else (once,)
    unlike = [kind for kind in effects if not any(effects[kind].equals(one) for one in alike)]
    found.trials, found.needs_key = [kind for kind in REPEATED if kind in unlike], NEW_KEY in unlike
    if found.needs_key:
        asks = bool(advice.new_with_each_call(tool))
        found.notes.append("a new key is a new write" + ", and its text asks for one with each call" * asks)
        found.trials += [NEW_KEY] * asks
    if found.trials:
        found.verdict, found.difference = "doubles", once.difference(effects[found.trials[0]])
    elif once.changes:
        found.verdict = "idempotent"
        if second.failed and not first.failed:
            values = tokens([(json.dumps(trials[TWICE].arguments), first.text)])
            numbers = [value for value in values if re.search(r"\d", value) and value in second.text]
            found.verdict = "refuses" if numbers or _COLLIDES.search(second.text) else "idempotent"
            found.notes.append(f"the second call is an error: {second.text[:100]}")
            unnamed = re.sub("|".join(map(re.escape, numbers)) or "$.", "", second.text)
            if transient(unnamed) and not _COLLIDES.search(unnamed):  # a later call may be carried out
                found.verdict = "cannot be seen"
                found.notes.append("that error may pass: whether a later call doubles is not known")
    promises, warnings = claims(tool)
    found.claims = [*promises, *warnings]
    if found.verdict != "cannot be seen":
        found.server = "agreement" if promises or (found.trials and warnings) else "silence"
        found.server = "lie" if tool.read_only or (found.trials and promises) else found.server
    elif not once.changes and (asked := {name: one for name, one in drill.asked.items() if one}):
        called = ", ".join(
            f"{json.dumps(name)}: {{arguments: {json.dumps(one, ensure_ascii=False)}}}"
            for name, one in list(asked.items())[:3]
        )
        found.notes.append(
            f"no read shows it; give other arguments under tools of the inputs file than {called}"
        )
    return found


def compared(trials: Mapping[str, Trial], drill: Drill) -> dict[str, Effect]:
    """The effects of trials, with what all servers share told from what one of them generated, or read from
    its clock."""
    stale = tuple(f"{name}." for name in drill.stale)  # the same copy in all trials
    before = [
        tokens(fact for fact in trial.before if not fact[0].startswith(stale))
        for trial in (drill.idle, *trials.values())  # the first was long enough ago that its clock says so
    ]
    given = [tokens([("", json.dumps(trial.arguments, ensure_ascii=False))]) for trial in trials.values()]
    brought = (trials[kind].after - trials[kind].before for kind in (ONCE, AGAIN))
    shared = frozenset.intersection(*before) | frozenset.intersection(*given) | constant(*brought)
    seen = {kind: changes(trial.before, trial.after, shared) for kind, trial in trials.items()}
    stable = shared | (tokens(seen[ONCE]) & tokens(seen[AGAIN]))
    return {kind: Effect(found, stable, drill.by_itself(stable)) for kind, found in seen.items()}


def claims(tool: Entry) -> tuple[list[str], list[str]]:
    """What a server promises of repeated calls of a tool, and what it warns of."""
    promises = [
        *(f"takes the key {name}" for name, _ in advice.keys(tool)),
        *["idempotentHint: true"] * tool.idempotent,
        *["readOnlyHint: true"] * tool.read_only,
        *(f"its description: {found[0]}" for found in [_REPEATABLE.search(tool.tool.description)] if found),
    ]
    warnings = [
        *(
            f"its description: {found[0]}"
            for found in [advice.NOT_TWICE.search(tool.tool.description)]
            if found
        ),
        *["idempotentHint: false"] * (inside(tool.raw, "annotations", "idempotentHint") is False),
    ]
    return promises, warnings
