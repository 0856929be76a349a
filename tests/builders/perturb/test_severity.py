"""Severity: slips that are slips, factors that are exact, abbreviations of so many letters."""

import random
import re
from itertools import product

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc.builders.perturb import REGISTRY, Context, NotApplicable, gold_texts
from robustbench_tc.builders.perturb.offers import abbreviate, annotation
from robustbench_tc.builders.perturb.query import query_text
from robustbench_tc.builders.perturb.severity_typos import NEIGHBOURS, Typos, _mistyped, _slips
from robustbench_tc.schema import Call, Message, Sample

from . import cases
from .strategies import samples

TYPOS = {"typos_1": 1, "typos_2": 3, "typos_3": 8}
LETTER = cases.CLEAN["letter"]


def row_of(code: str, sample: Sample, seed: int) -> Sample:
    return REGISTRY[code].perturb(sample, random.Random(seed), Context({}, {}))


def asked(sample: Sample, text: str) -> Sample:
    return msgspec.structs.replace(sample, messages=(Message("user", text),))


def test_so_many_slips_and_nothing_else(subtests: pytest.Subtests) -> None:
    for (code, slips), seed in product(TYPOS.items(), range(20)):
        with subtests.test(code=code, slips=slips, seed=seed):
            row = row_of(code, LETTER, seed)
            before, after = query_text(LETTER), row.messages[0].content
            old, new = (re.split(r"([A-Za-z]+)", text) for text in (before, after))
            assert old[::2] == new[::2]
            assert sum(_slips(a, b) for a, b in zip(old[1::2], new[1::2], strict=True)) == slips
            assert all(a[0] == b[0] for a, b in zip(old[1::2], new[1::2], strict=True))
            assert "Luna" in after and " 2 " in after
            assert (row.tools, row.golden_answers) == (LETTER.tools, LETTER.golden_answers)


@pytest.mark.parametrize(
    ("word", "typed", "slips"),
    [
        ("table", "table", 0), ("table", "tavle", 1), ("table", "tbale", 1), ("table", "tble", 1),
        ("table", "tablle", 1), ("table", "tavlle", 2), ("window", "wimdwo", 2),
        ("table", "tazle", 9), ("table", "taxble", 9), ("table", "chair", 21),
    ],
)  # fmt: skip
def test_slips_are_counted(word: str, typed: str, slips: int) -> None:
    """A letter that is not a neighbour, and one put in beside another, count as nine slips."""
    found = _slips(word, typed)
    assert found == slips if slips < 9 else found >= 9


