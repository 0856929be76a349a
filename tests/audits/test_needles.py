"""A pattern that is not looked for could not have matched."""

import re

import pytest
from hypothesis import given, strategies as st

from robustbench_tc.audits.hygiene import decoded
from robustbench_tc.audits.hygiene.needles import Candidates, needs
from robustbench_tc.audits.hygiene.secrets import GUESSES, TOKENS, _plugins

PLUGINS = [regex for plugin in _plugins().values() for regex in plugin.denylist]
PATTERNS = [*PLUGINS, *(pattern.regex for pattern in (*TOKENS.values(), *GUESSES.values()))]
ALL = Candidates({regex.pattern: [regex] for regex in PATTERNS})

BESIDE = st.lists(
    st.sampled_from(
        (*"akcsi:/=.- \n\"'_@0", "AKC", "eyJ", "token", "KEY", "ſecret", "İ", "ı", "K", "xoxb-1-a")
    ),
    max_size=8,
).map("".join)


@given(st.sampled_from(PATTERNS).flatmap(st.from_regex), BESIDE)
def test_texts_that_a_pattern_matches_are_searched(match: str, beside: str) -> None:
    text = f"{beside}{match}{beside}"
    assert {regex.pattern for regex in PATTERNS if regex.search(text)} <= ALL.of(text)


EXPRESSIONS = (
    "ab+c",
    "(ab|cd)e?",
    "(?i)ab(k|s)",
    "a{0,2}bc",
    "(?=ab)c",
    "(?<!ab)c",
    "[ab]",
    "a|",
    "(?i:ab)c",
    "(a)(?(1)b|c)",
    "(?>ab|c)d",
    "a.b",
    "a*?",
    "(?:ab){2}",
    "(?i)\u017f",
    "(?i)\u0130a",
    "",
    r"a\b(?P<x>b)?(?P=x)",
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
@given(data=st.data())
def test_every_form_of_an_expression_keeps_its_matches(expression: str, data: st.DataObject) -> None:
    regex = re.compile(expression)
    text = data.draw(st.from_regex(regex) | st.text("abcdeksABCKS\u017f\u0130\u0131\u212a ", max_size=6))
    if regex.search(text):
        assert Candidates({"it": [regex]}).of(text) == {"it"}


def test_the_plugins_are_asked_about_few_texts() -> None:
    assert all(needs(regex).one_of for regex in PLUGINS)
    plugins = Candidates({regex.pattern: [regex] for regex in PLUGINS})
    assert not plugins.of("A request about the weather in Lisbon, for the next 3 days")
    assert plugins.of("à " + "x" * 100) == {one.pattern for one in PLUGINS if one.flags & re.IGNORECASE}
    assert needs(re.compile("(?i)Ab[0-9]{3}(k|s)")) == (6, ("ab",), True)


@given(
    st.sampled_from((decoded._BASE64, decoded._HEX)).flatmap(st.from_regex),
    st.sampled_from(("", "é", "/", "=")),
)
def test_texts_with_base64_or_hex_have_a_run_of_its_characters(match: str, beside: str) -> None:
    text = f"{beside}{match}{beside}"
    assert decoded._RUN in text.encode("ascii", "replace").translate(decoded._LETTERS)
