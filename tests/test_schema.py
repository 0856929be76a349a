"""The contract: canonical JSON and the Parquet round trip keep every value and every byte."""

import io
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_tc import schema
from robustbench_tc.schema import Call, Change, Message, Sample, Tool

text = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
    | st.sampled_from(["123", "true", "null", '{"x":1}', '"quoted"', "[1]", ""]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(text, json_values, max_size=5)
tools = st.builds(Tool, name=st.sampled_from(["a", "a", "b.c"]) | text, description=text, parameters=objects)
calls = st.builds(Call, name=text, parameters=objects)
samples = st.builds(
    Sample,
    id=text,
    clean_id=text,
    type_code=st.just("clean"),
    source=st.sampled_from(schema.SOURCES),
    category=text,
    messages=st.lists(st.builds(Message, st.sampled_from(["user", "system"]), text)).map(tuple),
    tools=st.lists(tools, max_size=4).map(tuple),
    golden_answers=st.lists(st.lists(calls, max_size=2).map(tuple), max_size=2).map(tuple),
    output_format=text,
    gold_tool_index=st.none() | st.integers(0, 9),
    changes=st.lists(st.builds(Change, text, json_values, json_values), max_size=3).map(tuple),
    seed=st.integers(0, 2**40),
    injected_error=st.none() | text,
    flags=st.lists(text, max_size=2).map(tuple),
)


@given(json_values)
def test_canonical_json_keeps_every_value(value: Any) -> None:
    back = schema.loads(schema.dumps(value))
    assert back == value
    assert repr(back) == repr(value)  # 1 and 1.0, True and 1 stay apart; key order is kept


@given(st.lists(samples, max_size=3))
def test_a_parquet_round_trip_is_exact(rows: list[Sample]) -> None:
    buffer = io.BytesIO()
    pq.write_table(schema.arrow_table(rows), buffer)
    table = pq.read_table(io.BytesIO(buffer.getvalue()))
    assert [repr(schema.record(row, Sample)) for row in table.to_pylist()] == [repr(row) for row in rows]


@pytest.mark.parametrize("value", [float("nan"), [1, float("inf")], {"a": (None, -float("inf"))}, "\ud800"])
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        schema.dumps(value)


def test_a_null_is_not_mistaken_for_a_nan() -> None:
    assert schema.dumps({"a": None}) == '{"a":null}'
