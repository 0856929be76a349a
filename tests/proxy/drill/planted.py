"""Tool servers with planted defects, and good ones, each a program of the standard library alone.

python planted.py DEFECT DOMAIN            on standard input and output
python planted.py DEFECT DOMAIN PORTFILE   streamable HTTP on loopback; POST /reset puts its state back

All of them generate ids, read a clock, and list in no order.
"""

import json
import os
import random
import sys
import threading
import time
import uuid
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

DOMAINS = {  # a write, what it makes, its parameter with a value, and a read that adds up
    "payments": ("pay_invoice", "payment", "invoice", "INV-7", "get_balance"),
    "notes": ("add_note", "note", "title", "Groceries", "count_words"),
    "bookings": ("book_room", "booking", "room", "Aspen", "check_nights"),
}
DEFECTS = (
    "doubles",
    "races",
    "key ignored",
    "key renewed",
    "hint lies",
    "error after effect",
    "half done",
    "stale read",
)
HOSTILE = (
    "ends",
    "ends at the second",
    "hangs",
    "babbles",
    "other names each time",
    "huge",
    "blind",
    "keeps",
    "toggles",
    "malformed",
    "nests",
    "reads by hint",
    "writes by hint",
)
GOOD = ("keyed", "upserts", "refuses", "announces")

KEY = {
    "key ignored": "Reuse it on every retry.",
    "key renewed": "A new random value for each call.",
    "keyed": "The same value on every retry returns the first result.",
}
HINTS = {
    "hint lies": {"idempotentHint": True},
    "upserts": {"idempotentHint": True},
    "announces": {"idempotentHint": False},
}

defect, domain = sys.argv[1:3]
write, thing, parameter, value, adds_up = DOMAINS[domain]
began = time.time()
one_at_a_time = threading.Lock()
both_here = threading.Barrier(2)


