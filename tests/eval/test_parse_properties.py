"""What holds of the parser for every text: it never raises, what is written reads back, work is bounded."""

import builtins
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from robustbench_tc.eval.parse import Parsed, around, cues, elements, lenient, parse, python_literals
from robustbench_tc.eval.parse.context import ALLOWANCE, ParseContext
from robustbench_tc.eval.parse.python_calls import whole
from robustbench_tc.eval.prompts.calls import FORMATS, python_calls, render_calls
from robustbench_tc.schema import Call, dumps, loads

from ..conftest import NIGHTLY
from ..known import SOURCES
from . import texts

FORMATS_OF = {"python_calls": "bfcl_v3", "tool_call_tags": "apibank", "react": "toolalpaca"}

MORE = 4 if NIGHTLY else 1
"""Times as many examples and characters by night."""

FUZZED = int(os.environ.get("RBTC_FUZZED", "50"))
"""Texts that every source reads; `make fuzz` has 100,000."""


@settings(max_examples=2_000)
@given(texts.replies | st.text(max_size=40), st.sampled_from(SOURCES), st.sampled_from([(), texts.TOOLS]))
@example("ping?a=1&=2", "bfcl_v3", ())
def test_no_text_makes_the_parser_raise_and_what_it_finds_can_be_stored(
    text: str, source: str, tools: tuple[Any, ...]
) -> None:
    parsed = parse(text, source=source, tools=tools)
    assert bool(parsed.calls) == (parsed.variant is not None)
    assert loads(dumps(parsed.calls)) == [{"name": c.name, "parameters": c.parameters} for c in parsed.calls]


@settings(max_examples=FUZZED, database=None)
@given(texts.replies | st.text())
def test_every_source_reads_any_text_in_50_ms(text: str) -> None:
    for source in SOURCES:
        seconds = 0.05
        for _ in range(3):  # a pause of the machine is not the parser's
            started = time.thread_time()
            parsed = parse(text, source=source, tools=texts.TOOLS)
            seconds = min(seconds, time.thread_time() - started)
            if seconds < 0.05:
                break
        dumps(parsed.calls)
        assert seconds < 0.05, source


@given(st.lists(texts.values | st.dictionaries(st.text(max_size=8), texts.values), max_size=3))
def test_no_native_calls_make_the_parser_raise(native: list[Any]) -> None:
    assert isinstance(parse("", source="bfcl_v3", tool_calls=native), Parsed)


@settings(max_examples=50 * MORE)
@given(st.lists(texts.calls, min_size=1, max_size=3), st.sampled_from(sorted(FORMATS)))
@example([Call("ping", {"zip code": None, "a": "", "class": "x"})], "python_calls")
def test_what_is_written_in_a_format_reads_back(calls: list[Call], output_format: str) -> None:
    parsed = parse(render_calls(calls, output_format), source=FORMATS_OF[output_format])
    assert parsed.calls == tuple(calls)
    assert parsed.flags == ()


@settings(max_examples=50 * MORE)
@given(st.lists(texts.calls, min_size=1, max_size=2), st.sampled_from(SOURCES))
def test_every_source_reads_every_format(calls: list[Call], source: str) -> None:
    text = python_calls(calls)
    assert parse(f"```python\n{text}\n```", source=source).calls == tuple(calls)


@settings(max_examples=250 * MORE)
@given(texts.replies)
def test_the_short_way_says_what_the_general_way_says(text: str) -> None:
    found = python_literals.calls(text.strip())
    if found is not None:
        assert found == whole(text.strip(), ParseContext("bfcl_v3", ()))


@settings(max_examples=600 * MORE)
@given(texts.replies, st.sampled_from(SOURCES), st.sampled_from([(), texts.TOOLS]))
def test_the_short_way_of_a_whole_reply_says_what_the_general_way_says(
    text: str, source: str, tools: tuple[Any, ...]
) -> None:
    both_ways_agree(text, source, tools)


# Drawing calls takes ten times what reading them does, and half of `texts.replies` are written calls too.
@settings(max_examples=50 * MORE)
@given(
    st.lists(texts.calls, min_size=1, max_size=3),
    st.sampled_from(sorted(FORMATS)),
    st.sampled_from(SOURCES),
    st.sampled_from([(), texts.TOOLS]),
)
def test_the_short_way_of_written_calls_says_what_the_general_way_says(
    calls: list[Call], output_format: str, source: str, tools: tuple[Any, ...]
) -> None:
    both_ways_agree(render_calls(calls, output_format), source, tools)


def both_ways_agree(text: str, source: str, tools: tuple[Any, ...]) -> None:
    short = parse(text, source=source, tools=tools)
    # Wire names to map back keep a reply from the short way.
    general = parse(text, source=source, tools=tools, name_back=str)
    assert (short.calls, short.variant, short.flags) == (general.calls, general.variant, general.flags)


HOSTILE = texts.hostile(25_000 * MORE)


