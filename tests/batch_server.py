"""`LoopbackServer` with a Batch API: files, batches, and results that come when a batch is looked at.

`looks`: how often a batch is "in_progress" before it ends. `fault(custom_id, body)` may return a line of the
error file, `"missing"` for no line at all, or None.
"""

import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from .loopback import Fault, Handler, Json, LoopbackServer, reply


class BatchServer(LoopbackServer):
    """Every request of a batch is in `bodies`, as if it had been asked alone."""

    def __init__(
        self,
        handler: Handler,
        *,
        looks: int = 1,
        status: str = "completed",
        fault: Callable[[str, dict[str, Json]], Any] = lambda name, body: None,
        **options: Any,
    ) -> None:
        super().__init__(handler, **options)
        self.looks, self.status, self.fault = looks, status, fault
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Json]] = {}
        self.paid: list[str] = []
        """Names of the requests, as often as they were answered."""
        self.hold_from: int | None = None
        """Batches of this number and later ones stay in progress."""
        self.lose_create = 0
        """So many batches are made without a reply."""

    def add_routes(self, app: web.Application) -> None:
        super().add_routes(app)
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{name}/content", self._content)
        app.router.add_post("/v1/batches", self._create)
        app.router.add_get("/v1/batches", self._listed)
        app.router.add_get("/v1/batches/{name}", self._look)

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        assert form["purpose"] == "batch"
        field = form["file"]
        assert isinstance(field, web.FileField)
        name = f"file-{len(self.files)}"
        self.files[name] = field.file.read()
        return web.json_response({"id": name, "object": "file", "purpose": "batch"})

    async def _content(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=self.files[request.match_info["name"]])

    async def _create(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        assert (asked["endpoint"], asked["completion_window"]) == ("/v1/chat/completions", "24h")
        name = f"batch_{len(self.batches)}"
        self.batches[name] = {
            "id": name, "object": "batch", "status": "in_progress", "input_file_id": asked["input_file_id"],
            "created_at": 100, "left": self.looks,
        }  # fmt: skip
        if self.lose_create:
            self.lose_create -= 1
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(self.batches[name])

    async def _listed(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"object": "list", "data": list(self.batches.values())})

    async def _look(self, request: web.Request) -> web.StreamResponse:
        one = self.batches.get(request.match_info["name"])
        if one is None:
            return web.json_response({"error": {"message": "No such batch"}}, status=404)
        held = self.hold_from is not None and int(one["id"].removeprefix("batch_")) >= self.hold_from
        if one["status"] == "in_progress" and not held:
            if one["left"]:
                one["left"] -= 1
            else:
                await self._end(one)
        return web.json_response(one)

    async def _end(self, one: dict[str, Json]) -> None:
        good: list[Json] = []
        bad: list[Json] = []
        lines = [json.loads(line) for line in self.files[one["input_file_id"]].splitlines()]
        for line in lines:
            name, body = line["custom_id"], line["body"]
            self.bodies.append(body)
            wrong = self.fault(name, body)
            if wrong == "missing":
                continue
            if wrong is not None:
                bad.append({"id": f"r-{name}", "custom_id": name, "response": None, "error": wrong})
                continue
            found = self.handler(body)
            assert isinstance(found, dict | str | Fault)
            status = found.status if isinstance(found, Fault) else 200
            said = (
                found.body if isinstance(found, Fault) else reply(found) if isinstance(found, str) else found
            )
            if status == 200:
                self.paid.append(name)
            answer = {"status_code": status, "request_id": "x", "body": said}
            where = good if status == 200 else bad
            where.append({"id": f"r-{name}", "custom_id": name, "response": answer, "error": None})
        one |= {
            "status": self.status, "completed_at": 160,
            "request_counts": {"total": len(lines), "completed": len(good), "failed": len(lines) - len(good)},
        }  # fmt: skip
        for field, found_lines in (("output_file_id", good), ("error_file_id", bad)):
            if found_lines:
                name = f"file-{len(self.files)}"
                # Results come in any order.
                self.files[name] = "".join(json.dumps(line) + "\n" for line in reversed(found_lines)).encode()
                one[field] = name
