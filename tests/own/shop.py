"""A small shop's tools and cases, written into a folder."""

import json
from pathlib import Path
from typing import Any


def tool(name: str, about: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return {"name": name, "description": about, "parameters": schema}


TEXT = {"type": "string", "description": "A text."}
NUMBER = {"type": "integer", "description": "The order's number."}

ORDERS = [
    tool("get_order", "Looks up one order.", order_id=NUMBER),
    tool("refund_order", "Pays money back.", order_id=NUMBER, reason=TEXT),
    tool("find", "Finds orders.", text=TEXT),
]
CRM = [
    tool("find", "Finds customers.", text=TEXT),
    tool("add_note", "Writes a note.", customer=TEXT, note=TEXT),
]

CASES = """version: 1
tools: [orders.json, crm.json]
read_only: [get_order]
cases:
- id: refund
  request: Please refund order 1042 because the parcel arrived broken.
  expect: [{call: refund_order, arguments: {order_id: 1042, reason: {regex: broken}}}]
- id: who
  request: Find the customer Miller for me please.
  expect: [{call: "crm:find", arguments: {text: Miller}}]
- {id: thanks, request: Thanks a lot for all your help!, expect: no_call}
- {id: vague, request: Please cancel it., expect: ask}
- id: either
  request: Tell me about order 99 please.
  any_of:
  - [{call: get_order, arguments: {order_id: 99}}]
  - [{call: "orders:find", arguments: {text: "99"}}]
- id: chain
  request: Look up order 8, then write the note "done" for its customer.
  ordered: true
  expect:
  - {call: get_order, arguments: {order_id: 8}}
  - {call: add_note, arguments: {customer: C-2, note: done}}
  results: {get_order: {customer: C-2}}
- id: several
  turns:
  - request: Please look up order 31.
    expect: [{call: get_order, arguments: {order_id: 31}}]
    results: {get_order: {state: shipped}}
  - {request: Now find all orders from Oslo., expect: [{call: "orders:find", arguments: {text: Oslo}}]}
"""


def write(folder: Path) -> Path:
    """The three files; the cases file's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "orders.json").write_text(json.dumps(ORDERS))
    listed = [  # as an MCP server lists them
        {"name": one["name"], "description": one["description"], "inputSchema": one["parameters"]}
        for one in CRM
    ]
    (folder / "crm.json").write_text(json.dumps({"tools": listed}))
    (folder / "cases.yaml").write_text(CASES)
    return folder / "cases.yaml"
