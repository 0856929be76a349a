"""What a trial changed: the same for all orders, clocks and ids, and never the same for two effects."""

import random
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from robustbench_tc.own.mcp_tools import Server
from robustbench_tc.own.tools import Entry, entries
from robustbench_tc.proxy.drill.effects import Effect, changes, constant, facts, tokens
from robustbench_tc.proxy.drill.inputs import Inputs, Missing, ToolInputs, new_keys
from robustbench_tc.proxy.drill.link import Answer
from robustbench_tc.proxy.drill.trials import AGAIN, ONCE, REPEATED, Drill, Trial
from robustbench_tc.proxy.drill.verdicts import judge
from robustbench_tc.schema import dumps

START = time.time()
WORDS = st.text("abcdefg {}#\\\"'é[]", max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


def server(items: list[Any], seed: int) -> dict[str, Any]:
    """What reads of one server show: ids of its own, in its own order, with its own times."""
    draw = random.Random(seed)
    at = START + 1.7 * seed  # as a drill has it: no two servers show the same second
    listed = [
        {
            "id": str(uuid.UUID(int=draw.getrandbits(128))),
            "body": item,
            "at": at,
            "on": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)),
        }
        for item in items
    ]
    draw.shuffle(listed)
    return {"list": {"items": listed}, "text": f"{len(items)} items\nasked at {time.ctime(at)}"}


def effect(before: list[Any], after: list[Any], seed: int) -> Effect:
    was, now = facts(server(before, seed)), facts(server(after, seed))
    shared = tokens(facts(server(before, -1))) & tokens(was)
    stable = shared | tokens(facts({"list": after})) | {"text", "body", "at", "on", "time", "asked"}
    return Effect(changes(was, now, shared), stable)


@given(st.lists(VALUES, max_size=3), VALUES, st.integers(0, 99), st.integers(100, 199))
def test_one_effect_is_the_same_on_two_servers_and_two_are_not(
    base: list[Any], new: Any, seed: int, other: int
) -> None:
    once, again = effect(base, [*base, new], seed), effect(base, [*base, new], other)
    twice = effect(base, [*base, new, new], other)
    assert once.changes and once.equals(again) and again.equals(once)
    assert not once.equals(twice) and not twice.equals(again)
    assert once.difference(again) == () and once.difference(twice)
    assert not effect(base, base, seed).changes, "neither order, nor ids, nor clocks are an effect"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"balance": 100}, {"balance": 90}, {"r.balance": {"by -10": 1}}),
        ("left: 5 of 7", "left: 4 of 7", {"r": {'by "left: -1 of +0"': 1}}),
        ("a {} 1", "a {} 2", {"r": {'by "a {} +1"': 1}}),
        ([3, 4], [4, 3], {}),
        ([1, 2], [1, 2, 2], {"r.[]": {"+ 2": 1}}),
        ([{"orderId": 7, "ok": 0}], [{"orderId": 7}], {"r.[orderId=7].ok": {"- 0": 1}}),
        ({"error": "not found"}, {"note": {}}, {"r.error": {'- "not found"': 1}, "r.note": {"+ {}": 1}}),
        (1e400, float("nan"), {"r": {"- Infinity": 1, "+ NaN": 1}}),
    ],
)  # fmt: skip
def test_a_change_is_told_by_its_place(before: Any, after: Any, told: dict[str, Any]) -> None:
    found = Effect(changes(facts({"r": before}), facts({"r": after}), frozenset()), frozenset())
    assert found._tree() == told


def verdict(shown: Sequence[Any], second: Answer, first: str = "done, 429 points left") -> str:
    """Of a write, by what a read shows after no call, one and two."""
    before, once, twice = (facts({"get": state}) for state in shown)
    done = Answer(None, first, False)
    trials = {kind: Trial(before, once, (done,)) for kind in (ONCE, AGAIN)}
    trials |= {kind: Trial(before, twice, (done, second)) for kind in REPEATED}
    drill = Drill(Server(command=("none",)), [], Inputs(), lambda _: None)
    drill.idle = Trial(before, before)
    found = judge(tool("charge", {}), trials, drill)
    assert found.is_safe == (found.verdict in ("idempotent", "refuses"))
    return found.verdict


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("429 Too Many Requests", "cannot be seen"),
        ("rate limit exceeded, retry later", "cannot be seen"),
        ("internal error, please try again", "cannot be seen"),
        ("invoice 500-17 was paid before", "refuses"),
        ("paid already, or try again later", "refuses"),
        ("no such account", "idempotent"),
    ],
)
def test_an_error_that_may_pass_shows_nothing_of_a_later_call(error: str, told: str) -> None:
    refused = Answer(None, error, True)
    assert verdict([0, 1, 1], refused, "paid 500-17, 429 left") == told


