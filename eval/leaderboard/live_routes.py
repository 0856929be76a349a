"""Routes of live runs: the tab, a run's page, and both for programs under `/api/v1/live`."""

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from . import moderation
from .api_answers import ANYBODY, HEADERS, JSON, delivered, guarded
from .api_description import LIVE, ROOT
from .live_board import LiveBoard, LiveRow
from .live_page import live_page, run_page
from .live_query import PATH, parse, select
from .problem import Problem
from .records import Metric
from .site import Boards

Html: TypeAlias = Callable[[Request, object, Callable[[], str]], Response]

RAW = {"journal.jsonl": "application/x-ndjson", "run.json": JSON}
"""Files of a stored live run, and what they are."""


def add_live(app: FastAPI, boards: Boards, html: Html) -> None:
    """Puts the pages on the app."""
    shown = _Pages(boards, html)
    for path, page in {PATH: shown.tab, f"{PATH}/{{row_id}}": shown.run}.items():
        app.add_route(path, _in_thread(page), ["GET", "HEAD"])


def add_live_api(app: FastAPI, boards: Boards) -> None:
    """Puts the API on the app, in front of whatever else may match its paths."""
    routes = _Read(boards)
    handlers = {
        f"{ROOT}/live": routes.boards,
        f"{ROOT}/live/runs/{{id}}": routes.run,
        f"{ROOT}/live/runs/{{id}}/{{file}}": routes.raw,
    }
    for route in LIVE:
        app.add_route(route.path, guarded(_in_thread(handlers[route.path]), ANYBODY), ["GET"])


def _in_thread(make: Callable[[Request], Response]) -> Any:
    """An answer that is made off the event loop."""

    async def handler(request: Request) -> Response:
        return await run_in_threadpool(make, request)

    return handler


def not_shown(boards: Boards, row_id: str, what: str) -> HTTPException:
    """Why a submission has no page: it was taken off the board, or is none."""
    off = boards.store.off_the_board()[0].get(row_id)
    if off is not None:
        return HTTPException(410, moderation.page_says(off))
    return HTTPException(404, f"There is no {what} {row_id[:80]!r} on any board.")


class _Pages:
    def __init__(self, boards: Boards, html: Html) -> None:
        self._boards = boards
        self._html = html

    def _core(self) -> str:
        return next(iter(self._boards.all()))

    def tab(self, request: Request) -> Response:
        boards = self._boards.live()
        query, ignored = parse(dict(request.query_params), boards)
        board = boards.get(query.version)
        taken = self._boards.takes_live

        def make() -> str:
            view = None if board is None else select(board, query, ignored)
            return live_page(view, query, boards, taken=taken, core=self._core())

        return self._html(request, (PATH, query, ignored, taken), make)

    def run(self, request: Request) -> Response:
        row_id = request.path_params["row_id"]
        found = self._boards.find_live(row_id)
        if found is None:
            raise not_shown(self._boards, row_id, "live run")
        row, board = found
        line = [one for one in (*board.rows, *board.past) if one.submission.line == row.submission.line]
        line.sort(key=lambda one: one.submission.submitted_at, reverse=True)
        return self._html(
            request,
            (PATH, "run", row.id),
            lambda: run_page(
                row,
                board,
                line,
                self._boards.verification(row.id),
                self._core(),
                self._boards.cleared(row.id),
            ),
        )


class _Read:
    def __init__(self, boards: Boards) -> None:
        self._boards = boards

    def _kept(self, request: Request, key: object, make: Callable[[], Any]) -> Response:
        content = self._boards.page(("api live", key), lambda: msgspec.json.encode(make()))
        return delivered(request, content, JSON)

    def boards(self, request: Request) -> Response:
        asked = request.query_params.get("version", "")
        unknown = set(request.query_params) - {"version"}
        there = self._boards.live()
        if unknown:
            raise Problem(422, f"unknown parameter {ascii(min(unknown))[:80]}: GET {ROOT} lists them")
        if asked and asked not in there:
            raise Problem(404, f"there is no such live board: GET {ROOT}/live lists them")
        wanted = [board for board in there.values() if asked in ("", board.version)]
        return self._kept(request, ("boards", asked), lambda: {"boards": [_board(one) for one in wanted]})

    def _row(self, request: Request) -> LiveRow:
        found = self._boards.find_live(request.path_params["id"])
        if found is None:
            raise Problem(404, f"there is no such live run: GET {ROOT}/live lists them")
        return found[0]

    def run(self, request: Request) -> Response:
        row = self._row(request)
        links = {name: f"{ROOT}/live/runs/{row.id}/{name}" for name in RAW}
        return self._kept(
            request,
            ("run", row.id),
            lambda: {
                **fields(row),
                "counts": row.entry.counts,
                "effects": row.entry.effects,
                "submission": row.submission,
                "verification": self._boards.verification(row.id),
                "links": {"page": row.submission.page, **links},
            },
        )

    def raw(self, request: Request) -> Response:
        row, name = self._row(request), request.path_params["file"]
        path = self._boards.store.path(row.id) / name
        if name not in RAW or not path.is_file():
            raise Problem(404, f"a live run has the files {' and '.join(RAW)}")
        headers = HEADERS | ANYBODY | {"Cache-Control": "public, max-age=3600"}
        return FileResponse(path, headers=headers, media_type=RAW[name], filename=f"{row.id}-{name}")


def _board(board: LiveBoard) -> dict[str, Any]:
    return {
        "version": board.version,
        "dataset_version": board.dataset_version,
        "fingerprint": board.fingerprint,
        "rows": [fields(row) for row in board.rows],
        "superseded": [row.id for row in board.past],
    }


def fields(row: LiveRow) -> dict[str, Any]:
    """A live run: who it is, and success, recovery and harm by kind of fault with their intervals."""
    one = row.submission
    names = ("user", "params_b", "family", "mode", "submitted_at", "defence", "card", "licence", "weights")
    clean = row.entry.clean
    return {
        "kind": "live",
        "rank": row.rank or None,
        "id": row.id,
        "model": row.model,
        **{name: getattr(one, name) for name in names},
        "tier": row.tier,
        "flags": row.flags,
        "superseded_by": row.superseded_by,
        "episodes": row.entry.episodes,
        "clean": Metric(clean.value, clean.low, clean.high, clean.n),
        "faults": {line.name: line for line in row.entry.lines},
    }
