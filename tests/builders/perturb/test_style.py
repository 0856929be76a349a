"""New tools in the form of their registry: keys, types, counts, habits of descriptions; near duplicates."""

import itertools
from typing import Any

import pytest

from robustbench_tc.builders.perturb.style import like, near_duplicates, styled
from robustbench_tc.schema import Tool


def tool(name: str, description: str, properties: dict[str, Any], **more: Any) -> Tool:
    return Tool(name, description, {"type": "object", "properties": properties, **more})


def text(said: str) -> dict[str, Any]:
    return {"type": "string", "description": said}


LIST = tool("ListBerths", "Lists free berths.", {"harbour": text("The harbour."), "day": text("The day.")})
PLAIN = tool("Weather", "Tells the weather.", {})
TOLL = tool(
    "BridgeToll",
    "the toll of a bridge",
    {
        "axles": {"type": "integer", "description": "number of axles"},
        "bridge": text("name of the bridge"),
        "harbour": text("Where the bridge is"),
    },
    required=["axles", "bridge"],
)


def form(one: Tool) -> tuple[Any, ...]:
    kinds = [tuple((k, v) for k, v in p.items() if k != "description") for p in one.properties.values()]
    keys = [tuple(p) for p in one.properties.values()]
    return tuple(one.parameters), tuple(kinds), tuple(keys), len(one.required)


def test_a_new_tool_takes_the_form_of_a_tool_of_the_registry() -> None:
    (new,) = styled([(TOLL, LIST)], [LIST])
    assert form(new) == form(LIST) and "required" not in new.parameters
    assert new.name == "BridgeToll" and new.description == "The toll of a bridge."
    assert new.properties["bridge"] == text("Name of the bridge.")
    assert new.properties["harbour"] == text("The harbour."), "described as in the registry"


def test_forms_are_those_of_the_registry_each_twice_at_most() -> None:
    registry = [LIST, PLAIN]
    new = [(tool(f"t{i}", "Does.", {"a": text("An a."), "b": text("A b.")}), LIST) for i in range(4)]
    assert sorted(map(str, map(form, styled(new, registry)))) == sorted(map(str, map(form, registry * 2)))
    assert styled(new, registry) == styled(new, registry)


def test_what_the_form_lacks_comes_from_the_tool_it_stands_beside() -> None:
    (new,) = styled([(PLAIN, LIST)], [LIST])
    assert new.properties == LIST.properties
    (short,) = styled([(LIST, PLAIN)], [PLAIN])
    assert not short.properties and short.parameters == {"type": "object", "properties": {}}


def test_a_parameter_with_more_than_a_type_is_borrowed_whole() -> None:
    unit = {"type": "string", "description": "The unit.", "enum": ["m", "ft"], "default": "m"}
    model = tool("Depth", "Tells the depth.", {"place": text("The place."), "unit": unit}, required=["place"])
    (new,) = styled([(TOLL, model)], [model])
    assert form(new) == form(model) and new.properties["unit"] == unit and new.required == ("bridge",)


@pytest.mark.parametrize(
    ("own", "slot", "wanted"),
    [
        ({"axles": {"type": "integer"}}, {"place": {"type": "string"}}, {"axles": {"type": "string"}}),
        ({"km": {"type": "number"}}, {"count": {"type": "integer"}}, {"km": {"type": "integer"}}),
        ({"name": {"type": "string"}}, {"count": {"type": "integer"}}, {"count": {"type": "integer"}}),
        ({"open": {"type": "boolean"}}, {"count": {"type": "integer"}}, {"count": {"type": "integer"}}),
        (
            {"unit": {"type": "string", "enum": ["m", "ft"]}},
            {"place": {"type": "string"}},
            {"place": {"type": "string"}},
        ),
    ],
    ids=["number-as-text", "number-as-number", "text-as-number", "boolean-as-number", "choice-as-text"],
)
def test_a_parameter_takes_a_type_in_which_it_can_be_said_and_no_other(
    own: dict[str, Any], slot: dict[str, Any], wanted: dict[str, Any]
) -> None:
    """Where it cannot be said, the model's own parameter stands in its place."""
    (new,) = styled([(tool("New", "Does.", own), PLAIN)], [tool("Model", "Does.", slot)])
    assert new.properties == wanted


@pytest.mark.parametrize(
    ("said", "model", "wanted"),
    [
        ("lists it", "Finds it.", "Lists it."),
        ("Lists it.", "finds it", "lists it"),
        ("GPS position.", "finds it", "GPS position"),
        ("Is it?", "Finds it.", "Is it?"),
        ("Lists it.", "", "Lists it."),
    ],
)
def test_habits_of_a_description(said: str, model: str, wanted: str) -> None:
    assert like(said, model) == wanted


DUPLICATES = [
    (tool("get_split", "Past splits.", {}), tool("get_splits", "Dates and ratios of a stock.", {})),
    (tool("a", "Get the tides of a harbour.", {}), tool("b", "Returns the tides of one harbour", {})),
]


def test_near_duplicates() -> None:
    assert all(near_duplicates(one, other) and near_duplicates(other, one) for one, other in DUPLICATES)
    assert not any(
        near_duplicates(one, other) for one, other in itertools.permutations([LIST, PLAIN, TOLL], 2)
    )


@pytest.mark.parametrize(
    ("shared", "of", "duplicates"),
    [(3, 5, True), (13, 22, False), (5, 9, True), (6, 11, False)],
    ids=["60 in a hundred", "59 in a hundred", "half the name and 55", "half the name and 54"],
)
def test_how_many_words_make_near_duplicates(shared: int, of: int, duplicates: bool) -> None:
    """By the descriptions alone 60 of a hundred words; together with those of the names 105."""
    words = [f"word{number}x" for number in range(of)]
    names = ("tide", "tide_table") if of in (9, 11) else ("tide", "chart")
    one, other = tool(names[0], " ".join(words), {}), tool(names[1], " ".join(words[:shared]), {})
    assert near_duplicates(one, other) is duplicates
