"""Faults of running systems behind the MCP door, with the official client."""

import time
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from robustbench_tc.schema.running import UNMADE

from .conftest import Desk, both
from .test_door import plan, text

ORDER = {"order_id": 1}


async def works(client: Any) -> Any:
    """Five calls, and the list before and after them."""
    before = [one.name for one in (await client.list_tools()).tools]
    names = ("get_order", "pay_order", "pay_order", "get_order")
    found = [await client.call_tool(name, ORDER) for name in names]
    found.append(await client.call_tool("set_note", {**ORDER, "note": "x"}))
    return before, found, [one.name for one in (await client.list_tools()).tools]


@both
def test_results_are_changed_and_calls_refused(desk: Desk) -> None:
    faults = (
        "kind: truncated, at: [1]",
        "kind: outage, at: [2]",
        "kind: latency, at: [3], seconds: 0.4",
        "kind: empty_result, rate: 1, tools: [get_order], arguments: {order_id: 1}",
        "kind: oversized, at: [5]",
    )
    began = time.monotonic()
    _, found, _ = desk.run(plan(*faults), works)
    assert time.monotonic() - began > 0.4
    assert text(found[0]).startswith('{"payments": ') and '"of"' not in text(found[0])
    assert [text(one) for one in found[1:]] == [
        UNMADE["outage"],
        '{"paid": true}',
        "{}",
        '{"saved": true}',
    ]
    assert [one.is_error for one in found] == [False, True, False, False, False]
    assert desk.executed == ["get_order", "pay_order", "get_order", "set_note"]
    met = [one["kind"] for line in desk.lines for one in line.get("replaced", ())]
    assert met == ["truncated", "outage", "latency", "empty_result"]
    assert desk.lines[4]["spared"][0]["label"] == "no_answer_fits"  # its results have a schema


def test_a_write_is_not_cut_short_unless_the_plan_allows_it(either: Desk) -> None:
    _, found, _ = either.run(plan("kind: truncated, at: [2, 3]"), works)
    assert text(found[1]) == '{"paid": true}'
    assert either.lines[1]["spared"][0]["label"] == "may_write"


@both
@pytest.mark.parametrize("calls", ["", ", calls: 2"])
def test_a_dropped_tool_is_in_no_list(desk: Desk, calls: str) -> None:
    before, found, after = desk.run(plan(f"kind: dropped_tool, at: [3], tools: [pay_order]{calls}"), works)
    assert "pay_order" in before and ("pay_order" in after) == bool(calls)
    assert [text(one) == UNMADE["dropped_tool"] for one in found] == [False, False, True, False, False]
    assert desk.executed == ["get_order", "pay_order", "get_order", "set_note"]


def test_a_fault_for_a_tool_that_the_server_has_not_is_an_error(either: Desk) -> None:
    async def asks(client: Any) -> str:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("get_order", ORDER)
        return str(caught.value)

    said = either.run(plan("kind: transient_timeout, at: [1], tools: [get_ordr]"), asks)
    assert "unknown tool 'get_ordr': did you mean get_order" in said and either.executed == []
