"""The API's other half: submissions of scripts. Announce, send, hand over, ask, list.

    POST /api/v1/submissions                  announce: files with sizes and sha256, form  → id, what is there
    PUT  /api/v1/submissions/ID/FILE?offset=N bytes from N on                              → what is there
    POST /api/v1/submissions/ID/finish        hand over to the desk
    GET  /api/v1/submissions/ID               stage, place, estimate; at the end the result
    POST /api/v1/submissions/ID/list          put it on the board

Everything is one account's: another's upload is not there.
"""

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from .account import Accounts
from .api_answers import OWN, Handler, answer, blocks, guarded, length, read_json, same_origin
from .desk import Desk
from .problem import Problem
from .records import Checked
from .refusal import Refused
from .submitting import Form, Submitter, stated
from .uploads import Announced, Uploads

PATH = "/api/v1/submissions"


class Announcement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of the first request."""

    files: dict[str, Announced]
    form: Form


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where an upload stands."""

    id: str
    stage: str
    """uploading, waiting, checking, scoring or done."""
    received: dict[str, int]
    """Bytes that have arrived, by file."""
    place: int | None = None
    """In the queue, 1 is next; while it waits."""
    seconds: float | None = None
    """Until it is done, as far as measured times say."""
    result: Checked | None = None
    """Once it is done."""
    listable: bool = False
    """The result passed, and may be listed."""


def add_submissions(
    app: FastAPI, desk: Desk | None, accounts: Accounts, added: Callable[[], None], closed: str = ""
) -> None:
    """Puts the routes on the app. Without a desk each says `closed`."""
    made: dict[tuple[str, str], Handler]
    if desk is None:

        async def shut(_: Request) -> Response:
            raise Problem(503, f"this board takes no submissions: {closed}")

        made = {("/api/v1/submissions{rest:path}", method): shut for method in ("GET", "POST", "PUT")}
    else:
        routes = _Submissions(desk, accounts, Uploads(desk.store, desk.limits), added)
        made = {
            (PATH, "POST"): routes.create,
            (f"{PATH}/{{upload_id}}", "GET"): routes.state,
            (f"{PATH}/{{upload_id}}/finish", "POST"): routes.finish,
            (f"{PATH}/{{upload_id}}/list", "POST"): routes.list,
            (f"{PATH}/{{upload_id}}/{{file}}", "PUT"): routes.put,
        }
    for (path, method), handler in made.items():
        app.add_route(path, guarded(handler, OWN), [method])


class _Submissions:
    def __init__(self, desk: Desk, accounts: Accounts, uploads: Uploads, added: Callable[[], None]) -> None:
        self._desk = desk
        self._accounts = accounts
        self._uploads = uploads
        self._added = added

    async def _who(self, request: Request) -> Submitter:
        if request.method != "GET":
            same_origin(request)
        address = request.client.host if request.client else ""
        said = request.headers.get("authorization")
        found: Submitter = await run_in_threadpool(self._accounts.of, said, address)
        return found

    async def create(self, request: Request) -> Response:
        who = await self._who(request)
        asked = await read_json(request, Announcement)
        stated(asked.form)  # said before megabytes are sent

        def make() -> State:
            upload_id = self._uploads.create(who, asked.files, asked.form)
            state = self._state(who, upload_id)
            if state.stage == "done" and not state.listable:  # refused before: this is another try
                self._uploads.throw_away(upload_id)
                state = self._state(who, self._uploads.create(who, asked.files, asked.form))
            return state

        state = await run_in_threadpool(make)
        return answer(state, 201, OWN | {"Location": f"{PATH}/{state.id}"})

    async def put(self, request: Request) -> Response:
        who = await self._who(request)
        upload_id, name = request.path_params["upload_id"], request.path_params["file"]
        said = request.query_params.get("offset", "")
        if not (said.isascii() and said.isdigit() and len(said) < 16):
            raise Problem(422, "say from which byte on: ?offset=N")
        offset, brings = int(said), length(request)
        number = await run_in_threadpool(self._uploads.begin, who.user, upload_id, name, offset, brings)
        bound = self._uploads.find(who.user, upload_id).files[name].bytes
        there = offset
        async with aclosing(blocks(request, bound - offset)) as body:
            async for block in body:
                there = await run_in_threadpool(self._uploads.append, upload_id, name, number, block, bound)
        return answer({"received": there}, headers=OWN)

    async def finish(self, request: Request) -> Response:
        who, upload_id = await self._who(request), request.path_params["upload_id"]

        def hand_over() -> State:
            sent = self._uploads.find(who.user, upload_id)
            self._uploads.hand_over(
                who.user, upload_id, lambda upload, run: self._desk.place(who, upload, run, sent.form)
            )
            return self._state(who, upload_id)

        return answer(await run_in_threadpool(hand_over), 202, OWN)

    async def state(self, request: Request) -> Response:
        who = await self._who(request)
        return answer(
            await run_in_threadpool(self._state, who, request.path_params["upload_id"]), headers=OWN
        )

    async def list(self, request: Request) -> Response:
        who, upload_id = await self._who(request), request.path_params["upload_id"]

        def put_on_board() -> dict[str, Any]:
            sent = self._uploads.find(who.user, upload_id)
            if not sent.ticket:
                raise Problem(409, "this upload is not checked yet: finish it, and ask until it is done")
            made = self._desk.list(who.user, sent.ticket)
            self._added()
            return {"submission": made, "page": made.page}

        return answer(await run_in_threadpool(put_on_board), 201, OWN)

    def _state(self, who: Submitter, upload_id: str) -> State:
        sent = self._uploads.find(who.user, upload_id)
        if not sent.ticket:
            return State(id=upload_id, stage="uploading", received=self._uploads.received(upload_id))
        try:
            now = self._desk.progress(who, sent.ticket)
            checked = self._desk.result(who, sent.ticket) if now.stage == "done" else None
        except (
            Refused
        ):  # the desk has forgotten it: it was started anew, or the result was not listed in time
            self._uploads.take_back(upload_id, sent)
            return State(id=upload_id, stage="uploading", received=self._uploads.received(upload_id))
        if checked is not None:
            self._uploads.settle(upload_id)
        passed = checked is not None and checked.submission is not None and checked.refused is None
        return State(
            id=upload_id,
            stage=now.stage,
            received={name: one.bytes for name, one in sent.files.items()},
            place=now.place,
            seconds=now.seconds,
            result=checked,
            listable=passed,
        )
