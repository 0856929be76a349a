"""What is said: rewritten texts keep digits and gold values, a wish, closed exchanges before a request."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter

from robustbench_tc import taxonomy
from robustbench_tc.builders.plain import CLOSING_TURN
from robustbench_tc.eval.prompts.calls import earlier_calls
from robustbench_tc.languages import value_map
from robustbench_tc.schema import ANY, OMIT, Call, Json, Message, Sample, dumps
from robustbench_tc.taxonomy import PerturbationType

from ..checks import check
from .allowed import rewritten_texts
from .base import EQUAL_OFFERS, REWRITES, accepted_names, of_channels, states_preference, translated

_COST = re.compile(r"(?i)\b(?:cost|costs|cheap|cheaper|cheapest|price|budget|expensive|affordable)\b")
_TIME = re.compile(r"(?i)\b(?:quick|quickly|quickest|fast|faster|fastest|soon|soonest|hurry|time|urgent)\b")


@check("benchmark_rows", for_=REWRITES)
def texts_are_rewritten(row: Sample, clean: Sample) -> None:
    """Every text that the diff names did change, and none is blank."""
    texts = list(rewritten_texts(row))
    assert texts, "the diff names no text"
    for path, _, _, before, after in texts:
        assert after.strip() and after != before, f"{path} is {'blank' if not after.strip() else 'unchanged'}"


@check("benchmark_rows", for_=REWRITES)
def digits_kept(row: Sample, clean: Sample) -> None:
    """Numbers are copied into calls: no digit sequence of a rewritten text is lost."""
    for path, _, _, before, after in rewritten_texts(row):
        lost = Counter(re.findall(r"\d+", before)) - Counter(re.findall(r"\d+", after))
        if _in_chinese(row):  # a date there has no leading zeros: 2023年3月16日
            typed = re.findall(r"(?<!\d)(\d)\s?[月日号]", after)
            lost -= Counter(f"0{digit}" for digit in typed)
        assert not lost, f"{path} lost {lost.total()} digit sequences"


def _in_chinese(row: Sample) -> bool:
    kind = taxonomy.get(row.type_code)
    return translated(kind) and kind.traits["language"] == "zh"


@check("benchmark_rows", for_=REWRITES)
def gold_values_kept(row: Sample, clean: Sample) -> None:
    """A call copies its values from the text: every gold value that stood there still does."""
    values, surfaces = set(gold_values(clean)), value_map(row)
    for path, tool, _, before, after in rewritten_texts(row):
        # A description may move a value to the head of a sentence; a query is copied from letter by letter.
        kept = after if tool is None else after.casefold()
        lost = [v for v in values if v in before and (v if tool is None else v.casefold()) not in kept]
        # Where the user's language has words of its own for a value, these stand there.
        lost = [v for v in lost if not surfaces.get(v) or surfaces[v] not in after]
        assert not lost, f"{path} lost {len(lost)} gold values"


@check("benchmark_rows", for_=translated)
def chinese_dates_are_as_people_type_them(row: Sample, clean: Sample) -> None:
    """A month in words before a day in digits is nobody's spelling: it reads 3月16日."""
    texts = (after for _, _, _, _, after in rewritten_texts(row))
    odd = _in_chinese(row) and any(re.search(r"[一二三四五六七八九十]+月\s?\d", text) for text in texts)
    assert not odd, "a month stands in words before a day in digits"


def gold_values(sample: Sample) -> Iterator[str]:
    """Every accepted gold value as text; numbers in JSON form."""
    for answer in sample.golden_answers:
        for call in answer:
            yield from gold_values_of(call)


def gold_values_of(call: Call) -> Iterator[str]:
    """Every accepted value of a golden call as text."""
    for accepted in call.parameters.values():
        yield from _leaves(accepted)


def _leaves(value: Json) -> Iterator[str]:
    if isinstance(value, bool) or value is None or value in (ANY, OMIT):
        return
    if isinstance(value, dict):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value if isinstance(value, str) else dumps(value)


@check("benchmark_rows", for_=lambda kind: of_channels("query")(kind) or states_preference(kind))
def only_one_user_turn_changes(row: Sample, clean: Sample) -> None:
    """In a dialogue one user turn alone is touched: calls, results and replies are history."""
    edits = [change for change in row.changes if change.path.startswith("/messages/")]
    assert len(edits) == 1 and isinstance(edits[0].before, str) and edits[0].at is not None, (
        "the diff names not exactly one passage of the messages"
    )
    index, at = int(edits[0].path.split("/")[2]), edits[0].at
    assert index < len(clean.messages) and clean.messages[index].role == "user", (
        "the passage is not in a user message"
    )
    content, end = clean.messages[index].content, at + len(edits[0].before)
    if "<user>" in content:
        inside = (
            content.rfind("<user>", 0, at) > content.rfind("</user>", 0, at)
            and "</user>" not in content[at:end]
        )
        assert inside and "<" not in str(edits[0].after), "the passage is not inside one user turn"
        return
    assert not any(message.role == "user" for message in clean.messages[index + 1 :]), (
        "the passage is not in the last user message"
    )


@check("benchmark_rows", for_=EQUAL_OFFERS)
def preference_as_its_type_says(row: Sample, clean: Sample) -> None:
    """The query asks for the cheap or the quick tool where the type says so, and for nothing else."""
    kind = taxonomy.get(row.type_code)
    if not states_preference(kind):
        assert row.messages == clean.messages, "the messages changed"
        return
    for change in row.changes:
        if change.path.startswith("/messages/") and isinstance(change.after, str):
            before = str(change.before)
            assert change.after.startswith(before), "the query is not the clean one plus a sentence"
            added = change.after[len(before) :]
            right, wrong = (_COST, _TIME) if kind.traits["quality"] == "cost" else (_TIME, _COST)
            assert right.search(added), "the sentence states no preference of the right kind"
            assert not wrong.search(added), "the sentence states another preference too"
            return
    raise AssertionError("no preference is stated")


@check("benchmark_rows", for_=states_preference)
def preference_bears_on_the_scored_call(row: Sample, clean: Sample) -> None:
    """A wish before an executed call is about that call: it stands in the last user turn, with none after."""
    for change in row.changes:
        if change.path.startswith("/messages/") and isinstance(change.after, str) and change.at is not None:
            index = int(change.path.split("/")[2])
            rest = row.messages[index].content[change.at + len(change.after) :]
            later = row.messages[index + 1 :]
            assert not any(m.role == "tool" for m in later) and not re.search(r"<(?:tool_call|obs)>", rest), (
                "a call was executed after the preference was stated"
            )
            turns = [turn for turn in re.findall(r"(?s)<user>(.*?)</user>", rest) if turn.strip()]
            assert not turns or (len(turns) <= 1 and CLOSING_TURN.search(turns[0])), (
                "the user speaks again after the preference"
            )
            return
    raise AssertionError("no preference is stated")


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