class State:
    """What the tools act on."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = [self.item("first")]
        self.total = 100
        self.keys: dict[str, dict[str, Any]] = {}
        self.cache: dict[str, Any] = {}
        self.calls = 0

    def item(self, named: str) -> dict[str, Any]:
        made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        number = 1 if named == "first" else uuid.uuid4().hex[:12]
        return {"id": f"{thing}-{number}", parameter: named, "made": made, "seen": time.time()}

    def add(self, named: str, *, step: int = 10) -> dict[str, Any]:
        self.items.append(self.item(named))
        self.total -= step
        return self.items[-1]


state = State()


def schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


def tools() -> list[dict[str, Any]]:
    properties = {parameter: {"type": "string", "examples": [value]}}
    if defect in KEY:
        properties["idempotency_key"] = {"type": "string", "description": KEY[defect]}
    if defect == "other names each time":
        return [{"name": f"{write}_{uuid.uuid4().hex[:4]}", "inputSchema": schema(properties, [])}]
    number = {f"{thing}_id": {"type": "string"}}
    reads: list[tuple[str, dict[str, Any]]] = [
        (f"list_{thing}s", {}),
        (f"get_{thing}", number),
        (adds_up, {}),
        ("get_status", {}),
    ]
    return [
        {
            "name": write,
            "description": f"Makes a {thing}.",
            "inputSchema": schema(properties, [parameter]),
            "annotations": HINTS.get(defect, {}),
        },
        *(
            {"name": name, "description": "Shows it.", "inputSchema": schema(needed, [*needed])}
            for name, needed in reads
            if defect != "blind"
        ),
        *(
            {"name": "digest", "inputSchema": schema({}, []), "annotations": {"readOnlyHint": True}}
            for _ in range("by hint" in defect)
        ),
    ]


def answer(name: str, given: dict[str, Any]) -> Any:
    with nullcontext() if defect == "races" else one_at_a_time:
        return answered(name, given)


def answered(name: str, given: dict[str, Any]) -> Any:
    state.calls += 1
    if name == "digest":
        return state.add("digest") if defect == "writes by hint" else len(state.items)
    if name == write:
        if "ends" in defect and len(state.items) > defect.count("second"):
            os._exit(3)
        if defect == "hangs":
            time.sleep(600)
        if defect == "toggles" and len(state.items) > 1:
            state.total += 10
            return state.items.pop()
        return written(given[parameter], given.get("idempotency_key", ""))
    shown = {
        f"list_{thing}s": {"items": random.sample(state.items, len(state.items)), "count": len(state.items)},
        f"get_{thing}": next((one for one in state.items if one["id"] == given.get(f"{thing}_id")), None),
        adds_up: f"Of {len(state.items)} in all\nleft: {state.total}",
        "get_status": {"up": round(time.time() - began, 3), "now": time.ctime(), "calls": state.calls},
    }[name]
    if defect == "huge" and name == adds_up:
        return "x" * 10_000_000
    if defect == "nests" and name == adds_up:
        return "[" * 100_000 if domain == "notes" else "[" * 900 + "]" * 900
    if defect == "stale read" and name != "get_status":
        return state.cache.setdefault(name, shown)
    return shown


def written(named: str, key: str) -> Any:
    there = next((one for one in state.items if one[parameter] == named), None)
    if defect in ("keyed", "key renewed"):
        return state.keys[key] if key in state.keys else state.keys.setdefault(key, state.add(named))
    if defect == "upserts":
        return there or state.add(named)
    if defect == "refuses" and there:
        raise ValueError(f"{named} has its {thing} already: {there['id']}")
    if defect == "races":
        if there is None:
            try:
                both_here.wait(1.0)  # two calls at the same moment have both looked before one writes
            except threading.BrokenBarrierError:
                both_here.reset()
            return state.add(named)
        return there
    if defect == "half done" and there:
        state.total -= 10
        return there
    made = state.add(named)
    if defect == "keeps":
        Path("kept.json").write_text(json.dumps(state.items))
    if defect == "error after effect":
        raise ValueError("upstream timed out")
    return made


def reply(message: dict[str, Any]) -> dict[str, Any] | None:
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message:
        return None
    found: dict[str, Any]
    if method == "initialize":
        info = {"name": f"planted {domain}", "version": "1"}
        found = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        found = {"tools": tools()}
    elif method == "tools/call":
        try:
            text = answer(params["name"], params.get("arguments") or {})
            found = {
                "content": [{"type": "text", "text": text if isinstance(text, str) else json.dumps(text)}]
            }
            if defect == "malformed":
                found = {"content": "made"}
        except ValueError as error:
            found = {"content": [{"type": "text", "text": str(error)}], "isError": True}
    else:
        refusal = {"code": -32601, "message": "no such method"}
        return {"jsonrpc": "2.0", "id": message["id"], "error": refusal}
    return {"jsonrpc": "2.0", "id": message["id"], "result": found}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        global state
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/reset":
            state = State()
        found = None if self.path == "/reset" else reply(json.loads(body))
        data = b"" if found is None else json.dumps(found).encode()
        self.send_response(202 if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, *words: Any) -> None:
        pass


def main() -> None:
    if len(sys.argv) > 3:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        part = Path(sys.argv[3] + ".part")
        part.write_text(str(server.server_port))
        part.replace(sys.argv[3])
        server.serve_forever()
    writing = threading.Lock()
    kept = Path("kept.json")
    if defect == "keeps" and kept.exists():
        state.items = json.loads(kept.read_text())

    def one(line: str) -> None:
        if defect == "babbles":
            sys.stdout.write("\x1b[2J{not json\n" * 3)
        if (found := reply(json.loads(line))) is not None:
            with writing:
                sys.stdout.write(json.dumps(found) + "\n")
                sys.stdout.flush()

    for line in sys.stdin:
        threading.Thread(target=one, args=(line,)).start()


if __name__ == "__main__":
    main()
