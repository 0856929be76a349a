"""A schema that is asked about in parts gets the verdict that the whole gets."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from robustbench_tc.audits.hygiene import schemas
from robustbench_tc.schema import dumps, loads

VALUES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(("", "string", "#/a"))
)

SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    VALUES | st.just({}),
    lambda inner: st.dictionaries(
        st.sampled_from("type required enum minimum minLength pattern $ref default x".split()),
        VALUES | st.lists(VALUES, max_size=2),
        max_size=3,
    ).flatmap(
        lambda plain: st.dictionaries(
            st.sampled_from(("properties", "items", "$defs", "anyOf", "not", "propertyNames")),
            inner
            | st.lists(inner, max_size=2)
            | st.dictionaries(st.sampled_from(("a", "type", "$id")), inner, max_size=2),
            max_size=2,
        ).map(lambda nested: {**plain, **nested})
    ),
    max_leaves=12,
)


@given(SCHEMAS)
def test_parts_are_judged_as_the_whole_is(schema: Any) -> None:
    whole = next(schemas._validator().iter_errors(loads(dumps(schema))), None) is None
    assert schemas._valid_in_parts(schema) == whole


def test_both_verdicts_come_about() -> None:
    inner = {"type": "object", "properties": {"type": {"type": "string"}, "properties": {"enum": [1]}}}
    assert schemas._valid_in_parts({"properties": {"a": inner}, "required": ["a"]})
    inner["properties"]["type"] = {"type": "text"}  # type: ignore[index]
    assert not schemas._valid_in_parts({"properties": {"a": inner}})
    assert schemas.invalid({"properties": {"a": inner}}) == (
        "not a JSON Schema: anyOf at /properties/a/properties/type/type"
    )
