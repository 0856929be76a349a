"""Every source states all that the other rooms need to know of it."""

from collections.abc import Sequence

import msgspec
import pytest

from robustbench_tc import sources
from robustbench_tc.builders.sources import READERS, base as facts
from robustbench_tc.builders.sources.base import Reader
from robustbench_tc.eval.parse import parse
from robustbench_tc.eval.prompts import system_text
from robustbench_tc.eval.score import has_scorer, score, scorer_of
from robustbench_tc.schema import ANY, OMIT, Call, GoldenAnswer, Tool
from robustbench_tc.sources import Source

from ...known import SOURCES
from ...refusals import refuses


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_source_states_every_fact_and_pins_what_it_reads(reader: Reader) -> None:
    assert facts.problems(reader, READERS, has_scorer) == []
    assert callable(scorer_of(reader.name))


def test_a_fact_that_is_left_out_or_of_a_wrong_kind_is_named() -> None:
    with pytest.raises(TypeError, match="Missing required argument 'order'"):
        Reader(name="errands", files=(), read_file=READERS[0].read_file)  # type: ignore[call-arg]
    reader = msgspec.structs.replace(READERS[0], output_format="yaml")
    with pytest.raises(ValueError, match="output_format"):
        facts.all_facts([reader, *READERS[1:]], has_scorer)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"order": 2}, "order 2 is taken by apibank"),
        ({"files": ()}, "it names no file"),
        ({"files": ("bfcl/new.json",), "answers_of": None}, "bfcl/new.json is not pinned"),
        ({"scorer": "nobody"}, "bfcl_v3: scorer names 'nobody', and there is no such scorer"),
        ({"scorer": "robustbench_tc.sources:no_such"}, "scorer names 'robustbench_tc.sources:no_such'"),
        ({"scorer": "robustbench_tc.no_such:score"}, "scorer names 'robustbench_tc.no_such:score'"),
        ({"name": "bfcl__v4"}, "a plain word without `__`"),
    ],
)
def test_a_fact_that_cannot_be_is_named(changed: dict[str, object], words: str) -> None:
    found = facts.problems(msgspec.structs.replace(READERS[0], **changed), READERS, has_scorer)
    assert any(words in problem for problem in found), found


# --- a source that brings its own, or nothing ----------------------------------------------------------


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> dict[str, Source]:
    """Sources that only this test has."""
    known = {source.name: source for source in sources.sources()}
    monkeypatch.setattr(sources, "_by_name", lambda: known)
    return known


def source(name: str, scorer: str, **changed: object) -> Source:
    plain: dict[str, object] = {
        "order": 9,
        "output_format": "tool_call_tags",
        "one_call": True,
        "single_gold_tool": True,
    }
    plain |= {"shown_last": False, "rows": {"paper": 0, "bundled": 0}, "paper": False}
    return msgspec.convert({"name": name, "scorer": scorer} | plain | changed, Source)


def exactly_one(
    calls: list[Call], category: str, golden_answers: list[GoldenAnswer], tools: list[Tool]
) -> str | None:
    """A scorer of a source's own: any one call will do."""
    return None if len(calls) == 1 else "call_count"


def judged(name: str, calls: list[Call], golden: list[Call]) -> tuple[bool, str | None]:
    found = score(calls, source=name, category="", golden_answers=[tuple(golden)], tools=[])
    return found.correct, found.reason


def test_a_source_may_bring_its_own_scorer(added: dict[str, Source]) -> None:
    added["own_scored"] = source("own_scored", f"{__name__}:exactly_one")
    golden = [Call("something", {})]
    assert judged("own_scored", [Call("anything", {})], golden) == (True, None)
    assert judged("own_scored", [], golden) == (False, "call_count")
    assert judged("own_scored", [Call("anything", {})], []) == (False, "unexpected_call")


def in_its_own_words(calls: Sequence[Call], *_: object) -> object:
    """A scorer's answer: what the first call is named, so that a test says what it returns."""
    return {"yes": None, "truth": True, "silence": ""}.get(calls[0].name, calls[0].name)


