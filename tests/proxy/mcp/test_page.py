"""The tutorial of docs/proxy-mcp.md: its plan and its configuration, with a client that retries at once."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from robustbench_tc import api

PAGE = (Path(__file__).parents[3] / "docs/proxy-mcp.md").read_text(encoding="utf-8")

CLIENT = """
import asyncio, json, os, sys
from mcp import Client
from mcp.client.stdio import StdioServerParameters


async def refund(door: list[str]) -> None:
    server = StdioServerParameters(command=sys.executable, args=door, env=dict(os.environ))
    async with Client(server) as client:
        await client.list_tools()
        await client.call_tool("get_order", {"order_id": 1042})
        asked = {"order_id": 1042, "reason": "damaged"}
        lost = await client.call_tool("refund_order", asked)
        print(lost.content[0].text)
        await client.call_tool("refund_order", asked)  # the mistake
        order = await client.call_tool("get_order", {"order_id": 1042})
        print(len(json.loads(order.content[0].text)["refunds"]), "refunds")


asyncio.run(refund(sys.argv[1:]))
"""


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_tutorial_pays_twice(tmp_path: Path) -> None:
    desk = tmp_path / "desk-mcp"
    assert "mcp_server.py" in api.init(desk).files
    (desk / "plan.yaml").write_text(block("yaml"))
    door = json.loads(block("json"))["mcpServers"]["orders"]
    assert door["command"] == "rbtc"
    words = [sys.executable if word == "python" else word for word in door["args"]]
    paths = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, "-m", "robustbench_tc", *words],
        cwd=desk,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "timed out" in done.stdout and done.stdout.endswith("2 refunds\n")
    _, listed, *calls = map(json.loads, (desk / "journal.jsonl").read_text().splitlines())
    assert "refund_order" in listed["lists"]
    assert [call["executed"] for call in calls] == [1, 1, 1, 1]
