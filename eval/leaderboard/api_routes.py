"""`/api/v1`: what the board shows, for programs. docs/leaderboard-api.md has the fields: their names stay."""

import io
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response
from starlette.concurrency import run_in_threadpool

from robustbench_tc import __version__, taxonomy
from robustbench_tc.eval.stats.values import METRICS

from .account import Accounts
from .api_answers import ANYBODY, HEADERS, JSON, delivered, guarded
from .api_description import READ, ROOT, ROUTES, openapi
from .api_submit import add_submissions
from .board import PAPER, Board
from .desk import Desk
from .live_data import CLOSED as NO_LIVE
from .live_routes import add_live_api
from .problem import Problem
from .query import FILTERS, Query, flat, parse, select
from .records import board_version
from .row import FOCUSES, Row
from .site import Boards

PAGE, LONGEST_PAGE = 100, 1000
"""Rows of a page: unless asked otherwise, and at most."""

_TEXTS = (
    *("model", "family", "user", "tier", "mode", "submitted_at", "id", "focus", "defence", "card"),
    *("licence", "weights", "superseded_by"),
)
_PARQUET = "application/vnd.apache.parquet"


def add_api(app: FastAPI, boards: Boards, desk: Desk | None, accounts: Accounts, closed: str) -> None:
    """Puts the API on the app, in front of whatever else may match its paths."""
    routes = _Read(boards, desk, accounts, closed)
    handlers = {
        ROOT: routes.index,
        f"{ROOT}/openapi.json": routes.openapi,
        f"{ROOT}/boards": routes.boards,
        f"{ROOT}/boards/{{version}}/rows": routes.rows,
        f"{ROOT}/boards/{{version}}/rows.parquet": routes.parquet,
        f"{ROOT}/models/{{id}}": routes.model,
        f"{ROOT}/compare": routes.compare,
        f"{ROOT}/models/{{id}}/predictions.parquet": routes.predictions,
        f"{ROOT}/models/{{id}}/run.json": routes.run,
    }
    for route in READ:
        app.add_route(route.path, guarded(handlers[route.path], ANYBODY), ["GET"])
    add_live_api(app, boards)
    add_submissions(app, desk, accounts, boards.refresh, closed)
    app.add_route("/api/{rest:path}", guarded(_nothing, ANYBODY), ["GET", "POST", "PUT", "PATCH", "DELETE"])


async def _nothing(_: Request) -> Response:
    raise Problem(404, f"there is no such route: GET {ROOT} lists them")


