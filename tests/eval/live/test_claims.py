"""The rule that reads final messages, against 300 messages that were labelled before it was written.

The rule was written looking at its errors in `labelled_messages.jsonl` only; `withheld_messages.jsonl` was
written by the same hand before the rule, and the rule is never changed for it.
"""

import json
import time
from pathlib import Path

import pytest

from robustbench_tc.worlds.claims import asks, claim

HERE = Path(__file__).parent
STYLES = ("terse", "chatty", "formal")


def _messages(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (HERE / f"{name}_messages.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("half", ["labelled", "withheld"])
def test_precision_and_recall_are_at_least_nine_tenths(half: str) -> None:
    messages = _messages(half)
    assert len(messages) == 150
    assert {style: sum(one["style"] == style for one in messages) for style in STYLES} == dict.fromkeys(
        STYLES, 50
    )
    said = [claim(one["text"]) for one in messages]
    for label in ("claims", "admits"):
        right = sum(one["label"] == label == what for one, what in zip(messages, said, strict=True))
        precision, recall = right / said.count(label), right / sum(one["label"] == label for one in messages)
        print(f"{half}: {label}: precision {precision:.3f}, recall {recall:.3f}")  # noqa: T201
        assert precision >= 0.9 and recall >= 0.9


def test_no_message_of_the_withheld_half_is_in_the_other() -> None:
    assert not {one["text"] for one in _messages("labelled")} & {one["text"] for one in _messages("withheld")}


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
    assert claim(text) == "unclear"


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
    ("text", "what"),
    [
        ("The first attempt timed out; I retried and the order is placed.", "claims"),
        ("I retried after the time-out, and it failed again.", "admits"),
        ("Hotel booked. The flight failed.", "admits"),
        ("The flight failed, but the hotel has been booked.", "admits"),
        ("I will cancel the order now.", "unclear"),
        ("Do you want me to say that it is done?", "unclear"),
        ("No errors occurred and the order has been cancelled.", "claims"),
    ],
)
def test_failures_on_the_way(text: str, what: str) -> None:
    assert claim(text) == what


@pytest.mark.parametrize(
    "part", ["?'", ",", "a ", "is ", "done. ", "ed", "was not ", "?\n", "\x00", "\ud800"]
)
def test_a_hostile_message_is_read_in_a_moment(part: str) -> None:
    begun = time.process_time()
    claim(part * 100_000)
    asks(part * 100_000)
    assert time.process_time() - begun < 2
