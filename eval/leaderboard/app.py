"""The whole app: the board's plain pages, and the gradio page under /submit."""

import logging
import os
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from socket import socket
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from robustbench_tc.errors import UserError, need_extra

from . import pages
from .account import Accounts, Login
from .connections import Guard, one_line, protocol
from .desk import Desk
from .limits import MB, Limits
from .site import Boards
from .submit_gate import UPLOAD, SubmitGate

if TYPE_CHECKING:
    from fastapi import FastAPI

    from .front import Front

_log = logging.getLogger("uvicorn.error")


@cache
def _uploads() -> Path:
    """A new folder for what gradio takes, in the one that the environment names. It is swept, so nothing of
    anybody else may lie there."""
    named = os.environ.get("GRADIO_TEMP_DIR") or None
    if named is not None:
        Path(named).mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="rbtc-uploads-", dir=named))


def create(boards: Boards, desk: Desk | None, *, login: Login, asked: str, closed: str = "") -> "FastAPI":
    """The app. `asked` names the dataset version that is taken; without a desk `closed` says why none is.

    Raises UserError where gradio is missing, or signing in cannot work here.
    """
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ["GRADIO_TEMP_DIR"] = str(_uploads())  # read at import
    try:
        import gradio as gr
        from fastapi import FastAPI
        from gradio.utils import get_upload_folder
    except ImportError:
        raise need_extra("gradio", "leaderboard") from None
    from .api_routes import add_api
    from .submit_page import closed_page, page
    from .syndication import add_syndication
    from .web import add_routes

    limits = Limits() if desk is None else desk.limits
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    # The last one that is added stands in front: the gate behind the session.
    folder = Path(get_upload_folder())
    app.add_middleware(SubmitGate, limits=limits, sign_in=login == "hf", folder=folder)
    if login == "hf":
        _sign_in(app)
    add_api(app, boards, desk, Accounts(login), closed)
    add_syndication(app, boards)
    add_routes(app, boards)
    made: FastAPI = gr.mount_gradio_app(
        app,
        closed_page(closed) if desk is None else page(desk, login, asked, boards.refresh, _live(boards)),
        path="/submit",
        footer_links=[],
        run_history=False,
        show_error=False,
        max_file_size=1 if desk is None else desk.limits.file_bytes + MB,
        ssr_mode=False,
        pwa=False,
        allowed_paths=[],
        blocked_paths=[str(boards.store.folder)],
        theme=_theme(),
        head=f'<link rel="stylesheet" href="{pages.sheet_path("submit.css")}">',
    )
    _errors_in_one_line()
    return made


def _live(boards: Boards) -> str | None:
    """Which live dataset is taken, in words."""
    if boards.served_live is None:
        return None
    return f"live dataset version {boards.served_live[0]} ({boards.served_live[1][:8]})"


def _errors_in_one_line() -> None:
    """gradio prints a traceback for every event that cannot be handled, which anybody can write by hand."""
    from gradio import routes

    class OneLine:
        """Stands for the module `traceback` in gradio's routes."""

        @staticmethod
        def print_exc() -> None:
            """One line for the error that is being handled."""
            error = sys.exc_info()[1]
            _log.error("an event of the submit page failed: %s", one_line(error or Exception("unknown")))

    vars(routes)["traceback"] = OneLine


def _theme() -> Any:
    """gradio's plain theme with the board's fonts, and grey texts that can be read."""
    import gradio as gr

    font = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "Liberation Sans", "sans-serif"]
    return gr.themes.Base(primary_hue="blue", font=font, font_mono=["monospace"]).set(
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_300",
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_300",
        block_label_text_color="*neutral_700",
        block_label_text_color_dark="*neutral_200",
        input_border_color="*neutral_500",
        input_border_width="1px",
        button_primary_background_fill="#0a5bd3",
        button_primary_background_fill_hover="#084aab",
        button_primary_background_fill_dark="#0a5bd3",
        button_primary_background_fill_hover_dark="#084aab",
    )


def _sign_in(app: "FastAPI") -> None:
    """Hugging Face's sign-in, for the board's pages and gradio's alike. Works in a Space only."""
    from gradio import oauth

    if not os.environ.get("SPACE_ID") or not oauth.OAUTH_CLIENT_SECRET:
        raise UserError(
            "signing in works in a Space with `hf_oauth: true`: leave --login hf out, or export a Space"
        )
    oauth.attach_oauth(app)


def run(
    app: "FastAPI | Front",
    listening: socket,
    limits: Limits,
    *,
    behind_proxy: bool = False,
    stop: Event | None = None,
) -> None:
    """Serves the app on a socket until Ctrl-C or until `stop` is set."""
    import uvicorn

    file = limits.file_bytes + 2 * MB
    bodies = {UPLOAD: file, "/api/v1/submissions/": file}

    server = uvicorn.Server(
        uvicorn.Config(
            Guard(app, limits, bodies, behind_proxy=behind_proxy),
            http=protocol(limits, behind_proxy=behind_proxy),
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=75,  # longer than people think between two pages
            proxy_headers=behind_proxy,
            forwarded_allow_ips="*" if behind_proxy else None,
        )
    )
    if stop is not None:

        def watch(asked: Event = stop) -> None:
            asked.wait()
            server.should_exit = True

        Thread(target=watch, daemon=True).start()
    with suppress(KeyboardInterrupt):  # Ctrl-C is how the board is stopped
        server.run(sockets=[listening])
