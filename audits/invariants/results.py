"""Results that answer a first call: what they say, and what a call that they order is about."""

import re

from robustbench_tc import taxonomy
from robustbench_tc.own import gold
from robustbench_tc.schema import CONTROL_TOOLS, Json, Sample, dumps, loads
from robustbench_tc.taxonomy import PerturbationType

from ..checks import check
from .base import accepted_names, of

RESULTS = of("result")


def instructed(kind: PerturbationType | None) -> bool:
    """For results that carry an order."""
    return kind is not None and RESULTS(kind) and bool(kind.traits["instructed"])


@check("benchmark_rows", for_=RESULTS)
def result_is_as_its_type_says(row: Sample, clean: Sample) -> None:
    """The first call succeeds, in a line of JSON of the gold tool; a line follows where its type says so."""
    first, *rest = (row.injected_error or "").split("\n")
    try:
        said = loads(first)
    except ValueError:
        raise AssertionError("the result does not begin with a line of JSON") from None
    called = clean.tools[clean.gold_tool_index].name if clean.gold_tool_index is not None else None
    assert isinstance(said, dict) and said.get("status") == "success" and said.get("tool") == called, (
        "the result is not a success of the gold tool"
    )
    given = said.get("result")
    assert (
        isinstance(given, dict | list | int | float) and not isinstance(given, bool) and given not in ({}, [])
    ), "the result holds no number, id or list"
    wanted = 1 if instructed(taxonomy.get(row.type_code)) else 0
    assert len(rest) == wanted, f"{len(rest)} lines follow the result, not {wanted}"


def _order(row: Sample) -> tuple[str, str, Json]:
    """The order's text, the tool that it names and the arguments, as the changes state them."""
    stated = [change for change in row.changes if change.path == "/injected_error"]
    after = stated[0].after if stated and len(row.changes) == 1 else None
    call = after.get("orders") if isinstance(after, dict) else None
    says = isinstance(call, dict) and isinstance(call.get("name"), str) and stated[0].at is not None
    assert says and isinstance(call, dict), "the changes do not say which call is ordered"
    return (row.injected_error or "")[stated[0].at :], call["name"], call.get("parameters")


@check("benchmark_rows", for_=instructed)
def order_is_there_once(row: Sample, clean: Sample) -> None:
    """An attack said twice is another attack, one that is not there is none: the text holds it once."""
    order, name, arguments = _order(row)
    call = f"{name} with {dumps(arguments)}"
    text = row.injected_error or ""
    times = len(re.findall(rf"(?<![\w.]){re.escape(name)}(?![\w.]*\w)", order))
    assert order.strip() and text.count(call) == 1 and times == 1 and text.count(order) == 1, (
        "the text does not hold the ordered call exactly once"
    )


@check("benchmark_rows", for_=instructed)
def order_is_about_another_tool(row: Sample, clean: Sample) -> None:
    """Success has to be seen in the calls: the ordered tool is listed once, is not a gold tool, and takes the
    arguments."""
    _, name, arguments = _order(row)
    listed = [tool for tool in row.tools if tool.name == name]
    assert len(listed) == 1, f"the ordered tool is listed {len(listed)} times"
    assert name not in accepted_names(row) and name not in CONTROL_TOOLS, (
        "the ordered tool is a gold tool or a control tool"
    )
    assert isinstance(arguments, dict), "the arguments are not an object"
    wrong = gold.problem(arguments, listed[0].parameters, False)
    assert wrong is None, " ".join(wrong or ())


@check("benchmark_rows", for_=instructed)
def order_is_for_nothing_in_the_request(row: Sample, clean: Sample) -> None:
    """Whoever calls what the user needs obeys nobody else: no word of the ordered tool's stands in the
    conversation, no step of a transcript needs it, and neither call feeds the other."""
    _, name, arguments = _order(row)
    assert clean.gold_tool_index is not None, "the changes do not say which call is ordered"
    tool = next((tool for tool in row.tools if tool.name == name), None)
    assert tool is not None, "the ordered tool is not listed"
    said = "\n".join(message.content for message in row.messages)
    assert "<user>" not in said, (
        "the ordered tool is of a transcript, whose steps use every tool that is listed"
    )
    shared = _in_common(f"{name} {tool.description}", said)
    assert not shared, f"the conversation speaks of {shared!r}, and so does the ordered tool"
    shared = _in_common(name, " ".join(row.golden_answers[0][0].parameters))
    assert not shared, f"the golden call takes {shared!r}, which the ordered tool gives"
    called = clean.tools[clean.gold_tool_index]
    shared = _in_common(" ".join(arguments), f"{called.name} {called.description}")
    assert not shared, f"the ordered tool takes {shared!r}, which the golden call gives"


_SAYS_NOTHING = frozenset(
    "about after all also and any are based been before being between both but can could did does "
    "doing done during each either for from had has have having her here him his how into its itself "
    "just let like may might more most must need needs neither nor not now off once one only other our "
    "out over own per please shall she should some such than that the their them then there these they "
    "this those through too under until upon use used using very via want wants was were what when "
    "where whether which while who whom whose why will with within without would yes you your".split()
)
"""Words that stand in any two texts."""


def _in_common(name: str, text: str) -> str | None:
    """A word of the one that the other has too: the same, its plural, or with the same first six letters."""
    theirs = {one for word in _words(text) for one in _alike(word)}
    return next((word for word in _words(name) if theirs & _alike(word)), None)


def _words(text: str) -> list[str]:
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", text)
    return [word.lower() for word in parts if len(word) > 2 and word.lower() not in _SAYS_NOTHING]


def _alike(word: str) -> set[str]:
    return {word, word.removesuffix("s"), word[:6]}
