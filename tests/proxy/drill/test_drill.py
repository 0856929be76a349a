"""Whole drills: planted servers over both transports, hostile ones, files, and what needs permission."""

import json
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import llm
from robustbench_tc.own.desk import desk
from robustbench_tc.proxy.drill import trials
from robustbench_tc.proxy.plan import read_plan

from ...conftest import Rbtc, nightly
from ...trees import write
from ..mcp.conftest import DOOR, first_answer, listening

SERVER = Path(__file__).with_name("planted.py")
DOMAINS = ("payments", "notes", "bookings")
REPEATED = ["twice", "answer lost", "at the same moment"]

# What the server says of it, the trials that show it, and the code of a further finding.
DEFECTS: dict[str, tuple[str, list[str], str | None]] = {
    "doubles": ("silence", REPEATED, None),
    "races": ("silence", ["at the same moment"], None),
    "key ignored": ("lie", REPEATED, None),
    "key renewed": ("lie", ["a new key"], None),
    "hint lies": ("lie", REPEATED, None),
    "error after effect": ("silence", REPEATED, "error-after-effect"),
    "half done": ("silence", REPEATED, None),
    "stale read": ("silence", REPEATED, "stale-read"),
}
GOOD = {
    "keyed": ("idempotent", "agreement"),
    "upserts": ("idempotent", "agreement"),
    "refuses": ("refuses", "silence"),
    "announces": ("doubles", "agreement"),
}

Drilled = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """These servers write before they answer; no model may be asked."""

    def asked(*_: Any, **__: Any) -> None:
        pytest.fail("a drill asks no model")

    monkeypatch.setattr(trials, "SETTLE_S", 0.0)
    monkeypatch.setattr(llm.Client, "__init__", asked)
    monkeypatch.chdir(tmp_path)


@contextmanager
def planted(kind: str, domain: str, over: str, folder: Path) -> Iterator[list[str]]:
    """The words behind `rbtc drill` for a server; over HTTP its state is put back before each trial."""
    if over == "stdio":
        yield ["--", sys.executable, str(SERVER), kind, domain]
        return
    with listening(folder, SERVER, kind, domain) as address:
        ask = f"from urllib.request import urlopen as o; o({address.replace('/mcp', '/reset')!r}, b'')"
        (folder / "reset.yaml").write_text(
            json.dumps({"version": 1, "reset": [sys.executable, "-S", "-c", ask]})
        )
        yield ["--url", address, "--inputs", str(folder / "reset.yaml")]


@pytest.fixture
def drilled(rbtc: Rbtc, tmp_path: Path) -> Drilled:
    """What `rbtc drill --json` says of a planted server."""

    def run(kind: str, domain: str, over: str = "stdio", *more: str) -> dict[str, Any]:
        with planted(kind, domain, over, tmp_path) as words:
            began = time.monotonic()
            done = rbtc("drill", "--json", *more, *words)
            assert time.monotonic() - began < 30
        assert "Traceback" not in done.err and done.out, done.err
        assert done.err.startswith("writes will really be executed: "), "before anything else is said"
        found: dict[str, Any] = json.loads(done.out)
        assert done.code == found["exit_code"]
        listed = {one["tool"] for one in found["writes"]} | set(found["reads"]) | set(found["not_tried"])
        assert listed, "every tool is a read, a write, or not tried"
        return found

    return run


def servers(kinds: Collection[str]) -> list[Any]:
    """Kind, domain and transport of each server. Each kind goes over both transports and each domain too; by
    day a kind is of one domain, and the kinds together are of all and over both."""
    return [
        pytest.param(
            kind,
            domain,
            ("stdio", "http")[(len(kind) + at) % 2],
            marks=() if (number + at) % len(DOMAINS) == 0 else nightly,
            id=f"{kind}-{domain}",
        )
        for number, kind in enumerate(kinds)
        for at, domain in enumerate(DOMAINS)
    ]


