"""Routes for other places: the badge of a run, and the feed of what is new."""

import re
from collections.abc import Iterator
from heapq import nlargest
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from robustbench_tc.io import numbers

from . import moderation
from .api_answers import ANYBODY, delivered, guarded
from .badge import SHOWN, badge
from .feed import LATEST, News, feed
from .live_news import live_news
from .problem import Problem
from .row import Row
from .site import Boards

_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:\d{1,5})?|\[[0-9a-fA-F:.]{2,45}\](:\d{1,5})?")


def add_syndication(app: FastAPI, boards: Boards) -> None:
    """Puts the routes on the app."""
    routes = _Syndication(boards)
    app.add_route("/badge/{name:path}", guarded(routes.badge, ANYBODY), ["GET"])
    app.add_route("/feed.xml", guarded(routes.feed, ANYBODY), ["GET"])


class _Syndication:
    def __init__(self, boards: Boards) -> None:
        self._boards = boards
        self._decisions = boards.store.folder / "moderation"

    async def badge(self, request: Request) -> Response:
        name = request.path_params["name"]
        show = request.query_params.get("show", "perturbed")
        user = request.query_params.get("user", "")[:100]
        if not name.endswith(".svg") or len(name) > 200:
            raise Problem(404, "a badge is /badge/NAME.svg, with the id of a run or the name of a model")
        if show not in SHOWN:
            raise Problem(422, f"?show= is one of {', '.join(SHOWN)}")
        key = ("badge", name, user, show)
        drawn = await run_in_threadpool(
            self._boards.page,
            key,
            lambda: badge(self._newest(name.removesuffix(".svg"), user), show).encode(),
        )
        return delivered(request, drawn, "image/svg+xml")

    def _newest(self, name: str, user: str) -> Row | None:
        """The run of that id, else the newest one of that model name, of that user if one is named."""
        found = self._boards.find(name)
        if found is not None:
            return found[0]
        named = [row for row in self._rows() if row.model == name and user in ("", row.user)]
        return max(named, key=lambda row: (row.submitted_at or "", row.id), default=None)

    def _rows(self) -> Iterator[Row]:
        for board in self._boards.all().values():
            yield from board.rows

    async def feed(self, request: Request) -> Response:
        host = request.headers.get("host", "")
        if not _HOST.fullmatch(host):
            raise Problem(400, "the Host is not one")
        address = f"{request.url.scheme}://{host}"
        content = await run_in_threadpool(
            self._boards.page,
            ("feed", address, _changed(self._decisions)),
            lambda: feed(self._news(), address).encode(),
        )
        return delivered(request, content, "application/atom+xml")

    def _news(self) -> Iterator[News]:
        every = [row for board in self._boards.all().values() for row in (*board.rows, *board.past)]
        dated = [row for row in every if row.submitted_at is not None]
        for row in nlargest(LATEST, dated, key=lambda one: (one.submitted_at or "", one.id)):
            found = row.figures.metric("perturbed")
            yield News(
                at=row.submitted_at or "",
                what="listed",
                about=row.id,
                title=f"{row.model} by {row.user}",
                text=f"Perturbed accuracy {numbers.number(found.value)} {numbers.interval(found)}, clean "
                f"{numbers.number(row.figures.metric('clean').value)}; {row.tier}.",
                page=f"/model/{row.id}",
            )
        yield from live_news(self._boards)
        for made in moderation.read(self._decisions)[0].values():
            for number, decision in enumerate(made, 1):
                if decision.at:
                    yield News(
                        at=decision.at,
                        what=f"{decision.action}-{number}",
                        about=decision.submission,
                        title=f"Submission {decision.submission} is {decision.says()}",
                        text=decision.reason,
                        page=self._boards.page_of(decision.submission),
                    )
        names = {row.id: row for row in dated}
        for submission_id, one in self._boards.store.verifications()[0].items():
            if submission_id in names:
                how = (
                    "repeated the run"
                    if one.kind == "reproduced"
                    else "asked rows of it again at an endpoint"
                )
                yield News(
                    at=one.verified_at,
                    what=one.kind,
                    about=submission_id,
                    title=f"{names[submission_id].model} by {names[submission_id].user}: {one.kind}",
                    text=f"{one.by} {how}: accuracy {numbers.number(one.repeated)}, "
                    f"submitted {numbers.number(one.submitted)}.",
                    page=f"/model/{submission_id}",
                )


def _changed(folder: Path) -> int:
    """Another number after every record in a folder that may not be there."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0