def test_a_scorer_of_its_own_gives_any_reason_in_a_word(added: dict[str, Source]) -> None:
    added["own_words"] = source("own_words", f"{__name__}:in_its_own_words")
    golden = [Call("something", {})]
    assert judged("own_words", [Call("yes", {})], golden) == (True, None)
    assert judged("own_words", [Call("too_salty", {})], golden) == (False, "too_salty")
    for name, returned in (("truth", "True"), ("silence", "''")):
        refuses(
            f"source own_words: its scorer .* returned {returned}: return None",
            judged,
            "own_words",
            [Call(name, {})],
            golden,
        )


@pytest.mark.parametrize("scorer", ["nobody", "robustbench_tc.no_such:score", f"{__name__}:no_such"])
def test_a_scorer_that_there_is_not_is_named(added: dict[str, Source], scorer: str) -> None:
    name = f"unscored_{abs(hash(scorer))}"
    added[name] = source(name, scorer)
    refuses(f"source {name}: no scorer", judged, name, [], [])


def test_a_new_source_is_read_as_its_output_format_is_written_and_asked_as_it_says(
    added: dict[str, Source],
) -> None:
    added["errands"] = source("errands", "generic")
    text = '<tool_call>\n{"name": "f", "parameters": {"a": 1}}\n</tool_call>'
    assert parse(text, source="errands").calls == (Call("f", {"a": 1}),)
    assert "Make exactly one call." in system_text("tool_call_tags", "errands", ())
    added["errands2"] = source("errands2", "generic", output_format="python_calls", one_call=False)
    assert parse("[f(a=1)]", source="errands2").calls == (Call("f", {"a": 1}),)
    assert "several calls" in system_text("python_calls", "errands2", ())
    refuses("unknown source 'errends'", parse, "", source="errends")


@pytest.mark.parametrize(
    ("calls", "golden", "verdict"),
    [
        ([Call("f", {"a": 1})], [Call("f", {"a": [1]})], (True, None)),
        ([Call("f", {"a": 1.0})], [Call("f", {"a": [2, 1]})], (True, None)),
        ([Call("f", {"a": True})], [Call("f", {"a": [1]})], (False, "wrong_value")),
        ([Call("f", {"a": "x"})], [Call("f", {"a": [ANY]})], (True, None)),
        ([Call("f", {})], [Call("f", {"a": [ANY]})], (False, "missing_parameter")),
        ([Call("f", {})], [Call("f", {"a": ["x", OMIT]})], (True, None)),
        ([Call("f", {"a": "x", "b": 1})], [Call("f", {"a": ["x"]})], (False, "unexpected_parameter")),
        ([Call("g", {"a": "x"})], [Call("f", {"a": ["x"]})], (False, "wrong_name")),
        ([], [Call("f", {})], (False, "no_call")),
        ([Call("f", {})] * 2, [Call("f", {})], (False, "call_count")),
        # the first predicted call fits both golden calls, the second only one: order must not matter
        (
            [Call("f", {"a": 1}), Call("f", {"a": 2})],
            [Call("f", {"a": [1, 2]}), Call("f", {"a": [1]})],
            (True, None),
        ),
        ([Call("f", {"a": 2})] * 2, [Call("f", {"a": [1, 2]}), Call("f", {"a": [1]})], (False, "no_match")),
    ],
)
def test_the_generic_scorer(
    added: dict[str, Source], calls: list[Call], golden: list[Call], verdict: tuple[bool, str | None]
) -> None:
    added["plain"] = source("plain", "generic")
    assert judged("plain", calls, golden) == verdict
    assert judged("plain", calls[::-1], golden[::-1]) == verdict


# --- A user's own tools are a source that no published dataset, prompt version or pin knows


def test_own_tools_are_a_source_beside_the_published_ones() -> None:
    own = sources.get(sources.OWN)
    assert (own.scorer, own.output_format) == ("own", "tool_call_tags")
    assert own.single_gold_tool and not own.one_call and not own.paper
    assert own.order > max(source.order for source in sources.sources())
    assert sources.OWN not in {*sources.names(), *SOURCES, *(reader.name for reader in READERS)}
    assert sources.in_tables() == (*sources.names(), sources.OWN), "tables count own rows last"
    refuses(r"'ownn'.*own", sources.get, "ownn")
