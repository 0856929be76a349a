"""BFCL's checker: counting and pairing, types, values (scoring.md section 3)."""

from typing import Any

from hypothesis import given, strategies as st

from robustbench_tc.eval.score import SCORERS, score
from robustbench_tc.schema import OMIT, Call, Json, Tool

from ..known import SOURCES
from ..refusals import refuses
from .texts import values


def tool(name: str = "f", required: tuple[str, ...] = (), **properties: Json) -> Tool:
    return Tool(name, "", {"type": "object", "properties": properties, "required": list(required)})


def reason(
    calls: list[Call], golden: list[Call], tools: list[Tool], category: str = "multiple"
) -> str | None:
    found = score(calls, source="bfcl_v3", category=category, golden_answers=(tuple(golden),), tools=tools)
    assert found.correct == (found.reason is None) == (found.score == 1.0)
    return found.reason


def value_reason(value: Json, accepted: list[Json], schema: Json) -> str | None:
    return reason([Call("f", {"x": value})], [Call("f", {"x": accepted})], [tool(x=schema)])


STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
NUMBERS = {"type": "array", "items": NUMBER}
STRINGS = {"type": "array", "items": STRING}
OBJECT = {"type": "object"}
OBJECTS = {"type": "array", "items": OBJECT}


def test_every_source_has_a_scorer_and_another_is_an_error() -> None:
    assert tuple(SCORERS) == (*SOURCES, "generic", "own")
    refuses("unknown source 'bfcl'", score, [], source="bfcl", category="", golden_answers=(), tools=())


def test_types_and_values() -> None:
    cases: list[tuple[Json, list[Json], Json, str | None]] = [
        ("New-York", ["new york"], STRING, None),
        ("it's", ['IT"S'], STRING, None),
        ("a!b", ["ab"], STRING, "wrong_value"),
        ("a\tb", ["ab"], STRING, "wrong_value"),
        ("é", ["e"], STRING, "wrong_value"),
        ("", ["a", OMIT], STRING, None),
        ("_-,", ["a", OMIT], STRING, None),
        ("", ["a"], STRING, "wrong_value"),
        (5, [5], INTEGER, None),
        (5.0, [5], INTEGER, "wrong_type"),
        (True, [1], INTEGER, "wrong_type"),
        (None, [5], INTEGER, "wrong_type"),
        (None, [None], INTEGER, None),
        (5, [5.0], NUMBER, None),
        (5, [OMIT], NUMBER, "wrong_value"),
        ("5", [5.0], NUMBER, "wrong_type"),
        (True, [True], BOOLEAN, None),
        ("true", [True], BOOLEAN, "wrong_type"),
        ("x", ["X", "y"], INTEGER, "wrong_value"),  # another type than declared: literally
        ("X", ["X"], INTEGER, None),
        ([1, 2], [[1, 2]], NUMBERS, None),
        ([1.5, 2], [[1.5, 2.0]], NUMBERS, "wrong_type"),
        ([1.5, 2], [[1.5, 2.0], OMIT], NUMBERS, None),  # an accepted value that is not a list fits any items
        ([2.0, 1.5], [[1.5, 2.0]], NUMBERS, "wrong_value"),
        ([], [[1.5], OMIT], NUMBERS, None),
        ([], [[1.5]], NUMBERS, "wrong_value"),
        ([], [], NUMBERS, "wrong_type"),
        (["A b"], [["ab"]], STRINGS, None),
        ([["A"]], [[["a"]]], {"type": "array", "items": STRINGS}, "wrong_value"),
        ("[1]", [[1]], NUMBERS, "wrong_type"),
        ({"k": "A b", "n": 1}, [{"k": ["ab"], "n": [1.0]}], OBJECT, None),
        ({"k": "a"}, [{"k": ["a"], "n": [1, OMIT]}], OBJECT, None),
        ({"k": "a"}, [{"k": ["a"], "n": [1]}], OBJECT, "wrong_value"),
        ({"k": "a", "z": 1}, [{"k": ["a"]}], OBJECT, "wrong_value"),
        ({}, [{"k": ["a"]}, OMIT], OBJECT, "wrong_value"),
        ([{"k": "A"}], [[{"k": ["a"]}]], OBJECTS, None),
        ([], [[{"k": ["a"]}], OMIT], OBJECTS, None),
        ([{"k": "a"}, {"k": "a"}], [[{"k": ["a"]}]], OBJECTS, "wrong_value"),
        ("any text", ["ANY TEXT"], {}, None),
        (5, [5], {}, None),
        (5, ["5"], {}, "wrong_type"),
        (["a"], [["a"]], {"type": "array"}, None),
        ("a", ["a"], {"type": ["string", "null"]}, None),
        (3, [3.0], {"type": ["null", "number"]}, None),  # the first word of the list that BFCL knows counts
        (3, [3.0], {"type": [["number"], "number"]}, None),
    ]
    wrong = [
        (value, accepted, schema, expected, got)
        for value, accepted, schema, expected in cases
        if (got := value_reason(value, accepted, schema)) != expected
    ]
    assert wrong == []


