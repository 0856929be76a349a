"""What an argument has to be (own.md §1.1), patterns of users among it."""

import math
import re
import time
import unicodedata
import warnings
from typing import Any

import pytest
from hypothesis import example as tried, given, strategies as st

from robustbench_tc.eval.score.matchers import dates, example, kind, matches, may_be_absent, problem
from robustbench_tc.eval.score.matchers.pattern_examples import example as found_by
from robustbench_tc.eval.score.matchers.patterns import compiled, found_in
from robustbench_tc.own.files import DEPTH

TEXT = {"type": "string"}
NUMBER = {"type": "number"}


@pytest.mark.parametrize(
    ("value", "expected", "schema", "right"),
    [
        (" café ", "café", TEXT, True),
        ("Broken", "broken", TEXT, False),
        ("a  b", "a b", TEXT, False),
        (20, 20.0, NUMBER, True),
        (20, 20.0, None, True),
        ("20", 20, NUMBER, True),
        (20, "20", {"type": ["integer", "null"]}, True),
        ("20.0", 20, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, True),
        ("20", 20, TEXT, False),
        ("20", 20, {}, False),
        ("020", 20, NUMBER, False),
        ("twenty", 20, NUMBER, False),
        (True, 1, NUMBER, False),
        (1, True, {"type": "boolean"}, False),
        ("true", True, {"type": "boolean"}, False),
        (False, False, None, True),
        (None, None, TEXT, True),
        ("", None, TEXT, False),
        (10**30, 1e30, NUMBER, True),
        (math.nan, 1, NUMBER, False),
        (math.inf, 1e308, NUMBER, False),
        ([1, 2], [1, 2.0], None, True),
        ([2, 1], [1, 2], None, False),
        ([1], [1, 2], None, False),
        (["1"], [1], {"items": NUMBER}, True),
        ({"a": 1, "b": " x"}, {"b": "x", "a": 1}, None, True),
        ({"a": 1, "c": 2}, {"a": 1}, None, False),
        ({"a": 1}, {"a": 1, "b": None}, None, True),
        ({"a": "1"}, {"a": 1}, {"properties": {"a": NUMBER}}, True),
        ("[1]", [1], None, False),
    ],
)
def test_plain_values_compare_by_json_type(value: Any, expected: Any, schema: Any, right: bool) -> None:
    assert matches(value, expected, schema) is right


