"""A board without gradio on a free port of loopback: the API, its desk, and a scorer in this process."""

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from robustbench_tc.eval.leaderboard.account import Accounts, Login
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.desk import Desk
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.live_data import LiveAsked
from robustbench_tc.eval.leaderboard.records import Checked
from robustbench_tc.eval.leaderboard.scoring import entries_of_paper
from robustbench_tc.eval.leaderboard.site import Boards
from robustbench_tc.eval.leaderboard.store import Store
from robustbench_tc.eval.leaderboard.worker import Job

from . import desks
from .desks import InProcess


class Held(InProcess):
    """A scorer that a test can keep from ending."""

    size = 1

    def __init__(self, asked: Asked, limits: Limits, live: LiveAsked | None = None) -> None:
        super().__init__(asked, limits, live)
        self.free = threading.Event()
        self.free.set()

    def run(self, job: Job) -> Checked:
        made = super().run(job)
        self.free.wait(60)
        return made


@dataclass
class Answer:
    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Served:
    url: str
    store: Store
    boards: Boards
    desk: Desk | None
    scorer: Held
    token: str | None = None
    routes: list[tuple[str, str]] = field(default_factory=list)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        kind: str = "application/json",
        **headers: str,
    ) -> Answer:
        """One request; an error is an answer like another."""
        sent = {"Content-Type": kind, **{name.replace("_", "-"): text for name, text in headers.items()}}
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        asked = urllib.request.Request(self.url + path, body, sent, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=60) as reply:
                return Answer(reply.status, reply.read(), {k.lower(): v for k, v in reply.headers.items()})
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.read(), {k.lower(): v for k, v in error.headers.items()})

    def get(self, path: str, **headers: str) -> Any:
        found = self.ask("GET", path, None, "application/json", **headers)
        assert found.status == 200, found.body
        return found.json

    def post(self, path: str, body: Any = None) -> Answer:
        return self.ask("POST", path, json.dumps({} if body is None else body).encode())

    def put(self, upload_id: str, name: str, content: bytes, offset: int | str = 0) -> Answer:
        path = f"/api/v1/submissions/{upload_id}/{name}?offset={offset}"
        return self.ask("PUT", path, content, "application/octet-stream")

    def announce(self, run: Path, **form: str) -> Answer:
        files = dict(zip(("predictions", "run"), desks.files(run), strict=True))
        announced = {
            name: {"bytes": path.stat().st_size, "sha256": sha256(path.read_bytes()).hexdigest()}
            for name, path in files.items()
        }
        return self.post("/api/v1/submissions", {"files": announced, "form": form})

    def uploaded(self, run: Path, **form: str) -> str:
        """An upload whose bytes have all arrived."""
        upload_id = str(self.announce(run, **form).json["id"])
        for name, file in zip(("predictions", "run"), desks.files(run), strict=True):
            assert self.put(upload_id, name, file.read_bytes()).status == 200
        return upload_id

    def done(self, upload_id: str) -> Any:
        return wait_for(
            lambda: self.get(f"/api/v1/submissions/{upload_id}"), lambda state: state["stage"] == "done"
        )

    def listed(self, run: Path, **form: str) -> str:
        """Submits a run; its id on the board."""
        upload_id = self.uploaded(run, **form)
        assert self.post(f"/api/v1/submissions/{upload_id}/finish").status == 202
        state = self.done(upload_id)
        assert state["listable"], state
        made = self.post(f"/api/v1/submissions/{upload_id}/list")
        assert made.status == 201, made.body
        return str(made.json["submission"]["id"])


def wait_for(look: Callable[[], Any], until: Callable[[Any], bool]) -> Any:
    for _ in range(600):
        found = look()
        if until(found):
            return found
        time.sleep(0.05)
    raise AssertionError(f"it did not come to that: {found}")


@contextmanager
def serving(
    folder: Path,
    asked: Asked,
    *,
    limits: Limits,
    login: Login = "local",
    closed: str = "",
    port: int = 0,
    live: LiveAsked | None = None,
) -> Iterator[Served]:
    """Serves the API and the plain pages. `closed`: without a desk, for that reason. `live`: the dataset of
    live runs, where these are taken."""
    import uvicorn
    from fastapi import FastAPI

    from robustbench_tc.eval.leaderboard.api_routes import add_api
    from robustbench_tc.eval.leaderboard.syndication import add_syndication
    from robustbench_tc.eval.leaderboard.web import add_routes

    store = Store(folder)
    scorer = Held(asked, limits, live)
    desk = None if closed else Desk(store, scorer, limits)
    boards = Boards(store, entries_of_paper(), None if closed else (asked.label, asked.fingerprint()))
    if live is not None:
        boards.serves(asked.label, asked.fingerprint(), (live.label, live.fingerprint))
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    add_api(app, boards, desk, Accounts(login), closed)
    add_syndication(app, boards)
    add_routes(app, boards)
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen()
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, server_header=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        yield Served(
            url,
            store,
            boards,
            desk,
            scorer,
            routes=[
                (method, route.path)
                for route in app.routes
                if hasattr(route, "methods")
                for method in route.methods
            ],
        )
    finally:
        scorer.free.set()
        server.should_exit = True
        thread.join(30)
        listening.close()
