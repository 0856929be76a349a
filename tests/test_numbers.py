"""The one formatter: digits, signs, and what stands for nothing."""

import msgspec
import pytest
from hypothesis import given, strategies as st

from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.io import numbers, templates


@pytest.mark.parametrize(
    ("value", "sign", "text"),
    [(0.1234, False, "0.123"), (-0.5, False, "-0.500"), (0.5, True, "+0.500"), (-0.0001, True, "0.000")],
)
def test_a_number_has_its_sign_and_zero_has_none(value: float, sign: bool, text: str) -> None:
    assert numbers.number(value, sign=sign) == text


def test_what_is_not_there_is_a_dash() -> None:
    for spell in (
        numbers.number,
        numbers.signed,
        numbers.percent,
        numbers.points,
        numbers.p_value,
        numbers.size,
    ):
        assert spell(None) == "–"
    assert numbers.number(None, none="") == numbers.percent(None, none="") == ""


def test_every_kind_has_its_form() -> None:
    found = Interval(0.1, -0.05, 0.25, 10)
    assert numbers.interval(found) == "[-0.050, 0.250]"
    assert numbers.interval(found, 1, sign=True) == "[-0.1, +0.2]"
    assert (numbers.percent(0.2634), numbers.points(-0.012)) == ("26.3 %", "-1.2")
    assert [numbers.p_value(p) for p in (0.5, 0.001, 0.00032)] == ["0.500", "0.001", "3e-04"]
    assert (numbers.size(7.0), numbers.size(0.5)) == ("7B", "0.5B")
    assert numbers.counts({"CD": 3, "TD": 4}) == "CD 3, TD 4"
    assert numbers.typeset("[-0.1, +0.2]") == "[−0.1, +0.2]"


@given(st.floats(-1e6, 1e6), st.integers(0, 6), st.booleans())
def test_no_digit_is_lost_or_made_up(value: float, digits: int, sign: bool) -> None:
    text = numbers.number(value, digits, sign=sign)
    assert float(text) == float(f"{value:.{digits}f}")
    assert text.startswith(("+", "-")) == (float(text) != 0 and (sign or value < 0))


def test_pages_get_the_same_digits_with_a_real_minus_and_escape_only_there() -> None:
    environment = templates.environment("robustbench_tc.eval.report")
    page = environment.from_string(
        "{{ x | number }} {{ x | signed(1) }} {{ y | interval }} {{ z | percent }}"
    )
    assert page.render(x=-0.25, y=Interval(0.0, -1.0, 1.0, 3), z=0.5) == "−0.250 −0.2 [−1.000, 1.000] 50.0 %"
    assert environment.autoescape("page.html.j2") and not environment.autoescape("report.md.j2")  # type: ignore[operator]
    with pytest.raises(Exception, match="'unknown' is undefined"):
        environment.from_string("{{ unknown }}").render()


@pytest.mark.parametrize("text", ["a|b", "`x` *b*", "<i>", "two\nlines", "[x](y)", "#"])
def test_plain_text_is_one_line_without_markup(text: str) -> None:
    found = templates.plain(text)
    assert "\n" not in found
    assert all(found[at - 1] == "\\" for at, c in enumerate(found) if c in "`*_[]<>|#")


def test_the_formatter_takes_any_interval_with_two_ends() -> None:
    class Ends(msgspec.Struct, frozen=True):
        low: float | None
        high: float | None

    assert numbers.interval(Ends(None, 0.5)) == "[–, 0.500]"
