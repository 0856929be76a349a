"""The Space's app, and `rbtc leaderboard serve`: the pages, a form, the Hub's webhook.

The app carries files to the commands, and their answers back: every check, pull request and build is an
`rbtc leaderboard …` in a process of its own, as on any other machine. It keeps nothing. It can
be imported only where gradio is there (the extra `leaderboard`).
"""

import hmac
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr
from anyio import CapacityLimiter, create_task_group, to_thread
from fastapi import BackgroundTasks, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from huggingface_hub import WebhookPayload

import robustbench_tc
from robustbench_tc.errors import UserError

from .checker import BYTES

LONGEST_S = 1_800
"""After which a command is killed."""

WAITING = 20
"""Uploads that wait for their check; whoever comes then is told to try again."""

INTRO = """# Submit a run
The files of its folder: run.json and predictions.parquet, or run.json and episodes.parquet; or its
predictions as one .jsonl file, ours or the paper's. They are scored here first; only the second button makes
them public, raw replies included. [The board](/)"""

FIELDS = {
    "model": ("Model", "Its id on the Hub, or a free name. Empty: as the run says."),
    "mode": ("Mode", "Of a .jsonl file: prompt or fc."),
    "params": ("Parameters in billions", ""),
    "weights": ("Weights", "open or closed"),
    "licence": ("Licence", "SPDX id, such as apache-2.0."),
    "card": ("Model card", "Its https address."),
    "price": ("Price", "IN,OUT: US dollars per million prompt and completion tokens."),
    "scaffold": ("Agent", "What stood around the model."),
    "defences": ("Its defences", ""),
    "contact": ("Contact", "Whom to ask."),
    "note": ("Note", "A line for the model's page."),
}
"""Options of `rbtc leaderboard submit`, each with its label and what is said below it."""


