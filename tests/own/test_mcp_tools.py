"""Tools of a live MCP server: what is read is what it wrote, and no server can do harm."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from robustbench_tc.option import silent
from robustbench_tc.own import mcp_tools
from robustbench_tc.own.mcp_tools import Listed, Server, list_tools, prefix_of
from robustbench_tc.own.tools import read_tools
from robustbench_tc.proxy.drill.report import drilled

from ..conftest import Done
from ..refusals import refuses
from .mcp_server import TOOLS

ENDED = "the MCP server ended with status"
SCRIPT = str(Path(__file__).with_name("mcp_server.py"))

CASES = """version: 1
cases:
- {id: one, request: "Please do thing number one exactly 4 times.",
   expect: [{call: tool_1, arguments: {count: 4}}]}
- {id: two, request: "Please do thing number two exactly 5 times.",
   expect: [{call: "by_hand:tool_2", arguments: {count: 5}}]}
"""


def command(mode: str) -> tuple[str, ...]:
    return sys.executable, SCRIPT, mode


def refused(mode: str, timeout_s: float = 60.0) -> str:
    said = refuses(".", list_tools, Server(command=command(mode), timeout_s=timeout_s))
    assert len(said) < 1000
    return said.partition(": ")[2]  # behind the command, of which a long one is cut


def test_a_server_of_the_sdk_is_read_page_by_page(tmp_path: Path) -> None:
    listed = list_tools(Server(command=command("sdk")))
    assert listed.prefix == "My__shop"
    tools = listed.tools("it")
    assert [one.name for one in tools] == [one["name"] for one in TOOLS]
    assert [one.read_only for one in tools] == [True, False, False, False, False]
    assert tools[1].tool.parameters == TOOLS[1]["inputSchema"]
    (tmp_path / "My__shop.json").write_bytes(listed.json())
    assert read_tools(tmp_path / "My__shop.json") == tools


def test_a_server_of_the_handshake_era_is_read_as_it_wrote_it() -> None:
    listed = list_tools(Server(command=command("plain")))
    assert listed.prefix == "by_hand" and json.dumps(listed.entries) == json.dumps(TOOLS)
    assert list_tools(Server(command=command("nameless"))).prefix == "mcp"
    # A banner on standard output harms nobody.
    assert list_tools(Server(command=command("garbage"))).entries == listed.entries


def test_a_server_over_http_is_read_the_same() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([*command("http"), str(port)]) as child:
        try:
            until = time.monotonic() + 120
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    assert time.monotonic() < until and child.poll() is None
                    time.sleep(0.05)
            listed = list_tools(Server(url=f"http://127.0.0.1:{port}/mcp"))
        finally:
            child.kill()
    assert listed.prefix == "My__shop" and [one["name"] for one in listed.entries] == [
        one["name"] for one in TOOLS
    ]
    refuses(
        r"^http://127\.0\.0\.1:\d+/mcp: the MCP server cannot be asked: ",
        list_tools,
        Server(url=f"http://me:secret@127.0.0.1:{port}/mcp"),
    )


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("dies", f"{ENDED} 1 before it had listed its tools; on standard error it said: no database / at"),
        ("dies-later", f"{ENDED} 3 before it had listed its tools"),
        ("large", "the MCP server wrote a message of more than 8,000,000 bytes"),
        ("refuses", "the MCP server does not list its tools: Internal error (servers made with the official"),
        ("circle", "the MCP server lists without end: page 2 states a nextCursor that was asked for already"),
        ("endless", "the MCP server lists more than 50 pages"),
        ("odd", "the MCP server does not list its tools as MCP requires: page 1 has no list 'tools'"),
    ],
)  # fmt: skip
def test_what_is_no_list_is_refused_in_a_line(mode: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_tools, "PAGES", 50)
    assert refused(mode).startswith(said)


KEY = "planted-0123456789"
QUOTES = (sys.executable, "-c", "import os, sys; sys.exit(f'no: {sys.argv} {os.environ.get(\"GIVEN_IT\")}')")


A_READ = {"name": "get_it", "inputSchema": {"type": "object"}}
DRILLED = partial(drilled, listed=Listed(prefix="it", entries=(A_READ,)), file=None, progress=silent)


@pytest.mark.parametrize(
    "server",
    [
        Server(command=(*QUOTES, "--api-key", KEY)),
        Server(command=(*QUOTES, f"--token={KEY}")),
        Server(command=QUOTES, env=("GIVEN_IT",)),
        Server(url=f"http://127.0.0.1:9/mcp?api_key={KEY}"),
        Server(url=f"http://{KEY}:{KEY}@127.0.0.1:9/mcp"),
    ],
)
@pytest.mark.parametrize("use", [list_tools, DRILLED])
def test_a_key_that_a_server_is_given_is_in_no_message(
    server: Server, use: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server quotes it on standard error; the library for HTTP quotes its address."""
    monkeypatch.setenv("GIVEN_IT", KEY)
    said = refuses(".", use, server)
    assert KEY not in said and KEY[:8] not in said, said


def test_a_list_is_bounded_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_tools, "BYTES", 8_000)
    assert refused("many").startswith("the MCP server lists more than 8,000 bytes of tools")


