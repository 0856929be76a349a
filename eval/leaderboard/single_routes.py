"""Routes of single things: samples, comparisons, packs, defended runs."""

from collections.abc import Callable
from typing import TypeAlias

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from robustbench_tc import taxonomy

from . import compare_page, defences_page, packs_page, sample_pages, samples
from .board import Board
from .samples import Rows
from .site import Boards

Html: TypeAlias = Callable[[Request, object, Callable[[], str]], Response]
"""A page of HTML for a request, kept under a key until a board changes."""


def add_single(app: FastAPI, boards: Boards, html: Html) -> None:
    """Puts the pages on the app."""
    shown = _Pages(boards, html)
    for path, page in {
        "/samples": shown.samples,
        "/sample/{clean_id:path}": shown.sample,
        "/compare": shown.compare,
        "/packs": shown.packs,
        "/defences": shown.defences,
    }.items():
        app.add_route(path, shown.in_thread(page), ["GET", "HEAD"])


class _Pages:
    def __init__(self, boards: Boards, html: Html) -> None:
        self._boards = boards
        self._datasets = boards.datasets
        self._html = html

    def in_thread(self, page: Callable[[Request], Response]) -> Callable[[Request], object]:
        """A page that is made off the event loop."""

        async def handler(request: Request) -> Response:
            return await run_in_threadpool(page, request)

        return handler

    def _default(self) -> str:
        return next(iter(self._boards.all()))

    def _board(self, version: str) -> Board:
        found = self._boards.all().get(version or self._default())
        if found is None:
            known = ", ".join(self._boards.all())
            raise HTTPException(404, f"There is no board of version {version[:80]!r}. There is: {known}.")
        return found

    def _with_rows(self, version: str) -> tuple[Board, Rows]:
        """The board whose samples are asked for; without a version the first whose dataset is at hand."""
        boards = self._boards.all()
        if not version:
            version = next((one for one in boards if self._datasets.rows(one) is not None), "")
        board = self._board(version)
        rows = self._datasets.rows(board.version)
        if rows is None:
            raise HTTPException(
                404,
                f"The dataset of the board {board.version} is not on this server, so its samples cannot be "
                "shown.",
            )
        return board, rows

    def samples(self, request: Request) -> Response:
        wanted, ignored = sample_pages.parse(request.query_params)
        board, rows = self._with_rows(wanted.version)
        here = [one for one in self._boards.all().values() if self._datasets.rows(one.version) is not None]
        return self._html(
            request,
            ("samples", board.version, wanted, ignored),
            lambda: sample_pages.samples_page(
                wanted, ignored, board, here, rows, self._datasets.tally(board, rows), self._default()
            ),
        )

    def sample(self, request: Request) -> Response:
        wanted, _ = sample_pages.parse(request.query_params)
        board, rows = self._with_rows(wanted.version)
        clean_id = request.path_params["clean_id"]
        code = wanted.type or taxonomy.CLEAN
        row = rows.row(clean_id, code)
        if row is None:
            there = rows.types_of(clean_id)
            raise HTTPException(
                404,
                f"The sample {clean_id[:80]!r} has no row of type {code!r}."
                if there
                else f"There is no sample {clean_id[:80]!r} in {board.version}.",
            )
        return self._html(
            request,
            ("sample", board.version, clean_id, wanted),
            lambda: sample_pages.sample_page(
                row,
                wanted,
                board,
                rows,
                self._datasets.tally(board, rows),
                self._boards.store.path,
                self._default(),
                lambda one: samples.is_right(one, rows, row),
            ),
        )

    def compare(self, request: Request) -> Response:
        given = request.query_params
        ids = compare_page.chosen(given.multi_items())
        notes = []
        wanted = ids.split(",") if ids else []
        places = {one: place[1] for one in wanted if (place := self._boards.find(one)) is not None}
        board = next(iter(places.values()), None) or self._board(given.get("version", ""))
        other = [one for one, place in places.items() if place.version != board.version]
        if other:
            notes.append(
                f"{len(other)} of the chosen models stand on another board: models that answered different "
                "rows are never set beside one another."
            )
        if len(wanted) > len(places):
            notes.append(f"{len(wanted) - len(places)} of the chosen ids are of no model on any board.")
        here = [one for one in places if one not in other]
        if len(here) > sample_pages.COMPARED:
            notes.append(f"At most {sample_pages.COMPARED} models are compared: the first ones are shown.")
        kept = ",".join(here[: sample_pages.COMPARED])
        parameters = {name: given.get(name, "") for name in ("q", "focus")}
        return self._html(
            request,
            ("compare", board.version, kept, *parameters.values(), *notes),
            lambda: compare_page.compare_page(
                kept, parameters, board, self._datasets.rows(board.version), self._default(), notes
            ),
        )

    def packs(self, request: Request) -> Response:
        board = self._board(request.query_params.get("version", ""))
        pack = request.query_params.get("pack", "")
        if pack and pack not in packs_page.PACKS:
            raise HTTPException(
                404, f"There is no pack {pack[:80]!r}. There is: {', '.join(packs_page.PACKS)}."
            )
        page = _page(request)
        return self._html(
            request,
            ("packs", board.version, pack, page),
            lambda: packs_page.packs_page(
                board, self._all(), self._default(), pack, page, self._boards.entry
            ),
        )

    def defences(self, request: Request) -> Response:
        board = self._board(request.query_params.get("version", ""))
        page = _page(request)
        return self._html(
            request,
            ("defences", board.version, page),
            lambda: defences_page.defences_page(
                board, self._all(), self._default(), page, self._boards.entry
            ),
        )

    def _all(self) -> list[Board]:
        return list(self._boards.all().values())


def _page(request: Request) -> int:
    wanted, _ = sample_pages.parse({"page": request.query_params.get("page", "")})
    return wanted.page