def test_a_number_larger_than_any_float_is_a_wrong_value() -> None:
    assert value_reason(10**400, [1.5], {"type": "number"}) == "wrong_value"


def test_names_keys_and_marks_of_omission() -> None:
    registry = [tool("f", ("a",), a=STRING, b=STRING, c=STRING)]
    golden = [Call("f", {"a": ["x"], "b": ["y", OMIT]})]
    assert reason([Call("f", {"a": "x"})], golden, registry) is None
    assert reason([Call("F", {"a": "x"})], golden, registry) == "wrong_name"
    assert reason([Call("f", {"b": "y"})], golden, registry) == "missing_parameter"
    assert reason([Call("f", {"a": "x", "c": "z"})], golden, registry) == "unexpected_parameter"
    assert (
        reason([Call("f", {"a": "x"})], [Call("f", {"a": ["x"], "b": ["y"]})], registry)
        == "missing_parameter"
    )
    assert reason([Call("g", {"a": "x"})], [Call("g", {"a": ["x"]})], registry) == "unknown_tool"


def test_counts() -> None:
    golden, registry = [Call("f", {})], [tool()]
    assert reason([], golden, registry) == "no_call"
    assert reason([Call("f", {})] * 2, golden, registry) == "call_count"
    assert reason([Call("f", {})] * 2, golden, registry, "parallel") == "call_count"


def test_a_simple_sample_means_its_first_tool() -> None:
    registry = [tool("f", x=STRING), tool("g", x=STRING)]
    assert reason([Call("f", {"x": "a"})], [Call("other", {"x": ["a"]})], registry, "simple_python") is None
    assert reason([Call("g", {"x": "a"})], [Call("g", {"x": ["a"]})], registry, "live_simple") == "wrong_name"


def test_pairing_is_greedy_in_the_golden_order() -> None:
    registry = [tool(x=STRING)]
    golden = [Call("f", {"x": ["a", "b"]}), Call("f", {"x": ["a"]})]
    a, b = Call("f", {"x": "a"}), Call("f", {"x": "b"})
    assert reason([a, b], golden, registry, "parallel") == "no_match"
    assert reason([b, a], golden, registry, "parallel") is None


@given(st.permutations(range(4)))
def test_parallel_calls_match_in_any_order_where_answers_differ(order: list[int]) -> None:
    registry = [tool(x=INTEGER)]
    golden = [Call("f", {"x": [number]}) for number in range(4)]
    assert reason([Call("f", {"x": number}) for number in order], golden, registry, "parallel") is None


@given(
    values, st.lists(values, max_size=3), st.sampled_from([STRING, INTEGER, NUMBERS, OBJECT, OBJECTS, {}, 5])
)
def test_no_value_makes_the_scorer_raise(value: Json, accepted: list[Json], schema: Any) -> None:
    assert value_reason(value, accepted, schema) in (None, "wrong_type", "wrong_value")


def test_the_best_of_several_answers_counts() -> None:
    tools = [Tool("f", "", {"type": "object", "properties": {"x": INTEGER}})]
    answers = tuple((Call("f", {"x": [value]}),) for value in (1, 2))
    for value, right in ((1, True), (2, True), (3, False)):
        found = score(
            [Call("f", {"x": value})],
            source="bfcl_v3",
            category="simple",
            golden_answers=answers,
            tools=tools,
        )
        assert found.correct is right, value