def test_a_time_that_a_write_moves_is_no_clock() -> None:
    """An alarm and a day that a call puts off by a step are the same on every server; a clock is not."""
    now, done = datetime.now(UTC), Answer(None, "done", False)
    alarm = (now + timedelta(minutes=25)).replace(second=0)
    for step, form in ((timedelta(minutes=1), "%H:%M"), (timedelta(days=1), "%Y-%m-%d")):
        moved = [(alarm + step * calls).strftime(form) for calls in range(3)]
        assert verdict(moved, done) == "doubles"
        assert verdict([*moved[:2], moved[1]], done) == "idempotent"
    at = [now + timedelta(seconds=60 * (now.second > 30) + second) for second in range(3)]
    for form in ("%H:%M", "%Y-%m-%dT%H:%MZ", "%H:%M:%S"):
        brought, later = (facts({"get": {"at": one.strftime(form)}}) for one in at[:2])
        assert not tokens(facts({"": at[0].strftime(form)})) & constant(brought, later)


def tool(name: str, properties: dict[str, Any], *, required: bool = True, **hints: bool) -> Entry:
    schema = {"type": "object", "properties": properties, "required": [*properties] if required else []}
    listed = [{"name": name, "inputSchema": schema, "annotations": hints}]
    return entries(dumps({"tools": listed}).encode(), "shop", "shop")[1]


RESULTS = {
    "list_orders": {"orders": [{"id": 1041, "customer": {"id": 7}, "sku": "MUG-12"}]},
    "list_carts": [{"id": "c-1", "total": 3.5}],
}


@pytest.mark.parametrize(
    ("name", "schema", "value"),
    [
        ("order_id", {"type": "integer"}, 1041),
        ("orderId", {"type": "integer"}, 1041),
        ("order_ids", {"type": "array", "items": {"type": "integer"}}, [1041]),
        ("customer_id", {"type": "integer"}, 7),
        ("cart_id", {"type": "string"}, "c-1"),
        ("id", {"type": "string"}, "c-1"),  # of the tool's own thing
        ("sku", {"type": "string"}, "MUG-12"),
        ("currency", {"enum": ["EUR", "USD"]}, "EUR"),
        ("size", {"type": "integer", "default": 3, "examples": [4]}, 3),
        ("city", {"type": "string", "examples": ["Bonn"]}, "Bonn"),
        ("line", {"properties": {"sku": {"type": "string"}}, "required": ["sku"]}, {"sku": "MUG-12"}),
        ("order_id", {"type": "string"}, None),  # an integer is none
        ("total", {"type": "number"}, None),  # no id
        ("title", {"type": "string"}, None),
        ("supplier_id", {"type": "integer"}, None),
    ],
)  # fmt: skip
def test_values_come_from_the_schema_and_from_what_reads_returned(name: str, schema: Any, value: Any) -> None:
    found = tool("update_cart", {name: schema})
    if value is None:
        with pytest.raises(Missing, match=name):
            Inputs().arguments(found, RESULTS, {})
        assert f'"update_cart": {{arguments: {{"{name}": …}}}}' in str(Inputs().lacking(found, RESULTS))
    else:
        assert Inputs().arguments(found, RESULTS, {}) == {name: value}
        given = Inputs(tools={"update_cart": ToolInputs(arguments={name: "mine"})})
        assert given.arguments(found, RESULTS, {}) == {name: "mine"}
    assert Inputs().arguments(tool("update_cart", {name: schema}, required=False), RESULTS, {}) == {}


@pytest.mark.parametrize(
    ("name", "hints", "kind"),
    [
        ("get_order", {}, "read"),
        ("get_order", {"destructiveHint": True}, "write"),
        ("pay_order", {}, "write"),
        ("pay_order", {"readOnlyHint": True}, "write"),
        ("sync_orders", {}, "write"),
        ("sync_orders", {"readOnlyHint": True}, "read"),
        ("get_or_create_user", {}, "write"),
        ("searchAndReplace", {}, "write"),
        ("list_set_and_update_dates", {}, "read"),
    ],
)
def test_a_tool_is_a_read_by_its_name_or_hint_and_else_a_write(
    name: str, hints: dict[str, bool], kind: Any
) -> None:
    found = tool(name, {}, **hints)
    assert Inputs().kind_of(found) == kind
    assert Inputs(tools={name: ToolInputs(kind="skip")}).kind_of(found) == "skip"
    keyed = tool(name, {"idempotency_key": {"type": "string"}}, **hints)
    assert Inputs().kind_of(keyed) == ("read" if name == "sync_orders" and hints else "write")
    one, two = (new_keys(keyed, RESULTS)["idempotency_key"] for _ in range(2))
    assert one != two and new_keys(found, RESULTS) == {}
    assert new_keys(tool("pay", {"client_id": {}}), {"list_clients": [{"client_id": 3}]}) == {}