@pytest.mark.parametrize(
    ("value", "expected", "schema", "right"),
    [
        (0, {"any": True}, None, True),
        (None, {"any": True}, None, False),
        ({"regex": "literal"}, {"exact": {"regex": "literal"}}, None, True),
        ("literal", {"exact": {"regex": "literal"}}, None, False),
        ({"a": {"any": True}}, {"exact": {"a": {"any": True}}}, None, True),
        ({"a": 5}, {"exact": {"a": {"any": True}}}, None, False),
        (19.91, {"number": 19.9, "tolerance": 0.01}, NUMBER, True),
        (19.89, {"number": 19.9, "tolerance": 0.01}, NUMBER, True),
        (19.911, {"number": 19.9, "tolerance": 0.01}, NUMBER, False),
        (19.9, {"number": 19.9}, NUMBER, True),
        ("19.9", {"number": 19.9}, NUMBER, True),
        ("19.9", {"number": 19.9}, TEXT, False),
        (True, {"number": 1}, NUMBER, False),
        (math.nan, {"number": 1, "tolerance": 9}, NUMBER, False),
        (math.inf, {"number": 1, "tolerance": 1e308}, NUMBER, False),
        ("2026-11-21", {"date": "2026-11-21"}, TEXT, True),
        ("2026-11-21T23:59:00+02:00", {"date": "2026-11-21"}, TEXT, True),
        ("20261121", {"date": "2026-11-21"}, TEXT, True),
        ("2026-11-22", {"date": "2026-11-21"}, TEXT, False),
        ("2026-11-21T25:00", {"date": "2026-11-21"}, TEXT, False),
        ("2026-11-21 or so", {"date": "2026-11-21"}, TEXT, False),
        ("21.11.2026", {"date": "2026-11-21"}, TEXT, False),
        ("21.11.2026", {"date": "2026-11-21"}, {"type": "string", "format": "DD.MM.YYYY"}, True),
        ("21x11x2026", {"date": "2026-11-21"}, {"type": "string", "format": "DD.MM.YYYY"}, False),
        ("11/21/2026", {"date": "2026-11-21"}, {"format": "%m/%d/%Y"}, True),
        (20261121, {"date": "2026-11-21"}, None, False),
        (["b", "a", "a"], {"set": ["a", "b"]}, None, True),
        (["a"], {"set": ["a", "b"]}, None, False),
        (["a", "b", "c"], {"set": ["a", "b"]}, None, False),
        (["ab", "x1"], {"set": [{"regex": "^x"}, "ab"]}, None, True),
        (["a"], {"set": ["a", {"exact": "b", "optional": True}]}, None, True),
        ("ab", {"set": ["a", "b"]}, None, False),
        ([], {"set": []}, None, True),
        ("phone", {"one_of": ["mail", "phone"]}, TEXT, True),
        ("fax", {"one_of": ["mail", "phone"]}, TEXT, False),
        (7, {"one_of": ["mail", {"number": 6, "tolerance": 1}]}, None, True),
        ("it arrived broken.", {"regex": "broken"}, TEXT, True),
        ("fine", {"regex": "broken"}, TEXT, False),
        (5, {"regex": "5"}, NUMBER, False),
        ({"to": "x", "n": [1, "any"]}, {"to": {"regex": "x"}, "n": [1, {"any": True}]}, None, True),
        ({"to": "x"}, {"to": "x", "cc": {"exact": "y", "optional": True}}, None, True),
        ({"any": 1, "other": 2}, {"any": 1, "other": 2}, None, True),
        ({"any": True, "one_of": [1]}, {"any": True, "one_of": [1]}, None, True),
    ],
)
def test_matchers(value: Any, expected: Any, schema: Any, right: bool) -> None:
    assert problem(expected) is None
    assert matches(value, expected, schema) is right


def test_integers_of_any_length_are_compared() -> None:
    huge = 10**5000  # longer than Python writes as text
    assert matches(huge, huge, NUMBER)
    assert not matches(huge, {"number": 1, "tolerance": 1e308}, NUMBER)


def test_references_are_looked_up_in_the_tools_schema() -> None:
    root = {"$defs": {"amount": {"type": "number"}, "self": {"$ref": "#/$defs/self"}}}
    assert matches("5", 5, {"$ref": "#/$defs/amount"}, root)
    assert not matches("5", 5, {"$ref": "#/$defs/amount"})
    assert not matches("5", 5, {"$ref": "#/$defs/self"}, root)


@pytest.mark.parametrize(
    "around", [lambda v: [v], lambda v: {"k": v}, lambda v: {"one_of": [v]}, lambda v: {"set": [v]}]
)
def test_a_case_may_be_as_deep_as_its_file(around: Any) -> None:
    expected: Any = {"set": [1]}
    for _ in range(DEPTH - 5):
        expected = around(expected)
    assert problem(expected) is None and not may_be_absent(expected)
    assert matches(example(expected, None), expected, None)


def test_a_reply_far_deeper_than_the_case_is_no_match() -> None:
    deep: Any = 1
    for _ in range(20_000):
        deep = [deep]
    assert not matches(deep, [[1]], None)
    assert matches(deep, {"any": True}, None)


def test_a_long_list_is_compared_in_time() -> None:
    started = time.process_time()
    assert matches([*range(300)] * 100, {"set": [*range(300)]}, None)
    assert not matches(["x"] * 100_000, {"set": [*range(300)]}, None)
    assert time.process_time() - started < 5


