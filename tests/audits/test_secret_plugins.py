"""A plugin that is not asked about a text could not have found anything in it."""

from hypothesis import given, strategies as st

from robustbench_tc.audits.hygiene import decoded
from robustbench_tc.audits.hygiene.secrets import PLUGINS, _plugins

FOUND = [(name, regex) for name, plugin in _plugins().items() for regex in plugin.denylist]


def asked(text: str) -> set[str]:
    """The plugins that the table asks about a text or what it decodes to."""
    return {
        name
        for view in decoded.views(text)
        for name, (shortest, needles) in PLUGINS.items()
        if len(view) >= shortest and any(n in (view.lower() if n.islower() else view) for n in needles)
    }


@given(st.sampled_from(FOUND).flatmap(lambda one: st.tuples(st.just(one[0]), st.from_regex(one[1]))))
def test_texts_that_a_plugin_matches_are_searched(one: tuple[str, str]) -> None:
    name, text = one
    assert name in asked(text)


def test_the_plugins_are_asked_about_few_texts() -> None:
    assert not asked("A request about the weather in Lisbon, for the next 3 days")


@given(
    st.sampled_from((decoded._BASE64, decoded._HEX)).flatmap(st.from_regex),
    st.sampled_from(("", "é", "/", "=")),
)
def test_texts_with_base64_or_hex_have_a_run_of_its_characters(match: str, beside: str) -> None:
    text = f"{beside}{match}{beside}"
    assert decoded._RUN in text.encode("ascii", "replace").translate(decoded._LETTERS)
