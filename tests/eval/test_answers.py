"""Whether a reply answers what the user asked, in whatever form a person would take."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from robustbench_tc.eval.score.answers import answered, stands_in

SLOTS = json.dumps([{"start": "09:00", "end": "15:00"}, {"start": "16:30", "end": "17:00"}])
ORDERS = json.dumps(
    [
        {"order_id": "O-1", "products": ["Floor lamp"], "total": 80},
        {"order_id": "O-2", "products": ["Cotton blanket"], "total": 140},
    ]
)


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("You are both free from 9 am to 3 p.m.", True),
        ("09:00-15:00", True),
        ("From 9:00 until 3:00 PM.", True),
        ("From 9 pm to 3 am.", False),
        ("From 09:00.", False),
        ("From 09:00 to 15:00, and again at half past: 16:30.", False),
        ("16:30 to 17:00", False),
        ("", False),
    ],
)
def test_times_of_day(reply: str, right: bool) -> None:
    assert answered(reply, [{"start": ["09:00"], "end": ["15:00"]}], [SLOTS], "before 16:00") is right


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("O-1 is still open.", True),
        ("Your floor lamp order is open.", True),
        ("Floor lamps, for 80 euros.", True),
        ("O-1, and O-2 was delivered.", False),
        ("The floor lamp; the cotton blanket has come.", False),
        ("O-11 is open.", False),
        (ORDERS, False),
        ('It is {"order_id": "O-1", "products": ["Floor lamp"],\n "total": 80}.', False),
    ],
)
def test_one_record_among_others(reply: str, right: bool) -> None:
    answers = [{"order_id": ["O-1"]}, {"products": ["Floor lamp"]}]
    assert answered(reply, answers, [ORDERS], "") is right


def test_what_the_user_said_does_not_count_against_a_reply() -> None:
    assert answered("Not O-2: O-1.", [{"order_id": ["O-1"]}], [ORDERS], "Is it O-2?")
    assert not answered("Not O-2: O-1.", [{"order_id": ["O-1"]}], [ORDERS], "")


@pytest.mark.parametrize(
    ("value", "text", "there"),
    [
        (60, "€60.00", True),
        (60, "60,000", False),
        (1200, "1,200 euros", True),
        (12.346, "about 12.35", True),
        (12.346, "about 12", False),
        (60, "O-60", False),
        (60, "160 or 6.0", False),
        ("2026-05-08", "on Friday, May 8th", True),
        ("2026-05-08", "8 May 2026", True),
        ("2026-05-08", "18 May", False),
    ],
)
def test_numbers_and_dates(value: Any, text: str, there: bool) -> None:
    assert stands_in(value, text) is there


@given(
    st.integers(0, 10**6) | st.text("abc ", min_size=1).filter(str.strip), st.sampled_from(("", " x", "."))
)
def test_a_value_stands_in_itself(value: Any, rest: str) -> None:
    assert stands_in(value, f"It is {value}{rest}")