def test_what_may_be_absent() -> None:
    assert may_be_absent(None)
    assert may_be_absent({"regex": "x", "optional": True})
    assert may_be_absent({"one_of": [1, None]})
    assert not may_be_absent({"any": True})
    assert not may_be_absent({"exact": None})
    assert not may_be_absent({"optional": True})  # a plain object
    assert not may_be_absent("")


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"any": False}, "any must be true"),
        ({"any": True, "optional": 1}, "optional must be true or false"),
        ({"date": "2026-11-21", "tolerance": 1}, "tolerance goes with number"),
        ({"number": "5"}, "number must be a number"),
        ({"number": True}, "number must be a number"),
        ({"number": 5, "tolerance": -1}, "tolerance must be"),
        ({"number": 5, "tolerance": math.inf}, "tolerance must be"),
        ({"date": "tomorrow"}, "date must be an ISO date"),
        ({"date": "2026-02-30"}, "date must be an ISO date"),
        ({"date": 20261121}, "date must be an ISO date"),
        ({"set": "a"}, "set must be a list"),
        ({"one_of": []}, "one_of must be a list that is not empty"),
        ({"one_of": [{"regex": "("}]}, "one_of: regex '(' is no regular expression"),
        ({"regex": 5}, "regex must be a text"),
        ({"regex": ""}, "is empty: write {any: true}"),
        ({"regex": "a{9999999999999}"}, "is no regular expression"),
        ({"regex": "[[a]"}, "is no regular expression"),
        ({"regex": "x" * 501}, "at most 500"),
        ({"regex": "b^a"}, "regex 'b^a' is found in no text"),
        ({"a": [{"b": {"regex": "(?=a)b"}}]}, "regex '(?=a)b' uses look-ahead"),
        ([{"exact": 1, "optional": True}], "optional means nothing inside a list"),
        (math.nan, "finite"),
        ({"exact": [math.inf]}, "finite"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_phrase(expected: Any, said: str) -> None:
    found = problem(expected)
    assert found is not None and said in found and "\n" not in found


def test_what_cannot_be_used_accepts_nothing_and_raises_nothing() -> None:
    for expected in ({"number": "x"}, {"date": 5}, {"set": 5}, {"one_of": 5}, {"regex": "("}, {"any": 0}):
        assert not matches("x", expected, {})


def test_days_in_a_schemas_format_come_back() -> None:
    day = dates.day_of("2026-11-21")
    assert day is not None
    for written in (None, "date", "date-time", "DD.MM.YYYY", "%m/%d/%Y", "yyyyMMdd", "%Q", "dd dd"):
        assert dates.day_of(dates.as_written(day, written), written) == day


# --- properties ---------------------------------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["1", "20.0", " x", "é"])
)
NOT_NULL = SCALARS.filter(lambda one: one is not None)
KEYS = st.sampled_from(["a", "b", "any", "regex", "date", "optional"])
VALUES = st.recursive(
    NOT_NULL, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
)
PLAIN = VALUES.map(lambda value: {"exact": value}["exact"]).filter(lambda value: not _has_matcher(value))
PATTERNS = st.sampled_from(["a", "^x+y?$", "[0-9]{2,}", "b.*c", "(?i)Ab|c", "\\w+@\\w+"])
MATCHED = st.recursive(
    st.just({"any": True})
    | PLAIN.map(lambda value: {"exact": value})
    | PATTERNS.map(lambda pattern: {"regex": pattern})
    | st.dates().map(lambda day: {"date": day.isoformat()})
    | st.builds(
        lambda number, tolerance: {"number": number, "tolerance": tolerance},
        st.integers(),
        st.floats(0, 1e9),
    )
    | PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: {"set": items})
        | st.lists(inner, min_size=1, max_size=3).map(lambda items: {"one_of": items})
        | st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["p", "q"]), inner, max_size=2)
    ),
    max_leaves=6,
)
SCHEMAS = st.sampled_from(
    [
        None,
        True,
        {},
        TEXT,
        NUMBER,
        {"type": ["integer", "null"]},
        {"enum": [None, "a", "10"]},
        {"type": "string", "format": "DD.MM.YYYY"},
        {"type": "array", "items": NUMBER},
        {"type": "object", "properties": {"p": TEXT, "q": {"type": "null"}}},
    ]
)