def command(*words: str) -> str:
    """What `rbtc leaderboard …` prints. Raises UserError with its last line where it fails."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "robustbench_tc", "leaderboard", *words],
            env={**os.environ, "PYTHONPATH": str(Path(robustbench_tc.__file__).parents[1])},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"it took longer than {LONGEST_S:,} seconds and was stopped") from None
    if done.returncode:
        raise UserError((done.stderr.strip().splitlines() or ["it was stopped"])[-1].removeprefix("rbtc: "))
    return done.stdout


class Board(NamedTuple):
    """A results repository, and the pages that were made of it."""

    place: str
    site: Path

    def check(self, pull: int | None = None) -> None:
        """Scores what has no entry: of a pull request, or on main, whose pages are made again."""
        steps = [("check", self.place, *([] if pull is None else [f"--pr={pull}"]))]
        if pull is None:  # the pages follow the entries, whatever a maintainer still has to look at
            steps.append(("build", self.place, f"--out={self.site}", "--form=submit/"))
        for words in steps:
            try:
                command(*words)
            except UserError as error:
                logging.getLogger("uvicorn.error").error("%s", error)

    def submit(self, files: Sequence[str], options: Sequence[str]) -> Any:
        """What `submit --json` says of a run. Raises UserError where it is refused."""
        with tempfile.TemporaryDirectory(prefix="rbtc-run-") as folder:
            for file in files:
                shutil.copyfile(file, Path(folder) / Path(file).name)
            replies = next((file for file in files if file.endswith(".jsonl")), folder)
            return json.loads(command("submit", replies, f"--to={self.place}", "--json", *options))


def create(board: Board, secret: str, sign_in: bool) -> FastAPI:
    """The whole app: the pages, the form under /submit/, the webhook where there is a secret."""
    check = partial(to_thread.run_sync, board.check, limiter=CapacityLimiter(1), abandon_on_cancel=True)

    @asynccontextmanager
    async def catching_up(app: FastAPI) -> AsyncIterator[None]:
        async with create_task_group() as tasks:  # the port is open meanwhile
            tasks.start_soon(check)
            yield
            tasks.cancel_scope.cancel()

    async def webhook(request: Request, later: BackgroundTasks) -> None:
        if not secret or not hmac.compare_digest(
            request.headers.get("X-Webhook-Secret", "").encode(), secret.encode()
        ):
            raise HTTPException(403)
        event = WebhookPayload.model_validate_json(await request.body())
        if event.repo.name == board.place and event.event.scope != "discussion.comment":
            later.add_task(check, pull_of(event))

    async def missing(request: Request, error: Exception) -> HTMLResponse:
        return HTMLResponse(
            "<!doctype html><title>Not there</title><p>There is no such page, or it is still being made.", 404
        )

    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=catching_up,
        exception_handlers={404: missing},
    )
    app.add_api_route("/webhook", webhook, methods=["POST"], status_code=202)
    if sign_in:
        gr.oauth.attach_oauth(app)
    page = form_page(board, sign_in)
    gr.mount_gradio_app(
        app, page, "/submit", footer_links=[], max_file_size=max(BYTES.values()), ssr_mode=False
    )
    # Gradio holds the paths that an event names against its upload folder in apps alone that it launched.
    page.has_launched = True
    app.mount("/", StaticFiles(directory=board.site, html=True))
    return app


def pull_of(event: WebhookPayload) -> int | None:
    """The pull request that is new or was pushed to; None where main may have changed."""
    on, pushed = event.discussion, [one.ref for one in event.updatedRefs or ()]
    if on is not None and on.isPullRequest and on.status == "open":
        return int(on.num)
    return next((int(ref.removeprefix("refs/pr/")) for ref in pushed if ref.startswith("refs/pr/")), None)


def accounts(profile: Mapping[str, Any]) -> list[str]:
    """Who is signed in, and the organisations that the Space was allowed to know of."""
    return [str(one["preferred_username"]) for one in (profile, *(profile.get("orgs") or ()))]


def form_page(board: Board, sign_in: bool) -> gr.Blocks:
    """The form: one event checks a run, a second one submits what was checked."""

    def who(profile: gr.OAuthProfile | None) -> tuple[str, Any]:
        if profile is None:
            return (
                '<a href="/login/huggingface?_target_url=/submit/">Sign in with Hugging Face</a> to submit.',
                gr.Dropdown(),
            )
        names = accounts(profile)
        return (
            f'Signed in as {escape(names[0])}. <a href="/logout?_target_url=/submit/">Sign out</a>',
            gr.Dropdown(choices=names, value=names[0]),
        )

    def check(profile: gr.OAuthProfile | None, files: list[str] | None, org: str, *stated: str) -> Any:
        """Answer, table, what may be submitted, whether the second button is there."""
        nothing = "", None, gr.Button(visible=False)
        if sign_in and (profile is None or org not in accounts(profile)):
            return "Sign in, and choose your account or an organisation of yours.", *nothing
        named = {
            "org": org,
            "account": profile and profile.username,
            **dict(zip(FIELDS, stated, strict=True)),
        }
        run = files or [], [f"--{name}={text}" for name, text in named.items() if text]
        try:
            table = board.submit(run[0], [*run[1], "--dry-run"])["table"]
        except UserError as error:
            return f"Not accepted: {error}", *nothing
        return "Accepted. Nothing is public yet.", table, run, gr.Button(visible=True)

    def submit(run: tuple[list[str], list[str]]) -> Any:
        try:
            url = board.submit(*run)["url"]
        except UserError as error:
            return f"Not submitted: {error}", run, gr.Button(visible=True)
        if sign_in:
            return (
                f"The pull request is open: {url}. The checker comments it within minutes; once a maintainer "
                "has merged it, the run stands on the board as unverified.",
                None,
                gr.Button(visible=False),
            )
        board.check()
        return "It stands on the board.", None, gr.Button(visible=False)

    with gr.Blocks(title="Submit a run", analytics_enabled=False, delete_cache=(3600, 3600)) as page:
        gr.Markdown(INTRO)
        signed_in = gr.HTML(visible=sign_in)
        uploaded = gr.File(label="Files of the run", file_count="multiple", elem_id="files")
        org = gr.Dropdown(
            ["local"], value="local", label="Account", allow_custom_value=not sign_in, elem_id="org"
        )
        with gr.Row():
            stated = [
                gr.Textbox(label=label, info=info, max_length=300, min_width=260, elem_id=name)
                for name, (label, info) in FIELDS.items()
            ]
        first = gr.Button("Check", variant="primary", elem_id="check")
        line = gr.Textbox(label="Answer", interactive=False, elem_id="answer")
        table = gr.Markdown(elem_id="table")
        ready = gr.State()
        second = gr.Button("Submit", visible=False, elem_id="submit")
        first.click(check, [uploaded, org, *stated], [line, table, ready, second], concurrency_limit=1)
        second.click(submit, [ready], [line, ready, second], concurrency_limit=1)
        page.load(who, None, [signed_in, org])
    return page.queue(max_size=WAITING)
