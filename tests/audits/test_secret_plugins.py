"""A plugin that is not asked about a text could not have found anything in it."""

import pytest
from hypothesis import given, strategies as st

from robustbench_tc.audits.hygiene import decoded
from robustbench_tc.audits.hygiene.secrets import _plugins, tokens

FOUND = [(name, regex) for name, plugin in _plugins().items() for regex in plugin.denylist]


@given(st.sampled_from(FOUND).flatmap(lambda one: st.tuples(st.just(one[0]), st.from_regex(one[1]))))
def test_what_a_plugin_would_find_is_found(one: tuple[str, str]) -> None:
    name, text = one
    wanted = {(name, value) for value in _plugins()[name].analyze_string(text) if value}
    assert wanted <= {(found.kind, found.value) for found in tokens(text)}


def test_the_plugins_are_asked_about_few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    for plugin in _plugins().values():
        monkeypatch.setattr(plugin, "analyze_string", asked.append)
    assert not tokens("A request about the weather in Lisbon, for the next 3 days, a plain one") and not asked


@given(
    st.sampled_from((decoded._BASE64, decoded._HEX)).flatmap(st.from_regex),
    st.sampled_from(("", "é", "/", "=")),
)
def test_texts_with_base64_or_hex_have_a_run_of_its_characters(match: str, beside: str) -> None:
    text = f"{beside}{match}{beside}"
    assert decoded._RUN in text.encode("ascii", "replace").translate(decoded._LETTERS)
