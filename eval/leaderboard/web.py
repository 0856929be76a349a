"""The routes of the board: plain pages, no script, outside gradio's queue."""

import csv
import io
from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from . import pages
from .board import Board, leader_of, marked
from .delivery import Delivery
from .live_routes import add_live, not_shown
from .query import Query, address, flat, parse, select
from .row import Row
from .single_routes import add_single
from .site import Boards
from .store import current
from .views import VIEWS

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'self' https://huggingface.co https://*.hf.space"
)
"""Nothing but our own sheet and pictures, wherever a name came from."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def add_routes(app: FastAPI, boards: Boards) -> None:
    """Puts the board's pages on the app."""
    shown = _Pages(boards)
    paths = {
        "/board.csv": shown.as_csv,
        "/board.json": shown.as_json,
        "/model/{row_id}": shown.model,
        "/static/{name}": _static,
        "/favicon.ico": _favicon,
    }
    for path, page in paths.items():
        app.add_route(path, page)
    add_single(app, boards, shown.html)
    add_live(app, boards, shown.html)
    for path in VIEWS:
        app.add_route(path, shown.view)
    app.add_middleware(Delivery)
    app.add_exception_handler(HTTPException, shown.refused)
    app.add_exception_handler(Exception, _failed)


class _Pages:
    """The pages that show boards."""

    def __init__(self, boards: Boards) -> None:
        self._boards = boards

    def _default(self) -> str:
        return next(iter(self._boards.all()))

    def _board_of(self, version: str) -> Board:
        found = self._boards.all().get(version)
        if found is None:
            known = ", ".join(self._boards.all())
            raise HTTPException(404, f"There is no board of version {version[:80]!r}. There is: {known}.")
        return found

    def _kept(self, key: object, make: Callable[[], str]) -> Response:
        return _html(self._boards.page(key, lambda: make().encode()))

    async def _aside(self, key: object, make: Callable[[], str]) -> Response:
        """The page of `key`; one that has to be made is made off the event loop."""
        page = self._boards.kept_page(key)
        return await run_in_threadpool(self._kept, key, make) if page is None else _html(page)

    def html(self, request: Request, key: object, make: Callable[[], str]) -> Response:
        """A page of another module."""
        return self._kept(key, make)

    def _asked(self, request: Request) -> tuple[Query, tuple[str, ...]]:
        return parse(dict(request.query_params), self._boards.all())

    async def view(self, request: Request) -> Response:
        query, ignored = self._asked(request)
        found, path = self._board_of(query.version), request.url.path
        return await self._aside(
            (path, query, ignored), lambda: VIEWS[path](self._boards, found, query, ignored)
        )

    async def as_csv(self, request: Request) -> Response:
        query, _ = self._asked(request)
        found = self._board_of(query.version)

        def make() -> bytes:
            rows = [flat(row, query.focus) for row in select(found, query, whole=True).rows]
            text = io.StringIO()
            if rows:
                writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            return text.getvalue().encode()

        content = await run_in_threadpool(self._boards.page, ("csv", query), make)
        return _download(content, "text/csv; charset=utf-8", f"board-{query.version}.csv")

    async def as_json(self, request: Request) -> Response:
        query, _ = self._asked(request)
        found = self._board_of(query.version)

        def make() -> bytes:
            made: dict[str, Any] = {
                "version": found.version,
                "dataset_version": found.dataset_version,
                "fingerprint": found.fingerprint,
                "paired": found.paired,
                "focus": query.focus,
                "address": address(query, self._default()),
                "rows": [flat(row, query.focus) for row in select(found, query, whole=True).rows],
            }
            return msgspec.json.encode(made)

        content = await run_in_threadpool(self._boards.page, ("json", query), make)
        return _download(content, "application/json", f"board-{query.version}.json")

    async def model(self, request: Request) -> Response:
        row_id = request.path_params["row_id"]
        found = self._boards.find(row_id)
        if found is None:
            raise not_shown(self._boards, row_id, "model")
        row, of = found
        against = of.row(request.query_params.get("against", ""))
        against = against if against is not None and against.id != row.id else None
        return await self._aside(
            ("model", row.id, against.id if against else None),
            lambda: _model(self._boards, row, of, against, self._default()),
        )

    async def refused(self, _: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        detail = error.detail if isinstance(error, HTTPException) else ""
        response = _html(pages.error_page(status, detail, self._default()))
        response.status_code = status
        return response


def _html(text: str | bytes) -> Response:
    return Response(text, media_type="text/html; charset=utf-8", headers=_HEADERS)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ("board.css", "submit.css", "icon.svg"):
        raise HTTPException(404, "There is no such file.")
    headers = _HEADERS | {"Cache-Control": "public, max-age=86400"}
    if name == "icon.svg":
        return Response(pages.static(name), media_type="image/svg+xml", headers=headers)
    return Response(pages.sheet(name), media_type="text/css; charset=utf-8", headers=headers)


async def _favicon(_: Request) -> Response:
    return Response(pages.static("icon.svg"), media_type="image/svg+xml", headers=_HEADERS)


async def _failed(_: Request, error: Exception) -> Response:
    response = _html(pages.error_page(500, "The page could not be made. Try again in a moment.", "/"))
    response.status_code = 500
    return response


def _model(boards: Boards, row: Row, board: Board, against: Row | None, default: str) -> str:
    [row] = marked([row], leader_of(board.rows), "perturbed")
    entry = boards.entry(row.id)
    if entry is None:
        raise HTTPException(404, f"The figures of {row.id} are being made again: try in a moment.")
    mine = boards.submission(row.id)
    same = [one for one in boards.submissions() if mine is not None and one.line == mine.line]
    line = {one.id for one in same}
    newest = current(same).get(row.id)
    history = [one for one in (*board.rows, *board.past) if one.id in line]
    return pages.model_page(
        row if newest is None else msgspec.structs.replace(row, superseded_by=newest),
        entry,
        board,
        default,
        history=sorted(history, key=lambda one: one.submitted_at or "", reverse=True),
        verification=boards.verification(row.id),
        cleared=boards.cleared(row.id),
        submission=mine,
        against=against,
        elsewhere=[
            (other, one)
            for other in boards.all().values()
            if row.user is not None and other.version != board.version
            for one in (*other.rows, *other.past)
            if (one.user, one.model, one.mode) == (row.user, row.model, row.mode)
        ],
        samples=boards.datasets.rows(board.version) is not None,
        differences=boards.compare(row, against) if against is not None else (),
    )


def _download(content: bytes, kind: str, name: str) -> Response:
    headers = _HEADERS | {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=kind, headers=headers)
