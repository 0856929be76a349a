"""What stands before a request: closed exchanges, and nothing that answers it."""

import itertools
import re
from collections import Counter
from operator import itemgetter

from robustbench_tc import taxonomy
from robustbench_tc.eval.prompts.calls import earlier_calls
from robustbench_tc.schema import Message, Sample
from robustbench_tc.taxonomy import PerturbationType

from ..checks import check
from .base import accepted_names, of_channels
from .texts import gold_values_of

CONTEXT = of_channels("context")


def lengthened(kind: PerturbationType | None) -> bool:
    """For rows before whose request so many tokens of other exchanges stand."""
    return kind is not None and CONTEXT(kind) and "tokens" in kind.traits


def with_calls(kind: PerturbationType | None) -> bool:
    """For rows before whose request earlier calls and their results stand."""
    return lengthened(kind) and kind is not None and bool(kind.traits["calls"])


@check("benchmark_rows", for_=lengthened)
def request_stands_last_as_it_was(row: Sample, clean: Sample) -> None:
    """Only what stands before it is new: the system's messages come first, the sample's own end the row."""
    system = [message for message in clean.messages if message.role == "system"]
    own = [message for message in clean.messages if message.role != "system"]
    assert list(row.messages[: len(system)]) == system and list(row.messages[-len(own) :]) == own, (
        "the messages of the clean row do not stand first and last"
    )
    roles = "".join(message.role[0] for message in row.messages[len(system) : -len(own)])
    closed = re.fullmatch(r"(?:u(?:at)*a)+", roles)
    assert closed is not None and ("t" not in roles or with_calls(taxonomy.get(row.type_code))), (
        "no closed exchanges stand before the request"
    )


def _added(row: Sample, clean: Sample) -> tuple[Message, ...]:
    """The messages that stand before the clean row's own, its leading system messages apart."""
    roles = [message.role for message in clean.messages]
    head = next((index for index, role in enumerate(roles) if role != "system"), len(roles))
    return row.messages[head : head + len(row.messages) - len(roles)]


@check("benchmark_rows", for_=with_calls)
def earlier_calls_are_the_rows_own(row: Sample, clean: Sample) -> None:
    """A session calls what it is offered: each earlier call is of a listed tool, has a result and arguments
    that the tool declares, and is no right answer to the request."""
    added = _added(row, clean)
    tools = {tool.name: tool for tool in row.tools}
    judged = {call.name for answer in clean.golden_answers for call in answer if list(gold_values_of(call))}
    for message, following in itertools.pairwise(added):
        if following.role != "tool":
            continue
        found = earlier_calls(message)
        assert found is not None, "a result stands behind a message without a call"
        for call in found[1]:
            assert call.name in tools, f"an earlier call is of {call.name}, which is not listed"
            assert (
                set(tools[call.name].required) <= call.parameters.keys() <= tools[call.name].properties.keys()
            ), f"an earlier call of {call.name} has other arguments than it declares"
            assert call.name not in accepted_names(clean) - judged, (
                f"an earlier call of {call.name} answers the request"
            )
    calls = sum(earlier_calls(message) is not None for message in added)
    assert calls == sum(message.role == "tool" for message in added) and calls, (
        "not every earlier call has its result"
    )


MOST = 5
"""So often a sentence form may stand before one request."""

_TOLD_APART = re.compile(r"^(?:[A-Z].*|.*\d.*)$")
"""A name or a number."""


@check("benchmark_rows", for_=lengthened)
def no_sentence_form_stands_six_times(row: Sample, clean: Sample) -> None:
    """A pattern that comes back is noticed and left out of account: each form of prose, names and numbers
    masked, stands five times at most."""
    forms: Counter[str] = Counter()
    for message in _added(row, clean):
        if message.role != "tool":
            prose = re.sub(r"(?s)<tool_call>.*", "", message.content)
            sentences = (one.split() for one in re.split(r"(?<=[.?!])\s+|\n", prose))
            masked = (" ".join(_TOLD_APART.sub("_", word) for word in words) for words in sentences)
            forms.update(form for form in masked if form)
    form, times = max(forms.items(), key=itemgetter(1), default=("", 0))
    assert times <= MOST, f"a sentence form stands {times} times: {form[:60]}"