class _Read:
    def __init__(self, boards: Boards, desk: Desk | None, accounts: Accounts, closed: str) -> None:
        self._boards = boards
        self._desk = desk
        self._accounts = accounts
        self._closed = closed

    async def _kept(self, request: Request, key: object, make: Callable[[], Any]) -> Response:
        """JSON that depends on the boards and `key` alone."""
        return await self._bytes(request, key, lambda: msgspec.json.encode(make()), JSON)

    async def _bytes(self, request: Request, key: object, make: Callable[[], bytes], kind: str) -> Response:
        content = await run_in_threadpool(self._boards.page, key, make)
        return delivered(request, content, kind)

    async def index(self, request: Request) -> Response:
        return await self._kept(request, ("api", "index"), self._index)

    def _index(self) -> dict[str, Any]:
        return {
            "name": "RobustBench-TC leaderboard",
            "package_version": __version__,
            "default_board": next(iter(self._boards.all())),
            "submissions": self._taken(),
            "openapi": f"{ROOT}/openapi.json",
            "routes": ROUTES,
        }

    def _taken(self) -> dict[str, Any]:
        served = self._boards.served
        if self._desk is None or served is None:
            return {"open": False, "closed": self._closed}
        limits = self._desk.limits
        return {
            "open": True,
            "login": self._accounts.login,
            "dataset_version": served[0],
            "fingerprint": served[1],
            "board": board_version(*served),
            "live": self._taken_live(),
            "limits": {
                name: getattr(limits, name) for name in ("file_bytes", "record_bytes", "repeats", "per_day")
            },
        }

    def _taken_live(self) -> dict[str, Any]:
        served = self._boards.served_live
        if served is None:
            return {"open": False, "closed": NO_LIVE}
        return {"open": True, "dataset_version": served[0], "fingerprint": served[1]}

    async def openapi(self, request: Request) -> Response:
        return await self._kept(request, ("api", "openapi"), openapi)

    async def boards(self, request: Request) -> Response:
        return await self._kept(
            request,
            ("api", "boards"),
            lambda: {"boards": [self._board(b) for b in self._boards.all().values()]},
        )

    def _board(self, board: Board) -> dict[str, Any]:
        return {
            "version": board.version,
            "dataset_version": board.dataset_version,
            "fingerprint": board.fingerprint,
            "paired": board.paired,
            "rows": len(board.rows),
            "superseded": len(board.past),
            "links": {
                "page": f"/?{urlencode({'version': board.version})}",
                "rows": f"{ROOT}/boards/{board.version}/rows",
                "parquet": f"{ROOT}/boards/{board.version}/rows.parquet",
            },
        }

    def _view(self, request: Request) -> tuple[Board, Query]:
        version = request.path_params["version"]
        found = self._boards.all().get(version)
        if found is None:
            raise Problem(404, f"there is no such board: GET {ROOT}/boards lists them")
        asked = {
            name: value for name, value in request.query_params.items() if name not in ("page", "page_size")
        }
        unknown = set(asked) - ({*FILTERS, "focus", "sort", "dir"})
        if unknown:
            raise Problem(422, f"unknown parameter {ascii(min(unknown))[:80]}: GET {ROOT} lists them")
        query, ignored = parse(asked | {"version": version}, self._boards.all())
        if ignored:
            raise Problem(422, f"{ascii(ignored[0])[1:-1][:80]} means nothing: GET {ROOT} lists what does")
        return found, query

    async def rows(self, request: Request) -> Response:
        board, query = self._view(request)
        page = _number(request, "page", 1, 10**6)
        size = _number(request, "page_size", PAGE, LONGEST_PAGE)

        def make() -> dict[str, Any]:
            found = select(board, query).rows
            pages = max(1, -(-len(found) // size))
            return {
                "version": board.version,
                "dataset_version": board.dataset_version,
                "fingerprint": board.fingerprint,
                "paired": board.paired,
                "focus": query.focus,
                "total": len(found),
                "page": page,
                "pages": pages,
                "rows": [fields(row, query.focus) for row in found[(page - 1) * size : page * size]],
            }

        return await self._kept(request, ("api", "rows", query, page, size), make)

    async def parquet(self, request: Request) -> Response:
        board, query = self._view(request)

        def make() -> bytes:
            names = list(fields(self._boards.all()[PAPER].rows[0], query.focus))
            return table([fields(row, query.focus) for row in select(board, query).rows], names)

        return await self._bytes(request, ("api", "parquet", query), make, _PARQUET)

    def _row(self, row_id: str) -> tuple[Row, Board]:
        found = self._boards.find(row_id)
        if found is None:
            raise Problem(
                404, "there is no such run: its id stands in its row, and in the address of its page"
            )
        return found

    async def model(self, request: Request) -> Response:
        row, board = self._row(request.path_params["id"])
        return await self._kept(request, ("api", "model", row.id), lambda: self._model(row, board))

    def _model(self, row: Row, board: Board) -> dict[str, Any]:
        entry = self._boards.entry(row.id)
        submission = None if row.user is None else self._boards.store.submission(row.id)
        line = [
            one
            for one in (*board.rows, *board.past)
            if row.user is not None and (one.user, one.model, one.mode) == (row.user, row.model, row.mode)
        ]
        line.sort(key=lambda one: one.submitted_at or "", reverse=True)
        raw = {name: f"{ROOT}/models/{row.id}/{name}" for name in ("predictions.parquet", "run.json")}
        return {
            **fields(row, FOCUSES[0]),
            "board": board.version,
            "figures": {name: row.figures.metric(name) for name in METRICS},
            "counts": {name: _counted(row.figures.counts(name)) for name in FOCUSES},
            "types": {
                code: {
                    "component": taxonomy.get(code).component,
                    "level": taxonomy.get(code).level,
                    **(
                        msgspec.structs.asdict(entry.types[code])
                        if entry is not None and code in entry.types
                        else {}
                    ),
                }
                for code in taxonomy.codes()
            },
            "error_modes": {} if entry is None else entry.error_modes,
            "gains": () if entry is None else entry.gains,
            "packs": {} if entry is None else entry.packs,
            "submission": submission,
            "cleared_flags": self._boards.cleared(row.id),
            "verification": self._boards.store.verifications()[0].get(row.id),
            "history": [
                {
                    "id": one.id,
                    "submitted_at": one.submitted_at,
                    "tier": one.tier,
                    "superseded_by": one.superseded_by,
                    "perturbed": one.figures.metric("perturbed"),
                }
                for one in line
            ],
            "links": {
                "page": f"/model/{row.id}",
                "badge": f"/badge/{row.id}.svg",
                **({} if submission is None else raw),
            },
        }

    async def compare(self, request: Request) -> Response:
        ids = [request.query_params.get(name, "") for name in ("a", "b")]
        if not all(ids):
            raise Problem(422, "name two runs: ?a=ID&b=ID")
        (a, board), (b, other) = map(self._row, ids)
        if board.version != other.version:
            raise Problem(409, "the two are on different boards: they answered different rows")

        def make() -> dict[str, Any]:
            found = self._boards.compare(a, b)
            return {
                "a": {"id": a.id, "model": a.model},
                "b": {"id": b.id, "model": b.model},
                "board": board.version,
                "paired": board.paired,
                "differences": [
                    {
                        "name": one.name,
                        "difference": one.difference.value,
                        "low": one.difference.low,
                        "high": one.difference.high,
                        "n": one.difference.n,
                        "p": one.p,
                        "p_holm": one.p_holm,
                    }
                    for one in found
                ],
            }

        return await self._kept(request, ("api", "compare", a.id, b.id), make)

    async def predictions(self, request: Request) -> Response:
        return await run_in_threadpool(self._raw, request, "predictions.parquet", _PARQUET)

    async def run(self, request: Request) -> Response:
        return await run_in_threadpool(self._raw, request, "run.json", JSON)

    def _raw(self, request: Request, name: str, kind: str) -> Response:
        row, _ = self._row(request.path_params["id"])
        path = self._boards.store.path(row.id) / name
        if row.user is None or not path.is_file():
            raise Problem(404, "this run has no raw answers here: the paper printed counts")
        headers = HEADERS | ANYBODY | {"Cache-Control": "public, max-age=3600"}
        return FileResponse(path, headers=headers, media_type=kind, filename=f"{row.id}-{name}")


def fields(row: Row, focus: str) -> dict[str, Any]:
    """A row, one level deep: every figure with its interval and its counts."""
    return flat(row, focus) | {"flags": list(row.flags), "superseded_by": row.superseded_by}


def table(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> bytes:
    """The rows as Parquet; the columns have the same types whatever the rows hold."""
    schema = pa.schema([(name, _type(name)) for name in names])
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema), out, compression="zstd")
    return out.getvalue()


def _type(name: str) -> pa.DataType:
    if name in _TEXTS:
        return pa.string()
    if name == "flags":
        return pa.list_(pa.string())
    whole = name == "rank" or name.startswith(("correct_", "n_"))
    return pa.int64() if whole else pa.float64()


def _counted(found: tuple[int, int] | None) -> dict[str, int] | None:
    return None if found is None else {"correct": found[0], "n": found[1]}


def _number(request: Request, name: str, default: int, most: int) -> int:
    said = request.query_params.get(name)
    if said is None:
        return default
    if not (said.isascii() and said.isdigit() and len(said) < 8 and 1 <= int(said) <= most):
        raise Problem(422, f"{name} is a whole number from 1 to {most}")
    return int(said)