def _has_matcher(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_matcher, value))
    if isinstance(value, dict):
        return kind(value) is not None or any(map(_has_matcher, value.values()))
    return False


@given(MATCHED, SCHEMAS)
def test_an_example_always_matches(expected: Any, schema: Any) -> None:
    assert problem(expected) is None
    assert matches(example(expected, schema), expected, schema)


@given(VALUES, SCHEMAS)
def test_exact_accepts_the_value_itself_whatever_it_looks_like(value: Any, schema: Any) -> None:
    assert problem({"exact": value}) is None
    assert matches(value, {"exact": value}, schema)


@given(PLAIN, PLAIN, SCHEMAS)
def test_plain_values_compare_the_same_both_ways(left: Any, right: Any, schema: Any) -> None:
    assert matches(left, right, schema) == matches(right, left, schema)
    assert matches(left, left, schema)
    assert matches(left, {"one_of": [left, right]}, schema)


@given(st.lists(PLAIN, max_size=4), st.randoms(use_true_random=False))
def test_a_set_has_no_order_and_counts_once(items: list[Any], random: Any) -> None:
    shuffled = [*items, *items[:1]]
    random.shuffle(shuffled)
    assert matches(shuffled, {"set": items}, None)


@given(VALUES, MATCHED | VALUES, SCHEMAS)
def test_nothing_that_a_model_or_a_user_writes_raises(value: Any, expected: Any, schema: Any) -> None:
    problem(expected)
    matches(value, expected, schema)
    may_be_absent(expected)


# Patterns of users mean what Python says, and no text keeps one busy.

