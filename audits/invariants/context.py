"""What stands before a request: closed exchanges, and nothing that answers it."""

import re

from robustbench_tc.schema import Sample
from robustbench_tc.taxonomy import PerturbationType

from .base import HOLDS, Verdict, accepted_names, invariant, of
from .texts import gold_values

CONTEXT = of("context")


def lengthened(kind: PerturbationType | None) -> bool:
    """For rows before whose request so many tokens of other exchanges stand."""
    return kind is not None and CONTEXT(kind) and "tokens" in kind.traits


@invariant(lengthened)
def request_stands_last_as_it_was(row: Sample, clean: Sample) -> Verdict:
    """Only what stands before it is new: the system's messages come first, the sample's own end the row."""
    system = [message for message in clean.messages if message.role == "system"]
    own = [message for message in clean.messages if message.role != "system"]
    if list(row.messages[: len(system)]) != system or list(row.messages[-len(own) :]) != own:
        return "the messages of the clean row do not stand first and last"
    between = row.messages[len(system) : -len(own)]
    closed = [message.role for message in between] == ["user", "assistant"] * (len(between) // 2)
    return HOLDS if closed and between else "no closed exchanges stand before the request"


@invariant(lengthened)
def context_holds_no_gold_value(row: Sample, clean: Sample) -> Verdict:
    """Whoever copies from an earlier exchange must not be right: no golden value or tool stands there."""
    # the messages that stand before the clean row's own, its leading system messages apart
    roles = [message.role for message in clean.messages]
    head = next((index for index, role in enumerate(roles) if role != "system"), len(roles))
    added = row.messages[head : head + len(row.messages) - len(roles)]
    said = "\n".join(message.content for message in added).casefold()
    for value in {*gold_values(clean), *accepted_names(clean)}:
        wanted = value.strip().casefold()
        if not wanted or wanted not in said:
            continue
        start = r"(?<![^\W_])" if wanted[0].isalnum() else ""
        end = r"(?![^\W_])" if wanted[-1].isalnum() else ""
        if re.search(start + re.escape(wanted) + end, said):
            return "a golden value or tool stands before the request"
    return HOLDS