@given(st.from_regex(r"[a-z]{3,14}", fullmatch=True), st.integers(0, 999))
def test_a_mistyped_word_has_as_many_slips_as_were_made(word: str, seed: int) -> None:
    slips = max(1, len(word) // 4)
    try:
        typed = _mistyped(word, slips, random.Random(seed))
    except NotApplicable:
        assert slips > 1
        return
    assert typed != word and typed[0] == word[0] and _slips(word, typed) == slips


def test_neighbours_are_mutual() -> None:
    assert all(a in NEIGHBOURS[b] for a, others in NEIGHBOURS.items() for b in others)
    assert NEIGHBOURS["g"] == "fhtyvb"


def test_names_quotes_addresses_and_gold_words_stay() -> None:
    text = 'Luna said "please hurry": mail lunas@menu.org about http://luna.example/menu, Anna-Lena, at once.'
    row = row_of("typos_1", asked(LETTER, text), 0)
    for kept in ("Luna", '"please hurry"', "lunas@menu.org", "http://luna.example/menu", "Anna-Lena"):
        assert kept in row.messages[0].content
    with pytest.raises(NotApplicable, match="too_few_words"):
        row_of("typos_2", asked(LETTER, "Luna now"), 0)
    with pytest.raises(NotApplicable, match="too_few_words"):
        row_of("typos_1", asked(LETTER, "Luna: 2!"), 0)


@pytest.mark.parametrize("code", TYPOS)
@settings(max_examples=40)
@given(sample=samples(), seed=st.integers(0, 99))
def test_gold_values_and_digits_of_any_sample_stay(code: str, sample: Sample, seed: int) -> None:
    unit = REGISTRY[code]
    assert isinstance(unit, Typos)
    try:
        row = row_of(code, sample, seed)
    except NotApplicable as skip:
        assert skip.reason in ("too_few_words", "no_slip_found", "no_user_text")
        return
    before, after = query_text(sample), str(row.changes[0].after)
    assert all(value in after for value in gold_texts(sample) if value in before)
    assert re.findall(r"\d+", after) == re.findall(r"\d+", before)
    assert unit.check(sample, row) == []
    wrong = msgspec.structs.replace(row, messages=sample.messages)
    assert unit.check(sample, wrong), "a row without a slip passed"


def test_a_check_names_what_may_not_be_mistyped() -> None:
    row = row_of("typos_1", LETTER, 0)
    unit = REGISTRY["typos_1"]

    def wrong(text: str) -> list[str]:
        return unit.check(LETTER, asked(row, text))

    clean = query_text(LETTER)
    assert "'Hello' may not be mistyped" in wrong(clean.replace("Hello", "Jello"))
    assert "'Luna' may not be mistyped" in wrong(clean.replace("Luna", "Lnua"))
    assert "'table' is mistyped 2 times" in wrong(clean.replace("table", "tavlle"))
    assert "2 slips instead of 1" in wrong(clean.replace("quiet", "quiett").replace("window", "windoww"))
    assert "more than letters changed" in wrong(clean + "!")
    assert wrong(clean.replace(" 2 ", " 3 "))


def test_no_slip_changes_what_is_asked_and_one_that_does_is_named() -> None:
    table = cases.CLEAN["table"]
    siblings = (*table.tools, msgspec.structs.replace(table.tools[1], name="reserve_window"))
    gold = ((Call("reserve_quiet", table.golden_answers[0][0].parameters),),)
    tools = (msgspec.structs.replace(siblings[1], name="reserve_quiet"), *siblings[2:])
    text = "Please do not reserve seven tables, just a quiet table, and never near the window."
    sample = msgspec.structs.replace(asked(LETTER, text), tools=tools, golden_answers=gold, gold_tool_index=0)
    for seed in range(40):
        typed = str(row_of("typos_2", sample, seed).changes[0].after)
        assert {"not", "seven", "quiet", "never"} <= set(re.findall(r"[a-z]+", typed))
    row = row_of("typos_1", sample, 0)
    for word in ("not", "seven", "quiet", "never"):
        slipped = asked(row, text.replace(word, word[:-1]))
        assert f"{word!r} may not be mistyped" in REGISTRY["typos_1"].check(sample, slipped)


def test_the_factor_is_the_same_in_every_row(subtests: pytest.Subtests) -> None:
    for (code, factor), seed in product(
        [("factor_1_5", 1.5), ("factor_5", 5), ("factor_100", 100)], range(8)
    ):
        with subtests.test(code=code, factor=factor, seed=seed):
            row = row_of(code, LETTER, seed)
            prices = {tool.name: annotation(tool.description) for tool in row.tools}
            gold, other = prices["reserve"], prices["reserve_Budget"]
            assert gold and other and other == pytest.approx(factor * gold, rel=1e-9)
            dearer = f"${other * 2:.3f}"
            tools = tuple(
                msgspec.structs.replace(t, description=t.description.replace(f"${other:.3f}", dearer))
                for t in row.tools
            )
            assert REGISTRY[code].check(LETTER, msgspec.structs.replace(row, tools=tools))


def test_abbreviations_keep_so_many_letters() -> None:
    assert [abbreviate("getCurrentWeather_daily", n) for n in (5, 3, 1)] == [
        "getCurreWeath_daily",
        "getCurWea_dai",
        "gCW_d",
    ]
    assert abbreviate("search") == abbreviate("search", 3) == "sea" and abbreviate("search", 5) == "search"
    with pytest.raises(NotApplicable, match="name_cannot_be_abbreviated"):
        short = msgspec.structs.replace(LETTER.tools[1], name="book")
        call = msgspec.structs.replace(LETTER.golden_answers[0][0], name="book")
        sample = msgspec.structs.replace(LETTER, tools=(LETTER.tools[0], short), golden_answers=((call,),))
        row_of("abbreviated_5", sample, 0)