CHARACTERS = "abkKsA1_ -.\n\té\u0130ıſμµßΩω中٣\u2028\x1c\u0345"
CLASSES = [r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", "."]
IN_CLASS = st.sampled_from(["a-k", "K", "s", "i", r"\.", "é", "α-ω", r"\u0131", "-", *CLASSES[:-1]])
SETS = st.builds(lambda no, inner: f"[{no}{''.join(inner)}]", st.sampled_from(["", "^"]),
                 st.lists(IN_CLASS, min_size=1, max_size=3))  # fmt: skip
LETTERS = st.sampled_from([*"abkKsi1_-", r"\.", r"\n", r"\x61", r"\u0131", "é", "ß", "µ", "中", *CLASSES])
REPEATS = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{,2}", "{2}", "{1,}", "{0,3}?"])
FLAGS = st.sampled_from(["", "(?i)", "(?s)", "(?a)", "(?m)", "(?x)", "(?im)"])
PARTS = st.recursive(
    LETTERS | SETS,
    lambda inner: (
        st.builds(lambda one, times: f"(?:{one}){times}", inner, REPEATS)
        | st.builds(lambda one, other: f"({one}|{other})", inner, inner)
        | st.builds(lambda flag, one: f"(?{flag}:{one})", st.sampled_from(["i", "s", "-i", "m-s"]), inner)
        | st.builds(lambda *both: "".join(both), inner, inner)
        | st.builds(lambda one: f"(?P<n>{one})", LETTERS)
    ),
    max_leaves=6,
)
BEGINS, ENDS = st.sampled_from(["", "^", r"\A"]), st.sampled_from(["", "$", r"\Z"])
ANY_PATTERN = st.builds(lambda *parts: "".join(parts), FLAGS, BEGINS, PARTS, ENDS)


TEXTS = st.text(CHARACTERS, max_size=6).map(lambda text: unicodedata.normalize("NFC", text))


@tried("k{2}", ["kkk"])
@given(ANY_PATTERN, st.lists(TEXTS, min_size=1, max_size=8))
def test_a_pattern_is_found_where_python_finds_it_and_in_its_example(pattern: str, texts: list[str]) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            python = re.compile(pattern)
    except (re.error, FutureWarning):  # a name that two groups have, or what may become a set in a set
        with pytest.raises(ValueError, match="is no regular expression"):
            compiled(pattern)
        return
    for text in texts:
        there, ours = python.search(text), compiled(pattern).search(text)
        assert found_in(pattern, text) == (there is not None), text
        assert pattern.endswith("$") or (ours and ours[0]) == (there and there[0])  # what `--redact` replaces
    made = found_by(pattern)
    assert made is None or python.search(made)


@pytest.mark.parametrize("escape", [*CLASSES, r"(?a)\w", r"[^\W\d_]", r"(?i)[^\Wk]", r"(?i)[i-sµ]"])
def test_every_character_is_of_the_class_that_python_has(escape: str) -> None:
    python = re.compile(escape)
    pattern = compiled(f"{escape}+")
    every = "".join(char for char in map(chr, range(0x30000)) if not "\ud800" <= char <= "\udfff")
    assert "".join(pattern.findall(every)) == "".join(python.findall(every))


@pytest.mark.parametrize(
    "pattern",
    [
        *("broken", "^order 10[0-9]{2}$", ".*broken.*", "damaged.*box.*refund", "(\\w+ )*x", "[^a-z]{3}"),
        *("^(\\d{1,3}\\.){3}\\d{1,3}$", "(?i)\\bRefund(ed|s)?\\b", "[\\w.]+@[\\w.]+", "(?:foo|bar)+!", "é$"),
        *("(?s)a.b", "a\\Z", "x{,3}y{2,}", "\\u4e2d+", "[α-ω]{3}", "[^\\x00-\\x7f]", "(?x) a b # c"),
    ],
)
def test_patterns_that_one_writes_have_an_example(pattern: str) -> None:
    text = found_by(pattern)
    assert text is not None and re.search(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(?=.*\\d)a", "look-ahead"), ("^(?!.*refund)", "look-ahead"), ("(?<=a)b", "look-behind"),
        ("(a)\\1", "references to groups"), ("(a)?(?(1)b|c)", "references to groups"),
        ("a++", "possessive repeats"), ("(?>a)", "atomic groups"), ("a{1001}", "repetition size"),
        ("(a{100}){100}", "repetition size"), ("\\w{1000}", "too large"), ("\\z", "is no regular expression"),
        ("\\p{L}", "is no regular expression"), ("(?<n>a)", "is no regular expression"),
        ("x" * 501, "at most 500"),
    ],
)  # fmt: skip
def test_what_is_refused_is_said_in_one_phrase_and_is_found_nowhere(
    pattern: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        compiled(pattern)
    assert "\n" not in str(caught.value)
    assert not found_in(pattern, "a1bc")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|a)*$", "(a|ab)*$", "(\\s*\\w+)*$", "(a*)*b", "(?i:a+A)+$", "a*a*a*a*b", "(x+x+)+y",
     "((a{0,9}){0,9}){0,9}$", "(x?){40}y", "(.*?,){11}P", "(?i)(k+)+[^k]$"],
)  # fmt: skip
def test_no_text_keeps_a_pattern_busy(pattern: str) -> None:
    compiled(pattern)
    started = time.process_time()
    for text in ("a" * 50_000, "a" * 50_000 + "!\n!", "x" * 50_000, "a, " * 16_000, "k" * 50_000):
        found_in(pattern, text)
    assert time.process_time() - started < 1


def test_half_a_surrogate_pair_is_a_character_like_another() -> None:
    assert found_in("^.b$", "\ud800b") and found_in("^.b$", "\ud83d\ude00b")
    assert not found_in("[\\ud800-\\udfff]", "\ud800") and found_by("[\\ud800-\\udfff]") is None
