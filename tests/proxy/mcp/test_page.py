"""The tutorial of docs/proxy-mcp.md, as it stands there."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from robustbench_tc import api

PAGE = (Path(__file__).parents[3] / "docs/proxy-mcp.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_tutorial_pays_twice(tmp_path: Path) -> None:
    desk = tmp_path / "desk-mcp"
    assert "mcp_server.py" in api.init(desk).files
    (desk / "plan.yaml").write_text(block("yaml"))
    (desk / "client.py").write_text(block("python"))
    paths = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "client.py"],
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
