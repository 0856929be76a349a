"""Patterns of users mean what Python says, and no text keeps one busy."""

import re
import time
import unicodedata
import warnings

import pytest
from hypothesis import given, strategies as st

from robustbench_tc.eval.score.matchers.pattern_examples import example
from robustbench_tc.eval.score.matchers.patterns import compiled, found_in

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
PATTERNS = st.builds(lambda *parts: "".join(parts), FLAGS, BEGINS, PARTS, ENDS)


TEXTS = st.text(CHARACTERS, max_size=6).map(lambda text: unicodedata.normalize("NFC", text))


@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=8))
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
    made = example(pattern)
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
    text = example(pattern)
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
    assert not found_in("[\\ud800-\\udfff]", "\ud800") and example("[\\ud800-\\udfff]") is None
