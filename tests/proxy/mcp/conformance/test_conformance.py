"""The official conformance suite says the same of a server behind the door as of the server itself.

The suite and its Node are not this package's: `make test-doors` installs them.
"""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from robustbench_tc.api.proxy import proxied

from ..conftest import listening

NODE = Path(__file__).parents[4] / ".node-doors"
MODULES = NODE / "node_modules"
TOOLS = json.loads(Path(__file__).with_name("server_says.json").read_text())["tools"]
PLANS = {
    "idle": "version: 1\n",
    "never": "version: 1\nfaults:\n- {kind: transient_timeout, at: [100000]}\n",
    "types_after": "version: 1\ntypes: [same_name_A]\ntypes_after: 100000\n",
}

pytestmark = pytest.mark.skipif(
    not (NODE / "CACHEDIR.TAG").is_file(), reason=f"no {NODE.name}: `make test-doors` installs it"
)


def checked(address: str, folder: Path) -> list[tuple[str, str, str]]:
    """(scenario, check, status) of each check of the whole suite, the pending scenarios among them."""
    words = ["server", "--suite", "all", "--url", address, "--output-dir", str(folder)]
    suite = [MODULES / ".bin" / "node", MODULES / "@modelcontextprotocol/conformance/dist/index.js"]
    said = subprocess.run([*suite, *words], capture_output=True, text=True, timeout=300)
    assert "=== SUMMARY ===" in said.stdout, said.stderr
    return [
        (path.parent.name.partition("-20")[0], check["id"], check["status"])
        for path in sorted(folder.glob("*/checks.json"))
        for check in json.loads(path.read_text())
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("conformance")
    with listening(folder, Path(__file__).with_name("server.py")) as address:
        yield address


@pytest.fixture(scope="module")
def direct(server: str, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, str]]:
    return checked(server, tmp_path_factory.mktemp("direct"))


def test_the_server_itself_is_conformant(direct: list[tuple[str, str, str]]) -> None:
    statuses = Counter(status for _, _, status in direct)
    assert statuses["SUCCESS"] >= 35
    assert not statuses["FAILURE"]
    assert ("server-server-sse-polling", "server-sse-disconnect-resume", "SUCCESS") in direct


@pytest.mark.parametrize("plan", PLANS)
def test_each_check_is_the_same_behind_the_door(
    tmp_path: Path, server: str, direct: list[tuple[str, str, str]], plan: str
) -> None:
    (tmp_path / "plan.yaml").write_text(PLANS[plan])
    with proxied(tmp_path / "plan.yaml", mcp_url=server, journal=tmp_path / "journal.jsonl") as address:
        behind = checked(address.replace("/mcp", "/s/case.0/mcp"), tmp_path / "behind")
    assert behind == direct
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    calls = {line["replies"][0]["tool_calls"][0]["name"]: line for line in lines if "replies" in line}
    if plan == "idle":
        assert not calls
    else:  # each has its line, that of the closed stream with the answer which came later
        assert calls.keys() == {tool["name"] for tool in TOOLS} - {"json_schema_2020_12_tool"}
        assert not any(line.get("error") or line.get("replaced") for line in calls.values())
