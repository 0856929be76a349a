"""What every route of the API shares: JSON, one line for whatever goes wrong, bodies with a bound."""

import asyncio
import logging
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from fastapi import Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from robustbench_tc.errors import UserError

from .delivery import has_already
from .problem import Problem
from .refusal import Refused

_LOG = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]
T = TypeVar("T")

JSON = "application/json"

BODY = 64 * 1024
"""Bytes of a request in JSON."""

QUIET_S = 30.0
"""A request whose body brings nothing for so long is ended."""

BLOCK = 1024 * 1024
"""Bytes of a body that are held before they are handed on."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}

ANYBODY = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "ETag, Retry-After"}
"""For public data: pages of other origins may read it. Nothing that needs an account has it."""

OWN = {"Cache-Control": "no-store"}
"""For what one account alone may see."""


def answer(found: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON that msgspec can encode."""
    return Response(msgspec.json.encode(found), status, HEADERS | (headers or {}), JSON)


def delivered(request: Request, content: bytes, kind: str) -> Response:
    """Public bytes; nothing but their ETag for somebody who has them."""
    etag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = HEADERS | ANYBODY | {"ETag": etag, "Cache-Control": "public, no-cache"}
    if has_already(etag, request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=kind)


def guarded(handler: Handler, shared: dict[str, str]) -> Handler:
    """The handler; what it raises becomes one line of JSON. `shared`: headers of its errors too."""

    async def guard(request: Request) -> Response:
        try:
            return await handler(request)
        except Problem as problem:
            waits = {} if problem.wait_s is None else {"Retry-After": str(round(problem.wait_s))}
            return answer({"error": str(problem), **problem.extra}, problem.status, shared | waits)
        except Refused as refusal:
            status = 429 if refusal.step == "quota" else 422
            return answer({"error": str(refusal), "step": refusal.step}, status, shared)
        except UserError as error:
            return answer({"error": str(error)}, 503, shared)
        except HTTPException as error:
            return answer({"error": str(error.detail)}, error.status_code, shared)
        except ClientDisconnect:
            return answer({"error": "the request ended before its body did"}, 400, shared)
        except Exception as error:  # whatever it is, nothing of the server's inside is shown
            _LOG.error("%s %s: %s", request.method, ascii(request.url.path)[:200], place_of(error))
            return answer({"error": "the server could not answer this: try again in a moment"}, 500, shared)

    return guard


async def blocks(request: Request, bound: int) -> AsyncGenerator[bytes, None]:
    """The body in blocks of at most about BLOCK bytes. Raises Problem once there are more than `bound`."""
    announced = length(request)
    if announced is not None and announced > bound:
        raise Problem(413, f"at most {bound} bytes are taken here")
    held, total = bytearray(), 0
    stream = request.stream().__aiter__()
    while True:
        try:
            chunk = await asyncio.wait_for(anext(stream, None), QUIET_S)
        except TimeoutError:
            raise Problem(408, f"nothing came for {QUIET_S:.0f} seconds: go on with a new request") from None
        except ClientDisconnect:
            if held:  # what has arrived need not be sent again
                yield bytes(held)
            raise
        if chunk is None:
            break
        total += len(chunk)
        if total > bound:
            raise Problem(413, f"at most {bound} bytes are taken here")
        held += chunk
        if len(held) >= BLOCK:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


def place_of(error: Exception) -> str:
    """What went wrong and where, for one line of the log: no message, which may hold what somebody sent."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"


def length(request: Request) -> int | None:
    """The Content-Length; None where there is none. Raises Problem for what is no number."""
    said = request.headers.get("content-length")
    if said is None:
        return None
    if not (said.isascii() and said.isdigit() and len(said) < 16):
        raise Problem(400, "the Content-Length is not a number")
    return int(said)


async def read_json(request: Request, kind: type[T]) -> T:
    """A request's JSON. Raises Problem."""
    if request.headers.get("content-type", "").partition(";")[0].strip().casefold() != JSON:
        raise Problem(415, f"send JSON, with Content-Type: {JSON}")
    body = b"".join([block async for block in blocks(request, BODY)])
    try:
        return msgspec.json.decode(body, type=kind)
    except (ValueError, RecursionError) as error:
        raise Problem(
            422, f"the JSON is not what is asked for: {' '.join(ascii(str(error))[1:200].split())}"
        ) from None


def same_origin(request: Request) -> None:
    """Raises Problem where a page of another origin sends the request: on a laptop everybody is `local`."""
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise Problem(403, "pages of other sites cannot submit")