def test_a_server_that_says_nothing_is_given_up_and_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORPHAN", str(tmp_path / "ids"))
    refuses(
        r"did not answer within 3 s; raise --mcp-timeout",
        list_tools,
        Server(command=command("orphan"), env=("ORPHAN",), timeout_s=3),
    )
    for number in (tmp_path / "ids").read_text().split():
        until = time.monotonic() + 60
        while Path(f"/proc/{number}").exists():
            state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "Z":  # init has not looked yet
                break
            assert time.monotonic() < until, "the server, or what it started, lives on"
            time.sleep(0.05)


def test_a_command_that_is_none_is_a_line() -> None:
    for words, why in (
        (("no-such-command-here",), "cannot be started: No such file or directory"),
        ((SCRIPT,), "cannot be started: Permission denied"),
        (("a\0b",), "cannot be started: embedded null byte"),
    ):
        if not os.access(SCRIPT, os.X_OK) or words != (SCRIPT,):
            error = refuses(".", list_tools, Server(command=words))
            assert why in error and "\n" not in error
    refuses(
        "--mcp-env NOT_THERE: no such environment variable",
        list_tools,
        Server(command=command("plain"), env=("NOT_THERE",)),
    )


def test_a_prefix_can_be_a_file_and_is_no_path() -> None:
    for name, prefix in {"a:b": "a_b", "../../etc": "etc", "": "mcp", "::": "mcp", "größe": "größe"}.items():
        assert prefix_of(name) == prefix
    assert len(prefix_of("x" * 1000)) == 64


def test_a_server_that_never_ends_a_line_leaves_no_traceback() -> None:
    ask = "import robustbench_tc.cli as cli; cli.main()"
    words = ("lint", "--", "sh", "-c", "cat /dev/zero")
    done = subprocess.run([sys.executable, "-c", ask, *words], capture_output=True, text=True, timeout=120)
    said = "sh -c cat /dev/zero: the MCP server wrote a message of more than 8,000,000 bytes"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"rbtc: {said}\n")


# The commands


def test_lint_says_which_tool_a_client_refuses_the_list_for(
    tmp_path: Path, rbtc: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = rbtc("lint", "--", *command("rootless"))
    assert done.code == 1 and "error: refused-root: by_hand:tool_1: " in done.out
    evil = rbtc("lint", "--", *command("evil"))
    assert "\x1b" not in evil.out and "\u202e" not in evil.out and r"\x1b[2J\x0aname" in evil.out
    assert "lists no tools" in rbtc("lint", "--", *command("nothing")).refusal
    bad = rbtc("lint", "--save", "bad.json", "--", *command("no-object"))
    assert bad.code == 1 and "error: unreadable: by_hand: tool 1: must be an object" in bad.out
    assert "warning: mcp-schema: by_hand: refused by mcp: nextCursor: " in bad.out
    assert rbtc("lint", "bad.json").out.replace("bad:", "by_hand:").replace("bad", "by_hand") == bad.out


def test_lint_keeps_the_list_as_a_tools_file(
    tmp_path: Path, rbtc: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    live = "--save", "by_hand.json"
    first = rbtc("lint", *live, "--", *command("plain"))
    assert first.code == 0, first.err
    assert rbtc("lint", "by_hand.json").out == first.out
    assert rbtc("lint", *live, "--", *command("plain")).out == first.out
    other = rbtc("lint", *live, "--", *command("rootless"))
    assert other.code == 1 and "by_hand.json" in other.err and "lists different tools now" in other.err
    assert "has the stem 'by_hand' too" in rbtc("lint", "by_hand.json", "--", *command("plain")).refusal
    for words, why in (
        (("lint",), "no tools: name a tools file"),
        (("lint", "by_hand.json", "--save", "x.json"), "--save is for the tools of an MCP server"),
        (("lint", "--mcp-url", "http://x", "--", "y"), "name one MCP server"),
        (("lint", "by_hand.json", "--mcp-env", "X"), "name one MCP server"),
        (("build", "--", "x"), "name them with --cases"),
    ):
        assert why in rbtc(*words).refusal


def test_a_build_from_a_server_is_made_again_without_it(
    tmp_path: Path, rbtc: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cases = Path("cases.yaml")
    cases.write_text(CASES)

    def build(out: str, *server: str) -> Done:
        types = ("--types", "transient_timeout")
        live = ("--", *server) if server else ()
        return rbtc("build", "--cases", "cases.yaml", *types, "--out", out, *live)

    def same(one: str, other: str) -> bool:
        return all(
            file.read_bytes() == (Path(other) / file.relative_to(one)).read_bytes()
            for file in Path(one).rglob("*")
            if file.is_file()
        )

    assert build("first", *command("plain")).code == 0
    assert build("second", *command("plain")).code == 0 and same("first", "second")
    assert read_tools(Path("by_hand.json"))[0].read_only
    assert '"read_only": [\n  "tool_0"\n ]' in Path("first/own.json").read_text()
    assert build("third", *command("rootless")).code == 1 and not Path("third").exists()
    cases.write_text(CASES.replace("cases:", "tools: [by_hand.json]\ncases:"))
    assert build("alone").code == 0
    assert build("both", *command("plain")).code == 0 and same("alone", "both")
    other = build("third", *command("rootless"))
    assert other.code == 1 and "cases.yaml:2: the live server 'by_hand' lists other tools" in other.err
