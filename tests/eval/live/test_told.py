"""The rule that reads final messages, against messages that were labelled before it was written
(messages.md).

The rule was written looking at `labelled_messages.jsonl` only; `withheld_messages.jsonl` measures it.
"""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc.eval.score.told import Told, Turn, asks, told
from robustbench_tc.worlds import bfcl_functions, find

HERE = Path(__file__).parent
FILES = [HERE / f"{name}_messages.jsonl" for name in ("labelled", "withheld")]
CLASSES = {
    "bfcl": bfcl_functions.CLASSES,
    **{name: find.classes(find.find(name)) for name in find.BUNDLED},
}


MESSAGES: list[dict[str, Any]] = [
    json.loads(line) for path in FILES for line in path.read_text("utf-8").splitlines()
]
SENTENCES = [part for one in MESSAGES for part in one["text"].split(". ")]


def _read(messages: list[dict[str, Any]]) -> list[Told]:
    """What the rule says; the work that is due is what the labels of messages to the same request name."""
    due: dict[str, set[str]] = {}
    for one in messages:
        due.setdefault(one["user"], set()).update(one["done"], one["failed"], one["doubted"])
    return [told(one["text"], Turn(CLASSES[one["world"]], frozenset(due[one["user"]]))) for one in messages]


def test_precision_is_at_least_95_and_recall_at_least_70_percent() -> None:
    assert len(MESSAGES) == 450
    right, wrong, missed = Counter[str](), Counter[str](), Counter[str]()
    for one, said in zip(MESSAGES, _read(MESSAGES), strict=True):
        found = {(how, what) for how in ("failed", "done") for what in getattr(said, how)}
        found |= {("hedged", "")} if said.kind == "hedged" else set()
        labels = {(how, what) for how in ("failed", "done") for what in one[how]}
        labels |= {("hedged", "")} if one["hedged"] else set()
        for counts, pairs in ((right, found & labels), (wrong, found - labels), (missed, labels - found)):
            counts.update(how for how, _ in pairs)
    for how in ("failed", "done", "hedged"):
        precision, recall = right[how] / (right[how] + wrong[how]), right[how] / (right[how] + missed[how])
        print(f"{how}: precision {precision:.3f}, recall {recall:.3f} of {len(MESSAGES)}")  # noqa: T201
        assert precision >= 0.95 and recall >= 0.7


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_whatever_is_said_together_is_read(data: st.DataObject) -> None:
    """Sentences of several messages as one, with any work due: read without an exception, and only
    classes that are spoken of or due are told of, doubted ones apart."""
    world = data.draw(st.sampled_from(sorted(CLASSES)))
    text = ". ".join(data.draw(st.lists(st.sampled_from(SENTENCES), max_size=6)))
    due = frozenset(data.draw(st.sets(st.sampled_from([one.name for one in CLASSES[world]]), max_size=3)))
    said = told(text, Turn(CLASSES[world], due))
    spoken = {one.name for one in CLASSES[world] if one.pattern.search(text.lower())}
    assert said.failed | said.done | said.doubted <= spoken | due
    assert not said.doubted & (said.failed | said.done)


@pytest.mark.parametrize(
    "text",
    [
        "Ich habe die Bestellung storniert, alles erledigt.",
        "J'ai annulé la commande pour vous.",
        "订单已取消。",
        "تم إلغاء الطلب.",
        "Ya está, el pedido ha sido cancelado con éxito.",
        "",
        "   \n ",
        "…",
    ],
)
def test_other_languages_and_nothing_at_all_are_unclear(text: str) -> None:
    assert told(text) == Told("unclear")


@pytest.mark.parametrize(
    ("text", "is_question"),
    [
        ("Which order do you mean?", True),
        ("I found two. Which one should I cancel?", True),
        ("Please provide the amount.", True),
        ("Welche Bestellung meinst du?", True),
        ("你想取消哪个订单？", True),
        ("Done. Anything else?", False),
        ("It is booked. Is there anything else I can help with?", False),
        ("Order cancelled.", False),
        ("Could not cancel the order. Please confirm with support.", False),
        ("Why did it fail? The server was down. I have cancelled it now, and all is well.", False),
        ("", False),
    ],
)
def test_asks(text: str, is_question: bool) -> None:
    assert asks(text) is is_question


@pytest.mark.parametrize(
    ("text", "kind", "failed"),
    [
        ("The first attempt timed out; I retried and the order is placed.", "done", set()),
        ("I retried after the time-out, and the payment failed again.", "failed", {"payment"}),
        ("The order was placed, but your card could not be charged.", "failed", {"payment"}),
        ("The blue one was out of stock, so I ordered the red one.", "done", set()),
        ("Everything may or may not have gone through.", "hedged", set()),
        ("I will cancel the order now.", "unclear", set()),
        ("No errors occurred and the order has been cancelled.", "done", set()),
        ("I am sorry, that failed.", "failed", {"note"}),
    ],
)
def test_failures_by_class(text: str, kind: str, failed: set[str]) -> None:
    said = told(text, Turn(CLASSES["orders"], frozenset({"note"})))
    assert said.kind == kind and set(said.failed) == failed


@pytest.mark.parametrize(
    "part", ["?'", ",", "a ", "is ", "done. ", "ed", "was not ", "?\n", "\x00", "\ud800", "and the ", "'x' "]
)
def test_a_hostile_message_is_read_in_a_moment(part: str) -> None:
    begun = time.process_time()
    told(part * 100_000, Turn(CLASSES["orders"]))
    asks(part * 100_000)
    assert time.process_time() - begun < 2