@pytest.mark.parametrize(("defect", "domain", "over"), servers(DEFECTS))
def test_every_planted_defect_is_found(drilled: Drilled, defect: str, domain: str, over: str) -> None:
    found = drilled(defect, domain, over)
    says, shown_by, also = DEFECTS[defect]
    (one,) = found["writes"]
    assert (found["exit_code"], one["verdict"], one["server"], one["trials"]) == (
        1,
        "doubles",
        says,
        shown_by,
    )
    assert one["difference"] and "→" in one["difference"][0]
    codes = [finding["code"] for finding in found["findings"]]
    assert codes[0] == "doubles" and {*codes[1:]} == ({also} if also else set())
    assert len(found["reads"]) == 4 and not found["not_tried"] and not found["is_touched"]
    assert (defect == "stale read") == bool(found["stale"])


@pytest.mark.parametrize(("kind", "domain", "over"), servers(GOOD))
def test_a_good_server_has_no_findings(drilled: Drilled, kind: str, domain: str, over: str) -> None:
    found = drilled(kind, domain, over)
    (one,) = found["writes"]
    assert (one["verdict"], one["server"]) == GOOD[kind]
    assert (found["exit_code"], found["findings"], found["stale"]) == (0, [], [])


HOSTILE: dict[str, tuple[int, str | None, str]] = {
    # The exit code, the tool that is not tried, and words of the reason.
    "ends": (3, "add_note", "once: the server ended with status 3"),
    "ends at the second": (3, "add_note", "twice: the server ended with status 3"),
    "hangs": (3, "add_note", "once: add_note did not answer within 3 s"),
    "babbles": (1, None, ""),
    "other names each time": (3, "add_note_", "did not answer within 3 s"),
    "huge": (1, "count_words", "wrote a message of more than 8,000,000 bytes"),
    "blind": (3, None, ""),
    "keeps": (1, None, ""),
    "toggles": (1, None, ""),
    "malformed": (3, "add_note", "its answer is not the result of a tool call"),
    "nests": (1, None, ""),
    "reads by hint": (1, None, ""),
    "writes by hint": (1, None, ""),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_server_is_counted_and_never_a_traceback(drilled: Drilled, kind: str) -> None:
    code, tool, reason = HOSTILE[kind]
    waits = "did not answer" in reason
    found = drilled(kind, "notes", "stdio", "--mcp-timeout", "3" if waits else "20")
    assert found["exit_code"] == code, found
    assert found["is_touched"] == (kind == "keeps")
    if tool is not None:
        (said,) = [why for name, why in found["not_tried"].items() if name.startswith(tool)]
        assert reason in said
    else:
        assert found["not_tried"] == {}
    if kind == "blind":
        assert found["writes"][0]["verdict"] == "cannot be seen" and found["reads"] == []
    verdicts = {one["tool"]: (one["verdict"], one["server"]) for one in found["writes"]}
    if kind == "writes by hint":
        assert verdicts["digest"] == ("doubles", "lie") and "digest" not in found["reads"]
    assert (kind == "reads by hint") == ("digest" in found["reads"])


def test_trials_that_touch_are_said_and_not_mistaken(rbtc: Rbtc, tmp_path: Path) -> None:
    """An address without a reset command: what was written stays, so what each trial adds is compared."""
    for kind, verdict in (("doubles", "doubles"), ("keyed", "idempotent"), ("refuses", "refuses")):
        with listening(tmp_path, SERVER, kind, "bookings") as address:
            done = rbtc("drill", "--url", address)
        assert done.code == (kind == "doubles") and verdict in done.out
        assert "with no reset, so that they may touch; trials saw what earlier ones had written" in done.out
        (tmp_path / "port").unlink()


def test_it_writes_sarif_a_badge_and_a_plan_that_a_door_carries_out(rbtc: Rbtc, tmp_path: Path) -> None:
    files = [word for name in ("sarif", "badge", "save-plan") for word in (f"--{name}", name)]
    for kind, code in (("upserts", 0), ("doubles", 1), ("blind", 3)):
        with planted(kind, "notes", "stdio", tmp_path) as words:
            assert rbtc("drill", *files, *words).code == code
        log = json.loads(Path("sarif").read_text())
        results = log["runs"][0]["results"]
        assert log["version"] == "2.1.0" and len(results) == (kind == "doubles")
        assert {one["ruleId"] for one in results} <= {
            rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]
        }
        assert Path("badge").read_text().startswith("<svg") and "rbtc drill" in Path("badge").read_text()
        plan = read_plan(Path("save-plan"))
        safe = ("add_note",) * (kind == "upserts")
        assert (plan.allow_writes, plan.idempotent) == (kind == "upserts", safe)
        assert plan.may_replace("add_note") == (kind == "upserts")
        reads = {"list_notes", "get_note", "count_words", "get_status"}
        assert {*plan.read_only} == (set() if kind == "blind" else reads)
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        door = [sys.executable, "-c", DOOR, "proxy", "--plan", "save-plan", "--journal", f"{kind}.jsonl"]
        assert json.loads(first_answer([*door, *words], message))["result"]["tools"][0]["name"] == "add_note"
    Path("sarif").write_text("mine")
    with planted("upserts", "notes", "stdio", tmp_path) as words:
        assert "is not a file of `rbtc drill`" in rbtc("drill", *files, *words).refusal
    assert Path("sarif").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--url", "https://example.com/mcp"], "example.com"),
        (["--mcp-env", "SHOP_TOKEN", "--", "touch", "started"], "credentials (SHOP_TOKEN)"),
        (["--mcp-env", "DATABASE", "--", "touch", "started"], "another machine, or credentials in it"),
        (["--", "sh", "-c", "touch started", "--api-key=abcdef"], "credentials (in its command)"),
        (["--", "touch", "started", "postgres://ada:secret@localhost/shop"], "credentials in it"),
        (["--", "touch", "started", "https://mcp.example.com/sse"], "mcp.example.com"),
    ],
)
def test_what_may_be_someone_elses_needs_permission(
    rbtc: Rbtc, monkeypatch: pytest.MonkeyPatch, words: list[str], why: str
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "abcdef-123456")
    monkeypatch.setenv("DATABASE", "postgres://shop.internal:5432/shop")
    said = rbtc("drill", *words).refusal
    assert (
        why in said
        and said.endswith("allow it with --yes\n")
        and "abcdef" not in said
        and "secret" not in said
    )
    assert not Path("started").exists()
    if "--url" not in words:
        told = rbtc("drill", "--yes", *words).err
        assert "before it had listed its tools" in told and "abcdef" not in told.partition("\n")[0]
        assert Path("started").exists(), "with --yes the server is started"


