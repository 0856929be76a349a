"""`rbtc score` and `rbtc proxy explain` of an MCP door's journal."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from robustbench_tc import api
from robustbench_tc.proxy.journal import read_exchanges
from robustbench_tc.proxy.scored import score as score_journal
from robustbench_tc.proxy.summary import summary

from .conftest import Desk, Remote

CASES = """
version: 1
tools: [tools.json]
read_only: [get_order, set_note]
cases:
- {id: pay, request: "Pay order 1.", expect: [{call: pay_order, arguments: {order_id: 1}}]}
- id: note
  request: "Put the note late on order 1 and read it."
  expect:
  - {call: set_note, arguments: {order_id: 1, note: late}}
  - {call: get_order, arguments: {order_id: 1}}
"""
NOTE: Any = ("set_note", {"order_id": 1, "note": "late"})
PAY: Any = ("pay_order", {"order_id": 1})


@pytest.fixture
def desk(tmp_path: Path, remote: Remote) -> Desk:
    (tmp_path / "tools.json").write_bytes(Path(__file__).with_name("ledger_tools.json").read_bytes())
    (tmp_path / "cases.yaml").write_text(CASES)
    types = ("same_name_A", "transient_timeout")
    api.build(cases=tmp_path / "cases.yaml", out=tmp_path / "bench", types=types)
    return Desk(tmp_path, "http", "auto", remote)


def test_a_journal_becomes_a_run(desk: Desk, tmp_path: Path) -> None:
    async def right(client: Any) -> None:
        await client.list_tools()
        found = await client.call_tool(*PAY)
        if found.is_error:
            await client.call_tool(*PAY)

    async def gives_up(client: Any) -> None:
        await client.list_tools()
        await client.call_tool(*PAY)

    async def forgets(client: Any) -> None:
        await client.list_tools()
        await client.call_tool(*NOTE)

    plan = "version: 1\nbench: bench\ntypes: [clean, same_name_A, transient_timeout]\n"
    for session, act in {
        "pay.0": right, "pay.1": right, "pay.2": right, "note.0": forgets, "note.2": gives_up,
    }.items():  # fmt: skip
        desk.run(plan, act, session=session)
    scored = score_journal(desk.journal, out=tmp_path / "run")
    verdicts = {
        one["id"]: one["correct"] for one in pq.read_table(tmp_path / "run/scores.parquet").to_pylist()
    }
    assert verdicts == {
        "own__pay::clean": True,
        "own__pay::same_name_A": True,
        "own__pay::transient_timeout": True,
        "own__note::clean": False,
        "own__note::transient_timeout": False,
    }
    assert scored.predictions == 5
    found = summary(read_exchanges(desk.journal))
    assert (found.sessions, found.calls) == (5, 6)
    met = {"met": 2, "called_again": 1, "answered": 1, "called_others": 0, "spared": 0, "stopped": 0}
    assert found.faults == {"transient_timeout": met}
    assert Counter(desk.executed) == {"pay_order": 3, "set_note": 1}
