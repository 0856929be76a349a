"""A model's server as a program, started by a serving line: `python fake_model.py PORT KIND [TEXT]`.

It calls the first tool of every request. Kind `unparsed` leaves calls in the text, as a server does that has
no tool parser; where TEXT is given, it ends at a request that holds it. Each starts a child, as servers do.
"""

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PORT, KIND, *TEXT = sys.argv[1:]


class Model(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is said of a request."""

    def do_GET(self) -> None:
        self.answer({"data": [{"id": KIND}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = json.dumps(body["messages"], ensure_ascii=False)
        if TEXT and TEXT[0] in said:
            os._exit(3)
        message: dict[str, Any] = {"role": "assistant", "content": "[ping(a=1)]"}
        if tools := body.get("tools"):
            function = tools[0]["function"]
            given = dict.fromkeys(function["parameters"].get("required", ()), "x")
            call = {"name": function["name"], "arguments": json.dumps(given)}
            if KIND == "unparsed":
                text = json.dumps({"name": function["name"], "arguments": given})
                message["content"] = f"<tool_call>\n{text}\n</tool_call>"
            else:
                calls = [{"id": f"call_{n}", "type": "function", "function": call} for n in range(2)]
                message |= {"content": None, "tool_calls": calls}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self.answer({"id": "1", "object": "chat.completion", "model": KIND, "choices": [choice]})

    def answer(self, reply: dict[str, Any]) -> None:
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


subprocess.Popen(["sh", "-c", f"sleep 600; : {__file__}"])
ThreadingHTTPServer(("127.0.0.1", int(PORT)), Model).serve_forever()