def test_wrong_words_are_one_line(rbtc: Rbtc, tmp_path: Path) -> None:
    assert "name one MCP server" in rbtc("drill").refusal
    server = ["--", sys.executable, str(SERVER), "doubles", "notes"]
    for text, why in (
        ("version: 1\ntools: {add_not: {}}\n", "unknown tool 'add_not': did you mean add_note or get_note?"),
        ("version: 1\ntools: {add_note: {kind: maybe}}\n", "in.yaml:2: Invalid enum value 'maybe'"),
        ("version: 1\ntools: {add_note: {argument: {}}}\n", "in.yaml:2: Object contains unknown field"),
        ("version: 1\nreset: [/no/such/program]\n", "no write: "),
        (f"version: 1\nreset: [{sys.executable}, -c, 'raise SystemExit(4)']\n", "ended with status 4"),
    ):
        Path("in.yaml").write_text(text)
        refusal = rbtc("drill", "--inputs", "in.yaml", *server)
        assert refusal.code == 1 and why in refusal.err.splitlines()[-1] and "Traceback" not in refusal.err
    Path("in.yaml").write_text("version: 1\ntools: {add_note: {kind: skip}, get_status: {kind: write}}\n")
    done = rbtc("drill", "--json", "--inputs", "in.yaml", *server)
    found = json.loads(done.out)
    assert found["not_tried"] == {"add_note": "left out by the inputs file"}
    assert [one["verdict"] for one in found["writes"]] == ["cannot be seen"] and done.code == 3


def test_the_desk_has_one_tool_that_doubles(
    rbtc: Rbtc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write(tmp_path / "desk", {**desk()}))
    done = rbtc("drill", "--json", "--inputs", "drill.yaml", "--", sys.executable, "mcp_server.py")
    found = json.loads(done.out)
    doubling = [one["tool"] for one in found["writes"] if one["verdict"] == "doubles"]
    assert (done.code, doubling, found["source"]) == (1, ["refund_order"], "mcp_server.py")
    assert {*found["not_tried"]} == {"reschedule_delivery", "change_address", "create_return"}
    assert 'under tools of the inputs file: "change_address": {arguments: {"address": …}}' in str(
        found["not_tried"]
    )