def test_hostile_texts_return(subtests: pytest.Subtests) -> None:
    for kind in HOSTILE:
        with subtests.test(kind=kind):
            for source in SOURCES:
                assert dumps(parse(HOSTILE[kind], source=source, tools=texts.TOOLS).calls)


@pytest.mark.parametrize("unit", ["{", '{"a":', "[f(", "f(a=1)\n", "[f(a=b'x')]\n", "<tool_call>{"])
def test_the_work_on_one_text_is_bounded(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[ParseContext] = []

    def kept(*args: Any, **named: Any) -> ParseContext:
        readings.append(ParseContext(*args, **named))
        return readings[-1]

    monkeypatch.setattr("robustbench_tc.eval.parse.reader.ParseContext", kept)
    parse(unit * 20_000, source="bfcl_v3")
    (reading,) = readings
    # The last attempt may overdraw by its own cost, no more.
    assert reading.left > -2 * ALLOWANCE


CODE = [
    "[f(a=__import__('os').system('true'))]",
    "[f(a=open('{path}', 'w').write('x'))]",
    "[f(a=eval(\"open('{path}', 'w')\"))]",
    "[f(a=1+open('{path}', 'w'))]",
    "[open('{path}', 'w')(x=1)]",
    "ping(host=exec(\"open('{path}', 'w')\"))",
    "{{'name': 'f', 'parameters': {{'a': open('{path}', 'w')}}}}",
    "Action: f\nAction Input: {{'a': open('{path}', 'w')}}",
]


@pytest.mark.parametrize("text", CODE)
def test_code_in_arguments_is_never_run(text: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*args: object, **named: object) -> None:
        raise AssertionError("model text was run")

    guarded: dict[str, Callable[..., Any]] = {"eval": forbidden, "exec": forbidden, "open": forbidden}
    for name, function in guarded.items():
        monkeypatch.setattr(builtins, name, function)
    monkeypatch.setattr(os, "system", forbidden)
    path = tmp_path / "made"
    found = [parse(text.format(path=path), source=source, tools=texts.TOOLS) for source in SOURCES]
    monkeypatch.undo()
    assert len(found) == len(SOURCES)
    assert not path.exists()


def test_warnings_of_the_python_parser_stay_inside(recwarn: pytest.WarningsRecorder) -> None:
    assert parse(r'[f(a="\d", b=1if True else 2, c=0x1for x)]', source="bfcl_v3").calls == ()
    for number in ("0x" + "1" * 40, "1" * 50, "1.5", "1e5", "2j"):
        assert parse(f"[f(a={number}if True else 2)]", source="bfcl_v3").calls == ()
    assert parse(r'[f(a="\d")]', source="bfcl_v3").calls == (Call("f", {"a": r"\d"}),)
    assert not recwarn.list


# --- What reading costs of a reply's allowance, and how deep the short way looks.
#
# Which hostile texts are given up depends on it, so a change is another reader: it needs a READER_VERSION
# of its own.


def cost(text: str) -> int:
    """Of reading a list loosely."""
    context = ParseContext("bfcl_v3", ())
    assert lenient.read_container(text, 0, context) is not None
    return ALLOWANCE - context.left


@pytest.mark.parametrize(("characters", "units"), [(127, 1), (128, 1), (255, 2), (1279, 10)])
def test_a_loose_string_costs_a_unit_for_128_characters(characters: int, units: int) -> None:
    """The closing quote counts."""
    assert cost(f'["{"a" * characters}"]') - cost('[""]') == units


def test_an_attribute_costs_six_units() -> None:
    context = ParseContext("bfcl_v3", ())
    opening = elements.opening_at(' host="a" port="b" path="c"/>', 0, context)
    assert opening is not None and opening.attributes == {"host": "a", "port": "b", "path": "c"}
    assert ALLOWANCE - context.left == 3 * 6
    context.left = 2 * 6
    assert elements.opening_at(' host="a" port="b" path="c"/>', 0, context) is None


@pytest.mark.parametrize(("depth", "short"), [(1, True), (8, True), (9, False)])
def test_the_short_way_reads_eight_levels_and_leaves_more_to_the_general_way(depth: int, short: bool) -> None:
    text = f"f(a={'[' * depth}1{']' * depth})"
    assert (python_literals.calls(text) is not None) == short
    (call,) = parse(text, source="bfcl_v3").calls
    if short:
        assert python_literals.calls(text) == [call]


@pytest.mark.parametrize("words", [0, 1, 40])
def test_code_in_front_of_a_call_is_left_out_of_the_words_there(words: int) -> None:
    front = "word " * words + "Please call "
    text = front + "result = "
    assert around.lead_of(text, len(text)) == around.lead_of(front, len(front))


def test_alternatives_in_groups_and_classes_stay_together() -> None:
    assert cues._alternatives(r"(a|b)c|[|]d|\|e|((f|g)|h)|i") == ["(a|b)c", "[|]d", r"\|e", "((f|g)|h)", "i"]
