"""Model names: what may be listed, what looks alike, and what a name says of family and size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_tc.eval import models
from robustbench_tc.eval.leaderboard import names
from robustbench_tc.eval.leaderboard.refusal import Refused

GOOD = ["Qwen3-8B", "acme/Model_1.5B-v2", "o4-mini", "x", "A.b-c_d+", "org.name/m"]
HOSTILE = [
    "",
    " ",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "a/b/c",
    "/abs",
    "a\\b",
    "a\nb",
    "a\0b",
    "m\u043edel",
    "model\u200b",
    "\u202emodel",
    "=1+1",
    "@model",
    "-flag",
    "a" * 65,
    "m..m",
    "model ",
    "{{7*7}}",
    "'; drop table models; --",
]


@pytest.mark.parametrize("name", GOOD)
def test_plain_names_pass(name: str) -> None:
    assert names.check_model(name) == name


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused_and_shown_inert(name: str) -> None:
    with pytest.raises(Refused) as refusal:
        names.check_model(name)
    said = str(refusal.value).replace("…", "")
    assert said.isascii() and said.isprintable()


@given(st.text(max_size=80))
def test_whatever_passes_is_plain_ascii(name: str) -> None:
    try:
        passed = names.check_model(name)
    except Refused:
        return
    assert passed.isascii() and passed.isprintable() and not set(passed) & set("<>&\"'`$=\\ ")
    assert ".." not in passed and passed[0].isalnum()


def test_a_known_model_gets_the_tables_spelling() -> None:
    assert names.check_model("qwen3-8b") == names.check_model("Qwen/Qwen3-8B") == "Qwen3-8B"


@pytest.mark.parametrize("other", ["qwen3_8b", "Qwen3.8B", "QWEN3-8B", "Qwen3-8b", "Qwen_3-8B"])
def test_names_that_look_alike_are_refused(other: str) -> None:
    with pytest.raises(Refused, match="looks like 'Qwen3-8B'"):
        names.refuse_lookalike(other, {"Qwen3-8B"} - {other})


@pytest.mark.parametrize(
    ("one", "other"),
    [("0racle-3B", "Oracle-3B"), ("rnodel", "model"), ("AI-agent", "Al-agent"), ("vvizard", "wizard")],
)
def test_letters_that_are_read_as_others_count_as_the_same(one: str, other: str) -> None:
    assert names.skeleton(one) == names.skeleton(other)


@pytest.mark.parametrize(
    ("one", "other"), [("M-1.5B", "M-15B"), ("Qwen3-8B", "Qwen3-14B"), ("a/M-3B", "b/M-3B"), ("M-7B", "N-7B")]
)
def test_different_models_stay_different(one: str, other: str) -> None:
    names.refuse_lookalike(one, {other})
    assert names.skeleton(one) != names.skeleton(other)


def test_the_papers_models_do_not_look_alike() -> None:
    found = [names.skeleton(name) for name in models.models()]
    assert len(set(found)) == len(found) == 21


@pytest.mark.parametrize(
    ("name", "family", "size"),
    [
        ("Qwen3-8B", "Qwen", 8),
        ("Qwen2.5-1.5B-Instruct", "Qwen", 1.5),
        ("ToolRL-DR-Full", "ToolRL", 3),
        ("DeepSeek-R1-Distill-14B", "DeepSeek", 14),
        ("o4-mini", "o4", None),
        ("acme/Rocket-70b-chat", "Rocket", 70),
        ("Mix-30B-A3B", "Mix", 30),
        ("v2beta", "v2beta", None),
    ],
)
def test_family_and_size_are_read_from_the_name(name: str, family: str, size: float | None) -> None:
    assert names.family_of(name) == family
    assert names.size_of(name) == size


def test_user_names_are_those_of_the_hub() -> None:
    assert names.check_user("ann-b.c") == "ann-b.c"
    for bad in ("", "a b", "<b>", "../x", "a/b"):
        with pytest.raises(Refused):
            names.check_user(bad)
