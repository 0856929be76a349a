"""The routes of the API in words, for `/api/v1` and its OpenAPI. A test holds them against the app's own."""

from typing import Any

import msgspec

from robustbench_tc import __version__

from .query import SIZES, SORTS, TIERS, WEIGHTS
from .row import FOCUSES

ROOT = "/api/v1"

_MODEL = "paper-o4-mini"


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One route."""

    method: str
    path: str
    summary: str
    example: str | None = None
    """An address, or the JSON of a body."""
    query: dict[str, str] = {}
    """Parameters behind the question mark."""
    signed_in: bool = False
    """On a Space it wants `Authorization: Bearer TOKEN`."""
    answers: str = "application/json"


_VIEW = {
    "focus": f"what is ranked by: {', '.join(FOCUSES)}; default {FOCUSES[0]}",
    "sort": f"a column: {', '.join(SORTS)}; default: by rank",
    "dir": "asc or desc; default: the column's own",
    "q": "words that the model, the family or the user holds",
    "family": "that family alone",
    "mode": "prompt or fc",
    "size": f"{', '.join(SIZES)}",
    "tier": f"{', '.join(TIERS)}",
    "weights": f"{', '.join(WEIGHTS)}",
    "licence": "that licence alone, as the rows spell it",
    "since": "submitted on that day or later: 2026-11-20",
    "until": "submitted on that day or earlier",
}

_PARQUET = "application/vnd.apache.parquet"

READ = (
    Route(method="GET", path=ROOT, summary="this list, and which dataset version submissions are taken for"),
    Route(method="GET", path=f"{ROOT}/openapi.json", summary="this list as OpenAPI 3.1"),
    Route(
        method="GET",
        path=f"{ROOT}/boards",
        summary="every board: one per dataset version, and the paper's",
        example=f"{ROOT}/boards",
    ),
    Route(
        method="GET",
        path=f"{ROOT}/boards/{{version}}/rows",
        summary="a board's rows, in pages",
        query=_VIEW | {"page": "from 1", "page_size": "1 to 1000, default 100"},
        example=f"{ROOT}/boards/paper/rows?focus=CD&size=small",
    ),
    Route(
        method="GET",
        path=f"{ROOT}/boards/{{version}}/rows.parquet",
        summary="the whole board, or what the same filters leave of it",
        query=_VIEW,
        example=f"{ROOT}/boards/paper/rows.parquet",
        answers=_PARQUET,
    ),
    Route(
        method="GET",
        path=f"{ROOT}/models/{{id}}",
        summary="one run: figures by component and type, tier, flags, verification, history",
        example=f"{ROOT}/models/{_MODEL}",
    ),
    Route(
        method="GET",
        path=f"{ROOT}/compare",
        summary="two runs of one board, b minus a: paired where their samples are known",
        query={"a": "the id of a run", "b": "the id of another"},
        example=f"{ROOT}/compare?a={_MODEL}&b=paper-Qwen3-8B",
    ),
    Route(
        method="GET",
        path=f"{ROOT}/models/{{id}}/predictions.parquet",
        summary="the raw answers of a submission, without verdicts, as stored",
        answers=_PARQUET,
    ),
    Route(
        method="GET",
        path=f"{ROOT}/models/{{id}}/run.json",
        summary="how a submission's answers were asked for",
    ),
)
"""What anybody may read, from pages of other origins too."""

LIVE = (
    Route(
        method="GET",
        path=f"{ROOT}/live",
        summary="the live runs by board: success, recovery and harm by kind of fault",
        query={"version": "that board alone"},
        example=f"{ROOT}/live",
    ),
    Route(method="GET", path=f"{ROOT}/live/runs/{{id}}", summary="one live run"),
    Route(
        method="GET",
        path=f"{ROOT}/live/runs/{{id}}/{{file}}",
        summary="what is stored of it: journal.jsonl, answers and results of calls, and run.json",
        answers="application/octet-stream",
    ),
)
"""The same of live runs: they are in no other route."""

_SUBMISSIONS = f"{ROOT}/submissions"

WRITE = (
    Route(
        method="POST",
        path=_SUBMISSIONS,
        summary="announce an upload; the same announcement again finds it again",
        example='{"files": {"predictions": {"bytes": 701234, "sha256": "…"}, "run": {"bytes": 2345, '
        '"sha256": "…"}}, "form": {"name": "Qwen3-8B", "licence": "apache-2.0", "weights": "open"}}',
        signed_in=True,
    ),
    Route(
        method="PUT",
        path=f"{_SUBMISSIONS}/{{id}}/{{file}}",
        summary="bytes of the file predictions (live: journal.jsonl) or run; 409 says how many there are",
        query={"offset": "how many there are already"},
        signed_in=True,
    ),
    Route(
        method="POST",
        path=f"{_SUBMISSIONS}/{{id}}/finish",
        summary="hand the complete upload over to be checked and scored",
        signed_in=True,
    ),
    Route(
        method="GET",
        path=f"{_SUBMISSIONS}/{{id}}",
        summary="uploading, waiting (with the place), checking, scoring or done (with the result)",
        signed_in=True,
    ),
    Route(
        method="POST",
        path=f"{_SUBMISSIONS}/{{id}}/list",
        summary="put the result on the board; twice is once",
        signed_in=True,
    ),
)
"""What submits. Each upload is one account's."""

ROUTES = READ + LIVE + WRITE


def openapi() -> dict[str, Any]:
    """The routes as OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        inside = [part.strip("{}") for part in route.path.split("/") if part.startswith("{")]
        parameters = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in inside
        ]
        parameters += [
            {
                "name": name,
                "in": "query",
                "required": False,
                "description": said,
                "schema": {"type": "string"},
            }
            for name, said in route.query.items()
        ]
        error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
        done = {"200": {"description": "as documented", "content": {route.answers: {}}}}
        paths.setdefault(route.path, {})[route.method.lower()] = {
            "summary": route.summary,
            "parameters": parameters,
            "security": [{"token": []}] if route.signed_in else [],
            "responses": done | {"default": {"description": "one line that says why", "content": error}},
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "RobustBench-TC leaderboard", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {"error": {"type": "string"}},
                }
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
