"""`rbtc leaderboard serve`: the board with everything it needs, from a results folder and a dataset."""

import os
import socket
import sys
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, NamedTuple, get_args

import msgspec

from robustbench_tc.errors import UserError, need_extra, unknown
from robustbench_tc.eval import inputs
from robustbench_tc.eval.live import inputs as live_inputs

from .account import Login
from .checks import Asked
from .limits import Limits
from .live_data import load_live
from .store import Store

if TYPE_CHECKING:
    from fastapi import FastAPI

    from .worker import Pool

_SHARING = 3
"""Uploads that share a core: an honest one begins at once where hostile ones have taken most places."""

DEFAULT_STORE = "leaderboard-results"


def serve(
    dataset: str | Path | None = None,
    *,
    revision: str | None = None,
    live_dataset: str | Path | None = None,
    live_revision: str | None = None,
    store: str | Path = DEFAULT_STORE,
    results_repo: str | None = None,
    host: str = "127.0.0.1",
    port: int = 7860,
    login: Login | None = None,
    workers: int = 2,
    limits: Limits | None = None,
    stop: Event | None = None,
    started: Callable[[str], None] = lambda url: None,
    progress: Callable[[str], None] = lambda line: None,
) -> None:
    """Serves the leaderboard and its submit page; returns once it is stopped, by Ctrl-C or by `stop`.

    `dataset`: the release that submissions are taken for; None takes none. `live_dataset`: beside it, the one
    of live runs; without it none of these are taken. `store`: the results folder, kept
    equal to the Hub's `results_repo` where one is named. `login`: by default `hf` in a Space, else `local`.
    `port` 0 takes a free one. The port opens first: `started` gets the address then, and the rest (results
    on the Hub, the dataset, the submit page, entries that are missing) comes behind it. `progress` gets a
    line for that, and for every submission that is left out.

    Raises UserError where gradio is missing (extra `leaderboard`), the address is taken, or the dataset or
    the store cannot be used.

    >>> stop = Event()
    >>> Thread(target=serve, kwargs={"port": 0, "stop": stop, "started": print}).start()  # doctest: +SKIP
    """
    if login not in (None, *get_args(Login)):
        raise unknown("login", login or "", get_args(Login))
    if live_dataset is not None and dataset is None:
        raise UserError("--live-dataset stands beside a --dataset: name both")
    in_space = "SPACE_ID" in os.environ
    with closing(_listen(host, port)) as listening:
        for needed in ("gradio", "fastapi"):
            if find_spec(needed) is None:
                raise need_extra(needed, "leaderboard")
        site = _Site(
            None if dataset is None else Named(str(dataset), revision),
            None if live_dataset is None else Named(str(live_dataset), live_revision),
            open_store(store, results_repo, sync=False),
            login or ("hf" if in_space else "local"),
            workers,
            limits or Limits(),
            progress,
            stop or Event(),
        )
        with closing(site):
            started(f"http://{host}:{listening.getsockname()[1]}")
            site.run(listening, in_space)


def _listen(host: str, port: int) -> socket.socket:
    """A socket that holds the place before everything is loaded. Raises UserError where it is taken."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise UserError(f"cannot listen on {host}:{port} ({error.strerror}): take another --port") from None
    return listening


class Named(NamedTuple):
    """A dataset as it was named."""

    dataset: str
    revision: str | None


class _Site:
    """The board of a server, from the open port to its end."""

    def __init__(
        self,
        dataset: Named | None,
        live: Named | None,
        store: Store,
        login: Login,
        workers: int,
        limits: Limits,
        progress: Callable[[str], None],
        stop: Event,
    ) -> None:
        from .behind import Behind
        from .hub import HubStore
        from .origin import Origin
        from .scoring import entries_of_paper
        from .site import Boards

        self._dataset, self._live, self._login = dataset, live, login
        self._workers, self._limits, self._stop = workers, limits, stop
        self._ended = Event()
        self._pool: Pool | None = None
        origin = Origin(
            None if dataset is None else dataset.dataset, store.repo if isinstance(store, HubStore) else None
        )
        self._boards = Boards(store, entries_of_paper(), origin=origin, tell=progress)
        self._boards.takes_live = live is not None
        self._boards.fetching = isinstance(store, HubStore)
        self._behind = Behind(self._boards, progress, self._ended)

    def run(self, listening: socket.socket, in_space: bool) -> None:
        """Serves until it is stopped. Raises UserError where the rest cannot be made."""
        from fastapi import FastAPI

        from .app import run
        from .front import Front
        from .web import add_routes

        first = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        add_routes(first, self._boards)
        front = Front(first, self._load, self._make, self._stop.set)
        run(front, listening, self._limits, behind_proxy=in_space, stop=self._stop)
        if front.error is not None:
            raise front.error

    def close(self) -> None:
        """Ends what runs beside it."""
        self._ended.set()
        self._boards.close()
        if self._pool is not None:
            self._pool.close()

    def _load(self) -> None:
        self._boards.refresh()
        self._behind.start()

    def _make(self) -> "FastAPI":
        """The whole app."""
        from .app import create
        from .desk import Desk
        from .pages import compile_templates
        from .records import board_version
        from .worker import Pool

        desk, asked = None, ""
        if self._dataset is not None:
            folder = inputs.locate(*self._dataset)
            data = load_asked(str(folder))
            live_folder = None if self._live is None else live_inputs.locate(*self._live)
            live = None if live_folder is None else load_live(live_folder)
            command = worker_command(folder, self._limits, live_folder)
            self._pool = Pool(command, _SHARING * self._workers)
            self._pool.warm()
            desk = Desk(self._boards.store, self._pool, self._limits)
            self._boards.datasets.add(data)
            self._boards.serves(
                data.label, data.fingerprint(), None if live is None else (live.label, live.fingerprint)
            )
            self._behind.score_with(lambda: Pool(command, self._workers))
            asked = f"version {data.label}, board {board_version(data.version, data.fingerprint())}"
        compile_templates()
        closed = "it was started without a dataset (--dataset)."
        return create(self._boards, desk, login=self._login, asked=asked, closed=closed)


def open_store(folder: str | Path, results_repo: str | None, *, sync: bool = True) -> Store:
    """The results folder, brought up to date with the Hub where there is a repository and `sync`."""
    from .hub import HubStore

    path = Path(folder).expanduser()
    if path.exists() and not path.is_dir():
        raise UserError(f"{path} is not a folder: name one for the results with --store")
    if results_repo is None:
        return Store(path)
    store = HubStore(path, results_repo)
    if sync:
        store.sync()
    return store


def load_asked(dataset: str, revision: str | None = None) -> Asked:
    """A dataset for a board. Raises UserError."""
    return Asked.of(inputs.load(dataset, revision=revision))


def worker_command(dataset: Path, limits: Limits, live: Path | None = None) -> list[str]:
    """Starts the process that reads and scores uploads: `eval.leaderboard.worker`. `live`: the dataset of
    live runs."""
    start = "from robustbench_tc.eval.leaderboard.serve import work; work()"
    asked = [str(dataset), "" if live is None else str(live), msgspec.json.encode(limits).decode()]
    return [sys.executable, "-P", "-c", start, *asked]


def work() -> None:
    """What `worker_command` runs."""
    from .worker import serve as answer_jobs

    dataset, live, limits = sys.argv[1:4]
    bounds = msgspec.json.decode(limits, type=Limits)
    answer_jobs(load_asked(dataset), bounds, load_live(live) if live else None)
